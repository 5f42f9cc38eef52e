"""Interrupts: Ctrl-C, SIGTERM and a closed terminal end a command in the same way.

The first signal raises `Stopped` in the main thread. The command then reports what is kept and
exits with status 128 + the signal's number: 130, 143 or 129. Further signals change nothing. If
the main thread does not react because compiled code is running, another thread ends the process.
Nothing is lost by that: files are written completely or not at all, and workers end with the
process that started them.

Only `dowise` as a program does this: a library leaves signals to the program that uses it.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

import click

_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
_REACTION_TIMEOUT = 0.8  # seconds for the main thread to react to a signal
_CLEANUP_TIMEOUT = 5.0  # seconds for exit handlers


class Stopped(KeyboardInterrupt):
    """A signal asked the command to end."""


class _Stop:
    """State of this process: the signal received, what to report, and whether it was reported."""

    number: int | None = None
    message = ""
    timeout = _REACTION_TIMEOUT
    reported = threading.Event()


def set_stop_message(message: str) -> None:
    """Set the text that follows "Stopped" if a signal ends the command from now on."""
    _Stop.message = message


def set_stop_timeout(seconds: float) -> None:
    """Set how long the main thread may take to finish once a signal has been received."""
    _Stop.timeout = seconds


def is_stopped() -> bool:
    """Return True if a signal was received; later errors are consequences of it."""
    return _Stop.number is not None


def report_stop() -> int:
    """Print that the command was stopped, once, and return the exit status."""
    if not (is_stopped() and _Stop.reported.is_set()):
        _Stop.reported.set()
        with suppress(OSError):  # the terminal is gone
            click.echo(f"\nStopped{_Stop.message}.", err=True)
    return 128 + (_Stop.number or signal.SIGINT)


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Let signals stop this process while the block runs, unless they are ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handled = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    for number in handled:
        signal.signal(number, _stop)
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(receiver, sender), daemon=True).start()
    try:
        yield
    finally:
        if is_stopped():
            _exit_now()
        for number in handled:  # only Python's own shutdown follows
            signal.signal(number, signal.SIG_DFL)


def _stop(number: int, _frame: FrameType | None) -> Any:
    _record_signal(number)
    for other in _SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise Stopped


def _record_signal(number: int) -> None:
    if not is_stopped():
        _Stop.number = number
        sys.unraisablehook = lambda _args: None  # from half-constructed objects
        _detach_lost_terminal()


def _watch(receiver: socket.socket, _sender: socket.socket) -> None:
    """Receive signals in a thread, whatever the main thread is doing; keeps both sockets open."""
    while not is_stopped():
        number = receiver.recv(1)[0]
        if number in _SIGNALS:
            _record_signal(number)
    if not _Stop.reported.wait(_Stop.timeout):
        _show_cursor()
        threading.Thread(target=_exit_now, daemon=True).start()
    threading.Event().wait(_CLEANUP_TIMEOUT)
    os._exit(report_stop())


def _exit_now() -> NoReturn:
    """Exit without Python's shutdown, which would fail on half-finished work."""
    status = report_stop()
    atexit._run_exitfuncs()  # temporary folders are removed, and workers ended
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(status)


def _detach_lost_terminal() -> None:
    """Redirect output to nowhere if the terminal is gone; each write would fail."""
    for file in (1, 2):
        with suppress(OSError):
            if stat.S_ISCHR(os.fstat(file).st_mode) and not os.isatty(file):
                os.dup2(os.open(os.devnull, os.O_WRONLY), file)


def _show_cursor() -> None:
    """Show the cursor, which a progress bar hides."""
    from rich.console import Console

    with suppress(OSError):
        Console(stderr=True).show_cursor()
