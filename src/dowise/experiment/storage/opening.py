"""From what the user calls a store to the store."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING

from dowise.errors import import_extra
from dowise.experiment.storage.contract import Storage
from dowise.experiment.storage.location import Location, locate

if TYPE_CHECKING:
    from dowise.experiment.storage.database import Database

__all__ = ["open_storage"]

PATIENCE_TO_CATCH_UP = 2.0  # seconds, where older tables serve as well: the next to open may do it


def open_storage(store: str | Path | Storage, create: bool = False) -> Storage:
    """A file name (`ward.db`), `sqlite:///ward.db`, `postgresql://…`, or a Storage as it is.

    A store that is not there is an error, unless `create` is said: then its file and its tables are
    made. What is there is never made anew.
    """
    if not isinstance(store, str | Path) and hasattr(store, "writing"):
        return store
    location = locate(store)  # type: ignore[arg-type]  # refuses what is neither
    import_extra("sqlalchemy", "live", "a store of experiments")
    return _open(location, create)


def _open(location: Location, create: bool) -> Storage:
    from dowise.experiment.storage.failures import changing
    from dowise.experiment.storage.postgres import PostgresDatabase
    from dowise.experiment.storage.sql import SqlStorage
    from dowise.experiment.storage.sqlite import SqliteDatabase

    database = SqliteDatabase(location) if location.path else PostgresDatabase(location)
    with changing(location, "open the store"):
        version = database.prepare(create)
        _catch_up(database, version)
    return SqlStorage(database)


def _catch_up(database: Database, version: int) -> None:
    """Bring older tables up to date; where that can't be done, those that serve stay as they are.

    So who may only read a store, or meets somebody who writes for long, can still look at it.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from dowise.experiment.storage import schema
    from dowise.experiment.storage.rules import PATIENCE

    if version >= schema.VERSION:
        return
    serves = version >= schema.SERVES
    try:
        database.catch_up(time.monotonic() + (PATIENCE_TO_CATCH_UP if serves else PATIENCE))
    except (SQLAlchemyError, sqlite3.Error, PermissionError, TimeoutError):
        if not serves:
            raise
