"""Many processes on one experiment, and what is left of them when they are killed.

Each writer is a process of its own, started anew (spawn), which says on a pipe what it was told is
stored.
"""

import json
import multiprocessing
import os
import signal
import time
from contextlib import suppress
from random import Random

import pytest
from journals import AT, is_chain

from dowise.experiment.event import Event
from dowise.experiment.storage import open_storage

SPAWN = multiprocessing.get_context("spawn")


def write_events(place, who, count, line):
    """Append events, each after what is there, and say which once the block has ended."""
    try:
        storage = open_storage(place)
        last = None
        line.send("ready")
        line.recv()
        for turn in range(count):
            with storage.writing("ward") as block:
                for event in block.read(last.number if last else 0):
                    last = event
                kind = "told" if last else "created"
                last = Event.after(last, "ward", kind, AT, who, {"turn": turn})
                block.append([last])
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


def check_all_there(storage, team):
    """Every acknowledged event is there, once; at most one more for each writer that was killed."""
    journal = storage.read("ward")
    assert [event.number for event in journal] == list(range(1, len(journal) + 1))
    assert is_chain(journal)
    there = {event.head for event in journal}
    acknowledged = [head for writer in team for head in writer.acknowledged]
    assert len(set(acknowledged)) == len(acknowledged)
    assert set(acknowledged) <= there
    return len(journal) - len(acknowledged)


@pytest.mark.slow
def test_16_processes_append_to_one_experiment(place, store):
    _, team = run(place, 16, 40)
    assert check_all_there(store, team) == 0
    assert len(store.read("ward")) == 16 * 40
    assert {event.actor for event in store.read("ward")} == {f"writer {i}" for i in range(16)}


def test_3_processes_append_to_one_experiment(tmp_path):
    place = str(tmp_path / "ward.db")
    store = open_storage(place, create=True)
    _, team = run(place, 3, 30)
    assert check_all_there(store, team) == 0
    store.close()


@pytest.mark.slow
def test_two_writers_are_killed_again_and_again(place, store):
    """Ten kills at random moments of either of two writers; the other one goes on meanwhile."""
    rng = Random(12)
    team = [Writer(place, "writer 0"), Writer(place, "writer 1")]
    for writer in team:
        writer.go()
    running = list(team)
    for kill in range(10):
        time.sleep(rng.uniform(0.01, 0.2))
        victim = rng.randrange(2)
        running[victim].kill()
        running[victim] = Writer(place, f"writer {kill + 2}")
        running[victim].go()
        team.append(running[victim])
    for writer in running:
        writer.kill()
    assert 0 <= check_all_there(store, team) <= 12
    assert sum(len(writer.acknowledged) for writer in team) > 50
    with store.writing("ward") as block:
        block.append([Event.after(block.read()[-1], "ward", "told", AT, "ann", {"after": "all"})])
    assert is_chain(store.read("ward"))
    assert json.loads(store.last("ward").body) == {"after": "all"}
