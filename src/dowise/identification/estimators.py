"""All distinct ways to estimate an arm's reward from the experiments that the arms are.

The direct one, P_x(y), is read off the arm's own data. Every set of other experiments that
identifies P_x(y) gives one more formula: z²ID of Lee & Bareinboim (2019). A formula that comes out
of a set of experiments also comes out of just those that it uses, so small sets are tried first.

>>> from dowise.problem import load_problem
>>> for estimator in estimators(load_problem("task1"))[frozenset("X")]:
...     print(estimator)
P_{X=x}(Y=y)
Σ_{z} P(Y=y | X=x, Z=z) P(Z=z)
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, islice
from types import MappingProxyType

from dowise.graph import CausalGraph
from dowise.identification.formula import Expression, Term, as_latex, as_text
from dowise.identification.identify import Identifier
from dowise.problem import Problem
from dowise.problem.formulas import Notation, notation_of

__all__ = ["Estimator", "estimators", "iter_estimators"]

Names = frozenset[str]

MAX_SUBSETS = 256  # sets of experiments that are tried for one intervention set
_log = logging.getLogger("dowise")


@dataclass(frozen=True)
class Estimator:
    """A formula for P_settings(reward).

    `str` writes it for people. A value that is neither the arm's nor summed over is free: the
    formula holds whatever it is.
    """

    reward: str
    settings: Names
    formula: Expression
    notation: Notation = field(repr=False)

    @property
    def is_direct(self) -> bool:
        """Whether it reads the arm's own data."""
        return self.formula == Term(self.settings, frozenset({self.reward}))

    @property
    def any_value(self) -> tuple[str, ...]:
        """The variables whose value is free, by name: each value gives an estimator."""
        return tuple(sorted(self.formula.free - self.settings - {self.reward}))

    @property
    def experiments(self) -> frozenset[Names]:
        """The intervention sets whose data it uses."""
        return frozenset(term.experiment for term in self.formula.terms())

    def __str__(self) -> str:
        free = ", ".join(map(self.notation.text.value, self.any_value))
        return as_text(self.formula, self.notation) + (f"  (any {free})" if free else "")

    def latex(self) -> str:
        """The same for LaTeX, without the dollar signs."""
        free = ", ".join(map(self.notation.latex.value, self.any_value))
        written = as_latex(self.formula, self.notation)
        return written + (rf" \quad(\text{{any }} {free})" if free else "")


def estimators(problem: Problem) -> Mapping[Names, tuple[Estimator, ...]]:
    """For each intervention set its estimators, the direct one first."""
    return _estimators(*_asked(problem))


def iter_estimators(problem: Problem) -> Iterator[tuple[Estimator, ...]]:
    """The same, one set after the other: on large problems all of them may take minutes."""
    return _found(*_asked(problem))


def _asked(problem: Problem) -> tuple[CausalGraph, str, tuple[Names, ...], Notation]:
    graph = problem.graph.condition(problem.context)
    return graph, problem.reward, problem.intervention_sets, notation_of(problem)


@lru_cache(maxsize=64)
def _estimators(
    graph: CausalGraph, reward: str, sets: tuple[Names, ...], notation: Notation
) -> Mapping[Names, tuple[Estimator, ...]]:
    return MappingProxyType(dict(zip(sets, _found(graph, reward, sets, notation), strict=True)))


def _found(
    graph: CausalGraph, reward: str, sets: tuple[Names, ...], notation: Notation
) -> Iterator[tuple[Estimator, ...]]:
    identifier = Identifier(graph)
    for settings in sets:
        formulas = _formulas(identifier, reward, settings, sets)
        yield tuple(Estimator(reward, settings, formula, notation) for formula in formulas)


def _formulas(
    identifier: Identifier, reward: str, settings: Names, sets: tuple[Names, ...]
) -> list[Expression]:
    others = [names for names in sets if names != settings]
    found: dict[Expression, None] = {Term(settings, frozenset({reward})): None}
    groups = (group for size in range(1, len(others) + 1) for group in combinations(others, size))
    for group in islice(groups, MAX_SUBSETS):
        formula = identifier.effect(frozenset({reward}), settings, group)
        if formula is not None:
            found.setdefault(formula)
    if 2 ** len(others) - 1 > MAX_SUBSETS:
        _log.info(
            "estimators of %s: tried the %d smallest of %d sets of experiments",
            sorted(settings), MAX_SUBSETS, 2 ** len(others) - 1,
        )  # fmt: skip
    return list(found)
