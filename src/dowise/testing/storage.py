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

CALL_TIMEOUT = 10.0  # seconds: a call that must not wait and takes longer is taken to wait
WRITERS = 6
EVENTS_EACH = 8


def check_storage(make: Callable[[], Storage]) -> None:
    """Check that a store keeps the contract of `dowise.experiment.storage.base`.

    The check leaves a few experiments with random names in the store, so use a location that can be
    thrown away. It can't see whether events outlive a crash of the machine, and whether a trace of
    an erased event is left in files.

    Parameters
    ----------
    make : callable
        Called twice without arguments; returns a `Storage` on the same location each time: two
        objects if two can be open together, else the same one.

    Raises
    ------
    DowiseError
        If a promise of the contract is broken; the message names the first one.

    Examples
    --------
    >>> from dowise.experiment.storage import MemoryStorage
    >>> from dowise.testing import check_storage
    >>> storage = MemoryStorage()
    >>> check_storage(lambda: storage)
    """
    one, other = make(), make()
    try:
        for check in _CHECKS:
            check(Trial(one, other, f"check '{secrets.token_hex(6)}' ÿ☃"))
    except DowiseError:
        raise
    except Exception as error:
        raise DowiseError(
            f"this storage breaks the contract: it raises {type(error).__name__}: {error}"
        ) from error
    finally:
        one.close()
        other.close()


class Trial(NamedTuple):
    """Two stores at the same location, and an experiment that no other process writes to."""

    one: Storage
    other: Storage
    name: str


def demand(kept: bool, promise: str) -> None:
    """Raise `DowiseError` unless a promise is kept."""
    if not kept:
        raise DowiseError(f"this storage breaks the contract: {promise}")


@contextmanager
def refuses(promise: str) -> Iterator[None]:
    """Demand that the block raises a `DowiseError`."""
    try:
        yield
    except DowiseError:
        return
    demand(False, promise)


def next_events(last: Event | None, name: str, *words: str) -> list[Event]:
    """Return the following events, one per word; the first of a journal is `created`."""
    events: list[Event] = []
    for word in words:
        kind = "created" if last is None else "told"
        last = next_event(last, name, kind, "2026-01-01T00:00:00Z", "Zoë", {"word": word})
        events.append(last)
    return events


def write(storage: Storage, name: str, *words: str) -> list[Event]:
    """Append events in one transaction."""
    with storage.transaction(name) as block:
        before = block.read()
        added = next_events(before[-1] if before else None, name, *words)
        block.append(added)
    return added


class Task:
    """A call in another thread, so that a store that never returns does not stop the check."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._call()
        except BaseException as error:
            self._error = error

    def result(self, promise: str, seconds: float | None = None) -> Any:
        """Return or raise what the call did; the promise is broken if it takes too long."""
        self._thread.join(CALL_TIMEOUT if seconds is None else seconds)
        demand(not self._thread.is_alive(), promise)
        if self._error is not None:
            raise self._error
        return self._result

    def is_done(self, within: float) -> bool:
        """Return True if the call returns within the given number of seconds."""
        self._thread.join(within)
        return not self._thread.is_alive()


def _check_reading(trial: Trial) -> None:
    one, other, name = trial
    demand(
        one.read(name) == [] and one.last(name) is None and one.snapshot(name) is None,
        "of an experiment that is not there, read gives [], last and snapshot give None",
    )
    demand(name not in one.experiments(), "experiments names only what is there")
    words = ("", "quote ' \" % \\ :x ?", "☃𝄞\u0000\n", "long " * 200_000)
    events = write(one, name, *words[:2]) + write(one, name, *words[2:])
    for storage in (one, other):
        demand(storage.read(name) == events, "read gives what was appended, in order, unchanged")
        demand(storage.last(name) == events[-1], "last gives the last event")
        names = storage.experiments()
        demand(
            name in names and list(names) == sorted(set(names)),
            "experiments gives each name once, sorted",
        )
    for after in range(6):
        for upto in (None, 0, 1, 3, 9):
            found = one.read(name, after, upto)
            wanted = events[after:upto]
            demand(found == wanted, "read gives the numbers above `after` and up to `upto`")
    demand(
        one.read(name, kinds=["created"]) == events[:1]
        and one.read(name, 1, kinds={"created", "told"}) == events[1:]
        and one.read(name, kinds=()) == [],
        "read gives only events of these kinds",
    )


def _check_numbers(trial: Trial) -> None:
    one, _, name = trial
    promise = "an event whose number is not the next one is refused, with a DowiseError"
    first, second, third = next_events(None, name, "a", "b", "c")
    with one.transaction(name) as block, refuses(promise):
        block.append([second])
    demand(name not in one.experiments(), "a refused event is not there")
    with one.transaction(name) as block:
        block.append([first])
        with refuses(promise):
            block.append([second, second])
        with refuses(promise):
            block.append([third])
        block.append([second])
    with one.transaction(name) as block, refuses(promise):
        block.append([first])
    with one.transaction(name) as block, refuses("an event of another experiment is refused"):
        block.append(next_events(second, f"{name}, another", "c"))
    demand(one.read(name) == [first, second], "after a refused append all is as it was before it")


def _check_blocks(trial: Trial) -> None:
    one, other, name = trial
    first, second, third = next_events(None, name, "a", "b", "c")
    with one.transaction(name) as block:
        block.append([first])
        demand(block.read() == [first], "inside a block, read gives what was appended in it")
        block.append(iter([second]))
        demand(block.read(1) == [second], "inside a block, read gives what was appended in it")
    ended = block
    try:
        with one.transaction(name) as block:
            block.append([third])
            raise KeyError("an error of the caller's")
    except KeyError:
        pass
    else:
        demand(False, "a caller's error passes through the block as it is")
    for storage in (one, other):
        demand(storage.read(name) == [first, second], "a block that ends with an error adds none")
    with refuses("a block that has ended takes no more events"):
        ended.append([third])
    with other.transaction(name) as block:
        demand(block.read() == [first, second], "a block reads all that was ever committed")
        block.append([third])
    one.close()
    demand(one.read(name) == [first, second, third], "what is asked after close opens it anew")
    write(one, name, "d")
    demand(bool(str(one)), "str says where the store is")


def _check_nesting(trial: Trial) -> None:
    one, _, name = trial

    def inside() -> bool:
        with one.transaction(name):
            try:
                with one.transaction(name):
                    return False
            except DowiseError:
                return True

    promise = "a thread that holds an experiment and asks for it again is refused at once"
    demand(Task(inside).result(promise), promise)
    write(one, name, "after it")


def _check_erasing(trial: Trial) -> None:
    one, other, name = trial
    beside = f"{name}, beside"
    events, others = write(one, name, "a", "b", "c"), write(one, beside, "a", "b", "c")
    last = events[-1]
    one.save_snapshot(Snapshot(name, 3, last.hash, b"old"))
    one.save_snapshot(Snapshot(beside, 3, others[-1].hash, b"beside"))
    kept = one.snapshot(beside)
    try:
        with one.transaction(name) as block:
            block.erase([2])
            raise KeyError("an error of the caller's")
    except KeyError:
        demand(one.read(name) == events, "a block that ends with an error erases nothing")
    with one.transaction(name) as block, refuses("what is not there can't be erased"):
        block.erase([2, 9])
    demand(one.read(name) == events, "a refused erasure erases nothing")
    said = next_event(last, name, "erased", last.at, last.actor, {"numbers": [2]})
    with one.transaction(name) as block:
        block.append([said])
        block.erase([2])
        blank = [events[0], events[1].erased(), events[2], said]
        demand(block.read() == blank, "inside a block, read gives erased events as erased")
    with one.transaction(name) as block:
        block.erase({2})
    for storage in (one, other):
        demand(storage.read(name) == blank, "erase puts Event.erased() in the place of an event")
        demand(storage.snapshot(name) is None, "erase drops the experiment's snapshots")
        demand(storage.read(beside) == others, "erase leaves other experiments alone")
        demand(storage.snapshot(beside) == kept, "erase leaves other experiments' snapshots alone")
    one.save_snapshot(Snapshot(name, 3, last.hash, b"old"))
    demand(other.snapshot(name) is None, "a snapshot from before an erasure is not kept after it")


def _check_snapshots(trial: Trial) -> None:
    one, other, name = trial
    events = write(one, name, "a", "b", "c")
    one.save_snapshot(Snapshot(name, 1, "0" * 64, b"of another journal"))
    demand(one.snapshot(name) is None, "a snapshot that is none of this journal's is not kept")
    body = bytes(range(256)) * 100
    older, newer = (Snapshot(name, n, events[n - 1].hash, body + bytes([n])) for n in (1, 3))
    for given, allowed in ((older, [older]), (newer, [newer]), (older, [newer])):
        one.save_snapshot(given)
        for storage in (one, other):
            promise = "snapshot gives the newest that was kept, or None"
            demand(storage.snapshot(name) in [None, *allowed], promise)
    demand(one.read(name) == events, "snapshots leave the journal alone")


def _check_isolation(trial: Trial) -> None:
    """Check readers while a transaction is open."""
    one, other, name = trial
    events = write(one, name, "a")
    with one.transaction(name) as block:
        block.append(next_events(events[-1], name, "b"))
        for storage in (one, other):
            read, last, names = (
                Task(call).result("readers never wait for writers")
                for call in (
                    partial(storage.read, name),
                    partial(storage.last, name),
                    storage.experiments,
                )
            )
            seen = read == events and last == events[-1] and name in names
            demand(seen, "readers see only what is committed")
    demand(len(other.read(name)) == 2, "when a block has ended, its events are there for all")


def _check_waiting(trial: Trial) -> None:
    """Check a second writer while a transaction is open, on the same object and on another."""
    one, other, name = trial
    write(one, name, "a")
    for second in (one, other):

        def follow(second: Storage = second) -> list[Event]:
            with second.transaction(name) as block:
                found = block.read()
                block.append(next_events(found[-1], name, "by the second"))
                return found

        with one.transaction(name) as block:
            waiting = Task(follow)
            promise = "of one experiment at most one writing block is open at a time"
            demand(not waiting.is_done(within=0.2), promise)
            before = block.read()
            block.append(next_events(before[-1], name, "by the first"))
            after = block.read()
        found = waiting.result("a writer that waits goes on when the other one has ended")
        demand(found == after, "a block reads all that was ever committed")


def _check_many_writers(trial: Trial) -> None:
    """Check threads that append to one experiment, and readers that watch the numbers grow."""
    one, other, name = trial
    done = threading.Event()
    start_line = threading.Barrier(WRITERS)

    def append(storage: Storage, who: int) -> list[Event]:
        start_line.wait()
        mine = []
        for turn in range(EVENTS_EACH):
            with storage.transaction(name) as block:
                found = block.read()
                mine += next_events(found[-1] if found else None, name, f"{who} {turn}")
                block.append(mine[-1:])
        return mine

    def watch(storage: Storage) -> bool:
        seen = 0
        while not done.is_set():
            numbers = [event.number for event in storage.read(name)]
            if numbers != list(range(1, len(numbers) + 1)) or len(numbers) < seen:
                return False
            seen = len(numbers)
        return True

    both = (one, other)
    watching = [Task(partial(watch, storage)) for storage in both]
    tasks = [Task(partial(append, both[who % 2], who)) for who in range(WRITERS)]
    try:
        promise = "writers that wait for one another all have their turn"
        told = [task.result(promise, 60) for task in tasks]
    finally:
        done.set()
    promise = "readers see all events up to some number, without a gap, and none of them go away"
    demand(all(task.result("readers never wait for writers") for task in watching), promise)
    journal = one.read(name)
    written = sorted((event for mine in told for event in mine), key=lambda event: event.number)
    demand(journal == written, "every event whose block has ended is there, once")
    before = None
    for event in journal:
        demand(event.follows(before), "number, fold and append are one step")
        before = event


_CHECKS: tuple[Callable[[Trial], None], ...] = (
    _check_reading,
    _check_numbers,
    _check_blocks,
    _check_nesting,
    _check_erasing,
    _check_snapshots,
    _check_isolation,
    _check_waiting,
    _check_many_writers,
)
