"""The lock of writers: fair, with a timeout, and optional."""

import os
import threading
import time

import pytest

from dowise.experiment.storage.file_lock import FileLock


@pytest.fixture
def path(tmp_path):
    (path := tmp_path / "ward.db").touch()
    return path


def test_turns_are_taken_in_order(path):
    lock, order = FileLock(path), []
    first = lock.acquire(1)

    def stand(who):
        place = FileLock(path).acquire(10)
        assert place is not None
        order.append(who)
        lock.release(place)

    threads = []
    for who in range(5):
        threads.append(threading.Thread(target=stand, args=(who,)))
        threads[-1].start()
        time.sleep(0.03)
    assert order == []
    lock.release(first)
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_who_gives_up_leaves_no_lock_behind(path):
    lock = FileLock(path)
    first = lock.acquire(1)
    start = time.monotonic()
    assert lock.acquire(0.1) is None
    assert 0.1 <= time.monotonic() - start < 2
    lock.release(first)
    place = lock.acquire(5)
    assert place is not None
    lock.release(place)


def test_the_file_is_removed_only_where_nobody_holds_it_and_who_waits_begins_anew(path):
    lock, beside = FileLock(path), path.with_name("ward.db-lock")
    first = lock.acquire(1)
    lock.remove()
    assert beside.exists()
    found = []
    waiting = threading.Thread(target=lambda: found.append(lock.acquire(10)))
    waiting.start()
    time.sleep(0.05)
    beside.unlink()  # as another process does that saw nobody in the lock
    lock.release(first)
    waiting.join()
    assert os.path.samestat(os.fstat(found[0]), beside.stat())
    lock.release(found[0])
    lock.remove()
    assert not beside.exists()


def test_many_join_leave_and_remove_at_once(path):
    """At most one is ever in, whatever is removed meanwhile."""
    inside, most = [], []

    def stand():
        for _ in range(40):
            lock = FileLock(path)
            place = lock.acquire(20)
            assert place is not None
            inside.append(1)
            most.append(len(inside))
            inside.pop()
            lock.release(place)
            lock.remove()

    threads = [threading.Thread(target=stand) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 160 and set(most) == {1}
