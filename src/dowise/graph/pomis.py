"""Possibly optimal minimal intervention sets (POMIS): where to intervene.

A set X of variables is a POMIS for the reward Y if in some world with this graph the best arm on X
beats every arm on every other minimal set. Lee & Bareinboim (NeurIPS 2018) characterise them: cut
the edges into some set W, let T be the minimal UC-territory around Y, and X = Pa(T) minus T, its
border, is a POMIS; every POMIS arises in this way (Lemma 1).

There are 2^n sets W but few territories, so the code enumerates territories. Let T(S) be the
territory of Y in the subgraph G[S]. Since T(S) lies in S, grows with S, and T(T(S)) = T(S), the
territories are the fixed points of an interior operator, and the standard enumeration of closed
sets finds each once without any memory: take variables out one at a time, nearest to Y first, and
drop a branch as soon as it loses a variable that an earlier branch has handled. (This is Lee &
Bareinboim's recursion with its test made on the territory instead of the border, which rules
repeats out.)

>>> from dowise.graph import CausalGraph
>>> graph = CausalGraph.parse("X -> W -> Y; X <-> Y")     # H2 of the paper's Figure 1
>>> sorted(muct(graph, "Y")), sorted(interventional_border(graph, "Y"))
(['W', 'X', 'Y'], [])
>>> [sorted(s) for s in pomis(graph, "Y")]
[[], ['W']]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from dowise.errors import DowiseError
from dowise.graph.adjacency import bits, closure
from dowise.graph.causal_graph import DEFAULT_MAX_SETS, CausalGraph


def muct(graph: CausalGraph, reward: str) -> frozenset[str]:
    """Return MUCT(G, Y), the minimal UC-territory of the reward (Definition 1)."""
    territories = _Territories(graph, reward)
    return territories.names(territories.inside(territories.everything))


def interventional_border(graph: CausalGraph, reward: str) -> frozenset[str]:
    """Return IB(G, Y) = Pa(T) minus T for the minimal UC-territory T (Definition 2)."""
    territories = _Territories(graph, reward)
    return territories.names(territories.border(territories.inside(territories.everything)))


def iter_pomis(graph: CausalGraph, reward: str) -> Iterator[frozenset[str]]:
    """Yield every POMIS once, as it is found, with polynomial delay."""
    territories = _Territories(graph, reward)
    return (territories.names(territories.border(t)) for t in territories)


def pomis(
    graph: CausalGraph, reward: str, max_sets: int | None = DEFAULT_MAX_SETS
) -> tuple[frozenset[str], ...]:
    """Return every POMIS, by size and then by names.

    Raises `DowiseError` if there are more than `max_sets` of them.
    """
    if max_sets is not None and max_sets < 1:
        raise DowiseError(
            f"max_sets={max_sets!r} must be at least 1, or None for no limit", code="invalid-number"
        )
    limit = None if max_sets is None else max_sets + 1
    sets = list(islice(iter_pomis(graph, reward), limit))
    if max_sets is not None and len(sets) > max_sets:
        raise DowiseError(
            f"stopped after {max_sets:,} intervention sets that can be optimal for {reward!r}, "
            "and there are more: declare the variables that you can't or won't set as "
            "non-manipulable, or raise max_sets",
            code="too-large",
        )
    return tuple(sorted(sets, key=set_order))


def set_order(names: frozenset[str]) -> tuple[int, list[str]]:
    """Sort key of the canonical order of intervention sets: by size, then by names."""
    return len(names), sorted(names)


class _Territories:
    """Distinct territories of one reward, as bit sets over An(Y) numbered from Y upwards.

    Bit 0 is Y and a cause has a higher bit than its effects. A set of one variable, `1 << i`, is
    also the key of its neighbours: one dictionary lookup is cheaper than computing i.
    """

    def __init__(self, graph: CausalGraph, reward: str) -> None:
        ancestors = graph.subgraph(graph.ancestors(reward))
        self._order = tuple(reversed(ancestors.topological_order()))
        bit = {name: 1 << i for i, name in enumerate(self._order)}
        self._parents = {
            bit[name]: sum(bit[parent] for parent in ancestors.parents(name))
            for name in self._order
        }
        # A territory that holds a variable holds its children and its siblings.
        self._drawn_in = {
            bit[name]: sum(
                bit[joined] for joined in {*ancestors.children(name), *ancestors.siblings(name)}
            )
            for name in self._order
        }
        self.everything = (1 << len(self._order)) - 1

    def inside(self, allowed: int) -> int:
        """Return T(S): the territory of Y in the subgraph of the allowed variables."""
        return _reach(self._drawn_in, _reach(self._parents, allowed))

    def border(self, territory: int) -> int:
        """Return Pa(T) minus T."""
        border, remaining = 0, territory
        while remaining:
            lowest = remaining & -remaining
            border |= self._parents[lowest]
            remaining ^= lowest
        return border & ~territory

    def names(self, mask: int) -> frozenset[str]:
        return frozenset(self._order[i] for i in bits(mask))

    def __iter__(self) -> Iterator[int]:
        """Yield every territory once (Close-by-One with inherited failures, on removed variables).

        A branch takes out one variable, after having tried and put back those below it; it is
        followed only if the territory keeps all of these. `shrunk[v]` is the parent's territory
        without v. Inside a branch the territory without v is a subset of both, so a variable that
        was lost there is lost here: most dead ends are detected without any computation.
        """
        root = self.inside(self.everything)
        stack: list[tuple[int, int, dict[int, int]]] = [(root, 1, {})]
        while stack:
            territory, removed, inherited = stack.pop()
            yield territory
            shrunk: dict[int, int] = {}
            candidates = territory & ~(2 * removed - 1)
            while candidates:
                v = candidates & -candidates
                candidates ^= v
                settled = territory & (v - 1)
                without = inherited.get(v, territory) & territory & ~v
                if not settled & ~without:
                    without = self.inside(without)
                shrunk[v] = without
                if not settled & ~without:
                    stack.append((without, v, shrunk))


def _reach(neighbours: dict[int, int], allowed: int) -> int:
    """Return the set reachable from Y along `neighbours` inside the allowed variables."""
    reached, frontier = 0, 1
    while frontier:
        lowest = frontier & -frontier
        reached |= lowest
        frontier = (frontier | neighbours[lowest]) & allowed & ~reached
    return reached


def is_minimal(graph: CausalGraph, reward: str, names: str | Iterable[str]) -> bool:
    """Return True if no variable of an intervention set could be left out without any effect.

    A set X is minimal for the reward Y if each of its variables still has a directed path to Y
    once the edges into X are cut: X lies in An(Y) of that graph (Lee & Bareinboim 2018). A variable
    without such a path is blocked by others of X or is not a cause of Y, and setting it changes
    nothing. Every POMIS is minimal, and so is every subset of a minimal set, because a path that
    avoids the whole set avoids the subset.

    >>> from dowise.graph import CausalGraph
    >>> chain = CausalGraph.parse("Z -> X -> Y")
    >>> is_minimal(chain, "Y", "Z"), is_minimal(chain, "Y", "X"), is_minimal(chain, "Y", ["X", "Z"])
    (True, True, False)
    """
    chosen = graph.mask(names)
    parents = [0 if chosen >> i & 1 else mask for i, mask in enumerate(graph.adjacency.parents)]
    return not chosen & ~closure(graph.mask(reward), parents)
