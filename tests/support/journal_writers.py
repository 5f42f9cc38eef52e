"""Events to fill stores with, and processes that do so.

A writer is a process of its own, started anew, which says on a pipe what it was told is stored.
"""

import multiprocessing
import os
import signal
import time
from contextlib import suppress

from dowise.experiment.event import next_event
from dowise.experiment.storage import open_storage

AT = "2026-01-01T00:00:00Z"
SPAWN = multiprocessing.get_context("spawn")


def append(storage, name="ward", words=("a",)):
    """Append an event with each of these words, in one block."""
    with storage.transaction(name) as block:
        found = block.read()
        last = found[-1] if found else None
        for word in words:
            last = next_event(last, name, "told" if last else "created", AT, "ann", {"word": word})
            block.append([last])
    return last


def is_chain(events):
    """Whether each event follows from the one before."""
    return all(
        event.follows(before) for before, event in zip([None, *events], events, strict=False)
    )


def write_next(storage, last, who, turn):
    """Append one event after what is there, having read what is new after `last`."""
    with storage.transaction("ward") as block:
        for event in block.read(last.number if last else 0):
            last = event
        last = next_event(last, "ward", "told" if last else "created", AT, who, {"turn": turn})
        block.append([last])
    return last


def write_events(place, who, count, line):
    """Append events, and say of each that it is stored once its block has ended."""
    try:
        storage = open_storage(place)
        last = None
        line.send("ready")
        line.recv()
        for turn in range(count):
            last = write_next(storage, last, who, turn)
            line.send((last.number, last.hash))
        storage.close()
        line.send("done")
    except Exception as error:
        line.send(f"{type(error).__name__}: {error}")


class Writer:
    """A process that writes, and what it has acknowledged so far."""

    def __init__(self, place, who, count=10**9):
        self.line, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=write_events, args=(place, who, count, theirs))
        self.process.start()
        theirs.close()
        self.acknowledged = []

    def go(self):
        assert self.line.recv() == "ready"
        self.line.send("go")

    def listen(self):
        """All that it says until its end."""
        with suppress(EOFError, ConnectionResetError):
            while (said := self.line.recv()) != "done":
                assert not isinstance(said, str), said
                self.acknowledged.append(said)
        self.process.join()
        self.line.close()
        code = self.process.exitcode
        self.process.close()
        return code

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        assert self.listen() == -signal.SIGKILL


def run(place, writers, count):
    """Let so many writers make so many events each; seconds from the first to the last."""
    team = [Writer(place, f"writer {i}", count) for i in range(writers)]
    for writer in team:
        assert writer.line.poll(60)
    start = time.perf_counter()
    for writer in team:
        writer.go()
    assert [writer.listen() for writer in team] == [0] * writers
    return time.perf_counter() - start, team
