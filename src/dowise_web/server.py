"""From a store to an open port: compile and fold first, then let people in."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from dowise.errors import DowiseError
from dowise.experiment.experiment import Experiment
from dowise.experiment.storage import MemoryStorage, open_storage
from dowise.problem import load_problem
from dowise_web import tokens
from dowise_web.app import make_app
from dowise_web.registry import ExperimentRegistry, hear_warnings
from dowise_web.sandbox import Sandbox
from dowise_web.security import SecurityMiddleware
from dowise_web.settings import Settings

_PATIENCE = 10.0  # seconds for the head of a request, or for what nobody wants to read any more


class TimeoutH11Protocol(H11Protocol):
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


GRACE = 5
"""Seconds that requests under way get when the server ends."""

_LOG = logging.getLogger("dowise_web")
_BACKLOG = 256
_WARMED = 64  # experiments that are folded before the port opens; others when they are asked for


class Server:
    """A store that is ready to be served; `run` serves it until it is stopped."""

    def __init__(
        self,
        store: str | Path,
        settings: Settings,
        create: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        settings.check()
        hear_warnings()
        self._running: _Uvicorn | None = None
        self._socket = _bound(settings)
        try:
            self.settings = replace(settings, port=self._socket.getsockname()[1])
            self.house = ExperimentRegistry(open_storage(store, create=create))
            warm_up(self.house, progress)
            self.workshop = Sandbox()
            self.app = make_app(self.house, self.settings, self.workshop)
        except BaseException:
            self._socket.close()
            raise

    def link(self, role: str = "admin", name: str | None = None) -> str:
        """An address that opens the browser once, for the system's user unless another is named.

        Its secret stands behind the #, where no server and no log sees it.
        """
        made = tokens.make_link(self.house.storage, role, name)
        return f"{self.settings.address}/enter#{made.secret}"

    def run(self) -> None:
        """Serve until somebody stops it."""
        settings = self.settings
        config = uvicorn.Config(
            SecurityMiddleware(self.app, settings),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=settings.url is not None,
            forwarded_allow_ips="127.0.0.1,::1",
            timeout_graceful_shutdown=GRACE,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.key,
            http=TimeoutH11Protocol,
            ws="none",
        )
        self._running = _Uvicorn(config, self.app)
        self._socket.listen(_BACKLOG)
        try:
            self._running.run([self._socket])
        finally:
            self.workshop.close()
            self.house.close()
            self._socket.close()

    def stop(self) -> None:
        """End it, from another thread."""
        if self._running is not None:
            self._running.handle_exit(signal.SIGTERM, None)


class _Uvicorn(uvicorn.Server):
    """One that sends those home first who follow a journal, and would stay for ever."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._served = app

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop, by a signal."""
        watchers = getattr(self._served.state, "watchers", None)
        if watchers is not None:
            watchers.stop()
        super().handle_exit(sig, frame)


def warm_up(house: ExperimentRegistry, progress: Callable[[int, int], None] | None = None) -> None:
    """Fold every experiment, and compile what looks and decisions need.

    So that an experiment that is begun later need not wait, `best` is warmed up in any case.
    """
    names = house.names()[:_WARMED]
    _ready(Experiment.create(MemoryStorage(), "warm", load_problem("task2"), seed=0))
    for done, name in enumerate(names):
        if progress is not None:
            progress(done, len(names))
        try:
            _ready(house.experiment(name))
        except DowiseError as error:  # a damaged journal, a policy that nobody registered
            _LOG.warning("%s: %s", name, house.discreet(str(error)))
    if progress is not None and names:
        progress(len(names), len(names))


def _ready(experiment: Experiment) -> None:
    """Let it decide and look once, so that nobody has to wait for what that compiles."""
    experiment.warm_up()
    experiment.status()


def _bound(settings: Settings) -> socket.socket:
    """The port, taken; nobody is answered before the rest is ready."""
    kind = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # By its protocol asyncio knows it for TCP, and sends answers without waiting for more.
    made = socket.socket(kind, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((settings.host, settings.port))
    except (OSError, OverflowError) as error:
        made.close()
        raise DowiseError(_why_not(settings, error)) from None
    return made


def _why_not(settings: Settings, error: OSError | OverflowError) -> str:
    where, code = f"{settings.host}, port {settings.port}", getattr(error, "errno", None)
    if code == errno.EADDRINUSE:
        return f"{where} is taken by another program: choose another with --port, 0 for any free"
    if code == errno.EACCES:
        return f"{where}: this user may not take a port below 1024: choose another with --port"
    reason = getattr(error, "strerror", None) or "no such address or port"
    return f"{where} can't be taken: {reason}"
