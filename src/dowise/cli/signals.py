"""How a command ends before its time: Ctrl-C, SIGTERM and a terminal that is closed do the same.

The first signal raises `Stopped` in the main thread; a word on what is kept follows, and the exit
status is 128 + its number: 130, 143, 129. Further ones change nothing. Where the main thread does
not hear it, because compiled code runs for long, another thread ends the process. Nothing is lost
by that: files are written whole or not at all, and workers end with the process that started them.

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
_PATIENCE = 0.8  # seconds for the main thread to hear a signal
_TIDYING = 5.0  # seconds to clear away behind it


class Stopped(KeyboardInterrupt):
    """A signal asked the command to end."""


class _Stop:
    """The stop of this process: the signal that came, whether that was said, and what is kept."""

    number: int | None = None
    kept = ""
    patience = _PATIENCE
    said = threading.Event()


def set_stop_message(words: str) -> None:
    """From now on these words follow, should the command be stopped."""
    _Stop.kept = words


def set_stop_timeout(seconds: float) -> None:
    """From now on the main thread, which hears signals, has so long to finish what is under way."""
    _Stop.patience = seconds


def is_stopped() -> bool:
    """Whether a signal came: what goes wrong afterwards goes wrong because of it."""
    return _Stop.number is not None


def report_stop() -> int:
    """Say so, and what is kept; the exit status."""
    if not (is_stopped() and _Stop.said.is_set()):  # a signal comes once
        _Stop.said.set()
        with suppress(OSError):  # the terminal is gone
            click.echo(f"\nStopped{_Stop.kept}.", err=True)
    return 128 + (_Stop.number or signal.SIGINT)


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Meanwhile signals stop this process, unless it was told to ignore them; then it ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    for number in heard:
        signal.signal(number, _stop)
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(ours, theirs), daemon=True).start()
    try:
        yield
    finally:
        if is_stopped():
            _leave()
        for number in heard:  # the rest is Python's, and may be cut short without a word
            signal.signal(number, signal.SIG_DFL)


def _stop(number: int, _frame: FrameType | None) -> Any:
    _note(number)
    for other in _SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise Stopped


def _note(number: int) -> None:
    if not is_stopped():
        _Stop.number = number
        sys.unraisablehook = lambda _what: None  # objects whose making was interrupted
        _leave_lost_terminal()


def _watch(signals: socket.socket, _kept_open: socket.socket) -> None:
    """Hears every signal when it comes, whatever the main thread does."""
    while not is_stopped():
        number = signals.recv(1)[0]
        if number in _SIGNALS:
            _note(number)
    if not _Stop.said.wait(_Stop.patience):
        _show_cursor()
        threading.Thread(target=_leave, daemon=True).start()
    threading.Event().wait(_TIDYING)
    os._exit(report_stop())


def _leave() -> NoReturn:
    """End without taking Python down, which would trip over what was left half done."""
    status = report_stop()
    atexit._run_exitfuncs()  # temporary folders are removed, and workers ended
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(status)


def _leave_lost_terminal() -> None:
    """What is written to a terminal that is gone would be an error, again and again."""
    for file in (1, 2):
        with suppress(OSError):
            if stat.S_ISCHR(os.fstat(file).st_mode) and not os.isatty(file):
                os.dup2(os.open(os.devnull, os.O_WRONLY), file)


def _show_cursor() -> None:
    """A progress bar hides it while it moves."""
    from rich.console import Console

    with suppress(OSError):
        Console(stderr=True).show_cursor()
