"""Edges of a problem: hidden variables projected out, priors of doubtful edges, and soft edges.

>>> graph = CausalGraph.parse("U -> X; U -> Y; Z ?-> X -> Y; Z <-> Y")
>>> observed = observed_edges(graph, ("U",), {"Y <-> Z": 0.7})
>>> print(observed.graph, observed.priors)
X -> Y; Z ?-> X; X <-> Y!; Y <-> Z {'Y <-> Z': 0.7, 'Z -> X': 0.5}

A graph that lacks an existing edge can mislead a policy forever. So with `soft` each absent
directed edge along the order of the variables (`dowise.problem.order`) gets a small prior, and so
does each absent hidden common cause whose earlier end some arm may set: other hidden causes can't
make observing differ from setting. If there are too many, some are left to the evidence.

>>> graph = CausalGraph.parse("Z -> X -> Y")
>>> soft_edges(graph, ("Z", "X", "Y"), "Y", (), settable={"X", "Z"}, priors={}).taken
('X <-> Y', 'X <-> Z', 'Y <-> Z', 'Z -> Y')
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import NamedTuple

from dowise.errors import DowiseError, join_names
from dowise.graph import CausalGraph
from dowise.graph.edges import EdgeName, Mark, known_edge, prior_of

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


class SoftEdges(NamedTuple):
    """Texts of the edges that may be missing from a graph, sorted."""

    taken: tuple[str, ...]
    left: tuple[str, ...]
    """Edges that would be too many; the evidence judges them. Those that only affect variables
    which no reward needs are not listed."""


def soft_edges(
    graph: CausalGraph,
    order: Sequence[str],
    reward: str,
    context: Collection[str],
    settable: Collection[str],
    priors: Mapping[str, float],
) -> SoftEdges:
    """Return the edges along the order that the graph lacks and that could exist.

    No edge goes into the context, which is always observed, or into what comes after the reward.
    `settable` are the variables that some arm sets, and `priors` those of the doubtful edges that
    are drawn. If the limits do not allow all edges, those into the reward come first, then those
    into the variables before it; among these the ones from early variables.
    """
    present = set(graph.edge_texts)
    drawn = [EdgeName.parse(text) for text in priors]
    arrows = Counter(edge.right for edge in drawn if not edge.is_bidirected)
    causes = sum(edge.is_bidirected for edge in drawn)
    taken, left = list[str](), list[str]()
    for end in range(order.index(reward), 0, -1):
        v = order[end]
        for u in order[:end] if v not in context else ():
            arrow = str(EdgeName.from_ends(u, "->", v))
            if arrow not in present:
                fits = arrows[v] < MAX_DOUBTFUL_ARROWS
                (taken if fits else left).append(arrow)
                arrows[v] += fits
            cause = str(EdgeName.from_ends(u, "<->", v))
            if cause not in present and u not in context and u in settable:
                fits = causes < MAX_HIDDEN_CAUSES
                (taken if fits else left).append(cause)
                causes += fits
    useful = graph.with_edges(taken).ancestors([reward])
    judged = [edge for edge in left if _changed_by(EdgeName.parse(edge)) <= useful]
    return SoftEdges(tuple(sorted(taken)), tuple(sorted(judged)))


def _changed_by(edge: EdgeName) -> set[str]:
    """Return the variables that must matter to a reward for an edge to matter."""
    return {edge.left, edge.right} if edge.is_bidirected else {edge.right}


def describe_left(left: Sequence[str]) -> str:
    """Describe the edges that `soft` left to the evidence, with what to do about it."""
    return (
        f"soft: there are too many possible edges, and {len(left)} of them are not part of the "
        f"belief: {join_names(left)}. The evidence judges them. To include some of them, draw "
        "them as doubtful edges, list in manipulable only what you can set, or leave variables out"
    )
