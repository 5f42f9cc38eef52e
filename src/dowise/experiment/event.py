"""Events of an experiment's journal, and the hash chain that connects them.

The hash of an event is H(previous hash, experiment, number, kind, time, actor, H(salt, body)): it
depends on everything in the event and in all events before it. The body enters by an inner hash, so
that it can be erased while the chain can still be verified: the body is then replaced by the inner
hash, and the salt is deleted, so that the body can't be guessed.

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

KINDS = ("created", "asked", "told", "amended", "withdrawn", "revised", "imported", "erased")
COLUMNS = ("experiment", "number", "kind", "at", "actor", "salt", "body", "hash")
WITHHELD = "withheld"
"""Replaces a salt that the reader may not see."""
_NOT_BLANK = "not blank"
"""Replaces the inner hash of an erased event whose body has something else, which no hash fits."""


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
    """An event as it is stored; it must not be changed.

    `body` is JSON text, `at` is in UTC.
    """

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
            self._payload = self.parse_body()
        return self._payload

    def parse_body(self) -> dict[str, Any]:
        """Return the parsed body without keeping it.

        If thousands of events are read once, keeping their bodies takes longer than parsing them
        again, because each garbage collection visits all of them.
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
        """Return the stored values by column."""
        return {name: getattr(self, name) for name in COLUMNS}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Event:
        """Inverse of `row`; the body may be parsed.

        An event without its salt, or that is not complete, can be read but not verified.
        """
        parts = {name: row[name] for name in COLUMNS}
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
        """Head of the journal after this event."""
        return Head(self.number, self.hash)

    @property
    def is_erased(self) -> bool:
        """True if the body was erased."""
        return not self.salt

    def erased(self) -> Event:
        """Return the event without its body; the hash can still be verified."""
        if self.is_erased:
            return self
        return replace(self, salt="", body=as_body({"erased": self._inner()}))

    def expected_hash(self, previous: Event | Head | None) -> str:
        """Return the hash that this event must have after `previous`."""
        parts = self.experiment, self.number, self.kind, self.at, self.actor
        return _chain_hash(previous, *parts, self._inner())

    def follows(self, previous: Event | Head | None) -> bool:
        """Return True if number and hash fit the event after `previous`."""
        number = 1 if previous is None else previous.number + 1
        return self.number == number and self.hash == self.expected_hash(previous)

    def _inner(self) -> str:
        """Return H(salt, body); for an erased event the hash that its body consists of."""
        if self.is_erased:
            inner = self.payload.get("erased")
            return str(inner) if self.body == as_body({"erased": inner}) else _NOT_BLANK
        return sha256(f"{self.salt}:{self.body}".encode()).hexdigest()


class EventDraft(NamedTuple):
    """Kind and payload of an event to append."""

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
    digest = _chain_hash(previous, experiment, number, kind, at, actor, inner)
    event = Event(experiment, number, kind, at, actor, salt, body, digest)
    event._payload = dict(payload)
    return event


def _chain_hash(
    previous: Event | Head | None,
    experiment: str,
    number: int,
    kind: str,
    at: str,
    actor: str,
    inner: str,
) -> str:
    """Return the hash of a JSON list of all parts, built without `json` to save time."""
    before = quoted("" if previous is None else previous.hash)
    text = (
        f"[{before},{quoted(experiment)},{number},{quoted(kind)},"
        f"{quoted(at)},{quoted(actor)},{quoted(inner)}]"
    )
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
        characters = error.object[error.start : error.end]
        raise DowiseError(
            f"{characters!r} can't be stored: use other characters", code="invalid-encoding"
        ) from None
    return text


MAX_ACTOR_LENGTH = 200  # characters
MAX_CLOCK_SKEW = timedelta(minutes=5)  # between machines that share a store


@cache
def build_info() -> dict[str, str]:
    """Return the versions and the processor on which bits and wording of a decision depend."""
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
    """Validate the actor, by default the user of the operating system."""
    if actor is not None:
        if not isinstance(actor, str) or not actor.strip() or not actor.isprintable():
            raise DowiseError(
                f"actor={actor!r:.80} is not valid: use 1 to {MAX_ACTOR_LENGTH} printable "
                "characters",
                code="invalid-type",
            )
        if len(actor) > MAX_ACTOR_LENGTH:
            raise DowiseError(
                f"the actor has {len(actor)} characters: use 1 to {MAX_ACTOR_LENGTH} printable "
                "characters",
                code="too-large",
            )
        return actor.strip()
    try:
        name = getpass.getuser().encode(errors="replace").decode()  # a name that is not UTF-8
        printable = "".join(letter if letter.isprintable() else "?" for letter in name)
        return printable[:MAX_ACTOR_LENGTH]
    except (KeyError, OSError, ImportError):  # a user without a name, as in a container
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "unknown"


def now() -> datetime:
    """Return the current time; tests replace this function."""
    return datetime.now(UTC)


def next_timestamp(last: str, accept_clock: bool = False) -> str:
    """Return the time of the next event, which is not before that of the last one.

    If the clock is behind, the time of the last event is used; if it is far behind, that is an
    error, unless `accept_clock` is true.
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


TrackEvents = Callable[[Iterable[Event], int], Iterable[Event]]
"""Takes events and their number, returns the events, and may show progress."""


def tracked(events: Iterable[Event], total: int, track: TrackEvents | None) -> Iterable[Event]:
    """Pass events through `track`, if there is one."""
    return events if track is None else track(events, total)
