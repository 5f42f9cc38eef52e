"""The expected reward of each arm as a formula: a sum of products of conditional probabilities.

An intervention replaces the mechanisms of the variables that it sets and leaves all others as they
are. So in a world without hidden common causes P(v | do(x)) is the product of P(vᵢ | paᵢ) over the
variables not set (the truncated factorisation, section 4). Summing out everything but the reward
gives what section 3 prints for G1. A variable with no way to the reward under the arm sums to 1 and
is left out; the context is held at its value. How values are written is said in
`dowise.problem.notation`.

>>> from dowise.problem import load_problem
>>> for formula in formulas(load_problem("task1")):
...     print(formula)
P(Y=1 | do()) = Σ_{x,z} P(Y=1 | X=x, Z=z) P(X=x | Z=z) P(Z=z)
P(Y=1 | do(X=0)) = Σ_{z} P(Y=1 | X=0, Z=z) P(Z=z)
P(Y=1 | do(X=1)) = Σ_{z} P(Y=1 | X=1, Z=z) P(Z=z)

With hidden common causes the factors are those of `dowise.problem.order`, one for each variable and
its component T: P(v | T, do(the parents of T)). An arm that leaves v the component that it has
where nothing is set shares its factor with do(), and then all of the condition may as well be just
seen: it is written without do(). (Without hidden causes that is always so.)

>>> from dowise.graph import CausalGraph
>>> front_door = Problem(CausalGraph.parse("X -> Z -> Y; X <-> Y"), "Y", arms="all")
>>> for formula in formulas(front_door)[::2][:3]:
...     print(formula)
P(Y=1 | do()) = Σ_{x,z} P(Y=1 | X=x, Z=z) P(Z=z | X=x) P(X=x)
P(Y=1 | do(X=1)) = Σ_{z} P(Y=1 | do(Z=z)) P(Z=z | X=1)
P(Y=1 | do(Z=1)) = Σ_{x} P(Y=1 | X=x, Z=1) P(X=x)

Where edges are doubtful these are the formulas of the graph with all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from dowise.graph.bits import bits
from dowise.problem.intervention import Intervention
from dowise.problem.notation import Notation, Writer, notation_of
from dowise.problem.order import Order
from dowise.problem.problem import Problem

__all__ = ["Factor", "Formula", "formulas", "iter_formulas"]


@dataclass(frozen=True)
class Factor:
    """P(variable | do(done), seen)."""

    variable: str
    seen: tuple[str, ...]
    done: tuple[str, ...] = ()


@dataclass(frozen=True)
class Formula:
    """The expected reward of one arm: a sum of products of conditional probabilities.

    `good` is the label whose probability is the mean reward, for a reward of two values worth 0
    and 1 (where smaller is better it is the bad one); None otherwise, and then the sum runs over
    the reward as well, weighted by its worth.
    """

    arm: Intervention
    reward: str
    context: tuple[str, ...]
    summed: tuple[str, ...]
    factors: tuple[Factor, ...]
    good: str | None
    notation: Notation = field(repr=False)

    @property
    def is_seen(self) -> bool:
        """Whether no factor has a do(), so that what is seen where nothing is set tells it all."""
        return not any(factor.done for factor in self.factors)

    @property
    def is_itself(self) -> bool:
        """Whether the only factor is the reward under this very arm, so that nothing is said."""
        own = Factor(self.reward, self.context, tuple(self.arm))
        return self.good is not None and bool(self.arm) and self.factors == (own,)

    def __str__(self) -> str:
        text = self.notation.text
        if self.is_itself:
            return f"{self._left(text)} is a factor of its own: seeing alone does not tell it"
        return f"{self._left(text)} = {self._right(text)}"

    def latex(self) -> str:
        """The same for LaTeX, without the dollar signs."""
        latex = self.notation.latex
        if self.is_itself:
            return rf"{self._left(latex)} \quad\text{{(a factor of its own)}}"
        return f"{self._left(latex)} = {self._right(latex)}"

    def _left(self, write: Writer) -> str:
        arm = write.do(self._event(name, write) for name in self.arm)
        known = [arm, *map(write.event, self.context)]
        if self.good is None:
            return write.mean(write.worth(write.name(self.reward)), known)
        return write.probability([write.event(self.reward, self.good)], known)

    def _right(self, write: Writer) -> str:
        terms = [self._term(factor, write) for factor in self.factors]
        if self.good is None:
            terms.insert(0, write.worth(write.value(self.reward)))
        return write.sum(map(write.value, self.summed)) + " ".join(terms)

    def _term(self, factor: Factor, write: Writer) -> str:
        given = [self._event(name, write) for name in factor.seen]
        if factor.done:
            given.insert(0, write.do(self._event(name, write) for name in factor.done))
        return write.probability([self._event(factor.variable, write)], given)

    def _event(self, name: str, write: Writer) -> str:
        return write.event(name, self.good if name == self.reward else self.arm.get(name))


def formulas(problem: Problem) -> tuple[Formula, ...]:
    """One formula for each arm, in the order of the arms."""
    return tuple(iter_formulas(problem))


def iter_formulas(
    problem: Problem, arms: Iterable[Intervention] | None = None
) -> Iterator[Formula]:
    """The same, one after the other, or of these arms only."""
    worth, reward = problem.reward_values, problem.reward
    zero_one = sorted(worth.values()) == [0.0, 1.0]
    good = next(label for label in worth if worth[label] == 1.0) if zero_one else None
    order, notation = Order(problem), notation_of(problem)
    for arm in problem.arms if arms is None else arms:
        left_open, factors = _factors(problem, order, arm)
        summed = tuple(name for name in left_open if good is None or name != reward)
        yield Formula(arm, reward, problem.context, summed, factors, good, notation)


def _factors(
    problem: Problem, order: Order, arm: Intervention
) -> tuple[tuple[str, ...], tuple[Factor, ...]]:
    """The variables that the arm leaves open, and their factors."""
    names, cut = order.graph.variables, order.graph.mask(arm)
    found = {v: _factor(order, v, cut) for v in _needed(order, problem.reward_position, cut)}
    hides = any(order.edges.siblings)
    causes_first = order.variables if hides else order.graph.adjacency.topological_order()
    factors = tuple(found[v] for v in reversed(causes_first) if v in found)
    return tuple(names[v] for v in sorted(found)), factors


def _needed(order: Order, reward: int, cut: int) -> Iterable[int]:
    """The variables whose factors the reward needs where those of `cut` are set."""
    needed = new = 1 << reward
    while new:
        scopes = reduce(or_, (order.scope(order.key(v, cut)) for v in bits(new)))
        new = scopes & ~(needed | cut | order.context)
        needed |= new
    return bits(needed)


def _factor(order: Order, v: int, cut: int) -> Factor:
    """Of v where the variables of `cut` are set.

    What of the context is outside T shares no hidden cause with it, so that seeing it is as good as
    setting it.
    """
    key = order.key(v, cut)
    scope, names = order.scope(key), order.graph.names
    done = 0 if key == order.key(v, 0) else scope & ~key[1] & ~order.context
    return Factor(order.graph.variables[v], names(scope & ~done), names(done))
