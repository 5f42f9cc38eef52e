"""Which values that were told do not count, and for want of what: known without any posterior.

A value teaches about its variable where all that its factor is conditioned on is known too: in a
plain graph the variable's parents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dowise.experiment.case import Case
from dowise.problem import Problem
from dowise.problem.order import Order

__all__ = ["Idle"]


class Idle:
    """What does not count in the cases of a problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._order = problem, Order(problem)
        self._found: dict[tuple[frozenset[str], frozenset[str]], dict[str, tuple[str, ...]]] = {}

    def of(self, case: Case) -> dict[str, tuple[str, ...]]:
        """For each variable that was told and does not count: what is not known beside it."""
        seen = frozenset(name for name, label in case.known.items() if label is not None)
        key = case.arm.variables, seen
        if key not in self._found:
            self._found[key] = self._lacking(*key)
        return self._found[key]

    def may_still_count(self, case: Case) -> bool:
        """Whether its reward was told, and something counts only once more is told."""
        return case.status == "done" and any(
            not any(other in case.values for other in others) for others in self.of(case).values()
        )

    def in_words(self, case: Case) -> list[str]:
        """The same as sentences, which say whether it may still come to count."""
        lines = []
        for name, others in self.of(case).items():
            gone = [other for other in others if other in case.values]
            if gone or case.status == "withdrawn":
                why = f"it depends on {_and(gone or others)}, which nobody will know"
                lines.append(f"{name} does not count: {why}")
            else:
                why = f"it depends on {_and(others)}, so tell that too"
                lines.append(f"{name} does not count yet: {why}")
        return lines

    def times(self, cases: Iterable[Case]) -> Counter[tuple[str, str]]:
        """How often each variable did not count in these cases, and the first that was lacking."""
        found: Counter[tuple[str, str]] = Counter()
        for case in cases:
            for name, others in self.of(case).items():
                found[name, others[0]] += 1
        return found

    def _lacking(self, cut: frozenset[str], seen: frozenset[str]) -> dict[str, tuple[str, ...]]:
        problem, order = self._problem, self._order
        if not cut <= {*problem.graph.variables}:
            return {}
        found = {}
        for v, name in enumerate(problem.graph.variables):
            if name not in seen or name in cut or order.context & 1 << v:
                continue
            needed = order.graph.names(order.scope(order.key(v, problem.graph.mask(cut))))
            lacking = tuple(sorted({*needed} - seen))
            if lacking:
                found[name] = lacking
        return found


def _and(names: Iterable[str]) -> str:
    return " and ".join(names)
