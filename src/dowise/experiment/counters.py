"""Running totals over decisions, so that queries need not scan them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.experiment.case import Case
from dowise.experiment.state import Changes
from dowise.graph.transforms import FactorOrder
from dowise.problem import Intervention, Problem

Labels = tuple[str, ...]


class PlayCounts:
    """Counts of contexts, and of the arms played in each of them."""

    def __init__(self, problem: Problem, cases: Iterable[Case] = ()) -> None:
        self._problem = problem
        self.times: Counter[Labels] = Counter()
        self._played: Counter[tuple[Labels, Intervention]] = Counter()
        for case in cases:
            self.count(case, 1)

    def count(self, case: Case, step: int) -> None:
        """Add a decision (`step` 1), or remove it (−1)."""
        labels = self.context(case)
        if labels is None:
            return
        self.times[labels] += step
        if not self.times[labels]:
            del self.times[labels]
        if case.status == "done":
            self._played[labels, case.arm] += step

    def copy(self) -> PlayCounts:
        """Return an independent copy."""
        copied = PlayCounts(self._problem)
        copied.times, copied._played = self.times.copy(), self._played.copy()
        return copied

    def most_common(self, limit: int) -> list[Labels]:
        """Return the most frequent contexts; equally frequent ones are sorted by their labels."""
        ranked = sorted(self.times.items(), key=lambda item: (-item[1], item[0]))
        return [labels for labels, _ in ranked[:limit]]

    def context(self, case: Case) -> Labels | None:
        """Return the context of a decision under the current problem; None if it is unknown."""
        if case.status == "erased":
            return None
        values = case.known
        labels = [values.get(name) for name in self._problem.context]
        return None if None in labels else tuple(map(str, labels))

    def plays(self, context: Mapping[str, str]) -> NDArray[np.int64]:
        """Return the number of decisions with an outcome that played each arm in a context."""
        labels = self._labels(context)
        return np.array([self._played[labels, arm] for arm in self._problem.arms])

    def arms(self) -> set[Intervention]:
        """Return the interventions that a decision with an outcome played, in any context."""
        return {arm for (_, arm), times in self._played.items() if times}

    def shares(self, contexts: list[dict[str, str]]) -> list[float]:
        """Return the share of each context; equal shares if none occurred yet."""
        counts = [self.times[self._labels(context)] for context in contexts]
        total = sum(counts)
        return [count / total if total else 1 / len(counts) for count in counts]

    def _labels(self, context: Mapping[str, str]) -> Labels:
        return tuple(context[name] for name in self._problem.context)


class UnusedValues:
    """Recorded values that do not count because another value is missing."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._order = FactorOrder(problem.possible, problem.context, problem.reward, problem.order)
        self._cache: dict[tuple[frozenset[str], frozenset[str]], dict[str, tuple[str, ...]]] = {}

    def of(self, case: Case) -> dict[str, tuple[str, ...]]:
        """Return the variables that were recorded and do not count, with what each one lacks."""
        recorded = frozenset(name for name, label in case.known.items() if label is not None)
        key = case.arm.variables, recorded
        if key not in self._cache:
            self._cache[key] = self._missing_parents(*key)
        return self._cache[key]

    def may_still_count(self, case: Case) -> bool:
        """Return True if the reward is known, and a value will count once another one is told."""
        return case.status == "done" and not all(
            any(name in case.values for name in missing) for missing in self.of(case).values()
        )

    def describe(self, case: Case, weighs_graph: bool = False) -> list[str]:
        """Describe the values that do not count, and whether they still may.

        If the policy weighs the graph against arms by themselves, those learn from the reward.
        """
        lines = []
        for name, missing in self.of(case).items():
            lost = [other for other in missing if other in case.values]
            for_graph = " for the graph" * (weighs_graph and name == self._problem.reward)
            if lost or case.status == "withdrawn":
                names = " and ".join(lost or missing)
                count, why = "does not count", f"{names}, which will not be known"
            else:
                count, why = "does not count yet", f"{' and '.join(missing)}, which was not told"
            lines.append(f"{name} {count}{for_graph}: it depends on {why}")
        return lines

    def times(self, cases: Iterable[Case]) -> Counter[tuple[str, str]]:
        """Return how often each variable did not count because of another one (the first)."""
        return Counter(
            (name, missing[0]) for case in cases for name, missing in self.of(case).items()
        )

    def _missing_parents(
        self, intervened: frozenset[str], recorded: frozenset[str]
    ) -> dict[str, tuple[str, ...]]:
        graph, order = self._problem.graph, self._order
        if not intervened <= {*graph.variables}:
            return {}
        missing = {}
        for v, name in enumerate(graph.variables):
            if name not in recorded or name in intervened or order.context & 1 << v:
                continue
            needed = order.graph.names(order.scope(order.key(v, graph.mask(intervened))))
            if not recorded.issuperset(needed):
                missing[name] = tuple(sorted({*needed} - recorded))
        return missing


class Totals(NamedTuple):
    """Totals over the decisions of one state."""

    counts: dict[str, int]
    """Number of decisions (`asked`), and of each kind."""
    ended_with_values: int
    """Number of closed decisions with values."""
    plays: PlayCounts
    incomplete: tuple[Case, ...]
    """Decisions with a reward, and with a value that will count once another one is told."""
    unused: UnusedValues


class DecisionCounters:
    """Totals over decisions, updated case by case."""

    def __init__(self, problem: Problem) -> None:
        self._plays, self._unused = PlayCounts(problem), UnusedValues(problem)
        self._ended_with_values = 0
        self._kinds: Counter[str] = Counter()
        self._incomplete: dict[int, Case] = {}
        self._counted: dict[int, Case] = {}

    def count(self, changes: Changes) -> None:
        """Count changed cases, each in the place of the case with its number.

        A case with `event` 0 is only removed (see `Follower._changes`).
        """
        for case in changes.cases:
            before = self._counted.pop(case.id, None)
            if before is not None:
                self._count(before, -1)
            if case.event:
                self._count(case, 1)
                self._counted[case.id] = case

    def totals(self) -> Totals:
        """Return the totals, independent of later changes."""
        names = ("pending", "done", "withdrawn", "erased", "restricted", "played_otherwise")
        return Totals(
            {"asked": len(self._counted), **{name: self._kinds[name] for name in names}},
            self._ended_with_values,
            self._plays.copy(),
            tuple(self._incomplete[number] for number in sorted(self._incomplete)),
            self._unused,
        )

    def _count(self, case: Case, step: int) -> None:
        self._kinds[case.status] += step
        if case.status != "erased":
            self._kinds["restricted"] += step * case.is_restricted
            self._kinds["played_otherwise"] += step * (case.played is not None)
        if case.status in ("done", "withdrawn") and case.values:
            self._ended_with_values += step
        self._plays.count(case, step)
        if step < 0:
            self._incomplete.pop(case.id, None)
        elif self._unused.may_still_count(case):
            self._incomplete[case.id] = case
