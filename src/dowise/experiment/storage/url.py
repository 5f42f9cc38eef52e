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
        raise DowiseError(  # and nothing of it is shown: it may hold a password
            "this is neither a file name nor a URL: write ward.db, sqlite:///ward.db or "
            "postgresql://user:password@host/base"
        )
    if not isinstance(store, str | Path):
        raise DowiseError(
            f"a {type(store).__name__} is no store: give a file name such as ward.db, a URL that "
            "begins with sqlite:/// or postgresql://, or a Storage"
        )
    if not str(store) or "\0" in str(store) or str(store) == ":memory:":
        raise DowiseError(f"{str(store)!r} can't name a store: give a file name such as ward.db")
    return Location(str(store), Path(store))


def _from_url(text: str) -> Location:
    scheme = text.partition("://")[0].lower()
    if scheme not in _SQLITE | _POSTGRES:
        server = "dowise.Client asks a server; " if scheme in ("http", "https") else ""
        raise DowiseError(
            f"a store can't be opened by {scheme}://: {server}give a file name such as ward.db, or "
            "a URL that begins with sqlite:/// or postgresql://"
        )
    import_extra("sqlalchemy", "live", "a store of experiments")
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(scheme + text[len(scheme) :])
    except (ArgumentError, ValueError):  # their words hold the password
        raise DowiseError(
            f"this {scheme}:// URL can't be read: write {scheme}://user:password@host:5432/database"
            ", with %-codes for signs such as @ and / in the password"
            if scheme in _POSTGRES
            else "this sqlite:// URL can't be read: write sqlite:///ward.db"
        ) from None
    return _file(url) if scheme in _SQLITE else _server(url)


def _file(url: URL) -> Location:
    if not url.database or url.database == ":memory:" or url.host or url.query:
        raise DowiseError(
            "a sqlite:// URL names a file and nothing else: write sqlite:///ward.db, or "
            "sqlite:////data/ward.db for a full path"
        )
    return locate(Path(url.database))


def _server(url: URL) -> Location:
    user = f"{quote(url.username)}@" if url.username else ""
    port = f":{url.port}" if url.port else ""
    host = f"[{url.host}]" if url.host and ":" in url.host else url.host or ""
    shown = f"postgresql://{user}{host}{port}/{url.database or ''}"
    # Secrets: the password, and all of the query except parameters that are known to be harmless.
    secrets = [str(url.password)] if url.password else []
    for key, value in url.query.items():
        if key not in _HARMLESS:
            secrets += [value] if isinstance(value, str) else value
    spellings = {form(text) for text in secrets for form in (str, quote, quote_plus)} - {""}
    return Location(
        shown, url=url.set(drivername="postgresql+psycopg"), secrets=tuple(sorted(spellings))
    )
