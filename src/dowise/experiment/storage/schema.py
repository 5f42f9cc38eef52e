"""The tables of a store, their version, and how older ones are brought up to date."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    insert,
    inspect,
    select,
    update,
)

from dowise.errors import DowiseError

__all__ = ["VERSION", "events", "make_tables", "snapshots", "version_of"]

VERSION = 1
"""Of the tables; what events say has a version of its own."""

_tables = MetaData()
_schema = Table("dowise_schema", _tables, Column("version", Integer, nullable=False))
events = Table(
    "events",
    _tables,
    Column("experiment", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("salt", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("hash", Text, nullable=False),
)
snapshots = Table(
    "snapshots",
    _tables,
    Column("experiment", Text, primary_key=True),
    Column("number", Integer, nullable=False),
    Column("hash", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

Step = Callable[[Connection], None]
STEPS: dict[int, Step] = {}
"""What brings tables of a version to the next one."""


def version_of(connection: Connection) -> int | None:
    """The version of the tables, None where there are none; foreign tables are an error."""
    there = {*inspect(connection).get_table_names()}
    if not there:
        return None
    if _schema.name not in there:
        if there & {*_tables.tables} or connection.dialect.name == "sqlite":
            raise DowiseError("it is a database of something else, and was left as it is")
        return None  # others may have tables in the same database
    found: Any = connection.execute(select(_schema.c.version)).scalar()
    if type(found) is not int or found < 1:
        raise DowiseError("it is damaged: the version of its tables can't be read")
    if found > VERSION:
        raise DowiseError(
            f"its tables have version {found}, and this dowise knows versions 1 to {VERSION}: "
            "update dowise"
        )
    return found


def make_tables(connection: Connection) -> None:
    """Make the tables where there are none, and bring older ones up to date."""
    found = version_of(connection)
    if found is None:
        _tables.create_all(connection)
        connection.execute(insert(_schema).values(version=VERSION))
        return
    for version in range(found, VERSION):
        STEPS[version](connection)
        connection.execute(update(_schema).values(version=version + 1))
