"""What every store of ours refuses, in the same words."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dowise.errors import DowiseError
from dowise.experiment.event import Event
from dowise.experiment.storage.contract import Snapshot

__all__ = [
    "HOW_TO_MAKE", "PATIENCE", "TOKENS", "WITHOUT_WAL", "check_alone", "check_next", "check_there",
    "is_worth_keeping", "known_already", "named",
]  # fmt: skip

PATIENCE = 60.0  # seconds: the minute of the contract
HOW_TO_MAKE = "dowise new STORE PROBLEM, or Experiment.create in Python"
WITHOUT_WAL = "was it copied without its -wal file, which has the newest events?"
"""What a store that lacks its last events may be: SQLite keeps them beside it."""


TOKENS = ""
"""Stands for the list of tokens where the name of an experiment is asked for, to write alone."""


def named(experiment: str) -> str:
    """What is written, in a message."""
    return "the list of tokens" if experiment == TOKENS else repr(experiment)


def known_already(hash_: str) -> DowiseError:
    """Of two secrets with the same hash one could not tell whose is meant."""
    return DowiseError(f"a token with the hash {hash_:.8}… is there already: make another secret")


def check_alone(experiment: str, holds: bool) -> None:
    """Refuse a second writing block inside of a first one."""
    if holds:
        raise DowiseError(
            f"{named(experiment)} can't be written: this thread holds an experiment of this store "
            "already, and would wait for itself; end that writing block first"
        )


def check_next(experiment: str, last: int, events: Sequence[Event]) -> None:
    """Refuse events of another experiment, or with numbers that are not the next ones."""
    for number, event in enumerate(events, start=last + 1):
        if event.experiment != experiment:
            raise DowiseError(
                f"an event of {event.experiment!r} can't be appended to {experiment!r}"
            )
        if event.number != number:
            raise DowiseError(
                f"event {event.number} can't be appended to {experiment!r}: the next one is "
                f"{number}"
            )


def check_there(experiment: str, numbers: Collection[int], there: Collection[int]) -> None:
    """Refuse to erase what there is not."""
    missing = sorted(set(numbers) - set(there))
    if missing:
        raise DowiseError(f"{experiment!r} has no event {missing[0]}: nothing was erased")


def is_worth_keeping(
    snapshot: Snapshot, journal_from_there: Sequence[Event], there: Snapshot | None
) -> bool:
    """Whether it belongs to the journal, is not older than what is kept, and holds nothing erased.

    Who folded before an erasure must not bring back what it took away.
    """
    if not journal_from_there or snapshot.number != journal_from_there[0].number:
        return False
    if snapshot.hash != journal_from_there[0].hash:
        return False
    if any(event.kind == "erased" for event in journal_from_there[1:]):
        return False
    if there is None or there.number <= snapshot.number:
        return True
    known = {event.number: event.hash for event in journal_from_there}
    return known.get(there.number) != there.hash
