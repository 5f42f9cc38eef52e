"""From what the user calls a store to the store."""

from __future__ import annotations

from pathlib import Path

from dowise.errors import DowiseError, import_extra
from dowise.experiment.storage.contract import Storage
from dowise.experiment.storage.location import Location, locate

__all__ = ["open_storage"]


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
    from dowise.experiment.storage.failures import plainly
    from dowise.experiment.storage.postgres import PostgresDatabase
    from dowise.experiment.storage.sql import SqlStorage
    from dowise.experiment.storage.sqlite import SqliteDatabase

    database = SqliteDatabase(location) if location.path else PostgresDatabase(location)
    try:
        with plainly(location, "open the store"):
            database.prepare(create)
    except TimeoutError:
        raise DowiseError(
            f"{location.shown}: can't open the store: another program has held it for a minute; "
            "end that one, or try again later"
        ) from None
    return SqlStorage(database)
