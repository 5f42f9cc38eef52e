"""The process with limits: it loads what it needs, waits for one job, does it, and ends.

`python -m dowise_web.workshop '{"megabytes": 2048}'` says {"ready": true} once it is, reads a
job, a line of JSON, and writes lines of JSON: {"progress": [3, 20]} now and then, and at last one
of {"answer": …}, {"refused": …}, {"beyond": "memory"}, {"failed": true}. It ends when its input
does, which the system closes whatever ends its starter.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from queue import SimpleQueue
from time import monotonic
from typing import Any, BinaryIO

from dowise_web.sandbox import confine, confine_job

_SELDOM = 0.1  # seconds between two words on progress
_TINY = 'graph = "X -> Y"\nreward = "Y"\n'


class _Answers:
    """The lines that go back."""

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe = pipe
        self._last = 0.0

    def say(self, page: dict[str, Any]) -> None:
        self.send(_line(page))

    def send(self, line: bytes) -> None:
        self._pipe.write(line)
        self._pipe.flush()

    def progress(self, done: int, total: int) -> None:
        """Not more often than anybody can see."""
        now = monotonic()
        if done in (0, total) or now - self._last >= _SELDOM:
            self._last = now
            self.say({"progress": [done, total]})


def main() -> None:
    """Do one job."""
    confine(**json.loads(sys.argv[1]))
    # Nothing that is printed here may get between the answers, nor read what is not its own.
    jobs, answers = os.fdopen(os.dup(0), "rb"), _Answers(os.fdopen(os.dup(1), "wb"))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    waiting: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(jobs, waiting), daemon=True).start()
    _warm_up()
    answers.say({"ready": True})
    job = json.loads(waiting.get())
    confine_job(job["kind"], job["seconds"])
    answers.send(_done(job, answers))
    # Nobody waits for Python to take itself down.
    sys.stderr.flush()
    os._exit(0)


def _receive(jobs: BinaryIO, waiting: SimpleQueue[bytes]) -> None:
    """One job; then the end of the pipe, after which nobody waits for an answer."""
    line = jobs.readline()
    if line:
        waiting.put(line)
        jobs.read()
    os._exit(0)


def _warm_up() -> None:
    """Load what a preview needs; the compiler of kernels takes longer than it, and is left."""
    from dowise_web.preview import preview

    preview({"text": _TINY}, lambda _done, _total: None)


def _line(page: dict[str, Any]) -> bytes:
    return json.dumps(page, allow_nan=False).encode() + b"\n"


def _done(job: dict[str, Any], answers: _Answers) -> bytes:
    """The line that answers a job."""
    from dowise.errors import DowiseError
    from dowise_web.preview import JOBS
    from dowise_web.sandbox import BadInputError

    try:
        return _line({"answer": JOBS[job["kind"]](job, answers.progress)})
    except BadInputError as error:
        place = {"line": error.line, "column": error.column}
        return _line({"refused": {"message": str(error), "field": error.field, **place}})
    except DowiseError as error:
        return _line({"refused": {"message": str(error), "field": "problem"}})
    except MemoryError:
        return _line({"beyond": "memory"})
    except RecursionError:
        return _line({"beyond": "nesting"})
    except Exception:
        traceback.print_exc()
        return _line({"failed": True})


if __name__ == "__main__":
    main()
