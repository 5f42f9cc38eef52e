"""Replay of an experiment by its policy, which learns from cases and imports.

If a case changes, its earlier record is retracted and the later one learned. So a factor counts
once, when its last variable is known, in whatever order the values arrive. For policies that depend
on the order of arrival there is `Policy.arrivals`, in the order of the journal's events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

import numpy as np

from dowise._core.rng import Random, stream
from dowise.belief import Belief
from dowise.belief.arrivals import PLACES_PER_EVENT, Piece, pieces_of
from dowise.errors import DowiseError
from dowise.experiment.case import Case
from dowise.experiment.config import ExperimentConfig
from dowise.experiment.record_columns import unpack
from dowise.experiment.state import Changes, ExperimentState
from dowise.policies.base import PAST, MinimalPolicy, Policy
from dowise.policies.bayesian import BayesianPolicy
from dowise.policies.decision import Decision
from dowise.policies.graph_free import MixtureBelief
from dowise.policies.requirements import Numbers, RecordMask
from dowise.problem import Intervention, Record
from dowise.problem.domains import MISSING
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch, past_record


class ReplayAdapter(Policy):
    """Adapter that adds `retract` to a custom policy by replaying its records."""

    def __init__(self, make: Callable[[], MinimalPolicy]) -> None:
        self._make, self.inner = make, make()
        super().__init__(self.inner.problem)
        self._records: list[Record] = []

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Let the custom policy decide."""
        return self.inner.decide(context, rng, allowed)

    def rejection_reason(self, record: Record) -> str | None:
        """Return why a record can't be used: no reward, or not one of the arms."""
        if record.reward == MISSING:
            return "the reward was not seen"
        if record.arm not in self.problem.arms:
            return f"{record.arm} is none of the arms"
        return None

    def usable_mask(self, records: RecordBatch, numbers: Numbers = None) -> RecordMask:
        """Return the records that can be used."""
        mask = RecordMask.all_usable(len(records))
        for i, record in enumerate(records.each(numbers)):
            reason = self.rejection_reason(record)
            if reason is not None:
                mask.exclude_row(i, reason)
        return mask

    def learn(self, record: Record) -> None:
        """Pass a record to the custom policy."""
        self.inner.observe(record.arm, record.labels)
        self._records.append(record)

    def retract(self, record: Record) -> None:
        """Make the policy again from all other records."""
        if record not in self._records:
            raise DowiseError(f"{record!r} can't be retracted: it was not learned")
        self._records.remove(record)
        self.inner = self._make()
        for learned in self._records:
            self.inner.observe(learned.arm, learned.labels)

    def state(self) -> Mapping[str, object]:
        """Return the learned records."""
        return {"records": [record.as_dict() for record in self._records]}

    def fingerprint(self) -> bytes:
        """Return a hash of the records, in their order."""
        digest = sha256()
        for record in self._records:
            digest.update(str(record.arm).encode() + record.codes.astype("<i8").tobytes())
        return digest.digest()


_FANTASY_STREAM = 2**32  # follows the decision's number in the key of the random stream


def uses_fantasies(policy: Policy) -> bool:
    """Return True if a policy imagines the outcomes of earlier decisions of a batch."""
    return isinstance(policy, BayesianPolicy) and policy.uses_fantasies


class Fantasies:
    """Copy of a policy that learns imagined outcomes of the decisions of a batch.

    `first` is the number of the first decision of the batch.
    """

    def __init__(self, policy: Policy, first: int) -> None:
        assert isinstance(policy, BayesianPolicy)
        self._fantasy, self._fingerprint = policy.copy(), policy.fingerprint()
        self._first = self._next = first

    def suits(self, policy: Policy, first: int, upto: int) -> bool:
        """Return True if it can advance to decision `upto` of the batch that starts at `first`."""
        is_same_batch = self._first == first and self._next <= upto
        return is_same_batch and policy.fingerprint() == self._fingerprint

    def advance(
        self, state: ExperimentState, upto: int, config: ExperimentConfig
    ) -> BayesianPolicy:
        """Imagine the outcomes of all decisions of the batch before `upto`."""
        for number in range(self._next, upto):
            case = state.cases[number]
            is_learnable = config.learn_restricted or not case.is_restricted
            if case.status == "pending" and is_learnable:
                source = stream(state.seed, number, _FANTASY_STREAM)
                self._fantasy.fantasize(case.arm, case.context, source)
        self._next = upto
        return self._fantasy


MIN_BATCH = 64  # changed cases that are learned together rather than one by one
MAX_CACHED_RECORDS = 4096  # equal cases are converted to a record once

RESTRICTED = "some arms were not allowed, and learn_restricted is False"
PLAYED_OTHERWISE = "another arm was played and `unrelated` was not set"


class PolicyReplay:
    """The policy of an experiment, kept in step with its cases and imports."""

    def __init__(
        self,
        config: ExperimentConfig,
        policy: MinimalPolicy,
        read_import: Callable[[int], dict[str, Any]],
    ) -> None:
        self.config = config
        self.policy = policy if isinstance(policy, Policy) else ReplayAdapter(config.make_policy)
        if isinstance(self.policy, BayesianPolicy):
            self.policy.suppress_warnings = True  # the status contains them
        self._read_import = read_import
        self._arrivals = self.policy.arrivals
        belief = getattr(self.policy.knowledge, "belief", None)
        if isinstance(belief, MixtureBelief):
            belief.appends = False
        self._learned: dict[int, Record] = {}
        self._tracks_pending = type(self.policy).add_pending is not Policy.add_pending
        self._pending: dict[int, tuple[Intervention, dict[str, str]]] = {}
        self._left_out: dict[int, str] = {}
        self._cache: dict[tuple[Any, ...], Record | str] = {}
        self._imports_left_out: Counter[str] = Counter()
        self._synced_changes, self._synced_imports = 0, 0
        self._fantasies: Fantasies | None = None
        self.imported_arms: set[Intervention] = set()
        """Interventions with a reward in the imported records."""

    def sync(self, state: ExperimentState) -> None:
        """Learn what has changed since the last call."""
        changed = dict.fromkeys(state.log[self._synced_changes :])
        cases = [state.cases[number] for number in changed]
        imports = state.imports[self._synced_imports :]
        self._synced_changes, self._synced_imports = len(state.log), len(state.imports)
        self.learn(Changes(cases, imports))

    def learn(self, changes: Changes) -> None:
        """Learn changed cases and new imports, in the order of their events."""
        changed, imports = changes
        if len(changed) > MIN_BATCH and not isinstance(self.policy, ReplayAdapter):
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
        """Return the belief of an earlier state with these cases, and how many records it left out.

        `later` has the ids of the cases that have changed since. The belief is a copy, or None if
        the policy has none. The records are counted by reason, without pending ones.
        """
        policy, left_out = self.policy, {**self._left_out}
        belief = policy.deciding_belief.copy() if isinstance(policy, BayesianPolicy) else None
        arrivals = belief.arrivals if isinstance(belief, MixtureBelief) else None
        for number in later:
            left_out.pop(number, None)
            if belief is not None and number in self._learned:
                belief.retract(self._learned[number])
            if arrivals is not None:
                arrivals.place(number, [])
            case = cases.get(number)
            if case is None or not case.values:
                continue
            record = self._read(case)
            reason = record if isinstance(record, str) else policy.rejection_reason(record)
            if reason is not None and case.status != "pending":
                left_out[number] = reason
            elif belief is not None and isinstance(record, Record) and reason is None:
                belief.learn(record)
                if arrivals is not None:
                    arrivals.place(number, self._pieces(case, record))
        return belief, dict(Counter(left_out.values()) + self._imports_left_out)

    def batch_policy(self, state: ExperimentState, before: int) -> Policy:
        """Return the policy for the next decision, after `before` others of its batch."""
        if not before or not uses_fantasies(self.policy):
            return self.policy
        number = len(state.cases) + 1
        first = number - before
        if self._fantasies is None or not self._fantasies.suits(self.policy, first, number):
            self._fantasies = Fantasies(self.policy, first)
        return self._fantasies.advance(state, number, self.config)

    def _learn(self, case: Case) -> None:
        self._track_pending(case)
        before, record = self._learned.get(case.id), self._record(case)
        self._place(case, record)
        if (
            before is not None
            and record is not None
            and before.arm == record.arm
            and np.array_equal(before.codes, record.codes)
            and not isinstance(self.policy, ReplayAdapter)  # it learns in the order of last events
        ):
            return
        if before is not None:
            self.policy.retract(self._learned.pop(case.id))
        if record is not None:
            reason = self.policy.rejection_reason(record)
            if reason is None:
                self.policy.learn(record)
                self._learned[case.id] = record
            else:
                self._exclude(case, reason)

    def _place(self, case: Case, record: Record | None) -> None:
        """Put the pieces of a case where the events that told them are."""
        if self._arrivals is None:
            return
        if record is None or self.policy.rejection_reason(record) is not None:
            self._arrivals.place(case.id, [])
            return
        self._arrivals.place(case.id, self._pieces(case, record))

    def _pieces(self, case: Case, record: Record) -> list[tuple[int, Piece]]:
        """Return the pieces of a case with their places."""
        problem = self.config.problem
        graph, fixed = problem.graph, {*record.arm, *problem.context}
        positions = {name: v for v, name in enumerate(graph.variables) if name not in fixed}
        told_at = [(at, positions[name]) for name, at in case.told_at.items() if name in positions]
        # a variable may have been part of the context when the decision was made
        known_before = graph.mask([name for name in case.context if name in positions])
        return pieces_of(record, told_at, known_before)

    def _learn_many(self, cases: list[Case]) -> None:
        """Learn many cases; all new ones together."""
        new: list[tuple[Case, Record]] = []
        for case in cases:
            if case.id in self._learned:
                self._learn(case)
                continue
            self._track_pending(case)
            record = self._record(case)
            self._place(case, record)
            if record is not None:
                new.append((case, record))
        if not new:
            return
        codes = np.stack([record.codes for _, record in new], axis=1)
        fixed = np.stack([record.fixed for _, record in new], axis=1)
        numbers = np.array([case.id for case, _ in new])
        batch = RecordBatch(self.config.problem, codes, fixed != MISSING)
        usable, _ = self.policy.usable_mask(batch, numbers)
        rows = np.flatnonzero(usable)
        self.policy.learn_many(batch.take(rows), numbers[rows])
        for (case, record), is_usable in zip(new, usable.tolist(), strict=True):
            if is_usable:
                self._learned[case.id] = record
            else:
                self._exclude(
                    case, self.policy.rejection_reason(record) or "it could not be learned"
                )

    def _record(self, case: Case) -> Record | None:
        """Return the record of a case, or None if it has none or is excluded."""
        self._left_out.pop(case.id, None)
        if not case.values:
            return None
        record = self._read(case)
        if isinstance(record, str):
            self._exclude(case, record)
            return None
        return Record(record.problem, record.arm, record.codes, record.fixed, case.id)

    def _read(self, case: Case) -> Record | str:
        """Return `record_of(case)`, cached for equal cases."""
        flags = case.is_restricted, case.played is not None, case.is_unrelated
        key = (case.arm, *case.context.items(), flags, *case.values.items())
        record = self._cache.get(key)
        if record is None:
            if len(self._cache) >= MAX_CACHED_RECORDS:
                self._cache.clear()
            record = self._cache[key] = record_of(case, self.config)
        return record

    def _exclude(self, case: Case, reason: str) -> None:
        """Record why a case can't be used, unless it is pending."""
        if case.status != "pending":
            self._left_out[case.id] = reason

    def _track_pending(self, case: Case) -> None:
        """Report a play whose reward is not known yet to policies that use them.

        Such a play counts also if other values of it were told.
        """
        if not self._tracks_pending:
            return
        if case.id in self._pending:
            self.policy.add_pending(*self._pending.pop(case.id), -1)
        if case.status != "pending" or exclusion_reason(case, self.config):
            return
        problem = self.config.problem
        if case.arm in problem.arms and {*case.context} == {*problem.context}:
            self._pending[case.id] = case.arm, {**case.context}
            self.policy.add_pending(case.arm, case.context, 1)

    def _learn_import(self, number: int) -> None:
        batch, left_out = unpack(self._read_import(number), self.config.problem)
        self._imports_left_out.update(left_out)
        has_reward = batch.codes[self.config.problem.reward_position] != MISSING
        self.imported_arms.update(batch.take(has_reward).arms()[0])
        numbers = number * PAST + np.arange(len(batch))
        usable, reasons = self.policy.usable_mask(batch, numbers)
        self._imports_left_out.update(reasons)
        if not usable.all():
            batch, numbers = batch.take(np.flatnonzero(usable)), numbers[usable]
        if self._arrivals is not None:
            self._arrivals.extend(batch, number * PLACES_PER_EVENT)
        self.policy.learn_many(batch, numbers)


def record_of(case: Case, config: ExperimentConfig) -> Record | str:
    """Convert a case to a record of the problem, by label; return the reason if that fails."""
    problem, reason = config.problem, exclusion_reason(case, config)
    if reason is not None:
        return reason
    for name in case.arm:
        if name == problem.reward:
            return f"{case.arm} set {name}, which is the reward now"
        if name not in problem.domains:
            return f"{case.arm} set {name}, which is no longer recorded"
    labels = {name: label for name, label in case.known.items() if name in problem.domains}
    return past_record(problem, case.arm, labels, case.id)


def exclusion_reason(case: Case, config: ExperimentConfig) -> str | None:
    """Return why a case is never learned from, whatever its values; None if it may be."""
    if case.is_restricted and not config.learn_restricted:
        return RESTRICTED
    return PLAYED_OTHERWISE if case.played is not None and not case.is_unrelated else None
