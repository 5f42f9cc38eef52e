"""Tokens for tests, made and looked at from other processes too."""

import multiprocessing
from contextlib import contextmanager

from dowise import DowiseError
from dowise.experiment.storage import Token, open_storage

FORK = multiprocessing.get_context("fork")
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


def in_child(call):
    """What a forked child returns, or the text of the DowiseError it raises."""
    queue = FORK.SimpleQueue()

    def run():
        try:
            queue.put(call())
        except DowiseError as error:
            queue.put(str(error))

    child = FORK.Process(target=run)
    child.start()
    child.join(60)
    assert child.exitcode == 0
    return queue.get()
