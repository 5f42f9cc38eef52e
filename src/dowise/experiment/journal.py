"""The journal of one experiment: its events, folded into a state and extended in transactions."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import RLock
from typing import Any

from dowise.errors import ConflictError, DowiseError, UnavailableError
from dowise.experiment.config import ExperimentConfig
from dowise.experiment.event import Event, next_event, next_timestamp
from dowise.experiment.read_model import ReadModel
from dowise.experiment.record_columns import read_import
from dowise.experiment.replay import PolicyReplay
from dowise.experiment.snapshots import SnapshotDraft, is_snapshot_due, restore_state
from dowise.experiment.state import ExperimentState
from dowise.experiment.storage.base import TIMEOUT, Storage, StorageTransaction


class Journal:
    """The events of one experiment: folded, and extended in transactions.

    Each read and each transaction first applies the events that others have written. If a
    transaction fails, what was applied of it is discarded and read again.

    Any number of threads may share a journal. There are two locks. The write lock is held for a
    whole transaction. The state lock protects the state and the policy. It is held briefly, so that
    readers wait neither for decisions nor for the store; and from the first event that a
    transaction appends until that event is durable or discarded, so that no reader sees an event
    that may be discarded. A thread that needs several locks takes that of the read model first,
    then the write lock, then the state lock.

    Parameters
    ----------
    storage : Storage
        The store.
    name : str
        Name of the experiment.
    accept_clock : bool, default False
        Continue although the clock of this machine is behind the last event.
    """

    def __init__(self, storage: Storage, name: str, accept_clock: bool = False) -> None:
        self.storage, self.name = storage, name
        self.accept_clock = accept_clock
        self.last_view: Any = None
        """The last `StateView`, to be shared by callers at the same head."""
        self.compiled: ExperimentConfig | None = None
        """The configuration whose policy has been compiled (`compile_policy`)."""
        self.reset_after_fork()
        _JOURNALS.add(self)

    def reset_after_fork(self) -> None:
        """Make new locks: another thread of the parent process may have held one of them."""
        self._write_lock, self._state_lock = RLock(), RLock()
        self.read_model = ReadModel(self)
        self._invalidate()

    def _invalidate(self) -> None:
        """Discard the state and the policy; they are read and learned again."""
        self._state: ExperimentState | None = None
        self._copy: ExperimentState | None = None
        self._replay: PolicyReplay | None = None

    # -- reading --------------------------------------------------------------------------------

    def read(self, events: list[Event] | None = None) -> ExperimentState:
        """Return a copy of the current state that never changes, one copy for each head.

        Parameters
        ----------
        events : list of Event, optional
            The newest events of the store, if they were just read; otherwise it is read.
        """
        with self._caught_up(events) as state:
            if self._copy is None or self._copy.head != state.head:
                self._copy = state.copy()
            return self._copy

    @contextmanager
    def _caught_up(self, events: list[Event] | None = None) -> Iterator[ExperimentState]:
        """Apply all committed events, and hold the state lock."""
        state = self._state
        if state is not None and (not events or events[0].number > state.number + 1):
            events = self.storage.read(self.name, state.number)
        with self._state_lock:
            if state is None or state is not self._state:  # it was discarded in the meantime
                yield self._load()
            else:
                self._apply(events or [])
                yield state

    @contextmanager
    def replayed(self) -> Iterator[tuple[ExperimentState, PolicyReplay]]:
        """Bring the policy up to the state without reading the store; hold the state lock."""
        with self._state_lock:
            state = self._state or self._load()
            yield state, self._sync_replay(state)

    @property
    def last_number(self) -> int:
        """Number of the last event that was applied; 0 before the first read."""
        state = self._state
        return 0 if state is None else state.number

    def event(self, number: int) -> Event:
        """Return one event."""
        (event,) = self.storage.read(self.name, after=number - 1, upto=number)
        return event

    def read_import(self, number: int) -> dict[str, Any]:
        """Return the columns that an event imported, as `record_columns.pack` made them."""
        return read_import(self.storage, self.name, number)

    def _load(self) -> ExperimentState:
        if self._state is None:
            self._state = restore_state(self.storage, self.name) or ExperimentState(self.name)
        state = self._state
        self._apply(self.storage.read(self.name, state.number))
        return state

    def _apply(self, events: list[Event]) -> None:
        """Apply the new ones of these events."""
        assert self._state is not None
        number = self._state.number
        try:
            self._state.apply_all(event for event in events if event.number > number)
        except BaseException:  # an event may be applied in part
            self._invalidate()
            raise

    def _sync_replay(self, state: ExperimentState) -> PolicyReplay:
        """Return the policy after it has learned everything in the state. Needs the state lock."""
        replay, config = self._replay, state.config
        self._replay = None  # if this is interrupted, it is made again
        if replay is None or replay.config is not config:
            replay = PolicyReplay(config, config.make_policy(), self.read_import)
        replay.sync(state)
        self._replay = replay
        return replay

    # -- writing --------------------------------------------------------------------------------

    @contextmanager
    def transaction(self, actor: str, is_new: bool = False) -> Iterator[Transaction]:
        """Open a write transaction; all of its events are stored, or none.

        Parameters
        ----------
        actor : str
            Name recorded with the events.
        is_new : bool, default False
            Create the experiment. Raises `ConflictError` if it exists.
        """
        write_lock, state_lock = self._write_lock, self._state_lock
        if not write_lock.acquire(timeout=TIMEOUT):
            raise self._busy()
        tx = None
        try:
            if self._state is None and not is_new:
                self.read()
            with self.storage.transaction(self.name, None if is_new else self._prefetch) as stored:
                with state_lock:
                    if is_new:
                        self._state = ExperimentState(self.name)
                    state = self._state or self._load()
                    events = stored.read(0 if state.head is None else state.head.number)
                    if events:
                        if is_new:
                            raise ConflictError(
                                f"there is an experiment {self.name!r} in {self.storage} already: "
                                "choose another name, or open it",
                                code="duplicate-name",
                            )
                        self._apply(events)
                tx = Transaction(self, state, stored, actor)
                yield tx
        except BaseException as error:
            is_interrupted = not isinstance(error, DowiseError)  # perhaps amid a change
            if is_new or is_interrupted or (tx is not None and tx.has_written):
                with state_lock:
                    self._invalidate()
            raise
        finally:
            if tx is not None and tx.has_written:
                with suppress(RuntimeError):  # interrupted before it was acquired
                    state_lock.release()
            write_lock.release()
        if tx.snapshot is not None:
            self.storage.save_snapshot(tx.snapshot.compress())

    def _busy(self) -> UnavailableError:
        """Return the error after a timeout of the write lock.

        The timeout is that of the store: otherwise threads behind a store that is held by another
        process would each wait for the timeouts of all threads before them.
        """
        return UnavailableError(
            f"{self.name!r} can't be written: other threads of this program have held it for "
            f"{TIMEOUT:g} seconds; try again later",
            code="store-busy",
        )

    def _prefetch(self) -> None:
        """Apply and learn what others have written, while this process waits for them."""
        with self._caught_up() as state:
            if self._replay is not None:
                self._sync_replay(state)
                state.refresh_digest()

    def compile_policy(self) -> None:
        """Compile and load what a decision needs, once per configuration, outside a transaction.

        Readers wait during that time, because they may let the policy learn.
        """
        write_lock = self._write_lock
        if not write_lock.acquire(timeout=TIMEOUT):
            raise self._busy()
        try:
            with self._caught_up() as state:
                if self.compiled is not state.config:
                    problem, policy = state.config.problem, self._sync_replay(state).policy
                    policy.decide({name: problem.domains[name][0] for name in problem.context}, 0)
                    self.compiled = state.config
        finally:
            write_lock.release()

    def erase(self, number: int, actor: str, reason: str) -> bool:
        """Blank all events of a decision, and append an `erased` event.

        Returns True if there was something to blank; otherwise only old copies are removed. That
        may take the store a minute, so the write lock is not held, and nothing is applied: the next
        reader applies the new event.
        """
        with self.storage.transaction(self.name, self._prefetch) as stored:
            state = self.read()
            case = state.case(number)
            blank = []
            if case.status != "erased":
                blank = [
                    event.number
                    for event in stored.read(case.event - 1)
                    if str(case.id) in event.body  # few are worth parsing
                    and not event.is_erased
                    and event.payload.get("decision") == case.id
                ]
            stored.erase(blank)
            if blank:
                payload = {"decision": case.id, "reason": reason, "events": blank}
                at = next_timestamp(state.at, self.accept_clock)
                stored.append([next_event(state.head, self.name, "erased", at, actor, payload)])
        return bool(blank)


@dataclass
class Transaction:
    """Open write transaction on one experiment.

    From the first event that it appends, readers wait until the transaction has ended.
    """

    _journal: Journal
    state: ExperimentState
    _stored: StorageTransaction
    _actor: str
    has_written: bool = False
    snapshot: SnapshotDraft | None = None
    """A snapshot that is due, to be saved when the transaction has ended."""

    def append(self, kind: str, payload: Mapping[str, Any]) -> Event:
        """Append an event, and apply it to the state."""
        state, journal = self.state, self._journal
        at = next_timestamp(state.at, journal.accept_clock)
        event = next_event(state.head, state.name, kind, at, self._actor, payload)
        if kind == "asked" and is_snapshot_due(event.number, state.last_asked):
            self.snapshot = SnapshotDraft.from_state(state)
        if not self.has_written:
            self.has_written = True
            journal._state_lock.acquire()
        self._stored.append([event])
        state.apply(event)
        return event

    def replay(self) -> PolicyReplay:
        """Return the policy, after it has learned everything in the state."""
        with self._journal._state_lock:
            return self._journal._sync_replay(self.state)


# -- forks --------------------------------------------------------------------------------------

_JOURNALS: weakref.WeakSet[Journal] = weakref.WeakSet()


def _reset_after_fork() -> None:
    for journal in list(_JOURNALS):
        journal.reset_after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_reset_after_fork)
