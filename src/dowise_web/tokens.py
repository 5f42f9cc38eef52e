"""Access tokens, one-time links and sessions, in a table of a SQL store.

A token is a secret for programs and for the login page, valid until it ends or is revoked. A link
opens the browser once. The browser then has a session, which comes from the link or from a token
that was typed in, and ends with that token. Each has a role, which contains the roles before it in
`ROLES`, and the name of its holder, which is the actor in the journal.

A secret consists of 256 random bits and is shown once, when it is created. The store keeps its
SHA-256: nobody can try all secrets of 256 bits, so a deliberately slow hash, as passwords need,
would gain nothing and cost every request. For the same reason the time of a lookup reveals nothing.

Each call on the table is one transaction: of two calls that use up the same link exactly one
succeeds, and no child is added to a token that has ended. Tokens are numbered 1, 2, … in order of
creation and never removed; only `ended_at` changes, once, from None to a time.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, func, insert, select, update

from dowise.errors import DowiseError, suggestion
from dowise.experiment import now, resolve_actor
from dowise.experiment.storage import TIMEOUT, Row, SqlStorage, Statement, Storage
from dowise.experiment.storage import schema as schema_table
from dowise.experiment.storage import tokens as token_table

ROLES = ("read", "tell", "ask", "admin")
LINK_MINUTES = 15
SESSION_HOURS = 7 * 24
MAX_DAYS = 36_500

_SECRET = re.compile(r"dowise_[A-Za-z0-9_-]{43}")
_MAX_ID = 2**63 - 1  # the largest number that databases can hold
_FIRST_VERSION = 2  # of the tables: older stores have no tokens

_FIND = Statement(select(token_table).where(token_table.c.hash == bindparam("hash")))
_GET = Statement(select(token_table).where(token_table.c.id == bindparam("number")))
_READ = Statement(select(token_table).order_by(token_table.c.id))
_VERSION = Statement(select(schema_table.c.version))
_LAST_ID = select(func.max(token_table.c.id))

_root = select(token_table.c.id).where(token_table.c.id == bindparam("number")).cte(recursive=True)
_family = _root.union(select(token_table.c.id).where(token_table.c.parent == _root.c.id))
_END = update(token_table).where(token_table.c.ended_at.is_(None)).values(ended_at=bindparam("at"))
_END_FAMILY = _END.where(token_table.c.id.in_(select(_family.c.id)))
_END_ONE = _END.where(token_table.c.id == bindparam("number"))


class Token(NamedTuple):
    """Stored data of a secret. Times are sortable texts in UTC."""

    id: int
    hash: str
    """SHA-256 of the secret, in hexadecimal digits; unique."""
    kind: str
    role: str
    name: str
    parent: int | None
    """The token that it came from and ends with."""
    made_at: str
    ends_at: str | None
    ended_at: str | None
    """Time at which it was revoked or used up; None before."""


class TokenTable:
    """Table of tokens in a SQL store.

    A store from before there were tokens has none, and gets the table with the first one.
    """

    def __init__(self, storage: Storage) -> None:
        if not isinstance(storage, SqlStorage):
            raise DowiseError(
                f"{storage} can't hold tokens, so it can't be served: use a SQLite file or a "
                "PostgreSQL database",
                code="invalid-store",
            )
        self._storage = storage

    def add(self, token: Token) -> Token:
        """Insert a token without a parent, and return it with its number."""
        with self._transaction() as connection:
            return self._insert(connection, token._replace(parent=None))

    def add_child(self, token: Token, once: bool) -> Token | None:
        """Insert a token of a parent; return None, and do nothing, if the parent has ended.

        With `once` the parent ends with this call.
        """
        parent = {"number": token.parent}
        with self._transaction() as connection:
            rows = self._run(connection, _GET, parent)
            if not rows or rows[0].ended_at is not None:
                return None
            if once:
                connection.execute(_END_ONE, parent | {"at": token.made_at})
            return self._insert(connection, token)

    def find(self, hash_: str) -> Token | None:
        """Return the token with this hash."""
        rows = self._query(_FIND, {"hash": hash_})
        return rows[0] if rows else None

    def read(self) -> list[Token]:
        """Return all tokens, in the order of their numbers."""
        return self._query(_READ, {})

    def end(self, number: int, at: str) -> bool:
        """End a token and all its descendants; return False if it does not exist.

        Tokens that have ended already keep their time.
        """
        values = {"number": number}
        if not self._query(_GET, values):
            return False
        with self._transaction() as connection:
            connection.execute(_END_FAMILY, values | {"at": at})
        return True

    def _insert(self, connection: Connection, token: Token) -> Token:
        if self._run(connection, _FIND, {"hash": token.hash}):
            raise DowiseError(
                f"a token with the hash {token.hash:.8}… exists already: create another secret",
                code="duplicate-name",
            )
        last_id = connection.execute(_LAST_ID).scalar()
        added = token._replace(id=(last_id or 0) + 1)
        connection.execute(insert(token_table), added._asdict())
        return added

    def _query(self, statement: Statement, values: Mapping[str, Any]) -> list[Token]:
        def read(connection: Connection) -> list[Token]:
            return self._run(connection, statement, values) if self._exists(connection) else []

        return self._storage.query(read)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        storage = self._storage
        if not storage.query(self._exists):
            with storage.translate_errors_of_change("bring the store up to date, for tokens"):
                storage.upgrade(time.monotonic() + TIMEOUT)
        with (
            storage.transaction("", label="the list of tokens") as block,
            storage.translate_errors("write to the list of tokens"),
        ):
            yield block.connection

    def _exists(self, connection: Connection) -> bool:
        """Return True if there is a table of tokens: in an older store it would be foreign."""
        ((version,),) = self._storage.run_statement(connection, _VERSION, {})
        return bool(version >= _FIRST_VERSION)

    def _run(
        self, connection: Connection, statement: Statement, values: Mapping[str, Any]
    ) -> list[Token]:
        rows = self._storage.run_statement(connection, statement, values)
        return [_to_token(row) for row in rows]


def _to_token(row: Row) -> Token:
    """Check the types of a row, which SQLite does not enforce."""
    token = Token(*row)
    texts = (token.hash, token.kind, token.role, token.name, token.made_at)
    if not (
        type(token.id) is int
        and isinstance(token.parent, int | None)
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(text, str | None) for text in (token.ends_at, token.ended_at))
    ):
        raise DowiseError(
            f"token {token.id!r:.20} is damaged: restore the store from a backup",
            code="damaged-file",
        )
    return token


@dataclass(frozen=True)
class CreatedToken:
    """A new token and its secret, which can't be recovered later."""

    secret: str = field(repr=False)
    token: Token


def create_token(
    storage: Storage, role: str, name: str | None = None, days: float | None = None
) -> CreatedToken:
    """Create a token, valid for `days` or until revoked; its holder defaults to the OS user."""
    if days is not None and not (0 < days <= MAX_DAYS):
        raise DowiseError(
            f"days={days!r:.80} must be above 0 and at most {MAX_DAYS:,}", code="invalid-number"
        )
    lifetime = None if days is None else timedelta(days=days)
    return _create(storage, "token", role, name, lifetime)


def create_link(
    storage: Storage, role: str, name: str | None = None, minutes: float = LINK_MINUTES
) -> CreatedToken:
    """Create a link, valid for one session; its secret belongs behind the # of a URL."""
    return _create(storage, "link", role, name, timedelta(minutes=minutes))


def create_session(
    storage: Storage, secret: str, hours: float = SESSION_HOURS
) -> CreatedToken | None:
    """Create a session for the secret of a link or a token; return None if it is not valid.

    A link is used up by its session. A token can have any number of sessions, and none of them
    outlives it.
    """
    parent = _find(storage, secret)
    if parent is None or parent.kind not in ("link", "token") or not _is_valid(parent):
        return None
    created = _new("session", parent.role, parent.name, timedelta(hours=hours))
    ends_at = created.token.ends_at or ""
    if parent.kind == "token" and parent.ends_at is not None:
        ends_at = min(ends_at, parent.ends_at)
    session = created.token._replace(parent=parent.id, ends_at=ends_at)
    added = TokenTable(storage).add_child(session, once=parent.kind == "link")
    return None if added is None else CreatedToken(created.secret, added)


def authenticate(storage: Storage, secret: object) -> Token | None:
    """Return the valid token or session of a secret, or None.

    A link is only valid for creating a session.
    """
    token = _find(storage, secret)
    if token is None or token.kind not in ("token", "session") or not _is_valid(token):
        return None
    return token


def revoke(storage: Storage, number: int) -> bool:
    """End a token, link or session and its sessions; return False if it does not exist.

    Revoking again is not an error: the sessions of a link that was used end as well.
    """
    return 0 < number <= _MAX_ID and TokenTable(storage).end(number, _format_time(now()))


def list_tokens(storage: Storage) -> list[dict[str, Any]]:
    """Return all tokens, links and sessions ever created, as JSON data."""
    tokens = TokenTable(storage).read()
    parents = {token.parent for token in tokens if token.parent is not None}
    return [token_to_json(token, parents) for token in tokens]


def token_to_json(token: Token, parents: Collection[int] = ()) -> dict[str, Any]:
    """Return the public data of a token as JSON, without its secret and its hash.

    `parents` are the numbers of tokens with sessions: a link among them was used.
    """
    data = token._asdict() | {"state": _state(token, parents)}
    del data["hash"]
    return data


def _create(
    storage: Storage, kind: str, role: str, name: str | None, lifetime: timedelta | None
) -> CreatedToken:
    created = _new(kind, _validate_role(role), _validate_name(name), lifetime)
    return CreatedToken(created.secret, TokenTable(storage).add(created.token))


def _new(kind: str, role: str, name: str, lifetime: timedelta | None) -> CreatedToken:
    """Return a token that is not stored yet, and so has no number."""
    secret, created_at = f"dowise_{secrets.token_urlsafe(32)}", now()
    ends_at = None if lifetime is None else _format_time(created_at + lifetime)
    token = Token(0, _hash(secret), kind, role, name, None, _format_time(created_at), ends_at, None)
    return CreatedToken(secret, token)


def _find(storage: Storage, secret: object) -> Token | None:
    """Return the token of a secret; text that is not a secret has none."""
    if not isinstance(secret, str) or not _SECRET.fullmatch(secret):
        return None
    return TokenTable(storage).find(_hash(secret))


def _is_valid(token: Token) -> bool:
    """Return True if a token is valid now; an unknown role of a newer dowise is not valid."""
    return _state(token) == "valid" and token.role in ROLES


def _state(token: Token, parents: Collection[int] = ()) -> str:
    if token.kind == "link" and token.id in parents:
        return "used"
    if token.ended_at is not None:
        return "ended"
    is_over = token.ends_at is not None and token.ends_at <= _format_time(now())
    return "expired" if is_over else "valid"


def _hash(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def _format_time(moment: datetime) -> str:
    """Format a time as in the journal, as a sortable text."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _validate_role(role: str) -> str:
    if role not in ROLES:
        close = suggestion(str(role)[:80], ROLES)
        raise DowiseError(
            f"unknown role {role!r:.80}{close} (expected one of {', '.join(ROLES)})",
            code="unknown-role",
        )
    return role


def _validate_name(name: str | None) -> str:
    try:
        return resolve_actor(name)
    except DowiseError:
        raise DowiseError(
            f"{name!r:.80} is not a valid name for the holder of a token: use a short text, which "
            "the journal will show",
            code="invalid-name",
        ) from None
