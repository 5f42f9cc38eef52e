"""Arrows against the order of a soft graph, which no soft edge can stand for.

Along `problem.order` every absent arrow is soft. If an arrow u -> v runs against it, its effect in
records that leave u alone is captured: v comes first, and the soft v -> u and u <-> v describe how
the two go together. What no set of soft edges can express is that *setting* u changes v. In every
world on the graph `problem.possible`, the value of v depends on its row of the full graph alone,

    P(v = k | arm, row of v, all earlier records) = p_row(k),

whatever u was set to. So the stratum of a record is the row of v, and its cell is the value to
which u was set, or "not set". An arrow that fits the order, or that could be added to the graph
without a cycle, is a missing edge like others (`dowise.model.missing_edges`).
"""

from __future__ import annotations

from typing import NamedTuple

from dowise.graph.adjacency import bits, closure
from dowise.graph.edges import EdgeName
from dowise.graph.transforms import FactorKey, FactorOrder
from dowise.problem import Problem


class ReversedArrow(NamedTuple):
    """Arrow from a settable variable to one that comes before it."""

    edge: EdgeName
    cause: int
    """Index of the settable variable, whose set value is the cell."""
    effect: int
    """Index of the earlier variable, whose value is the outcome."""

    def stratum(self, order: FactorOrder, cut: int) -> tuple[FactorKey, tuple[int, ...]]:
        """Return the key of the effect's factor if `cut` is set, and the axes of its rows.

        Strata with different keys are different, even for equal values of the axes.
        """
        key = order.key(self.effect, cut)
        return key, tuple(bits(order.scope(key)))


def reversed_arrows(problem: Problem) -> tuple[ReversedArrow, ...]:
    """Return the arrows against the order that the graph can't have and that data can judge.

    An arrow leads from a variable that arms set to one before it in the order, without a drawn path
    from the latter to the former. The context comes by enrolment, and what no reward needs is not
    judged.
    """
    possible, drawn = problem.possible.adjacency, problem.graph.adjacency
    positions, names = problem.positions, problem.possible.variables
    context = problem.possible.mask(problem.context)
    useful = closure(context | 1 << problem.reward_position, possible.parents)
    arrows = []
    for place, name in enumerate(problem.order):
        if name not in problem.settable:
            continue
        u = positions[name]
        before = problem.possible.mask(problem.order[:place])
        impossible = closure(1 << u, possible.parents) & ~closure(1 << u, drawn.parents)
        arrows += [
            ReversedArrow(EdgeName.from_ends(name, "->", names[v]), u, v)
            for v in bits(before & useful & ~context & impossible)
        ]
    return tuple(arrows)
