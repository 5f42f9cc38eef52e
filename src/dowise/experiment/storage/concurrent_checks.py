"""What callers at the same time may see of a store, as checks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from dowise.experiment.event import Event
from dowise.experiment.storage.check_tools import Trial, demand, next_events, start, write
from dowise.experiment.storage.contract import Storage

__all__ = ["CONCURRENT_CHECKS"]

WRITERS = 6
EVENTS_EACH = 8


def _check_isolation(trial: Trial) -> None:
    """Readers while a block is open."""
    one, other, name = trial
    events = write(one, name, "a")
    with one.writing(name) as block:
        block.append(next_events(events[-1], name, "b"))
        for storage in (one, other):
            read, last, names = (
                start(call).result("readers never wait for writers")
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
    """A second writer while a block is open, by the same object and by another one."""
    one, other, name = trial
    write(one, name, "a")
    for second in (one, other):

        def follow(second: Storage = second) -> list[Event]:
            with second.writing(name) as block:
                found = block.read()
                block.append(next_events(found[-1], name, "by the second"))
                return found

        with one.writing(name) as block:
            waiting = start(follow)
            promise = "of one experiment at most one writing block is open at a time"
            demand(not waiting.is_done(within=0.2), promise)
            before = block.read()
            block.append(next_events(before[-1], name, "by the first"))
            after = block.read()
        found = waiting.result("a writer that waits goes on when the other one has ended")
        demand(found == after, "a block reads all that was ever committed")


def _check_many_writers(trial: Trial) -> None:
    """Threads that append to one experiment, and readers that watch the numbers grow."""
    one, other, name = trial
    done = threading.Event()
    start_line = threading.Barrier(WRITERS)

    def append(storage: Storage, who: int) -> list[Event]:
        start_line.wait()
        mine = []
        for turn in range(EVENTS_EACH):
            with storage.writing(name) as block:
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
    watching = [start(partial(watch, storage)) for storage in both]
    tasks = [start(partial(append, both[who % 2], who)) for who in range(WRITERS)]
    try:
        told = [task.result("writers that wait for one another all have their turn", 60)
                for task in tasks]  # fmt: skip
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


CONCURRENT_CHECKS: tuple[Callable[[Trial], None], ...] = (
    _check_isolation,
    _check_waiting,
    _check_many_writers,
)
