"""The queue of writers: fair, bounded, and never in the way."""

import fcntl
import os
import threading
import time

import pytest
from journals import append

from dowise.experiment.storage import check_storage, open_storage, queue_lock
from dowise.experiment.storage.queue_lock import QueueLock


@pytest.fixture
def path(tmp_path):
    (path := tmp_path / "ward.db").touch()
    return path


def test_turns_are_taken_in_order(path):
    queue, order = QueueLock(path), []
    first = queue.join(1)

    def stand(who):
        place = QueueLock(path).join(10)
        assert place is not None
        order.append(who)
        queue.leave(place)

    threads = []
    for who in range(5):
        threads.append(threading.Thread(target=stand, args=(who,)))
        threads[-1].start()
        time.sleep(0.03)
    assert order == []
    queue.leave(first)
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_who_gives_up_leaves_no_lock_behind(path):
    queue = QueueLock(path)
    first = queue.join(1)
    start = time.monotonic()
    assert queue.join(0.1) is None
    assert 0.1 <= time.monotonic() - start < 2
    queue.leave(first)
    place = queue.join(5)
    assert place is not None
    queue.leave(place)


def test_the_file_is_removed_only_where_nobody_holds_it_and_who_waits_begins_anew(path):
    queue, beside = QueueLock(path), path.with_name("ward.db-lock")
    first = queue.join(1)
    queue.remove()
    assert beside.exists()
    found = []
    waiting = threading.Thread(target=lambda: found.append(queue.join(10)))
    waiting.start()
    time.sleep(0.05)
    beside.unlink()  # as another process does that saw nobody in the queue
    queue.leave(first)
    waiting.join()
    assert os.path.samestat(os.fstat(found[0]), beside.stat())
    queue.leave(found[0])
    queue.remove()
    assert not beside.exists()


def test_many_join_leave_and_remove_at_once(path):
    """At most one is ever in, whatever is removed meanwhile."""
    inside, most = [], []

    def stand():
        for _ in range(40):
            queue = QueueLock(path)
            place = queue.join(20)
            assert place is not None
            inside.append(1)
            most.append(len(inside))
            inside.pop()
            queue.leave(place)
            queue.remove()

    threads = [threading.Thread(target=stand) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 160 and set(most) == {1}


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
