"""A policy of one's own that only decides and observes, as one that can also forget.

What such a policy knows may depend on the order of what it saw. So a record is taken back by making
the policy anew and letting it see all the others again, in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256

from dowise.errors import DowiseError
from dowise.policies.decision import Decision
from dowise.policies.policy import Policy, RecordPolicy
from dowise.policies.usable import Numbers, Usable
from dowise.problem import Record
from dowise.problem.domains import MISSING
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch
from dowise.randomness import Random

__all__ = ["Observing"]


class Observing(RecordPolicy):
    """A policy made by `make`, which is shown a record once its reward is known."""

    def __init__(self, make: Callable[[], Policy]) -> None:
        self._make, self.inner = make, make()
        super().__init__(self.inner.problem)
        self._seen: list[Record] = []

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """As the policy itself does."""
        return self.inner.decide(context, rng, allowed)

    def lacks(self, record: Record) -> str | None:
        """It learns from outcomes of the problem's arms that have a reward."""
        if record.reward == MISSING:
            return "the reward was not seen"
        if record.arm not in self.problem.arms:
            return f"{record.arm} is none of the arms"
        return None

    def usable(self, records: RecordBatch, numbers: Numbers = None) -> Usable:
        """All that lack nothing; none of them depends on another."""
        found = Usable.all_of(len(records))
        for i, record in enumerate(records.each(numbers)):
            why = self.lacks(record)
            if why is not None:
                found.leave_out_one(i, why)
        return found

    def learn(self, record: Record) -> None:
        """Show it one record more."""
        self._show(record)
        self._seen.append(record)

    def retract(self, record: Record) -> None:
        """Make the policy anew from all other records."""
        if record not in self._seen:
            raise DowiseError(f"{record!r} can't be retracted: it was not learned")
        self._seen.remove(record)
        self.inner = self._make()
        for other in self._seen:
            self._show(other)

    def state(self) -> Mapping[str, object]:
        """The records that it was shown."""
        return {"records": [record.as_dict() for record in self._seen]}

    def fingerprint(self) -> bytes:
        """Of the records, in their order."""
        whole = sha256()
        for record in self._seen:
            whole.update(str(record.arm).encode() + record.codes.astype("<i8").tobytes())
        return whole.digest()

    def _show(self, record: Record) -> None:
        self.inner.observe(record.arm, record.labels)
