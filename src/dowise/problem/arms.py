"""Arms of a problem: enumeration, forbidden assignments, and reasons to leave out other arms.

Arms are in canonical order: by size of the set, then names, then values.

>>> forbidden = index_forbidden([Intervention({"X": 1, "Z": 0})])
>>> print(*permitted_arms(["X", "Z"], {"X": ("0", "1"), "Z": ("0", "1")}, forbidden), sep="; ")
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

Domains = Mapping[str, tuple[str, ...]]
SetsAndArms = tuple[tuple[frozenset[str], ...], tuple[Intervention, ...]]
ForbiddenIndex = Mapping[tuple[str, str], Sequence[Mapping[str, str]]]
"""For each value of each variable, the other settings of every forbidden assignment with it."""

_KINDS = ("pomis", "minimal", "all")
_REMEDY = (
    "declare the variables that you can't or won't set as non-manipulable, "
    "list the arms, or raise max_arms"
)
_MAX_NAMED = 5  # in an error


def forbidden_from_user(
    forbidden: Any, check: Callable[[Any], Intervention]
) -> tuple[Intervention, ...]:
    """Return the distinct assignments, sorted by size and text; `check` validates one.

    A text or a mapping alone is one assignment.
    """
    if forbidden is None or isinstance(forbidden, str | Mapping):
        forbidden = () if forbidden is None else (forbidden,)
    if not isinstance(forbidden, Iterable):
        raise DowiseError(
            f"forbidden={forbidden!r} must be a list of assignments, such as ['do(X=1)']",
            code="invalid-type",
        )
    assignments = {settable_arm("forbidden", value, check) for value in forbidden}
    if Intervention() in assignments:
        raise DowiseError(
            "forbidden: every arm contains do(), so none would be left; name what must not be set, "
            "such as do(X=1), or remove do() from the list of arms",
            code="no-arms",
        )
    return tuple(sorted(assignments, key=lambda assignment: (len(assignment), str(assignment))))


def settable_arm(option: str, value: Any, check: Callable[[Any], Intervention]) -> Intervention:
    """Return a validated intervention; errors start with the name of the option."""
    try:
        return check(value)
    except DowiseError as error:
        raise DowiseError(f"{option}: {error}; name what arms could set", code=error.code) from None


def find_forbidden(
    arm: Mapping[str, str], forbidden: Iterable[Intervention]
) -> Intervention | None:
    """Return the first forbidden assignment that an intervention contains, or None."""
    return next((never for never in forbidden if never.items() <= arm.items()), None)


def index_forbidden(forbidden: Iterable[Intervention]) -> ForbiddenIndex:
    """Index forbidden assignments by each of their settings."""
    index: dict[tuple[str, str], list[dict[str, str]]] = {}
    for never in forbidden:
        for name, label in never.items():
            others = {key: value for key, value in never.items() if key != name}
            index.setdefault((name, label), []).append(others)
    return index


def permitted_arms(
    names: Iterable[str], domains: Domains, forbidden: ForbiddenIndex
) -> Iterator[Intervention]:
    """Yield every assignment to these variables that contains no forbidden one.

    Variables with forbidden values are set first, so that dead ends are found early.
    """
    restricted = {name for name, _ in forbidden}
    ordered = sorted(names, key=lambda name: (name not in restricted, name))
    stack: list[dict[str, str]] = [{}]
    while stack:
        arm = stack.pop()
        if len(arm) == len(ordered):
            yield Intervention(arm)
            continue
        name = ordered[len(arm)]
        stack += [
            {**arm, name: label}
            for label in reversed(domains[name])
            if not any(x.items() <= arm.items() for x in forbidden.get((name, label), ()))
        ]


def arms_from_user(
    arms: Any,
    forbidden: Sequence[Intervention],
    costs: Sized,
    check: Callable[[Any], Intervention],
) -> tuple[str, list[Intervention] | None]:
    """Return the kind of arms and the listed arms, each validated by `check`."""
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
    custom = [check(arm) for arm in ([arms] if isinstance(arms, str) else arms)]
    conflicts = {arm: x for arm in custom if (x := find_forbidden(arm, forbidden)) is not None}
    if conflicts:
        named = [
            str(arm) if arm == never else f"{arm} (it contains {never})"
            for arm, never in list(conflicts.items())[:_MAX_NAMED]
        ]
        named += [f"{len(conflicts) - _MAX_NAMED} more"] * (len(conflicts) > _MAX_NAMED)
        raise DowiseError(
            f"forbidden, but among the arms: {', '.join(named)}; remove each from one of the two",
            code="forbidden-arm",
        )
    return "custom", custom


def enumerate_arms(
    kind: str,
    graphs: Sequence[CausalGraph],
    reward: str,
    domains: Domains,
    forbidden: Sequence[Intervention],
    max_arms: int,
) -> SetsAndArms:
    """Return the permitted arms of a kind and their sets, both in canonical order.

    The projected graphs are the one that was drawn and, last, the one with all soft edges, which
    has every minimal set of the other: more arrows leave more paths to the reward.
    """
    possible = graphs[-1]
    settable = sorted({*possible.variables} - {reward})
    index = index_forbidden(forbidden)
    if kind == "minimal":

        def fits(names: tuple[str, ...]) -> bool:
            return is_minimal(possible, reward, names)

        causes = sorted(possible.ancestors(reward) - {reward})
        return _grow_arms(causes, fits, domains, index, max_arms)
    if kind == "all" and forbidden:
        return _grow_arms(settable, lambda _names: True, domains, index, max_arms)
    if kind == "all":
        sets = _all_sets(settable, domains, max_arms)
    else:
        sets = _possibly_optimal_sets(graphs, reward, domains, max_arms, index)
    if not forbidden:
        return sets, tuple(_arms_of(sets, domains))
    permitted = (permitted_arms(names, domains, index) for names in sets)
    return _in_order(list(chain.from_iterable(permitted)), domains)


def _grow_arms(
    names: list[str],
    fits: Callable[[tuple[str, ...]], bool],
    domains: Domains,
    forbidden: ForbiddenIndex,
    max_arms: int,
) -> SetsAndArms:
    """Return the permitted arms on all sets that fit; subsets of sets that fit must fit too.

    Sets grow by one variable at a time. If a set does not fit or has no permitted arm, neither does
    any superset, so few sets are examined in vain.
    """
    arms: list[Intervention] = []
    stack: list[tuple[tuple[str, ...], list[str]]] = [((), names)]
    while stack:
        chosen, candidates = stack.pop()
        permitted = permitted_arms(chosen, domains, forbidden)
        new = list(islice(permitted, max_arms + 1 - len(arms)))
        arms += new
        if len(arms) > max_arms:
            raise DowiseError(
                f"too many arms: there are more than max_arms, which is {max_arms:,}; {_REMEDY}",
                code="too-large",
            )
        if new:
            fitting = [name for name in candidates if fits((*chosen, name))]
            stack += [((*chosen, name), fitting[i + 1 :]) for i, name in enumerate(fitting)]
    return _in_order(arms, domains)


def _possibly_optimal_sets(
    graphs: Iterable[CausalGraph],
    reward: str,
    domains: Domains,
    max_arms: int,
    forbidden: ForbiddenIndex,
) -> tuple[frozenset[str], ...]:
    """Return the POMISs of the projected graphs; raise if they make more than `max_arms` arms."""
    sets: set[frozenset[str]] = set()
    count = 0
    for names in chain.from_iterable(graph.iter_pomis(reward) for graph in graphs):
        if names in sets:
            continue
        sets.add(names)
        if forbidden:
            permitted = permitted_arms(names, domains, forbidden)
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


def _all_sets(names: list[str], domains: Domains, max_arms: int) -> tuple[frozenset[str], ...]:
    """Return every subset of the manipulable variables; raise if they make too many arms."""
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


def order_arms(arms: Sequence[Intervention], domains: Domains, max_arms: int) -> SetsAndArms:
    """Return custom arms and their sets in canonical order; an arm listed twice is an error."""
    if len(arms) > max_arms:
        raise DowiseError(
            f"the list has {len(arms):,} arms, and max_arms is {max_arms:,}: shorten it, or raise "
            "max_arms",
            code="too-large",
        )
    if not arms:
        raise DowiseError(
            "the list of arms is empty: add at least one, such as 'do()'", code="no-arms"
        )
    for arm, count in Counter(arms).items():
        if count > 1:
            raise DowiseError(f"the arm {arm} is listed twice: keep one", code="duplicate-name")
    return _in_order(arms, domains)


def _in_order(arms: Sequence[Intervention], domains: Domains) -> SetsAndArms:
    sets = sorted({arm.variables for arm in arms}, key=set_order)

    def order(arm: Intervention) -> tuple[int, list[str], list[int]]:
        codes = [domains[name].index(label) for name, label in arm.items()]
        return *set_order(arm.variables), codes

    return tuple(sets), tuple(sorted(arms, key=order))


def _many(count: int) -> str:
    """Format a count that may have thousands of digits."""
    return f"{count:,}" if count < 10**15 else f"about 10^{int(count.bit_length() * log10(2))}"


def explain_excluded_arms(problem: Problem) -> str:
    """Explain which interventions are not arms and why, with one example.

    For any set S that is left out, the border of Y in the graph with S cut is a POMIS whose best
    arm is at least as good as the best arm on S (Lee & Bareinboim 2018); it is the example.

    >>> from dowise.problem import load_problem
    >>> print(explain_excluded_arms(load_problem("healthcare")))
    The other 3 of 4 sets of variables are left out: in every world with this graph some arm above \
does at least as well. For example, doing nothing never beats the best way of setting Diet and \
Treatment.
    """
    has_costs = problem.payoff.has_costs
    default_kind = "minimal" if problem.forbidden or has_costs else "pomis"
    if problem.arms_kind == "custom":
        return (
            "These arms were chosen by hand; there may be better ones "
            f'(arms = "{default_kind}" finds them).'
        )
    if problem.arms_kind == "all":
        exception = " except forbidden ones" if problem.forbidden else ""
        quality = "can be optimal" if default_kind == "pomis" else "are as good"
        return (
            f"These are all interventions{exception}; "
            f'arms = "{default_kind}" would keep only those that {quality}.'
        )
    projected = problem.projection(problem.possible)
    if problem.arms_kind == "minimal":
        return _explain_minimal(problem, projected)
    if problem.forbidden or has_costs:
        permitted = "permitted " if problem.forbidden else ""
        condition = "were forbidden" if problem.forbidden else "had a cost"
        return (
            f"These are the {permitted}arms that could be optimal if nothing {condition}. There "
            "may be better ones: leave out arms to include them."
        )
    return _explain_pomis(problem, projected)


def _explain_pomis(problem: Problem, projected: CausalGraph) -> str:
    if projected.ancestors(problem.reward) == {problem.reward}:
        return (
            f"No variable that you can set has an effect on {problem.reward}, "
            "so do() is the only arm."
        )
    total = 2 ** len(problem.manipulable)
    excluded = total - len(problem.intervention_sets)
    if excluded == 0:
        return "No set of variables is left out: each of them can be optimal."
    example = next(
        frozenset(names)
        for size in range(len(problem.manipulable) + 1)
        for names in combinations(problem.manipulable, size)
        if frozenset(names) not in problem.intervention_sets
    )
    better = projected.cut(example).interventional_border(problem.reward)
    soft = " and any of the soft edges" if problem.soft is not None else ""
    context = ", in every context," if problem.context else ""
    subject = f"The other {excluded:,} of {total:,} sets of variables are"
    return (
        f"{'The other set is' if excluded == 1 else subject} left out: in every world with this "
        f"graph{soft}{context} some arm above does at least as well. For example, "
        f"{_setting(example)} never beats {'the best way of ' if better else ''}{_setting(better)}."
    )


def _explain_minimal(problem: Problem, projected: CausalGraph) -> str:
    """Explain with an example of a set that is not minimal that setting more changes nothing."""
    start = "Forbidden assignments are left out. " if problem.forbidden else ""
    example = frozenset(problem.manipulable)
    if is_minimal(projected, problem.reward, example):
        return f"{start}No set of variables is left out: each variable matters in each of them."
    for name in problem.manipulable:
        if not is_minimal(projected, problem.reward, example - {name}):
            example -= {name}
    effective = example & projected.cut(example).ancestors(problem.reward)
    return (
        f"{start}In every other set of variables one makes no difference, so "
        f"that an arm above does the same. For example, {_setting(example)} does no more than "
        f"{_setting(effective)}{' to the same' if effective else ''}."
    )


def _setting(names: frozenset[str]) -> str:
    if not names:
        return "doing nothing"
    ordered = sorted(names)
    return "setting " + (", ".join(ordered[:-1]) + " and " if ordered[1:] else "") + ordered[-1]
