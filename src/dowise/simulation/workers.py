"""Who does the jobs: this process, worker processes on this machine, or a Dask cluster."""

from __future__ import annotations

import logging
import pickle
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from dowise.checks import whole_number
from dowise.errors import DowiseError, import_extra
from dowise.policies.own import asked_for
from dowise.simulation.crew import DIED, do_in_processes
from dowise.simulation.worker import quietly

__all__ = ["check_sendable", "checked_workers", "run_everywhere"]

Item = TypeVar("Item")
Found = TypeVar("Found")


def checked_workers(workers: int, cluster: str | None = None) -> int:
    """So many; raises, before anything is begun, where a library is missing that they need."""
    if cluster is not None:
        import_extra("distributed", "cluster", "a Dask cluster")
    workers = whole_number("workers", workers, 1)
    if workers > 1:
        import_extra("cloudpickle", "simulate", "more than one worker")
    return workers


def check_sendable(what: str, thing: object) -> None:
    """Raise unless a thing can be pickled, so that other processes can have it."""
    _pickled(what, thing)


def _pickled(what: str, thing: object) -> bytes:
    pickling = import_extra("cloudpickle", "simulate", "more than one worker")
    try:
        pickled: bytes = pickling.dumps(thing)
    except Exception as error:  # whatever its own __reduce__ may raise
        raise DowiseError(
            f"{what} can't be sent to other processes ({type(error).__name__}: {error}): let it be "
            "pickled, or race with workers=1"
        ) from None
    return pickled


def run_everywhere(
    run: Callable[[Item], Found], items: Iterable[Item], workers: int, cluster: str | None
) -> Generator[tuple[Item, Found], None, None]:
    """Each item with what `run` makes of it, as they finish."""
    jobs = list(items)
    if cluster is not None:
        return _on_cluster(run, jobs, cluster)
    if workers == 1 or not jobs:
        return ((job, run(job)) for job in jobs)
    return do_in_processes(run, _pickled("the work", run), jobs, workers)


def _on_cluster(
    run: Callable[[Item], Found], jobs: list[Item], address: str
) -> Generator[tuple[Item, Found], None, None]:
    distributed = import_extra("distributed", "cluster", "a Dask cluster")
    try:
        client = distributed.Client(address, timeout="5s")
    except (OSError, ValueError, TimeoutError) as error:
        raise DowiseError(f"no Dask scheduler answers at {address}: {error}") from None
    place: dict[Any, Item] = {}
    with _unlogged("distributed.client", "distributed.core"), client:
        try:
            work = partial(_unpacked, _packed(run))
            for future in client.map(work, jobs, pure=False, retries=3):
                place[future] = jobs[len(place)]
            for future in distributed.as_completed(list(place)):
                found = future.result()
                yield place.pop(future), found
                future.release()
        except distributed.KilledWorker:
            raise DowiseError(DIED) from None
        except (CancelledError, distributed.CancelledError, OSError) as error:
            raise DowiseError(
                f"the Dask scheduler at {address} is lost ({type(error).__name__}): what is done "
                "is kept, the same call goes on once there is one"
            ) from None


def _packed(run: Callable[[Item], Found]) -> bytes:
    """Pickled with the code of the user's own policies, which other machines need not have."""
    pickling = import_extra("cloudpickle", "simulate", "more than one worker")
    own = [sys.modules[name] for name in asked_for()]
    for module in own:
        pickling.register_pickle_by_value(module)
    try:
        return _pickled("the work", run)
    finally:
        for module in own:
            pickling.unregister_pickle_by_value(module)


def _unpacked(run: bytes, item: Any) -> Any:
    """On a machine of the cluster."""
    return quietly(pickle.loads(run), item)


@contextmanager
def _unlogged(*names: str) -> Iterator[None]:
    """Meanwhile these loggers say nothing: what a lost connection means is said once, by us."""
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
