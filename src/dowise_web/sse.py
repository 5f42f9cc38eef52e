"""Server-sent events: the number of the journal's last event, whenever it has grown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.concurrency import run_in_threadpool

from dowise.errors import DowiseError
from dowise_web.errors import RefusedError
from dowise_web.registry import ExperimentRegistry

_EVERY = 0.5  # seconds between looks at the store, where others write too
_QUIET = 15.0  # seconds after which a sign of life is sent, so that proxies keep the connection
_MOST, _MOST_OF_ONE = 500, 20


class JournalStreams:
    """Those who follow an experiment's journal; `stop` sends all of them home."""

    def __init__(self, house: ExperimentRegistry) -> None:
        self._house = house
        self._stopped = asyncio.Event()
        self._visitors: dict[int, int] = {}

    def stop(self) -> None:
        """End all streams, so that the server can end."""
        self._stopped.set()

    def check(self, visitor: int) -> None:
        """Raise where there are too many streams already."""
        if self._is_full(visitor):
            raise RefusedError(429, "too many pages are open: close some", {"Retry-After": "30"})

    def _is_full(self, visitor: int) -> bool:
        return (
            self._visitors.get(visitor, 0) >= _MOST_OF_ONE or sum(self._visitors.values()) >= _MOST
        )

    async def follow(
        self, name: str, visitor: int, is_still_known: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[str]:
        """What is sent, as texts: the number now, then each time that it has grown.

        It ends where the visitor's token has ended meanwhile.
        """
        if self._is_full(visitor):  # by now: many may have come at the same moment
            return
        self._visitors[visitor] = self._visitors.get(visitor, 0) + 1
        sent, quiet = -1, 0.0
        try:
            yield "retry: 2000\n\n"
            while not self._stopped.is_set():
                number = await self._number(name)
                number = sent if number is None else number
                if (number != sent or quiet >= _QUIET) and not await is_still_known():
                    return
                if number != sent:
                    sent, quiet = number, 0.0
                    yield f"event: head\nid: {number}\ndata: {json.dumps({'number': number})}\n\n"
                elif quiet >= _QUIET:
                    quiet = 0.0
                    yield ": still here\n\n"
                quiet += _EVERY
                try:
                    await asyncio.wait_for(self._stopped.wait(), _EVERY)
                except TimeoutError:
                    continue
        finally:
            self._visitors[visitor] -= 1
            if not self._visitors[visitor]:
                del self._visitors[visitor]

    async def _number(self, name: str) -> int | None:
        known = self._house.known_number(name)
        if known is not None:
            return known
        try:
            return await run_in_threadpool(self._house.last_number, name)
        except DowiseError:  # the store is away for a moment: later, then
            return None
