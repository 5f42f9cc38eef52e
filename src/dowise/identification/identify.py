"""General identification: the effect of an intervention from a set of experiments.

gID (Lee, Correa & Bareinboim 2019), with Tian's (2002) identification of a factor from the
distribution of one experiment. The graph may have bidirected edges.

A factor Q[S] = P_{V∖S}(S) is the distribution of a set S of variables when all others are set.
P_x(y) is a sum over the product of the factors of the c-components of G∖X, each of which is itself
an effect. From an experiment on Z, the factors of the c-components of G∖Z are products of
conditionals of P_Z.

>>> from dowise.identification.formula import as_text
>>> front_door = CausalGraph.parse("X -> Z -> Y; X <-> Y")
>>> print(as_text(identify(front_door, "Y", {"X"}, [frozenset()])))
Σ_{z} P(Z=z | X=x) Σ_{x'} P(X=x') P(Y=y | X=x', Z=z)
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, islice
from types import MappingProxyType
from typing import Any, NamedTuple

from dowise.graph import CausalGraph
from dowise.identification.formula import (
    Expression,
    Term,
    as_latex,
    as_text,
    product,
    quotient,
    total,
)
from dowise.problem import Problem
from dowise.problem.formulas import Notation, formulas, notation_of

Names = frozenset[str]
MAX_SUBSETS = 256  # sets of experiments to try for one intervention set
_log = logging.getLogger("dowise")


def identify(
    graph: CausalGraph, reward: str, settings: Iterable[str], experiments: Iterable[Names]
) -> Expression | None:
    """Identify P_settings(reward) from experiments.

    Parameters
    ----------
    graph : CausalGraph
        Graph with directed and bidirected edges.
    reward : str
        Variable whose distribution is identified.
    settings : iterable of str
        Variables that are set.
    experiments : iterable of frozenset of str
        Intervention sets with data, the empty set for observations. They are tried in this order;
        the first that identifies a factor is used.

    Returns
    -------
    Expression or None
        A formula in terms of the experiments, or None if they do not identify the effect. A
        variable that stays free, other than the reward and the settings, may have any value.

    Examples
    --------
    >>> from dowise.identification.formula import as_text
    >>> print(as_text(identify(CausalGraph.parse("X -> Y"), "Y", {"X"}, [frozenset()])))
    P(Y=y | X=x)
    """
    return Identifier(graph).effect(frozenset({reward}), frozenset(settings), tuple(experiments))


class _Task(NamedTuple):
    """P_fixed(target), reduced to the ancestors of the target; idle variables are fixed as well."""

    graph: CausalGraph
    everything: Names
    fixed: Names
    idle: Names
    components: tuple[Names, ...]
    """C-components of the variables that are not fixed."""


class Identifier:
    """Identification in one graph; results that do not depend on the experiments are cached."""

    def __init__(self, graph: CausalGraph) -> None:
        self.graph = graph
        self._tasks: dict[tuple[Names, Names], _Task] = {}
        self._factors: dict[tuple[Names, Names, Names], Expression | None] = {}

    def effect(
        self, target: Names, settings: Names, experiments: tuple[Names, ...]
    ) -> Expression | None:
        """Return P_settings(target); see `identify`."""
        task = self._task(target, settings)
        for fixed in (task.fixed - task.idle, task.fixed):
            for experiment in experiments:
                if experiment & task.everything == fixed:
                    return Term(experiment, target)
        if len(task.components) == 1:
            factor = self._from_first(task, experiments)
            return None if factor is None else total(task.components[0] - target, factor)
        factors = []
        for component in task.components:
            factor = self.effect(component, task.everything - component, experiments)
            if factor is None:
                return None
            factors.append(factor)
        return total(task.everything - task.fixed - target, product(factors))

    def _task(self, target: Names, settings: Names) -> _Task:
        """Reduce an effect to the ancestors of the target.

        Other variables make no difference. Variables that are no longer ancestors after the
        intervention are idle: they may be set as well, to any value.
        """
        key = target, settings
        if key not in self._tasks:
            graph = self.graph.subgraph(self.graph.ancestors(target))
            everything = frozenset(graph.variables)
            fixed = settings & everything
            idle = everything - graph.cut(fixed).ancestors(target) - fixed
            fixed |= idle
            components = _components(graph.subgraph(everything - fixed))
            self._tasks[key] = _Task(graph, everything, fixed, idle, components)
        return self._tasks[key]

    def _from_first(self, task: _Task, experiments: tuple[Names, ...]) -> Expression | None:
        """Return Q[component] from the first experiment that identifies it."""
        (component,) = task.components
        for experiment in experiments:
            if not experiment & component:
                key = task.everything, component, experiment
                if key not in self._factors:
                    graph = task.graph.subgraph(task.everything - experiment)
                    self._factors[key] = _from_experiment(graph, component, experiment)
                if self._factors[key] is not None:
                    return self._factors[key]
        return None


def _from_experiment(graph: CausalGraph, component: Names, experiment: Names) -> Expression | None:
    """Return Q[component] from P_experiment; the graph has the variables it does not set."""
    around = graph.c_component(min(component))
    order = graph.topological_order()
    conditionals = []
    for i, name in enumerate(order):
        if name in around:
            before = graph.subgraph(order[: i + 1])
            district = before.c_component(name)
            condition = district.union(*(before.parents(v) for v in district)) - {name}
            conditionals.append(Term(experiment, frozenset({name}), condition))
    return _narrowed(graph, component, around, product(conditionals))


def _narrowed(
    graph: CausalGraph, target: Names, around: Names, factor: Expression
) -> Expression | None:
    """Tian's Identify: Q[target] from Q[around], each a c-component of its own subgraph."""
    inner = graph.subgraph(around)
    ancestors = inner.ancestors(target)
    if ancestors == target:
        return total(around - target, factor)
    if ancestors == around:
        return None
    factor = total(around - ancestors, factor)
    smaller = inner.subgraph(ancestors)
    component = smaller.c_component(min(target))
    order = smaller.topological_order()
    parts = []
    for i, name in enumerate(order):
        if name in component:
            top, bottom = (total(order[k:], factor) for k in (i + 1, i))
            parts.append(quotient(top, bottom) if i else top)
    return _narrowed(graph, target, component, product(parts))


def _components(graph: CausalGraph) -> tuple[Names, ...]:
    """Return the c-components, in the order of their first names."""
    return tuple(dict.fromkeys(graph.c_component(name) for name in graph.variables))


@dataclass(frozen=True)
class Estimator:
    """Formula for P_settings(reward); `str` returns it as text.

    Parameters
    ----------
    reward : str
        Variable whose distribution is estimated.
    settings : frozenset of str
        Variables that are set.
    formula : Expression
        The formula. A value that is neither the arm's nor summed over is free: the formula holds
        for each value.
    notation : Notation
        Symbols of the variables.

    Examples
    --------
    >>> from dowise.problem import load_problem
    >>> for estimator in estimators(load_problem("task1"))[frozenset({"X"})]:
    ...     print(estimator)
    P_{X=x}(Y=y)
    Σ_{z} P(Y=y | X=x, Z=z) P(Z=z)
    """

    reward: str
    settings: Names
    formula: Expression
    notation: Notation = field(repr=False)

    @property
    def is_direct(self) -> bool:
        """True if the formula reads the data of the arm itself."""
        return self.formula == Term(self.settings, frozenset({self.reward}))

    @property
    def any_value(self) -> tuple[str, ...]:
        """Names of variables with a free value: each value gives an estimator."""
        return tuple(sorted(self.formula.free - self.settings - {self.reward}))

    @property
    def experiments(self) -> frozenset[Names]:
        """Intervention sets whose data it uses."""
        return frozenset(term.experiment for term in self.formula.terms())

    def __str__(self) -> str:
        free = ", ".join(map(self.notation.text.value, self.any_value))
        return as_text(self.formula, self.notation) + (f"  (any {free})" if free else "")

    def latex(self) -> str:
        """Return the formula in LaTeX, without the dollar signs."""
        free = ", ".join(map(self.notation.latex.value, self.any_value))
        written = as_latex(self.formula, self.notation)
        return written + (rf" \quad(\text{{any }} {free})" if free else "")


def estimators(problem: Problem) -> Mapping[Names, tuple[Estimator, ...]]:
    """Return the estimators of each intervention set of a problem, the direct one first.

    Parameters
    ----------
    problem : Problem
        The problem whose intervention sets are estimated, from the data of all of them.

    Returns
    -------
    mapping from frozenset of str to tuple of Estimator

    Examples
    --------
    >>> from dowise.problem import load_problem
    >>> [len(formulas) for formulas in estimators(load_problem("task1")).values()]
    [1, 2]
    """
    return _cached_estimators(*_arguments(problem))


def iter_estimators(problem: Problem) -> Iterator[tuple[Estimator, ...]]:
    """Yield the estimators of each set as they are found: on large problems all take minutes."""
    return _iter_estimators(*_arguments(problem))


def _arguments(problem: Problem) -> tuple[CausalGraph, str, tuple[Names, ...], Notation]:
    graph = problem.graph.condition(problem.context)
    return graph, problem.reward, problem.intervention_sets, notation_of(problem)


@lru_cache(maxsize=64)
def _cached_estimators(
    graph: CausalGraph, reward: str, sets: tuple[Names, ...], notation: Notation
) -> Mapping[Names, tuple[Estimator, ...]]:
    return MappingProxyType(
        dict(zip(sets, _iter_estimators(graph, reward, sets, notation), strict=True))
    )


def _iter_estimators(
    graph: CausalGraph, reward: str, sets: tuple[Names, ...], notation: Notation
) -> Iterator[tuple[Estimator, ...]]:
    identifier = Identifier(graph)
    for settings in sets:
        formulas = _formulas(identifier, reward, settings, sets)
        yield tuple(Estimator(reward, settings, formula, notation) for formula in formulas)


def _formulas(
    identifier: Identifier, reward: str, settings: Names, sets: tuple[Names, ...]
) -> list[Expression]:
    experiments = [names for names in sets if names != settings]
    distinct: dict[Expression, None] = {Term(settings, frozenset({reward})): None}
    sizes = range(1, len(experiments) + 1)
    groups = (group for size in sizes for group in combinations(experiments, size))
    for group in islice(groups, MAX_SUBSETS):
        formula = identifier.effect(frozenset({reward}), settings, group)
        if formula is not None:
            distinct.setdefault(formula)
    total_groups = 2 ** len(experiments) - 1
    if total_groups > MAX_SUBSETS:
        _log.info(
            "estimators of %s: tried the %d smallest of %d sets of experiments",
            sorted(settings),
            MAX_SUBSETS,
            total_groups,
        )
    return list(distinct)


def describe_formulas(problem: Problem) -> dict[str, Any]:
    """Return JSON data of formulas: the reward of each arm in factors, and all its estimators.

    The data include the symbol for any value of each variable, and all doubtful edges.
    """
    by_set = estimators(problem)
    return {
        "formulas": [
            {
                "arm": dict(formula.arm),
                "text": str(formula),
                "latex": formula.latex(),
                "seen": formula.is_observational,
                "estimators": [
                    {
                        "text": str(estimator),
                        "latex": estimator.latex(),
                        "direct": estimator.is_direct,
                        "any": list(estimator.any_value),
                    }
                    for estimator in by_set[formula.arm.variables]
                ],
            }
            for formula in formulas(problem)
        ],
        "symbols": dict(notation_of(problem).symbols),
        "doubtful_edges": list(problem.edge_priors),
    }
