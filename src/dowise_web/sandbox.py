"""Jobs for processes with limits: who comes when, and a process that waits for the next one.

>>> with Sandbox() as workshop:
...     page = workshop.preview('graph = "X -> Y"\\nreward = "Y"')
>>> [arm["text"] for arm in page["arms"]["first"]]
['do(X=0)', 'do(X=1)']
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

from dowise._core.document import pluralize
from dowise.errors import DowiseError, InputSyntaxError, UnavailableError

JobKind = Literal["preview", "begin", "rehearse"]

_FILE_MEGABYTES = 16
# Of what is written: compiled kernels alone, of which the largest has half a megabyte. The server
# compiles those that it needs before it opens its port, but a policy that nobody has used yet may
# need others; would they not be kept, every job with it had to compile them again.
_OPEN_FILES = 64
_SLACK = 2  # seconds by which the clock of the starter, who can explain, goes first


@dataclass(frozen=True)
class Limits:
    """What jobs may take; seconds are those of a clock on the wall."""

    preview_seconds: float = 10.0
    begin_seconds: float = 60.0
    """Enough to compile the kernels of most policies where they are not kept yet."""
    rehearse_seconds: float = 600.0
    megabytes: int = 2048
    """Of addresses. With all libraries loaded and compiling, a process has about 700."""
    text_bytes: int = 256 * 1024
    """Of a problem."""
    answer_bytes: int = 4 * 2**20
    at_once: int = 2
    """Jobs that run at the same time."""
    rehearsals_at_once: int = 1
    """So that there is room beside them for who writes a problem."""
    patience: float = 5.0
    """Seconds that a short job waits for its turn before it is refused."""

    def seconds(self, kind: JobKind) -> float:
        """How long a job of this kind may take."""
        by_kind = {
            "preview": self.preview_seconds,
            "begin": self.begin_seconds,
            "rehearse": self.rehearse_seconds,
        }
        return by_kind[kind]


def confine(megabytes: int) -> None:
    """Limit this process for good: memory, files, no dumps of its memory."""
    try:
        import resource
    except ImportError:
        return
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, _FILE_MEGABYTES * 2**20)
    _lower(resource.RLIMIT_NOFILE, _OPEN_FILES)
    _lower(resource.RLIMIT_AS, megabytes * 2**20)


def confine_job(kind: JobKind, seconds: float) -> None:
    """Limit what is done from now on: processor time, and no further process or thread.

    Who is root may start processes all the same: the system has no limit for them.
    """
    try:
        import resource
    except ImportError:
        return
    if kind == "rehearse":
        with suppress(OSError):
            os.nice(10)  # those who ask for a decision go first
    used = resource.getrusage(resource.RUSAGE_SELF)
    _lower(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime + seconds) + _SLACK, grace=1)
    _lower(resource.RLIMIT_NPROC, 0)


def _lower(what: int, number: int, grace: int = 0) -> None:
    """Both limits, where they are not lower already; macOS refuses some of them.

    Beyond the first the system sends a signal that says why, beyond the second, later by `grace`,
    one that does not.
    """
    import resource

    _, hard = resource.getrlimit(what)
    most = number + grace if hard == resource.RLIM_INFINITY else min(number + grace, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(what, (min(number, most), most))


def peak_megabytes() -> float | None:
    """How much memory this process has had at most."""
    try:
        import resource
    except ImportError:
        return None
    in_a_megabyte = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / in_a_megabyte


class BadInputError(InputSyntaxError):
    """Something is wrong with what was sent; `field` says with which part of it.

    In the field "problem" line and column, both from 1, say where in the text, if that is known.
    """

    def __init__(
        self,
        message: str,
        field: str = "problem",
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message, line, column)
        self.field = field


class LimitExceededError(DowiseError):
    """A job would take more time or memory than there is for it, or answer too much."""


class SandboxBusyError(UnavailableError):
    """Others are at work: the same may be asked again in a moment."""


class SandboxFailedError(UnavailableError):
    """A job ended in a way that it should not, for no fault of what was sent."""


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
                [sys.executable, "-P", "-B", "-m", "dowise_web.workshop",
                 json.dumps({"megabytes": limits.megabytes})],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=_environment(), process_group=0,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )  # fmt: skip
        except OSError as error:
            _log.error("no process for the workshop: %s", error)
            raise SandboxFailedError(_FAILED) from None
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
            raise LimitExceededError(_MEMORY.format(self._limits.megabytes))
        if page.get("beyond") == "nesting":
            raise BadInputError(_NESTED)
        self._log_errors()
        raise SandboxFailedError(_FAILED)

    def _next(self, kind: JobKind | None) -> dict[str, Any]:
        """The next line of its answers; before there is a job the kind is None."""
        assert self._process.stdout is not None
        most = self._limits.answer_bytes
        line = self._process.stdout.readline(most + 1)
        if len(line) > most:
            raise LimitExceededError(_LARGE.format(most))
        if not line.endswith(b"\n"):
            self._raise_why_it_died(kind)
        page: dict[str, Any] = json.loads(line)
        return page

    def _raise_why_it_died(self, kind: JobKind | None) -> NoReturn:
        status = self._status()
        if self._ended_by in ("closing", "stop"):
            raise SandboxFailedError(_CLOSED if self._ended_by == "closing" else _STOPPED)
        if kind is not None:
            if self._ended_by == "clock" or status == -getattr(signal, "SIGXCPU", 0):
                raise LimitExceededError(self._too_long(kind))
            if -status in _FATAL:
                raise LimitExceededError(_MEMORY.format(self._limits.megabytes))
        self._log_errors()
        raise SandboxFailedError(_FAILED)

    def _too_long(self, kind: JobKind) -> str:
        limit, so_far = pluralize(round(self._limits.seconds(kind)), "second"), ""
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


_MOST_OPTIONS = 64 * 1024  # bytes of JSON


class Sandbox:
    """Previews, beginnings and rehearsals of problems that somebody sent; safe for threads.

    A process does one job and ends, so that nothing of one is left for the next. Another waits
    meanwhile with everything loaded: it takes a third of a second to get there.

    What is wrong with a text, an option or a number is a `BadInputError`; what would take too much
    time or memory an `LimitExceededError`.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._turns = threading.BoundedSemaphore(self.limits.at_once)
        self._rehearsals = threading.BoundedSemaphore(self.limits.rehearsals_at_once)
        self._lock = threading.Lock()
        self._spare: Child | None = None
        self._at_work: set[Child] = set()
        self._is_closed = False
        self._renew()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def preview(self, text: str) -> dict[str, Any]:
        """What a problem means: roles, arms, picture, advice. Of a graph alone a draft of one."""
        return self._do("preview", text, {})

    def begin(
        self,
        text: str,
        policy: str = "best",
        options: Mapping[str, Any] | None = None,
        learn_restricted: bool = True,
        *,
        is_held: bool = False,
    ) -> dict[str, Any]:
        """Try an experiment: read the problem, make the policy, decide once, and forget it all.

        `problem`, `policy` and `options` of the answer are what `Experiment.create` may be given.
        A problem that `is_held` is that of an experiment which gets another policy: it may be of
        any size, and all there is to know is whether that can be.
        """
        job = {
            "policy": policy, "options": options, "learn_restricted": learn_restricted,
            "is_held": is_held,
        }  # fmt: skip
        return self._do("begin", text, job)

    def rehearse(
        self,
        text: str,
        horizon: int,
        worlds: int = 20,
        policy: str = "best",
        options: Mapping[str, Any] | None = None,
        *,
        prior: Any = None,
        tolerance: float | None = None,
        delay: int = 0,
        looks: int = 20,
        seed: int = 0,
        progress: Callable[[int, int], None] | None = None,
        begun: Callable[[Callable[[], None]], None] | None = None,
    ) -> dict[str, Any]:
        """As `dowise rehearse`: `Rehearsal.as_dict`, with `words` beside it.

        `progress` is told in this thread how many worlds of how many are played; what it raises
        ends the rehearsal. `begun` is given what ends it from any thread.
        """
        job = {
            "policy": policy, "options": options, "horizon": horizon, "worlds": worlds,
            "prior": prior, "tolerance": tolerance, "delay": delay, "looks": looks, "seed": seed,
        }  # fmt: skip
        return self._do("rehearse", text, job, progress, begun)

    def close(self) -> None:
        """End all processes; jobs that are done just now are refused."""
        with self._lock:
            self._is_closed = True
            spare, self._spare = self._spare, None
            for child in self._at_work:  # the threads that wait for them clear away
                child.kill("closing")
        if spare is not None:
            spare.end()

    def _do(
        self,
        kind: JobKind,
        text: str,
        job: dict[str, Any],
        progress: Callable[[int, int], None] | None = None,
        begun: Callable[[Callable[[], None]], None] | None = None,
    ) -> dict[str, Any]:
        is_held = job.get("is_held", False)
        if not is_held:
            self._check_text(text)
        said = _as_json(job, None if is_held else _MOST_OPTIONS)
        given = {"kind": kind, "seconds": self.limits.seconds(kind), "text": text}
        line = json.dumps({**given, **json.loads(said)}).encode()
        with self._turn(kind):
            child = self._taken()
            try:
                if begun is not None:
                    begun(lambda: child.kill("stop"))
                if kind == "rehearse":  # it takes long: who comes meanwhile wants a process, too
                    self._renew()
                return child.do(kind, line, progress)
            finally:
                with self._lock:
                    self._at_work.discard(child)
                child.end()
                self._renew()

    def _check_text(self, text: object) -> None:
        """Before anybody has to wait for it."""
        if not isinstance(text, str):
            raise BadInputError("the problem must be a text: send what a problem file holds")
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            raise BadInputError(f"{text[error.start]!r} is no letter: remove it") from None
        if size > self.limits.text_bytes:
            raise BadInputError(
                f"the text has {size:,} bytes, and {self.limits.text_bytes:,} are the most: begin "
                "such an experiment with `dowise new`"
            )

    @contextmanager
    def _turn(self, kind: JobKind) -> Iterator[None]:
        """Wait for a place, not for long."""
        if kind == "rehearse" and not self._rehearsals.acquire(blocking=False):
            raise SandboxBusyError(
                "somebody rehearses an experiment just now, and one at a time is what there is "
                "room for: try again when that is done"
            )
        try:
            if not self._turns.acquire(timeout=self.limits.patience):
                raise SandboxBusyError("others are busy with problems here: try again in a moment")
            try:
                yield
            finally:
                self._turns.release()
        finally:
            if kind == "rehearse":
                self._rehearsals.release()

    def _taken(self) -> Child:
        """The process that waits, or else a new one."""
        with self._lock:
            if self._is_closed:
                raise UnavailableError("the server is closing: try again when it is back")
            child, self._spare = self._spare, None
            if child is not None and not child.lives():
                child.end()
                child = None
            child = child or Child(self.limits)
            self._at_work.add(child)
            return child

    def _renew(self) -> None:
        """See that a process waits."""
        with self._lock:
            if self._spare is None and not self._is_closed:
                with suppress(SandboxFailedError):  # it is logged, and who comes next will see
                    self._spare = Child(self.limits)


def _as_json(job: dict[str, Any], most: int | None) -> str:
    try:
        said = json.dumps(job, allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError):
        raise BadInputError(
            "options must be plain JSON: numbers, texts, lists", "options"
        ) from None
    if most is not None and len(said) > most:
        raise BadInputError(f"the options have more than {most:,} letters", "options")
    return said


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError
