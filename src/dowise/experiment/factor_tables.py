"""What is known of one variable or one arm, for people: counts, means, intervals, formulas.

A variable has a factor: how it turns out, given what it depends on. A hidden cause gives it one
factor where that cause's other effect is only seen, and another where it is set. And where edges
are doubtful it has factors in several *versions*, each with how likely it is. Each row of a factor
says how often each value came, without the prior, and what is believed of it, with the prior.

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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise._core.codec import to_json
from dowise._core.document import format_number, pluralize
from dowise.belief import Belief
from dowise.belief.posterior import Posterior
from dowise.belief.predictive import dirichlet_intervals
from dowise.errors import NotFoundError, suggestion
from dowise.experiment.read_model import IndependentArmsBelief
from dowise.experiment.status import LEVEL
from dowise.graph.adjacency import bits
from dowise.graph.edges import as_text
from dowise.model.factors import TableLayout
from dowise.problem import Problem
from dowise.problem.formulas import iter_formulas
from dowise.problem.problem import ArmLike, Role

MOST_ROWS = 24
MOST_CELLS = 512  # of a table: a variable with many values gets fewer rows
MOST_VERSIONS = 4
MOST_SETS = 8  # under which a factor holds, that are named
_UNLIKELY = 0.005  # a version below this is not shown


@dataclass(frozen=True)
class Cell:
    """One value of the variable, at given values of what it depends on."""

    label: str
    count: int
    """How many records had it, without the prior."""
    prior: float
    """What the prior counts for it."""
    mean: float
    """How likely it is: the posterior mean."""
    low: float
    """The ends of the central 90 % credible interval of how likely it is."""
    high: float


@dataclass(frozen=True)
class Row:
    """How the variable turns out at given values of what it depends on."""

    given: dict[str, str]
    records: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class FactorTable:
    """A factor of the variable: a row for each combination of what it depends on."""

    text: str
    """Such as "P(Y | X, Z)", or "P(Y | do(X), Z)" where X must be set to learn it."""
    seen: tuple[str, ...]
    """What it depends on and may be just seen."""
    done: tuple[str, ...]
    """What it depends on and must be set."""
    under: tuple[str, ...]
    """What may be set for it to hold, as "do()" and "do(X)"; empty where it is the only factor and
    holds whatever else is set."""
    records: int
    """How many records count in it."""
    rows: tuple[Row, ...]
    """All in the order of the values; where they are too many, those with most records."""
    under_left_out: int = 0
    """How many more such sets there are."""
    rows_left_out: int = 0
    records_left_out: int = 0
    """How many records count in rows that were left out."""

    @property
    def scope(self) -> tuple[str, ...]:
        """All that it depends on, by name."""
        return tuple(sorted((*self.seen, *self.done)))


@dataclass(frozen=True)
class Version:
    """The factors of a variable as they are with some of the doubtful edges."""

    probability: float
    tables: tuple[FactorTable, ...]

    @property
    def text(self) -> str:
        """Its factors."""
        return " and ".join(table.text for table in self.tables)


@dataclass(frozen=True)
class VariableView:
    """What is known of a variable; `versions` has one entry unless edges are doubtful."""

    name: str
    role: Role
    domain: tuple[str, ...]
    versions: tuple[Version, ...]
    """The likeliest first; none where the belief has no factors, and `notes` say why."""
    versions_left_out: int = 0
    probability_left_out: float = 0.0
    """How likely those versions are together."""
    notes: tuple[str, ...] = ()
    level: float = LEVEL

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        page: dict[str, Any] = to_json(self)
        return page


@dataclass(frozen=True)
class FormulaView:
    """The formula of an arm's expected reward, if there is one, and what to know about it."""

    arm: str
    text: str
    has_formula: bool
    """Whether it follows from other factors; else `text` says that it does not."""
    latex: str
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        page: dict[str, Any] = to_json(self)
        return page


# -- arms ---------------------------------------------------------------------------------------


def formula_view(problem: Problem, arm: ArmLike) -> FormulaView:
    """The formula of one of the problem's arms."""
    position = problem.arm_index(arm)
    (formula,) = iter_formulas(problem, problem.arms[position : position + 1])
    notes = []
    if problem.edge_priors:
        notes.append("It is that of the graph with all doubtful edges.")
    cost = float(problem.payoff.costs[position]) if problem.payoff.has_costs else 0.0
    if cost:
        how = "more" if problem.minimise else "less"
        notes.append(f"The arm costs {format_number(cost)}: its net reward is so much {how}.")
    return FormulaView(
        str(formula.arm), str(formula), not formula.is_itself, formula.latex(), tuple(notes)
    )


# -- variables ----------------------------------------------------------------------------------


def variable_view(belief: Belief, name: str, most_rows: int = MOST_ROWS) -> VariableView:
    """What a belief knows of a variable, each table with at most so many rows."""
    problem = belief.problem
    if name not in problem.positions:
        raise NotFoundError(f"unknown variable {name!r:.200}{suggestion(name, problem.positions)}")
    if isinstance(belief, IndependentArmsBelief):
        versions = list[Version]()
        notes = [f"The graph is too large for a posterior of its factors: {belief.why}."]
    else:
        versions = _versions(belief.posterior, name, most_rows)
        notes = _notes(belief, name)
    ranked = sorted(versions, key=lambda version: -version.probability)
    shown = [one for one in ranked[:MOST_VERSIONS] if one.probability >= _UNLIKELY] or ranked[:1]
    left_out = ranked[len(shown) :]
    return VariableView(
        name,
        problem.role(name),
        problem.domains[name],
        tuple(shown),
        len(left_out),
        sum(one.probability for one in left_out),
        tuple(notes),
    )


def _notes(belief: Belief, name: str) -> list[str]:
    problem, posterior, notes = belief.problem, belief.posterior, []
    order, v = posterior.model.factors.order, problem.positions[name]
    if not order.useful >> v & 1:
        notes.append("No arm's reward depends on it.")
    elif order.context >> v & 1:
        notes.append(
            "It is seen before the choice, so no arm's reward depends on how often its values come."
        )
    for why, times in belief.unused.get(name, {}).items():
        does = "does" if times == 1 else "do"
        notes.append(f"{pluralize(times, 'record')} more {does} not count here: {why}.")
    return notes


def _versions(posterior: Posterior, name: str, most_rows: int) -> list[Version]:
    """The versions that are likely enough, with their tables, and the others without."""
    factors = posterior.model.factors
    v = factors.positions[name]
    own = np.flatnonzero(factors.targets == v).tolist()
    if posterior.is_settled:
        joined = {f: factors.keys[f][1] for f in own}
        return [Version(1.0, _tables(posterior, factors, {f: f for f in own}, joined, most_rows))]
    structures = posterior.shared.structures
    chances = posterior.shared.edge_weights.version_chances(posterior.weights())
    numbers = range(int(structures.first[v]), int(structures.first[v + 1]))
    likely = sorted(numbers, key=lambda m: -chances[m])[:MOST_VERSIONS]
    found = []
    for m in numbers:
        tables: tuple[FactorTable, ...] = ()
        if m in likely:
            table_of = {f: int(structures.table_of[m, f]) for f in own}
            parts = structures.versions[m].tables
            joined = {f: component for f, (component, _) in zip(own, parts, strict=True)}
            tables = _tables(posterior, structures.tables, table_of, joined, most_rows)
        found.append(Version(float(chances[m]), tables))
    return found


def _tables(
    posterior: Posterior,
    layout: TableLayout,
    table_of: dict[int, int],
    joined: dict[int, int],
    most_rows: int,
) -> tuple[FactorTable, ...]:
    """The tables that stand for these factors of the full graph, each once; where nothing is set,
    first.

    `joined` is for each of them the component of the variable: what it shares hidden causes with.
    """
    factors = posterior.model.factors
    order = factors.order
    by_table: dict[int, list[int]] = {}
    for f, t in table_of.items():
        by_table.setdefault(t, []).append(f)
    made: list[FactorTable] = []
    for t, stands_for in by_table.items():
        *scope, v = layout.families[t]
        # The factor where nothing is set: there all of the scope may as well be just seen.
        is_seen = factors.numbers[order.key(v, 0)] in stands_for
        outside = ~joined[stands_for[0]] & ~order.context
        done = [] if is_seen else [u for u in scope if outside >> u & 1]
        table = _table(
            posterior,
            layout,
            t,
            [factors.variables[u] for u in scope if u not in done],
            [factors.variables[u] for u in done],
            [] if len(by_table) == 1 else list(_under(posterior, v, stands_for)),
            most_rows,
        )
        made.insert(0 if is_seen else len(made), table)
    return tuple(made)


def _under(posterior: Posterior, v: int, stands_for: list[int]) -> Iterator[str]:
    """What may be set for these factors to hold."""
    factors = posterior.model.factors
    for cut in factors.sets:
        if not cut >> v & 1 and factors.numbers[factors.order.key(v, cut)] in stands_for:
            yield f"do({', '.join(as_text(factors.variables[u]) for u in bits(cut))})"


def _table(
    posterior: Posterior,
    layout: TableLayout,
    t: int,
    seen: list[str],
    done: list[str],
    under: list[str],
    most_rows: int,
) -> FactorTable:
    problem = posterior.problem
    *scope, name = (posterior.model.factors.variables[u] for u in layout.families[t])
    shape = layout.shapes[t]
    counts = layout.table(posterior.counts, t).reshape(-1, shape[-1])
    prior = layout.table(posterior.prior, t).reshape(-1, shape[-1])
    records = counts.sum(axis=1)
    chosen = np.arange(len(counts))
    most = max(1, min(most_rows, MOST_CELLS // shape[-1]))
    if len(counts) > most:
        chosen = np.argsort(-records, kind="stable")[:most]
    parameters = prior[chosen] + counts[chosen]
    means = parameters / parameters.sum(axis=1, keepdims=True)
    intervals = dirichlet_intervals(parameters, LEVEL)
    # The first axis is there for tables of one row, which have no other.
    places = np.stack(np.unravel_index(chosen, (1, *shape[:-1])), axis=1)[:, 1:]
    rows = tuple(
        Row(
            {u: problem.domains[u][code] for u, code in zip(scope, place, strict=True)},
            int(records[r]),
            _cells(problem.domains[name], counts[r], prior[r], mean, interval),
        )
        for r, place, mean, interval in zip(
            chosen.tolist(), places.tolist(), means, intervals, strict=True
        )
    )
    given = [f"do({', '.join(map(as_text, done))})"] * bool(done) + [*map(as_text, seen)]
    text = f"P({as_text(name)}{' | ' if given else ''}{', '.join(given)})"
    shown = int(records[chosen].sum())
    return FactorTable(
        text, tuple(seen), tuple(done), tuple(under[:MOST_SETS]), int(records.sum()), rows,
        len(under[MOST_SETS:]), len(counts) - len(chosen), int(records.sum()) - shown,
    )  # fmt: skip


def _cells(
    domain: tuple[str, ...],
    counts: NDArray[np.int64],
    prior: NDArray[np.float64],
    means: NDArray[np.float64],
    intervals: NDArray[np.float64],
) -> tuple[Cell, ...]:
    each = zip(
        domain, counts.tolist(), prior.tolist(), means.tolist(), intervals.tolist(), strict=True
    )
    return tuple(Cell(label, n, alpha, mean, *ends) for label, n, alpha, mean, ends in each)
