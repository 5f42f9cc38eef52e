"""Conformance suite for stores of journals."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from dowise.errors import DowiseError
from dowise.experiment.event import Event, next_event
from dowise.experiment.storage.base import Snapshot, Storage
from dowise.testing.contract import Contract

CALL_TIMEOUT = 10.0  # seconds; a call that takes longer is assumed to wait
JOIN_TIMEOUT = 60.0  # seconds; for writers that take turns
WRITERS = 6
EVENTS_PER_WRITER = 8

_CONTRACT = Contract("this storage")
_broken, _require = _CONTRACT.broken, _CONTRACT.require


def check_storage(make: Callable[[], Storage]) -> None:
    """Check that a store keeps the contract of `dowise.experiment.storage.base`.

    The check leaves a few experiments with random names in the store, so use a disposable location.
    It can't check that events survive a crash of the machine, nor that files keep no trace of an
    erased event.

    Parameters
    ----------
    make : callable
        Called twice without arguments; returns a `Storage` at the same location each time: two
        objects if two can be open together, else the same object.

    Raises
    ------
    DowiseError
        If the store breaks the contract ("broken-contract"); the message names the first promise.

    Examples
    --------
    >>> from dowise.experiment.storage import MemoryStorage
    >>> from dowise.testing import check_storage
    >>> storage = MemoryStorage()
    >>> check_storage(lambda: storage)
    """
    first, second = make(), make()
    try:
        for check in _CHECKS:
            check(_Stores(first, second, f"check '{secrets.token_hex(6)}' ÿ☃"))
    except DowiseError:
        raise
    except Exception as error:
        raise _broken(f"it raises {type(error).__name__}: {error}") from error
    finally:
        first.close()
        second.close()


class _Stores(NamedTuple):
    """Two stores at the same location, and an experiment that no other process writes to."""

    first: Storage
    second: Storage
    name: str


@contextmanager
def _refused(promise: str) -> Iterator[None]:
    """Require that the block raises a `DowiseError`."""
    try:
        yield
    except DowiseError:
        return
    raise _broken(promise)


class _CallerError(Exception):
    """Error that a caller raises inside a transaction."""


def _new_events(last: Event | None, name: str, *words: str) -> list[Event]:
    """Return the next events, one per word; the first event of a journal is `created`."""
    events: list[Event] = []
    for word in words:
        kind = "created" if last is None else "told"
        last = next_event(last, name, kind, "2026-01-01T00:00:00Z", "Zoë", {"word": word})
        events.append(last)
    return events


def _append(storage: Storage, name: str, *words: str) -> list[Event]:
    """Append events in one transaction."""
    with storage.transaction(name) as block:
        events = block.read()
        added = _new_events(events[-1] if events else None, name, *words)
        block.append(added)
    return added


class _Call:
    """Call in another thread, so that a store that never returns does not stop the check."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._function()
        except BaseException as error:
            self._error = error

    def result(self, promise: str, timeout: float | None = None) -> Any:
        """Return the result or raise the error; the promise is broken if the call takes longer."""
        _require(self.is_done(CALL_TIMEOUT if timeout is None else timeout), promise)
        if self._error is not None:
            raise self._error
        return self._result

    def is_done(self, timeout: float) -> bool:
        """Return True if the call returns within the given number of seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()


def _check_reading(stores: _Stores) -> None:
    first, second, name = stores
    _require(
        first.read(name) == [] and first.last(name) is None and first.snapshot(name) is None,
        "for an unknown experiment, read returns [], and last and snapshot return None",
    )
    _require(name not in first.experiments(), "experiments returns only names that exist")
    words = ("", "quote ' \" % \\ :x ?", "☃𝄞\u0000\n", "long " * 200_000)
    events = _append(first, name, *words[:2]) + _append(first, name, *words[2:])
    for storage in (first, second):
        _require(storage.read(name) == events, "read returns the events in order, unchanged")
        _require(storage.last(name) == events[-1], "last returns the last event")
        names = storage.experiments()
        _require(
            name in names and list(names) == sorted(set(names)),
            "experiments returns each name once, sorted",
        )
    for after in range(6):
        for upto in (None, 0, 1, 3, 9):
            _require(
                first.read(name, after, upto) == events[after:upto],
                "read returns the numbers above `after` and up to `upto`",
            )
    _require(
        first.read(name, kinds=["created"]) == events[:1]
        and first.read(name, 1, kinds={"created", "told"}) == events[1:]
        and first.read(name, kinds=()) == [],
        "read returns only events of these kinds",
    )


def _check_numbers(stores: _Stores) -> None:
    storage, _, name = stores
    promise = "an event whose number is not the next one is refused with a DowiseError"
    first, second, third = _new_events(None, name, "a", "b", "c")
    with storage.transaction(name) as block, _refused(promise):
        block.append([second])
    _require(name not in storage.experiments(), "a refused event is not stored")
    with storage.transaction(name) as block:
        block.append([first])
        for events in ([second, second], [third]):
            with _refused(promise):
                block.append(events)
        block.append([second])
    with storage.transaction(name) as block, _refused(promise):
        block.append([first])
    with storage.transaction(name) as block, _refused("an event of another experiment is refused"):
        block.append(_new_events(second, f"{name}, another", "c"))
    _require(storage.read(name) == [first, second], "a refused append changes nothing")


def _check_transactions(stores: _Stores) -> None:
    storage, second_storage, name = stores
    first, second, third = _new_events(None, name, "a", "b", "c")
    with storage.transaction(name) as block:
        block.append([first])
        _require(block.read() == [first], "inside a transaction, read returns its own events")
        block.append(iter([second]))
        _require(block.read(1) == [second], "inside a transaction, read returns its own events")
    ended = block
    try:
        with storage.transaction(name) as block:
            block.append([third])
            raise _CallerError
    except _CallerError:
        pass
    else:
        raise _broken("an error of the caller passes through the transaction unchanged")
    for store in (storage, second_storage):
        _require(
            store.read(name) == [first, second], "a transaction that ends with an error adds none"
        )
    with _refused("a transaction that has ended takes no more events"):
        ended.append([third])
    with second_storage.transaction(name) as block:
        _require(block.read() == [first, second], "a transaction reads all committed events")
        block.append([third])
    storage.close()
    _require(storage.read(name) == [first, second, third], "a call after close reopens the store")
    _append(storage, name, "d")
    _require(bool(str(storage)), "str returns where the store is")


def _check_nesting(stores: _Stores) -> None:
    storage, _, name = stores

    def is_refused() -> bool:
        with storage.transaction(name):
            try:
                with storage.transaction(name):
                    return False
            except DowiseError:
                return True

    promise = "a second transaction of a thread on the same experiment is refused immediately"
    _require(_Call(is_refused).result(promise), promise)
    _append(storage, name, "after it")


def _check_erasing(stores: _Stores) -> None:
    first, second, name = stores
    neighbour = f"{name}, neighbour"
    events = _append(first, name, "a", "b", "c")
    neighbour_events = _append(first, neighbour, "a", "b", "c")
    last = events[-1]
    first.save_snapshot(Snapshot(name, 3, last.hash, b"old"))
    first.save_snapshot(Snapshot(neighbour, 3, neighbour_events[-1].hash, b"neighbour"))
    neighbour_snapshot = first.snapshot(neighbour)
    try:
        with first.transaction(name) as block:
            block.erase([2])
            raise _CallerError
    except _CallerError:
        promise = "a transaction that ends with an error erases nothing"
        _require(first.read(name) == events, promise)
    with first.transaction(name) as block, _refused("erasing an unknown event is refused"):
        block.erase([2, 9])
    _require(first.read(name) == events, "a refused erasure erases nothing")
    marker = next_event(last, name, "erased", last.at, last.actor, {"numbers": [2]})
    with first.transaction(name) as block:
        block.append([marker])
        block.erase([2])
        expected = [events[0], events[1].erased(), events[2], marker]
        _require(
            block.read() == expected, "inside a transaction, read returns erased events as erased"
        )
    with first.transaction(name) as block:
        block.erase({2})
    for storage in (first, second):
        _require(storage.read(name) == expected, "erase replaces an event by Event.erased()")
        _require(storage.snapshot(name) is None, "erase drops the snapshots of the experiment")
        _require(
            storage.read(neighbour) == neighbour_events
            and storage.snapshot(neighbour) == neighbour_snapshot,
            "erase leaves events and snapshots of other experiments alone",
        )
    first.save_snapshot(Snapshot(name, 3, last.hash, b"old"))
    _require(second.snapshot(name) is None, "a snapshot from before an erasure is not stored")


def _check_snapshots(stores: _Stores) -> None:
    first, second, name = stores
    events = _append(first, name, "a", "b", "c")
    first.save_snapshot(Snapshot(name, 1, "0" * 64, b"of another journal"))
    _require(first.snapshot(name) is None, "a snapshot of another journal is not stored")
    body = bytes(range(256)) * 100
    older, newer = (Snapshot(name, n, events[n - 1].hash, body + bytes([n])) for n in (1, 3))
    for saved, newest in ((older, older), (newer, newer), (older, newer)):
        first.save_snapshot(saved)
        for storage in (first, second):
            promise = "snapshot returns the newest stored snapshot, or None"
            _require(storage.snapshot(name) in (None, newest), promise)
    _require(first.read(name) == events, "snapshots leave the journal alone")


def _check_isolation(stores: _Stores) -> None:
    """Check readers while a transaction is open."""
    first, second, name = stores
    events = _append(first, name, "a")
    with first.transaction(name) as block:
        block.append(_new_events(events[-1], name, "b"))
        for storage in (first, second):
            calls = (partial(storage.read, name), partial(storage.last, name), storage.experiments)
            read, last, names = (
                _Call(call).result("readers never wait for writers") for call in calls
            )
            _require(
                read == events and last == events[-1] and name in names,
                "readers see only what is committed",
            )
    _require(len(second.read(name)) == 2, "readers see the events of a transaction that has ended")


def _check_waiting(stores: _Stores) -> None:
    """Check a second writer while a transaction is open, on the same object and on another."""
    first, second, name = stores
    _append(first, name, "a")
    for storage in (first, second):

        def follow(storage: Storage = storage) -> list[Event]:
            with storage.transaction(name) as block:
                events = block.read()
                block.append(_new_events(events[-1], name, "by the second"))
                return events

        with first.transaction(name) as block:
            waiting = _Call(follow)
            promise = "at most one transaction of an experiment is open at a time"
            _require(not waiting.is_done(timeout=0.2), promise)
            block.append(_new_events(block.read()[-1], name, "by the first"))
            expected = block.read()
        events = waiting.result("a waiting writer continues when the other transaction has ended")
        _require(events == expected, "a transaction reads all committed events")


def _check_many_writers(stores: _Stores) -> None:
    """Check threads that append to one experiment, and readers that watch its numbers grow."""
    first, second, name = stores
    finished = threading.Event()
    start_line = threading.Barrier(WRITERS)

    def append(storage: Storage, writer: int) -> list[Event]:
        start_line.wait()
        added: list[Event] = []
        for i in range(EVENTS_PER_WRITER):
            with storage.transaction(name) as block:
                events = block.read()
                added += _new_events(events[-1] if events else None, name, f"{writer} {i}")
                block.append(added[-1:])
        return added

    def watch(storage: Storage) -> bool:
        length = 0
        while not finished.is_set():
            numbers = [event.number for event in storage.read(name)]
            if numbers != list(range(1, len(numbers) + 1)) or len(numbers) < length:
                return False
            length = len(numbers)
        return True

    watchers = [_Call(partial(watch, storage)) for storage in (first, second)]
    writers = [_Call(partial(append, second if i % 2 else first, i)) for i in range(WRITERS)]
    try:
        promise = "writers that wait for one another all get their turn"
        added = [event for call in writers for event in call.result(promise, JOIN_TIMEOUT)]
    finally:
        finished.set()
    promise = "readers see all events up to some number without a gap, and events do not disappear"
    _require(all(call.result("readers never wait for writers") for call in watchers), promise)
    journal = first.read(name)
    _require(
        journal == sorted(added, key=lambda event: event.number),
        "every event of a transaction that has ended is stored once",
    )
    before = None
    for event in journal:
        _require(event.follows(before), "reading the last event and appending are one step")
        before = event


_CHECKS: tuple[Callable[[_Stores], None], ...] = (
    _check_reading,
    _check_numbers,
    _check_transactions,
    _check_nesting,
    _check_erasing,
    _check_snapshots,
    _check_isolation,
    _check_waiting,
    _check_many_writers,
)
