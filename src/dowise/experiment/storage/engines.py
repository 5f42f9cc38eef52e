"""Connections to SQLite and PostgreSQL, set up so that what is committed stays."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Engine, create_engine

from dowise.errors import DowiseError
from dowise.experiment.storage.location import Location

__all__ = ["check_file", "engine_of"]

_MAGIC = b"SQLite format 3\0"


def check_file(path: Path, create: bool) -> None:
    """Raise unless this is a file of SQLite's, or with `create` one that can be made."""
    try:
        if path.is_dir():
            raise DowiseError(f"{path} is a folder: give the path of a file in it")
        if not path.exists():
            if not create:
                raise DowiseError(f"{path}: there is no such store: make one with `dowise new`")
            if not path.parent.is_dir():
                raise DowiseError(f"{path}: there is no folder {path.parent}: make it first")
            return
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
    except OSError as error:
        raise DowiseError(f"{str(path)[:80]}: can't be read ({error.strerror})") from None
    if not start and create:
        return
    if start != _MAGIC:
        what = "it is empty" if not start else "it is no SQLite file"
        raise DowiseError(f"{path} is no store: {what}; it was left as it is")


def engine_of(location: Location) -> Engine:
    """What hands out connections."""
    if location.path is not None:
        path = location.path
        return create_engine(
            "sqlite://", creator=lambda: _sqlite(path), pool_size=4, max_overflow=-1,
            pool_reset_on_return=None, poolclass=_pool(),
        )  # fmt: skip
    return create_engine(
        location.url, pool_pre_ping=True, pool_size=4, max_overflow=-1, hide_parameters=True,
        connect_args={"options": "-c synchronous_commit=on", "connect_timeout": 10},
    )  # fmt: skip


def _pool() -> type:
    from sqlalchemy.pool import QueuePool

    return QueuePool


def _sqlite(path: Path) -> sqlite3.Connection:
    """A connection without transactions of Python's own making."""
    uri = f"file:{quote(str(path.absolute()))}?mode=rwc"
    connection = sqlite3.connect(
        uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False
    )
    for setting in ("synchronous=FULL", "secure_delete=ON", "busy_timeout=0"):
        connection.execute(f"PRAGMA {setting}")
    return connection
