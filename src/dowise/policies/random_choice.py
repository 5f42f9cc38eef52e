"""Any arm at random: what every other policy should beat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from dowise.policies.decision import Decision
from dowise.policies.policy import RecordPolicy, allowed_arms
from dowise.policies.usable import Numbers, Usable, check_batch
from dowise.problem import Record
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch, check_record
from dowise.randomness import Random, generator

__all__ = ["RandomChoice"]


class RandomChoice(RecordPolicy):
    """Each allowed arm with the same probability, whatever was seen: a randomised trial."""

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Draw one of the allowed arms."""
        problem, source = self.problem, generator(rng)
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        probabilities = np.zeros(len(problem.arms))
        probabilities[arms] = 1 / len(arms)
        chosen = problem.arms[int(arms[source.integers(len(arms))])]
        reason = f"drawn at random from {len(arms)} arms"
        return Decision(chosen, probabilities, reason, context=problem.context_labels(codes))

    def learn(self, record: Record) -> None:
        """Nothing is learned; that the record makes sense was checked when it was made."""
        check_record(record, self.problem)

    def retract(self, record: Record) -> None:
        """Nothing was learned."""
        check_record(record, self.problem)

    def lacks(self, record: Record) -> str | None:
        """Nothing is needed."""
        check_record(record, self.problem)
        return None

    def usable(self, records: RecordBatch, numbers: Numbers = None) -> Usable:
        """All of them."""
        check_batch(self.problem, records, numbers)
        return Usable.all_of(len(records))

    def learn_many(self, records: RecordBatch, numbers: Numbers = None) -> None:
        """Nothing is learned."""
        check_batch(self.problem, records, numbers)

    def state(self) -> Mapping[str, object]:
        """Nothing."""
        return {}
