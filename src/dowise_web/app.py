"""The app: pages and API around one house."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

import dowise
from dowise_web import api, pages
from dowise_web.auth import OPEN, AuthMiddleware
from dowise_web.errors import take_over
from dowise_web.limits import TokenBucket
from dowise_web.registry import ExperimentRegistry
from dowise_web.rehearsals import Rehearsals
from dowise_web.sandbox import Sandbox
from dowise_web.settings import Settings
from dowise_web.sse import JournalStreams

_ABOUT = """\
The verbs of the commands, as JSON. Send a token as `Authorization: Bearer …` (`dowise token` makes
one); what it may do is its role, `read` < `tell` < `ask` < `admin`. An error is a problem document
(RFC 9457) whose `detail` says what is wrong and what would be right. The header `Idempotency-Key`
makes asking safe to repeat; telling the same again changes nothing.
"""


class _App(FastAPI):
    """One whose description says by which token to come in: the door is none of FastAPI's own."""

    def openapi(self) -> dict[str, Any]:
        """The description of the API."""
        if not self.openapi_schema:
            page = super().openapi()
            page["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            for path, methods in page["paths"].items():
                for operation in methods.values() if path not in OPEN else ():
                    operation["security"] = [{"token": []}]
        return super().openapi()


def make_app(
    house: ExperimentRegistry, settings: Settings, workshop: Sandbox | None = None
) -> FastAPI:
    """An app that serves the experiments of a house; a `Guard` must stand before it."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        app.state.watchers = JournalStreams(house)
        yield
        app.state.watchers.stop()

    app = _App(
        title="dowise",
        version=dowise.__version__,
        description=_ABOUT,
        openapi_url="/api/openapi.json",
        docs_url=None,  # its page is loaded from elsewhere
        redoc_url=None,
        lifespan=life,
    )
    state: Any = app.state
    state.house, state.settings = house, settings
    state.visits = TokenBucket(settings.rate, 3 * settings.rate)
    state.guesses = TokenBucket(settings.guesses, 10)
    state.workshop = workshop
    state.rehearsals = None if workshop is None else Rehearsals(workshop)
    take_over(app)
    app.add_middleware(AuthMiddleware)
    api.add_to(app)
    pages.add_to(app)
    return app
