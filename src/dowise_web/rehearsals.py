"""Rehearsals that go on while nobody waits for them: a page asks now and then how far they are."""

from __future__ import annotations

import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dowise.errors import DowiseError, NotFoundError
from dowise_web.sandbox import Sandbox, SandboxFailedError

_KEPT = 20  # of those that are over
_log = logging.getLogger(__name__)


@dataclass
class Rehearsal:
    """One of them: how far it is, and at last what came out or went wrong."""

    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    done: int = 0
    total: int = 0
    found: dict[str, Any] | None = None
    error: DowiseError | None = None
    is_stopped: bool = False
    _end: Callable[[], None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to wait for any more."""
        return self.found is not None or self.error is not None or self.is_stopped

    def stop(self) -> None:
        """Nobody wants it any more."""
        self.is_stopped = True
        if self._end is not None:
            self._end()

    def begun(self, end: Callable[[], None]) -> None:
        """It has a process, which this ends."""
        self._end = end
        if self.is_stopped:  # before there was anything to end
            end()

    def note(self, done: int, total: int) -> None:
        """How far it is."""
        self.done, self.total = done, total


class Rehearsals:
    """Those of a workshop, by an id that nobody can guess; the last ones that are over are kept."""

    def __init__(self, workshop: Sandbox) -> None:
        self._workshop = workshop
        self._known: OrderedDict[str, Rehearsal] = OrderedDict()
        self._lock = threading.Lock()

    def start(self, text: str, **settings: Any) -> Rehearsal:
        """Begin one, as `Sandbox.rehearse` has it."""
        made = Rehearsal()
        with self._lock:
            self._known[made.id] = made
            over = [one for one in self._known.values() if one.is_over]
            for old in over[: max(len(over) - _KEPT, 0)]:
                del self._known[old.id]
        threading.Thread(target=self._play, args=(made, text, settings), daemon=True).start()
        return made

    def find(self, id: str) -> Rehearsal:  # noqa: A002 (its name)
        """The one with this id."""
        with self._lock:
            found = self._known.get(id)
        if found is None:
            raise NotFoundError("this rehearsal is not kept any more: begin it again")
        return found

    def _play(self, one: Rehearsal, text: str, settings: dict[str, Any]) -> None:
        try:
            one.found = self._workshop.rehearse(
                text, **settings, progress=one.note, begun=one.begun
            )
        except DowiseError as error:
            one.error = error
        except Exception:  # nobody else would see it, and a page would ask for ever how far it is
            _log.exception("a rehearsal failed")
            one.error = SandboxFailedError("something went wrong here: the server's log says more")
