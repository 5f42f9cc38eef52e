"""Tokens for tests, and stores that are closed after use."""

from contextlib import contextmanager

from dowise.experiment.storage import open_storage
from dowise_web.tokens import Token

CREATED_AT = "2026-01-01T00:00:00.000000Z"


def new_token(hash_, parent=None):
    """Return a link that is not stored yet."""
    return Token(0, hash_, "link", "read", "ann", parent, CREATED_AT, None, None)


@contextmanager
def opened(place):
    """Open a store while the block runs."""
    storage = open_storage(place)
    try:
        yield storage
    finally:
        storage.close()
