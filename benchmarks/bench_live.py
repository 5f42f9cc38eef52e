"""Live experiments: durable events a second of a store, by one writer and by 16 at once.

    make bench

The claim to guard: 16 processes on one experiment make together no fewer events a second than one
alone. Each reads what is new, makes the event that follows, appends it, and goes on when it is on
the disk. Beside them the bare sync of 8 kB, which no store that is durable can do without.
"""

from __future__ import annotations

import multiprocessing
import os
import time

import pytest
from journals import append, write_next
from postgres_server import LACKING, running_server

from dowise.experiment.event import Event
from dowise.experiment.storage import open_storage

SPAWN = multiprocessing.get_context("spawn")
SECONDS = 2.0
ROUNDS = 3


def write_for_a_while(place, who, line):
    storage = open_storage(place)
    line.send("ready")
    line.recv()
    last, turn, end = None, 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        last = write_next(storage, last, who, turn)
        turn += 1
    storage.close()
    line.send(turn)


def events_a_second(place, writers):
    team = []
    for i in range(writers):
        ours, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=write_for_a_while, args=(place, f"writer {i}", theirs))
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


def compare(make_place):
    """The best of some rounds, taken in turn."""
    one, many, least = 0.0, 0.0, 0
    for _ in range(ROUNDS):
        for writers in (1, 16):
            place = make_place()
            open_storage(place, create=True).close()
            rate, fewest = events_a_second(place, writers)
            if writers == 1:
                one = max(one, rate)
            elif rate > many:
                many, least = rate, fewest
    return one, many, least


def test_writers_on_sqlite(benchmark, tmp_path):
    names = iter(range(100))
    bare = syncs_a_second(tmp_path)
    one, many, least = benchmark.pedantic(
        compare, (lambda: str(tmp_path / f"{next(names)}.db"),), rounds=1
    )
    print(
        f"\nevents a second on SQLite: one writer {one:,.0f}, 16 together {many:,.0f} "
        f"({many / one:.2f} times; the slowest made {least}); bare syncs {bare:,.0f}"
    )


def test_writers_on_postgres(benchmark):
    with running_server() as server:
        if server is None:
            pytest.skip(LACKING)
        place = lambda: server.url(server.new_database())  # noqa: E731
        one, many, least = benchmark.pedantic(compare, (place,), rounds=1)
    print(
        f"\nevents a second on PostgreSQL: one writer {one:,.0f}, 16 together {many:,.0f} "
        f"({many / one:.2f} times; the slowest made {least})"
    )


def test_an_event_and_100_000_of_them(benchmark, tmp_path):
    storage = open_storage(tmp_path / "ward.db", create=True)
    last = append(storage)
    with storage.writing("ward") as block:
        for _ in range(99_999):
            last = Event.after(last, "ward", "told", last.at, "ann", {"values": {"Y": "1"}})
            block.append([last])
    start = time.perf_counter()
    assert len(storage.read("ward")) == 100_000
    read = time.perf_counter() - start

    def one():
        with storage.writing("ward") as block:
            block.read(100_000)
            block.append([last_but_one()])
            raise KeyError  # rolled back: all but the sync

    def last_but_one():
        return Event.after(last, "ward", "told", last.at, "ann", {"values": {"Y": "1"}})

    def many():
        for _ in range(100):
            with pytest.raises(KeyError):
                one()

    benchmark.pedantic(many, rounds=10)
    each = 1e3 * benchmark.stats.stats.min / 100 if benchmark.stats else float("nan")
    print(f"\nan event but for its sync: {each:.3f} ms; reading 100,000: {read:.2f} s")
    storage.close()
