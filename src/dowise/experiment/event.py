"""Events of an experiment's journal, and the hash chain that connects them.

The hash of an event is H(previous hash, experiment, number, kind, time, actor, H(salt, body)): it
changes with anything in the event, and with every event before it. The body enters by a hash of its
own, so that a body can be erased and the chain still be verified: then the body holds that inner
hash, and the salt, without which nobody can guess what the body was, is gone.

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
"""Stands for a salt that is not shown to everyone."""


class DamagedEventError(DowiseError):
    """An event that can't be read, or that does not follow from the one before it."""

    code = "damaged-file"


class Head(NamedTuple):
    """Number and hash of an event. Kept elsewhere, it reveals a cut or rewritten journal."""

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"


@dataclass(slots=True, unsafe_hash=True)  # not frozen, which would make reading slower by half
class Event:
    """An event as it is stored; it must not be changed. `body` is JSON text, `at` is in UTC."""

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
        """The parsed body, which must not be changed."""
        if self._payload is None:
            self._payload = self.parsed()
        return self._payload

    def parsed(self) -> dict[str, Any]:
        """Return the parsed body without keeping it.

        If thousands of events are read once, keeping their bodies costs more than parsing them:
        each garbage collection would visit all of them.
        """
        if self._payload is not None:
            return self._payload
        try:
            payload = json.loads(self.body)
        except (ValueError, RecursionError):
            payload = None
        if not isinstance(payload, dict):
            raise DamagedEventError(
                f"event {self.number} of {self.experiment} can't be read: run an audit"
            )
        return payload

    def row(self) -> dict[str, str | int]:
        """Return what is stored, by column."""
        return {
            "experiment": self.experiment, "number": self.number, "kind": self.kind, "at": self.at,
            "actor": self.actor, "salt": self.salt, "body": self.body, "hash": self.hash,
        }  # fmt: skip

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Event:
        """Inverse of `row`; the body may be parsed.

        An event whose salt is withheld, or that is not complete, can be read but not verified.
        """
        columns = ("experiment", "number", "kind", "at", "actor", "salt", "body", "hash")
        parts = {name: row[name] for name in columns}
        if not isinstance(payload := parts["body"], str):
            parts["body"] = as_body(payload)
            if [*payload] == ["erased"]:
                parts["salt"] = ""
        is_whole = parts["salt"] is not None and row.get("is_whole", True)
        if not is_whole and parts["salt"] != "":
            parts["salt"] = WITHHELD
        return cls(**parts)

    @property
    def head(self) -> Head:
        """Head of the journal if this is its last event."""
        return Head(self.number, self.hash)

    @property
    def is_erased(self) -> bool:
        """True if the body was erased."""
        return not self.salt

    def erased(self) -> Event:
        """Return the event without its body; its hash can still be verified."""
        if self.is_erased:
            return self
        return replace(self, salt="", body=as_body({"erased": self._inner()}))

    def chained(self, previous: Event | Head | None) -> str:
        """Return the hash that this event must have after `previous`."""
        parts = self.experiment, self.number, self.kind, self.at, self.actor
        return _chained(previous, *parts, self._inner())

    def follows(self, previous: Event | Head | None) -> bool:
        """Return True if number and hash fit the event after `previous`."""
        number = 1 if previous is None else previous.number + 1
        return self.number == number and self.hash == self.chained(previous)

    def _inner(self) -> str:
        """Return H(salt, body); for an erased event the hash that its body consists of."""
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
    """Return the hash of a JSON list, which is built by hand because it is needed often."""
    before = quoted("" if previous is None else previous.hash)
    where = f"{before},{quoted(experiment)},{number},{quoted(kind)}"
    text = f"[{where},{quoted(at)},{quoted(actor)},{quoted(inner)}]"
    return sha256(text.encode()).hexdigest()


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def as_text(value: Any) -> str:
    """Return compact JSON; equal values have equal texts."""
    return _ENCODER.encode(value)


def as_body(payload: Mapping[str, Any]) -> str:
    """Return the body of an event."""
    try:
        text = _ENCODER.encode(dict(payload))
        text.encode()
    except UnicodeEncodeError as error:
        odd = error.object[error.start : error.end]
        raise DowiseError(
            f"{odd!r} can't be stored: use other characters", code="invalid-encoding"
        ) from None
    return text


MAX_ACTOR_LENGTH = 200  # characters
MAX_CLOCK_SKEW = timedelta(minutes=5)  # between machines that share a store


@cache
def build_info() -> dict[str, str]:
    """Return the versions and the processor that the bits and words of a decision depend on."""
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


def resolve_actor(actor: str | None) -> str:
    """Return the actor, which defaults to the user of the operating system."""
    if actor is not None:
        if not isinstance(actor, str) or not actor.strip() or not actor.isprintable():
            raise DowiseError(f"actor={actor!r:.80} must be a short text", code="invalid-type")
        if len(actor) > MAX_ACTOR_LENGTH:
            raise DowiseError(
                f"the actor is a text of {len(actor)} characters: use a short one",
                code="too-large",
            )
        return actor.strip()
    try:
        name = getpass.getuser().encode(errors="replace").decode()  # a name that is not UTF-8
        shown = "".join(letter if letter.isprintable() else "?" for letter in name)
        return shown[:MAX_ACTOR_LENGTH]
    except (KeyError, OSError, ImportError):  # a user without a name, as in a container
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "unknown"


def now() -> datetime:
    """Return the current time; tests replace this function."""
    return datetime.now(UTC)


def next_timestamp(last: str, accept_clock: bool = False) -> str:
    """Return the time of the next event, which is never before that of the last one.

    If the clock is slightly behind, the time of the last event is used; if it is far behind, that
    is an error, unless `accept_clock`.
    """
    current = now()
    text = current.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if text >= last:
        return text
    behind = datetime.fromisoformat(last) - current
    if behind > MAX_CLOCK_SKEW and not accept_clock:
        raise DowiseError(
            f"this machine's clock says {text}, but the last event was at {last}: one of the two "
            "clocks was wrong. Set the clock right, or continue with `accept_clock`, which gives "
            "events the time of the last one until the clock has passed it",
            code="conflict",
        )
    return last


Track = Callable[[Iterable[Event], int], Iterable[Event]]
"""Passes on events, of which there are the given number, and may show progress."""


def tracked(events: Iterable[Event], total: int, track: Track | None) -> Iterable[Event]:
    """Return the events, passed through `track` if there is one."""
    return events if track is None else track(events, total)
