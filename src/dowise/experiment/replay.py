"""A policy that follows an experiment: it learns what the cases and imports have to teach.

What is told of a case replaces what was known of it before: the earlier record is retracted, the
later one learned. So a factor counts when its last variable arrives, once, whatever came first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

import numpy as np

from dowise._core.rng import Random, stream
from dowise.belief import Belief
from dowise.errors import DowiseError
from dowise.experiment.case import Case
from dowise.experiment.config import ExperimentConfig
from dowise.experiment.records import unpack
from dowise.experiment.state import Changes, Cursor, ExperimentState
from dowise.policies.base import (
    PAST,
    MinimalPolicy,
    Numbers,
    Policy,
    RecordMask,
)
from dowise.policies.bayesian import BayesianPolicy
from dowise.policies.decision import Decision
from dowise.problem import Intervention, Record
from dowise.problem.domains import MISSING
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch, past_record


class ReplayAdapter(Policy):
    """A policy made by `make`, which is shown a record once its reward is known."""

    def __init__(self, make: Callable[[], MinimalPolicy]) -> None:
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

    def rejection_reason(self, record: Record) -> str | None:
        """It learns from outcomes of the problem's arms that have a reward."""
        if record.reward == MISSING:
            return "the reward was not seen"
        if record.arm not in self.problem.arms:
            return f"{record.arm} is none of the arms"
        return None

    def usable_mask(self, records: RecordBatch, numbers: Numbers = None) -> RecordMask:
        """All that lack nothing; none of them depends on another."""
        found = RecordMask.all_usable(len(records))
        for i, record in enumerate(records.each(numbers)):
            why = self.rejection_reason(record)
            if why is not None:
                found.exclude_row(i, why)
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


_IMAGINED = 2**32  # in the key of a stream, behind the decision's number


def uses_fantasies(policy: Policy) -> bool:
    """Whether a policy imagines the outcomes of what it asked for before in the same batch."""
    return isinstance(policy, BayesianPolicy) and policy.uses_fantasies


class Fantasies:
    """Copy of a policy that learns imagined outcomes of a batch's decisions, up to one of them."""

    def __init__(self, policy: Policy, first: int) -> None:
        assert isinstance(policy, BayesianPolicy)
        self._fantasy, self._known = policy.copy(), policy.fingerprint()
        self._first = self._next = first

    def suits(self, policy: Policy, first: int, upto: int) -> bool:
        """Whether it can go on to a later decision of a batch that begins with this one."""
        is_same = self._first == first and self._next <= upto
        return is_same and policy.fingerprint() == self._known

    def go_on(self, state: ExperimentState, upto: int, config: ExperimentConfig) -> BayesianPolicy:
        """Imagine the outcomes of all decisions of the batch before this one."""
        for number in range(self._next, upto):
            case = state.cases[number]
            if _teaches(case, config):
                source = stream(state.seed, number, _IMAGINED)
                self._fantasy.fantasize(case.arm, case.context, source)
        self._next = upto
        return self._fantasy


def _teaches(case: Case, config: ExperimentConfig) -> bool:
    """Whether something will be learned of a pending decision once it is told."""
    return case.status == "pending" and (config.learn_restricted or not case.is_restricted)


_MANY = 64  # from so many changed cases on they are learned together
_MOST_ALIKE = 4096  # outcomes that are remembered, so that the same one need not be read again

RESTRICTED = "some arms were not allowed, and learn_restricted is False"
INSTEAD = (
    "another arm was played, and it was not said that this had nothing to do with the unit "
    "(`unrelated`)"
)


class PolicyReplay:
    """A policy, and what it has learned of which case."""

    def __init__(
        self,
        config: ExperimentConfig,
        policy: MinimalPolicy,
        read_import: Callable[[int], dict[str, Any]],
    ) -> None:
        self.config = config
        self.policy = policy if isinstance(policy, Policy) else ReplayAdapter(config.make_policy)
        if isinstance(self.policy, BayesianPolicy):
            self.policy.suppress_warnings = True  # the status of the experiment says it
        self._read_import = read_import
        self._learned: dict[int, Record] = {}
        self._expected: dict[int, tuple[Intervention, dict[str, str]]] = {}
        self._left_out: dict[int, str] = {}
        self._alike: dict[tuple[Any, ...], Record | str] = {}
        self._imports_left_out: Counter[str] = Counter()
        self._place = Cursor()
        self._ahead: Fantasies | None = None

    @property
    def left_out(self) -> dict[str, int]:
        """How many records it could not learn from, by the reason; none of these is pending."""
        return dict(Counter(self._left_out.values()) + self._imports_left_out)

    @property
    def records(self) -> int:
        """How many cases it has learned something of."""
        return len(self._learned)

    def sync(self, state: ExperimentState) -> None:
        """Learn what was changed since the last call."""
        self.learn(self._place.news(state))

    def learn(self, news: Changes) -> None:
        """Learn what became known, each time all that did since the last one."""
        changed, imports = news
        if len(changed) > _MANY and not isinstance(self.policy, ReplayAdapter):
            for number in imports:
                self._learn_import(number)
            self._learn_many(changed)
            return
        steps: list[tuple[int, Case | None]] = [(case.last_event, case) for case in changed]
        steps += [(number, None) for number in imports]
        for number, case in sorted(steps, key=lambda step: step[0]):
            if case is None:
                self._learn_import(number)
            else:
                self._learn(case)

    def as_of(
        self, cases: Mapping[int, Case], later: Iterable[int]
    ) -> tuple[Belief | None, dict[str, int]]:
        """Return the belief and `left_out` of an earlier state with other cases.

        `later` names the cases that have changed since. The belief is a copy; None where the policy
        has none.
        """
        policy, left_out = self.policy, {**self._left_out}
        belief = policy.belief.copy() if isinstance(policy, BayesianPolicy) else None
        for number in later:
            left_out.pop(number, None)
            if belief is not None and number in self._learned:
                belief.retract(self._learned[number])
            case = cases.get(number)
            if case is None or not case.values:
                continue
            record = self._read(case)
            why = record if isinstance(record, str) else policy.rejection_reason(record)
            if why is not None and case.status != "pending":
                left_out[number] = why
            elif belief is not None and isinstance(record, Record) and why is None:
                belief.learn(record)
        return belief, dict(Counter(left_out.values()) + self._imports_left_out)

    def batch_policy(self, state: ExperimentState, before: int) -> Policy:
        """Who makes the next decision, asked for together with so many before it."""
        first = state.next_id - before
        if not before or not uses_fantasies(self.policy):
            return self.policy
        if self._ahead is None or not self._ahead.suits(self.policy, first, state.next_id):
            self._ahead = Fantasies(self.policy, first)
        return self._ahead.go_on(state, state.next_id, self.config)

    def _learn(self, case: Case) -> None:
        before, now = self._learned.get(case.id), self._record(case)
        is_same = before is not None and now is not None and _are_equal(before, now)
        if is_same and not isinstance(self.policy, ReplayAdapter):  # which goes by the last events
            return
        if before is not None:
            self.policy.retract(self._learned.pop(case.id))
        why = None if now is None else self.policy.rejection_reason(now)
        if now is not None and why is None:
            self.policy.learn(now)
            self._learned[case.id] = now
        elif why is not None:
            self._exclude(case, why)
        self._track_pending(case)

    def _learn_many(self, cases: list[Case]) -> None:
        """The same, all that is new of them at once."""
        fresh: list[tuple[Case, Record]] = []
        for case in cases:
            if case.id in self._learned:
                self._learn(case)
                continue
            record = self._record(case)
            if record is None:
                self._track_pending(case)
            else:
                fresh.append((case, record))
        if fresh:
            self._learn_batch(fresh)

    def _learn_batch(self, fresh: list[tuple[Case, Record]]) -> None:
        codes = np.stack([record.codes for _, record in fresh], axis=1)
        fixed = np.stack([record.fixed for _, record in fresh], axis=1)
        numbers = np.array([case.id for case, _ in fresh])
        batch = RecordBatch(self.config.problem, codes, fixed != MISSING)
        usable, _ = self.policy.usable_mask(batch, numbers)
        rows = np.flatnonzero(usable)
        self.policy.learn_many(batch.take(rows), numbers[rows])
        for (case, record), is_usable in zip(fresh, usable.tolist(), strict=True):
            if is_usable:
                self._learned[case.id] = record
            else:
                self._exclude(
                    case, self.policy.rejection_reason(record) or "it could not be learned"
                )
            self._track_pending(case)

    def _record(self, case: Case) -> Record | None:
        """What a case has to teach, if anything; why it can't be used is noted."""
        self._left_out.pop(case.id, None)
        if not case.values:
            return None
        found = self._read(case)
        if isinstance(found, str):
            self._exclude(case, found)
            return None
        return Record(found.problem, found.arm, found.codes, found.fixed, case.id)

    def _read(self, case: Case) -> Record | str:
        """As `record_of`; cases that are alike are read once."""
        otherwise = case.is_restricted, case.played is not None, case.is_unrelated
        key = (case.arm, *case.context.items(), otherwise, *case.values.items())
        found = self._alike.get(key)
        if found is None:
            if len(self._alike) >= _MOST_ALIKE:
                self._alike.clear()
            found = self._alike[key] = record_of(case, self.config)
        return found

    def _exclude(self, case: Case, why: str) -> None:
        """Note why a case can't be used, unless something is still to come."""
        if case.status != "pending":
            self._left_out[case.id] = why

    def _track_pending(self, case: Case) -> None:
        """Index policies count plays that are under way."""
        if case.id in self._expected:
            self.policy.add_pending(*self._expected.pop(case.id), -1)
        if (
            case.status != "pending"
            or case.id in self._learned
            or exclusion_reason(case, self.config)
        ):
            return
        problem = self.config.problem
        if case.arm in problem.arms and {*case.context} == {*problem.context}:
            self._expected[case.id] = case.arm, {**case.context}
            self.policy.add_pending(case.arm, case.context, 1)

    def _learn_import(self, number: int) -> None:
        batch, notes = unpack(self._read_import(number), self.config.problem)
        self._imports_left_out.update(notes)
        numbers = number * PAST + np.arange(len(batch))
        usable, reasons = self.policy.usable_mask(batch, numbers)
        self._imports_left_out.update(reasons)
        if not usable.all():
            batch, numbers = batch.take(np.flatnonzero(usable)), numbers[usable]
        self.policy.learn_many(batch, numbers)


def record_of(case: Case, config: ExperimentConfig) -> Record | str:
    """A case as a record of the config's problem, by label, or why it can't be one."""
    problem, why = config.problem, exclusion_reason(case, config)
    if why is not None:
        return why
    for name in case.arm:
        if name == problem.reward or name not in problem.domains:
            what = "is the reward now" if name == problem.reward else "is no longer recorded"
            return f"{case.arm} set {name}, which {what}"
    seen = {name: label for name, label in case.known.items() if name in problem.domains}
    return past_record(problem, case.arm, seen, case.id)


def exclusion_reason(case: Case, config: ExperimentConfig) -> str | None:
    """Why nothing is ever learned of a case, whatever will be told; None where something may be."""
    if case.is_restricted and not config.learn_restricted:
        return RESTRICTED
    return INSTEAD if case.played is not None and not case.is_unrelated else None


def _are_equal(one: Record, other: Record) -> bool:
    return one.arm == other.arm and np.array_equal(one.codes, other.codes)
