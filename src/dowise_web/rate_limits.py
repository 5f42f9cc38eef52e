"""Rate limits for requests, and the fair limiter for long-running queries."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from threading import Lock

from dowise.errors import UnavailableError
from dowise_web.errors import RefusedError

MAX_BUCKETS = 10_000  # keys that are remembered; the one that was idle longest is dropped first
MAX_RUNNING = 2  # long-running queries at the same time: each keeps a core busy
MAX_RUNNING_PER_PRINCIPAL = 1  # so that one principal never has all slots
MAX_QUEUED = 10  # running and waiting
MAX_QUEUED_PER_PRINCIPAL = 4
SLOT_TIMEOUT = 30.0  # seconds to wait for a slot
RETRY_LATER = {"Retry-After": "5"}


class TokenBucket:
    """Token bucket per key: bursts of `burst` requests, and `rate` per second on average."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def take(self, key: str) -> float:
        """Take a token; return 0, or the seconds until there is one again."""
        with self._lock:
            tokens, since = self._buckets.get(key, (self._burst, time.monotonic()))
            now = time.monotonic()
            tokens = min(self._burst, tokens + (now - since) * self._rate)
            is_refused = tokens < 1
            self._buckets[key] = (tokens if is_refused else tokens - 1, now)
            self._buckets.move_to_end(key)
            while len(self._buckets) > MAX_BUCKETS:
                self._buckets.popitem(last=False)
            return (1 - tokens) / self._rate if is_refused else 0.0


class Ticket:
    """Place of a job in the queue of a `FairLimiter`; the job runs inside `async with`.

    Several principals may wait for the same job. It starts as soon as one of them has a free slot.
    """

    def __init__(self, limiter: FairLimiter, principal: int) -> None:
        self.owner = principal
        self.principals = {principal}
        self.runs_for: int | None = None
        self.started = asyncio.Event()
        self._limiter = limiter

    def join(self, principal: int) -> None:
        """Let another principal wait for this job, so that its slot can be used."""
        self.principals.add(principal)
        self._limiter.start_next()

    async def __aenter__(self) -> None:
        try:
            await asyncio.wait_for(self.started.wait(), SLOT_TIMEOUT)
        except TimeoutError:
            if not self.started.is_set():
                self._limiter.remove(self)
                raise busy() from None
        except asyncio.CancelledError:
            self._limiter.remove(self)
            raise

    async def __aexit__(self, *_error: object) -> None:
        self._limiter.remove(self)


class FairLimiter:
    """Fair limiter for long-running queries, first come, first served.

    At most `MAX_RUNNING` jobs run at a time, one per principal. Waiting takes no thread: everything
    here belongs to the event loop.
    """

    def __init__(self) -> None:
        self.running: list[Ticket] = []
        self.queue: list[Ticket] = []

    def enqueue(self, principal: int) -> Ticket:
        """Add a job to the queue. Raises an error if the queue or the principal's share is full."""
        tickets = self.running + self.queue
        if sum(ticket.owner == principal for ticket in tickets) >= MAX_QUEUED_PER_PRINCIPAL:
            raise RefusedError(
                429,
                f"{MAX_QUEUED_PER_PRINCIPAL} of your long-running queries are in progress: wait "
                "until one has finished",
                RETRY_LATER,
                code="too-many-queries",
            )
        if len(tickets) >= MAX_QUEUED:
            raise busy()
        ticket = Ticket(self, principal)
        self.queue.append(ticket)
        self.start_next()
        return ticket

    def remove(self, ticket: Ticket) -> None:
        """Remove a job that has finished or was given up."""
        for tickets in (self.running, self.queue):
            if ticket in tickets:
                tickets.remove(ticket)
        self.start_next()

    def start_next(self) -> None:
        """Start the jobs that may run now, the oldest first."""
        for ticket in [*self.queue]:
            if len(self.running) >= MAX_RUNNING:
                return
            running_for = [other.runs_for for other in self.running]
            free = [
                principal
                for principal in sorted(ticket.principals)
                if running_for.count(principal) < MAX_RUNNING_PER_PRINCIPAL
            ]
            if free:
                ticket.runs_for = free[0]
                self.queue.remove(ticket)
                self.running.append(ticket)
                ticket.started.set()


def busy() -> UnavailableError:
    """Return the error for a full queue."""
    return UnavailableError(
        "the server is busy with other long-running queries: try again in a while",
        code="server-busy",
    )
