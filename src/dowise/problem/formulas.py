"""The expected reward of each arm as a formula: a sum of products of conditional probabilities.

An intervention replaces the mechanisms of the variables that it sets and leaves all others as they
are. So in a world without hidden common causes P(v | do(x)) is the product of P(vᵢ | paᵢ) over the
variables not set (the truncated factorisation, section 4). Summing out everything but the reward
gives what section 3 prints for G1. A variable with no way to the reward under the arm sums to 1 and
is left out; the context is held at its value.

>>> from dowise.problem import load_problem
>>> for formula in formulas(load_problem("task1")):
...     print(formula)
P(Y=1 | do()) = Σ_{x,z} P(Y=1 | x, z) P(x | z) P(z)
P(Y=1 | do(X=0)) = Σ_{z} P(Y=1 | X=0, z) P(z)
P(Y=1 | do(X=1)) = Σ_{z} P(Y=1 | X=1, z) P(z)

With hidden common causes the factors are those of `dowise.problem.order`, one for each variable and
its component T: P(v | T, do(the parents of T)). An arm that leaves v the component that it has
where nothing is set shares its factor with do(), and then all of the condition may as well be just
seen: it is written without do(). (Without hidden causes that is always so.)

>>> from dowise.graph import CausalGraph
>>> front_door = Problem(CausalGraph.parse("X -> Z -> Y; X <-> Y"), "Y", arms="all")
>>> for formula in formulas(front_door)[::2][:3]:
...     print(formula)
P(Y=1 | do()) = Σ_{x,z} P(Y=1 | x, z) P(z | x) P(x)
P(Y=1 | do(X=1)) = Σ_{z} P(Y=1 | do(z)) P(z | X=1)
P(Y=1 | do(Z=1)) = Σ_{x} P(Y=1 | x, Z=1) P(x)

Where edges are doubtful these are the formulas of the graph with all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from dowise.graph.bits import bits
from dowise.problem.intervention import Intervention
from dowise.problem.order import Order
from dowise.problem.problem import Problem

__all__ = ["Factor", "Formula", "formulas", "latex_name"]


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
    the reward as well, weighted by its worth r.
    """

    arm: Intervention
    reward: str
    context: tuple[str, ...]
    summed: tuple[str, ...]
    factors: tuple[Factor, ...]
    good: str | None

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
        if self.is_itself:
            return f"{self._left(_PLAIN)} is a factor of its own: seeing alone does not tell it"
        return f"{self._left(_PLAIN)} = {self._right(_PLAIN)}"

    def latex(self) -> str:
        """The same for LaTeX, without the dollar signs."""
        if self.is_itself:
            return rf"{self._left(_LATEX)} \quad\text{{(a factor of its own)}}"
        return f"{self._left(_LATEX)} = {self._right(_LATEX)}"

    def _left(self, style: _Style) -> str:
        style = self._unambiguous(style)
        arm = style.do(self._event(name, style) for name in self.arm)
        known = [arm, *(style.value(name) for name in self.context)]
        if self.good is None:
            return style.mean(f"r({style.name(self.reward)})", ", ".join(known))
        return style.probability(style.equals(self.reward, self.good), ", ".join(known))

    def _right(self, style: _Style) -> str:
        style = self._unambiguous(style)
        terms = [self._term(factor, style) for factor in self.factors]
        if self.good is None:
            terms.insert(0, f"r({style.value(self.reward)})")
        return style.sum([style.value(name) for name in self.summed]) + " ".join(terms)

    def _term(self, factor: Factor, style: _Style) -> str:
        given = [self._event(name, style) for name in factor.seen]
        if factor.done:
            given.insert(0, style.do(self._event(name, style) for name in factor.done))
        return style.probability(self._event(factor.variable, style), ", ".join(given))

    def _unambiguous(self, style: _Style) -> _Style:
        """Values are written as lower-case names, unless that makes two variables look the same."""
        names = {*self.context, *self.arm}
        for factor in self.factors:
            names |= {factor.variable, *factor.seen, *factor.done}
        for value in (style.value, style.name):
            if len({value(name) for name in names}) == len(names):
                return replace(style, value=value)
        return replace(style, name=style.label, value=style.label)

    def _event(self, name: str, style: _Style) -> str:
        if name in self.arm:
            return style.equals(name, self.arm[name])
        if name == self.reward and self.good is not None:
            return style.equals(name, self.good)
        return style.value(name)


def formulas(problem: Problem) -> tuple[Formula, ...]:
    """One formula for each arm, in the order of the arms."""
    worth = problem.reward_values
    zero_one = sorted(worth.values()) == [0.0, 1.0]
    good = next(label for label in worth if worth[label] == 1.0) if zero_one else None
    order = Order(problem)
    return tuple(_formula(problem, order, arm, good) for arm in problem.arms)


def _formula(problem: Problem, order: Order, arm: Intervention, good: str | None) -> Formula:
    reward, names = problem.reward, order.graph.variables
    cut = order.graph.mask(arm)
    found = {v: _factor(order, v, cut) for v in _needed(order, problem.reward_position, cut)}
    hides = any(order.edges.siblings)
    causes_first = order.variables if hides else order.graph.adjacency.topological_order()
    factors = tuple(found[v] for v in reversed(causes_first) if v in found)
    summed = tuple(names[v] for v in sorted(found) if good is None or names[v] != reward)
    return Formula(arm, reward, problem.context, summed, factors, good)


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


@dataclass(frozen=True)
class _Style:
    """How the parts of a formula are written."""

    name: Callable[[str], str]
    value: Callable[[str], str]
    label: Callable[[str], str]
    bar: str
    expectation: str
    brackets: tuple[str, str]
    do_word: str
    sum_sign: str

    def equals(self, name: str, label: str) -> str:
        return f"{self.name(name)}={self.label(label)}"

    def do(self, settings: Iterable[str]) -> str:
        return f"{self.do_word}({', '.join(settings)})"

    def probability(self, event: str, given: str) -> str:
        return f"P({event}{self.bar}{given})" if given else f"P({event})"

    def mean(self, what: str, given: str) -> str:
        left, right = self.brackets
        return f"{self.expectation}{left}{what}{self.bar}{given}{right}"

    def sum(self, names: Sequence[str]) -> str:
        return f"{self.sum_sign}_{{{','.join(names)}}} " if names else ""


def latex_name(name: str) -> str:
    """A letter with its number as an index, or else the name in upright type."""
    match = re.fullmatch(r"([A-Za-z])_?(\d*)", name)
    if match:
        letter, digits = match.groups()
        return f"{letter}_{{{digits}}}" if digits else letter
    return rf"\mathrm{{{_latex_text(name)}}}"


def _latex_text(text: str) -> str:
    return re.sub(r"([\\{}_%&#$^~])", _escape, text).replace(" ", r"\ ")


def _escape(match: re.Match[str]) -> str:
    words = {"\\": r"\backslash{}", "^": r"\hat{}", "~": r"\sim{}"}
    return words.get(match[1], "\\" + match[1])


def _latex_label(label: str) -> str:
    return label if re.fullmatch(r"-?[\d.]+", label) else rf"\mathrm{{{_latex_text(label)}}}"


_PLAIN = _Style(
    name=str, value=str.lower, label=str, bar=" | ", expectation="E", brackets=("[", "]"),
    do_word="do", sum_sign="Σ",
)  # fmt: skip
_LATEX = _Style(
    name=latex_name,
    value=lambda name: latex_name(name.lower()),
    label=_latex_label,
    bar=r" \mid ",
    expectation=r"\mathbb{E}",
    brackets=("[", "]"),
    do_word=r"\mathrm{do}",
    sum_sign=r"\sum",
)
