"""The arms of a problem, in their canonical order: by size of the set, the names, the values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import chain, combinations, islice, product
from math import log10, prod
from typing import Any

from dowise.errors import DowiseError
from dowise.graph import CausalGraph
from dowise.graph.minimal import is_minimal
from dowise.graph.pomis import set_order
from dowise.problem.forbidden import completions, permitted_arms, refuse_forbidden
from dowise.problem.intervention import Intervention

__all__ = ["arms_asked_for", "canonical_order", "found_arms"]

Domains = Mapping[str, tuple[str, ...]]
SetsAndArms = tuple[tuple[frozenset[str], ...], tuple[Intervention, ...]]

_KINDS = ("pomis", "minimal", "all")  # what can be optimal, what is minimal, all there is

_REMEDY = (
    "declare the variables that you can't or won't set as non-manipulable, "
    "give arms of your own, or raise max_arms"
)


def arms_asked_for(
    arms: Any,
    forbidden: Sequence[Intervention],
    costs: Sized,
    check: Callable[[Any], Intervention],
) -> tuple[str, list[Intervention] | None]:
    """Which kind of arms the user wants, and those of one's own, read by `check`."""
    if arms is None:
        return "minimal" if forbidden or costs else "pomis", None
    if isinstance(arms, str) and not arms.lstrip().startswith("do("):
        if arms not in _KINDS:
            raise DowiseError(
                f"arms={arms!r}: say 'pomis', 'all', 'minimal', or give a list of arms such as "
                "['do(X=1)']"
            )
        return arms, None
    if isinstance(arms, Mapping) or not isinstance(arms, Iterable):
        raise DowiseError(f"arms={arms!r}: give a list of arms, 'pomis', 'all' or 'minimal'")
    own = [check(arm) for arm in ([arms] if isinstance(arms, str) else arms)]
    refuse_forbidden(own, forbidden)
    return "custom", own


def found_arms(
    kind: str,
    graphs: Sequence[CausalGraph],
    reward: str,
    domains: Domains,
    forbidden: Sequence[Intervention],
    max_arms: int,
) -> SetsAndArms:
    """The arms of a kind that are permitted, and their sets, both in canonical order.

    The projected graphs are the one that was drawn and, last, the one with all soft edges. That one
    has every minimal set of the other: more arrows leave more ways to the reward.
    """
    if kind == "pomis":
        sets = _possibly_optimal_sets(graphs, reward, domains, max_arms, forbidden)
    elif kind == "minimal":
        return _grown_arms(
            graphs[-1].ancestors(reward) - {reward},
            lambda names: is_minimal(graphs[-1], reward, names),
            domains, forbidden, max_arms,
        )  # fmt: skip
    elif forbidden:
        names = frozenset(graphs[-1].variables) - {reward}
        return _grown_arms(names, lambda _names: True, domains, forbidden, max_arms)
    else:
        sets = _all_sets(frozenset(graphs[-1].variables) - {reward}, domains, max_arms)
    if not forbidden:
        return sets, tuple(_arms_of(sets, domains))
    completing = completions(forbidden)
    found = (permitted_arms(names, domains, completing) for names in sets)
    return _in_order(list(chain.from_iterable(found)), domains)


def _grown_arms(
    names: Iterable[str],
    fits: Callable[[tuple[str, ...]], bool],
    domains: Domains,
    forbidden: Sequence[Intervention],
    max_arms: int,
) -> SetsAndArms:
    """The permitted arms on all sets that fit, where every subset of one that fits does too.

    A set is widened one variable at a time. Where it does not fit, or has no permitted arm, neither
    does any wider one: so no more sets are looked at than are found, but for one step.
    """
    found: list[Intervention] = []
    completing = completions(forbidden)
    waiting: list[tuple[tuple[str, ...], list[str]]] = [((), sorted(names))]
    while waiting:
        chosen, others = waiting.pop()
        arms = permitted_arms(chosen, domains, completing)
        more = list(islice(arms, max_arms + 1 - len(found)))
        found += more
        if len(found) > max_arms:
            raise DowiseError(
                f"too many arms: there are more than max_arms, which is {max_arms:,}; {_REMEDY}"
            )
        if more:
            others = [name for name in others if fits((*chosen, name))]
            waiting += [((*chosen, name), others[i + 1 :]) for i, name in enumerate(others)]
    return _in_order(found, domains)


def _possibly_optimal_sets(
    graphs: Iterable[CausalGraph],
    reward: str,
    domains: Domains,
    max_arms: int,
    forbidden: Sequence[Intervention],
) -> tuple[frozenset[str], ...]:
    """The POMISs of the projected graphs; an error once they make more than `max_arms` arms."""
    sets: set[frozenset[str]] = set()
    completing, count = completions(forbidden), 0
    for names in chain.from_iterable(graph.iter_pomis(reward) for graph in graphs):
        if names in sets:
            continue
        sets.add(names)
        if forbidden:
            permitted = permitted_arms(names, domains, completing)
            count += sum(1 for _ in islice(permitted, max_arms + 1))
        else:
            count += prod(len(domains[name]) for name in names)
        if count > max_arms:
            raise DowiseError(
                f"too many arms: {len(sets):,} intervention set{'s'[: len(sets) > 1]} that can be "
                "optimal make "
                f"{_many(count)} arms so far, and max_arms is {max_arms:,}; {_REMEDY}"
            )
    return tuple(sorted(sets, key=set_order))


def _all_sets(
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


def _arms_of(sets: Iterable[frozenset[str]], domains: Domains) -> Iterator[Intervention]:
    """Every assignment of values to every set; within a set the last name varies fastest."""
    for variables in sets:
        names = sorted(variables)
        for labels in product(*(domains[name] for name in names)):
            yield Intervention(dict(zip(names, labels, strict=True)))


def canonical_order(given: Sequence[Intervention], domains: Domains, max_arms: int) -> SetsAndArms:
    """Arms of one's own, put in order, and their distinct sets; an arm given twice is an error."""
    if len(given) > max_arms:
        raise DowiseError(f"{len(given):,} arms were given, and max_arms is {max_arms:,}")
    if not given:
        raise DowiseError("the list of arms is empty: give at least one, such as 'do()'")
    for arm, times in Counter(given).items():
        if times > 1:
            raise DowiseError(f"the arm {arm} is given twice")
    return _in_order(given, domains)


def _in_order(given: Sequence[Intervention], domains: Domains) -> SetsAndArms:
    sets = sorted({arm.variables for arm in given}, key=set_order)

    def order(arm: Intervention) -> tuple[int, list[str], list[int]]:
        places = [domains[name].index(label) for name, label in arm.items()]
        return *set_order(arm.variables), places

    return tuple(sets), tuple(sorted(given, key=order))


def _many(count: int) -> str:
    """A count that may have thousands of digits, in a few characters."""
    return f"{count:,}" if count < 10**15 else f"about 10^{int(count.bit_length() * log10(2))}"
