"""Forked children: what they return, or why they fail."""

import multiprocessing

from dowise import DowiseError

FORK = multiprocessing.get_context("fork")


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
