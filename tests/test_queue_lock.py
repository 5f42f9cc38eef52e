"""The queue of writers: fair, bounded, and never in the way."""

import fcntl
import os
import threading
import time

import pytest

from dowise import DowiseError, queue_lock
from dowise.queue_lock import QueueLock


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


def test_who_is_alone_leaves_no_file_even_if_the_file_to_be_written_is_not_there_yet(path):
    path.unlink()
    queue, inside, most = QueueLock(path), [], []

    def stand():
        for _ in range(40):
            with QueueLock(path).alone(20):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=stand) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 160 and set(most) == {1}
    with queue.alone(1):
        assert queue.path.exists()
    with pytest.raises(KeyboardInterrupt), queue.alone(1):
        raise KeyboardInterrupt
    assert [*path.parent.iterdir()] == []


def test_a_lock_that_was_left_by_a_kill_is_free(path):
    queue = QueueLock(path)
    queue.path.touch()
    with queue.alone(1):
        pass
    assert not queue.path.exists()


def test_who_can_t_be_alone_is_told_and_the_other_is_not_disturbed(path):
    queue = QueueLock(path)
    with queue.alone(1):
        with (
            pytest.raises(DowiseError, match=r"ward\.db: another process has been writing to it"),
            QueueLock(path).alone(0.1),
        ):
            raise AssertionError
        assert queue.path.exists()


@pytest.mark.parametrize("lack", ["module", "locks", "folder"])
def test_where_there_are_no_locks_there_is_no_error(path, monkeypatch, lack):
    for thread in threading.enumerate():  # one that an earlier test left waiting still needs them
        if thread.name == "dowise-queue":
            thread.join(60)

    def refuse(*_):
        raise OSError(95, "not supported")

    if lack == "module":
        monkeypatch.setattr(queue_lock, "fcntl", None)
    elif lack == "locks":
        monkeypatch.setattr(fcntl, "flock", refuse)
    done = []
    with QueueLock(path if lack != "folder" else path.parent / "gone" / "ward.db").alone(1):
        done.append(lack)
    assert done == [lack]
