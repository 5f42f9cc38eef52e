"""Arms of a problem: enumeration, forbidden assignments, and why other interventions are left out.

Arms are in canonical order: by size of the set, then names, then values.

>>> excluded = completions([Intervention({"X": 1, "Z": 0})])
>>> print(*permitted_arms(["X", "Z"], {"X": ("0", "1"), "Z": ("0", "1")}, excluded), sep="; ")
do(X=0, Z=0); do(X=0, Z=1); do(X=1, Z=1)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import chain, combinations, islice, product
from math import log10, prod
from typing import TYPE_CHECKING, Any

from dowise.errors import DowiseError
from dowise.graph import CausalGraph
from dowise.graph.pomis import is_minimal, set_order
from dowise.problem.intervention import Intervention

if TYPE_CHECKING:
    from dowise.problem.problem import Problem

Completions = Mapping[tuple[str, str], Sequence[Mapping[str, str]]]

_MAX_NAMED = 5  # in an error


def forbidden_from_user(
    given: Any, check: Callable[[Any], Intervention]
) -> tuple[Intervention, ...]:
    """Return the distinct assignments, sorted by size and text; `check` reads one.

    A text or a mapping alone is one assignment.
    """
    given = (given,) if isinstance(given, str | Mapping) else () if given is None else given
    if not isinstance(given, Iterable):
        raise DowiseError(
            f"forbidden={given!r} must be a list of assignments, such as ['do(X=1)']",
            code="invalid-type",
        )
    found = {_checked(assignment, check) for assignment in given}
    return tuple(sorted(found, key=lambda assignment: (len(assignment), str(assignment))))


def _checked(value: Any, check: Callable[[Any], Intervention]) -> Intervention:
    try:
        assignment = check(value)
    except DowiseError as error:
        raise DowiseError(
            f"forbidden: {error}; name what arms could set", code=error.code
        ) from None
    if not assignment:
        raise DowiseError(
            "forbidden: every arm contains do(), so none would be left; name what must not be set, "
            "such as do(X=1), or remove do() from the list of arms",
            code="no-arms",
        )
    return assignment


def forbidden_in(arm: Mapping[str, str], forbidden: Iterable[Intervention]) -> Intervention | None:
    """Return the first forbidden assignment that an intervention contains, or None."""
    return next((never for never in forbidden if never.items() <= arm.items()), None)


def completions(forbidden: Iterable[Intervention]) -> Completions:
    """For each value of each variable what it would complete to a forbidden assignment."""
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    for never in forbidden:
        for name, label in never.items():
            rest = {other: value for other, value in never.items() if other != name}
            found.setdefault((name, label), []).append(rest)
    return found


def permitted_arms(
    names: Iterable[str], domains: Mapping[str, tuple[str, ...]], completing: Completions
) -> Iterator[Intervention]:
    """Yield every assignment to these variables that contains no forbidden one.

    Variables with forbidden values are dealt with first: so no time is spent on the others where
    there is nothing to be found.
    """
    concerned = {name for name, _ in completing}
    ordered = sorted(names, key=lambda name: (name not in concerned, name))
    waiting: list[dict[str, str]] = [{}]
    while waiting:
        arm = waiting.pop()
        if len(arm) == len(ordered):
            yield Intervention(arm)
            continue
        name = ordered[len(arm)]
        waiting += [
            {**arm, name: label}
            for label in reversed(domains[name])
            if not any(rest.items() <= arm.items() for rest in completing.get((name, label), ()))
        ]


def refuse_forbidden(own: Iterable[Intervention], forbidden: Sequence[Intervention]) -> None:
    """Arms of one's own must be permitted."""
    found = {arm: never for arm in own if (never := forbidden_in(arm, forbidden)) is not None}
    if found:
        named = [
            str(arm) if arm == never else f"{arm} (it contains {never})"
            for arm, never in list(found.items())[:_MAX_NAMED]
        ]
        named += [f"{len(found) - _MAX_NAMED} more"] * (len(found) > _MAX_NAMED)
        raise DowiseError(
            f"forbidden, but among the arms: {', '.join(named)}; remove each from one of the two",
            code="forbidden-arm",
        )


Domains = Mapping[str, tuple[str, ...]]
SetsAndArms = tuple[tuple[frozenset[str], ...], tuple[Intervention, ...]]

_KINDS = ("pomis", "minimal", "all")  # what can be optimal, what is minimal, all there is

_REMEDY = (
    "declare the variables that you can't or won't set as non-manipulable, "
    "list the arms, or raise max_arms"
)


def arms_from_user(
    arms: Any,
    forbidden: Sequence[Intervention],
    costs: Sized,
    check: Callable[[Any], Intervention],
) -> tuple[str, list[Intervention] | None]:
    """Return the kind of arms and the listed arms, each read by `check`."""
    if arms is None:
        return "minimal" if forbidden or costs else "pomis", None
    if isinstance(arms, str) and not arms.lstrip().startswith("do("):
        if arms not in _KINDS:
            raise DowiseError(
                f"arms={arms!r} must be 'pomis', 'all', 'minimal', or a list of arms such as "
                "['do(X=1)']",
                code="unknown-value",
            )
        return arms, None
    if isinstance(arms, Mapping) or not isinstance(arms, Iterable):
        raise DowiseError(
            f"arms={arms!r} must be a list of arms, 'pomis', 'all' or 'minimal'",
            code="invalid-type",
        )
    own = [check(arm) for arm in ([arms] if isinstance(arms, str) else arms)]
    refuse_forbidden(own, forbidden)
    return "custom", own


def enumerate_arms(
    kind: str,
    graphs: Sequence[CausalGraph],
    reward: str,
    domains: Domains,
    forbidden: Sequence[Intervention],
    max_arms: int,
) -> SetsAndArms:
    """Return the permitted arms of a kind and their sets, both in canonical order.

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
    """Return the permitted arms on all sets that fit; subsets of sets that fit must fit too.

    A set is widened one variable at a time. Where it does not fit, or has no permitted arm, neither
    does any wider one: so no more sets are looked at than are found, but for one step.
    """
    grown: list[Intervention] = []
    completing = completions(forbidden)
    waiting: list[tuple[tuple[str, ...], list[str]]] = [((), sorted(names))]
    while waiting:
        chosen, others = waiting.pop()
        arms = permitted_arms(chosen, domains, completing)
        more = list(islice(arms, max_arms + 1 - len(grown)))
        grown += more
        if len(grown) > max_arms:
            raise DowiseError(
                f"too many arms: there are more than max_arms, which is {max_arms:,}; {_REMEDY}",
                code="too-large",
            )
        if more:
            others = [name for name in others if fits((*chosen, name))]
            waiting += [((*chosen, name), others[i + 1 :]) for i, name in enumerate(others)]
    return _in_order(grown, domains)


def _possibly_optimal_sets(
    graphs: Iterable[CausalGraph],
    reward: str,
    domains: Domains,
    max_arms: int,
    forbidden: Sequence[Intervention],
) -> tuple[frozenset[str], ...]:
    """Return the POMISs of the projected graphs; raise if they make more than `max_arms` arms."""
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
                f"{_many(count)} arms so far, and max_arms is {max_arms:,}; {_REMEDY}",
                code="too-large",
            )
    return tuple(sorted(sets, key=set_order))


def _all_sets(
    manipulable: Iterable[str], domains: Domains, max_arms: int
) -> tuple[frozenset[str], ...]:
    """Return every subset of the manipulable variables; raise if they make too many arms."""
    names = sorted(manipulable)
    count = prod(1 + len(domains[name]) for name in names)
    if count > max_arms:
        raise DowiseError(
            f"too many arms: all interventions on {len(names)} manipulable variables make "
            f"{_many(count)} arms, and max_arms is {max_arms:,}; {_REMEDY}",
            code="too-large",
        )
    return tuple(
        frozenset(chosen) for size in range(len(names) + 1) for chosen in combinations(names, size)
    )


def _arms_of(sets: Iterable[frozenset[str]], domains: Domains) -> Iterator[Intervention]:
    """Return every assignment of values to every set; the last name of a set varies fastest."""
    for variables in sets:
        names = sorted(variables)
        for labels in product(*(domains[name] for name in names)):
            yield Intervention(dict(zip(names, labels, strict=True)))


def order_arms(given: Sequence[Intervention], domains: Domains, max_arms: int) -> SetsAndArms:
    """Arms of one's own, put in order, and their distinct sets; an arm given twice is an error."""
    if len(given) > max_arms:
        raise DowiseError(
            f"the list has {len(given):,} arms, and max_arms is {max_arms:,}", code="too-large"
        )
    if not given:
        raise DowiseError(
            "the list of arms is empty: add at least one, such as 'do()'", code="no-arms"
        )
    for arm, times in Counter(given).items():
        if times > 1:
            raise DowiseError(f"the arm {arm} is listed twice", code="duplicate-name")
    return _in_order(given, domains)


def _in_order(arms: Sequence[Intervention], domains: Domains) -> SetsAndArms:
    sets = sorted({arm.variables for arm in arms}, key=set_order)

    def order(arm: Intervention) -> tuple[int, list[str], list[int]]:
        places = [domains[name].index(label) for name, label in arm.items()]
        return *set_order(arm.variables), places

    return tuple(sets), tuple(sorted(arms, key=order))


def _many(count: int) -> str:
    """Format a count that may have thousands of digits."""
    return f"{count:,}" if count < 10**15 else f"about 10^{int(count.bit_length() * log10(2))}"


def why_others_are_out(problem: Problem) -> str:
    """Say what the arms leave out, and show it on one example.

    For any set S that is left out, the border of Y in the graph with S cut is a POMIS whose best
    arm is at least as good as the best arm on S (Lee & Bareinboim 2018): that one is the example.

    >>> from dowise.problem import load_problem
    >>> print(why_others_are_out(load_problem("healthcare")))
    The other 3 of 4 sets of variables are out: in every world with this graph some arm above does \
at least as well. For example, doing nothing never beats the best way of setting Diet and Treatment.
    """
    projected = problem.projection(problem.possible)
    if problem.arms_kind in ("custom", "all"):
        return _as_told(problem)
    if problem.arms_kind == "minimal":
        return _beyond_the_minimal(problem, projected)
    if problem.forbidden or problem.payoff.has_costs:
        return _if_all_were_free(problem)
    effective = projected.ancestors(problem.reward) - {problem.reward}
    if not effective:
        return (
            f"No variable that you can set has an effect on {problem.reward}, "
            "so do() is the only arm."
        )
    total = 2 ** len(problem.manipulable)
    out = total - len(problem.intervention_sets)
    if out == 0:
        return "No set of variables is left out: each of them can be optimal."
    lost = next(
        frozenset(chosen)
        for size in range(len(problem.manipulable) + 1)
        for chosen in combinations(problem.manipulable, size)
        if frozenset(chosen) not in problem.intervention_sets
    )
    better = projected.cut(lost).interventional_border(problem.reward)
    soft = " and any of the soft edges" if problem.soft is not None else ""
    context = ", in every context," if problem.context else ""
    where = f"in every world with this graph{soft}{context}"
    which = "The other set" if out == 1 else f"The other {out:,} of {total:,} sets of variables"
    return (
        f"{which} {'is' if out == 1 else 'are'} out: {where} some arm above does at least as well. "
        f"For example, {_doing(lost)} never beats "
        f"{'the best way of ' if better else ''}{_doing(better)}."
    )


def _as_told(problem: Problem) -> str:
    is_minimal_right = problem.forbidden or problem.payoff.has_costs
    which = "minimal" if is_minimal_right else "pomis"
    if problem.arms_kind == "custom":
        return (
            "These arms were chosen by hand; there may be better ones "
            f'(arms = "{which}" finds them).'
        )
    but = ", but for the forbidden ones" if problem.forbidden else ""
    keeps = "are as good" if is_minimal_right else "can be optimal"
    return f'These are all interventions{but}; arms = "{which}" would keep those that {keeps}.'


def _if_all_were_free(problem: Problem) -> str:
    """Explain that POMISs do not suffice if some arms are forbidden."""
    if problem.forbidden:
        return (
            "These are the permitted ones of the arms that could be optimal if nothing were "
            "forbidden. As it is there may be better ones: leave arms out, and they are found."
        )
    return (
        "These are the arms that could be optimal if nothing had a cost. As it is there may be "
        "better ones: leave arms out, and they are found."
    )


def _beyond_the_minimal(problem: Problem, projected: CausalGraph) -> str:
    """Explain with an example of a set that is not minimal that setting more changes nothing."""
    said = "Whatever contains something forbidden is out. " if problem.forbidden else ""
    lost = frozenset(problem.manipulable)
    if is_minimal(projected, problem.reward, lost):
        return f"{said}No set of variables is left out: each variable matters in each of them."
    for name in problem.manipulable:
        if not is_minimal(projected, problem.reward, lost - {name}):
            lost -= {name}
    matters = lost & projected.cut(lost).ancestors(problem.reward)
    return (
        f"{said}In every other set of variables one makes no difference beside the others, so that "
        f"an arm above does the same. For example, {_doing(lost)} does no more than "
        f"{_doing(matters)}{' to the same' if matters else ''}."
    )


def _doing(names: frozenset[str]) -> str:
    if not names:
        return "doing nothing"
    ordered = sorted(names)
    listed = ", ".join(ordered[:-1]) + " and " + ordered[-1] if ordered[1:] else ordered[0]
    return f"setting {listed}"
