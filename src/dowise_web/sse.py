"""Server-sent events: the number of the journal's last event, whenever it grows."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.concurrency import run_in_threadpool

from dowise.errors import DowiseError
from dowise_web.errors import RefusedError
from dowise_web.registry import ExperimentRegistry

POLL_INTERVAL = 0.5  # seconds; other processes write to the store, too
KEEP_ALIVE_INTERVAL = 15.0  # seconds after which a comment is sent, so that proxies do not close
MAX_STREAMS, MAX_STREAMS_PER_PRINCIPAL = 500, 20


class JournalStreams:
    """Open streams of all experiments; `stop` ends them so that the server can shut down."""

    def __init__(self, registry: ExperimentRegistry) -> None:
        self._registry = registry
        self._stopped = asyncio.Event()
        self._open: Counter[int] = Counter()

    def stop(self) -> None:
        """End all streams."""
        self._stopped.set()

    def check(self, principal: int) -> None:
        """Raise `RefusedError` if too many streams are open."""
        if self._is_full(principal):
            raise RefusedError(
                429,
                "too many pages are open: close some of them",
                {"Retry-After": "30"},
                code="too-many-streams",
            )

    def _is_full(self, principal: int) -> bool:
        return (
            self._open[principal] >= MAX_STREAMS_PER_PRINCIPAL or self._open.total() >= MAX_STREAMS
        )

    async def subscribe(
        self, name: str, principal: int, is_still_valid: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[str]:
        """Yield the number of the last event, now and whenever it has grown.

        The stream ends when the principal's token has ended.
        """
        if self._is_full(principal):  # many may have passed `check` at the same time
            return
        self._open[principal] += 1
        sent, silence = -1, 0.0
        try:
            yield "retry: 2000\n\n"
            while not self._stopped.is_set():
                number = await self._last_number(name)
                number = sent if number is None else number
                if (
                    number != sent or silence >= KEEP_ALIVE_INTERVAL
                ) and not await is_still_valid():
                    return
                if number != sent:
                    sent, silence = number, 0.0
                    yield f"event: head\nid: {number}\ndata: {json.dumps({'number': number})}\n\n"
                elif silence >= KEEP_ALIVE_INTERVAL:
                    silence = 0.0
                    yield ": keep-alive\n\n"
                silence += POLL_INTERVAL
                try:
                    await asyncio.wait_for(self._stopped.wait(), POLL_INTERVAL)
                except TimeoutError:
                    continue
        finally:
            self._open[principal] -= 1
            if not self._open[principal]:
                del self._open[principal]

    async def _last_number(self, name: str) -> int | None:
        recent = self._registry.recent_number(name)
        if recent is not None:
            return recent
        try:
            return await run_in_threadpool(self._registry.last_number, name)
        except DowiseError:  # the store is unavailable for a moment: try again at the next poll
            return None
