"""Other users of this machine, as forked children: only root can be somebody else."""

import multiprocessing
import os
import pwd

import pytest

from dowise import DowiseError

FORK = multiprocessing.get_context("fork")
OWNER, READER = 1000, 65534  # need not have names

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


def in_child(call, user=None):
    """What a forked child returns, as another user if one is given, or the text of its error."""
    queue = FORK.SimpleQueue()

    def run():
        try:
            if user is not None:
                become(user, user)
            queue.put(call())
        except DowiseError as error:
            queue.put(str(error))

    child = FORK.Process(target=run)
    child.start()
    child.join(30)
    assert child.exitcode == 0
    return queue.get()


def as_nobody():
    """From here on this process is nobody's, if it was root's."""
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        become(nobody.pw_uid, nobody.pw_gid)


def become(user, group):
    """From here on this process is another user's."""
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
