"""What a store promises of tokens, if it keeps them: `Storage.tokens` of the stores of ours.

A token lets somebody use the store over HTTP; a one-time link and a session are tokens of other
kinds. A store knows a secret by its hash alone, never the secret itself. It knows nothing of
clocks: whether the time of `ends_at` is past is for its callers to say. What kinds, roles and names
mean is theirs too. Journals, snapshots, audits and exports know nothing of tokens, and a store of
one's own need not have them: one without can't be served. `check_token_storage` tests one that has.

**What is durable when a call returns.** Whatever it did, whole; where it raises, or the process
dies inside of it, nothing of it. After a call that was cut short by a lost connection one has to
look, as with journals.

**What callers at the same time may see.** Each call is one step: over all threads, processes and
machines it is as if they came one after the other. So of two calls that use up the same token
exactly one succeeds, and no child is added to a token that has ended. `find` and `read` never wait
for writers; they see all that had returned before they were called.

**What never changes.** Tokens are numbered 1, 2, … as they come, none is ever removed, and of one
that is there nothing changes but `ended_at`, once, from None to a time.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, cast

from dowise.errors import DowiseError

__all__ = ["Token", "TokenStorage", "tokens_of"]


class Token(NamedTuple):
    """What is known of a secret that was handed to somebody. Times are texts that sort, in UTC."""

    id: int
    hash: str
    """SHA-256 of the secret, in hexadecimal digits; no two tokens have the same."""
    kind: str
    role: str
    name: str
    parent: int | None
    """The token that it came from and ends with."""
    made_at: str
    ends_at: str | None
    ended_at: str | None
    """When it was revoked or used up, whichever came first; None while it was neither."""


class TokenStorage(Protocol):
    """Where tokens live. All methods may be called by several threads."""

    def add(self, token: Token) -> Token:
        """Keep a token that has no parent; the same with its number, whatever it said before.

        One whose hash is there already is refused, by a `DowiseError`.
        """

    def add_child(self, token: Token, once: bool) -> Token | None:
        """Keep a token of a parent, which has not ended; else None, and nothing happens.

        With `once` the parent is used up by it: it has ended when the child was made.
        """

    def find(self, hash_: str) -> Token | None:
        """The token with this hash."""

    def read(self) -> list[Token]:
        """All tokens, in the order of their numbers."""

    def end(self, number: int, at: str) -> bool:
        """End a token and all that came from it, children of children too; False: no such token.

        What has ended already keeps its time, but what came from it and has not ended ends now.
        """


def tokens_of(storage: object) -> TokenStorage:
    """The tokens of a store; an error where it keeps none."""
    found = getattr(storage, "tokens", None)
    if found is None:
        raise DowiseError(
            f"{storage} keeps no tokens, so it can't be served: use a SQLite file or a PostgreSQL "
            "database, or give the store of your own an attribute `tokens` (TokenStorage)"
        )
    return cast(TokenStorage, found)
