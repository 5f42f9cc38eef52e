"""Journals in a PostgreSQL database, with a lock for each experiment.

The lock is an advisory one of the server's, keyed by 64 bits of the experiment's name and held
until the transaction ends: it needs no row to exist, and is gone with the connection of whoever
held it. Two names that share a key would only wait for one another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any, TypeVar

from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from dowise.errors import DowiseError, import_extra
from dowise.experiment.storage import schema
from dowise.experiment.storage.database import Row, Values
from dowise.experiment.storage.location import Location
from dowise.experiment.storage.rules import HOW_TO_MAKE

__all__ = ["PostgresDatabase"]

Result = TypeVar("Result")

_LOCK_TIMEOUT = "55P03"
_SECONDS_TO_CONNECT = 10


class PostgresDatabase:
    """A database of a PostgreSQL server."""

    one_writer = False
    most_idle = 8  # a server has room for about a hundred from all programs together

    def __init__(self, location: Location) -> None:
        assert location.url is not None
        import_extra("psycopg", "postgres", "a store in PostgreSQL")
        self.location = location
        settings = {"connect_timeout": _SECONDS_TO_CONNECT} | dict(location.url.query)
        self._engine = create_engine(
            location.url,
            connect_args={"connect_timeout": settings["connect_timeout"]},
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            hide_parameters=True,
        )

    def prepare(self, create: bool) -> int:
        """See that the tables are there; make them where that is asked for."""
        shown = self.location.shown
        with self._engine.connect() as connection:
            found = schema.find_version(connection, shown)
            if found is None and not create:
                raise DowiseError(f"there is no store in {shown}: make it ({HOW_TO_MAKE})")
            if found is None:
                self.begin(connection, "", time.monotonic() + 60)
                found = schema.find_version(connection, shown)
                if found is None:
                    schema.make_tables(connection)
                    found = schema.VERSION
                connection.exec_driver_sql("COMMIT")
            schema.check_version(found, shown)
            return found

    def catch_up(self, deadline: float) -> None:
        """Bring older tables up to date."""
        with self._engine.connect() as connection:
            self.begin(connection, "", deadline)
            found = schema.find_version(connection, self.location.shown)
            if found is not None and found < schema.VERSION:
                schema.migrate(connection, found)
            connection.exec_driver_sql("COMMIT")

    def connect(self, identity: Hashable) -> Connection:  # noqa: ARG002
        """A connection to tables that are there."""
        connection = self._engine.connect()
        try:
            version = schema.find_version(connection, self.location.shown)
            if version is None:
                raise DowiseError(f"the tables of {self.location.shown} are gone: restore them")
            schema.check_version(version, self.location.shown)
        except BaseException:
            connection.close()
            raise
        return connection

    def identity(self) -> Hashable:
        """A server is itself."""
        return None

    def patiently(self, call: Callable[[], Result]) -> Result:
        """Call: a server itself waits where it must."""
        return call()

    def run(self, connection: Connection, text: str, values: Values = ()) -> list[Row]:
        """Let the driver run a statement, or several; the rows that the last one gives."""
        driver = _driver(connection)
        with _as_sqlalchemy_says(connection):
            cursor = driver.execute(text, values or None)
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    def commit(self, connection: Connection, text: str = "", values: Values = ()) -> None:
        """Run a last statement, if there is one, and commit: in one journey to the server.

        The values stand in the text, as the driver quotes them, and what fails ends all of it. (A
        pipeline would do too, but where a connection is lost in one, the driver does not say so.)
        """
        import psycopg

        with _as_sqlalchemy_says(connection):
            cursor = psycopg.ClientCursor(_driver(connection))
            cursor.execute(f"{text}; COMMIT" if text else "COMMIT", values or None)

    def close(self) -> None:
        """Nothing is left open but connections."""

    def begin(
        self,
        connection: Connection,
        experiment: str,
        deadline: float,
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        """Begin to write, alone in the experiment; the server wakes who has waited longest.

        Who does not get in at once stands in a queue, behind a lock of the session's. Only its
        first waits for the experiment, having read what is new `meanwhile`: so little is left to
        read while all others wait.
        """
        alone, queue = _key(f"dowise:{experiment}"), _key(f"dowise queue:{experiment}")
        patience = max(int(1000 * (deadline - time.monotonic())), 1)
        try:
            ((is_in,),) = self.run(
                connection,
                "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
                f"SET LOCAL lock_timeout = {patience}; SET LOCAL synchronous_commit = on; "
                f"SELECT CASE WHEN pg_try_advisory_xact_lock({alone}) THEN 1 "
                f"ELSE (SELECT 0 FROM (SELECT pg_advisory_lock({queue})) AS waited) END",
            )
            if not is_in:
                if meanwhile is not None:
                    meanwhile()
                self.run(
                    connection,
                    f"SELECT pg_advisory_xact_lock({alone}); SELECT pg_advisory_unlock({queue})",
                )
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == _LOCK_TIMEOUT:
                raise TimeoutError from None
            raise

    def clean(self, connection: Connection, deadline: float) -> None:  # noqa: ARG002
        """Let the server make the old rows' room free; when it is used again is its own affair."""
        with suppress(DBAPIError):  # not the tables' owner; autovacuum does it some time later
            connection.exec_driver_sql("VACUUM events, snapshots")


def _key(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big", signed=True)


def _driver(connection: Connection) -> Any:
    """The driver's own connection: SQLAlchemy takes longer for a statement than the server."""
    return connection.connection.driver_connection


@contextmanager
def _as_sqlalchemy_says(connection: Connection) -> Iterator[None]:
    """What the driver raises, as the error that SQLAlchemy makes of it."""
    import psycopg

    driver = _driver(connection)
    try:
        yield
    except psycopg.Error as error:
        lost = bool(driver.closed)
        if lost:
            connection.invalidate(error)
        raise DBAPIError("", None, error, connection_invalidated=lost) from None
