"""The queue of those who write to a store is never in the way."""

import fcntl
import threading
import time

import pytest
from journals import append

from dowise import queue_lock
from dowise.experiment.storage import check_storage, open_storage
from dowise.queue_lock import QueueLock


@pytest.fixture
def path(tmp_path):
    (path := tmp_path / "ward.db").touch()
    return path


@pytest.mark.slow
@pytest.mark.parametrize("lack", ["module", "locks", "right"])
def test_a_store_does_without_it(path, monkeypatch, lack):
    def refuse(*_):
        raise OSError(95, "not supported")

    if lack == "module":
        monkeypatch.setattr(queue_lock, "fcntl", None)
    elif lack == "locks":
        monkeypatch.setattr(fcntl, "flock", refuse)
    else:
        monkeypatch.setattr(QueueLock, "_open", refuse)
    open_storage(path, create=True).close()
    check_storage(lambda: open_storage(path))


def test_somebody_who_holds_the_queue_and_never_writes_does_no_harm(path, monkeypatch):
    monkeypatch.setattr("dowise.experiment.storage.sqlite.PATIENCE_IN_QUEUE", 0.1)
    storage = open_storage(path, create=True)
    queue = QueueLock(path)
    place = queue.join(1)
    assert append(storage).number == 1
    queue.leave(place)
    assert append(storage).number == 2
    storage.close()
    assert not path.with_name("ward.db-lock").exists()


def test_who_waits_can_read_meanwhile_what_others_wrote(path):
    first, second = open_storage(path, create=True), open_storage(path)
    append(first)
    seen, ready = [], threading.Event()

    def look():
        seen.append(len(second.read("ward")))
        ready.set()

    def wait():
        with second.writing("ward", meanwhile=look) as block:
            seen.append(block.read()[-1].number)

    with first.writing("ward"):
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert ready.wait(10)
    waiting.join()
    assert set(seen) == {1} and len(seen) >= 2
    first.close()
    second.close()


def test_who_writes_on_and_on_stands_in_the_queue_from_time_to_time(path, monkeypatch):
    monkeypatch.setattr("dowise.experiment.storage.sqlite.BURST", 0.02)
    storage, joined = open_storage(path, create=True), []
    join = QueueLock.join
    monkeypatch.setattr(QueueLock, "join", lambda *given: joined.append(1) or join(*given))
    start, count = time.monotonic(), 0
    while count < 40 or time.monotonic() - start < 0.1:
        append(storage)
        count += 1
    assert 2 <= len(joined) <= 1 + (time.monotonic() - start) / 0.02
    storage.close()
