"""Cache of query results, shared by all requests for the same state of an experiment.

A request for a result that is being computed waits for it without a thread: there are few threads,
and requests that ask and tell need them. A failed computation is not cached; each request that
waited for it tries again by itself.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool

from dowise.errors import UnavailableError
from dowise.experiment import StateView
from dowise_web.errors import RefusedError
from dowise_web.rate_limits import RETRY_LATER, FairLimiter, Ticket

Result = TypeVar("Result")
Key = tuple[str, Hashable]
Compute = Callable[[StateView], Any]

MAX_RESULTS = 256
MAX_SHORT_JOBS = 12  # short computations at the same time, so that threads are left for others
MAX_WAITING_PER_PRINCIPAL = 20  # requests that wait for jobs of other requests


@dataclass(eq=False)
class CacheEntry:
    """A computation in progress or finished, and the view it is computed from."""

    view: StateView
    ticket: Ticket | None
    newest_awaited: StateView
    """Newest view of the requests that wait for the end of this computation."""
    task: asyncio.Task[Any] = field(init=False)

    @property
    def has_failed(self) -> bool:
        """True if there is no result."""
        return self.task.done() and (self.task.cancelled() or self.task.exception() is not None)


class ResultCache:
    """Results by experiment and key; one computation at a time for each."""

    def __init__(self, limiter: FairLimiter) -> None:
        self.waiting: Counter[int] = Counter()
        self._limiter = limiter
        self._jobs: OrderedDict[Key, CacheEntry] = OrderedDict()
        self._short_jobs = asyncio.Semaphore(MAX_SHORT_JOBS)

    async def get(
        self,
        view: StateView,
        key: Hashable,
        compute: Callable[[StateView], Result],
        principal: int,
        *,
        is_long: bool = False,
        is_exact: bool = False,
    ) -> tuple[StateView, Result]:
        """Return a result and the view it belongs to.

        Parameters
        ----------
        view
            The view of the request. The result is of this view, or of a later one that another
            request brought while this one waited.
        key
            Identifies the query within the experiment.
        compute
            Computes the result from a view, in a thread.
        principal
            Id of the principal who waits.
        is_long
            True if the computation takes a slot of the limiter.
        is_exact
            True if the result must be of this very view, because a page shows others of it.
        """
        full_key = (view.name, key)
        newest = view  # or a newer one, so that one computation serves all who wait
        may_be_later = False
        while True:
            job = self._jobs.get(full_key)
            if job is not None and self._serves(job, view, may_be_later):
                self._jobs.move_to_end(full_key)
                if job.task.done():
                    return job.view, job.task.result()
            elif job is None or job.task.done():
                job = self._start(full_key, newest, compute, principal, is_long)
                return job.view, await asyncio.shield(job.task)
            await self._wait(job, view, principal)
            if not is_exact:
                newest, may_be_later = _newer(view, job.newest_awaited), True

    @staticmethod
    def _serves(job: CacheEntry, view: StateView, may_be_later: bool) -> bool:
        if job.has_failed:
            return False
        return job.view.head == view.head or (
            may_be_later and job.view.head.number >= view.head.number
        )

    def _start(
        self,
        full_key: Key,
        view: StateView,
        compute: Compute,
        principal: int,
        is_long: bool,
    ) -> CacheEntry:
        ticket = self._limiter.enqueue(principal) if is_long else None
        job = self._jobs[full_key] = CacheEntry(view, ticket, newest_awaited=view)
        self._jobs.move_to_end(full_key)
        job.task = asyncio.create_task(self._run(full_key, job, compute))
        finished = [
            key for key, other in self._jobs.items() if key != full_key and other.task.done()
        ]
        for old in finished[: max(len(self._jobs) - MAX_RESULTS, 0)]:
            del self._jobs[old]
        return job

    async def _run(self, full_key: Key, job: CacheEntry, compute: Compute) -> Any:
        try:
            async with self._short_jobs if job.ticket is None else job.ticket:
                return await run_in_threadpool(compute, job.view)
        except BaseException:
            if self._jobs.get(full_key) is job:
                del self._jobs[full_key]
            raise

    async def _wait(self, job: CacheEntry, view: StateView, principal: int) -> None:
        """Wait until a job has ended, successfully or not."""
        job.newest_awaited = _newer(job.newest_awaited, view)
        with self._counted(principal):
            if job.ticket is not None:
                job.ticket.join(principal)
            await asyncio.wait([job.task])
        if job.has_failed and job.ticket is not None and not job.ticket.started.is_set():
            raise UnavailableError(str(job.task.exception()), code="server-busy")

    @contextmanager
    def _counted(self, principal: int) -> Iterator[None]:
        if self.waiting[principal] >= MAX_WAITING_PER_PRINCIPAL:
            raise RefusedError(
                429,
                f"{MAX_WAITING_PER_PRINCIPAL} of your requests are waiting for results: wait "
                "until one has finished",
                RETRY_LATER,
                code="too-many-requests",
            )
        self.waiting[principal] += 1
        try:
            yield
        finally:
            self.waiting[principal] -= 1
            if not self.waiting[principal]:
                del self.waiting[principal]


def _newer(view: StateView, other: StateView) -> StateView:
    return other if other.head.number > view.head.number else view
