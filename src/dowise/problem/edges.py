"""What is taken for granted of a problem's edges: which are left once hidden variables are out of
sight, and how likely the doubtful ones are.

>>> graph = CausalGraph.parse("U -> X; U -> Y; Z ?-> X -> Y; Z <-> Y")
>>> seen = seen_edges(graph, ("U",), {"Y <-> Z": 0.7})
>>> print(seen.graph, seen.priors)
X -> Y; Z ?-> X; X <-> Y!; Y <-> Z {'Y <-> Z': 0.7, 'Z -> X': 0.5}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from numbers import Real
from types import MappingProxyType
from typing import NamedTuple

from dowise.errors import DowiseError
from dowise.graph import CausalGraph
from dowise.graph.edges import EdgeName, known_edge, prior_of

__all__ = ["EdgePrior", "SeenEdges", "checked_prior", "seen_edges"]

EdgePrior = float | Mapping[str, float] | None


class SeenEdges(NamedTuple):
    """The graph of what can be seen, and the priors of its edges that are not certain, sorted."""

    graph: CausalGraph
    priors: dict[str, float]


def checked_prior(
    edge_prior: EdgePrior, drawn: CausalGraph, hidden: Collection[str] = ()
) -> EdgePrior:
    """A number for every "<->" without a mark, or numbers by the texts of edges; None for none."""
    if edge_prior is None:
        return None
    if not isinstance(edge_prior, Mapping):
        return _probability("edge_prior", edge_prior)
    created = _created(drawn, hidden)
    priors: dict[str, float] = {}
    for given, number in edge_prior.items():
        edge = known_edge(given, {*drawn.edge_texts, *created})
        prior = _probability(f"edge_prior of {edge}", number)
        if prior < 1 and edge in created:
            raise DowiseError(
                f"{edge} can't have the edge_prior {prior:g}: hidden variables make it certain; "
                "leave it out of edge_prior"
            )
        if prior < 1 and drawn.marks.get(edge) == "!":
            raise DowiseError(
                f"{edge} is marked as certain ('!'), but its edge_prior is {prior:g}: "
                "drop one of the two"
            )
        if priors.setdefault(edge, prior) != prior:
            raise DowiseError(f"edge_prior has two numbers for {edge}: keep one")
    return MappingProxyType(dict(sorted(priors.items())))


def seen_edges(drawn: CausalGraph, hidden: Collection[str], edge_prior: EdgePrior) -> SeenEdges:
    """Project out what is hidden; bidirected edges that come of it are certain."""
    priors = {str(edge): _prior(drawn, edge, edge_prior) for edge in drawn.edges}
    if not hidden:
        return SeenEdges(drawn, _below_one(priors))
    for edge in drawn.edges:
        _refuse_doubt_at_hidden(edge, priors[str(edge)], hidden)
    left, created = drawn.project(hidden), _created(drawn, hidden)
    graph = CausalGraph(
        left.directed_edges,
        left.bidirected_edges,
        left.variables,
        doubtful=[e for e, mark in left.marks.items() if mark == "?" and e not in created],
        certain=[
            edge for edge in left.edge_texts if edge in created or left.marks.get(edge) == "!"
        ],
    )
    kept = {e: p for e, p in priors.items() if e in graph.edge_texts and e not in created}
    return SeenEdges(graph, _below_one(kept))


def _created(drawn: CausalGraph, hidden: Collection[str]) -> frozenset[str]:
    """The edges that stand for paths through hidden variables."""
    others = [str(edge) for edge in drawn.edges if not {edge.one, edge.other} & {*hidden}]
    return frozenset(drawn.without(others).project(hidden).edge_texts)


def _prior(drawn: CausalGraph, edge: EdgeName, given: EdgePrior) -> float:
    mark = drawn.marks.get(str(edge), "")
    prior = prior_of(str(edge), mark)
    if isinstance(given, Mapping):
        return given.get(str(edge), prior)
    return given if given is not None and edge.is_bidirected and not mark else prior


def _below_one(priors: Mapping[str, float]) -> dict[str, float]:
    return {edge: prior for edge, prior in sorted(priors.items()) if prior < 1}


def _probability(name: str, number: object) -> float:
    if isinstance(number, Real) and not isinstance(number, bool):
        if 0 < float(number) <= 1:
            return float(number)
        if number == 0:
            raise DowiseError(f"{name}=0: an edge that can't be there is left out of the graph")
    raise DowiseError(
        f"{name}={number!r} must be a probability above 0 and at most 1 (then it is certain)"
    )


def _refuse_doubt_at_hidden(edge: EdgeName, prior: float, hidden: Collection[str]) -> None:
    at = [name for name in (edge.one, edge.other) if name in hidden]
    if prior < 1 and at:
        remedy = f"'{edge}!'" if edge.is_bidirected else f"'{edge}'"
        raise DowiseError(
            f"{edge} is doubtful (prior {prior:g}), but {at[0]} is hidden, and no data can tell "
            f"such an edge: make it certain ({remedy}, or edge_prior 1), or leave {at[0]} out of "
            "the graph and mark what it may tie, as in 'A <?> B'"
        )
