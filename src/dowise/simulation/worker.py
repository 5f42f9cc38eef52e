"""A worker process: it does what its starter sends, and ends with it, however that one ends.

A message is (task, items), where the task is None for the same as before; a task is (the folder to
be in, what to do with items); an answer is (whether it went well, what came out or the error, where
the error was). All are pickled, and go through the pipes that stand for a program's input and
output.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, BinaryIO

from dowise.errors import DowiseError, DowiseWarning, import_extra

__all__ = ["quietly", "work"]


def work() -> None:
    """Do what comes, one after the other."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # they are for the starter, with whom this ends
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    # Nothing that is printed here may get between the answers, nor read what is not its own.
    messages, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    waiting: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(messages, waiting), daemon=True).start()
    task: Callable[[Any], Any] | None = None
    with suppress(BrokenPipeError):
        while True:
            task, answer = _answer(task, waiting.get())
            pickle.dump(answer, answers)
            answers.flush()


def _receive(messages: BinaryIO, waiting: SimpleQueue[bytes]) -> None:
    """The pipe ends when the starter does, even if it was killed: nobody waits for an answer."""
    with suppress(EOFError, pickle.UnpicklingError, OSError):
        while True:
            waiting.put(pickle.load(messages))
    os._exit(0)


def _answer(task: Callable[[Any], Any] | None, message: bytes) -> tuple[Any, bytes]:
    """The task from now on, and an answer that can be read."""
    pickling = import_extra("cloudpickle", "simulate", "more than one worker")
    try:
        new, items = pickle.loads(message)
        if new is not None:
            folder, pickled = pickle.loads(new)
            with suppress(OSError, TypeError):  # it may be gone
                os.chdir(folder)
            task = pickle.loads(pickled)
        assert task is not None
        return task, pickling.dumps((True, [quietly(task, item) for item in items], ""))
    except BaseException as error:
        where = traceback.format_exc()
        try:
            answer: bytes = pickling.dumps((False, error, where))
            pickle.loads(answer)
            if isinstance(error, Exception):
                return task, answer
        except Exception:  # whatever its own __reduce__ may raise
            pass
        return task, pickling.dumps((False, DowiseError(repr(error)), where))


def quietly(task: Callable[[Any], Any], item: Any) -> Any:
    """What there is to say was said before the work was given out, once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DowiseWarning)
        return task(item)
