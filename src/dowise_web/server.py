"""Start the server: bind the port, warm up, then accept connections."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from dowise.errors import DowiseError, DowiseWarning
from dowise.experiment import Experiment
from dowise.experiment.storage import MemoryStorage, open_storage
from dowise.problem import load_problem
from dowise_web import tokens
from dowise_web.app import make_app
from dowise_web.registry import ExperimentRegistry
from dowise_web.sandbox import Sandbox
from dowise_web.security import SecurityMiddleware
from dowise_web.settings import Settings

REQUEST_TIMEOUT = 10.0  # seconds for the head of a request
SHUTDOWN_TIMEOUT = 5  # seconds for requests in progress when the server stops
MAX_WARMED_UP = 64  # experiments that are read before the port opens
_BACKLOG = 256
_LOG = logging.getLogger("dowise_web")


class TimeoutH11Protocol(H11Protocol):
    """uvicorn's HTTP protocol with a timeout for the head of a request.

    uvicorn closes connections that are idle after a response, but waits without limit for the first
    request, and for one whose head arrives byte by byte.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the timer for a new connection."""
        super().connection_made(transport)
        # Its lines contain query strings, and other code may have enabled it.
        self.access_log = False
        self._start_timer()

    def on_response_complete(self) -> None:
        """Restart the timer, even if the request was not read to its end."""
        self._start_timer()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(REQUEST_TIMEOUT, self._close_if_idle, self.cycle)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close_if_idle(self, cycle: object) -> None:
        """Close the connection if no request has started since."""
        if self.cycle is cycle and not self.transport.is_closing():
            self.transport.close()


class Server:
    """A store that is ready to be served.

    Parameters
    ----------
    store
        A file name or URL of a store.
    settings
        Address, TLS and limits.
    create
        True to create the store if it does not exist.
    progress
        Called with the number of experiments that are warmed up, and of all.

    Raises
    ------
    DowiseError
        If the settings are unsafe, the port is taken or the store can't be opened.

    Examples
    --------
    >>> server = Server("ward.db", Settings(port=8000))  # doctest: +SKIP
    >>> print(server.link("admin"))  # doctest: +SKIP
    >>> server.run()  # doctest: +SKIP
    """

    def __init__(
        self,
        store: str | Path,
        settings: Settings,
        create: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        settings.check()
        # Responses carry notes; warnings would only repeat them on the server's terminal.
        warnings.simplefilter("ignore", DowiseWarning)
        self._uvicorn: _Uvicorn | None = None
        self._socket = _bind(settings)
        try:
            self.settings = replace(settings, port=self._socket.getsockname()[1])
            self.registry = ExperimentRegistry(open_storage(store, create=create))
            warm_up(self.registry, progress)
            self.sandbox = Sandbox()
            self.app = make_app(self.registry, self.settings, self.sandbox)
        except BaseException:
            self._socket.close()
            raise

    def link(self, role: str = "admin", name: str | None = None) -> str:
        """Create a one-time link that signs a browser in; the name defaults to the OS user.

        The secret is in the fragment of the URL, which browsers send to no server.
        """
        created = tokens.create_link(self.registry.storage, role, name)
        return f"{self.settings.address}/enter#{created.secret}"

    def run(self) -> None:
        """Serve until the server is stopped."""
        settings = self.settings
        config = uvicorn.Config(
            SecurityMiddleware(self.app, settings),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=settings.url is not None,
            forwarded_allow_ips="127.0.0.1,::1",
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.key,
            http=TimeoutH11Protocol,
            ws="none",
        )
        self._uvicorn = _Uvicorn(config, self.app)
        self._socket.listen(_BACKLOG)
        try:
            self._uvicorn.run([self._socket])
        finally:
            self.sandbox.close()
            self.registry.close()
            self._socket.close()

    def stop(self) -> None:
        """Stop the server, from another thread."""
        if self._uvicorn is not None:
            self._uvicorn.handle_exit(signal.SIGTERM, None)


class _Uvicorn(uvicorn.Server):
    """Server that ends the event streams first, which would otherwise delay the shutdown."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop because of a signal."""
        streams = getattr(self._app.state, "streams", None)
        if streams is not None:
            streams.stop()
        super().handle_exit(sig, frame)


def warm_up(
    registry: ExperimentRegistry, progress: Callable[[int, int], None] | None = None
) -> None:
    """Read every experiment and compile the kernels of its queries and decisions.

    The kernels of `best` are compiled in any case, for experiments that are created later.
    """
    names = registry.names()[:MAX_WARMED_UP]
    _warm_up(Experiment.create(MemoryStorage(), "warm", load_problem("task2"), seed=0))
    for count, name in enumerate(names):
        if progress is not None:
            progress(count, len(names))
        try:
            _warm_up(registry.experiment(name))
        except DowiseError as error:  # a damaged journal, a policy that is not registered
            _LOG.warning("%s: %s", name, registry.redact(str(error)))
    if progress is not None and names:
        progress(len(names), len(names))


def _warm_up(experiment: Experiment) -> None:
    experiment.warm_up()
    experiment.status()


def _bind(settings: Settings) -> socket.socket:
    """Bind the port; it accepts connections when `Server.run` listens."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio recognizes TCP by the protocol, and then sends responses without delay.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((settings.host, settings.port))
    except (OSError, OverflowError) as error:
        bound.close()
        raise _bind_error(settings, error) from None
    return bound


def _bind_error(settings: Settings, error: OSError | OverflowError) -> DowiseError:
    place, number = f"{settings.host}, port {settings.port}", getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        return DowiseError(
            f"{place} is used by another program: choose another with --port (0: any free one)",
            code="port-in-use",
        )
    if number == errno.EACCES:
        return DowiseError(
            f"{place}: this user may not use a port below 1024: choose another with --port",
            code="port-forbidden",
        )
    reason = getattr(error, "strerror", None) or "no such address or port"
    return DowiseError(f"{place} can't be used: {reason}", code="invalid-address")
