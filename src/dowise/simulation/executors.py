"""Executors of jobs: this process, worker processes on this machine, or a Dask cluster.

The worker pool is our own code: with joblib's loky the test
`test_a_stop_at_any_moment_shows_no_traceback_and_leaves_no_worker` fails, since its workers share
our process group and print tracebacks if Ctrl-C comes while they start; they also survive a killed
parent.

A worker is a Python process in a separate process group, so that Ctrl-C at a terminal reaches it
only through this process. It ends when its pipe is closed, which the operating system does however
this process ends. Messages are pickled and sent through the standard streams: a request is
(task, jobs), where task is None to repeat the previous one; a task is (working directory, pickled
function); a response is (succeeded, results or error, traceback).
"""

from __future__ import annotations

import atexit
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from time import monotonic, process_time
from typing import Any, BinaryIO, TypeVar

from dowise._core.validation import check_integer
from dowise.errors import DowiseError, DowiseWarning, import_extra
from dowise.policies.registry import imported_modules

JobT = TypeVar("JobT")
ResultT = TypeVar("ResultT")

IDLE_TIMEOUT = 300.0  # seconds that an idle worker is kept for the next run
HEAD_START = 1.0  # seconds of work before workers are started; starting one takes about as long

_HOW_TO_RESUME = "with `out`, finished jobs are kept and the same call resumes the run"
_WORKER_DIED = f"a worker died, perhaps out of memory: use fewer workers; {_HOW_TO_RESUME}"
_WORKER_MAIN = (
    "import sys; sys.path[:] = sys.argv[1:]; del sys.argv[1:]; "
    "from dowise.simulation.executors import serve_jobs; serve_jobs()"
)
# Users ask for as many workers as cores; with several threads each there would be too many.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def check_workers(workers: int, cluster: str | None = None) -> int:
    """Validate the number of workers, and that the libraries they need are installed."""
    if cluster is not None:
        import_extra("distributed", "cluster", "a Dask cluster")
    workers = check_integer("workers", workers, 1)
    if workers > 1:
        import_extra("cloudpickle", "simulate", "more than one worker")
    return workers


def run_jobs(
    run: Callable[[JobT], ResultT],
    jobs: Iterable[JobT],
    workers: int = 1,
    cluster: str | None = None,
) -> Generator[tuple[JobT, ResultT], None, None]:
    """Run jobs and yield each with its result, in order of completion.

    Close the generator to cancel the remaining jobs. The first jobs run in this process, so that
    short runs start no worker.

    Parameters
    ----------
    run
        Function of a job. It must be picklable if there are several workers or a cluster.
    jobs
        The jobs.
    workers
        Number of processes on this machine.
    cluster
        Address of a Dask scheduler, used instead of local workers.

    Raises
    ------
    DowiseError
        If a worker dies, or `run` can't be pickled.
    """
    queue = list(jobs)
    if cluster is not None:
        return _run_on_dask(run, queue, cluster)
    if workers == 1 or not queue:
        return ((job, run(job)) for job in queue)
    return _run_in_workers(run, pickle_task("the work", run), queue, workers)


def pickle_task(name: str, value: object) -> bytes:
    """Pickle a value for other processes; raise `DowiseError` with its name if that fails."""
    cloudpickle = import_extra("cloudpickle", "simulate", "more than one worker")
    try:
        pickled: bytes = cloudpickle.dumps(value)
    except Exception as error:  # anything that a custom __reduce__ raises
        raise DowiseError(
            f"{name} can't be sent to other processes ({type(error).__name__}: {error}): make it "
            "picklable, or use workers=1",
            code="not-picklable",
        ) from None
    return pickled


def _run_silently(run: Callable[[Any], Any], job: Any) -> Any:
    """Run a job without our warnings, which were shown when the work was validated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DowiseWarning)
        return run(job)


# -- local workers, parent side --------------------------------------------------------------------


class _WorkerLostError(Exception):
    """The worker process is gone."""


class _Worker:
    """Parent side of one worker process."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _WORKER_MAIN, *map(str, sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**dict.fromkeys(_ONE_THREAD, "1"), **os.environ},
            process_group=0,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self.parent = os.getpid()
        self._task: bytes | None = None
        _workers.add(self)

    def call(self, task: bytes, *jobs: object) -> list[Any]:
        """Run a pickled task on jobs, and return the results.

        Without jobs, wait until the worker has started. Errors of the task are raised with the
        worker's traceback as a note.
        """
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            message = None if task is self._task else task, jobs
            pickle.dump(pickle.dumps(message), self.process.stdin)
            self.process.stdin.flush()
            self._task = task
            succeeded, answer, trace = pickle.loads(pickle.load(self.process.stdout))
        except (EOFError, OSError, pickle.UnpicklingError):
            raise _WorkerLostError from None
        if not succeeded:
            answer.add_note(f"In a worker:\n{trace}")
            raise answer
        results: list[Any] = answer
        return results

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        _workers.discard(self)
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(OSError):  # unsent data
                pipe.close()


_workers: set[_Worker] = set()
_idle: list[_Worker] = []
_idle_lock = threading.Lock()


def _kill_workers(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        if worker.parent == os.getpid():  # False after a fork
            worker.kill()


atexit.register(lambda: _kill_workers([*_workers]))


def _acquire_worker() -> _Worker:
    """Return an idle worker, or start one."""
    with _idle_lock:
        _idle[:] = [worker for worker in _idle if worker.parent == os.getpid()]
        while _idle:
            worker = _idle.pop()
            if worker.process.poll() is None:
                return worker
            worker.kill()
    try:
        return _Worker()
    except OSError as error:
        raise DowiseError(
            f"worker processes can't be started ({error.strerror}): use fewer workers",
            code="workers-failed",
        ) from None


def _release_workers(workers: Sequence[_Worker]) -> None:
    """Keep workers for the next run, until they have been idle for `IDLE_TIMEOUT`."""
    with _idle_lock:
        _idle.extend(workers)
    timer = threading.Timer(IDLE_TIMEOUT, _kill_idle_workers, [workers])
    timer.daemon = True
    timer.start()


def _kill_idle_workers(workers: Sequence[_Worker]) -> None:
    with _idle_lock:
        expired = [worker for worker in workers if worker in _idle]
        _idle[:] = [worker for worker in _idle if worker not in expired]
    _kill_workers(expired)


def _run_in_workers(
    run: Callable[[JobT], ResultT], task: bytes, jobs: Sequence[JobT], workers: int
) -> Generator[tuple[JobT, ResultT], None, None]:
    """Run jobs here until the first worker has answered, then in workers only."""
    try:
        directory: Path | None = Path.cwd()
    except OSError:  # it was removed
        directory = None
    pool = _WorkerPool(pickle.dumps((directory, task)), jobs, min(workers, len(jobs)))
    try:
        pool.start()
        for _ in jobs:
            if pool.has_no_answer and pool.results.empty() and (local := pool.take_job()):
                yield local[0], _run_silently(run, local[0])
            else:
                yield pool.next_result()
    except BaseException as error:  # the caller wants no more results
        pool.stop(keep_workers=False)
        if isinstance(error, _WorkerLostError):
            raise DowiseError(_WORKER_DIED, code="workers-failed") from None
        raise
    pool.stop(keep_workers=True)


class _WorkerPool:
    """Workers with a thread each, which sends jobs to its worker and waits for the results."""

    def __init__(self, task: bytes, jobs: Sequence[Any], size: int) -> None:
        self.results: SimpleQueue[tuple[Any, Any] | BaseException] = SimpleQueue()
        self.has_no_answer = not _idle  # until a worker has answered, run jobs in this process
        self._task, self._pending, self._size = task, deque(jobs), size
        self._workers: list[_Worker] = []
        self._ready: list[_Worker] = []  # those of `_workers` that have started
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        # Twice the number of workers, so that none waits and results don't pile up.
        self._slots = threading.Semaphore(2 * size)

    def start(self) -> None:
        for _ in range(self._size):
            threading.Thread(target=self._feed_worker, daemon=True).start()

    def take_job(self) -> list[Any]:
        """Return the next job in a list, which is empty if there is none."""
        try:
            return [self._pending.popleft()]
        except IndexError:
            return []

    def next_result(self) -> tuple[Any, Any]:
        """Wait for a result of a worker."""
        result = self.results.get()
        if isinstance(result, BaseException):
            raise result
        self.has_no_answer = False
        self._slots.release()
        return result

    def stop(self, keep_workers: bool) -> None:
        """Let the threads end, and kill workers that have not started or are not kept."""
        with self._lock:
            self._stopped.set()
        for _ in range(self._size):
            self._slots.release()
        reusable = self._ready if keep_workers else []
        _kill_workers([worker for worker in self._workers if worker not in reusable])
        if reusable:
            _release_workers(reusable)

    def _feed_worker(self) -> None:
        try:
            if self.has_no_answer and self._stops_early():
                return
            worker = _acquire_worker()
            with self._lock:
                if self._stopped.is_set():
                    worker.kill()
                    return
                self._workers.append(worker)
            worker.call(self._task)
            with self._lock:
                if self._stopped.is_set():
                    return
                self._ready.append(worker)
            while self._slots.acquire() and not self._stopped.is_set():
                job = self.take_job()
                if not job:
                    return
                self.results.put((job[0], worker.call(self._task, job[0])[0]))
        except BaseException as error:  # raised again by `next_result`
            self.results.put(error)

    def _stops_early(self) -> bool:
        """Return True if all jobs are done before starting a worker is worthwhile.

        CPU time decides, since on a busy machine the clock says little about the work.
        """
        cpu, start = process_time(), monotonic()
        while process_time() - cpu < HEAD_START and monotonic() - start < 5 * HEAD_START:
            if self._stopped.wait(HEAD_START / 20):
                return True
        return False


# -- local workers, worker side --------------------------------------------------------------------


def serve_jobs() -> None:
    """Run the jobs that arrive on standard input until it is closed: the main loop of a worker."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # the parent handles them and ends this process
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    # Tasks that print must not write between the responses, and tasks that read must not consume
    # our messages.
    requests, responses = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    queue: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive_requests, args=(requests, queue), daemon=True).start()
    task: Callable[[Any], Any] | None = None
    with suppress(BrokenPipeError):
        while True:
            task, response = _respond(task, queue.get())
            pickle.dump(response, responses)
            responses.flush()


def _receive_requests(requests: BinaryIO, queue: SimpleQueue[bytes]) -> None:
    """Queue requests, and exit when the pipe ends: the parent has ended, or was killed."""
    with suppress(EOFError, pickle.UnpicklingError, OSError):
        while True:
            queue.put(pickle.load(requests))
    os._exit(0)


def _respond(task: Callable[[Any], Any] | None, request: bytes) -> tuple[Any, bytes]:
    """Return the current task and a response that the parent can unpickle."""
    cloudpickle = import_extra("cloudpickle", "simulate", "more than one worker")
    try:
        new_task, jobs = pickle.loads(request)
        if new_task is not None:
            directory, pickled = pickle.loads(new_task)
            with suppress(OSError, TypeError):  # the directory may have been removed
                os.chdir(directory)
            task = pickle.loads(pickled)
        assert task is not None
        return task, cloudpickle.dumps((True, [_run_silently(task, job) for job in jobs], ""))
    except BaseException as error:
        trace = traceback.format_exc()
        try:
            response: bytes = cloudpickle.dumps((False, error, trace))
            pickle.loads(response)
            if isinstance(error, Exception):
                return task, response
        except Exception:  # anything that a custom __reduce__ raises
            pass
        return task, cloudpickle.dumps(
            (False, DowiseError(repr(error), code="user-code-failed"), trace)
        )


# -- Dask ------------------------------------------------------------------------------------------


def _run_on_dask(
    run: Callable[[JobT], ResultT], jobs: list[JobT], address: str
) -> Generator[tuple[JobT, ResultT], None, None]:
    distributed = import_extra("distributed", "cluster", "a Dask cluster")
    try:
        client = distributed.Client(address, timeout="5s")
    except (OSError, ValueError, TimeoutError) as error:
        raise DowiseError(
            f"no Dask scheduler answers at {address}: {error}", code="cluster-unreachable"
        ) from None
    with _muted_loggers("distributed.client", "distributed.core"), client:
        try:
            run_pickled = partial(_run_pickled, _pickle_with_user_code(run))
            futures = client.map(run_pickled, jobs, pure=False, retries=3)
            job_of = dict(zip(futures, jobs, strict=True))
            del futures
            for future in distributed.as_completed(list(job_of)):
                result = future.result()
                yield job_of.pop(future), result
                future.release()
        except distributed.KilledWorker:
            raise DowiseError(_WORKER_DIED, code="workers-failed") from None
        except (CancelledError, distributed.CancelledError, OSError) as error:
            raise DowiseError(
                f"lost the Dask scheduler at {address} ({type(error).__name__}): start it again; "
                f"{_HOW_TO_RESUME}",
                code="cluster-unreachable",
            ) from None


def _pickle_with_user_code(run: Callable[..., Any]) -> bytes:
    """Pickle a function by value with the modules of custom policies, which workers may lack."""
    cloudpickle = import_extra("cloudpickle", "simulate", "more than one worker")
    modules = [sys.modules[name] for name in imported_modules()]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        return pickle_task("the work", run)
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def _run_pickled(run: bytes, job: Any) -> Any:
    return _run_silently(pickle.loads(run), job)


@contextmanager
def _muted_loggers(*names: str) -> Iterator[None]:
    """Mute loggers, since our error explains a lost connection."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
