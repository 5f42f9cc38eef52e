"""A form that makes a secret once, also where the page that answered it is loaded again."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from threading import Lock

from dowise.errors import DowiseError
from dowise.service.tokens import Made, Token

__all__ = ["Once"]


class Once:
    """What was made by which form: each page gives its form a key, which is sent along.

    It lives as long as the server. Keys of another server's are refused, so that a page that is
    loaded again after a restart makes nothing either.
    """

    def __init__(self) -> None:
        self._ours = secrets.token_urlsafe(8)
        self._lock = Lock()
        self._made: dict[tuple[str, ...], Token] = {}

    def key(self) -> str:
        """A key for the form of a page."""
        return f"{self._ours}.{secrets.token_urlsafe(15)}"

    def make(self, sent: tuple[str, ...], make: Callable[[], Made]) -> tuple[Token, str | None]:
        """What a form makes that sent this, its key first, and the secret; None: made before.

        Who goes back in the browser and fills in somebody else sends the same key, and means it:
        so all that was sent counts. What raises has made nothing.
        """
        if not sent[0].startswith(f"{self._ours}."):
            raise DowiseError("this form is from before the server was started: send it again")
        with self._lock:
            if sent in self._made:
                return self._made[sent], None
            made = make()
            self._made[sent] = made.token
            return made.token, made.secret
