"""A policy that learns from records: one by one or many at once, and what it can't learn from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.model.sampling import Script
from dowise.plain import plain
from dowise.policies.decision import Decision
from dowise.policies.usable import Numbers, Usable, check_batch
from dowise.problem import Problem, Record
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch, check_record
from dowise.randomness import Random, generator

__all__ = ["Loop", "RecordPolicy", "digest_of", "listed"]

Loop = Callable[[Script, np.random.Generator], NDArray[np.int64]]
"""A whole trial, compiled: the arm of every round, by its position."""


class RecordPolicy:
    """A policy that learns from records, and can forget one.

    Its state is a function of the records that it has learned and not retracted, not of their
    order. `observe` numbers what it is given from 0 on.

    A policy of one's own has `decide`, `learn`, `retract` and `state`. All else follows from these;
    where it can be had faster, or said better, a policy has its own.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.next_number = 0
        """That of the next outcome that `observe` is given."""

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Choose an arm for this context, among the allowed ones if any are named."""
        raise NotImplementedError(f"{type(self).__name__} has no decide(context, rng, allowed)")

    def decide_many(
        self,
        contexts: int | Iterable[Context],
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> list[Decision]:
        """A decision for each context, before any outcome is known; like `decide`, no change.

        A number of decisions will do where the problem has no context. Each knows of those before
        it what `expect` tells. `probabilities` are exact given what was learned and the decisions
        before (and what was imagined of them: `BayesianPolicy.imagines`). A bad context is refused
        before anything is decided.
        """
        from dowise.policies.batches import contexts_of_batch

        checked, source = contexts_of_batch(self.problem, contexts), generator(rng)
        arms = listed(allowed)
        decisions: list[Decision] = []
        try:
            for context in checked:
                decisions.append(self.decide(context, source, arms))
                self.expect(decisions[-1].arm, context, 1)
        finally:
            for context, decision in zip(checked, decisions, strict=False):
                self.expect(decision.arm, context, -1)
        return decisions

    def observe(self, arm: ArmLike, outcome: Mapping[str, object]) -> None:
        """Learn what was seen after the arm was played, the context included."""
        self.learn(self.problem.record(arm, outcome, self.next_number))
        self.next_number += 1

    def learn(self, record: Record) -> None:
        """One record more; one that lacks what the policy learns from is refused."""
        raise NotImplementedError(f"{type(self).__name__} has no learn(record)")

    def retract(self, record: Record) -> None:
        """One record less: as if it had never been learned."""
        raise NotImplementedError(f"{type(self).__name__} has no retract(record)")

    def state(self) -> Mapping[str, object]:
        """All that was learned, as numbers."""
        raise NotImplementedError(f"{type(self).__name__} has no state()")

    def lacks(self, record: Record) -> str | None:
        """Why `learn` would refuse this record, in its words; None if it would take it.

        Any intervention may stand in the record (`past_record`), also one that is no arm.
        """
        check_record(record, self.problem)
        try:
            self.learn(record)
        except DowiseError as error:
            return str(error)
        self.retract(record)
        return None

    def usable(self, records: RecordBatch, numbers: Numbers = None) -> Usable:
        """Which of many records `learn_many` would take, and of the others how many lack what.

        The same as asking `lacks` and learning one by one, in this order. What was not left out
        then is taken by `learn_many`, with the same numbers.
        """
        check_batch(self.problem, records, numbers)
        found, learned = Usable.all_of(len(records)), []
        try:
            for i, record in enumerate(records.each(numbers)):
                why = self.lacks(record)
                if why is None:
                    self.learn(record)
                    learned.append(record)
                else:
                    found.leave_out_one(i, why)
        finally:
            self._retract_all(learned)
        return found

    def learn_many(self, records: RecordBatch, numbers: Numbers = None) -> None:
        """Many records more, the same as one by one; `numbers` are those of their decisions.

        If there is one that the policy can't learn from, all are refused and nothing changes: ask
        `usable` first.
        """
        check_batch(self.problem, records, numbers)
        learned: list[Record] = []
        try:
            for record in records.each(numbers):
                self.learn(record)
                learned.append(record)
        except BaseException:
            self._retract_all(learned)
            raise

    def _retract_all(self, learned: list[Record]) -> None:
        for record in reversed(learned):
            self.retract(record)

    def fingerprint(self) -> bytes:
        """A digest (SHA-256) of all that was learned: the same for the same records in any order.

        It depends on whole numbers alone where the state does; the built-in policies have the same
        one on every machine.
        """
        page = json.dumps(plain(self.state()), sort_keys=True, separators=(",", ":"))
        return sha256(page.encode()).digest()

    def expect(self, arm: ArmLike, context: Context = None, times: int = 1) -> None:
        """An arm is being played in this context so many times more, and nothing is known yet.

        Negative `times` take that back: when the outcome is learned, or will never come. Policies
        that would ask for the same arm again until they learn something count such plays; what is
        learned does not depend on them. For all others, as here, it means nothing.
        """

    def compiled_loop(self) -> Loop | None:
        """What plays a whole trial as `decide` and `observe` would, or None where nothing does.

        The loop leaves the policy's state as stepping would.
        """
        return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self.problem!r}>"


def listed(allowed: Iterable[ArmLike] | None) -> Iterable[ArmLike] | None:
    """Allowed arms that can be gone through more than once; what is no list is left to `decide`."""
    is_list = isinstance(allowed, Iterable) and not isinstance(allowed, str | Mapping)
    return list(allowed) if is_list and allowed is not None else allowed


def digest_of(*arrays: NDArray[np.int64] | tuple[int, ...]) -> bytes:
    """SHA-256 of the shapes and the numbers, as little-endian words of 64 bits on every machine."""
    digest = sha256()
    for array in arrays:
        numbers = np.ascontiguousarray(array, dtype="<i8")
        digest.update(np.array([numbers.ndim, *numbers.shape], dtype="<i8").tobytes())
        digest.update(numbers.tobytes())
    return digest.digest()
