"""The audit: whether the journal is whole, and every decision follows from what was known then.

The chain of hashes finds any event that was changed, removed or moved. Then every decision is made
again, from what was known and its own random stream, and compared to the last bit. Bits can differ
where another version of a library or another processor made a decision; that is said, and is no
finding. What was counted is compared exactly in any case. A tail that was cut off leaves a shorter
journal that is whole: only a head that was kept elsewhere finds that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar

from dowise._core.codec import JsonResult, in_json
from dowise._core.document import BulletList, Document, Documented, Paragraph, pluralize
from dowise.errors import DowiseError
from dowise.experiment.ask import AskRequest, decide
from dowise.experiment.event import DamagedEventError, Event, Head, Track, build_info, tracked
from dowise.experiment.replay import PolicyReplay
from dowise.experiment.state import ExperimentState
from dowise.experiment.storage.base import Storage

_CHUNK = 1000  # events read at a time
_DIGITS, _FEWEST = 64, 12  # of a hash; so many are shown on pages
_ERASABLE = ("asked", "told", "amended", "withdrawn")
_CHOSEN = ("arm", "probabilities", "reason", "figures")  # what the policy has to say in a decision


@dataclass(frozen=True)
class Finding(JsonResult):
    """The first event that does not follow, and why."""

    event: int
    why: str

    def __str__(self) -> str:
        return f"event {self.event}: {self.why}"


@dataclass(frozen=True)
class Audit(JsonResult, Documented):
    """What an audit found."""

    json_extras: ClassVar[tuple[str, ...]] = ("ok", "notes")

    events: int
    """Number of events."""
    head: Head | None = field(
        metadata=in_json(encode=lambda head, _: str(head), decode=lambda data, _: head_of(data))
    )
    """Number and hash of the last event, to be kept elsewhere."""
    finding: Finding | None = None
    """The first event that does not follow; None if the journal is intact."""
    made_elsewhere: tuple[int, ...] = ()
    """Decisions that come out differently here: another version or processor made them."""
    not_derivable: tuple[int, ...] = ()
    """Decisions that rested on something that was erased since."""
    known_upto: int = 0
    """Number of the head that was passed: up to there a cut would have been found."""
    known_digits: int = _DIGITS
    """Number of digits of its hash that were passed."""

    @property
    def ok(self) -> bool:
        """True if nothing was found."""
        return self.finding is None

    def document(self) -> Document:
        """Return the verdict, and further notes."""
        if self.finding is None:
            some = bool(self.not_derivable or self.made_elsewhere)
            which = " that can be derived again here" if some else ""
            verdict = Paragraph(
                f"The journal is intact: {pluralize(self.events, 'event')}, and every "
                f"decision{which} follows from what was known.",
                "strong",
            )
        else:
            verdict = Paragraph(f"Found at {self.finding}", "warning")
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
                f"{pluralize(len(self.not_derivable), 'decision')} can't be derived again, because "
                "something that was known then was erased since; this is not a finding"
            )
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
        if self.known_upto and self.known_digits < _DIGITS:
            notes.append(
                f"{self.known_digits} of the {_DIGITS} digits of the head were passed: enough to "
                "find an accident, but someone who rewrites a journal on purpose could make an "
                f"event with the same {self.known_digits} digits, though not with all {_DIGITS}"
            )
        return notes


class _Found(Exception):  # noqa: N818 (it is no error)
    pass


def head_of(given: object) -> Head | None:
    """A head as a user gives it: "412:9f…", or a pair; the first digits of the hash will do."""
    if given is None:
        return None
    parts: Any = given.replace(" ", "").split(":") if isinstance(given, str) else given
    try:
        number, digest = parts
        head = Head(int(str(number)), str(digest).lower())
    except (TypeError, ValueError):
        head = Head(0, "")
    if head.number < 1 or not re.fullmatch(f"[0-9a-f]{{1,{_DIGITS}}}", head.hash):
        raise DowiseError(f"head={given!r:.80} must read NUMBER:HASH, as audit prints it")
    if len(head.hash) < _FEWEST:
        raise DowiseError(
            f"head={given!r:.80} has {len(head.hash)} digits of the hash: give at least {_FEWEST}, "
            f"or better all {_DIGITS}"
        )
    return head


class _Auditor:
    """Goes through a journal from its start."""

    def __init__(self, name: str, erasures: dict[int, int], read_import: Callable[[int], Any]):
        self.state = ExperimentState(name)
        self.learner: PolicyReplay | None = None
        self.made_elsewhere: list[int] = []
        self.not_derivable: list[int] = []
        self._erasures = erasures  # of each event that was erased, by which one
        self._read_import = read_import
        self._blank_until: float = 0  # until this event something erased was known
        self._last: tuple[int, int] | None = (0, 0)  # the last decision's event, and `imagined`
        self.unexplained: int | None = None
        """The first event that is blank although none says that it was erased."""

    @property
    def next_number(self) -> int:
        """That of the next event, if the journal is whole."""
        return 1 if self.state.head is None else self.state.head.number + 1

    def check(self, event: Event) -> None:
        """One event more."""
        state = self.state
        if not event.follows(state.head):
            if event.number != self.next_number:
                raise _Found("it is missing or out of place")
            raise _Found("its hash does not follow from what it says and from the event before")
        if event.at < state.at:
            raise _Found(f"it is of {event.at}, before the event before it")
        if event.is_erased:
            if event.kind not in _ERASABLE:
                raise _Found("what it says is gone, and such an event is never erased")
            by = self._erasures.get(event.number)
            if by is None and self.unexplained is None:
                self.unexplained = event.number  # unless the event that says so was changed
            self._blank_until = max(self._blank_until, inf if by is None else by)
            self._last = None
        elif event.kind == "asked":
            self._check_decision(event)
        state.apply(event)

    def _before(self, event: Event) -> int:
        """Of how many decisions before it in its batch outcomes were imagined: one by one."""
        before, last = event.payload.get("imagined", 0), self._last
        is_next = before == 0 or last is None or last == (event.number - 1, before - 1)
        if type(before) is not int or not is_next or not 0 <= before < event.payload["decision"]:
            raise _Found(f"it says that outcomes of {before!r:.40} decisions before were imagined")
        self._last = event.number, before
        return before

    def _check_decision(self, event: Event) -> None:
        state, says = self.state, event.payload
        problem = state.config.problem
        if self.learner is None or self.learner.config is not state.config:
            self.learner = PolicyReplay(state.config, state.config.make_policy(), self._read_import)
        self.learner.sync(state)
        allowed = None if says["allowed"] is None else [problem.arms[i] for i in says["allowed"]]
        try:
            (question,) = AskRequest([says["context"]], allowed=allowed).questions(problem)
            derived = decide(state, self.learner, question, self._before(event))
        except DowiseError as error:
            raise _Found(f"it can't be decided again: {error}") from error
        known, then = derived.pop("known"), says["known"]
        is_blank = event.number < self._blank_until
        if is_blank and known["counts"] != then["counts"]:
            self.not_derivable.append(says["decision"])
            return
        for part in ("event", "counts") if is_blank else known:
            if known[part] != then[part]:
                raise _Found("what it says was known is not what the events before it amount to")
        made, here = says.get("maker", state.build_info), build_info()
        for name, value in derived.items():
            if says.get(name) == value or (name == "reason" and _has_other_words(made, here)):
                continue
            if is_blank and name in _CHOSEN:  # a play under way that was erased may have counted
                self.not_derivable.append(says["decision"])
                return
            if _without_words(made) != _without_words(here):
                self.made_elsewhere.append(says["decision"])
                return
            raise _Found(f"decision {says['decision']} does not follow: its {name} is another")


def _has_other_words(made: Mapping[str, str], here: Mapping[str, str]) -> bool:
    """Whether reasons were worded otherwise then; journals did not always say how."""
    return made.get("wording") != here["wording"]


def _without_words(made: Mapping[str, str]) -> dict[str, str]:
    """What the bits of a decision depend on."""
    return {part: which for part, which in made.items() if part != "wording"}


def audit(
    storage: Storage,
    name: str,
    head: Head | None = None,
    track: Track | None = None,
) -> Audit:
    """Go through a journal from its start."""
    last, count = _end(storage, name)
    auditor = _Auditor(name, _erasures(storage, name), lambda n: _columns(storage, name, n))
    finding = _first_finding(auditor, tracked(_events(storage, name, count), count, track), head)
    seen = auditor.next_number - 1
    if finding is None and auditor.unexplained is not None:
        why = "what it says is gone, and no later event says that it was erased"
        finding = Finding(auditor.unexplained, why)
    if finding is None and head is not None and head.number > seen:
        finding = Finding(seen + 1, f"it is missing: the journal once had {head.number} events")
    return Audit(
        count, None if last is None else last.head, finding, tuple(auditor.made_elsewhere),
        tuple(auditor.not_derivable),
        *((0, _DIGITS) if head is None else (head.number, len(head.hash))),
    )  # fmt: skip


def _end(storage: Storage, name: str) -> tuple[Event | None, int]:
    """The last event and its number; one that can't be read is found by those before it."""
    try:
        last = storage.last(name)
    except DamagedEventError:
        return None, _length(storage, name)
    return last, 0 if last is None else last.number


def _length(storage: Storage, name: str) -> int:
    """How many events there are, as far as they stand there one after the other."""
    number = 0
    while True:
        try:
            if not storage.read(name, after=number, upto=number + 1):
                return number
        except DamagedEventError:
            pass
        number += 1


def _first_finding(auditor: _Auditor, events: Iterable[Event], head: Head | None) -> Finding | None:
    try:
        for event in events:
            auditor.check(event)
            if head is None or event.number != head.number:
                continue
            if not event.hash.startswith(head.hash):
                why = "its hash is not that of the head that was kept: it was rewritten"
                return Finding(event.number, why)
    except (_Found, DamagedEventError, KeyError, TypeError, IndexError, ValueError) as error:
        return Finding(auditor.next_number, _why(error))
    return None


def _why(error: Exception) -> str:
    if isinstance(error, _Found):
        return str(error)
    said = str(error).removesuffix(": run an audit")
    return f"it can't be read: {said if isinstance(error, DamagedEventError) else repr(error):.200}"


def _events(storage: Storage, name: str, upto: int) -> Iterator[Event]:
    for after in range(0, upto, _CHUNK):
        try:
            yield from storage.read(name, after=after, upto=after + _CHUNK)
        except DamagedEventError:  # of which of them is not known
            for number in range(after, after + _CHUNK):
                yield from storage.read(name, after=number, upto=number + 1)


def _erasures(storage: Storage, name: str) -> dict[int, int]:
    """Which event says of another one that it was erased; what can't be read is found later."""
    found: dict[int, int] = {}
    with suppress(DamagedEventError):
        for event in storage.read(name, kinds=("erased",)):
            with suppress(DamagedEventError, TypeError):
                found |= dict.fromkeys(event.payload.get("events", ()), event.number)
    return found


def _columns(storage: Storage, name: str, number: int) -> dict[str, Any]:
    (event,) = storage.read(name, after=number - 1, upto=number)
    columns: dict[str, Any] = event.payload["columns"]
    return columns
