"""Who may do what over HTTP: tokens, one-time links and sessions.

A token is a secret for programs and for the login page, until it ends or is revoked. A link opens
the browser once. What the browser has then is a session: it comes from the link, or from a token
that was typed in, and ends with that token. Each has a role, which contains those before it in
`ROLES`, and the name of whoever has it, which stands as the actor in the journal.

A secret is 256 bits of the system's and is shown once, when it is made. The store keeps its
SHA-256: nobody can try all secrets of 256 bits, so a hash that is slow on purpose, as passwords
need, would gain nothing and cost every request. For the same reason looking the hash up tells
nobody anything by the time that it takes.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from dowise.errors import DowiseError, suggestion
from dowise.experiment import maker
from dowise.experiment.storage.contract import Storage
from dowise.experiment.storage.token_contract import Token, tokens_of

__all__ = [
    "LINK_MINUTES", "ROLES", "SESSION_HOURS", "Made", "allows", "begin_session", "make_link",
    "make_token", "page", "pages", "revoke", "who",
]  # fmt: skip

ROLES = ("read", "tell", "ask", "admin")
LINK_MINUTES = 15
SESSION_HOURS = 7 * 24
MOST_DAYS = 36_500

_SECRET = re.compile(r"dowise_[A-Za-z0-9_-]{43}")
_LARGEST = 2**63 - 1  # a number that databases can hold


@dataclass(frozen=True)
class Made:
    """A new token, and its secret, which can't be found out again."""

    secret: str = field(repr=False)
    token: Token


def allows(role: str, needed: str) -> bool:
    """Whether a role contains another one.

    >>> allows("ask", "tell"), allows("read", "tell")
    (True, False)
    """
    return ROLES.index(_checked_role(role)) >= ROLES.index(_checked_role(needed))


def make_token(
    storage: Storage, role: str, name: str | None = None, days: float | None = None
) -> Made:
    """A token, for so many days or until it is revoked; the system's user has it unless named."""
    if days is not None and not (0 < days <= MOST_DAYS):
        raise DowiseError(f"days={days!r:.80} must be above 0, and at most {MOST_DAYS:,}")
    lasts = None if days is None else timedelta(days=days)
    return _make(storage, "token", role, name, lasts)


def make_link(
    storage: Storage, role: str, name: str | None = None, minutes: float = LINK_MINUTES
) -> Made:
    """A link, good for one session; its secret belongs behind the # of a URL, which is not sent."""
    return _make(storage, "link", role, name, timedelta(minutes=minutes))


def begin_session(storage: Storage, secret: str, hours: float = SESSION_HOURS) -> Made | None:
    """A session for the secret of a link or a token; None where that is good for none.

    A link is good for one, and is used up by it. A token is good for any number, and none of them
    outlives it.
    """
    parent = _find(storage, secret)
    if parent is None or parent.kind not in ("link", "token") or not _is_valid(parent):
        return None
    made_at = maker.now()
    ends_at = _text(made_at + timedelta(hours=hours))
    if parent.kind == "token" and parent.ends_at is not None:
        ends_at = min(ends_at, parent.ends_at)
    new = _secret()
    session = Token(
        0, _hash(new), "session", parent.role, parent.name, parent.id, _text(made_at), ends_at, None
    )
    kept = tokens_of(storage).add_child(session, once=parent.kind == "link")
    return None if kept is None else Made(new, kept)


def who(storage: Storage, secret: object) -> Token | None:
    """The token or session that a secret is good for now; None where it is good for none.

    A link by itself is good for nothing but a session.
    """
    token = _find(storage, secret)
    if token is None or token.kind not in ("token", "session") or not _is_valid(token):
        return None
    return token


def revoke(storage: Storage, number: int) -> bool:
    """End a token, link or session, and the sessions that came from it; False: there is none such.

    To revoke what has ended is no error: the sessions of a link that was used end all the same.
    """
    return 0 < number <= _LARGEST and tokens_of(storage).end(number, _text(maker.now()))


def pages(storage: Storage) -> list[dict[str, Any]]:
    """All tokens, links and sessions that were ever made, as `page` has them."""
    tokens = tokens_of(storage).read()
    parents = {token.parent for token in tokens if token.parent is not None}
    return [page(token, parents) for token in tokens]


def page(token: Token, parents: Collection[int] = ()) -> dict[str, Any]:
    """All that anybody may know of a token, for JSON: neither its secret nor the hash.

    `parents` are the numbers of those that sessions came from: a link among them was used.
    """
    shown = token._asdict()
    del shown["hash"]
    return {**shown, "state": _state(token, parents)}


def _make(
    storage: Storage, kind: str, role: str, name: str | None, lasts: timedelta | None
) -> Made:
    made_at = maker.now()
    ends_at = None if lasts is None else _text(made_at + lasts)
    secret, who_has_it = _secret(), _checked_name(name)
    token = Token(
        0, _hash(secret), kind, _checked_role(role), who_has_it, None, _text(made_at), ends_at, None
    )
    return Made(secret, tokens_of(storage).add(token))


def _find(storage: Storage, secret: object) -> Token | None:
    """What a secret is known as; whatever can't be one is unknown."""
    if not isinstance(secret, str) or not _SECRET.fullmatch(secret):
        return None
    return tokens_of(storage).find(_hash(secret))


def _is_valid(token: Token) -> bool:
    """Whether it is good now; a role of some newer dowise's is good for nothing here."""
    return _state(token) == "valid" and token.role in ROLES


def _state(token: Token, parents: Collection[int] = ()) -> str:
    if token.kind == "link" and token.id in parents:
        return "used"
    if token.ended_at is not None:
        return "ended"
    is_over = token.ends_at is not None and token.ends_at <= _text(maker.now())
    return "expired" if is_over else "valid"


def _secret() -> str:
    return f"dowise_{secrets.token_urlsafe(32)}"


def _hash(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def _text(moment: datetime) -> str:
    """A time as in the journal: as a text it sorts as it should."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _checked_role(role: str) -> str:
    if role not in ROLES:
        meant = suggestion(str(role)[:80], ROLES)
        raise DowiseError(f"unknown role {role!r:.80}{meant}: there are {', '.join(ROLES)}")
    return role


def _checked_name(name: str | None) -> str:
    try:
        return maker.actor_of(name)
    except DowiseError:
        raise DowiseError(
            f"{name!r:.80} can't be the name of who has a token: give a short text, which will "
            "stand in the journal"
        ) from None
