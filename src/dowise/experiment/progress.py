"""Going through events so that somebody may watch."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dowise.experiment.event import Event

Track = Callable[[Iterable[Event], int], Iterable[Event]]
"""Hands on events, of which there are so many, and shows how far they are."""


def tracked(events: Iterable[Event], total: int, track: Track | None) -> Iterable[Event]:
    """The events, by way of whoever watches."""
    return events if track is None else track(events, total)
