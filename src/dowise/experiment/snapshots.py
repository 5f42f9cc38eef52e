"""Snapshots of the state of an experiment.

A snapshot holds the cases at some event, so that not all events need to be read again. It is
verified against the digest of the cases that the decision after it recorded. The digest does not
cover the events that told the values (`Case.told_at`), which follow the cases. Snapshots of earlier
versions lack them and are not used.
"""

from __future__ import annotations

import json
import zlib
from math import log
from typing import NamedTuple

from dowise.errors import DowiseError
from dowise.experiment.event import as_text
from dowise.experiment.state import ExperimentState
from dowise.experiment.storage.base import Snapshot, Storage

FIRST_SNAPSHOT = 256  # events
SNAPSHOT_GROWTH = 1.0625  # number of events at the next snapshot, relative to the last one
MAX_SNAPSHOT_BYTES = 2**31  # uncompressed


class SnapshotDraft(NamedTuple):
    """Snapshot to be compressed after the transaction, when no other writer waits."""

    experiment: str
    number: int
    hash: str
    rows: str
    told_at: list[dict[str, int]]

    @classmethod
    def from_state(cls, state: ExperimentState) -> SnapshotDraft:
        """Return the cases of a state."""
        assert state.head is not None
        rows = state.snapshot_rows()
        told_at = [state.cases[number].told_at for number in rows]
        return cls(state.name, *state.head, "\n".join(rows.values()), told_at)

    def compress(self) -> Snapshot:
        """Return the snapshot to be stored."""
        body = zlib.compress(f"{self.rows}\n\n{as_text(self.told_at)}".encode(), 1)
        return Snapshot(self.experiment, self.number, self.hash, body)


def is_snapshot_due(number: int, last_asked: int) -> bool:
    """Return True if a decision is the first one since the next snapshot became due.

    `number` is that of its event, `last_asked` that of the decision before it.
    """
    position, last_position = (
        -1 if event < FIRST_SNAPSHOT else int(log(event / FIRST_SNAPSHOT) / log(SNAPSHOT_GROWTH))
        for event in (number, last_asked)
    )
    return position != last_position


def restore_state(storage: Storage, name: str) -> ExperimentState | None:
    """Return the state in the newest snapshot; None if there is none that can be verified."""
    snapshot = storage.snapshot(name)
    if snapshot is None:
        return None
    events = storage.read(name, after=snapshot.number - 1, upto=snapshot.number + 1)
    if [event.number for event in events] != [snapshot.number, snapshot.number + 1]:
        return None
    last, decision = events
    if last.hash != snapshot.hash or not decision.follows(last) or decision.is_erased:
        return None
    try:
        state = _unpack_snapshot(storage, snapshot)
        recorded = decision.payload["known"]
        if (recorded["event"], recorded["cases"]) != (snapshot.number, state.digest()):
            return None
    except _DAMAGE:
        return None
    state.head, state.at = last.head, last.at
    state.build_info = {}  # so that the next decision records it again
    return state


_DAMAGE = (DowiseError, KeyError, TypeError, ValueError, AttributeError, RecursionError, zlib.error)


def _unpack_snapshot(storage: Storage, snapshot: Snapshot) -> ExperimentState:
    """Return the state in a snapshot; its configurations and imports are those of the journal."""
    state = ExperimentState(snapshot.experiment)
    for event in storage.read(
        state.name, upto=snapshot.number, kinds=("created", "revised", "imported")
    ):
        previous = storage.read(state.name, after=event.number - 2, upto=event.number - 1)
        if not event.follows(previous[0] if previous else None):
            raise ValueError(f"event {event.number} does not follow from the one before it")
        state.apply(event)
    decompressor = zlib.decompressobj()
    text = decompressor.decompress(snapshot.body, MAX_SNAPSHOT_BYTES)
    if not decompressor.eof:
        raise ValueError("the snapshot is too large or incomplete")
    rows, separator, told_at = text.decode().partition("\n\n")
    if not separator:
        raise ValueError("the snapshot is of an earlier version")
    state.restore(rows.split("\n") if rows else [], json.loads(told_at))
    for case in state.cases.values():
        if case.told_at.keys() != {
            name for name, label in case.values.items() if label is not None
        }:
            raise ValueError("other values were told")
        if any(not case.event < event <= snapshot.number for event in case.told_at.values()):
            raise ValueError("a value was told by an event that can't have told it")
    return state
