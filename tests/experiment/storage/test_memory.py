"""Stores in memory: timeouts, and results that callers may change."""

import threading

from support.errors import raises_code
from support.journal_writers import append, is_chain

from dowise.experiment.storage import MemoryStorage


def test_a_writer_waits_for_its_timeout():
    storage = MemoryStorage(timeout=0.1)
    append(storage)
    held, done = threading.Event(), threading.Event()

    def hold():
        with storage.transaction("ward"):
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    with raises_code("store-busy", "'ward'", "0.1 seconds"):
        append(storage)
    append(storage, "another ward")
    done.set()
    thread.join()
    assert append(storage).number == 2


def test_lists_of_events_are_copies():
    storage = MemoryStorage()
    append(storage, words="abc")
    storage.read("ward").clear()
    with storage.transaction("ward") as block:
        block.read().clear()
        block.erase([2])
        block.read().clear()
    assert len(storage.read("ward")) == 3 and is_chain(storage.read("ward"))
    assert str(storage) == "a store in memory"
