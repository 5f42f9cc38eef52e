"""Connections that keep us waiting are ended, so that they can't use up what others need."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Patient"]

_PATIENCE = 10.0  # seconds for the head of a request, or for what nobody wants to read any more


class Patient(H11Protocol):
    """uvicorn's own, with a limit on how long somebody may be connected without a request.

    uvicorn ends connections that are silent after an answer. It waits for ever for the first
    request, and for one whose head comes a letter at a time.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Somebody is there."""
        super().connection_made(transport)
        self.access_log = (
            False  # its lines have query strings, and other code may have turned it on
        )
        self._arm()

    def on_response_complete(self) -> None:
        """They were answered, perhaps before all was read that they send."""
        self._arm()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """They went."""
        self._disarm()
        super().connection_lost(exc)

    def _arm(self) -> None:
        self._disarm()
        self._timer = self.loop.call_later(_PATIENCE, self._end_unless_busy, self.cycle)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_unless_busy(self, before: object) -> None:
        """End it where no request has begun since."""
        if self.cycle is before and not self.transport.is_closing():
            self.transport.close()
