"""Edges of a problem: hidden variables projected out, priors of doubtful edges, and soft edges.

>>> graph = CausalGraph.parse("U -> X; U -> Y; Z ?-> X -> Y; Z <-> Y")
>>> observed = observed_edges(graph, ("U",), {"Y <-> Z": 0.7})
>>> print(observed.graph, observed.priors)
X -> Y; Z ?-> X; X <-> Y!; Y <-> Z {'Y <-> Z': 0.7, 'Z -> X': 0.5}

A graph that lacks an existing edge can mislead a policy forever. So with `soft` each absent
directed edge along the order of the factors gets a small prior, and so does each absent hidden
common cause whose earlier end some arm may set: other hidden causes can't make observing differ
from setting.

>>> soft_edges(CausalGraph.parse("Z -> X -> Y"), "Y", (), settable={"X", "Z"})
('X <-> Y', 'X <-> Z', 'Y <-> Z', 'Z -> Y')
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import combinations
from numbers import Real
from types import MappingProxyType
from typing import NamedTuple

from dowise.errors import DowiseError
from dowise.graph import CausalGraph
from dowise.graph.edges import EdgeName, Mark, known_edge, prior_of
from dowise.graph.transforms import factor_order

EdgePrior = float | Mapping[str, float] | None


class ObservedEdges(NamedTuple):
    """Graph of the recorded variables, and the priors of its uncertain edges, sorted."""

    graph: CausalGraph
    priors: dict[str, float]


def edge_prior_from_user(
    edge_prior: EdgePrior, drawn: CausalGraph, hidden: Collection[str] = ()
) -> EdgePrior:
    """Return a prior for every unmarked "<->", or priors by edge text, or None."""
    if edge_prior is None:
        return None
    if not isinstance(edge_prior, Mapping):
        return _probability("edge_prior", edge_prior)
    created = _created(drawn, hidden)
    priors: dict[str, float] = {}
    for text, number in edge_prior.items():
        edge = known_edge(text, {*drawn.edge_texts, *created})
        prior = _probability(f"edge_prior of {edge}", number)
        if prior < 1 and edge in created:
            raise DowiseError(
                f"{edge} can't have the edge_prior {prior:g}: hidden variables make it certain; "
                "leave it out of edge_prior",
                code="contradictory-edge",
            )
        if prior < 1 and drawn.marks.get(edge) == "!":
            raise DowiseError(
                f"{edge} is marked as certain ('!'), but its edge_prior is {prior:g}: "
                "drop one of the two",
                code="contradictory-edge",
            )
        if priors.setdefault(edge, prior) != prior:
            raise DowiseError(
                f"edge_prior has two numbers for {edge}: keep one", code="duplicate-name"
            )
    return MappingProxyType(dict(sorted(priors.items())))


def observed_edges(
    drawn: CausalGraph, hidden: Collection[str], edge_prior: EdgePrior
) -> ObservedEdges:
    """Project out hidden variables; bidirected edges that arise from them are certain."""
    priors = {str(edge): _prior(drawn, edge, edge_prior) for edge in drawn.edges}
    if not hidden:
        return ObservedEdges(drawn, _below_one(priors))
    for edge in drawn.edges:
        _refuse_doubt_at_hidden(edge, priors[str(edge)], hidden)
    projected, created = drawn.project(hidden), _created(drawn, hidden)
    certain: dict[str, Mark] = dict.fromkeys(created, "!")
    marks = {
        text: mark
        for text, mark in sorted({**projected.marks, **certain}.items())
        if mark == "?" or EdgeName.parse(text).is_bidirected
    }
    graph = CausalGraph.from_adjacency(projected.variables, projected.adjacency, marks)
    observed = {e: p for e, p in priors.items() if e in graph.edge_texts and e not in created}
    return ObservedEdges(graph, _below_one(observed))


def _created(drawn: CausalGraph, hidden: Collection[str]) -> frozenset[str]:
    """Return the edges that represent paths through hidden variables."""
    observed = [str(edge) for edge in drawn.edges if not {edge.left, edge.right} & {*hidden}]
    return frozenset(drawn.without(observed).project(hidden).edge_texts)


def _prior(drawn: CausalGraph, edge: EdgeName, priors: EdgePrior) -> float:
    mark = drawn.marks.get(str(edge), "")
    prior = prior_of(str(edge), mark)
    if isinstance(priors, Mapping):
        return priors.get(str(edge), prior)
    return priors if priors is not None and edge.is_bidirected and not mark else prior


def _below_one(priors: Mapping[str, float]) -> dict[str, float]:
    return {edge: prior for edge, prior in sorted(priors.items()) if prior < 1}


def _probability(name: str, number: object) -> float:
    if isinstance(number, Real) and not isinstance(number, bool):
        if 0 < float(number) <= 1:
            return float(number)
        if number == 0:
            raise DowiseError(
                f"{name}=0: leave an edge that can't exist out of the graph",
                code="invalid-number",
            )
    raise DowiseError(
        f"{name}={number!r} must be a probability above 0 and at most 1 (then it is certain)",
        code="invalid-number",
    )


def _refuse_doubt_at_hidden(edge: EdgeName, prior: float, hidden: Collection[str]) -> None:
    hidden_end = next((name for name in (edge.left, edge.right) if name in hidden), None)
    if prior < 1 and hidden_end is not None:
        remedy = f"'{edge}!'" if edge.is_bidirected else f"'{edge}'"
        raise DowiseError(
            f"{edge} is doubtful (prior {prior:g}), but {hidden_end} is hidden, and data can't "
            f"decide such an edge: make it certain ({remedy}, or edge_prior 1), or leave "
            f"{hidden_end} out of the graph and mark the variables that it may confound, as in "
            "'A <?> B'",
            code="hidden-variable",
        )


MAX_DOUBTFUL_ARROWS = 8
"""Largest number of doubtful edges into one variable: they make 256 sets of causes."""
MAX_HIDDEN_CAUSES = 21
"""Largest number of doubtful hidden causes: with more, too small a share of their sets is kept."""


def soft_edges(
    graph: CausalGraph, reward: str, context: Collection[str], settable: Collection[str]
) -> tuple[str, ...]:
    """Return the texts of the edges that may be missing from the graph, sorted.

    No edge goes into the context, which is always observed, or into effects of the
    reward. `settable` are the variables that some arm sets.
    """
    effects = graph.descendants(reward) - {reward}
    candidates: list[str] = []
    for u, v in combinations(_order(graph, reward, context), 2):
        if v in context or v in effects:
            continue
        candidates.append(str(EdgeName.from_ends(u, "->", v)))
        if u not in context and u in settable:
            candidates.append(str(EdgeName.from_ends(u, "<->", v)))
    return tuple(sorted({*candidates} - {*graph.edge_texts}))


def with_soft_edges(
    graph: CausalGraph, priors: Mapping[str, float], soft: float, edges: Iterable[str]
) -> tuple[CausalGraph, dict[str, float]]:
    """Return the graph with all these edges, and the priors of its uncertain edges, sorted."""
    edges = tuple(edges)
    priors = {**priors, **dict.fromkeys(edges, soft)}
    _refuse_wide_families(priors)
    _refuse_many_causes(priors)
    return graph.with_edges(edges), dict(sorted(priors.items()))


def _refuse_wide_families(doubtful: Iterable[str]) -> None:
    """Raise `DowiseError` if a variable has too many doubtful causes, naming the one with most."""
    arrows = Counter(edge.right for edge in map(EdgeName.parse, doubtful) if not edge.is_bidirected)
    for name, count in sorted(arrows.items(), key=lambda family: (-family[1], family[0]))[:1]:
        if count > MAX_DOUBTFUL_ARROWS:
            raise DowiseError(
                f"soft: {name} would have {count} doubtful arrows, which makes {2**count:,} sets "
                f"of causes, and {MAX_DOUBTFUL_ARROWS} are the limit: leave variables "
                "out of the graph, or drop soft and draw single doubtful arrows, "
                f"such as 'A ?-> {name}'",
                code="too-large",
            )


def _refuse_many_causes(doubtful: Iterable[str]) -> None:
    """Raise `DowiseError` for too many doubtful hidden causes, naming the variable with most."""
    causes = [edge for edge in map(EdgeName.parse, doubtful) if edge.is_bidirected]
    if len(causes) <= MAX_HIDDEN_CAUSES:
        return
    ends = Counter(end for edge in causes for end in (edge.left, edge.right))
    name, count = min(ends.items(), key=lambda end: (-end[1], end[0]))
    raise DowiseError(
        f"soft: there would be {len(causes)} doubtful hidden causes, {count} of them at {name}, "
        f"and {MAX_HIDDEN_CAUSES} are the limit: list in manipulable the few that you can set, "
        "leave variables out of the graph, or drop soft and draw single edges, such as "
        f"'A ?-> {name}' or 'A <?> {name}'",
        code="too-large",
    )


def _order(graph: CausalGraph, reward: str, context: Collection[str]) -> list[str]:
    """Return the factor order: context, other non-descendants of the reward, reward, the rest."""
    everything = graph.mask(graph.variables)
    descendants = graph.mask(graph.descendants(reward))
    pools = graph.mask(context), everything & ~descendants, graph.mask(reward), everything
    return [graph.variables[v] for v in factor_order(graph.adjacency, pools)]
