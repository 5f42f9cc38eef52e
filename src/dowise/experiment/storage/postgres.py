"""Journals in a PostgreSQL database, with a lock for each experiment.

It is an advisory lock of the server, whose key is a 64-bit hash of the experiment's name. The lock
needs no row, and ends with the transaction or the connection of its holder. If two names have the
same key, their writers merely wait for each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from dowise.errors import DowiseError, import_extra
from dowise.experiment.storage import sql
from dowise.experiment.storage.base import HOW_TO_CREATE, TIMEOUT
from dowise.experiment.storage.sql import Row, SqlStorage, Values
from dowise.experiment.storage.url import Location

CONNECT_TIMEOUT = 10  # seconds
POOL_SIZE = 8  # a server accepts about a hundred connections of all programs

_LOCK_TIMEOUT_STATE = "55P03"
_MISSING_PART = "it lacks a part of its own tables: restore it from a copy"
_REASONS = {
    "28P01": "the server refuses this user and password: correct them in the URL",
    "28000": "the server refuses this user: correct the URL or the server's settings",
    "3D000": "the server has no such database: create it with createdb, or correct the URL",
    "42501": "this user lacks a privilege: ask the administrator of the server to grant it",
    "25006": "the server is read-only or a standby: use the URL of the primary server",
    "53100": "the server's disk is full: free some space, then try again",
    "53300": "the server has too many connections: try again later, or raise max_connections",
    "54000": "the value is too large for PostgreSQL",
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

    def tables_version(self, create: bool) -> int:
        """Return the version of the tables; create them if requested."""
        with self._engine.connect() as connection:
            version = sql.find_version(connection, self.location.shown)
            if version is not None:
                return version
            if not create:
                raise DowiseError(
                    f"there is no store in {self}: create one ({HOW_TO_CREATE})",
                    code="not-found",
                )
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
            raise DowiseError(
                f"the tables of {self} are missing: restore them from a copy", code="invalid-store"
            )

    def run(self, connection: Connection, text: str, values: Values = ()) -> list[Row]:
        """Run one or several statements with the driver, and return the rows of the last one."""
        driver = _driver(connection)
        with _wrap_errors(connection):
            cursor = driver.execute(text, values or None)
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    def commit(self, connection: Connection, text: str = "", values: Values = ()) -> None:
        """Run a last statement, if any, and commit, in one round trip.

        The driver quotes the values into the text, and a failure ends the whole transaction. (In a
        pipeline the driver would not report a lost connection.)
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

        Waiting writers queue at a second lock, of the session. Only the first of them waits for the
        experiment, after `on_wait` has read new events, so that little remains to be read while the
        others wait.
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
        """Let the server reclaim the space of old rows; it overwrites them by its own rules."""
        with suppress(DBAPIError):  # the user does not own the tables; autovacuum does it later
            connection.exec_driver_sql("VACUUM events, snapshots")

    def explain(self, error: BaseException) -> str | None:
        """Return a readable message for an error of the server."""
        return _REASONS.get(str(getattr(error, "sqlstate", "")))


def _key(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big", signed=True)


def _driver(connection: Connection) -> Any:
    """Return the driver's connection, since SQLAlchemy takes longer than the server itself."""
    return connection.connection.driver_connection


@contextmanager
def _wrap_errors(connection: Connection) -> Iterator[None]:
    """Raise errors of the driver as SQLAlchemy's."""
    import psycopg

    driver = _driver(connection)
    try:
        yield
    except psycopg.Error as error:
        lost = bool(driver.closed)
        if lost:
            connection.invalidate(error)
        raise DBAPIError("", None, error, connection_invalidated=lost) from None
