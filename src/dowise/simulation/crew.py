"""Worker processes on this machine, as who gives them work sees them.

Each is a Python of its own that does what it is sent (`worker.py`). It has a process group of its
own, so that Ctrl-C at a terminal reaches it only by way of this process; and it ends when the pipe
to it is closed, which the system does whatever ends this process. Workers that have done their work
are kept a while for the next race, since they take a second to start.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from dowise.errors import DowiseError

__all__ = ["do_in_processes"]

_REST = 300.0  # seconds that an idle worker is kept
_START = (
    "import sys; sys.path[:] = sys.argv[1:]; del sys.argv[1:]; "
    "from dowise.simulation.worker import work; work()"
)
# As many workers as cores is what one asks for; each with threads of its own would be too many.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Item = TypeVar("Item")


class _LostError(Exception):
    """A worker is gone."""


class _Worker:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, *map(str, sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**dict.fromkeys(_ONE_THREAD, "1"), **os.environ},
            process_group=0,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self._task: bytes | None = None
        self.starter = os.getpid()

    def do(self, task: bytes, item: object) -> Any:
        """What a pickled task makes of an item; its error is raised here."""
        assert self._process.stdin is not None and self._process.stdout is not None
        new = None if task is self._task else task
        try:
            pickle.dump(pickle.dumps((new, item)), self._process.stdin)
            self._process.stdin.flush()
            self._task = task
            went_well, found, where = pickle.loads(pickle.load(self._process.stdout))
        except (EOFError, OSError, pickle.UnpicklingError):
            raise _LostError from None
        if not went_well:
            found.add_note(f"In a worker:\n{where}")
            raise found
        return found

    def end(self) -> None:
        """Whatever it is doing."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):  # what was not sent yet
                pipe.close()


_idle: list[_Worker] = []
_lock = threading.Lock()


def _hire(count: int) -> list[_Worker]:
    """So many workers, from those that are idle as far as they go."""
    with _lock:
        _idle[:] = [worker for worker in _idle if worker.starter == os.getpid()]  # not after a fork
        hired = [_idle.pop() for _ in range(min(count, len(_idle)))]
    try:
        hired += [_Worker() for _ in range(count - len(hired))]
    except OSError as error:
        _dismiss(hired)
        raise DowiseError(
            f"other processes can't be started ({error.strerror}): race with fewer workers"
        ) from None
    return hired


def _keep(workers: Sequence[_Worker]) -> None:
    """For the next race, or for a while."""
    with _lock:
        _idle.extend(workers)
    timer = threading.Timer(_REST, _dismiss_idle, [workers])
    timer.daemon = True
    timer.start()


def _dismiss_idle(workers: Sequence[_Worker]) -> None:
    with _lock:
        old = [worker for worker in workers if worker in _idle]
        _idle[:] = [worker for worker in _idle if worker not in old]
    _dismiss(old)


def _dismiss(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        if worker.starter == os.getpid():
            worker.end()


atexit.register(lambda: _dismiss(_idle))


def do_in_processes(
    task: bytes, items: Sequence[Item], workers: int, died: str
) -> Generator[tuple[Item, Any], None, None]:
    """Each item with what a pickled task makes of it, as they finish; `died` if a worker does."""
    task = pickle.dumps((_folder(), task))
    hired = _hire(min(workers, len(items)))
    try:
        yield from _given_out(task, items, hired)
    except _LostError:
        _dismiss(hired)
        raise DowiseError(died) from None
    except BaseException:  # who asked wants no more
        _dismiss(hired)
        raise
    _keep(hired)


def _folder() -> Path | None:
    """Where relative paths begin; None where that folder is gone."""
    try:
        return Path.cwd()
    except OSError:
        return None


def _given_out(
    task: bytes, items: Sequence[Item], hired: Sequence[_Worker]
) -> Generator[tuple[Item, Any], None, None]:
    free: SimpleQueue[_Worker] = SimpleQueue()
    for worker in hired:
        free.put(worker)

    def do(item: Item) -> Any:
        worker = free.get()
        try:
            return worker.do(task, item)
        finally:
            free.put(worker)

    givers = ThreadPoolExecutor(len(hired))  # they wait for answers
    try:
        waiting = iter(items)
        # Twice as many as there are workers: none waits, and answers don't pile up.
        given = {givers.submit(do, item): item for item in islice(waiting, 2 * len(hired))}
        while given:
            done, _ = wait(given, return_when=FIRST_COMPLETED)
            for future in done:
                item = given.pop(future)
                given |= {givers.submit(do, one): one for one in islice(waiting, 1)}
                yield item, future.result()
    finally:
        givers.shutdown(wait=False, cancel_futures=True)
