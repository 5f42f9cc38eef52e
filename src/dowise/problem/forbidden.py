"""Assignments that no arm may contain, such as two drugs that must not be given together.

>>> never = completions([Intervention({"X": 1, "Z": 0})])
>>> print(*permitted_arms(["X", "Z"], {"X": ("0", "1"), "Z": ("0", "1")}, never), sep="; ")
do(X=0, Z=0); do(X=0, Z=1); do(X=1, Z=1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dowise.errors import DowiseError
from dowise.problem.intervention import Intervention

__all__ = [
    "Completions",
    "checked_forbidden",
    "completions",
    "forbidden_in",
    "permitted_arms",
    "refuse_forbidden",
]

Completions = Mapping[tuple[str, str], Sequence[Mapping[str, str]]]

_MOST_NAMED = 5  # in an error


def checked_forbidden(given: Any, check: Callable[[Any], Intervention]) -> tuple[Intervention, ...]:
    """The assignments, each once, by size and then by text; `check` reads one.

    A text or a mapping alone is one assignment.
    """
    given = (given,) if isinstance(given, str | Mapping) else () if given is None else given
    if not isinstance(given, Iterable):
        raise DowiseError(f"forbidden={given!r}: give a list of assignments, such as ['do(X=1)']")
    found = {_checked(assignment, check) for assignment in given}
    return tuple(sorted(found, key=lambda assignment: (len(assignment), str(assignment))))


def _checked(given: Any, check: Callable[[Any], Intervention]) -> Intervention:
    try:
        assignment = check(given)
    except DowiseError as error:
        raise DowiseError(f"forbidden: {error}; name what arms could set") from None
    if not assignment:
        raise DowiseError(
            "forbidden: every arm contains do(), so none would be left; name what must not be set, "
            "such as do(X=1), or leave do() out of arms of your own"
        )
    return assignment


def forbidden_in(arm: Mapping[str, str], forbidden: Iterable[Intervention]) -> Intervention | None:
    """The first forbidden assignment that an intervention contains, or None."""
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
    """Every assignment to these variables that contains no forbidden one, as it is found.

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
            for arm, never in list(found.items())[:_MOST_NAMED]
        ]
        named += [f"{len(found) - _MOST_NAMED} more"] * (len(found) > _MOST_NAMED)
        raise DowiseError(
            f"forbidden, but among the arms: {', '.join(named)}; take each out of one of the two"
        )
