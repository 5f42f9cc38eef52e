"""Jobs for processes with limits: who comes when, and a process that waits for the next one.

>>> with Workshop() as workshop:
...     page = workshop.preview('graph = "X -> Y"\\nreward = "Y"')
>>> [arm["text"] for arm in page["arms"]["first"]]
['do(X=0)', 'do(X=1)']
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from dowise.errors import UnavailableError
from dowise.service.workshop.child import Child
from dowise.service.workshop.failures import (
    BadInputError,
    WorkshopBusyError,
    WorkshopFailedError,
)
from dowise.service.workshop.limits import JobKind, Limits

__all__ = ["Workshop"]

_MOST_OPTIONS = 64 * 1024  # bytes of JSON


class Workshop:
    """Previews, beginnings and rehearsals of problems that somebody sent; safe for threads.

    A process does one job and ends, so that nothing of one is left for the next. Another waits
    meanwhile with everything loaded: it takes a third of a second to get there.

    What is wrong with a text, an option or a number is a `BadInputError`; what would take too much
    time or memory an `OutOfBoundsError`.
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

    def __enter__(self) -> Workshop:
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
            raise WorkshopBusyError(
                "somebody rehearses an experiment just now, and one at a time is what there is "
                "room for: try again when that is done"
            )
        try:
            if not self._turns.acquire(timeout=self.limits.patience):
                raise WorkshopBusyError("others are busy with problems here: try again in a moment")
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
                with suppress(WorkshopFailedError):  # it is logged, and who comes next will see
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
