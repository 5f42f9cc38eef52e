"""The tables of a store, their version, and the way from one version to the next.

`MIGRATIONS[v]` turns the tables of version v into those of version v + 1. All steps that a store
lacks run in one transaction, under the lock that keeps other writers out, when it is opened. Where
they can't, say for who may only read it, tables from `SERVES` on are used as they are.

Version 2 added the tokens of those who use a store over HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import (
    BigInteger,
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

__all__ = [
    "HAS_TOKENS", "MIGRATIONS", "SERVES", "VERSION", "check_version", "events", "find_version",
    "make_tables", "migrate", "schema", "snapshots", "tokens",
]  # fmt: skip

Step = Callable[[Connection], None]

VERSION = 2
SERVES = 1  # the tables of journals are the same from this version on
HAS_TOKENS = 2

_METADATA = MetaData()


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


events = Table(
    "events",
    _METADATA,
    Column("experiment", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    *map(_text, ("kind", "at", "actor", "salt", "body", "hash")),
)
snapshots = Table(
    "snapshots",
    _METADATA,
    Column("experiment", Text, primary_key=True),
    Column("number", BigInteger, nullable=False),
    _text("hash"),
    Column("body", LargeBinary, nullable=False),
)
tokens = Table(
    "tokens",
    _METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("hash", Text, nullable=False, unique=True),
    *map(_text, ("kind", "role", "name")),
    Column("parent", BigInteger),
    _text("made_at"),
    Column("ends_at", Text),
    Column("ended_at", Text),
)
schema = Table("dowise_schema", _METADATA, Column("version", Integer, nullable=False))


def _add_tokens(connection: Connection) -> None:
    # Spelled out: a step leads to the tables of then, whatever those of today are.
    connection.exec_driver_sql(
        "CREATE TABLE tokens (id BIGINT NOT NULL, hash TEXT NOT NULL, kind TEXT NOT NULL, "
        "role TEXT NOT NULL, name TEXT NOT NULL, parent BIGINT, made_at TEXT NOT NULL, "
        "ends_at TEXT, ended_at TEXT, PRIMARY KEY (id), UNIQUE (hash))"
    )


MIGRATIONS: Mapping[int, Step] = {1: _add_tokens}


def find_version(connection: Connection, shown: str) -> int | None:
    """The version of the store's tables; None where there are none, an error for foreign ones."""
    there = set(inspect(connection).get_table_names())
    if schema.name in there:
        found = connection.execute(select(schema.c.version)).scalars().all()
        if len(found) == 1 and type(found[0]) is int and found[0] >= 1:
            return int(found[0])
        raise DowiseError(
            f"{shown} is damaged: it does not say of which version it is; restore it from a copy"
        )
    foreign = there if connection.dialect.name == "sqlite" else there & set(_METADATA.tables)
    if foreign:
        raise DowiseError(
            f"{shown} is no store of dowise: it holds tables of something else "
            f"({', '.join(sorted(foreign)[:3])}); name another place"
        )
    return None


def make_tables(connection: Connection) -> None:
    """The tables of today's version, inside the caller's transaction."""
    _METADATA.create_all(connection, checkfirst=False)
    connection.execute(insert(schema).values(version=VERSION))


def check_version(found: int, shown: str) -> None:
    """Refuse tables that only a newer dowise can read."""
    if found > VERSION:
        raise DowiseError(
            f"{shown} was written by a newer dowise (schema {found}; this one knows {VERSION}): "
            "pip install --upgrade dowise"
        )


def migrate(connection: Connection, found: int) -> None:
    """Bring tables of an older version up to date, inside the caller's transaction."""
    for version in range(found, VERSION):
        MIGRATIONS[version](connection)
    connection.execute(update(schema).values(version=VERSION))
