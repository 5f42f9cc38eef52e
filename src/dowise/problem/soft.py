"""The soft graph: what is drawn, and every edge that was not drawn but might be there after all.

A graph that lacks an arrow can mislead a policy for good. So each absent arrow along the one order
of the factors gets a small prior, and so does each absent hidden common cause whose earlier end
some arm may set: only there it could make seeing differ from doing.

>>> soft_edges(CausalGraph.parse("Z -> X -> Y"), "Y", (), settable={"X", "Z"})
('X <-> Y', 'X <-> Z', 'Y <-> Z', 'Z -> Y')
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import combinations

from dowise.errors import DowiseError
from dowise.graph import CausalGraph
from dowise.graph.edges import EdgeName
from dowise.graph.ordering import factor_order

__all__ = ["MAX_DOUBTFUL_ARROWS", "soft_edges", "with_soft_edges"]

MAX_DOUBTFUL_ARROWS = 8
"""Into one variable: that makes 256 sets of causes to tell apart."""
MAX_HIDDEN_CAUSES = 21
"""In all: beyond that too few of their sets could be looked at."""


def soft_edges(
    graph: CausalGraph, reward: str, context: Collection[str], settable: Collection[str]
) -> tuple[str, ...]:
    """The texts of the edges that the graph lacks and that might be there, sorted.

    No arrow goes into the context, which is seen whatever its causes, nor anything into what only
    follows from the reward. `settable` is what some arm sets.
    """
    there = set(graph.edge_texts)
    after = graph.descendants(reward) - {reward}
    found: list[str] = []
    for u, v in combinations(_order(graph, reward, context), 2):
        if v in context or v in after:
            continue
        found.append(str(EdgeName.of(u, "->", v)))
        if u not in context and u in settable:
            found.append(str(EdgeName.of(u, "<->", v)))
    return tuple(sorted(edge for edge in found if edge not in there))


def with_soft_edges(
    graph: CausalGraph, priors: Mapping[str, float], soft: float, edges: Iterable[str]
) -> tuple[CausalGraph, dict[str, float]]:
    """The graph with all these edges, and the priors of what is not certain in it, sorted."""
    edges = tuple(edges)
    priors = {**priors, **dict.fromkeys(edges, soft)}
    _refuse_wide_families(priors)
    _refuse_many_causes(priors)
    return graph.with_edges(edges), dict(sorted(priors.items()))


def _refuse_wide_families(doubtful: Iterable[str]) -> None:
    """Refuse where a variable has too many doubtful arrows, naming the one with most of them."""
    arrows = Counter(edge.other for edge in map(EdgeName.parse, doubtful) if not edge.is_bidirected)
    for name, count in sorted(arrows.items(), key=lambda family: (-family[1], family[0]))[:1]:
        if count > MAX_DOUBTFUL_ARROWS:
            raise DowiseError(
                f"soft: {name} would have {count} doubtful arrows, which is {2**count:,} sets of "
                f"causes to tell apart, and {MAX_DOUBTFUL_ARROWS} are the limit: leave variables "
                "out of the graph, or drop soft and draw single doubtful arrows, "
                f"such as 'A ?-> {name}'"
            )


def _refuse_many_causes(doubtful: Iterable[str]) -> None:
    """Refuse where there are too many doubtful hidden causes, naming who has most of them."""
    causes = [edge for edge in map(EdgeName.parse, doubtful) if edge.is_bidirected]
    if len(causes) <= MAX_HIDDEN_CAUSES:
        return
    ends = Counter(end for edge in causes for end in (edge.one, edge.other))
    name, count = min(ends.items(), key=lambda end: (-end[1], end[0]))
    raise DowiseError(
        f"soft: there would be {len(causes)} doubtful hidden causes, {count} of them at {name}, "
        f"and {MAX_HIDDEN_CAUSES} are the limit: say with manipulable which few you can set, "
        "leave variables out of the graph, or drop soft and draw single edges, such as "
        f"'A ?-> {name}' or 'A <?> {name}'"
    )


def _order(graph: CausalGraph, reward: str, context: Collection[str]) -> list[str]:
    """The order of the factors: the context, what does not follow from the reward, it, the rest."""
    everything = graph.mask(graph.variables)
    after = graph.mask(graph.descendants(reward))
    pools = graph.mask(context), everything & ~after, graph.mask(reward), everything
    return [graph.variables[v] for v in factor_order(graph.adjacency, pools)]
