"""Tokens in a table beside the journals."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, bindparam, func, insert, select, update

from dowise.errors import DowiseError
from dowise.experiment.storage.database import Database, Row
from dowise.experiment.storage.failures import changing, plainly
from dowise.experiment.storage.rules import PATIENCE, known_already
from dowise.experiment.storage.schema import HAS_TOKENS, schema, tokens
from dowise.experiment.storage.sql_writing import SqlWriting
from dowise.experiment.storage.statements import Statement
from dowise.experiment.storage.token_contract import Token

__all__ = ["SqlTokens"]

Result = TypeVar("Result")

_FIND = Statement(select(tokens).where(tokens.c.hash == bindparam("hash")))
_NUMBERED = Statement(select(tokens).where(tokens.c.id == bindparam("number")))
_READ = Statement(select(tokens).order_by(tokens.c.id))
_VERSION = Statement(select(schema.c.version))
_NEWEST = select(func.max(tokens.c.id))

_itself = select(tokens.c.id).where(tokens.c.id == bindparam("number")).cte(recursive=True)
_family = _itself.union(select(tokens.c.id).where(tokens.c.parent == _itself.c.id))
_STILL = update(tokens).where(tokens.c.ended_at.is_(None)).values(ended_at=bindparam("at"))
_END_FAMILY = _STILL.where(tokens.c.id.in_(select(_family.c.id)))
_END_ONE = _STILL.where(tokens.c.id == bindparam("number"))


class _Ask(Protocol):
    def __call__(self, work: Callable[[Connection], Result]) -> Result: ...


class SqlTokens:
    """Tokens in a table; a store from before there were any has none, and gets it with the first.

    `ask` reads, `hold` writes alone: both are those of the store.
    """

    def __init__(
        self,
        database: Database,
        ask: _Ask,
        hold: Callable[[], AbstractContextManager[SqlWriting]],
    ) -> None:
        self._database = database
        self._ask = ask
        self._hold = hold

    def add(self, token: Token) -> Token:
        """Keep a token that has no parent; the same with its number."""
        with self._writing() as connection:
            return self._add(connection, token._replace(parent=None))

    def add_child(self, token: Token, once: bool) -> Token | None:
        """Keep a token of a parent that has not ended; with `once` that ends by it."""
        given = {"number": token.parent}
        with self._writing() as connection:
            there = self._run(connection, _NUMBERED, given)
            if not there or there[0].ended_at is not None:
                return None
            if once:
                connection.execute(_END_ONE, given | {"at": token.made_at})
            return self._add(connection, token)

    def find(self, hash_: str) -> Token | None:
        """The token with this hash."""
        found = self._found(_FIND, {"hash": hash_})
        return found[0] if found else None

    def read(self) -> list[Token]:
        """All tokens, in the order of their numbers."""
        return self._found(_READ, {})

    def end(self, number: int, at: str) -> bool:
        """End a token and all that came from it; False where there is no such token."""
        given = {"number": number}
        if not self._found(_NUMBERED, given):
            return False
        with self._writing() as connection:
            connection.execute(_END_FAMILY, given | {"at": at})
        return True

    def _add(self, connection: Connection, token: Token) -> Token:
        if self._run(connection, _FIND, {"hash": token.hash}):
            raise known_already(token.hash)
        newest = connection.execute(_NEWEST).scalar()
        added = token._replace(id=(newest or 0) + 1)
        connection.execute(insert(tokens), added._asdict())
        return added

    def _found(self, statement: Statement, given: Mapping[str, Any]) -> list[Token]:
        def find(connection: Connection) -> list[Token]:
            return self._run(connection, statement, given) if self._has(connection) else []

        return self._ask(find)

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A connection while nobody else can write tokens; what is done by it is committed."""
        location = self._database.location
        if not self._ask(self._has):
            with changing(location, "bring the store up to date, for tokens"):
                self._database.catch_up(time.monotonic() + PATIENCE)
        with self._hold() as block, plainly(location, "write to the list of tokens"):
            yield block.connection

    def _has(self, connection: Connection) -> bool:
        """Whether there is a table of tokens: one in an older store would be somebody else's."""
        ((version,),) = _VERSION.run(self._database, connection, {})
        return bool(version >= HAS_TOKENS)

    def _run(
        self, connection: Connection, statement: Statement, given: Mapping[str, Any]
    ) -> list[Token]:
        return [_token(row) for row in statement.run(self._database, connection, given)]


def _token(row: Row) -> Token:
    """A row of a query for whole tokens, of the kinds that SQLite would not insist on."""
    token = Token(*row)
    texts = (token.hash, token.kind, token.role, token.name, token.made_at)
    perhaps = (token.ends_at, token.ended_at)
    if not (
        type(token.id) is int
        and isinstance(token.parent, int | None)
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(text, str | None) for text in perhaps)
    ):
        raise DowiseError(f"token {token.id!r:.20} can't be read: restore the store from a copy")
    return token
