"""An experiment as the steps of an evaluation: decisions that count, and what was known when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dowise.experiment.case import Case
from dowise.experiment.columns import unpack
from dowise.experiment.evaluation import Decide, Learn, LearnMany, Logged, Retract, Step
from dowise.experiment.event import Event
from dowise.experiment.facts import Facts
from dowise.experiment.learner import record_of
from dowise.experiment.plan import Plan
from dowise.problem import Record

__all__ = ["Log"]


class Log:
    """The steps of an experiment, in order, under the plan that holds now.

    `left_out` counts the decisions that are not evaluated, by the reason, once the steps were gone
    through.
    """

    def __init__(
        self, facts: Facts, events: Iterable[Event], columns: Callable[[int], dict[str, Any]]
    ) -> None:
        self.left_out: Counter[str] = Counter()
        self._final, self._events, self._columns = facts, events, columns
        self._plan = facts.plan

    def steps(self) -> Iterator[Step]:
        """Fold the journal once more, and say what became known."""
        then, known = Facts(self._final.name), dict[int, Record]()
        for event in self._events:
            read = len(then.log)
            then.apply_all([event])
            if event.kind == "imported":
                batch, _ = unpack(self._columns(event.number), self._plan.problem)
                yield LearnMany(batch)
            if event.kind == "asked":
                yield from self._decision(then, event)
            for number in then.log[read:]:
                yield from self._news(then.cases[number], known)

    def _decision(self, then: Facts, event: Event) -> Iterator[Decide]:
        case = self._final.cases[len(then.cases)]
        row = self._row(case, event, then.plan)
        if isinstance(row, str):
            self.left_out[row] += 1
        else:
            yield Decide(row)

    def _row(self, case: Case, event: Event, plan: Plan) -> Logged | str:
        """A decision that counts, or why it does not."""
        problem = self._plan.problem
        if event.is_erased or case.status != "done":
            return "erased" if case.status == "erased" else case.status
        if case.played is not None:
            return "another arm was played"
        then = plan.problem
        if (then.arms, then.context) != (problem.arms, problem.context):
            return "made when there were other arms or another context, before a revision"
        says = event.says
        if says["probabilities"] is None:
            return "its probabilities are not known"
        record = record_of(case, Plan(problem, plan.policy, {}))
        if isinstance(record, str) or case.values.get(problem.reward) is None:
            return "the reward is missing"
        allowed = np.ones(len(problem.arms), dtype=bool)
        if says["allowed"] is not None:
            allowed[:] = False
            allowed[says["allowed"]] = True
        chances = np.array(says["probabilities"], dtype=float)
        return Logged(case.id, says["context"], chances, allowed, record)

    def _news(self, case: Case, known: dict[int, Record]) -> Iterator[Learn | Retract]:
        record = record_of(case, self._plan) if case.values else ""
        if case.id in known:
            yield Retract(known.pop(case.id))
        if isinstance(record, Record):
            known[case.id] = record
            yield Learn(record)
