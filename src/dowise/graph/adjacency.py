"""Edges of a causal graph as bit sets: parents, children and siblings of each variable.

Sets of variables are Python ints: bit i is the i-th variable. `CausalGraph.mask` and
`CausalGraph.names` convert between names and bit sets.

>>> chain = Adjacency.from_edges(3, directed=[(2, 0), (0, 1)])   # 2 -> 0 -> 1
>>> chain.parents, chain.topological_order()
((4, 1, 0), [2, 0, 1])
>>> chain.restrict(0b011)                                        # 0 -> 1
Adjacency(parents=(0, 1), children=(2, 0), siblings=(0, 0))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the set bits, lowest first.

    >>> list(bits(0b10110))
    [1, 2, 4]
    """
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def mask_of(positions: Iterable[int]) -> int:
    """Return the bit set of these positions. Inverse of `bits`."""
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask


def closure(start: int, neighbours: Sequence[int], within: int = -1) -> int:
    """Return the set reachable from `start` along `neighbours` inside `within`, with `start`."""
    reached = 0
    frontier = start & within
    while frontier:
        lowest = frontier & -frontier
        reached |= lowest
        frontier = (frontier | neighbours[lowest.bit_length() - 1]) & within & ~reached
    return reached


@dataclass(frozen=True, slots=True)
class Adjacency:
    """Parents, children and siblings of each variable; bit i is the i-th variable.

    The constructor does not check that `children` mirrors `parents` and that `siblings` is
    symmetric; `from_edges` guarantees both.
    """

    parents: tuple[int, ...]
    children: tuple[int, ...]
    siblings: tuple[int, ...]

    @classmethod
    def from_edges(
        cls,
        size: int,
        directed: Iterable[tuple[int, int]] = (),
        bidirected: Iterable[tuple[int, int]] = (),
    ) -> Adjacency:
        """Build from edges between the indices 0 to size - 1."""
        parents, children, siblings = [0] * size, [0] * size, [0] * size
        for cause, effect in directed:
            parents[effect] |= 1 << cause
            children[cause] |= 1 << effect
        for left, right in bidirected:
            siblings[left] |= 1 << right
            siblings[right] |= 1 << left
        return cls(tuple(parents), tuple(children), tuple(siblings))

    def restrict(self, keep: int) -> Adjacency:
        """Return the edges among the variables in `keep`, renumbered in the same order."""
        indices = list(bits(keep))
        renumbered = {old: new for new, old in enumerate(indices)}

        def pack(masks: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(mask_of(renumbered[j] for j in bits(masks[i] & keep)) for i in indices)

        return Adjacency(pack(self.parents), pack(self.children), pack(self.siblings))

    def cut(self, targets: int) -> Adjacency:
        """Return the edges without those into `targets`, bidirected ones included."""
        return Adjacency(
            tuple(0 if targets >> i & 1 else mask for i, mask in enumerate(self.parents)),
            tuple(mask & ~targets for mask in self.children),
            tuple(
                0 if targets >> i & 1 else mask & ~targets for i, mask in enumerate(self.siblings)
            ),
        )

    def topological_order(self) -> list[int]:
        """Return causes before effects (Kahn). Variables on or below a cycle are left out."""
        open_parents = [mask.bit_count() for mask in self.parents]
        ready = [i for i, count in enumerate(open_parents) if not count]
        order: list[int] = []
        while ready:
            order += ready
            freed = []
            for i in ready:
                for child in bits(self.children[i]):
                    open_parents[child] -= 1
                    if not open_parents[child]:
                        freed.append(child)
            ready = sorted(freed)
        return order

    def cycle(self) -> list[int]:
        """Return a directed cycle from one of its variables back to it; empty if there is none."""
        remaining = (1 << len(self.parents)) - 1 & ~mask_of(self.topological_order())
        if not remaining:
            return []
        # Every remaining variable has a remaining parent, so walking upwards must close a cycle.
        walk = [next(bits(remaining))]
        while True:
            parent = next(bits(self.parents[walk[-1]] & remaining))
            if parent in walk:
                return [parent, *reversed(walk[walk.index(parent) :])]
            walk.append(parent)
