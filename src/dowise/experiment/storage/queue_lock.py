"""A place in a queue of processes, by the kernel's lock on a file.

Who waits for SQLite's own lock can only come back and look, and the one who had it last is the
likeliest to find it free. The kernel wakes who has waited longest, at the very moment. It can't be
told to stop after a while, so another thread does the waiting and is left behind if that takes too
long. This lock only puts the writers in order; what keeps them apart is SQLite's. So where it can't
be had, or not soon, all is as safe, and only less fair. It ends with its process in any case.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["QueueLock"]

_ENDING = "-lock"  # beside SQLite's own -wal and -shm, and gone with them


class QueueLock:
    """The queue of those who write to a file."""

    def __init__(self, path: Path) -> None:
        self._store = path
        self._path = path.with_name(path.name + _ENDING)

    def join(self, seconds: float) -> int | None:
        """Wait for one's turn, which lasts until `leave`; None where there is none to be had."""
        place = None
        try:
            while (place := self._open()) is not None:
                if not _lock(place, seconds):
                    break
                if os.fstat(place).st_nlink:
                    return place
                os.close(place)  # the file was removed meanwhile: others queue at a new one
                place = None
        except OSError:  # a folder that can't be written, a file system without locks
            pass
        except BaseException:  # Ctrl-C while waiting
            _close(place)
            raise
        _close(place)
        return None

    def leave(self, place: int | None) -> None:
        """End one's turn."""
        if place is not None:
            with suppress(OSError):
                fcntl.flock(place, fcntl.LOCK_UN)  # a forked child may hold the file open
            os.close(place)

    def remove(self) -> None:
        """Take the file away unless somebody is using it."""
        if fcntl is None or not self._path.exists():
            return
        with suppress(OSError):
            place = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(place).st_nlink:
                    self._path.unlink()
            finally:
                os.close(place)

    def _open(self) -> int | None:
        if fcntl is None:
            return None
        flags = os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        mode = self._store.stat().st_mode & 0o666
        try:
            return os.open(self._path, os.O_RDWR | flags, mode)
        except PermissionError:  # made by another user
            return os.open(self._path, os.O_RDONLY | flags, mode)


def _lock(place: int, seconds: float) -> bool:
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        pass
    again = os.dup(place)  # one lock, which lasts until both are closed
    locked, gave_up = threading.Lock(), False
    locked.acquire()

    def wait() -> None:
        try:
            fcntl.flock(again, fcntl.LOCK_EX)
            if gave_up:
                fcntl.flock(again, fcntl.LOCK_UN)  # a forked child may hold the file open
            else:
                locked.release()
        except OSError:
            pass
        finally:
            os.close(again)

    threading.Thread(target=wait, daemon=True, name="dowise-queue").start()
    try:
        gave_up = not locked.acquire(timeout=seconds)
    except BaseException:
        gave_up = True
        raise
    return not gave_up


def _close(place: int | None) -> None:
    if place is not None:
        with suppress(OSError):
            os.close(place)
