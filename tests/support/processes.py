"""Programs in a session of their own, so that it can be seen whether any process of it is left."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil

SECONDS = 60.0  # before a test gives up


def start(*arguments, ignored=()):
    """Python with these arguments; as from a terminal, where no signal is ignored but these."""

    def as_from_a_terminal():
        # A shell starts what runs in its background, these tests for one, with Ctrl-C ignored.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=as_from_a_terminal,
    )


def until(is_so, seconds=SECONDS):
    """Wait for something to become true; whether it did."""
    deadline = time.monotonic() + seconds
    while not (found := is_so()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def left(process):
    """The processes of a program's session that live."""
    found = []
    for one in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getsid(one.pid) == process.pid and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
    return found


def hears(process):
    """Whether `dowise` has come so far that it hears signals: a thread waits for them."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(process.pid).num_threads() > 1
    return True


def end(process):
    """Whatever is left of it."""
    for one in left(process):
        with suppress(psutil.NoSuchProcess):
            one.kill()
    process.communicate()
