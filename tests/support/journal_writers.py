"""Events to fill stores with, and processes that append events.

A writer is a new process, which reports through a pipe what has been stored.
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
    """Append an event with each of these words in one transaction."""
    with storage.transaction(name) as block:
        events = block.read()
        last = events[-1] if events else None
        for word in words:
            last = next_event(last, name, "told" if last else "created", AT, "ann", {"word": word})
            block.append([last])
    return last


def is_chain(events):
    """Return True if each event follows from the one before."""
    return all(
        event.follows(before) for before, event in zip([None, *events], events, strict=False)
    )


def write_next(storage, last, actor, turn):
    """Read events after `last`, and append one."""
    with storage.transaction("ward") as block:
        for event in block.read(last.number if last else 0):
            last = event
        last = next_event(last, "ward", "told" if last else "created", AT, actor, {"turn": turn})
        block.append([last])
    return last


def write_events(place, actor, count, connection):
    """Append events, and report each one when its transaction has ended."""
    try:
        storage = open_storage(place)
        last = None
        connection.send("ready")
        connection.recv()
        for turn in range(count):
            last = write_next(storage, last, actor, turn)
            connection.send((last.number, last.hash))
        storage.close()
        connection.send("done")
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}")


class Writer:
    """A process that appends events, and the events that it has acknowledged."""

    def __init__(self, place, actor, count=10**9):
        self.connection, remote = SPAWN.Pipe()
        self.process = SPAWN.Process(target=write_events, args=(place, actor, count, remote))
        self.process.start()
        remote.close()
        self.acknowledged = []

    def start_writing(self):
        assert self.connection.recv() == "ready"
        self.connection.send("go")

    def wait(self):
        """Read all acknowledgements until the process ends, and return its exit code."""
        with suppress(EOFError, ConnectionResetError):
            while (report := self.connection.recv()) != "done":
                assert not isinstance(report, str), report
                self.acknowledged.append(report)
        self.process.join()
        self.connection.close()
        code = self.process.exitcode
        self.process.close()
        return code

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        assert self.wait() == -signal.SIGKILL


def run(place, writers, count):
    """Let writers append `count` events each; return the seconds it took, and the writers."""
    team = [Writer(place, f"writer {i}", count) for i in range(writers)]
    for writer in team:
        assert writer.connection.poll(60)
    start = time.perf_counter()
    for writer in team:
        writer.start_writing()
    assert [writer.wait() for writer in team] == [0] * writers
    return time.perf_counter() - start, team
