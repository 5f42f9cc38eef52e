"""Audit of a journal: is it intact, and does every decision follow from what was known then?

The hash chain reveals events that were changed, removed or moved. Every decision is then repeated
from what was known and its own random stream, and compared to the last bit. Another version of a
library or another processor can give other bits; such decisions are listed, but are not a finding,
and their counts are still compared exactly. A journal that was cut at the end is shorter but
intact: only a head that was kept elsewhere reveals the cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any, ClassVar

from dowise._core.codec import JsonResult, in_json
from dowise._core.document import BulletList, Document, Documented, Paragraph, pluralize
from dowise.errors import DowiseError
from dowise.experiment.ask import UNTRIED, AskRequest, decide
from dowise.experiment.event import DamagedEventError, Event, Head, TrackEvents, build_info, tracked
from dowise.experiment.record_columns import read_import
from dowise.experiment.replay import PolicyReplay
from dowise.experiment.state import ExperimentState
from dowise.experiment.storage.base import Storage

_CHUNK = 1000  # events read at a time
_HASH_DIGITS, _MIN_DIGITS = 64, 12  # pages show the first 12
_ERASABLE = ("asked", "told", "amended", "withdrawn")
_POLICY_PARTS = ("arm", "probabilities", "reason", "figures")  # of a decision


@dataclass(frozen=True)
class Finding(JsonResult):
    """The first event that is wrong, and why."""

    event: int
    why: str

    def __str__(self) -> str:
        return f"event {self.event}: {self.why}"


@dataclass(frozen=True)
class Audit(JsonResult, Documented):
    """Result of an audit; `str(audit)` is the verdict, with notes on what could not be checked.

    Examples
    --------
    >>> from dowise import Experiment
    >>> from dowise.experiment.storage import MemoryStorage
    >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
    >>> audit = experiment.audit()
    >>> audit.ok, audit.events
    (True, 1)
    """

    json_extras: ClassVar[tuple[str, ...]] = ("ok", "notes")

    events: int
    """Number of events."""
    head: Head | None = field(
        metadata=in_json(encode=lambda head, _: str(head), decode=lambda data, _: parse_head(data))
    )
    """Number and hash of the last event, to be kept elsewhere."""
    finding: Finding | None = None
    """The first event that is wrong; None if the journal is intact."""
    made_elsewhere: tuple[int, ...] = ()
    """Numbers of the decisions that come out differently here: another version or processor made
    them."""
    not_derivable: tuple[int, ...] = ()
    """Numbers of the decisions that rested on something that was erased since."""
    known_upto: int = 0
    """Number of the head that was passed, up to which nothing was cut off; 0 without a head."""
    known_digits: int = _HASH_DIGITS
    """Number of digits of the head's hash that were passed."""

    @property
    def ok(self) -> bool:
        """True if the journal is intact."""
        return self.finding is None

    def document(self) -> Document:
        """Return the verdict, and further notes."""
        if self.finding is None:
            are_some = bool(self.not_derivable or self.made_elsewhere)
            condition = " that can be repeated here" if are_some else ""
            verdict = Paragraph(
                f"The journal is intact: {pluralize(self.events, 'event')}, and every "
                f"decision{condition} follows from what was known.",
                "strong",
            )
        else:
            verdict = Paragraph(f"The journal has an error at {self.finding}.", "warning")
        notes = tuple(self.notes())
        return Document((verdict, BulletList(notes)) if notes else (verdict,))

    def notes(self) -> list[str]:
        """Return notes on what the audit could not check."""
        notes = []
        if self.made_elsewhere:
            notes.append(
                f"{pluralize(len(self.made_elsewhere), 'decision')} came out differently here, "
                "because another version or processor made them; the counts are the same"
            )
        if self.not_derivable:
            notes.append(
                f"{pluralize(len(self.not_derivable), 'decision')} can't be repeated, because "
                "something that was known then was erased since; this is not an error"
            )
        if self.finding is not None:
            return notes  # what follows is about a journal without errors
        if not self.known_upto:
            notes.append(
                "without a head that was kept elsewhere, events cut off at the end can't be "
                "detected"
            )
        elif self.known_upto < self.events:
            notes.append(
                f"up to event {self.known_upto} nothing was cut off or rewritten; only a later "
                "head can reveal that later events were cut off"
            )
        if self.known_upto and self.known_digits < _HASH_DIGITS:
            notes.append(
                f"{self.known_digits} of the {_HASH_DIGITS} digits of the head were passed: enough "
                "to find an accident, but someone who rewrites a journal on purpose could make an "
                f"event with the same {self.known_digits} digits, though not with all "
                f"{_HASH_DIGITS}"
            )
        return notes


def parse_head(value: object) -> Head | None:
    """Return a head that a user passed as text, "412:9f…", or as a pair; None stays None.

    The first digits of the hash are enough.
    """
    if value is None:
        return None
    parts: Any = value.replace(" ", "").split(":") if isinstance(value, str) else value
    try:
        number, digest = parts
        head = Head(int(str(number)), str(digest).lower())
    except (TypeError, ValueError):
        head = Head(0, "")
    if head.number < 1 or not re.fullmatch(f"[0-9a-f]{{1,{_HASH_DIGITS}}}", head.hash):
        raise DowiseError(f"head={value!r:.80} must have the form NUMBER:HASH, as audit prints it")
    if len(head.hash) < _MIN_DIGITS:
        raise DowiseError(
            f"head={value!r:.80} has {len(head.hash)} digits of the hash: pass at least "
            f"{_MIN_DIGITS}, or better all {_HASH_DIGITS}"
        )
    return head


class _InvalidEventError(Exception):
    """An event is wrong; the message says why."""


class _Auditor:
    """Checks the events of a journal one after the other, from the first."""

    def __init__(
        self, name: str, erasures: dict[int, int], read_import: Callable[[int], Any]
    ) -> None:
        self.made_elsewhere: list[int] = []
        self.not_derivable: list[int] = []
        self.undeclared_erasure: int | None = None
        """Number of the first erased event that no later event declares erased."""
        self._state = ExperimentState(name)
        self._replay: PolicyReplay | None = None
        self._erasures = erasures  # by erased event: the event that declares the erasure
        self._read_import = read_import
        self._incomplete_until: float = 0  # up to this event, something since erased was known
        self._last: tuple[int, int] | None = (0, 0)  # event and `imagined` of the last decision

    @property
    def next_number(self) -> int:
        """Number of the next event, if the journal is intact."""
        return 1 if self._state.head is None else self._state.head.number + 1

    def check(self, event: Event) -> None:
        """Check the next event. Raises `_InvalidEventError` if it is wrong."""
        if not event.follows(self._state.head):
            if event.number != self.next_number:
                raise _InvalidEventError("it is missing or out of place")
            raise _InvalidEventError("its hash does not match its content and the event before it")
        if event.at < self._state.at:
            raise _InvalidEventError(f"its time, {event.at}, is before that of the previous event")
        if event.is_erased:
            if event.kind not in _ERASABLE:
                raise _InvalidEventError(
                    "its content is missing, and such an event is never erased"
                )
            erasure = self._erasures.get(event.number)
            if erasure is None and self.undeclared_erasure is None:
                self.undeclared_erasure = event.number  # or the event that declares it was changed
            self._incomplete_until = max(self._incomplete_until, erasure or inf)
            self._last = None
        elif event.kind == "asked":
            self._check_decision(event)
        self._state.apply(event)

    def _check_position(self, event: Event) -> int:
        """Return the position of a decision in its batch, after checking it."""
        position, last = event.payload.get("imagined", 0), self._last
        is_next = position == 0 or last is None or last == (event.number - 1, position - 1)
        if (
            type(position) is not int
            or not is_next
            or not 0 <= position < event.payload["decision"]
        ):
            raise _InvalidEventError(
                f"it claims that outcomes of {position!r:.40} decisions before it were imagined"
            )
        is_trial = UNTRIED in event.payload["figures"]  # of an arm, in which nothing is imagined
        self._last = None if is_trial else (event.number, position)
        return position

    def _check_decision(self, event: Event) -> None:
        """Repeat a decision, and compare."""
        config, payload = self._state.config, event.payload
        number, arms = payload["decision"], config.problem.arms
        if self._replay is None or self._replay.config is not config:
            self._replay = PolicyReplay(config, config.make_policy(), self._read_import)
        self._replay.sync(self._state)
        allowed = None if payload["allowed"] is None else [arms[i] for i in payload["allowed"]]
        try:
            request = AskRequest([payload["context"]], allowed=allowed)
            (question,) = request.questions(config.problem)
            derived = decide(self._state, self._replay, question, self._check_position(event))
        except DowiseError as error:
            raise _InvalidEventError(f"the decision can't be repeated: {error}") from error
        known, recorded = derived.pop("known"), payload["known"]
        is_incomplete = event.number < self._incomplete_until
        if is_incomplete and known["counts"] != recorded["counts"]:
            self.not_derivable.append(number)
            return
        for part in ("event", "counts") if is_incomplete else known:
            if known[part] != recorded[part]:
                raise _InvalidEventError(
                    "what it records as known does not match the events before it"
                )
        maker, build = payload.get("maker", self._state.build_info), build_info()
        # Journals of early versions do not record the wording of reasons.
        is_reworded = maker.get("wording") != build["wording"]
        for name, value in derived.items():
            if payload.get(name) == value or (name == "reason" and is_reworded):
                continue
            if is_incomplete and name in _POLICY_PARTS:  # an erased pending play may have counted
                self.not_derivable.append(number)
                return
            if _without_wording(maker) != _without_wording(build):
                self.made_elsewhere.append(number)
                return
            raise _InvalidEventError(
                f"decision {number} does not follow from what was known: its {name} would differ"
            )


def _without_wording(build: Mapping[str, str]) -> dict[str, str]:
    """Return the parts of a build that the bits of a decision depend on."""
    return {part: version for part, version in build.items() if part != "wording"}


def audit(
    storage: Storage,
    name: str,
    head: Head | None = None,
    track: TrackEvents | None = None,
) -> Audit:
    """Audit a journal from its start; see `Experiment.audit`."""
    last, count = _last_event(storage, name)
    auditor = _Auditor(name, _find_erasures(storage, name), partial(read_import, storage, name))
    events = tracked(_read_events(storage, name, count), count, track)
    finding = _first_finding(auditor, events, head)
    checked = auditor.next_number - 1
    if finding is None and auditor.undeclared_erasure is not None:
        why = "its content is missing, and no later event declares that it was erased"
        finding = Finding(auditor.undeclared_erasure, why)
    if finding is None and head is not None and head.number > checked:
        finding = Finding(checked + 1, f"it is missing: the journal once had {head.number} events")
    return Audit(
        events=count,
        head=None if last is None else last.head,
        finding=finding,
        made_elsewhere=tuple(auditor.made_elsewhere),
        not_derivable=tuple(auditor.not_derivable),
        known_upto=0 if head is None else head.number,
        known_digits=_HASH_DIGITS if head is None else len(head.hash),
    )


def _last_event(storage: Storage, name: str) -> tuple[Event | None, int]:
    """Return the last event, None if it can't be read, and the number of events."""
    try:
        last = storage.last(name)
        return last, 0 if last is None else last.number
    except DamagedEventError:
        number = 0
    while True:  # count the events from the first
        with suppress(DamagedEventError):
            if not storage.read(name, after=number, upto=number + 1):
                return None, number
        number += 1


def _first_finding(auditor: _Auditor, events: Iterable[Event], head: Head | None) -> Finding | None:
    try:
        for event in events:
            auditor.check(event)
            if head is None or event.number != head.number or event.hash.startswith(head.hash):
                continue
            why = (
                "its hash is not that of the head that was kept: the journal was rewritten, or the "
                "head was copied wrongly"
            )
            return Finding(event.number, why)
    except _InvalidEventError as error:
        return Finding(auditor.next_number, str(error))
    except DamagedEventError as error:
        reason = str(error).removesuffix(": run an audit")
        return Finding(auditor.next_number, f"it can't be read: {reason}")
    except (KeyError, TypeError, IndexError, ValueError) as error:
        return Finding(auditor.next_number, f"it can't be read: {error!r:.200}")
    return None


def _read_events(storage: Storage, name: str, upto: int) -> Iterator[Event]:
    for after in range(0, upto, _CHUNK):
        try:
            yield from storage.read(name, after=after, upto=after + _CHUNK)
        except DamagedEventError:  # read one by one, to find which of them is damaged
            for number in range(after, after + _CHUNK):
                yield from storage.read(name, after=number, upto=number + 1)


def _find_erasures(storage: Storage, name: str) -> dict[int, int]:
    """Return for each erased event the one that declares it erased, as far as they can be read."""
    erasures: dict[int, int] = {}
    with suppress(DamagedEventError):
        for event in storage.read(name, kinds=("erased",)):
            with suppress(DamagedEventError, TypeError):
                erasures |= dict.fromkeys(event.payload.get("events", ()), event.number)
    return erasures
