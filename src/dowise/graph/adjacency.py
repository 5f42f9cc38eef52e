"""The edges of a causal graph without its names: for every variable three bit sets of others.

Algorithms on whole sets of variables work on these numbers, and `CausalGraph.mask` and
`CausalGraph.names` lead from names to bit sets and back.

>>> chain = Adjacency.of(3, directed=[(2, 0), (0, 1)])        # 2 -> 0 -> 1
>>> chain.parents, chain.topological_order()
((4, 1, 0), [2, 0, 1])
>>> chain.restrict(0b011)                                     # 0 -> 1
Adjacency(parents=(0, 1), children=(2, 0), siblings=(0, 0))
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dowise.graph.bits import bits, mask_of

__all__ = ["Adjacency"]


@dataclass(frozen=True, slots=True)
class Adjacency:
    """Parents, children and siblings of each variable; bit i is the i-th variable.

    `children` says the same as `parents`, and `siblings` is symmetric: whoever makes one from masks
    sees to it.
    """

    parents: tuple[int, ...]
    children: tuple[int, ...]
    siblings: tuple[int, ...]

    @classmethod
    def of(
        cls,
        size: int,
        directed: Iterable[tuple[int, int]] = (),
        bidirected: Iterable[tuple[int, int]] = (),
    ) -> Adjacency:
        """From edges between the positions 0 to size - 1."""
        parents, children, siblings = [0] * size, [0] * size, [0] * size
        for cause, effect in directed:
            parents[effect] |= 1 << cause
            children[cause] |= 1 << effect
        for one, other in bidirected:
            siblings[one] |= 1 << other
            siblings[other] |= 1 << one
        return cls(tuple(parents), tuple(children), tuple(siblings))

    def restrict(self, keep: int) -> Adjacency:
        """The edges among the variables of a set, which are numbered anew in the same order."""
        kept = list(bits(keep))
        place = {old: new for new, old in enumerate(kept)}

        def packed(masks: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(mask_of(place[j] for j in bits(masks[i] & keep)) for i in kept)

        return Adjacency(packed(self.parents), packed(self.children), packed(self.siblings))

    def cut(self, targets: int) -> Adjacency:
        """Without the edges into the variables of a set, bidirected ones included."""
        return Adjacency(
            tuple(0 if targets >> i & 1 else mask for i, mask in enumerate(self.parents)),
            tuple(mask & ~targets for mask in self.children),
            tuple(
                0 if targets >> i & 1 else mask & ~targets for i, mask in enumerate(self.siblings)
            ),
        )

    def topological_order(self) -> list[int]:
        """Causes before effects (Kahn), layer by layer; what is on or below a cycle is left out."""
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
        """A directed cycle from one of its variables back to it, or nothing if there is none."""
        left = (1 << len(self.parents)) - 1 & ~mask_of(self.topological_order())
        if not left:
            return []
        # Every variable left over has a parent left over: walking upwards must close a circle.
        walk = [next(bits(left))]
        while True:
            parent = next(bits(self.parents[walk[-1]] & left))
            if parent in walk:
                return [parent, *reversed(walk[walk.index(parent) :])]
            walk.append(parent)
