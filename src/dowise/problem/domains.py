"""The labels of every variable of a problem: as given, or those of `reward_values`, or 0 and 1.

>>> from dowise.graph import CausalGraph
>>> graph = CausalGraph.parse("X -> Y")
>>> dict(domains_of(graph, "Y", {"X": ["low", "high"]}, {"bad": 0, "good": 1}))
{'X': ('low', 'high'), 'Y': ('bad', 'good')}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dowise.errors import DowiseError
from dowise.graph import CausalGraph
from dowise.problem.roles import known_variable
from dowise.problem.values import check_domain

__all__ = ["domains_of"]

_USUAL = ("0", "1")


def domains_of(
    drawn: CausalGraph,
    reward: str,
    domains: Mapping[str, Iterable[object]] | None,
    reward_values: object,
) -> dict[str, tuple[str, ...]]:
    """The labels of each variable of the graph as drawn, those of hidden ones included."""
    if domains is not None and not isinstance(domains, Mapping):
        raise DowiseError(f"domains must map names to lists of labels, not {domains!r}")
    given = dict(domains or {})
    for name in given:
        known_variable(drawn, name, "variable in domains")
    if reward not in given and isinstance(reward_values, Mapping):
        given[reward] = _of_reward_values(reward, reward_values)
    return {name: check_domain(name, given.get(name, _USUAL)) for name in drawn}


def _of_reward_values(reward: str, reward_values: Mapping[object, object]) -> tuple[str, ...]:
    """Its labels, unless one looks like a slip among the usual 0 and 1."""
    labels = check_domain(reward, list(reward_values))
    odd = [label for label in labels if label not in _USUAL]
    if odd and len(odd) < len(labels):
        raise DowiseError(
            f"reward_values has {', '.join(map(repr, odd))} beside "
            f"{' and '.join(map(repr, [label for label in labels if label in _USUAL]))}, and "
            f"{reward} has no domain: correct the label, or give the domain of {reward}, "
            f"{reward} = {list(labels)} in domains"
        )
    return labels
