"""A journal that is held open: what it amounts to so far, and stored to it in single steps."""

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
from dowise.experiment.event import Event, next_event, next_timestamp
from dowise.experiment.read_model import ReadModel
from dowise.experiment.replay import PolicyReplay
from dowise.experiment.state import ExperimentState
from dowise.experiment.storage.base import TIMEOUT, Snapshot, Storage, StorageTransaction

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


def prepare_snapshot(state: ExperimentState) -> Draft | None:
    """The cases as of now, if the decision that comes next is the first behind a due number."""
    assert state.head is not None
    if _period(state.head.number + 1) == _period(state.last_asked):
        return None
    return Draft(state.name, *state.head, "\n".join(state.snapshot_rows().values()))


def _period(number: int) -> int:
    return -1 if number < _FIRST else int(log(number / _FIRST) / log(_GROWTH))


def restore_state(storage: Storage, name: str) -> ExperimentState | None:
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
        return _state(storage, snapshot, last, decision.payload["known"])
    except (DowiseError, KeyError, TypeError, ValueError, AttributeError, RecursionError,
            zlib.error):  # fmt: skip
        return None


def _state(
    storage: Storage, snapshot: Snapshot, last: Event, known: dict[str, Any]
) -> ExperimentState | None:
    state = ExperimentState(snapshot.experiment)
    for event in storage.read(
        state.name, upto=snapshot.number, kinds=("created", "revised", "imported")
    ):
        before = storage.read(state.name, after=event.number - 2, upto=event.number - 1)
        if not event.follows(before[0] if before else None):
            return None
        state.apply(event)
    text = _unpacked(snapshot.body)
    state.restore(text.split("\n") if text else [])
    if known["event"] != snapshot.number or known["cases"] != state.digest():
        return None
    state.head, state.at = last.head, last.at
    state.maker = {}  # so that the next decision says again what it was made by
    return state


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
        state: ExperimentState,
        stored: StorageTransaction,
        actor: str,
        held: ExitStack,
    ) -> None:
        self.state, self.has_written = state, False
        self._journal, self._stored, self._actor, self._held = journal, stored, actor, held

    def write(self, kind: str, page: Mapping[str, Any]) -> Event:
        """Append an event: its kind, and what it says."""
        state, journal = self.state, self._journal
        at = next_timestamp(state.at, journal.accept_clock)
        event = next_event(state.head, state.name, kind, at, self._actor, page)
        if not self.has_written:
            self._held.enter_context(journal.lock)
        self.has_written = True
        self._stored.append([event])
        state.apply(event)
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
        self._state: ExperimentState | None = None
        self._learner: PolicyReplay | None = None
        self.last_view: Any = None
        """The `StateView` that was taken last, for others that ask for the same moment."""
        self._warmed: ExperimentConfig | None = None
        self._make_locks()
        _ALL.add(self)

    def _make_locks(self) -> None:
        self._turn = RLock()
        self.lock = RLock()
        """Held by whoever reads or changes what is folded."""
        self.read_model = ReadModel(self)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Held by whoever writes, all through a step; others wait a minute, as for the store.

        Would they wait for ever, those behind a store that can't be had would wait in a row.
        """
        turn = self._turn
        if not turn.acquire(timeout=TIMEOUT):
            raise UnavailableError(
                f"{self.name!r} can't be written: others of this program have held it for "
                f"{TIMEOUT:g} seconds; try again later"
            )
        try:
            yield
        finally:
            turn.release()

    @contextmanager
    def looking(self, events: list[Event] | None = None) -> Iterator[ExperimentState]:
        """What the journal amounts to as of now, which stands still meanwhile: be quick.

        `events` were read already, the newest among them; by default the new ones are read.
        """
        known = self._state
        if known is not None and (events is None or events[0].number > _number(known) + 1):
            events = self.storage.read(self.name, _number(known))
        with self.lock:
            if known is None or known is not self._state:  # or it was forgotten meanwhile
                yield self._read_on()
            else:
                self._take_in(events or [])
                yield known

    @contextmanager
    def replayed(self) -> Iterator[tuple[ExperimentState, PolicyReplay]]:
        """Hold what is folded and the policy that has learned it, without a read of the store."""
        with self.lock:
            state = self._state or self._read_on()
            yield state, self.learner()

    @property
    def known_number(self) -> int:
        """The number of the last event that was folded; 0 before the first read."""
        state = self._state
        return 0 if state is None else _number(state)

    def state(self) -> ExperimentState:
        """What the journal amounts to as of now."""
        with self.looking() as state:
            return state

    def _read_on(self) -> ExperimentState:
        if self._state is None:
            self._state = restore_state(self.storage, self.name) or ExperimentState(self.name)
        state = self._state
        self._take_in(self.storage.read(self.name, _number(state)))
        return state

    @contextmanager
    def transaction(self, actor: str, is_new: bool = False) -> Iterator[Transaction]:
        """Hold the experiment for one step, in the name of an actor."""
        with self.turn(), ExitStack() as held:
            step = None
            if not is_new and self._state is None:
                self.state()
            try:
                with self.storage.transaction(self.name, None if is_new else self._go_on) as stored:
                    with self.lock:
                        state = self._beginning() if is_new else self._state or self._read_on()
                        events = stored.read(_number(state))
                        if is_new and events:
                            raise ConflictError(
                                f"there is an experiment {self.name!r} in {self.storage} already: "
                                "choose another name, or go on with it"
                            )
                        self._take_in(events)
                    step = Transaction(self, state, stored, actor, held)
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
        with self.storage.transaction(self.name, self._go_on) as stored:
            state = self.state()
            case = state.case(number)
            blank = [] if case.status == "erased" else [
                event.number
                for event in stored.read(case.event - 1)
                if str(case.id) in event.body  # few are worth parsing
                and not event.is_erased and event.payload.get("decision") == case.id
            ]  # fmt: skip
            stored.erase(blank)
            if blank:
                page = {"decision": case.id, "reason": reason, "events": blank}
                at = next_timestamp(state.at, self.accept_clock)
                stored.append([next_event(state.head, self.name, "erased", at, actor, page)])
        return bool(blank)

    def _beginning(self) -> ExperimentState:
        self._state = ExperimentState(self.name)
        return self._state

    def _go_on(self) -> None:
        """Fold and learn what others write while one waits for them."""
        with self.looking() as state:
            if self._learner is not None:
                self.learner()
                state.refresh_digest()

    # -- who follows it, under the lock ---------------------------------------------------------

    def learner(self) -> PolicyReplay:
        """The policy, once it has learned all that was folded so far."""
        assert self._state is not None
        config = self._state.config
        if self._learner is None or self._learner.config is not config:
            self._learner = PolicyReplay(config, config.make_policy(), self.columns)
        try:
            self._learner.sync(self._state)
        except BaseException:  # perhaps half-way
            self._learner = None
            raise
        return self._learner

    # -- besides --------------------------------------------------------------------------------

    def warm_up(self) -> None:
        """Compile and load what a decision needs before anybody holds the store for it.

        Once for each config, whoever asks. Looks wait, since they may let the policy learn.
        """
        with self.looking() as state:
            if self._warmed is not state.config:
                problem, policy = state.config.problem, self.learner().policy
                policy.decide({name: problem.domains[name][0] for name in problem.context}, 0)
                self._warmed = state.config

    def columns(self, number: int) -> dict[str, Any]:
        """The records that an event brought in."""
        columns: dict[str, Any] = self.event(number).payload["columns"]
        return columns

    def event(self, number: int) -> Event:
        """One event by its number."""
        (event,) = self.storage.read(self.name, after=number - 1, upto=number)
        return event

    def keep(self, draft: Draft | None) -> None:
        """Keep a snapshot, outside of any step."""
        if draft is not None:
            self.storage.save_snapshot(draft.snapshot())

    def _take_in(self, events: list[Event]) -> None:
        """Fold what is new of these."""
        assert self._state is not None
        known = _number(self._state)
        try:
            self._state.apply_all(event for event in events if event.number > known)
        except BaseException:
            self._forget()
            raise

    def reset_after_fork(self) -> None:
        """In a forked child: another thread may have held a lock, in the middle of a fold."""
        self._make_locks()
        self._forget()

    def _forget(self) -> None:
        self._state = self._learner = None


_ALL: weakref.WeakSet[Journal] = weakref.WeakSet()


def _begin_anew() -> None:
    for journal in list(_ALL):
        journal.reset_after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_begin_anew)


def _number(state: ExperimentState) -> int:
    return 0 if state.head is None else state.head.number
