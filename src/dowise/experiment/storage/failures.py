"""What a database says when it can't, in plain English and without a password."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from dowise.errors import DowiseError, UnavailableError
from dowise.experiment.storage.location import Location
from dowise.experiment.storage.rules import named
from dowise.experiment.storage.sqlite_files import SqliteFiles

__all__ = ["changing", "is_busy", "is_refused", "plainly", "too_long"]

_REPLACED = "restore it from a copy, or name another file"
_SQLITE = {
    "SQLITE_NOTADB": f"it is not a SQLite file, so no store of dowise: {_REPLACED}; in a "
    "command the store comes first",
    "SQLITE_CORRUPT": f"it is damaged or cut short: {_REPLACED}",
    "SQLITE_FULL": "the disk is full: make room, then do it again",
    "SQLITE_READONLY": "the file or its folder is read-only: let this user write to them, or copy "
    "the store to a folder of your own",
    "SQLITE_CANTOPEN": "it can't be opened: both the file and its folder must let this user read "
    "and write",
    "SQLITE_PERM": "this user may not open it",
    "SQLITE_IOERR": "the system could not read or write it: see that the disk is well and has room",
    "SQLITE_TOOBIG": "what it should hold is too large for SQLite",
}
_LACKS = "it lacks a part of its own tables: restore it from a copy"
_RIGHTS = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")
_POSTGRES = {
    "28P01": "the server refuses this user and password: correct them in the URL",
    "28000": "the server refuses this user: correct the URL, or let the server accept it",
    "3D000": "the server has no such database: make it with createdb, or correct the URL",
    "42501": "this user lacks a right there: let the server's keeper grant it",
    "25006": "the server takes no writes now, being read-only or a standby: name the primary one",
    "53100": "the server's disk is full: make room, then do it again",
    "53300": "the server has no connection left: try again later, or raise max_connections",
    "54000": "what it should hold is too large for PostgreSQL",
    "42P01": _LACKS,
    "42703": _LACKS,
}


def is_busy(error: BaseException) -> bool:
    """Whether SQLite would do it if one came back a moment later."""
    name = str(getattr(_root(error), "sqlite_errorname", ""))
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL"))


def is_refused(error: BaseException) -> bool:
    """Whether SQLite may not open its files, or not in this way."""
    return str(getattr(_root(error), "sqlite_errorname", "")).startswith(_RIGHTS)


@contextmanager
def plainly(location: Location, doing: str) -> Iterator[None]:
    """Let nothing out but a `DowiseError` that says what could not be done, and TimeoutError.

    What the driver raised is not kept with it: it may hold the URL.
    """
    try:
        yield
    except TimeoutError:
        raise
    except (SQLAlchemyError, sqlite3.Error, OSError, UnicodeError, OverflowError) as error:
        raise UnavailableError(
            f"{location.shown}: can't {doing}: {_why(error, location)}"
        ) from None


@contextmanager
def changing(location: Location, doing: str) -> Iterator[None]:
    """The same for changes to the store itself, which wait a minute for whoever writes to it."""
    try:
        with plainly(location, doing):
            yield
    except TimeoutError:
        raise UnavailableError(
            f"{location.shown}: can't {doing}: another program has held it for a minute; end that "
            "one, or try again later"
        ) from None


def _why(error: Exception, location: Location) -> str:
    root = _root(error)
    known = _in_sqlite(root, location) or _POSTGRES.get(str(getattr(root, "sqlstate", "")))
    if known is None and getattr(error, "connection_invalidated", False):
        known = (
            "the connection was lost: look whether the server runs, then do it again; what was "
            "being written is there whole or not at all, which reading it will show"
        )
    if known is None:
        said = " ".join(str(getattr(root, "strerror", None) or root).split())
        known = said if said and location.is_discreet(said) else type(root).__name__
        if "connect" in said and location.url is not None:
            known += " (see that the server runs, and that host, user and password are right)"
    return known


def too_long(location: Location, experiment: str, patience: float) -> DowiseError:
    """Somebody else held the experiment for all the time that we wait."""
    return UnavailableError(
        f"{location.shown}: {named(experiment)} can't be written: another program or thread has "
        f"held it for {patience:g} seconds; end that one, or try again later"
    )


def _root(error: BaseException) -> BaseException:
    """What the driver said, inside of what SQLAlchemy made of it."""
    root = getattr(error, "orig", None)
    return root if isinstance(root, BaseException) else error


def _in_sqlite(root: BaseException, location: Location) -> str | None:
    name = str(getattr(root, "sqlite_errorname", ""))
    if name.startswith(_RIGHTS) and location.path is not None:
        files = SqliteFiles(Path(os.path.realpath(location.path)))
        if why := files.hindrance_to_reading() or files.hindrance():
            return why
    if name == "SQLITE_ERROR" and str(root).startswith("no such "):
        return _LACKS
    return next((words for key, words in _SQLITE.items() if name.startswith(key)), None)
