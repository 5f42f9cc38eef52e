"""The FastAPI application: API, pages and middleware around one registry."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

import dowise
from dowise_web import api, pages
from dowise_web.auth import OPEN_PATHS, AuthMiddleware
from dowise_web.errors import add_error_handlers
from dowise_web.rate_limits import TokenBucket
from dowise_web.registry import ExperimentRegistry
from dowise_web.sandbox import RehearsalJobs, Sandbox
from dowise_web.settings import Settings
from dowise_web.sse import JournalStreams

_DESCRIPTION = """\
The commands of dowise as JSON. Send a token as `Authorization: Bearer …` (`dowise token` creates
one); its role determines what it may do, `read` < `tell` < `ask` < `admin`. Errors are problem
details (RFC 9457): `code` is a stable identifier, `detail` explains what is wrong and what to do.
The header `Idempotency-Key` makes asking safe to repeat; telling the same again changes nothing.
"""


class _App(FastAPI):
    """App whose OpenAPI description declares the bearer token, which `AuthMiddleware` checks."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI description."""
        if not self.openapi_schema:
            schema = super().openapi()
            schema["components"]["securitySchemes"] = {
                "token": {"type": "http", "scheme": "bearer"}
            }
            for path, methods in schema["paths"].items():
                for operation in methods.values() if path not in OPEN_PATHS else ():
                    operation["security"] = [{"token": []}]
        return super().openapi()


def make_app(
    registry: ExperimentRegistry, settings: Settings, sandbox: Sandbox | None = None
) -> FastAPI:
    """Create the app; `SecurityMiddleware` must be placed in front of it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.streams = JournalStreams(registry)
        yield
        app.state.streams.stop()

    app = _App(
        title="dowise",
        version=dowise.__version__,
        description=_DESCRIPTION,
        openapi_url="/api/openapi.json",
        docs_url=None,  # it would load scripts from other sites
        redoc_url=None,
        lifespan=lifespan,
    )
    state: Any = app.state
    state.registry, state.settings = registry, settings
    state.request_rate = TokenBucket(settings.rate, 3 * settings.rate)
    state.failure_rate = TokenBucket(settings.failures, 10)
    state.sandbox = sandbox
    state.rehearsals = None if sandbox is None else RehearsalJobs(sandbox)
    add_error_handlers(app)
    app.add_middleware(AuthMiddleware)
    api.add_routes(app)
    pages.add_routes(app)
    return app
