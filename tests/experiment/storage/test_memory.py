"""A store in memory: it waits, gives up, and hands out nothing that can be changed from outside."""

import threading

import pytest
from support.journal_writers import append, is_chain

from dowise import DowiseError
from dowise.experiment.storage import MemoryStorage


def test_a_writer_gives_up_after_its_timeout():
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
    with pytest.raises(DowiseError, match="'ward' can't be written: .* for 0.1 seconds"):
        append(storage)
    append(storage, "another ward")
    done.set()
    thread.join()
    assert append(storage).number == 2


def test_what_it_hands_out_is_a_copy():
    storage = MemoryStorage()
    append(storage, words="abc")
    storage.read("ward").clear()
    with storage.transaction("ward") as block:
        block.read().clear()
        block.erase([2])
        block.read().clear()
    assert len(storage.read("ward")) == 3 and is_chain(storage.read("ward"))
    assert str(storage) == "a store in memory"
