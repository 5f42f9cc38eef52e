"""The expected reward of each arm as a formula, by the truncated factorisation.

In a world without hidden common causes an intervention replaces the mechanisms of the variables it
sets and leaves all others as they are, so P(v | do(x)) is the product of P(vᵢ | paᵢ) over the
variables not set (section 4). Summing out everything but the reward gives what section 3 prints for
G1. A variable with no way to the reward under the arm sums to 1 and is left out; the context is
held at its value.

>>> from dowise.problem import load_problem
>>> for formula in formulas(load_problem("task1")):
...     print(formula)
P(Y=1 | do()) = Σ_{x,z} P(Y=1 | x, z) P(x | z) P(z)
P(Y=1 | do(X=0)) = Σ_{z} P(Y=1 | X=0, z) P(z)
P(Y=1 | do(X=1)) = Σ_{z} P(Y=1 | X=1, z) P(z)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dowise.problem.intervention import Intervention
from dowise.problem.problem import Problem

__all__ = ["Factor", "Formula", "formulas", "latex_name"]


@dataclass(frozen=True)
class Factor:
    """P(variable | parents)."""

    variable: str
    parents: tuple[str, ...]


@dataclass(frozen=True)
class Formula:
    """The expected reward of one arm: a sum of products of conditional probabilities.

    `good` is the label whose probability is the mean reward, for a reward of two values worth 0
    and 1 (where smaller is better it is the bad one); None otherwise, and then the sum runs over
    the reward as well, weighted by its worth r.
    `obstacle` is a bidirected edge that keeps the factorisation from being valid, or None; with an
    obstacle there are no factors. (The reward may be identifiable all the same, by other means.)
    """

    arm: Intervention
    reward: str
    context: tuple[str, ...]
    summed: tuple[str, ...]
    factors: tuple[Factor, ...]
    good: str | None
    obstacle: tuple[str, str] | None = None

    def __str__(self) -> str:
        if self.obstacle is not None:
            one, other = self.obstacle
            return (
                f"{self._left(_PLAIN)} is no truncated factorisation: "
                f"{one} <-> {other} share a hidden cause"
            )
        return f"{self._left(_PLAIN)} = {self._right(_PLAIN)}"

    def latex(self) -> str:
        """The same for LaTeX, without the dollar signs."""
        if self.obstacle is not None:
            return rf"{self._left(_LATEX)} \quad\text{{(no truncated factorisation)}}"
        return f"{self._left(_LATEX)} = {self._right(_LATEX)}"

    def _left(self, style: _Style) -> str:
        style = self._unambiguous(style)
        known = [style.do(self.arm), *(style.value(name) for name in self.context)]
        if self.good is None:
            return style.mean(f"r({style.name(self.reward)})", ", ".join(known))
        return style.probability(style.equals(self.reward, self.good), ", ".join(known))

    def _right(self, style: _Style) -> str:
        style = self._unambiguous(style)
        terms = [
            style.probability(
                self._event(factor.variable, style),
                ", ".join(self._event(parent, style) for parent in factor.parents),
            )
            for factor in self.factors
        ]
        if self.good is None:
            terms.insert(0, f"r({style.value(self.reward)})")
        return style.sum([style.value(name) for name in self.summed]) + " ".join(terms)

    def _unambiguous(self, style: _Style) -> _Style:
        """Values are written as lower-case names, unless that makes two variables look the same."""
        names = {name for factor in self.factors for name in (factor.variable, *factor.parents)}
        names |= {*self.context, *self.arm}
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
    return tuple(_formula(problem, arm, good) for arm in problem.arms)


def _formula(problem: Problem, arm: Intervention, good: str | None) -> Formula:
    graph, reward = problem.graph, problem.reward
    fixed = {*arm, *problem.context}
    reached = graph.cut(fixed).ancestors(reward) - fixed

    # P(v | pa(v)) is the mechanism of v unless v shares a hidden cause with a variable that its
    # value may depend on; only ancestors matter, everything else can be summed out first.
    relevant = graph.ancestors({*reached, *problem.context})
    for name in sorted(reached):
        for sibling in graph.siblings(name):
            if sibling in relevant:
                edge = (min(name, sibling), max(name, sibling))
                return _without_factorisation(problem, arm, good, edge)

    outward = [name for name in reversed(graph.topological_order()) if name in reached]
    factors = tuple(Factor(name, graph.parents(name)) for name in outward)
    summed = tuple(sorted(reached if good is None else reached - {reward}))
    return Formula(arm, reward, problem.context, summed, factors, good)


def _without_factorisation(
    problem: Problem, arm: Intervention, good: str | None, edge: tuple[str, str]
) -> Formula:
    """Of do() one can always say what it is: the reward as it comes, given the context."""
    if arm:
        return Formula(arm, problem.reward, problem.context, (), (), good, edge)
    seen = Factor(problem.reward, problem.context)
    summed = () if good is not None else (problem.reward,)
    return Formula(arm, problem.reward, problem.context, summed, (seen,), good)


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

    def do(self, arm: Intervention) -> str:
        settings = ", ".join(self.equals(name, label) for name, label in arm.items())
        return f"{self.do_word}({settings})"

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
