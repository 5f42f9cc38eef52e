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
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from time import monotonic, process_time
from typing import Any, Generic, TypeVar

from dowise.errors import DowiseError
from dowise.simulation.worker import quietly

__all__ = ["DIED", "do_in_processes"]

DIED = "a worker died, perhaps for want of memory: what is done is kept, the same call goes on"

_REST = 300.0  # seconds that an idle worker is kept
_HEAD_START = (
    1.0  # seconds that a race has to be done without workers: about what one needs to start
)
_START = (
    "import sys; sys.path[:] = sys.argv[1:]; del sys.argv[1:]; "
    "from dowise.simulation.worker import work; work()"
)
# As many workers as cores is what one asks for; each with threads of its own would be too many.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Item = TypeVar("Item")
Found = TypeVar("Found")


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
        _living.add(self)

    def lives(self) -> bool:
        """Whether nothing has ended it while it was idle."""
        return self._process.poll() is None

    def prepare(self, task: bytes) -> None:
        """Wait until it has started, and knows a pickled task."""
        self._ask(task, ())

    def do(self, task: bytes, item: object) -> Any:
        """What a pickled task makes of an item; its error is raised here."""
        (found,) = self._ask(task, (item,))
        return found

    def _ask(self, task: bytes, items: tuple[object, ...]) -> list[Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        new = None if task is self._task else task
        try:
            pickle.dump(pickle.dumps((new, items)), self._process.stdin)
            self._process.stdin.flush()
            self._task = task
            went_well, found, where = pickle.loads(pickle.load(self._process.stdout))
        except (EOFError, OSError, pickle.UnpicklingError):
            raise _LostError from None
        if not went_well:
            found.add_note(f"In a worker:\n{where}")
            raise found
        answers: list[Any] = found
        return answers

    def end(self) -> None:
        """Whatever it is doing."""
        _living.discard(self)
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):  # what was not sent yet
                pipe.close()


_living: set[_Worker] = set()
_idle: list[_Worker] = []
_lock = threading.Lock()


def _hire() -> _Worker:
    """One that is idle, or else a new one."""
    with _lock:
        _idle[:] = [worker for worker in _idle if worker.starter == os.getpid()]  # not after a fork
        while _idle:
            worker = _idle.pop()
            if worker.lives():
                return worker
            worker.end()
    try:
        return _Worker()
    except OSError as error:
        raise DowiseError(
            f"other processes can't be started ({error.strerror}): race with fewer workers"
        ) from None


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


atexit.register(lambda: _dismiss([*_living]))


def do_in_processes(
    run: Callable[[Item], Found], task: bytes, items: Sequence[Item], workers: int
) -> Generator[tuple[Item, Found], None, None]:
    """Each item with what `run`, pickled in `task`, makes of it, as they finish.

    This process begins by itself. Workers that have to be started join in if there is something
    left to do after a moment, and do the rest once the first of them has answered.
    """
    crew: _Crew[Item] = _Crew(pickle.dumps((_folder(), task)), items, min(workers, len(items)))
    try:
        crew.begin()
        for _ in items:
            yield crew.finished() or crew.done_here(run) or crew.awaited()
    except BaseException as error:  # who asked wants no more
        _dismiss(crew.left(is_done=False))
        if isinstance(error, _LostError):
            raise DowiseError(DIED) from None
        raise
    _keep(crew.left(is_done=True))


class _Crew(Generic[Item]):
    """Workers that do items, each with a thread that waits for its answers."""

    def __init__(self, task: bytes, items: Sequence[Item], count: int) -> None:
        self._hired: list[_Worker] = []
        self._ready: list[_Worker] = []  # those whose threads wait for no more than an item
        self._task, self._count = task, count
        self._waiting = deque(items)
        self._answers: SimpleQueue[tuple[Item, Any] | BaseException] = SimpleQueue()
        # Twice as many as there are workers: none waits, and answers don't pile up.
        self._room = threading.Semaphore(2 * count)
        self._over = threading.Event()
        self._is_done = False
        self._lock = threading.Lock()
        self._is_alone = not _idle

    def begin(self) -> None:
        for _ in range(self._count):
            threading.Thread(target=self._give, daemon=True).start()

    def finished(self) -> tuple[Item, Any] | None:
        """An item that a worker has done, if there is one."""
        return None if self._answers.empty() else self.awaited()

    def awaited(self) -> tuple[Item, Any]:
        """The next item that a worker has done."""
        answer = self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        self._is_alone = False
        self._room.release()
        return answer

    def done_here(self, run: Callable[[Item], Any]) -> tuple[Item, Any] | None:
        """An item that this process does, as long as it is alone."""
        for item in self._taken() if self._is_alone else ():
            return item, quietly(run, item)
        return None

    def left(self, is_done: bool) -> list[_Worker]:
        """Let the threads end; nobody is hired any more. Those who were.

        If the work is done, without those that still start: they are in the hands of their threads.
        """
        with self._lock:
            self._is_done = is_done
            self._over.set()
        for _ in range(self._count):
            self._room.release()
        return self._ready if is_done else self._hired

    def _give(self) -> None:
        """In a thread: have a worker do items, as long as there are any."""
        try:
            if self._is_alone and self._is_over_soon():
                return
            worker = self._new()
            if not self._is_in_time(worker):
                return
            while self._room.acquire() and not self._over.is_set():
                for item in (taken := self._taken()):
                    self._answers.put((item, worker.do(self._task, item)))
                if not taken:
                    return
        except BaseException as error:  # it is for who waits for the answers
            self._answers.put(error)

    def _is_over_soon(self) -> bool:
        """Whether this process needs no help; on a busy machine the clock says little of that."""
        worked, begun = process_time(), monotonic()
        while process_time() - worked < _HEAD_START and monotonic() - begun < 5 * _HEAD_START:
            if self._over.wait(_HEAD_START / 20):
                return True
        return False

    def _new(self) -> _Worker:
        worker = _hire()
        with self._lock:
            if not self._over.is_set():
                self._hired.append(worker)
                return worker
        worker.end()
        raise _LostError

    def _is_in_time(self, worker: _Worker) -> bool:
        """Whether a worker has started before all is over; if not, the next race may have it."""
        try:
            worker.prepare(self._task)
        except BaseException:
            worker.end()
            raise
        with self._lock:
            if not self._over.is_set():
                self._ready.append(worker)
                return True
        if self._is_done:
            _keep([worker])
        return False

    def _taken(self) -> list[Item]:
        """The next item; none where all are taken."""
        try:
            return [self._waiting.popleft()]
        except IndexError:
            return []


def _folder() -> Path | None:
    """Where relative paths begin; None where that folder is gone."""
    try:
        return Path.cwd()
    except OSError:
        return None
