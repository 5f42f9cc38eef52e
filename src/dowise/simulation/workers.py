"""Who does the jobs: this process, worker processes on this machine, or a Dask cluster."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from dowise.errors import DowiseError, DowiseWarning, import_extra

__all__ = ["check_sendable", "run_everywhere"]

_DIED = "a worker died, perhaps for want of memory: what is done is kept, the same call goes on"

Item = TypeVar("Item")
Found = TypeVar("Found")


def check_sendable(what: str, thing: object) -> None:
    """Raise unless a thing can be pickled, so that other processes can have it."""
    pickling = import_extra("cloudpickle", "simulate", "more than one worker")
    try:
        pickling.dumps(thing)
    except Exception as error:  # whatever its own __reduce__ may raise
        raise DowiseError(
            f"{what} can't be sent to other processes ({type(error).__name__}: {error}): let it be "
            "pickled, or race with workers=1"
        ) from None


def run_everywhere(
    run: Callable[[Item], Found], items: Iterable[Item], workers: int, cluster: str | None
) -> Generator[tuple[Item, Found], None, None]:
    """Each item with what `run` makes of it, as they finish."""
    jobs = list(items)
    if cluster is not None:
        return _on_cluster(run, jobs, cluster)
    if workers == 1:
        return ((job, run(job)) for job in jobs)
    return _in_processes(run, jobs, workers)


def _in_processes(
    run: Callable[[Item], Found], jobs: list[Item], workers: int
) -> Generator[tuple[Item, Found], None, None]:
    joblib = import_extra("joblib", "simulate", "more than one worker")
    with _deaf_to_ctrl_c():
        pairs = joblib.Parallel(n_jobs=workers, return_as="generator_unordered")(
            joblib.delayed(_with_item)(run, job) for job in jobs
        )
    try:
        yield from pairs
    except BrokenExecutor as error:
        raise DowiseError(f"{_DIED} ({type(error).__name__})") from None
    finally:
        with warnings.catch_warnings():  # joblib says how many jobs it dropped
            warnings.simplefilter("ignore")
            pairs.close()


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Processes that are started meanwhile don't hear Ctrl-C, which a terminal sends to all.

    This process does, as soon as they are started, and ends them; each of them would print where it
    was. Only the main thread may say what a signal does: others leave it as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _with_item(run: Callable[[Item], Found], item: Item) -> tuple[Item, Found]:
    return item, _quietly(run, item)


def _quietly(run: Callable[[Item], Found], item: Item) -> Found:
    """What there is to say was said before the work was given out, once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DowiseWarning)
        return run(item)


def _on_cluster(
    run: Callable[[Item], Found], jobs: list[Item], address: str
) -> Generator[tuple[Item, Found], None, None]:
    distributed = import_extra("distributed", "cluster", "a Dask cluster")
    try:
        client = distributed.Client(address, timeout="5s")
    except (OSError, ValueError, TimeoutError) as error:
        raise DowiseError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        futures = client.map(partial(_quietly, run), jobs, pure=False, retries=3)
        place = {future.key: job for future, job in zip(futures, jobs, strict=True)}
        for future in distributed.as_completed(futures):
            try:
                found = future.result()
            except distributed.KilledWorker:
                raise DowiseError(_DIED) from None
            yield place[future.key], found
            future.release()
