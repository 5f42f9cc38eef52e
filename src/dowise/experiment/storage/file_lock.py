"""Fair lock for the writers of a file: the kernel's lock on a file beside it.

The kernel wakes the process that has waited longest. Retrying `BEGIN IMMEDIATE` with jittered
pauses instead left one of 16 processes that ask and tell with less than half of its share (0.44;
with this lock at least 0.70).

A blocking lock cannot be interrupted after a timeout, so another thread waits for it and is
abandoned if that takes too long. The lock ends with its process in any case.
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

SUFFIX = "-lock"  # removed together with SQLite's -wal and -shm


class FileLock:
    """Fair lock for the writers of a file."""

    def __init__(self, path: Path) -> None:
        self._locked = path
        self.path = path.with_name(path.name + SUFFIX)

    def acquire(self, timeout: float) -> int | None:
        """Wait for the lock and return its file descriptor, to be passed to `release`.

        Returns None after the timeout, and if the folder or the file system allows no locks.
        """
        try:
            return self._acquire(timeout)
        except OSError:
            return None

    def _acquire(self, timeout: float) -> int | None:
        descriptor = None
        try:
            while (descriptor := self._open()) is not None:
                _lock(descriptor, timeout)
                if self._is_current(descriptor):
                    return descriptor
                os.close(descriptor)  # the file was removed during the wait: use the new one
                descriptor = None
        except BaseException:  # including Ctrl-C
            if descriptor is not None:
                with suppress(OSError):
                    os.close(descriptor)
            raise
        return None

    def release(self, descriptor: int | None) -> None:
        """Release the lock; None is allowed and does nothing."""
        if descriptor is not None:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # a forked child may hold the file open
            os.close(descriptor)

    def remove(self) -> None:
        """Delete the lock file unless a process is using it."""
        if fcntl is None or not self.path.exists():
            return
        with suppress(OSError):
            descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_current(descriptor):
                    self.path.unlink()
            finally:
                os.close(descriptor)

    def _open(self) -> int | None:
        if fcntl is None:
            return None
        flags = os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        model = self._locked if self._locked.exists() else self._locked.parent
        mode = model.stat().st_mode & 0o666
        try:
            return os.open(self.path, os.O_RDWR | flags, mode)
        except PermissionError:  # created by another user
            return os.open(self.path, os.O_RDONLY | flags, mode)

    def _is_current(self, descriptor: int) -> bool:
        """Return True if the path still names this file; NFS renames a removed one."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(descriptor), os.lstat(self.path))
        return False


def _lock(descriptor: int, timeout: float) -> None:
    """Lock the file. Raises TimeoutError after the timeout."""
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    duplicate = os.dup(descriptor)  # shares the lock, which lasts until both are closed
    locked, gave_up = threading.Lock(), False
    locked.acquire()

    def wait() -> None:
        try:
            fcntl.flock(duplicate, fcntl.LOCK_EX)
            if gave_up:
                fcntl.flock(duplicate, fcntl.LOCK_UN)  # a forked child may hold the file open
            else:
                locked.release()
        except OSError:
            pass
        finally:
            os.close(duplicate)

    threading.Thread(target=wait, daemon=True, name="dowise-lock").start()
    try:
        gave_up = not locked.acquire(timeout=timeout)
    except BaseException:
        gave_up = True
        raise
    if gave_up:
        raise TimeoutError
