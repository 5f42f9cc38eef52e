"""A journal that is held open: what it amounts to so far, and writing to it in single steps."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Any

from dowise.belief import Belief
from dowise.errors import ConflictError, DowiseError
from dowise.experiment.case import Case
from dowise.experiment.event import Event
from dowise.experiment.facts import Facts
from dowise.experiment.learner import Learner
from dowise.experiment.looking import looker
from dowise.experiment.maker import actor_of, time_after
from dowise.experiment.snapshots import Draft, facts_of_snapshot
from dowise.experiment.storage.contract import Storage, Writing
from dowise.policies.policy import BayesianPolicy, Policy

__all__ = ["Journal", "Step"]


class Step:
    """An experiment while nobody else can write to it: what is known, and what appends to it."""

    def __init__(self, journal: Journal, facts: Facts, writing: Writing) -> None:
        self.facts, self.has_written = facts, False
        self._journal, self._writing = journal, writing

    def write(self, kind: str, page: Mapping[str, Any]) -> Event:
        """Append an event: its kind, and what it says."""
        facts, journal = self.facts, self._journal
        at = time_after(facts.at, journal.accept_clock)
        event = Event.after(facts.head, facts.name, kind, at, journal.actor, page)
        self.has_written = True
        self._writing.append([event])
        facts.apply(event)
        return event

    def erase(self, case: Case, reason: str) -> None:
        """Blank all events of a decision, and say so; once more, only clean up what is left."""
        numbers = [] if case.status == "erased" else [
            event.number
            for event in self._writing.read()
            if not event.is_erased and event.says.get("decision") == case.id
        ]  # fmt: skip
        self._writing.erase(numbers)
        if numbers:
            self.write("erased", {"decision": case.id, "reason": reason, "events": numbers})


class Journal:
    """The events of one experiment, folded, and the policy that follows them.

    Every use first takes in what others have written since. A step that fails leaves no trace: what
    was folded of it is forgotten and read again.
    """

    def __init__(
        self, storage: Storage, name: str, actor: str | None = None, accept_clock: bool = False
    ) -> None:
        self.storage, self.name = storage, name
        self.actor = actor_of(actor)
        self.lock = RLock()
        """Held by whoever reads or changes what is folded."""
        self.accept_clock = accept_clock
        self._facts: Facts | None = None
        self._learner: Learner | None = None
        self._lookers: dict[bool, Learner] = {}  # without and with evidence
        _ALL.add(self)

    def facts(self) -> Facts:
        """What the journal amounts to as of now."""
        with self.lock:
            if self._facts is None:
                self._facts = facts_of_snapshot(self.storage, self.name) or Facts(self.name)
            self._take_in(self.storage.read(self.name, _number(self._facts)))
            return self._facts

    @contextmanager
    def writing(self, is_new: bool = False) -> Iterator[Step]:
        """Hold the experiment for one step."""
        with self.lock:
            step, facts = None, Facts(self.name) if is_new else self._facts or self.facts()
            self._facts = facts
            try:
                with self.storage.writing(self.name, None if is_new else self._go_on) as writing:
                    events = writing.read(_number(facts))
                    if is_new and events:
                        raise ConflictError(
                            f"there is an experiment {self.name!r} in {self.storage} already: "
                            "choose another name, or go on with it"
                        )
                    self._take_in(events)
                    step = Step(self, facts, writing)
                    yield step
            except BaseException as error:
                is_stopped = not isinstance(error, DowiseError)  # perhaps in the middle of a fold
                if is_new or is_stopped or (step is not None and step.has_written):
                    self._forget()
                raise

    def _go_on(self) -> None:
        """Fold and learn what others write while one waits for them."""
        facts = self.facts()
        if self._learner is not None:
            self.learner()
            facts.sum_up()

    def learner(self) -> Learner:
        """The policy, once it has learned all that was folded so far."""
        assert self._facts is not None
        if self._learner is None or self._learner.plan is not self._facts.plan:
            self._learner = self.follower(self._facts.plan.make())
        self._follow(self._learner)
        return self._learner

    def belief(self, evidence: bool = False) -> Belief:
        """What is known of all that was folded so far, whoever decides: not to be changed."""
        own = self.learner()
        if isinstance(own.policy, BayesianPolicy) and not evidence:
            return own.policy.belief
        assert self._facts is not None
        kept = self._lookers.get(evidence)
        if kept is None or kept.plan is not self._facts.plan:
            kept = self._lookers[evidence] = self.follower(looker(self._facts.plan, evidence))
        self._follow(kept)
        assert isinstance(kept.policy, BayesianPolicy)
        return kept.policy.belief

    def _follow(self, learner: Learner) -> None:
        """Let it learn; one that was stopped half-way is forgotten."""
        assert self._facts is not None
        try:
            learner.follow(self._facts)
        except BaseException:
            self._learner = None
            self._lookers.clear()
            raise

    def follower(self, policy: Policy) -> Learner:
        """Another policy, which is to follow the same journal."""
        assert self._facts is not None
        return Learner(self._facts.plan, policy, self.columns)

    def columns(self, number: int) -> dict[str, Any]:
        """The records that an event brought in."""
        columns: dict[str, Any] = self.event(number).says["columns"]
        return columns

    def event(self, number: int) -> Event:
        """One event by its number."""
        (event,) = self.storage.read(self.name, after=number - 1, upto=number)
        return event

    def keep(self, draft: Draft | None) -> None:
        """Keep a snapshot, outside of any step."""
        if draft is not None:
            self.storage.keep_snapshot(draft.snapshot())

    def _take_in(self, events: list[Event]) -> None:
        assert self._facts is not None
        try:
            self._facts.apply_all(events)
        except BaseException:
            self._forget()
            raise

    def begin_anew(self) -> None:
        """In a forked child: another thread may have held the lock, in the middle of a fold."""
        self.lock = RLock()
        self._forget()

    def _forget(self) -> None:
        self._facts = self._learner = None
        self._lookers.clear()


_ALL: weakref.WeakSet[Journal] = weakref.WeakSet()


def _begin_anew() -> None:
    for journal in list(_ALL):
        journal.begin_anew()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_begin_anew)


def _number(facts: Facts) -> int:
    return 0 if facts.head is None else facts.head.number
