"""The lock of writers: order, timeout, removal of the file."""

import os
import threading
import time

import pytest

from dowise.experiment.storage.file_lock import FileLock


@pytest.fixture
def path(tmp_path):
    (path := tmp_path / "ward.db").touch()
    return path


def test_writers_get_the_lock_in_order(path):
    lock, order = FileLock(path), []
    first = lock.acquire(1)

    def wait(number):
        descriptor = FileLock(path).acquire(10)
        assert descriptor is not None
        order.append(number)
        lock.release(descriptor)

    threads = []
    for number in range(5):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        time.sleep(0.03)
    assert order == []
    lock.release(first)
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_a_timeout_leaves_no_lock(path):
    lock = FileLock(path)
    first = lock.acquire(1)
    start = time.monotonic()
    assert lock.acquire(0.1) is None
    assert 0.1 <= time.monotonic() - start < 2
    lock.release(first)
    descriptor = lock.acquire(5)
    assert descriptor is not None
    lock.release(descriptor)


def test_the_file_is_removed_only_if_it_is_unused(path):
    lock, beside = FileLock(path), path.with_name("ward.db-lock")
    first = lock.acquire(1)
    lock.remove()
    assert beside.exists()
    descriptors = []
    waiting = threading.Thread(target=lambda: descriptors.append(lock.acquire(10)))
    waiting.start()
    time.sleep(0.05)
    beside.unlink()  # as another process may do
    lock.release(first)
    waiting.join()
    assert os.path.samestat(os.fstat(descriptors[0]), beside.stat())
    lock.release(descriptors[0])
    lock.remove()
    assert not beside.exists()


def test_at_most_one_thread_holds_the_lock(path):
    holders, counts = [], []

    def acquire_and_remove():
        for _ in range(40):
            lock = FileLock(path)
            descriptor = lock.acquire(20)
            assert descriptor is not None
            holders.append(1)
            counts.append(len(holders))
            holders.pop()
            lock.release(descriptor)
            lock.remove()

    threads = [threading.Thread(target=acquire_and_remove) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counts) == 160 and set(counts) == {1}
