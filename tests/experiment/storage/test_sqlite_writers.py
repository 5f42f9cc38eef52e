"""Writers that wait for each other in a SQLite file."""

import multiprocessing
import threading
import time

import pytest
from support.journal_writers import append, write_next

from dowise.experiment.storage import open_storage

WRITERS = 16


def test_a_waiting_writer_can_read(tmp_path):
    path = tmp_path / "ward.db"
    first, second = open_storage(path, create=True), open_storage(path)
    append(first)
    counts, ready = [], threading.Event()

    def read():
        counts.append(len(second.read("ward")))
        ready.set()

    def wait():
        with second.transaction("ward", on_wait=read) as block:
            counts.append(block.read()[-1].number)

    with first.transaction("ward"):
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert ready.wait(10)
    waiting.join()
    assert set(counts) == {1} and len(counts) >= 2
    first.close()
    second.close()


def count_writes(place, seconds, barrier, results):
    storage, last, count = open_storage(place), None, 0
    barrier.wait(60)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        last = write_next(storage, last, "ann", count)
        count += 1
    results.put(count)
    storage.close()


@pytest.mark.slow
def test_each_of_16_writers_gets_at_least_half_of_its_share(tmp_path):
    """Without the file lock one of the processes got 0.44 of its share."""
    place = str(tmp_path / "ward.db")
    open_storage(place, create=True).close()
    context = multiprocessing.get_context("fork")
    results, barrier = context.Queue(), context.Barrier(WRITERS)
    writers = [
        context.Process(target=count_writes, args=(place, 8, barrier, results))
        for _ in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    counts = [results.get(timeout=120) for _ in writers]
    for writer in writers:
        writer.join(60)
    assert min(counts) >= sum(counts) / WRITERS / 2, sorted(counts)
