"""What every event needs of a database, spelled once for each kind of it.

SQLAlchemy takes longer to make a statement ready than SQLite takes to run it. So what is asked for
with every event is compiled once, and then run by the driver itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Executable, bindparam, func, insert, select
from sqlalchemy.sql.expression import ClauseElement

from dowise.experiment.event import DamagedEventError, Event
from dowise.experiment.storage.database import Database, Row, Values
from dowise.experiment.storage.schema import events

__all__ = ["APPEND", "NEWEST", "READ", "SPAN", "Statement", "as_events"]


class Statement:
    """A statement that is run often, its values given by name."""

    def __init__(self, clause: Executable) -> None:
        assert isinstance(clause, ClauseElement)
        self._clause = clause
        self._spelled: dict[str, tuple[str, Sequence[str] | None]] = {}

    def run(
        self, database: Database, connection: Connection, given: Mapping[str, Any]
    ) -> list[Row]:
        """The rows that it gives, as plain tuples."""
        return database.run(connection, *self.spelled(connection, given))

    def spelled(self, connection: Connection, given: Mapping[str, Any]) -> tuple[str, Values]:
        """Its text for this kind of database, and the values as its driver wants them."""
        text, order = self._spelled.get(connection.dialect.name) or self._spell(connection)
        return text, given if order is None else [given[name] for name in order]

    def _spell(self, connection: Connection) -> tuple[str, Sequence[str] | None]:
        compiled: Any = self._clause.compile(dialect=connection.dialect)
        found = str(compiled), compiled.positiontup if compiled.positional else None
        self._spelled[connection.dialect.name] = found
        return found


_OF_EXPERIMENT = events.c.experiment == bindparam("name")
_AFTER = events.c.number > bindparam("after")

READ = Statement(select(events).where(_OF_EXPERIMENT, _AFTER).order_by(events.c.number))
SPAN = Statement(
    select(events)
    .where(_OF_EXPERIMENT, _AFTER, events.c.number <= bindparam("upto"))
    .order_by(events.c.number)
)
NEWEST = Statement(select(func.max(events.c.number)).where(_OF_EXPERIMENT))
APPEND = Statement(insert(events))


def as_events(rows: Sequence[Row]) -> list[Event]:
    """The rows of a query for whole events."""
    for row in rows:  # SQLite would hold anything in any column
        if type(row[1]) is not int or {*map(type, row)} != {int, str}:
            raise DamagedEventError(f"event {row[1]} of {row[0]} can't be read: run an audit")
    return [Event(*row) for row in rows]
