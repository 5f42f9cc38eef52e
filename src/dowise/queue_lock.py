"""A place in a queue of processes, by the kernel's lock on a file beside the one to be written.

The kernel wakes who has waited longest, at the very moment. It can't be told to stop after a while,
so another thread does the waiting and is left behind if that takes too long. The lock ends with its
process in any case.

Writers of a SQLite file are only put in order by it: who waits for SQLite's own lock can but come
back and look, and the one who had it last is the likeliest to find it free. What keeps them apart
is SQLite's. So where this one can't be had, or not soon, all is as safe, and only less fair.
Writers of the manifest of a race are kept apart by it (`alone`), where the system has such locks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dowise.errors import DowiseError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["QueueLock"]

_ENDING = "-lock"  # beside SQLite's own -wal and -shm, and gone with them


class QueueLock:
    """The queue of those who write to a file."""

    def __init__(self, path: Path) -> None:
        self._written = path
        self.path = path.with_name(path.name + _ENDING)

    def join(self, seconds: float) -> int | None:
        """Wait for one's turn, which lasts until `leave`; None where there is none to be had."""
        try:
            return self._joined(seconds)
        except OSError:  # too long; a folder that can't be written, a file system without locks
            return None

    @contextmanager
    def alone(self, seconds: float) -> Iterator[None]:
        """Have one's turn, and leave no file; raises where somebody else's lasts too long.

        Where there are no locks, others are not kept out.
        """
        place = None
        try:
            place = self._joined(seconds)
        except TimeoutError:
            raise DowiseError(
                f"{self._written}: another process has been writing to it for {seconds:.0f} "
                "seconds: try again when it has ended"
            ) from None
        except OSError:
            pass
        try:
            yield
        finally:
            if place is not None:
                with suppress(OSError):
                    self.path.unlink()  # who waits for it begins anew
            self.leave(place)

    def _joined(self, seconds: float) -> int | None:
        place = None
        try:
            while (place := self._open()) is not None:
                _lock(place, seconds)
                if self._is_in_place(place):
                    return place
                os.close(place)  # the file was removed meanwhile: others queue at a new one
                place = None
        except BaseException:  # Ctrl-C while waiting, too
            _close(place)
            raise
        return None

    def leave(self, place: int | None) -> None:
        """End one's turn."""
        if place is not None:
            with suppress(OSError):
                fcntl.flock(place, fcntl.LOCK_UN)  # a forked child may hold the file open
            os.close(place)

    def remove(self) -> None:
        """Take the file away unless somebody is using it."""
        if fcntl is None or not self.path.exists():
            return
        with suppress(OSError):
            place = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_in_place(place):
                    self.path.unlink()
            finally:
                os.close(place)

    def _open(self) -> int | None:
        if fcntl is None:
            return None
        flags = os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        like = self._written if self._written.exists() else self._written.parent
        mode = like.stat().st_mode & 0o666
        try:
            return os.open(self.path, os.O_RDWR | flags, mode)
        except PermissionError:  # made by another user
            return os.open(self.path, os.O_RDONLY | flags, mode)

    def _is_in_place(self, place: int) -> bool:
        """Whether others find the same file; NFS keeps a removed one under another name."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(place), os.lstat(self.path))
        return False


def _lock(place: int, seconds: float) -> None:
    """Raises TimeoutError where it takes longer."""
    with suppress(BlockingIOError):
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
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
    if gave_up:
        raise TimeoutError


def _close(place: int | None) -> None:
    if place is not None:
        with suppress(OSError):
            os.close(place)
