"""Order of a problem's variables, along which its factors are written.

Causes come before effects, and the context first. `order = [...]` states it, and so when variables
get their values. Otherwise it follows from the graph. With `soft` it also decides which absent
arrows may exist, so names must decide as little as possible: the pools are the context, the
settable variables with their drawn ancestors, the other variables, the reward, and its effects.
Among the variables of a pool whose parents are placed, settable ones come first, then those with
fewer parents, with fewer ancestors, with more descendants, with the longer path to the reward, and
the first name.

Settable variables come as early as possible because for a settable u before v, both u -> v and
u <-> v can be soft, and a true v -> u appears as u <-> v.

>>> graph = CausalGraph.parse("B -> Y; A -> Y; C -> Y")
>>> soft_order(graph, "Y", context=(), settable={"C"})
('C', 'A', 'B', 'Y')
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise

from dowise.errors import DowiseError
from dowise.graph import CausalGraph
from dowise.graph.adjacency import closure
from dowise.graph.transforms import Rank, factor_order
from dowise.problem.domains import known_variable, names_of

Order = tuple[str, ...]


def order_from_user(
    order: object, graph: CausalGraph, context: Collection[str], hidden: Collection[str]
) -> Order | None:
    """Validate a stated order of all recorded variables; None stays None."""
    if order is None:
        return None
    names = names_of("order", order)
    for name in names:
        known_variable(graph, name, "variable in order", hidden)
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DowiseError(f"order has {twice} twice: keep one", code="duplicate-name")
    missing = [name for name in graph if name not in names]
    if missing:
        raise DowiseError(
            f"order lacks {', '.join(missing)}: list every recorded variable, or leave order out",
            code="missing-value",
        )
    for before, after in pairwise(names):
        if after in context and before not in context:
            raise DowiseError(
                f"order puts {before} before {after}, but {after} is context, which is known "
                "before anything else: list the context first",
                code="contradictory-order",
            )
    positions = {name: i for i, name in enumerate(names)}
    for edge in graph.edges:
        if not edge.is_bidirected and positions[edge.left] > positions[edge.right]:
            raise DowiseError(
                f"order puts {edge.right} before {edge.left}, but the graph has {edge}: "
                "causes come first",
                code="contradictory-order",
            )
    return tuple(names)


def soft_order(
    graph: CausalGraph, reward: str, context: Collection[str], settable: Collection[str]
) -> Order:
    """Return the order along which absent arrows are soft."""
    everything, parents = graph.mask(graph.variables), graph.adjacency.parents
    effects = graph.mask(graph.descendants(reward))
    early = closure(graph.mask(settable) & ~effects, parents)
    pools = graph.mask(context), early, everything & ~effects, graph.mask(reward), everything
    ranks = ranks_of(graph, reward, settable)
    return _names(graph, factor_order(graph.adjacency, pools, ranks, by_scope=False))


def order_by_names(graph: CausalGraph, reward: str, context: Collection[str]) -> Order:
    """Return the order of `edge_rules = 1`: the smallest scope first, then the first name."""
    everything = graph.mask(graph.variables)
    effects = graph.mask(graph.descendants(reward))
    pools = graph.mask(context), everything & ~effects, graph.mask(reward), everything
    return _names(graph, factor_order(graph.adjacency, pools))


def _names(graph: CausalGraph, positions: Iterable[int]) -> Order:
    return tuple(graph.variables[v] for v in positions)


def ranks_of(graph: CausalGraph, reward: str, settable: Collection[str]) -> list[Rank]:
    """Return the keys of each variable that decide which of several comes first."""
    lengths: dict[str, int] = {}
    for name in reversed(graph.topological_order()):
        of_children = [lengths[child] for child in graph.children(name)]
        lengths[name] = 0 if name == reward else 1 + max(of_children, default=-len(graph) - 1)
    return [
        (
            name not in settable,
            len(graph.parents(name)),
            len(graph.ancestors(name)),
            -len(graph.descendants(name)),
            -max(lengths[name], -1),
        )
        for name in graph.variables
    ]
