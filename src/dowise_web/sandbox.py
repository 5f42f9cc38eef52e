"""Sandbox for previews, trials and rehearsals of problems: processes with limits.

Users may send any problem, and reading one can take any time and memory. So each job runs in a
process of its own (`dowise_web.sandbox_worker`), which has no secrets in its environment and limits
on time, memory, files and processes.

pebble would need about as much code around it: its processes are started by multiprocessing, which
hands them the environment and the arguments of the server (with passwords of databases), and a busy
one outlives a server that is killed (`test_workers_end_with_a_killed_server`).

>>> with Sandbox() as sandbox:
...     result = sandbox.preview('graph = "X -> Y"\\nreward = "Y"')
>>> [arm["text"] for arm in result["arms"]["first"]]
['do(X=0)', 'do(X=1)']
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fastapi import FastAPI

from dowise._core.document import pluralize
from dowise.errors import DowiseError, InputSyntaxError, NotFoundError, UnavailableError

JobKind = Literal["preview", "begin", "rehearse"]
Progress = Callable[[int, int], None]
_KillReason = Literal["timeout", "closing", "stop", "end"]

START_TIMEOUT = 60.0  # seconds to load everything, on a busy machine
EXIT_TIMEOUT = 5.0  # seconds between the end of the output and the end of the process
MAX_OPTIONS = 64 * 1024  # characters of JSON
MAX_FINISHED_REHEARSALS = 20
_SOURCES = Path(__file__).parents[1]  # the folder in which `import dowise_web` is found

# Variables that are passed on: what Python and the cache of kernels need, and no token.
_ENVIRONMENT = {"PATH", "HOME", "TMPDIR", "TMP", "TEMP", "XDG_CACHE_HOME", "LD_LIBRARY_PATH"}
_ENVIRONMENT |= {"LANG", "SYSTEMROOT", "USERNAME", "USERPROFILE", "PYTHONHOME", "PYTHONUSERBASE"}
_THREAD_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_CPU_LIMIT_SIGNAL = getattr(signal, "SIGXCPU", None)
# Libraries in C report a lack of memory by these signals only.
_OUT_OF_MEMORY_SIGNALS = [
    getattr(signal, name, None) for name in ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGKILL")
]

_TIMEOUT_MESSAGES: Mapping[JobKind, str] = {
    "preview": "reading this problem takes more than {}{}: make the graph or the domains smaller, "
    "or list variables that can't be set in non_manipulable",
    "begin": "the first decision takes more than {}{}: make the problem smaller, or choose another "
    "policy",
    "rehearse": "the rehearsal takes more than {}{}: use fewer worlds or rounds, or rehearse on "
    "another machine with `dowise rehearse`",
}
_MEMORY_MESSAGE = (
    "this takes more than {:,} MB of memory: make the graph or the domains smaller, or use fewer "
    "samples"
)
_SIZE_MESSAGE = "the result has more than {:,} bytes: make the graph or the domains smaller"
_FAILED_MESSAGE = "something went wrong in the server; its log has the details"
_CLOSING_MESSAGE = "the server is shutting down: try again later"
_DEFAULT_REHEARSAL: Mapping[str, Any] = {
    "worlds": 20,
    "policy": "best",
    "options": None,
    "prior": None,
    "tolerance": None,
    "delay": 0,
    "looks": 20,
    "seed": 0,
}

_LOG = logging.getLogger("dowise_web")


@dataclass(frozen=True)
class SandboxLimits:
    """Limits on jobs; seconds are wall-clock time."""

    preview_seconds: float = 10.0
    begin_seconds: float = 60.0
    """Enough to compile the kernels of most policies."""
    rehearse_seconds: float = 600.0
    megabytes: int = 2048
    """Address space. With all libraries loaded and compiling, a process has about 700."""
    text_bytes: int = 256 * 1024
    """Size of a problem."""
    answer_bytes: int = 4 * 2**20
    max_running: int = 2
    max_rehearsals: int = 1
    """Fewer than `max_running`, so that previews need not wait for a rehearsal."""
    slot_timeout: float = 5.0
    """Seconds that a job waits for its turn before it is refused."""

    def seconds(self, kind: JobKind) -> float:
        """Return the time limit of a kind of job."""
        seconds: float = getattr(self, f"{kind}_seconds")
        return seconds


class BadInputError(InputSyntaxError):
    """An error in what a user sent; `field` is the part of it that is wrong.

    For the field "problem", line and column (from 1) locate the error in the text, if known.
    """

    code = "invalid-input"

    def __init__(
        self,
        message: str,
        field: str = "problem",
        line: int | None = None,
        column: int | None = None,
        *,
        code: str | None = None,
    ) -> None:
        super().__init__(message, line, column, code=code)
        self.field = field


class LimitExceededError(DowiseError):
    """A job that takes more time or memory than allowed, or whose result is too large."""

    code = "too-large"


class SandboxBusyError(UnavailableError):
    """Other jobs are running: the same request may succeed in a moment."""

    code = "server-busy"


class SandboxFailedError(UnavailableError):
    """A job that failed for a reason other than its input."""

    code = "sandbox-failed"


class Worker:
    """A process that does one job, as the server sees it; it starts to load immediately."""

    def __init__(self, limits: SandboxLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._killed_by: _KillReason | None = None
        self._has_exited = False
        arguments = json.dumps({"megabytes": limits.megabytes})
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-B", "-m", "dowise_web.sandbox_worker", arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # what user input makes a library print
                env=_environment(),
                process_group=0,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        except OSError as error:
            raise _failure(f"can't start: {error}") from None

    @property
    def pid(self) -> int:
        """Id of the process and of its process group."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return True if the process is still running."""
        return self._process.poll() is None

    def run(self, kind: JobKind, job: bytes, progress: Progress | None = None) -> dict[str, Any]:
        """Run a job and return its answer; an error in `progress` ends it."""
        assert self._process.stdin is not None
        with self._timeout(START_TIMEOUT):
            message = self._receive()
        if "ready" not in message:
            raise self._error(None, message)
        worlds = None
        with self._timeout(self._limits.seconds(kind)):
            with suppress(BrokenPipeError):
                self._process.stdin.write(job + b"\n")
                self._process.stdin.flush()
            while "progress" in (message := self._receive()):
                worlds = message["progress"]
                if progress is not None:
                    progress(*worlds)
        if "answer" not in message:
            raise self._error(kind, message, worlds)
        answer: dict[str, Any] = message["answer"]
        return answer

    def kill(self, reason: _KillReason) -> None:
        """Kill the process group; `run` raises an error."""
        with self._lock:
            self._killed_by = self._killed_by or reason
            if self._has_exited:  # its id may belong to another process by now
                return
            with suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()

    def close(self) -> None:
        """Kill the process and close its pipes; for the thread that calls `run`."""
        self.kill("end")
        self._wait()
        with suppress(OSError), self._process:  # input that was not sent
            pass

    def _receive(self) -> dict[str, Any]:
        """Read a line of the output, or return the exit status if there is none."""
        assert self._process.stdout is not None
        limit = self._limits.answer_bytes
        line = self._process.stdout.readline(limit + 1)
        if len(line) > limit:
            raise LimitExceededError(_SIZE_MESSAGE.format(limit))
        message: dict[str, Any] = (
            json.loads(line) if line.endswith(b"\n") else {"status": self._wait()}
        )
        return message

    def _error(
        self, kind: JobKind | None, message: dict[str, Any], worlds: list[int] | None = None
    ) -> DowiseError:
        """Return the error for a last message without an answer; `kind` is None before a job."""
        status = message.get("status", 0)
        if self._killed_by == "closing":
            return SandboxFailedError(_CLOSING_MESSAGE)
        if self._killed_by == "stop":
            return SandboxFailedError("the job was stopped", code="stopped")
        if "refused" in message:
            return BadInputError(**message["refused"])
        if kind is not None:
            if self._killed_by == "timeout" or -status == _CPU_LIMIT_SIGNAL:
                limit, so_far = pluralize(round(self._limits.seconds(kind)), "second"), ""
                if worlds is not None:
                    so_far = f" ({worlds[0]:,} of {worlds[1]:,} worlds were finished by then)"
                text = _TIMEOUT_MESSAGES[kind].format(limit, so_far)
                return LimitExceededError(text, code="timeout")
            if "out_of_memory" in message or -status in _OUT_OF_MEMORY_SIGNALS:
                return LimitExceededError(_MEMORY_MESSAGE.format(self._limits.megabytes))
        return _failure(message.get("failed", f"ended with status {status}"))

    @contextmanager
    def _timeout(self, seconds: float) -> Iterator[None]:
        timer = threading.Timer(seconds, self.kill, ["timeout"])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _wait(self) -> int:
        """Return the exit status; no signal is sent to the process id afterwards."""
        with self._lock:
            self._has_exited = True
        try:
            return self._process.wait(EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def _failure(details: str) -> SandboxFailedError:
    """Log why a process failed, and return the error for the user."""
    _LOG.error("a process of the sandbox failed: %s", details)
    return SandboxFailedError(_FAILED_MESSAGE)


def _environment() -> dict[str, str]:
    """Return the environment of a worker, with `PYTHONPATH` only if dowise is found by it."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if name in _ENVIRONMENT or name.startswith("NUMBA_")
    }
    path = os.environ.get("PYTHONPATH", "")
    if str(_SOURCES) in (str(Path(part).absolute()) for part in path.split(os.pathsep) if part):
        variables["PYTHONPATH"] = path
    return {**variables, **dict.fromkeys(_THREAD_COUNTS, "1"), "PYTHONUTF8": "1"}


class Sandbox:
    """Runs jobs in processes with limits. Safe for threads.

    A process does one job, so that nothing is left of it for the next. A spare process waits with
    everything loaded, which takes a third of a second.

    Errors in a text, an option or a number raise `BadInputError`; jobs that take too much time or
    memory raise `LimitExceededError`.
    """

    def __init__(self, limits: SandboxLimits | None = None) -> None:
        self.limits = limits or SandboxLimits()
        self._slots = threading.BoundedSemaphore(self.limits.max_running)
        self._rehearsal_slots = threading.BoundedSemaphore(self.limits.max_rehearsals)
        self._lock = threading.Lock()
        self._spare: Worker | None = None
        self._running: set[Worker] = set()
        self._is_closed = False
        self._start_spare()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def preview(self, text: str) -> dict[str, Any]:
        """Describe a problem: roles, arms, picture, advice. A graph alone gives a draft of one."""
        self._check_text(text)
        return self._run("preview", text)

    def begin(
        self,
        text: str,
        policy: str = "best",
        options: Mapping[str, Any] | None = None,
        learn_restricted: bool = True,
        *,
        is_current: bool = False,
    ) -> dict[str, Any]:
        """Try an experiment: read the problem, create the policy, decide once.

        `problem`, `policy` and `options` of the result are valid for `Experiment.create`. A problem
        that `is_current` belongs to an experiment that gets another policy: it may be of any size.
        """
        if not is_current:
            self._check_text(text)
        settings = {
            "policy": policy,
            "options": options,
            "learn_restricted": learn_restricted,
            "is_current": is_current,
        }
        return self._run("begin", text, settings)

    def rehearse(
        self,
        text: str,
        horizon: int,
        *,
        progress: Progress | None = None,
        on_start: Callable[[Callable[[], None]], None] | None = None,
        **settings: Any,
    ) -> dict[str, Any]:
        """Rehearse an experiment, as `dowise rehearse` does; `words` has the result as text.

        `settings` are arguments of `dowise.experiment.rehearse`. `progress` is called in this
        thread with the number of finished worlds and of all; an error in it ends the rehearsal.
        `on_start` is called with a function that ends it.
        """
        self._check_text(text)
        settings = {**_DEFAULT_REHEARSAL, **settings, "horizon": horizon}
        return self._run("rehearse", text, settings, progress, on_start)

    def close(self) -> None:
        """End all processes; jobs in progress fail."""
        with self._lock:
            self._is_closed = True
            spare, self._spare = self._spare, None
            for worker in self._running:  # the threads that wait for them close them
                worker.kill("closing")
        if spare is not None:
            spare.close()

    def _run(
        self,
        kind: JobKind,
        text: str,
        settings: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
        on_start: Callable[[Callable[[], None]], None] | None = None,
    ) -> dict[str, Any]:
        job = {"kind": kind, "seconds": self.limits.seconds(kind), "text": text}
        job |= _plain(settings or {})
        with self._slot(kind):
            worker = self._take_worker()
            try:
                if on_start is not None:
                    on_start(lambda: worker.kill("stop"))
                if kind == "rehearse":  # it takes long, and others need a process soon
                    self._start_spare()
                return worker.run(kind, json.dumps(job).encode(), progress)
            finally:
                with self._lock:
                    self._running.discard(worker)
                worker.close()
                self._start_spare()

    def _check_text(self, text: object) -> None:
        if not isinstance(text, str):
            raise BadInputError("the problem must be a text, as in a problem file")
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            raise BadInputError(
                f"{text[error.start]!r} is not a character: remove it", code="syntax-error"
            ) from None
        if size > self.limits.text_bytes:
            raise BadInputError(
                f"the text has {size:,} bytes, and at most {self.limits.text_bytes:,} are "
                "accepted here: create such an experiment with `dowise new`",
                code="too-large",
            )

    @contextmanager
    def _slot(self, kind: JobKind) -> Iterator[None]:
        if kind == "rehearse" and not self._rehearsal_slots.acquire(blocking=False):
            raise SandboxBusyError("a rehearsal is already running: try again when it has finished")
        try:
            if not self._slots.acquire(timeout=self.limits.slot_timeout):
                raise SandboxBusyError("the server is busy with other problems: try again soon")
            try:
                yield
            finally:
                self._slots.release()
        finally:
            if kind == "rehearse":
                self._rehearsal_slots.release()

    def _take_worker(self) -> Worker:
        with self._lock:
            if self._is_closed:
                raise UnavailableError(_CLOSING_MESSAGE)
            worker, self._spare = self._spare, None
            if worker is not None and not worker.is_alive():
                worker.close()
                worker = None
            worker = worker or self._new_worker()
            self._running.add(worker)
            return worker

    def _new_worker(self) -> Worker:
        return Worker(self.limits)

    def _start_spare(self) -> None:
        with self._lock:
            if self._spare is None and not self._is_closed:
                with suppress(SandboxFailedError):  # logged; the next job will report it
                    self._spare = self._new_worker()


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as plain JSON data."""
    try:
        text = json.dumps(settings, allow_nan=False, default=dict)  # other mappings
    except (TypeError, ValueError, RecursionError):
        raise BadInputError(
            "options must be plain JSON: numbers, texts, lists", "options", code="invalid-type"
        ) from None
    if len(text) > MAX_OPTIONS and not settings.get("is_current"):
        raise BadInputError(
            f"the options have more than {MAX_OPTIONS:,} characters", "options", code="too-large"
        )
    data: dict[str, Any] = json.loads(text)
    return data


@dataclass
class RehearsalJob:
    """A rehearsal that runs in the background: its progress, and finally its result or error."""

    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    finished_worlds: int = 0
    worlds: int = 0
    result: dict[str, Any] | None = None
    error: DowiseError | None = None
    is_stopped: bool = False
    _kill: Callable[[], None] | None = None

    @property
    def is_finished(self) -> bool:
        """True if there is nothing more to wait for."""
        return self.result is not None or self.error is not None or self.is_stopped

    def stop(self) -> None:
        """End the rehearsal."""
        self.is_stopped = True
        if self._kill is not None:
            self._kill()

    def set_kill(self, kill: Callable[[], None]) -> None:
        """Set the function that ends the process, which has just started."""
        self._kill = kill
        if self.is_stopped:  # before it started
            kill()

    def set_progress(self, finished_worlds: int, worlds: int) -> None:
        """Set the number of finished worlds, and of all."""
        self.finished_worlds, self.worlds = finished_worlds, worlds


class RehearsalJobs:
    """Rehearsals in the background, by ids that can't be guessed; recent results are kept."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._jobs: OrderedDict[str, RehearsalJob] = OrderedDict()
        self._lock = threading.Lock()

    def start(self, text: str, **settings: Any) -> RehearsalJob:
        """Start a rehearsal with the arguments of `Sandbox.rehearse`."""
        job = RehearsalJob()
        with self._lock:
            self._jobs[job.id] = job
            finished = [other for other in self._jobs.values() if other.is_finished]
            for old in finished[: max(len(finished) - MAX_FINISHED_REHEARSALS, 0)]:
                del self._jobs[old.id]
        threading.Thread(target=self._run, args=(job, text, settings), daemon=True).start()
        return job

    def find(self, id: str) -> RehearsalJob:  # noqa: A002
        """Return the rehearsal with this id."""
        with self._lock:
            job = self._jobs.get(id)
        if job is None:
            raise NotFoundError(
                "this rehearsal is no longer available: start it again", code="unknown-rehearsal"
            )
        return job

    def _run(self, job: RehearsalJob, text: str, settings: dict[str, Any]) -> None:
        try:
            job.result = self.sandbox.rehearse(
                text, **settings, progress=job.set_progress, on_start=job.set_kill
            )
        except DowiseError as error:
            job.error = error
        except Exception:  # otherwise a page would wait for it without end
            _LOG.exception("a rehearsal failed")
            job.error = SandboxFailedError(_FAILED_MESSAGE)


def get_sandbox(app: FastAPI) -> Sandbox:
    """Return the sandbox of an app. Raises `UnavailableError` if it has none."""
    sandbox: Sandbox | None = app.state.sandbox
    if sandbox is None:
        raise UnavailableError("this server does not accept new problems", code="not-supported")
    return sandbox
