"""A journal that is held open: what it amounts to so far, and writing to it in single steps."""

from __future__ import annotations

import os
import weakref
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from math import log
from threading import RLock
from typing import Any, NamedTuple

from dowise.errors import ConflictError, DowiseError, UnavailableError
from dowise.experiment.config import ExperimentConfig
from dowise.experiment.counters import DecisionCounters
from dowise.experiment.event import Event, time_after
from dowise.experiment.read_model import ReadModel
from dowise.experiment.replay import PolicyReplay
from dowise.experiment.state import ExperimentState
from dowise.experiment.storage.base import TIMEOUT as PATIENCE
from dowise.experiment.storage.base import Snapshot, Storage
from dowise.experiment.storage.base import StorageTransaction as Writing

_FIRST, _GROWTH = 256, 1.0625  # events at the first snapshot; how many times more at the next
_LARGEST = 2**31  # bytes of a snapshot, unpacked


class Draft(NamedTuple):
    """A snapshot that is yet to be packed, which need not be done while others wait."""

    experiment: str
    number: int
    hash: str
    rows: str

    def snapshot(self) -> Snapshot:
        """The snapshot itself."""
        packed = zlib.compress(self.rows.encode(), 1)
        return Snapshot(self.experiment, self.number, self.hash, packed)


def draft_of(facts: ExperimentState) -> Draft | None:
    """The cases as of now, if the decision that comes next is the first behind a due number."""
    assert facts.head is not None
    if _period(facts.head.number + 1) == _period(facts.last_asked):
        return None
    return Draft(facts.name, *facts.head, "\n".join(facts.rows.values()))


def _period(number: int) -> int:
    return -1 if number < _FIRST else int(log(number / _FIRST) / log(_GROWTH))


def facts_of_snapshot(storage: Storage, name: str) -> ExperimentState | None:
    """What the snapshot of an experiment says, or None where there is none that is right."""
    snapshot = storage.snapshot(name)
    if snapshot is None:
        return None
    around = storage.read(name, after=snapshot.number - 1, upto=snapshot.number + 1)
    if [event.number for event in around] != [snapshot.number, snapshot.number + 1]:
        return None
    last, decision = around
    if last.hash != snapshot.hash or not decision.follows(last) or decision.is_erased:
        return None
    try:
        return _facts(storage, snapshot, last, decision.says["known"])
    except (DowiseError, KeyError, TypeError, ValueError, AttributeError, RecursionError,
            zlib.error):  # fmt: skip
        return None


def _facts(
    storage: Storage, snapshot: Snapshot, last: Event, known: dict[str, Any]
) -> ExperimentState | None:
    facts = ExperimentState(snapshot.experiment)
    for event in storage.read(
        facts.name, upto=snapshot.number, kinds=("created", "revised", "imported")
    ):
        before = storage.read(facts.name, after=event.number - 2, upto=event.number - 1)
        if not event.follows(before[0] if before else None):
            return None
        facts.apply(event)
    text = _unpacked(snapshot.body)
    facts.restore(text.split("\n") if text else [])
    if known["event"] != snapshot.number or known["cases"] != f"{facts.marks:032x}":
        return None
    facts.head, facts.at = last.head, last.at
    facts.maker = {}  # so that the next decision says again what it was made by
    return facts


def _unpacked(body: bytes) -> str:
    tool = zlib.decompressobj()
    text = tool.decompress(body, _LARGEST)
    if not tool.eof:
        raise ValueError("too large, or cut")
    return text.decode()


class Transaction:
    """An experiment while nobody else can write to it: what is known, and what appends to it.

    Others may look at what is folded until it first writes; then they wait until that is durable,
    or forgotten.
    """

    def __init__(
        self,
        journal: Journal,
        facts: ExperimentState,
        writing: Writing,
        actor: str,
        held: ExitStack,
    ) -> None:
        self.facts, self.has_written = facts, False
        self._journal, self._writing, self._actor, self._held = journal, writing, actor, held

    def write(self, kind: str, page: Mapping[str, Any]) -> Event:
        """Append an event: its kind, and what it says."""
        facts, journal = self.facts, self._journal
        at = time_after(facts.at, journal.accept_clock)
        event = Event.after(facts.head, facts.name, kind, at, self._actor, page)
        if not self.has_written:
            self._held.enter_context(journal.lock)
        self.has_written = True
        self._writing.append([event])
        facts.apply(event)
        return event

    def learner(self) -> PolicyReplay:
        """The policy, once it has learned all that was folded so far."""
        with self._journal.lock:
            return self._journal.learner()


class Journal:
    """The events of one experiment, folded, and the policy that follows them.

    Every use first takes in what others have written since. A step that fails leaves no trace: what
    was folded of it is forgotten and read again. Any number of threads share it. One of them at a
    time writes, and has the `turn`; `lock` is held for moments only, so that looks wait neither for
    decisions nor for the store. Who needs several takes a looker first, then the turn, then the
    lock.
    """

    def __init__(self, storage: Storage, name: str, accept_clock: bool = False) -> None:
        self.storage, self.name = storage, name
        self.accept_clock = accept_clock
        self._facts: ExperimentState | None = None
        self._learner: PolicyReplay | None = None
        self._tally: DecisionCounters | None = None
        self._warmed: ExperimentConfig | None = None
        self._make_locks()
        _ALL.add(self)

    def _make_locks(self) -> None:
        self._turn = RLock()
        self.lock = RLock()
        """Held by whoever reads or changes what is folded."""
        self.looker = ReadModel(self.columns, evidence=False)
        """For looks, where the policy itself has no belief."""
        self.weigher = ReadModel(self.columns, evidence=True)
        """For the evidence against the graph."""

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Held by whoever writes, all through a step; others wait a minute, as for the store.

        Would they wait for ever, those behind a store that can't be had would wait in a row.
        """
        turn = self._turn
        if not turn.acquire(timeout=PATIENCE):
            raise UnavailableError(
                f"{self.name!r} can't be written: others of this program have held it for "
                f"{PATIENCE:g} seconds; try again later"
            )
        try:
            yield
        finally:
            turn.release()

    @contextmanager
    def looking(self) -> Iterator[ExperimentState]:
        """What the journal amounts to as of now, which stands still meanwhile: be quick."""
        known = self._facts
        fresh = [] if known is None else self.storage.read(self.name, _number(known))
        with self.lock:
            if known is None or known is not self._facts:  # or it was forgotten meanwhile
                yield self._read_on()
            else:
                self._take_in(fresh)
                yield known

    def facts(self) -> ExperimentState:
        """What the journal amounts to as of now."""
        with self.looking() as facts:
            return facts

    def _read_on(self) -> ExperimentState:
        if self._facts is None:
            self._facts = facts_of_snapshot(self.storage, self.name) or ExperimentState(self.name)
        facts = self._facts
        self._take_in(self.storage.read(self.name, _number(facts)))
        return facts

    @contextmanager
    def writing(self, actor: str, is_new: bool = False) -> Iterator[Transaction]:
        """Hold the experiment for one step, in the name of an actor."""
        with self.turn(), ExitStack() as held:
            step = None
            if not is_new and self._facts is None:
                self.facts()
            try:
                with self.storage.writing(self.name, None if is_new else self._go_on) as writing:
                    with self.lock:
                        facts = self._beginning() if is_new else self._facts or self._read_on()
                        events = writing.read(_number(facts))
                        if is_new and events:
                            raise ConflictError(
                                f"there is an experiment {self.name!r} in {self.storage} already: "
                                "choose another name, or go on with it"
                            )
                        self._take_in(events)
                    step = Transaction(self, facts, writing, actor, held)
                    yield step
            except BaseException as error:
                is_stopped = not isinstance(error, DowiseError)  # perhaps in the middle of a fold
                if is_new or is_stopped or (step is not None and step.has_written):
                    with self.lock:
                        self._forget()
                raise

    def erase(self, number: int, actor: str, reason: str) -> bool:
        """Blank all events of a decision, and say so; once more, only clean up what is left.

        Whether there was something to blank. To let go of old copies may take the store a minute,
        so nobody waits for this: it has no turn, and folds nothing. Who looks next reads what it
        wrote.
        """
        with self.storage.writing(self.name, self._go_on) as writing:
            facts = self.facts()
            case = facts.case(number)
            blank = [] if case.status == "erased" else [
                event.number
                for event in writing.read(case.event - 1)
                if str(case.id) in event.body  # few are worth parsing
                and not event.is_erased and event.says.get("decision") == case.id
            ]  # fmt: skip
            writing.erase(blank)
            if blank:
                page = {"decision": case.id, "reason": reason, "events": blank}
                at = time_after(facts.at, self.accept_clock)
                writing.append([Event.after(facts.head, self.name, "erased", at, actor, page)])
        return bool(blank)

    def _beginning(self) -> ExperimentState:
        self._facts = ExperimentState(self.name)
        return self._facts

    def _go_on(self) -> None:
        """Fold and learn what others write while one waits for them."""
        with self.looking() as facts:
            if self._learner is not None:
                self.learner()
                facts.sum_up()

    # -- who follows it, under the lock ---------------------------------------------------------

    def learner(self) -> PolicyReplay:
        """The policy, once it has learned all that was folded so far."""
        assert self._facts is not None
        plan = self._facts.plan
        if self._learner is None or self._learner.plan is not plan:
            self._learner = PolicyReplay(plan, plan.make(), self.columns)
        self._follow(self._learner)
        return self._learner

    def tally(self) -> DecisionCounters:
        """The decisions that were folded so far, counted."""
        assert self._facts is not None
        if self._tally is None or self._tally.plan is not self._facts.plan:
            self._tally = DecisionCounters(self._facts.plan)
        self._follow(self._tally)
        return self._tally

    def _follow(self, follower: PolicyReplay | DecisionCounters) -> None:
        """Let it catch up; one that was stopped half-way is forgotten."""
        assert self._facts is not None
        try:
            follower.follow(self._facts)
        except BaseException:
            self._learner = self._tally = None
            raise

    # -- besides --------------------------------------------------------------------------------

    def warm_up(self) -> None:
        """Compile and load what a decision needs before anybody holds the store for it.

        Once for each plan, whoever asks. Looks wait, since they may let the policy learn.
        """
        with self.looking() as facts:
            if self._warmed is not facts.plan:
                problem, policy = facts.plan.problem, self.learner().policy
                policy.decide({name: problem.domains[name][0] for name in problem.context}, 0)
                self._warmed = facts.plan

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
        """Fold what is new of these."""
        assert self._facts is not None
        known = _number(self._facts)
        try:
            self._facts.apply_all(event for event in events if event.number > known)
        except BaseException:
            self._forget()
            raise

    def begin_anew(self) -> None:
        """In a forked child: another thread may have held a lock, in the middle of a fold."""
        self._make_locks()
        self._forget()

    def _forget(self) -> None:
        self._facts = self._learner = self._tally = None


_ALL: weakref.WeakSet[Journal] = weakref.WeakSet()


def _begin_anew() -> None:
    for journal in list(_ALL):
        journal.begin_anew()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_begin_anew)


def _number(facts: ExperimentState) -> int:
    return 0 if facts.head is None else facts.head.number
