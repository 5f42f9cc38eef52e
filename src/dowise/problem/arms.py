"""The arms of a problem, in their canonical order: by size of the set, the names, the values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, product
from math import log10, prod

from dowise.errors import DowiseError
from dowise.graph import CausalGraph
from dowise.graph.pomis import set_order
from dowise.problem.intervention import Intervention

__all__ = ["all_sets", "arms_of", "canonical_order", "possibly_optimal_sets"]

Domains = Mapping[str, tuple[str, ...]]

_REMEDY = (
    "declare the variables that you can't or won't set as non-manipulable, "
    "give arms of your own, or raise max_arms"
)


def possibly_optimal_sets(
    graphs: Iterable[CausalGraph], reward: str, domains: Domains, max_arms: int
) -> tuple[frozenset[str], ...]:
    """The POMISs of the projected graphs; an error once they make more than `max_arms` arms."""
    sets: set[frozenset[str]] = set()
    count = 0
    for names in chain.from_iterable(graph.iter_pomis(reward) for graph in graphs):
        if names in sets:
            continue
        sets.add(names)
        count += prod(len(domains[name]) for name in names)
        if count > max_arms:
            raise DowiseError(
                f"too many arms: {len(sets):,} intervention set{'s'[: len(sets) > 1]} that can be "
                "optimal make "
                f"{_many(count)} arms so far, and max_arms is {max_arms:,}; {_REMEDY}"
            )
    return tuple(sorted(sets, key=set_order))


def all_sets(
    manipulable: Iterable[str], domains: Domains, max_arms: int
) -> tuple[frozenset[str], ...]:
    """Every subset of the manipulable variables; an error where they make too many arms."""
    names = sorted(manipulable)
    count = prod(1 + len(domains[name]) for name in names)
    if count > max_arms:
        raise DowiseError(
            f"too many arms: all interventions on {len(names)} manipulable variables make "
            f"{_many(count)} arms, and max_arms is {max_arms:,}; {_REMEDY}"
        )
    return tuple(
        frozenset(chosen) for size in range(len(names) + 1) for chosen in combinations(names, size)
    )


def arms_of(sets: Iterable[frozenset[str]], domains: Domains) -> Iterator[Intervention]:
    """Every assignment of values to every set; within a set the last name varies fastest."""
    for variables in sets:
        names = sorted(variables)
        for labels in product(*(domains[name] for name in names)):
            yield Intervention(dict(zip(names, labels, strict=True)))


def canonical_order(
    given: Sequence[Intervention], domains: Domains, max_arms: int
) -> tuple[tuple[frozenset[str], ...], tuple[Intervention, ...]]:
    """Arms of one's own, put in order, and their distinct sets; an arm given twice is an error."""
    if len(given) > max_arms:
        raise DowiseError(f"{len(given):,} arms were given, and max_arms is {max_arms:,}")
    if not given:
        raise DowiseError("the list of arms is empty: give at least one, such as 'do()'")
    for arm, times in Counter(given).items():
        if times > 1:
            raise DowiseError(f"the arm {arm} is given twice")
    sets = sorted({arm.variables for arm in given}, key=set_order)

    def order(arm: Intervention) -> tuple[int, list[str], list[int]]:
        places = [domains[name].index(label) for name, label in arm.items()]
        return *set_order(arm.variables), places

    return tuple(sets), tuple(sorted(given, key=order))


def _many(count: int) -> str:
    """A count that may have thousands of digits, in a few characters."""
    return f"{count:,}" if count < 10**15 else f"about 10^{int(count.bit_length() * log10(2))}"
