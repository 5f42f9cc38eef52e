"""The contract of a store of journals. Test a custom store against it with `check_storage`.

**Durability.** When a `transaction` ends without an error, all events that were appended in it are
stored together and permanently, whatever happens to the process or the machine afterwards. When it
ends with an error, or the process dies inside it, none of them is stored. A snapshot may be lost at
any time.

**Isolation.** At most one transaction per experiment is open at a time, over all threads, processes
and machines. Other writers wait for it, and raise a `DowiseError` after a minute. A thread that
holds a transaction and opens another one on the same experiment would wait for itself; this is
refused immediately, and a store may also refuse other experiments to such a thread. A transaction
belongs to its process: a forked child can't use it. `StorageTransaction.read` returns all committed
events, and no other writer can add any before the transaction ends, so that numbering, folding and
appending are one step. `read`, `last` and `experiments` never wait for writers and never block
them. They return only committed events, without gaps: after a caller has read an event, it can
always read that event and all earlier ones.

**Immutability.** Events are appended in the order of their numbers, 1, 2, …, and are never changed
or removed, except by `StorageTransaction.erase`, which replaces events with `Event.erased()`. When
that transaction ends, the erased contents can't be read from the store, its files contain no trace
of them, and the experiment has no snapshot. The caller appends an `erased` event in the same
transaction; from then on no snapshot of an earlier event is stored, so that a process that folded
the journal before can't bring the contents back. If old copies can't be removed immediately, for
example because another process is reading the file, the transaction ends with a `DowiseError`: the
erasure is recorded nevertheless, and erasing the same events again completes it. A database server
discards its own old copies (dead rows, write-ahead log, backups) by its own rules.

**Scope.** A store neither folds events nor verifies their hashes. It refuses an event whose number
is not the next one, or that belongs to another experiment, and then the transaction is as it was
before the call. An experiment that does not exist has no events. A store never imports code and
never opens a file that an event names. Failures are readable `DowiseError`s without passwords, and
they leave the store intact. If a connection is lost while a transaction ends, either all of its
events are stored or none, and the error asks the caller to check; the same holds for Ctrl-C at that
moment. All methods may be called by several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from dowise.errors import DowiseError
from dowise.experiment.event import Event

TIMEOUT = 60.0  # seconds: the minute of the contract
HOW_TO_CREATE = "dowise new STORE PROBLEM, or Experiment.create in Python"
WITHOUT_WAL = "was it copied without its -wal file, which has the newest events?"


class Snapshot(NamedTuple):
    """State of an experiment after a number of events, so that fewer of them need to be read."""

    experiment: str
    number: int
    hash: str
    """Hash of the event with this number."""
    body: bytes


class StorageTransaction(Protocol):
    """Open write transaction on one experiment."""

    def read(self, after: int = 0) -> list[Event]:
        """Return all events with a number above `after`, in order."""

    def append(self, events: Iterable[Event]) -> None:
        """Add the next events; `created` with number 1 creates the experiment."""

    def erase(self, numbers: Collection[int]) -> None:
        """Replace these events with `Event.erased()`, and drop the experiment's snapshots.

        A number that does not exist is refused; an event may be erased more than once.
        """


class Storage(Protocol):
    """Store of journals. One store holds the journals of many experiments."""

    def experiments(self) -> tuple[str, ...]:
        """Return the names of all experiments, sorted."""

    def read(
        self,
        experiment: str,
        after: int = 0,
        upto: int | None = None,
        kinds: Collection[str] | None = None,
    ) -> list[Event]:
        """Return the events with a number above `after` and up to `upto`, in order.

        With `kinds`, return only events of these kinds.
        """

    def last(self, experiment: str) -> Event | None:
        """Return the last event, or None if the experiment does not exist."""

    def transaction(
        self, experiment: str, on_wait: Callable[[], None] | None = None
    ) -> AbstractContextManager[StorageTransaction]:
        """Open a transaction on an experiment, which need not exist; commit when the block ends.

        While the call waits for other writers, the store may call `on_wait` any number of times:
        it can `read` what they have written so far, so that less remains to be read in the block.
        """

    def snapshot(self, experiment: str) -> Snapshot | None:
        """Return the newest snapshot, if any. Callers must verify it."""

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Replace older snapshots with this one, if possible.

        Do nothing if the stored snapshot is newer, if no event of the journal has this number and
        hash, or if an `erased` event follows that event.
        """

    def close(self) -> None:
        """Close files and connections; later calls open them again."""

    def __str__(self) -> str:
        """Return the location of the store, without a password."""


def check_not_nested(label: str, is_held: bool) -> None:
    """Refuse a second transaction inside the first one."""
    if is_held:
        raise DowiseError(
            f"{label} can't be written: this thread already has a transaction on this store and "
            "would wait for itself; end that one first",
            code="transaction-nested",
        )


def check_next(experiment: str, last: int, events: Sequence[Event]) -> None:
    """Refuse events of another experiment, or with numbers that are not the next ones."""
    for number, event in enumerate(events, start=last + 1):
        if event.experiment != experiment:
            raise DowiseError(
                f"an event of {event.experiment!r} can't be appended to {experiment!r}",
                code="conflict",
            )
        if event.number != number:
            raise DowiseError(
                f"event {event.number} can't be appended to {experiment!r}: the next one is "
                f"{number}",
                code="conflict",
            )


def check_exist(experiment: str, numbers: Collection[int], existing: Collection[int]) -> None:
    """Refuse to erase events that do not exist."""
    missing = sorted(set(numbers) - set(existing))
    if missing:
        raise DowiseError(
            f"{experiment!r} has no event {missing[0]}: nothing was erased", code="not-found"
        )


def should_keep(snapshot: Snapshot, journal: Sequence[Event], stored: Snapshot | None) -> bool:
    """Return True if a snapshot belongs to the journal, is the newest, and precedes no erasure.

    `journal` are the events from the snapshot's number on. A process that folded the journal before
    an erasure must not bring back what was erased.
    """
    if not journal or (snapshot.number, snapshot.hash) != (journal[0].number, journal[0].hash):
        return False
    if any(event.kind == "erased" for event in journal[1:]):
        return False
    if stored is None or stored.number <= snapshot.number:
        return True
    hashes = {event.number: event.hash for event in journal}
    return hashes.get(stored.number) != stored.hash
