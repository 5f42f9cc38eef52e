"""Python programs, each in its own session, so that tests see whether a process survives."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil

TIMEOUT = 60.0  # seconds


def start_python(*arguments, ignored=()):
    """Start Python with default signal handlers, as a terminal does; `ignored` are exceptions."""

    def reset_signals():
        # A shell starts background jobs, such as these tests, with Ctrl-C ignored.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=reset_signals,
    )


def wait_until(condition, seconds=TIMEOUT):
    """Wait for a condition to hold; return its last value."""
    deadline = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return value


def living_processes(process):
    """Return the living processes of a program's session."""
    living = []
    for other in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getsid(other.pid) == process.pid and other.status() != psutil.STATUS_ZOMBIE:
                living.append(other)
    return living


def handles_signals(process):
    """Return True once `dowise` handles signals, for which it starts a thread."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(process.pid).num_threads() > 1
    return True


def kill_session(process):
    """Kill all processes of a program's session."""
    for other in living_processes(process):
        with suppress(psutil.NoSuchProcess):
            other.kill()
    process.communicate()
