"""The files of a SQLite store, and what this user may do with them.

SQLite keeps a -wal and a -shm file beside a store that is in use, and even who reads makes them.
Those that a user makes who may only read are left behind, and the owner can't write to them: so
such a user opens the store in a way that makes none. Where others have it open, SQLite reads along
in the files that they made. Where nobody has, all there is stands in the file itself, and SQLite is
told that nobody writes to it (`immutable`). That holds only as long as the file stays as it was
found: so how it was found is part of a `Place`, and what was read of a place that is another one
by now is read again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

__all__ = ["Place", "SqliteFiles"]

WRITING = "rw"
READING_ALONG = "ro&readonly_shm=1"
READING_ROLLBACK = "ro"  # a file that is not in WAL mode, while somebody writes to it
READING_ALONE = "ro&immutable=1"
_PATIENCE = 1.0  # seconds: who takes a file away is done in a moment


class Place(NamedTuple):
    """Which file has the name now, and how this user opens it, as SQLite's URIs say it."""

    device: int
    inode: int
    mode: str
    still: tuple[int, int] | None = None
    """Where nobody may write to it: when it was last written, and its size."""


class SqliteFiles:
    """A file of SQLite, and those that SQLite keeps beside it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._wal, self._shm, self._journal = (
            path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-shm", "-journal")
        )

    def place(self) -> Place | None:
        """What is there now, or None where there is no file."""
        try:
            found = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        file = found.st_dev, found.st_ino
        if self._may_write():
            return Place(*file, WRITING)
        if self._wal.exists() and (self._shm.exists() or self.has_news_beside()):
            return Place(*file, READING_ALONG)
        if self._journal.exists():
            return Place(*file, READING_ROLLBACK)
        return Place(*file, READING_ALONE, (found.st_mtime_ns, found.st_size))

    def _may_write(self) -> bool:
        beside = (self._wal, self._shm)
        return os.access(self._path, os.W_OK) and (
            os.access(self._path.parent, os.W_OK)
            or all(os.access(file, os.W_OK) for file in beside)
        )

    def has_wal(self) -> bool:
        """Whether there is a file with events beside it, perhaps none in it."""
        return self._wal.exists()

    def has_news_beside(self) -> bool:
        """Whether events stand beside the file that may not be in it yet."""
        try:
            return self._wal.stat().st_size > 0
        except OSError:
            return False

    def drop_own_wal(self) -> None:
        """Take away an empty -wal file of this user's that nobody can be using.

        SQLite makes one where the last of those whom one wants to read along with just left. Nobody
        is opening it to write meanwhile (`opened_to_write`).
        """
        with self._folder_held(alone=True) as is_held, suppress(OSError):
            found = self._wal.stat()
            is_ours = hasattr(os, "geteuid") and found.st_uid == os.geteuid()
            if is_held and is_ours and not found.st_size and not self._shm.exists():
                self._wal.unlink()

    def opened_to_write(self) -> AbstractContextManager[bool]:
        """While SQLite opens the files for who writes: until there is a -shm file, a -wal file that
        is being opened looks like one that nobody uses."""
        return self._folder_held(alone=False)

    @contextmanager
    def _folder_held(self, alone: bool) -> Iterator[bool]:
        """A lock on the folder, which takes no right to write there; whether it was had.

        Who writes goes on without it after a while: nobody can hold up the owner.
        """
        try:
            import fcntl

            folder = os.open(self._path.parent, os.O_RDONLY)
        except (ImportError, OSError):  # Windows, where nobody takes a file away that is open
            yield False
            return
        try:
            is_held, deadline = False, time.monotonic() + (0.0 if alone else _PATIENCE)
            while not is_held:
                try:
                    fcntl.flock(folder, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
                    is_held = True
                except OSError:
                    if time.monotonic() >= deadline:
                        break
                    time.sleep(0.005)
            yield is_held
        finally:
            os.close(folder)

    def hindrance(self) -> str | None:
        """What keeps this user from writing: which file, whose it is, and the remedy."""
        if _is_on_read_only_disk(self._path.parent):
            return "its file system is mounted read-only: copy the store to another one"
        if self._path.exists() and not os.access(self._path, os.W_OK):
            return (
                f"{_whose(self._path, 'the file')} may not write to it: ask for that right, "
                "or copy the store to a folder of your own"
            )
        for file in (self._wal, self._shm):
            if file.exists() and not os.access(file, os.W_OK):
                return (
                    f"{_whose(file, f'{file.name} beside it')} may not write to it: end the "
                    "owner's programs that use the store; if the file is still there then, let "
                    f"root give it to you (chown {_me()} {file.name})"
                )
        if not self._may_write():
            return (
                f"{_whose(self._path.parent, 'its folder')} may not make files there, as SQLite "
                "has to: ask for that right, or keep the store in a folder of your own"
            )
        return None

    def hindrance_to_reading(self) -> str | None:
        """The same for who wants to look."""
        for file in (self._path, self._wal, self._shm):
            with suppress(OSError):
                if file.exists() and not os.access(file, os.R_OK):
                    return f"{_whose(file, file.name)} may not read it: ask for that right"
        if self.has_news_beside() and not self._shm.exists() and not self._may_write():
            return (
                f"its newest events are in {self._wal.name}, which only who may write to the store "
                "can read now: let its owner look at it once, or copy both files to a folder of "
                "your own"
            )
        return None


def _is_on_read_only_disk(path: Path) -> bool:
    with suppress(OSError, AttributeError):  # AttributeError: Windows
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    return False


def _whose(path: Path, named: str) -> str:
    """The beginning of a sentence on what this user may not do with somebody's file."""
    try:
        owner = path.owner()
    except (KeyError, OSError, NotImplementedError):  # a user without a name; Windows
        owner = "another user"
    return f"{named} belongs to {owner}, and you ({_me()})"


def _me() -> str:
    try:
        import pwd

        return pwd.getpwuid(os.geteuid()).pw_name
    except (ImportError, KeyError):  # Windows; a user without a name
        return str(os.geteuid()) if hasattr(os, "geteuid") else "this user"
