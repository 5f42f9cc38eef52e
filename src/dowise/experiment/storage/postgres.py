"""Journals in a PostgreSQL database, with a lock for each experiment.

The lock is an advisory lock of the server, keyed by 64 bits of the experiment's name and held until
the transaction ends: it needs no row to exist, and ends with the connection of its holder. Two
names that share a key would only wait for one another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any, TypeVar

from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from dowise.errors import DowiseError, import_extra
from dowise.experiment.storage import sql
from dowise.experiment.storage.base import HOW_TO_CREATE, TIMEOUT
from dowise.experiment.storage.sql import Row, SqlStorage, Values
from dowise.experiment.storage.url import Location

Result = TypeVar("Result")

CONNECT_TIMEOUT = 10  # seconds
POOL_SIZE = 8  # a server has room for about a hundred connections of all programs together

_LOCK_TIMEOUT_STATE = "55P03"
_MISSING_PART = "it lacks a part of its own tables: restore it from a copy"
_REASONS = {
    "28P01": "the server refuses this user and password: correct them in the URL",
    "28000": "the server refuses this user: correct the URL, or let the server accept it",
    "3D000": "the server has no such database: make it with createdb, or correct the URL",
    "42501": "this user lacks a right there: let the server's keeper grant it",
    "25006": "the server takes no writes now, being read-only or a standby: name the primary one",
    "53100": "the server's disk is full: make room, then do it again",
    "53300": "the server has no connection left: try again later, or raise max_connections",
    "54000": "what it should hold is too large for PostgreSQL",
    "42P01": _MISSING_PART,
    "42703": _MISSING_PART,
}


class PostgresStorage(SqlStorage):
    """Store in a database of a PostgreSQL server."""

    single_writer = False

    def __init__(self, location: Location, timeout: float = TIMEOUT) -> None:
        assert location.url is not None
        import_extra("psycopg", "postgres", "a store in PostgreSQL")
        settings = {"connect_timeout": CONNECT_TIMEOUT} | dict(location.url.query)
        engine = create_engine(
            location.url,
            connect_args={"connect_timeout": settings["connect_timeout"]},
            hide_parameters=True,
            isolation_level="AUTOCOMMIT",
            poolclass=QueuePool,
            pool_size=POOL_SIZE,
            max_overflow=-1,
            pool_use_lifo=True,
        )
        super().__init__(location, engine, timeout)

    def find_tables(self, create: bool) -> int:
        """Return the version of the tables; create them if requested."""
        with self._engine.connect() as connection:
            version = sql.find_version(connection, self.location.shown)
            if version is not None:
                return version
            if not create:
                raise DowiseError(f"there is no store in {self}: make it ({HOW_TO_CREATE})")
            self._change(connection, sql.create_tables, time.monotonic() + TIMEOUT)
            return sql.VERSION

    def upgrade(self, deadline: float) -> None:
        """Migrate older tables."""
        with self._engine.connect() as connection:
            self._change(connection, sql.upgrade_tables, deadline)

    def _change(
        self,
        connection: Connection,
        change: Callable[[Connection, str], None],
        deadline: float,
    ) -> None:
        try:
            self.begin(connection, "", deadline)
            change(connection, self.location.shown)
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            connection.invalidate()
            raise

    def set_up(self, connection: Connection) -> None:
        """Check that the tables are there."""
        if sql.find_version(connection, self.location.shown) is None:
            raise DowiseError(f"the tables of {self} are gone: restore them")

    def identity(self) -> Hashable:
        """Return a constant: the server knows its database by its name."""
        return None

    def retry_busy(self, call: Callable[[], Result]) -> Result:
        """Call once: readers never wait."""
        return call()

    def run(self, connection: Connection, text: str, values: Values = ()) -> list[Row]:
        """Run one or several statements by the driver, and return the rows of the last one."""
        driver = _driver(connection)
        with _wrap_errors(connection):
            cursor = driver.execute(text, values or None)
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    def commit(self, connection: Connection, text: str = "", values: Values = ()) -> None:
        """Run a last statement, if any, and commit, in one round trip.

        The driver quotes the values into the text, and a failure ends all of it. (A pipeline would
        do too, but the driver does not report a connection that is lost in one.)
        """
        import psycopg

        with _wrap_errors(connection):
            cursor = psycopg.ClientCursor(_driver(connection))
            cursor.execute(f"{text}; COMMIT" if text else "COMMIT", values or None)

    def begin(
        self,
        connection: Connection,
        experiment: str,
        deadline: float,
        on_wait: Callable[[], None] | None = None,
    ) -> None:
        """Begin a transaction as the only writer of the experiment, in order of arrival.

        Writers that have to wait queue at a second lock, of the session. Only the first of them
        waits for the experiment, after `on_wait` has read what is new: so little is left to read
        while all others wait.
        """
        lock, queue = _key(f"dowise:{experiment}"), _key(f"dowise queue:{experiment}")
        timeout = max(int(1000 * (deadline - time.monotonic())), 1)
        try:
            ((is_admitted,),) = self.run(
                connection,
                "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
                f"SET LOCAL lock_timeout = {timeout}; SET LOCAL synchronous_commit = on; "
                f"SELECT CASE WHEN pg_try_advisory_xact_lock({lock}) THEN 1 "
                f"ELSE (SELECT 0 FROM (SELECT pg_advisory_lock({queue})) AS waited) END",
            )
            if not is_admitted:
                if on_wait is not None:
                    on_wait()
                self.run(
                    connection,
                    f"SELECT pg_advisory_xact_lock({lock}); SELECT pg_advisory_unlock({queue})",
                )
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == _LOCK_TIMEOUT_STATE:
                raise TimeoutError from None
            raise

    def clean(self, connection: Connection, deadline: float) -> None:  # noqa: ARG002
        """Let the server free the space of old rows; it overwrites them by its own rules."""
        with suppress(DBAPIError):  # not the owner of the tables; autovacuum does it later
            connection.exec_driver_sql("VACUUM events, snapshots")

    def explain(self, error: BaseException) -> str | None:
        """Return a readable message for an error of the server."""
        return _REASONS.get(str(getattr(error, "sqlstate", "")))


def _key(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big", signed=True)


def _driver(connection: Connection) -> Any:
    """Return the driver's connection: SQLAlchemy takes longer for a statement than the server."""
    return connection.connection.driver_connection


@contextmanager
def _wrap_errors(connection: Connection) -> Iterator[None]:
    """Raise errors of the driver as SQLAlchemy does."""
    import psycopg

    driver = _driver(connection)
    try:
        yield
    except psycopg.Error as error:
        lost = bool(driver.closed)
        if lost:
            connection.invalidate(error)
        raise DBAPIError("", None, error, connection_invalidated=lost) from None
