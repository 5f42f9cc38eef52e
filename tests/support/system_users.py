"""Code that runs as another user of this machine, in forked children; needs root."""

import multiprocessing
import os
import pwd

import pytest

from dowise import DowiseError

FORK = multiprocessing.get_context("fork")
OWNER, READER = 1000, 65534  # numbers of users, who need not exist

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


def run_in_child(call, user=None):
    """Call a function in a forked child, as `user`; return its value or the text of its error."""
    queue = FORK.SimpleQueue()

    def run():
        try:
            if user is not None:
                become_user(user, user)
            queue.put(call())
        except DowiseError as error:
            queue.put(str(error))

    child = FORK.Process(target=run)
    child.start()
    child.join(30)
    assert child.exitcode == 0
    return queue.get()


def become_nobody():
    """Continue as the user nobody if this process is root's."""
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        become_user(nobody.pw_uid, nobody.pw_gid)


def become_user(user, group):
    """Continue as another user."""
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
