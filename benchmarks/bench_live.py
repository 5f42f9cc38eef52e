"""Live experiments: durable events a second, by one writer and by 16 at once.

    make bench

Each writer is a process that asks and tells, by `ids` with 1000 draws, and goes on when what it
said is on the disk. What all of them finish in the same seconds counts. Beside it the store alone,
with writers that decide and learn nothing, and the bare sync of 8 kB, which no durable store can do
without.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import time

import pytest
from support.journal_writers import append, write_next
from support.postgres_server import NO_POSTGRES, running_server

from dowise import Experiment
from dowise.experiment.event import next_event
from dowise.experiment.storage import open_storage

SPAWN = multiprocessing.get_context("spawn")
SECONDS = 4.0
ROUNDS = 3


def counted(line, step):
    """How many steps are done in some seconds, from a word on the line on."""
    gc.collect()  # what was loaded is gone through now, not in between
    line.send("ready")
    line.recv()
    done, end = 0, time.monotonic() + SECONDS
    while True:
        step()
        if time.monotonic() > end:
            return done
        done += 1


def write_events(place, seed, line):
    """By the store alone."""
    storage, last, turn = open_storage(place), None, 0

    def step():
        nonlocal last, turn
        last, turn = write_next(storage, last, f"writer {seed}", turn), turn + 1

    line.send(counted(line, step))
    storage.close()


def ask_and_tell(place, seed, line):
    """By an experiment."""
    rng = random.Random(seed)
    with Experiment.open(place, "ward") as experiment:
        number = None

        def step():
            nonlocal number
            if number is None:
                number = experiment.ask({"C": rng.randrange(2)}).id
            else:
                experiment.tell(number, {"Z": rng.randrange(2), "Y": rng.randrange(2)})
                number = None

        for _ in range(4):
            step()
        line.send(counted(line, step))


def events_a_second(work, place, writers):
    team = []
    for i in range(writers):
        ours, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=work, args=(place, i, theirs))
        process.start()
        team.append((process, ours))
    for _, line in team:
        line.recv()
    for _, line in team:
        line.send("go")
    counts = [line.recv() for _, line in team]
    for process, line in team:
        process.join()
        line.close()
    return sum(counts) / SECONDS, min(counts)


def syncs_a_second(folder):
    file = os.open(folder / "bare", os.O_CREAT | os.O_RDWR)
    start = time.perf_counter()
    for i in range(300):
        os.pwrite(file, bytes(8192), 8192 * i)
        os.fsync(file)
    os.close(file)
    return 300 / (time.perf_counter() - start)


def compare(work, make_place):
    """The best of some rounds, taken in turn."""
    one, many, least = 0.0, 0.0, 0
    for _ in range(ROUNDS):
        for writers in (1, 16):
            place = make_place()
            if work is ask_and_tell:
                Experiment.create(place, "ward", "task2", "ids", seed=1).close()
            else:
                open_storage(place, create=True).close()
            rate, fewest = events_a_second(work, place, writers)
            if writers == 1:
                one = max(one, rate)
            elif rate > many:
                many, least = rate, fewest
    return one, many, least


def show(what, one, many, least):
    print(
        f"\n{what}: one writer {one:,.0f} events a second, 16 together {many:,.0f} "
        f"({many / one:.2f} times; the slowest made {least})"
    )


WORK = {"an experiment": ask_and_tell, "the store alone": write_events}


@pytest.mark.parametrize("what", WORK)
def test_writers_on_sqlite(benchmark, tmp_path, what):
    names = iter(range(100))
    bare = syncs_a_second(tmp_path)

    def place():
        return str(tmp_path / f"{next(names)}.db")

    show(f"{what} on SQLite", *benchmark.pedantic(compare, (WORK[what], place), rounds=1))
    print(f"bare syncs: {bare:,.0f} a second")


@pytest.mark.parametrize("what", WORK)
def test_writers_on_postgres(benchmark, what):
    with running_server() as server:
        if server is None:
            pytest.skip(NO_POSTGRES)

        def place():
            return server.url(server.new_database())

        show(f"{what} on PostgreSQL", *benchmark.pedantic(compare, (WORK[what], place), rounds=1))


def test_an_event_and_100_000_of_them(benchmark, tmp_path):
    storage = open_storage(tmp_path / "ward.db", create=True)
    last = append(storage)
    with storage.transaction("ward") as block:
        for _ in range(99_999):
            last = next_event(last, "ward", "told", last.at, "ann", {"values": {"Y": "1"}})
            block.append([last])
    start = time.perf_counter()
    assert len(storage.read("ward")) == 100_000
    read = time.perf_counter() - start

    def one():
        with storage.transaction("ward") as block:
            block.read(100_000)
            block.append([last_but_one()])
            raise KeyError  # rolled back: all but the sync

    def last_but_one():
        return next_event(last, "ward", "told", last.at, "ann", {"values": {"Y": "1"}})

    def many():
        for _ in range(100):
            with pytest.raises(KeyError):
                one()

    benchmark.pedantic(many, rounds=10)
    each = 1e3 * benchmark.stats.stats.min / 100 if benchmark.stats else float("nan")
    print(f"\nan event but for its sync: {each:.3f} ms; reading 100,000: {read:.2f} s")
    storage.close()
