"""Readable factors of variables and formulas of arms: counts, means, intervals.

A factor of a variable is its distribution given the variables that it depends on. A variable with a
hidden cause has one factor if the other effect of that cause is only observed, and another one if
it is set. If edges are doubtful, a variable has factors in several *versions*, each with its
probability. A row of a factor has the counts of each value, without the prior, and its posterior,
with the prior.

>>> from dowise import Belief, load_problem
>>> belief = Belief(load_problem("task1"))
>>> belief.update("do(X=1)", {"Z": 0, "Y": 1})
>>> table = variable_view(belief, "Y").versions[0].tables[0]
>>> table.text, table.rows[2].given, table.rows[2].records
('P(Y | X, Z)', {'X': '1', 'Z': '0'}, 1)
>>> formula_view(belief.problem, "do(X=1)").text
'P(Y=1 | do(X=1)) = Σ_{z} P(Y=1 | X=1, Z=z) P(Z=z)'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dowise._core.codec import JsonResult, in_json
from dowise._core.document import format_number, pluralize
from dowise.belief import Belief
from dowise.belief.posterior import Posterior
from dowise.belief.predictive import dirichlet_intervals
from dowise.errors import NotFoundError, suggestion
from dowise.experiment.status import LEVEL
from dowise.graph.adjacency import bits
from dowise.graph.edges import as_text
from dowise.model.factors import TableLayout
from dowise.policies.independent_arms import IndependentArmsBelief
from dowise.problem import Problem
from dowise.problem.formulas import iter_formulas
from dowise.problem.problem import ArmLike, Role

MAX_ROWS = 24
MAX_CELLS = 512  # of a table: a variable with many values gets fewer rows
MAX_VERSIONS = 4
MAX_REGIMES = 8
_MIN_PROBABILITY = 0.005  # of a version that is shown


@dataclass(frozen=True)
class Cell:
    """One value of a variable, in one row of a factor."""

    label: str
    count: int
    """Number of records with this value, without the prior."""
    prior: float
    """Prior count."""
    mean: float
    """Posterior mean of its probability."""
    low: float
    """Lower end of the central 90 % credible interval of its probability."""
    high: float
    """Upper end of that interval."""


@dataclass(frozen=True)
class Row:
    """Distribution of a variable at given values of the variables that it depends on."""

    given: dict[str, str]
    records: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class FactorTable:
    """A factor of a variable, with a row for each combination of values that it depends on."""

    text: str
    """The factor as text: "P(Y | X, Z)", or "P(Y | do(X), Z)" if X must be set to learn it."""
    observed: tuple[str, ...] = field(metadata=in_json(key="seen"))
    """Variables that it depends on and that may be only observed."""
    intervened: tuple[str, ...] = field(metadata=in_json(key="done"))
    """Variables that it depends on and that must be set."""
    under: tuple[str, ...]
    """Interventions under which it holds, as "do()" and "do(X)"; empty for the only factor, which
    holds under all of them."""
    records: int
    """Number of records that count in it."""
    rows: tuple[Row, ...]
    """All rows in the order of the values; if they are too many, those with the most records."""
    under_left_out: int = 0
    """Number of further interventions under which it holds."""
    rows_left_out: int = 0
    """Number of rows that are left out."""
    records_left_out: int = 0
    """Number of records that count in rows that are left out."""

    @property
    def scope(self) -> tuple[str, ...]:
        """All variables that it depends on, sorted by name."""
        return tuple(sorted((*self.observed, *self.intervened)))


@dataclass(frozen=True)
class Version:
    """Factors of a variable with some of the doubtful edges."""

    probability: float
    tables: tuple[FactorTable, ...]

    @property
    def text(self) -> str:
        """The factors as text."""
        return " and ".join(table.text for table in self.tables)


@dataclass(frozen=True)
class VariableView(JsonResult):
    """A variable and its factors; there is one version unless edges are doubtful."""

    name: str
    role: Role
    domain: tuple[str, ...]
    versions: tuple[Version, ...]
    """Versions from the most to the least probable; none if the belief has no factors, and then
    `notes` say why."""
    versions_left_out: int = 0
    probability_left_out: float = 0.0
    """Probability of all versions that are left out."""
    notes: tuple[str, ...] = ()
    level: float = LEVEL


@dataclass(frozen=True)
class FormulaView(JsonResult):
    """The formula of an arm's expected reward, with notes on it."""

    arm: str
    text: str
    has_formula: bool
    """True if it follows from other factors; if not, `text` says so."""
    latex: str
    notes: tuple[str, ...] = ()


def formula_view(problem: Problem, arm: ArmLike) -> FormulaView:
    """Return the formula of one of the problem's arms."""
    index = problem.arm_index(arm)
    (formula,) = iter_formulas(problem, problem.arms[index : index + 1])
    notes = []
    if problem.edge_priors:
        notes.append("The formula is for the graph with all doubtful edges.")
    cost = float(problem.payoff.costs[index]) if problem.payoff.has_costs else 0.0
    if cost:
        direction = "higher" if problem.minimise else "lower"
        notes.append(
            f"The arm costs {format_number(cost)}, so its net reward is {direction} by that amount."
        )
    return FormulaView(
        arm=str(formula.arm),
        text=str(formula),
        has_formula=not formula.is_trivial,
        latex=formula.latex(),
        notes=tuple(notes),
    )


def variable_view(belief: Belief, name: str, max_rows: int = MAX_ROWS) -> VariableView:
    """Return the factors of a variable, with at most `max_rows` rows per table."""
    problem = belief.problem
    if name not in problem.positions:
        raise NotFoundError(
            f"unknown variable {name!r:.200}{suggestion(name, problem.positions)}",
            code="unknown-variable",
        )
    if isinstance(belief, IndependentArmsBelief):
        versions = list[Version]()
        notes = [f"The graph is too large for a posterior of its factors: {belief.why}."]
    else:
        versions = _versions(belief.posterior, name, max_rows)
        notes = _notes(belief, name)
    versions.sort(key=lambda version: -version.probability)
    likely = [part for part in versions[:MAX_VERSIONS] if part.probability >= _MIN_PROBABILITY]
    shown = likely or versions[:1]
    left_out = versions[len(shown) :]
    return VariableView(
        name=name,
        role=problem.role(name),
        domain=problem.domains[name],
        versions=tuple(shown),
        versions_left_out=len(left_out),
        probability_left_out=sum(version.probability for version in left_out),
        notes=tuple(notes),
    )


def _notes(belief: Belief, name: str) -> list[str]:
    order, v, notes = belief.posterior.model.factors.order, belief.problem.positions[name], []
    if not order.useful >> v & 1:
        notes.append("No arm's reward depends on it.")
    elif order.context >> v & 1:
        notes.append(
            "It is seen before the choice, so no arm's reward depends on how often its values come."
        )
    for why, times in belief.unused.get(name, {}).items():
        verb = "does" if times == 1 else "do"
        notes.append(f"{pluralize(times, 'further record')} {verb} not count here: {why}.")
    return notes


def _versions(posterior: Posterior, name: str, max_rows: int) -> list[Version]:
    """Return all versions of a variable; only the most likely ones have their tables."""
    factors = posterior.model.factors
    v = factors.positions[name]
    of_variable = np.flatnonzero(factors.targets == v).tolist()
    if posterior.is_settled:
        components = {f: factors.keys[f][1] for f in of_variable}
        table_of = {f: f for f in of_variable}
        return [Version(1.0, _tables(posterior, factors, table_of, components, max_rows))]
    structures = posterior.shared.structures
    chances = posterior.shared.edge_weights.version_chances(posterior.weights())
    numbers = range(int(structures.first[v]), int(structures.first[v + 1]))
    likely = sorted(numbers, key=lambda m: -chances[m])[:MAX_VERSIONS]
    versions = []
    for m in numbers:
        tables: tuple[FactorTable, ...] = ()
        if m in likely:
            table_of = {f: int(structures.table_of[m, f]) for f in of_variable}
            parts = structures.versions[m].tables
            components = {
                f: component for f, (component, _) in zip(of_variable, parts, strict=True)
            }
            tables = _tables(posterior, structures.tables, table_of, components, max_rows)
        versions.append(Version(float(chances[m]), tables))
    return versions


def _tables(
    posterior: Posterior,
    layout: TableLayout,
    table_of: dict[int, int],
    components: dict[int, int],
    max_rows: int,
) -> tuple[FactorTable, ...]:
    """Return the tables of these factors of the full graph, that of do() first.

    `table_of` has the table of each factor: several factors may have the same one. `components` has
    for each factor the bit set of variables that share hidden causes with the variable.
    """
    factors = posterior.model.factors
    order = factors.order
    by_table: dict[int, list[int]] = {}
    for f, t in table_of.items():
        by_table.setdefault(t, []).append(f)
    tables: list[FactorTable] = []
    for t, stands_for in by_table.items():
        *scope, v = layout.families[t]
        # In the factor of do(), the whole scope may be only observed.
        is_observational = factors.numbers[order.key(v, 0)] in stands_for
        outside = ~components[stands_for[0]] & ~order.context
        intervened = [] if is_observational else [u for u in scope if outside >> u & 1]
        table = _table(
            posterior,
            layout,
            t,
            observed=[factors.variables[u] for u in scope if u not in intervened],
            intervened=[factors.variables[u] for u in intervened],
            under=[] if len(by_table) == 1 else _regimes(posterior, v, stands_for),
            max_rows=max_rows,
        )
        tables.insert(0 if is_observational else len(tables), table)
    return tuple(tables)


def _regimes(posterior: Posterior, v: int, stands_for: Sequence[int]) -> list[str]:
    """Return the interventions under which the variable has one of these factors."""
    factors = posterior.model.factors
    return [
        f"do({', '.join(as_text(factors.variables[u]) for u in bits(cut))})"
        for cut in factors.sets
        if not cut >> v & 1 and factors.numbers[factors.order.key(v, cut)] in stands_for
    ]


def _table(
    posterior: Posterior,
    layout: TableLayout,
    t: int,
    *,
    observed: list[str],
    intervened: list[str],
    under: list[str],
    max_rows: int,
) -> FactorTable:
    domains = posterior.problem.domains
    *scope, name = (posterior.model.factors.variables[u] for u in layout.families[t])
    shape = layout.shapes[t]
    counts = layout.table(posterior.counts, t).reshape(-1, shape[-1])
    parameters = layout.table(posterior.parameters, t).reshape(-1, shape[-1])
    prior = layout.table(posterior.base, t).reshape(-1, shape[-1])
    records = counts.sum(axis=1)
    shown = np.arange(len(counts))
    limit = max(1, min(max_rows, MAX_CELLS // shape[-1]))
    if len(counts) > limit:
        shown = np.argsort(-records, kind="stable")[:limit]
    parameters = parameters[shown]
    means = parameters / parameters.sum(axis=1, keepdims=True)
    intervals = dirichlet_intervals(parameters, LEVEL)
    # The first axis is for tables of a single row, which have no other axis.
    codes = np.stack(np.unravel_index(shown, (1, *shape[:-1])), axis=1)[:, 1:]
    rows = []
    for i, r in enumerate(shown.tolist()):
        columns = (counts[r], prior[r], means[i], intervals[i])
        cells = zip(domains[name], *(column.tolist() for column in columns), strict=True)
        rows.append(
            Row(
                given={u: domains[u][k] for u, k in zip(scope, codes[i].tolist(), strict=True)},
                records=int(records[r]),
                cells=tuple(Cell(label, n, a, mean, *ends) for label, n, a, mean, ends in cells),
            )
        )
    conditions = [f"do({', '.join(map(as_text, intervened))})"] * bool(intervened)
    conditions += map(as_text, observed)
    bar = " | " if conditions else ""
    total = int(records.sum())
    return FactorTable(
        text=f"P({as_text(name)}{bar}{', '.join(conditions)})",
        observed=tuple(observed),
        intervened=tuple(intervened),
        under=tuple(under[:MAX_REGIMES]),
        records=total,
        rows=tuple(rows),
        under_left_out=len(under[MAX_REGIMES:]),
        rows_left_out=len(counts) - len(shown),
        records_left_out=total - int(records[shown].sum()),
    )
