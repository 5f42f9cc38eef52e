"""Worker process of the sandbox: loads what it needs, waits for one job, does it, and exits.

`python -m dowise_web.sandbox_worker '{"megabytes": 2048}'` writes {"ready": true}, reads a job (a
line of JSON), and writes lines of JSON: {"progress": [3, 20]} now and then, and finally one of
{"answer": …}, {"refused": …}, {"out_of_memory": true}, {"failed": "Traceback …"}. It exits when its
input ends, which the system closes whatever happens to the server.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from time import monotonic
from typing import Any, BinaryIO

PROGRESS_INTERVAL = 0.1  # seconds
MAX_TRACEBACK = 8_192  # characters
MAX_FILE_MEGABYTES = 16
# Of files that are written, which are compiled kernels only: the largest has half a megabyte. The
# server compiles what it needs before it opens its port, but a policy may be used for the first
# time here; if its kernels could not be saved, every job with it would compile them again.
MAX_OPEN_FILES = 64
CPU_GRACE = 2  # seconds by which the server's timeout, which can explain itself, comes first
_SMALL_PROBLEM = 'graph = "X -> Y"\nreward = "Y"\n'


def limit_process(megabytes: int) -> None:
    """Limit this process for good: memory, files, and no core dumps."""
    try:
        import resource
    except ImportError:
        return
    _lower_limit(resource.RLIMIT_CORE, 0)
    _lower_limit(resource.RLIMIT_FSIZE, MAX_FILE_MEGABYTES * 2**20)
    _lower_limit(resource.RLIMIT_NOFILE, MAX_OPEN_FILES)
    _lower_limit(resource.RLIMIT_AS, megabytes * 2**20)


def limit_job(kind: str, seconds: float) -> None:
    """Limit the job that starts now: processor time, and no further processes or threads.

    The system has no limit on processes for root.
    """
    try:
        import resource
    except ImportError:
        return
    if kind == "rehearse":
        with suppress(OSError):
            os.nice(10)  # requests for decisions go first
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = usage.ru_utime + usage.ru_stime
    _lower_limit(resource.RLIMIT_CPU, int(used + seconds) + CPU_GRACE, grace=1)
    _lower_limit(resource.RLIMIT_NPROC, 0)


def _lower_limit(kind: int, number: int, grace: int = 0) -> None:
    """Lower the soft and the hard limit; macOS refuses some of them.

    Beyond the soft limit the system sends a signal that tells the cause; beyond the hard limit,
    higher by `grace`, it kills the process.
    """
    import resource

    _, hard = resource.getrlimit(kind)
    new_hard = number + grace if hard == resource.RLIM_INFINITY else min(number + grace, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(kind, (min(number, new_hard), new_hard))


def main() -> None:
    """Do one job."""
    limit_process(**json.loads(sys.argv[1]))
    # What user input makes a library print must not mix with the answer, nor read the job.
    jobs, output = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    queue: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(jobs, queue), daemon=True).start()

    def send(message: dict[str, Any]) -> None:
        output.write(json.dumps(message, allow_nan=False).encode() + b"\n")
        output.flush()

    _warm_up()
    send({"ready": True})
    job = json.loads(queue.get())
    limit_job(job["kind"], job["seconds"])
    run_job(job, send)
    os._exit(0)  # faster than the shutdown of Python


def _receive(jobs: BinaryIO, queue: SimpleQueue[bytes]) -> None:
    """Receive one job; exit when the pipe ends, because then the server is gone."""
    line = jobs.readline()
    if line:
        queue.put(line)
        jobs.read()
    os._exit(0)


def _warm_up() -> None:
    """Import what a preview needs; numba, which takes longer, is left to jobs that need it."""
    from dowise_web.sandbox_jobs import preview

    preview({"text": _SMALL_PROBLEM}, lambda _finished, _worlds: None)


def run_job(job: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
    """Run a job and send its messages."""
    from dowise.errors import DowiseError
    from dowise_web.sandbox import BadInputError
    from dowise_web.sandbox_jobs import JOBS

    last_progress = 0.0

    def progress(finished: int, worlds: int) -> None:
        nonlocal last_progress
        if finished in (0, worlds) or monotonic() - last_progress >= PROGRESS_INTERVAL:
            last_progress = monotonic()
            send({"progress": [finished, worlds]})

    try:
        send({"answer": JOBS[job["kind"]](job, progress)})
    except DowiseError as error:
        refused: dict[str, Any] = {"message": str(error), "code": error.code}
        if isinstance(error, BadInputError):
            refused |= {"field": error.field, "line": error.line, "column": error.column}
        send({"refused": refused})
    except MemoryError:
        send({"out_of_memory": True})
    except RecursionError:
        refused = {"message": "brackets are nested too deeply", "code": "syntax-error"}
        send({"refused": refused})
    except Exception:
        send({"failed": traceback.format_exc()[-MAX_TRACEBACK:]})


if __name__ == "__main__":
    main()
