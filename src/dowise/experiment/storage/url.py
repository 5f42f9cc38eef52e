"""Location of a store: file names and URLs, with and without credentials; opening a store."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from dowise.errors import DowiseError, import_extra
from dowise.experiment.storage.base import Storage

if TYPE_CHECKING:
    from sqlalchemy import URL

_HARMLESS = {"host", "hostaddr", "port", "dbname", "user", "sslmode", "connect_timeout"}
_SQLITE = {"sqlite", "sqlite+pysqlite"}
_LIKE_A_URL = re.compile(r"(?i)(postgres\w*|sqlite)(\+\w+)?:|.*\b(password|dbname|host)\s*=")
_POSTGRES = {"postgresql", "postgres", "postgresql+psycopg"}


@dataclass(frozen=True)
class Location:
    """A file, or a database of a PostgreSQL server; `shown` contains no credentials."""

    shown: str
    path: Path | None = None
    url: URL | None = field(default=None, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def is_discreet(self, text: str) -> bool:
        """Return True if a text contains no secret of the URL."""
        return not any(secret in text for secret in self.secrets)


def open_storage(store: str | Path | Storage, create: bool = False) -> Storage:
    """Open a store of experiments.

    Parameters
    ----------
    store : str, Path or Storage
        A file name (`ward.db`), `sqlite:///ward.db` or `postgresql://…`. A `Storage` is returned
        unchanged.
    create : bool, default False
        Create the file and its tables if they do not exist. An existing store is never replaced.

    Returns
    -------
    Storage
        The open store.

    Raises
    ------
    DowiseError
        If there is no such store (and `create` is False), or if it can't be opened.

    Examples
    --------
    >>> from dowise.experiment.storage import MemoryStorage
    >>> open_storage(MemoryStorage()).experiments()
    ()
    """
    if not isinstance(store, str | Path) and hasattr(store, "transaction"):
        return store
    location = locate(store)  # type: ignore[arg-type]  # refuses other types
    import_extra("sqlalchemy", "live", "a store of experiments")
    from dowise.experiment.storage.postgres import PostgresStorage
    from dowise.experiment.storage.sqlite import SqliteStorage

    storage = SqliteStorage(location) if location.path else PostgresStorage(location)
    storage.prepare(create)
    return storage


def locate(store: str | Path) -> Location:
    """Parse a file name or a URL.

    >>> locate("ward.db").shown, locate("sqlite:///ward.db").shown
    ('ward.db', 'ward.db')
    >>> locate("postgresql://ann:secret@db.example/trials?sslpassword=x").shown
    'postgresql://ann@db.example/trials'
    """
    if isinstance(store, str) and "://" in store:
        return _from_url(store)
    if isinstance(store, str) and _LIKE_A_URL.match(store):
        raise DowiseError(  # without the text itself, which may contain a password
            "neither a file name nor a URL: use ward.db, sqlite:///ward.db or "
            "postgresql://user:password@host/database",
            code="invalid-url",
        )
    if not isinstance(store, str | Path):
        raise DowiseError(
            f"a store can't be a {type(store).__name__}: use a file name such as ward.db, a URL "
            "that begins with sqlite:/// or postgresql://, or a Storage",
            code="invalid-type",
        )
    if not str(store) or "\0" in str(store) or str(store) == ":memory:":
        raise DowiseError(
            f"{str(store)!r} is not the name of a store: use one such as ward.db",
            code="invalid-store",
        )
    return Location(str(store), Path(store))


def _from_url(text: str) -> Location:
    scheme = text.partition("://")[0].lower()
    if scheme not in _SQLITE | _POSTGRES:
        client = "for a server use dowise.Client; " if scheme in ("http", "https") else ""
        raise DowiseError(
            f"a store can't have a URL with {scheme}://: {client}use a file name such as ward.db, "
            "or a URL that begins with sqlite:/// or postgresql://",
            code="invalid-url",
        )
    import_extra("sqlalchemy", "live", "a store of experiments")
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(scheme + text[len(scheme) :])
    except (ArgumentError, ValueError):  # whose messages contain the password
        raise DowiseError(
            f"this {scheme}:// URL can't be parsed: use {scheme}://user:password@host:5432/database"
            ", with %-codes for characters such as @ and / in the password"
            if scheme in _POSTGRES
            else "this sqlite:// URL can't be parsed: use sqlite:///ward.db",
            code="invalid-url",
        ) from None
    return _file(url) if scheme in _SQLITE else _server(url)


def _file(url: URL) -> Location:
    if not url.database or url.database == ":memory:" or url.host or url.query:
        raise DowiseError(
            "a sqlite:// URL contains only a file name: use sqlite:///ward.db, or "
            "sqlite:////data/ward.db for an absolute path",
            code="invalid-url",
        )
    return locate(Path(url.database))


def _server(url: URL) -> Location:
    user = f"{quote(url.username)}@" if url.username else ""
    port = f":{url.port}" if url.port else ""
    host = f"[{url.host}]" if url.host and ":" in url.host else url.host or ""
    shown = f"postgresql://{user}{host}{port}/{url.database or ''}"
    # Secret: the password, and all parameters except those that are known to be harmless.
    secrets = [str(url.password)] if url.password else []
    for key, value in url.query.items():
        if key not in _HARMLESS:
            secrets += [value] if isinstance(value, str) else value
    encoded = {encode(text) for text in secrets for encode in (str, quote, quote_plus)} - {""}
    return Location(
        shown, url=url.set(drivername="postgresql+psycopg"), secrets=tuple(sorted(encoded))
    )
