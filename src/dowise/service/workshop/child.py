"""The process with limits, as its starter sees it."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NoReturn

from dowise.plain import counted
from dowise.service.workshop.failures import (
    BadInputError,
    OutOfBoundsError,
    WorkshopFailedError,
)
from dowise.service.workshop.limits import JobKind, Limits

__all__ = ["Child"]

Progress = Callable[[int, int], None]
_Why = Literal["clock", "closing", "stop", "end"]

_START_SECONDS = 60.0  # to load everything, on a machine that has other things to do
_DYING_SECONDS = 5.0  # between the end of what it says and its own
_KEPT = 8_192  # bytes of what it says on stderr, the last ones
_ROOT = Path(__file__).parents[3]  # the folder that `import dowise` finds

_PASSED_ON = (
    "PATH", "HOME", "TMPDIR", "TMP", "TEMP", "XDG_CACHE_HOME", "LD_LIBRARY_PATH", "LANG",
    "SYSTEMROOT", "USERNAME", "USERPROFILE", "PYTHONHOME", "PYTHONUSERBASE",
)  # fmt: skip
"""What it takes to start Python, and to find the kernels that are kept. No token is among them."""
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""It may start none, and two jobs at once are enough for a machine that has a server to run."""

_TOO_LONG = {
    "preview": "to read this problem takes more than {}: make the graph or the domains smaller, or "
    "name what can't be set in non_manipulable",
    "begin": "the first decision takes more than {}: make the problem smaller, or choose another "
    "policy",
    "rehearse": "the rehearsal takes more than {}{}: take fewer worlds or rounds, or rehearse on "
    "another machine with `dowise rehearse`",
}
_MEMORY = (
    "this takes more than the {:,} MB of memory that there are for it: make the graph or the "
    "domains smaller, or ask for fewer samples"
)
_LARGE = "the answer to this has more than {:,} bytes: make the graph or the domains smaller"
_NESTED = "brackets are nested too deeply"
_FAILED = "something went wrong here, and not with what was sent: the server's log says more"
_STOPPED = "it was stopped"
_CLOSED = "the server is closing: try again when it is back"

_log = logging.getLogger(__name__)


class Child:
    """A process that does one job; it begins to load what it needs at once."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._ended_by: _Why | None = None
        self._is_over = False
        self._progress: tuple[int, int] | None = None
        self._errors = b""
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-B", "-m", "dowise.service.workshop",
                 json.dumps({"megabytes": limits.megabytes})],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=_environment(), process_group=0,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )  # fmt: skip
        except OSError as error:
            _log.error("no process for the workshop: %s", error)
            raise WorkshopFailedError(_FAILED) from None
        self._drain = threading.Thread(target=self._keep_errors, daemon=True)
        self._drain.start()

    @property
    def pid(self) -> int:
        """Of the process, which is also the number of its group."""
        return self._process.pid

    def lives(self) -> bool:
        """Whether nothing has ended it while it waited."""
        return self._process.poll() is None

    def do(self, kind: JobKind, job: bytes, progress: Progress | None) -> dict[str, Any]:
        """The answer to a job; what `progress` raises ends it."""
        assert self._process.stdin is not None
        with self._ended_after(_START_SECONDS):
            self._next(None)  # it says that it is ready
        with self._ended_after(self._limits.seconds(kind)):
            with suppress(BrokenPipeError):
                self._process.stdin.write(job + b"\n")
                self._process.stdin.flush()
            while True:
                page = self._next(kind)
                if "progress" not in page:
                    return self._answer(page)
                self._progress = done, total = page["progress"]
                if progress is not None:
                    progress(done, total)

    def kill(self, why: _Why) -> None:
        """The whole group; who waits for an answer gets an error."""
        with self._lock:
            self._ended_by = self._ended_by or why
            if self._is_over:  # its number may be somebody else's by now
                return
            with suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()

    def end(self) -> None:
        """Whatever it is doing; for the thread that has it do something."""
        self.kill("end")
        self._status()
        self._drain.join(1.0)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            with suppress(OSError):  # what was not sent yet
                pipe.close()

    def _answer(self, page: dict[str, Any]) -> dict[str, Any]:
        if "answer" in page:
            answer: dict[str, Any] = page["answer"]
            return answer
        if "refused" in page:
            raise BadInputError(**page["refused"])
        if page.get("beyond") == "memory":
            raise OutOfBoundsError(_MEMORY.format(self._limits.megabytes))
        if page.get("beyond") == "nesting":
            raise BadInputError(_NESTED)
        self._log_errors()
        raise WorkshopFailedError(_FAILED)

    def _next(self, kind: JobKind | None) -> dict[str, Any]:
        """The next line of its answers; before there is a job the kind is None."""
        assert self._process.stdout is not None
        most = self._limits.answer_bytes
        line = self._process.stdout.readline(most + 1)
        if len(line) > most:
            raise OutOfBoundsError(_LARGE.format(most))
        if not line.endswith(b"\n"):
            self._raise_why_it_died(kind)
        page: dict[str, Any] = json.loads(line)
        return page

    def _raise_why_it_died(self, kind: JobKind | None) -> NoReturn:
        status = self._status()
        if self._ended_by in ("closing", "stop"):
            raise WorkshopFailedError(_CLOSED if self._ended_by == "closing" else _STOPPED)
        if kind is not None:
            if self._ended_by == "clock" or status == -getattr(signal, "SIGXCPU", 0):
                raise OutOfBoundsError(self._too_long(kind))
            if -status in _FATAL:
                raise OutOfBoundsError(_MEMORY.format(self._limits.megabytes))
        self._log_errors()
        raise WorkshopFailedError(_FAILED)

    def _too_long(self, kind: JobKind) -> str:
        limit, so_far = counted(round(self._limits.seconds(kind)), "second"), ""
        if self._progress is not None:
            done, total = self._progress
            so_far = f" ({done:,} of {total:,} worlds were played by then)"
        return _TOO_LONG[kind].format(limit, so_far)

    @contextmanager
    def _ended_after(self, seconds: float) -> Iterator[None]:
        """Meanwhile the process has so much time."""
        clock = threading.Timer(seconds, self.kill, ["clock"])
        clock.daemon = True
        clock.start()
        try:
            yield
        finally:
            clock.cancel()

    def _status(self) -> int:
        """How it ended; from here on nobody sends a signal to its number."""
        with self._lock:
            self._is_over = True
        try:
            return self._process.wait(_DYING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _keep_errors(self) -> None:
        """In a thread: read what it says on stderr, so that it never waits, and keep the end."""
        pipe = self._process.stderr
        assert pipe is not None
        with suppress(OSError, ValueError):  # the pipe was closed
            for part in iter(lambda: os.read(pipe.fileno(), _KEPT), b""):
                self._errors = (self._errors + part)[-_KEPT:]

    def _log_errors(self) -> None:
        self._drain.join(1.0)
        said = self._errors.decode(errors="replace").strip()
        _log.error("a process of the workshop failed: %s", said or "it said nothing")


# Compilers and libraries in C have no other way to say that there is no memory left.
_FATAL = [getattr(signal, name, None) for name in ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGKILL")]


def _environment() -> dict[str, str]:
    """Of the server's own what is needed; `PYTHONPATH` where dowise itself was found by it."""
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    kept |= {name: text for name, text in os.environ.items() if name.startswith("NUMBA_")}
    path = os.environ.get("PYTHONPATH", "")
    if str(_ROOT) in (str(Path(part).absolute()) for part in path.split(os.pathsep) if part):
        kept["PYTHONPATH"] = path
    return {**kept, **dict.fromkeys(_ONE_THREAD, "1"), "PYTHONUTF8": "1"}
