"""Tokens in memory: their contract in its simplest form."""

from __future__ import annotations

import threading

from dowise.experiment.storage.rules import known_already
from dowise.experiment.storage.token_contract import Token

__all__ = ["MemoryTokens"]


class MemoryTokens:
    """Tokens that live as long as this object does."""

    def __init__(self) -> None:
        self._tokens: list[Token] = []  # number 1 first
        self._guard = threading.Lock()

    def add(self, token: Token) -> Token:
        """Keep a token that has no parent; the same with its number."""
        with self._guard:
            return self._add(token._replace(parent=None))

    def add_child(self, token: Token, once: bool) -> Token | None:
        """Keep a token of a parent that has not ended; with `once` that ends by it."""
        with self._guard:
            parent = self._numbered(token.parent)
            if parent is None or parent.ended_at is not None:
                return None
            added = self._add(token)
            if once:
                self._end(parent, token.made_at)
            return added

    def find(self, hash_: str) -> Token | None:
        """The token with this hash."""
        with self._guard:
            return self._with_hash(hash_)

    def read(self) -> list[Token]:
        """All tokens, in the order of their numbers."""
        with self._guard:
            return list(self._tokens)

    def end(self, number: int, at: str) -> bool:
        """End a token and all that came from it; False where there is no such token."""
        with self._guard:
            if self._numbered(number) is None:
                return False
            ending = {number}
            for token in self._tokens[number - 1 :]:  # a child comes after its parent
                if token.id in ending or token.parent in ending:
                    ending.add(token.id)
                    self._end(token, at)
            return True

    def _add(self, token: Token) -> Token:
        if self._with_hash(token.hash) is not None:
            raise known_already(token.hash)
        added = token._replace(id=len(self._tokens) + 1)
        self._tokens.append(added)
        return added

    def _end(self, token: Token, at: str) -> None:
        if token.ended_at is None:
            self._tokens[token.id - 1] = token._replace(ended_at=at)

    def _numbered(self, number: int | None) -> Token | None:
        there = number is not None and 1 <= number <= len(self._tokens)
        return self._tokens[number - 1] if number is not None and there else None

    def _with_hash(self, hash_: str) -> Token | None:
        return next((token for token in self._tokens if token.hash == hash_), None)
