"""Snapshots: the cases as of some event, so that opening an experiment need not read every event.

Nothing in a snapshot is trusted. It is taken just before a decision, and the event of that decision
holds a digest of the cases that were known then; a snapshot whose cases have another digest is not
used, and the journal read from its start. Counts are in no snapshot: they are learned from the
cases. The plan, the seed and the imports are read from their own events.
"""

from __future__ import annotations

import zlib
from math import log
from typing import Any, NamedTuple

from dowise.errors import DowiseError
from dowise.experiment.event import Event
from dowise.experiment.facts import Facts
from dowise.experiment.storage.base import Snapshot, Storage

__all__ = ["Draft", "draft_of", "facts_of_snapshot"]

_FIRST, _GROWTH = 256, 1.0625  # events at the first snapshot; how many times more at the next
_LARGEST = 2**31  # bytes of a snapshot, unpacked


class Draft(NamedTuple):
    """A snapshot that is yet to be packed, which need not be done while others wait."""

    experiment: str
    number: int
    hash: str
    rows: str

    def snapshot(self) -> Snapshot:
        """The snapshot itself."""
        packed = zlib.compress(self.rows.encode(), 1)
        return Snapshot(self.experiment, self.number, self.hash, packed)


def draft_of(facts: Facts) -> Draft | None:
    """The cases as of now, if the decision that comes next is the first behind a due number."""
    assert facts.head is not None
    if _period(facts.head.number + 1) == _period(facts.last_asked):
        return None
    return Draft(facts.name, *facts.head, "\n".join(facts.rows.values()))


def _period(number: int) -> int:
    return -1 if number < _FIRST else int(log(number / _FIRST) / log(_GROWTH))


def facts_of_snapshot(storage: Storage, name: str) -> Facts | None:
    """What the snapshot of an experiment says, or None where there is none that is right."""
    snapshot = storage.snapshot(name)
    if snapshot is None:
        return None
    around = storage.read(name, after=snapshot.number - 1, upto=snapshot.number + 1)
    if [event.number for event in around] != [snapshot.number, snapshot.number + 1]:
        return None
    last, decision = around
    if last.hash != snapshot.hash or not decision.follows(last) or decision.is_erased:
        return None
    try:
        return _facts(storage, snapshot, last, decision.says["known"])
    except (DowiseError, KeyError, TypeError, ValueError, AttributeError, RecursionError,
            zlib.error):  # fmt: skip
        return None


def _facts(
    storage: Storage, snapshot: Snapshot, last: Event, known: dict[str, Any]
) -> Facts | None:
    facts = Facts(snapshot.experiment)
    for event in storage.read(
        facts.name, upto=snapshot.number, kinds=("created", "revised", "imported")
    ):
        before = storage.read(facts.name, after=event.number - 2, upto=event.number - 1)
        if not event.follows(before[0] if before else None):
            return None
        facts.apply(event)
    text = _unpacked(snapshot.body)
    facts.restore(text.split("\n") if text else [])
    if known["event"] != snapshot.number or known["cases"] != f"{facts.marks:032x}":
        return None
    facts.head, facts.at = last.head, last.at
    facts.maker = {}  # so that the next decision says again what it was made by
    return facts


def _unpacked(body: bytes) -> str:
    tool = zlib.decompressobj()
    text = tool.decompress(body, _LARGEST)
    if not tool.eof:
        raise ValueError("too large, or cut")
    return text.decode()
