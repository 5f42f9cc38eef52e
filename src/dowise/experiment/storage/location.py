"""Where a store is: a file name, or a URL. Nothing here shows a password."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from dowise.errors import DowiseError, import_extra
from dowise.experiment.storage.contract import Storage

__all__ = ["Location", "location_of", "open_storage"]

_SCHEMES = ("sqlite", "postgresql", "postgres", "postgresql+psycopg")


class Location(NamedTuple):
    """A file of SQLite's, or the URL of a PostgreSQL database."""

    path: Path | None
    url: Any
    """SQLAlchemy's, None for a file."""

    @property
    def password(self) -> str | None:
        """What must never be shown."""
        return None if self.url is None else self.url.password

    def __str__(self) -> str:
        if self.url is None:
            return str(self.path)
        plain = self.url.set(drivername="postgresql", query={})
        return str(plain.render_as_string(hide_password=True))


def open_storage(store: str | os.PathLike[str] | Storage, create: bool = False) -> Storage:
    """The store of this name; it is made only with `create`."""
    if not isinstance(store, str | os.PathLike):
        if all(hasattr(store, name) for name in ("writing", "read", "keep_snapshot")):
            return store
        raise DowiseError(f"{store!r:.80} is no store: give a file name or a URL")
    location = location_of(os.fspath(store))
    from dowise.experiment.storage.sql import SqlStorage

    return SqlStorage(location, create)


def location_of(store: str) -> Location:
    """Read a file name, sqlite:///file or postgresql://…"""
    scheme, mark, rest = store.partition("://")
    if not store.strip() or "\\0" in store:
        raise DowiseError("give the store, a file name such as ward.db, or a URL")
    if not mark:
        return Location(Path(store), None)
    if scheme not in _SCHEMES:
        raise DowiseError(
            f"a store can't be at {scheme}://…: give a file name, sqlite:///ward.db or "
            "postgresql://user@host/base"
        )
    if scheme == "sqlite":
        path = rest.removeprefix("/")
        if not path or path == ":memory:" or rest == path:
            raise DowiseError("write sqlite:///ward.db for a file here, sqlite:////data/ward.db")
        return Location(Path(path), None)
    engine = import_extra("sqlalchemy.engine", "live", "a store")
    import_extra("psycopg", "postgres", "a PostgreSQL store")
    try:
        url = engine.make_url(f"postgresql+psycopg://{rest}")
    except Exception:  # whatever it is, it may hold the password
        raise DowiseError(
            "this URL can't be read: write postgresql://user:password@host/base, and %40 for an @ "
            "in the password"
        ) from None
    return Location(None, url)
