"""An event: a line of an experiment's journal, and the chain that holds the lines together.

The hash of an event is H(previous hash, experiment, number, kind, time, actor, H(salt, body)): it
changes with anything that is said in the event, and with every event before it. What is inside the
body enters by a hash of its own, so that a body can be erased and the chain still be verified:
then the body holds that inner hash, and the salt, without which nobody can try what the body was,
is gone.

>>> first = next_event(None, "ward", "created", "2026-01-01T00:00:00Z", "ann", {"seed": "7"})
>>> first.number, first.follows(None), first.erased().follows(None)
(1, True, True)
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from json.encoder import encode_basestring as quoted
from typing import Any, NamedTuple

from dowise._core.rng import DRAWS
from dowise.errors import DowiseError
from dowise.policies.decision import WORDING

KINDS = (
    "created", "asked", "told", "amended", "withdrawn", "revised", "imported", "erased",
)  # fmt: skip


WITHHELD = "withheld"
"""In place of a salt that is not shown to everyone."""


class DamagedEventError(DowiseError):
    """An event that can't be read, or that does not follow from the one before it."""


class Head(NamedTuple):
    """The number and the hash of an event: kept elsewhere, they find a cut or rewritten journal."""

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"


@dataclass(slots=True, unsafe_hash=True)  # not frozen, which would make reading slower by half
class Event:
    """What happened, as it is stored: never to be changed. `body` is JSON text, `at` in UTC."""

    experiment: str
    number: int
    kind: str
    at: str
    actor: str
    salt: str
    body: str
    hash: str
    _payload: dict[str, Any] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def payload(self) -> dict[str, Any]:
        """The body, parsed: not to be changed."""
        if self._payload is None:
            self._payload = self.parsed()
        return self._payload

    def parsed(self) -> dict[str, Any]:
        """The same, not kept: where thousands are read once, keeping them costs more than parsing.

        (Each collection of Python's garbage would go through all of them.)
        """
        if self._payload is not None:
            return self._payload
        try:
            page = json.loads(self.body)
        except (ValueError, RecursionError):
            page = None
        if not isinstance(page, dict):
            raise DamagedEventError(
                f"event {self.number} of {self.experiment} can't be read: run an audit"
            )
        return page

    def row(self) -> dict[str, str | int]:
        """What is stored, by the names of the columns."""
        return {
            "experiment": self.experiment, "number": self.number, "kind": self.kind, "at": self.at,
            "actor": self.actor, "salt": self.salt, "body": self.body, "hash": self.hash,
        }  # fmt: skip

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Event:
        """The way back from `row`, the body of which may be parsed.

        One whose salt is withheld, or that is not whole, can be read and not verified.
        """
        columns = ("experiment", "number", "kind", "at", "actor", "salt", "body", "hash")
        parts = {name: row[name] for name in columns}
        if not isinstance(says := parts["body"], str):
            parts["body"] = as_body(says)
            if [*says] == ["erased"]:
                parts["salt"] = ""
        is_whole = parts["salt"] is not None and row.get("is_whole", True)
        if not is_whole and parts["salt"] != "":
            parts["salt"] = WITHHELD
        return cls(**parts)

    @property
    def head(self) -> Head:
        """Where the journal stands with this event."""
        return Head(self.number, self.hash)

    @property
    def is_erased(self) -> bool:
        """Whether what it said was erased."""
        return not self.salt

    def erased(self) -> Event:
        """The same event with what it said left out, its hash still verifiable."""
        if self.is_erased:
            return self
        return replace(self, salt="", body=as_body({"erased": self._inner()}))

    def chained(self, previous: Event | Head | None) -> str:
        """The hash that this event must have behind another one."""
        parts = self.experiment, self.number, self.kind, self.at, self.actor
        return _chained(previous, *parts, self._inner())

    def follows(self, previous: Event | Head | None) -> bool:
        """Whether number and hash are those of the event that comes after another one."""
        number = 1 if previous is None else previous.number + 1
        return self.number == number and self.hash == self.chained(previous)

    def _inner(self) -> str:
        """H(salt, body), or what the body says that it was, if it says nothing else."""
        if self.is_erased:
            inner = self.payload.get("erased")
            return str(inner) if self.body == as_body({"erased": inner}) else "not blank"
        return sha256(f"{self.salt}:{self.body}".encode()).hexdigest()


class EventDraft(NamedTuple):
    """An event to append: its kind, and what it says."""

    kind: str
    payload: dict[str, Any]


def next_event(
    previous: Event | Head | None,
    experiment: str,
    kind: str,
    at: str,
    actor: str,
    payload: Mapping[str, Any],
) -> Event:
    """Return the event that follows `previous`, or the first one if that is None."""
    number = 1 if previous is None else previous.number + 1
    salt, body = secrets.token_hex(16), as_body(payload)
    inner = sha256(f"{salt}:{body}".encode()).hexdigest()
    digest = _chained(previous, experiment, number, kind, at, actor, inner)
    event = Event(experiment, number, kind, at, actor, salt, body, digest)
    event._payload = dict(payload)
    return event


def _chained(
    previous: Event | Head | None,
    experiment: str,
    number: int,
    kind: str,
    at: str,
    actor: str,
    inner: str,
) -> str:
    """The hash of all this as a list in JSON, which is put together by hand: it is done often."""
    before = quoted("" if previous is None else previous.hash)
    where = f"{before},{quoted(experiment)},{number},{quoted(kind)}"
    text = f"[{where},{quoted(at)},{quoted(actor)},{quoted(inner)}]"
    return sha256(text.encode()).hexdigest()


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def as_text(value: Any) -> str:
    """JSON in its shortest form, the same for the same value."""
    return _ENCODER.encode(value)


def as_body(page: Mapping[str, Any]) -> str:
    """The text of an event's body."""
    try:
        text = _ENCODER.encode(dict(page))
        text.encode()
    except UnicodeEncodeError as error:
        odd = error.object[error.start : error.end]
        raise DowiseError(f"{odd!r} can't be written down: use other characters") from None
    return text


_LONGEST = 200  # characters of an actor's name
_SKEW = timedelta(minutes=5)  # so far clocks of machines that share a store may be apart


@cache
def build_info() -> dict[str, str]:
    """What the bits and words of a decision depend on, besides what was known."""
    import llvmlite
    import llvmlite.binding
    import numba
    import numpy as np

    import dowise

    return {
        "dowise": dowise.__version__,
        "draws": DRAWS,
        "wording": WORDING,
        "numpy": np.__version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "processor": f"{platform.machine()} {llvmlite.binding.get_host_cpu_name()}",
    }


def resolve_actor(given: str | None) -> str:
    """Who acts: the one named, or the system's user."""
    if given is not None:
        if not isinstance(given, str) or not given.strip() or not given.isprintable():
            raise DowiseError(f"actor={given!r:.80}: say who acts, by a short text")
        if len(given) > _LONGEST:
            raise DowiseError(f"the actor is a text of {len(given)} characters: use a short one")
        return given.strip()
    try:
        name = getpass.getuser().encode(errors="replace").decode()  # a name that is no UTF-8
        return "".join(letter if letter.isprintable() else "?" for letter in name)[:_LONGEST]
    except (KeyError, OSError, ImportError):  # a user without a name, as in a container
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "unknown"


def now() -> datetime:
    """The time, which tests replace."""
    return datetime.now(UTC)


def next_timestamp(last: str, accept_clock: bool = False) -> str:
    """The time of the next event: never before that of the last one.

    A clock that is a little behind gets the last event's time; one that is far behind is an error,
    unless it is accepted.
    """
    current = now()
    text = current.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if text >= last:
        return text
    behind = datetime.fromisoformat(last) - current
    if behind > _SKEW and not accept_clock:
        raise DowiseError(
            f"this machine's clock says {text}, but the last event was at {last}: one of the two "
            "clocks was wrong. Set the clock right, or go on with `accept_clock`, "
            "which gives events the last one's time until the clock has passed it"
        )
    return last


Track = Callable[[Iterable[Event], int], Iterable[Event]]
"""Passes on events, of which there are the given number, and may show progress."""


def tracked(events: Iterable[Event], total: int, track: Track | None) -> Iterable[Event]:
    """Return the events, passed through `track` if there is one."""
    return events if track is None else track(events, total)
