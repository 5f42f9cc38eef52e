"""How much a job may take, and how a process keeps itself to it.

The process sets the limits of the system by itself, before it reads anything: so nothing runs
between fork and exec in a server that has many threads. What the system does not have (Windows has
no `resource`) is left to the clock of whoever started it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

__all__ = ["JobKind", "Limits", "confine", "confine_job", "peak_megabytes"]

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
