"""Tokens for tests, and stores that are closed after use."""

from contextlib import contextmanager

from dowise.experiment.storage import open_storage
from dowise_web.tokens import Token

AT = "2026-01-01T00:00:00.000000Z"


def new(hash_, parent=None):
    return Token(0, hash_, "link", "read", "ann", parent, AT, None, None)


@contextmanager
def opened(place):
    storage = open_storage(place)
    try:
        yield storage
    finally:
        storage.close()
