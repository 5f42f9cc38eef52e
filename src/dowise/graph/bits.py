"""Sets of small integers as the bits of one Python int: the graph algorithms' workhorse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

__all__ = ["bits", "closure", "mask_of"]


def bits(mask: int) -> Iterator[int]:
    """The positions of the bits that are set, lowest first.

    >>> list(bits(0b10110))
    [1, 2, 4]
    """
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def mask_of(positions: Iterable[int]) -> int:
    """The set of these positions."""
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask


def closure(start: int, neighbours: Sequence[int], within: int = -1) -> int:
    """What `start` reaches along `neighbours` without leaving `within`, itself included."""
    reached = 0
    frontier = start & within
    while frontier:
        lowest = frontier & -frontier
        reached |= lowest
        frontier = (frontier | neighbours[lowest.bit_length() - 1]) & within & ~reached
    return reached
