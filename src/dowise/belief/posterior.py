"""The posterior of a problem's factors, given records.

Each row of each factor has an independent Dirichlet distribution: prior plus counts. With the
pooled prior the rows of a table are learned together (`dowise.belief.pooling`). If a doubtful edge
makes a difference, each variable has several versions of its tables
(`dowise.model.edge_structures`), each with such rows, and the posterior is a mixture over the sets
of edges, weighted by prior times evidence. Counts and evidence are integers: the posterior does not
depend on the order of the records, and retracting a record leaves no rounding behind.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dowise._core.kernels import lazy_kernels
from dowise._core.rng import Random, draw_key, generator
from dowise._core.types import BoolArray, FloatArray, IntArray, UInt64Array
from dowise._core.validation import check_integer
from dowise.belief.edge_weights import (
    MAX_LANES,
    EdgeWeights,
    Weights,
    lanes_of,
    mean_inputs,
    sample_edge_sets,
)
from dowise.belief.pooling import (
    CommonRow,
    PooledMixedState,
    PooledState,
    Pooling,
    common_row,
    counts_in_rows,
    empty_evidence,
    pooling_of,
)
from dowise.belief.prior import named_tables, prior_counts
from dowise.errors import DowiseError, DowiseWarning
from dowise.model import Codes, model_of
from dowise.model.circuit import Builder, Circuit
from dowise.model.draws import Draws
from dowise.model.edge_structures import Structures
from dowise.model.factors import NONE, TableLayout
from dowise.model.model import Model, with_first_value
from dowise.model.reward_circuit import Reading, reading_of
from dowise.problem import Problem, Record
from dowise.problem.prior import Prior, is_pooled
from dowise.problem.record import RecordBatch, check_record, check_same_problem

Key = UInt64Array
"""Key of one call of a counter-based kernel: see `dowise._core.rng.draw_key`."""

MAX_BYTES = 16 * 2**30  # size of one array of draws
MAX_CONTEXTS = 1024  # cached readings of a circuit
MAX_DRAWN_SETS = 4 * MAX_LANES  # sets of edges to sample if exact means are too expensive
# Below this, draws include the first value of the reward. From here on the rewards of two arms are
# both rounded to 1 once in 1e8 draws.
SMALL_PARAMETER = 0.5
_CACHE_BYTES = 512 * 1024  # the values of a block of lanes fit in the second-level cache of a core
_MIN_BLOCK, _MAX_BLOCK = 16, 256

_kernels = lazy_kernels("dowise.belief.draw_kernels")
_mixture_kernels = lazy_kernels("dowise.belief.mixture_kernels")
_pooled_kernels = lazy_kernels("dowise.belief.pooled_kernels")


class SettledState(NamedTuple):
    """Kernel view of a posterior without open edges."""

    prior: FloatArray
    counts: IntArray
    unused: IntArray


class MixedState(NamedTuple):
    """Kernel view of a posterior with open edges: the entries of all versions."""

    prior: FloatArray
    base: FloatArray
    """Parameters of the rows that versions are weighed by: `prior`, unless rows are pooled."""
    counts: IntArray
    evidence: IntArray
    """Log evidence of each version, in 2⁻³⁶ nats."""
    unused: IntArray


State = SettledState | MixedState | PooledState | PooledMixedState


class Posterior:
    """Posterior distribution of all factors of a problem.

    Parameters
    ----------
    problem : Problem
        The problem whose factors are learned.
    prior : Prior, optional
        Dirichlet parameters: a number for every entry, a mapping from variable to counts, or the
        path of a TOML file with such a mapping; "flat" is 1 for every entry. With "pooled" the rows
        of a table are learned together, except for variables that the problem's own prior names.
        Defaults to the prior of the problem.

    Examples
    --------
    >>> from dowise.problem import load_problem
    >>> problem = load_problem("task1")
    >>> posterior = Posterior(problem)
    >>> posterior.learn(problem.record("do(X=1)", {"Z": 0, "Y": 1}))
    >>> posterior.mean_distributions(()).round(3)[2].tolist()  # P(Y = 0), P(Y = 1) under do(X=1)
    [0.389, 0.611]
    """

    def __init__(self, problem: Problem, prior: Prior | None = None) -> None:
        self.problem = problem
        self.model = model_of(problem)
        self.is_settled = not problem.edge_priors or self.model.structures.is_settled
        """True if no doubtful edge makes a difference: there is one version of every variable."""
        self.layout: TableLayout = self.model.factors if self.is_settled else self.shared.layout
        """Tables of the factors, or of all versions of all variables."""
        prior = problem.prior if prior is None else prior
        pools = is_pooled(prior)
        if pools:
            prior = problem.prior if isinstance(problem.prior, Mapping) else 1.0
        self.base: FloatArray = prior_counts(self.layout, self.model.factors, prior)
        """Parameter of every entry of flat rows."""
        self.prior: FloatArray = self.base
        """Prior parameter of every entry of the tables. Of a pooled row: its matched parameters
        less the counts, so that `prior + counts` are the current parameters of all rows."""
        self.counts: IntArray = np.zeros(len(self.prior), dtype=np.int64)
        """Number of records that counted for every entry."""
        versions = 0 if self.is_settled else len(self.shared.structures.versions)
        self.evidence: IntArray = np.zeros(versions, dtype=np.int64)
        """Log evidence of each version in 2⁻³⁶ nats, a function of the counts; empty if settled."""
        variables = len(self.model.factors.variables)
        self.unused: IntArray = np.zeros((variables, variables + 1), dtype=np.int64)
        """unused[v, u]: number of records that did not count for v because u was missing.

        In the last column no arm needs the factor of v.
        """
        self.block = block_size(self.model.circuit.slots)
        """Number of lanes that are drawn together."""
        self.pooling: Pooling | None = None
        """Tables whose rows are pooled; None if there are none."""
        if pools:
            self.pool(~named_tables(self.layout, self.model.factors, prior))

    def pool(self, may_pool: BoolArray) -> None:
        """Pool the rows of these tables, where there are several."""
        pooling = pooling_of(self.layout, may_pool)
        if pooling.is_pooled.any():
            self.pooling, self.prior = pooling, self.base.copy()
            self._told, self._told_flat = empty_evidence(pooling)
            self._match_rows()

    @property
    def is_pooled(self) -> bool:
        """True if the rows of some table are pooled."""
        return self.pooling is not None

    def refuse_pooled(self, user: str) -> None:
        """Raise `DowiseError` if rows are pooled; `user` needs independent rows."""
        if self.is_pooled:
            raise DowiseError(
                f'{user} needs independent rows, which prior="pooled" does not have: use '
                'prior="flat" or counts',
                code="pooled-prior",
            )

    def _pool_again(self) -> None:
        """Compute the evidence of pooled tables from the counts, and match their rows."""
        if self.pooling is not None:
            _pooled_kernels.recount(self.state(), counts_in_rows(self.counts, self.pooling))
            self._match_rows()

    def _match_rows(self) -> None:
        assert self.pooling is not None
        for table in np.flatnonzero(self.pooling.is_pooled):
            _pooled_kernels.match_table(self.state(), table)

    @cached_property
    def shared(self) -> SharedTables:
        """Tables of all versions, shared by all posteriors of the problem; for open edges only."""
        return shared_tables(self.problem)

    @cached_property
    def any_shape(self) -> bool | None:
        """None if all parameters are whole numbers, whatever is learned, otherwise True."""
        is_whole = not self.is_pooled and bool((self.prior == np.floor(self.prior)).all())
        return None if is_whole else True

    @cached_property
    def may_be_small(self) -> bool:
        """True if some parameter is small in some context, or may become so."""
        return self.is_pooled or bool(self.prior.min() < SMALL_PARAMETER)

    def is_small_in(self, codes: Codes) -> bool:
        """Return True if a parameter is so small in this context that draws need all values."""
        if not self.may_be_small:
            return False
        if not self.is_settled:
            return bool(self.parameters.min() < SMALL_PARAMETER)
        rows, tape = self.model.rows(codes), self.model.circuit.tape
        smallest: float = _kernels.smallest_parameter(self.prior, self.counts, rows, tape)
        return smallest < SMALL_PARAMETER

    @property
    def parameters(self) -> FloatArray:
        """Dirichlet parameter of every entry of the tables: prior plus counts."""
        parameters: FloatArray = self.prior + self.counts
        return parameters

    def state(self) -> State:
        """Return the arrays that kernels read and write. They are not copied."""
        if self.pooling is None:
            return self._flat_state()
        pooled = self._told, self._told_flat, self.pooling
        if self.is_settled:
            return PooledState(self.prior, self.counts, self.unused, *pooled)
        return PooledMixedState(
            self.prior, self.base, self.counts, self.evidence, self.unused, *pooled
        )

    def _flat_state(self) -> SettledState | MixedState:
        """Return the state without the pooled rows, for counting many records."""
        if self.is_settled:
            return SettledState(self.prior, self.counts, self.unused)
        return MixedState(self.prior, self.base, self.counts, self.evidence, self.unused)

    # -- learning -----------------------------------------------------------------------------

    def learn(self, record: Record) -> None:
        """Count a record in the factor of each variable whose scope has all values.

        If edges are open it counts in every version of the variable. The scope is that of the graph
        with all edges, so that every set of edges learns from the same records.
        """
        if getattr(record, "problem", None) is not self.problem:
            check_record(record, self.problem)
        self._count(record, 1)

    def retract(self, record: Record) -> None:
        """Undo `learn`. Raises `DowiseError` if the record was not learned."""
        check_record(record, self.problem)
        if self.is_settled:
            was_learned = bool((self.counts[self.model.factors.entries_of(record)] > 0).all())
            if was_learned:
                self._count(record, -1)
                was_learned = not (self.unused < 0).any()
                if not was_learned:
                    self._count(record, 1)
        else:
            before = self.counts.copy(), self.evidence.copy(), self.unused.copy()
            self._count(record, -1)
            was_learned = not ((self.counts < 0).any() or (self.unused < 0).any())
            if not was_learned:
                self.counts[:], self.evidence[:], self.unused[:] = before
                self._pool_again()
        if not was_learned:
            raise DowiseError(
                f"{record!r} can't be retracted: it was not learned", code="not-learned"
            )

    def learn_many(self, records: RecordBatch) -> None:
        """Learn many records, with the same result as one by one."""
        check_same_problem(records, self.problem)
        if not len(records):
            return
        sets, set_numbers = records.by_set()
        factors, factors_of_variables = self.model.factors, self.model.factors.under_sets(sets)
        if self.is_settled:
            _kernels.count_records(
                self._flat_state(),
                records.codes,
                records.was_set,
                set_numbers,
                factors_of_variables,
                factors.starts,
                factors.strides,
            )
        else:
            _mixture_kernels.learn_mixed_many(
                self._flat_state(),
                self.shared.tables,
                self.shared.structures.tables_under(sets),
                factors_of_variables,
                factors.strides,
                records.codes,
                records.was_set,
                set_numbers,
            )
        self._pool_again()

    def count_at(self, set_number: int, codes: IntArray, fixed: IntArray) -> None:
        """Learn an outcome of the intervention set with this number (`FactorLayout.place`)."""
        tables = None if self.is_settled else self.shared.under[set_number]
        self._count_codes(codes, fixed, self.model.factors.under_arms[set_number], tables, 1)

    def _count(self, record: Record, step: int) -> None:
        factors, tables = self.model.factors, None
        set_number = factors.place(record.arm)
        if set_number != NONE:
            factor_of_variable = factors.under_arms[set_number]
            tables = None if self.is_settled else self.shared.under[set_number]
        else:
            mask = self.problem.graph.mask(record.arm)
            factor_of_variable = factors.under(mask)
            if not self.is_settled:
                (tables,) = self.shared.structures.tables_under([mask])
        self._count_codes(record.codes, record.fixed, factor_of_variable, tables, step)

    def _count_codes(
        self,
        codes: IntArray,
        fixed: IntArray,
        factor_of_variable: IntArray,
        tables: IntArray | None,
        step: int,
    ) -> None:
        factors = self.model.factors
        if tables is None:
            _kernels.count_record(
                self.state(),
                codes,
                fixed,
                factor_of_variable,
                factors.starts,
                factors.strides,
                step,
            )
        else:
            _mixture_kernels.learn_mixed(
                self.state(),
                self.shared.tables,
                tables,
                factor_of_variable,
                factors.strides,
                codes,
                fixed,
                step,
            )

    def recompute_evidence(self) -> None:
        """Compute the evidence of all versions and pooled tables from prior and counts."""
        self._pool_again()
        if self.is_settled:
            return
        structures, layout = self.shared.structures, self.layout
        for m, version in enumerate(structures.versions):
            if structures.scored >> version.variable & 1:
                rows = np.isin(layout.row_tables, structures.table_of[m])
                self.evidence[m] = _mixture_kernels.evidence_of(
                    self.base, self.counts, layout.row_starts[rows], layout.row_sizes[rows]
                )

    # -- edges --------------------------------------------------------------------------------

    def weights(self) -> Weights:
        """Return the probabilities of the sets of open edges."""
        return self._weights(self.evidence)

    def _weights(self, evidence: IntArray) -> Weights:
        weights = self.shared.edge_weights.empty()
        _mixture_kernels.weigh(evidence, self.shared.edge_weights.options, weights)
        return weights

    def edges(self) -> dict[str, float]:
        """Return the probability of each doubtful edge; one that is not open keeps its prior."""
        return self.edge_snapshot()()

    def edge_snapshot(self) -> Callable[[], dict[str, float]]:
        """Return a function that computes `edges` as of now when it is called later."""
        priors = self.problem.edge_priors
        if self.is_settled:
            return lambda: dict(priors)
        evidence, edge_weights = self.evidence.copy(), self.shared.edge_weights
        return lambda: {**priors, **edge_weights.edge_chances(self._weights(evidence))}

    # -- means --------------------------------------------------------------------------------

    def times_learned(self) -> IntArray:
        """Return for each variable the number of records that counted."""
        of_tables = np.add.reduceat(self.counts, self.layout.starts[:-1])
        total = np.bincount(self.layout.targets, of_tables).astype(np.int64)
        # A record counts in all versions of a variable.
        return total if self.is_settled else total // np.diff(self.shared.structures.first)

    def unused_by_name(self) -> dict[str, dict[str, int]]:
        """Return `unused` as {variable: {missing variable, "" if no arm needs it: records}}."""
        names = self.model.factors.variables
        return {
            name: {(*names, "")[u]: int(row[u]) for u in np.flatnonzero(row)}
            for name, row in zip(names, self.unused, strict=True)
            if row.any()
        }

    def mean_entries(self) -> FloatArray:
        """Return the posterior mean of every entry of the factors, averaged over open edges."""
        means = self.layout.normalised(self.parameters)
        if self.is_settled:
            return means
        structures, factors = self.shared.structures, self.model.factors
        chances = self.shared.edge_weights.version_chances(self.weights())
        averaged = np.zeros(factors.entries)
        for m, version in enumerate(structures.versions):
            for f, table in self.shared.version_tables(means, version.variable, m):
                factors.table(averaged, f)[...] += chances[m] * table
        return averaged

    def mean_distributions(self, codes: Codes) -> FloatArray:
        """Return P(Y = y | do(arm), c), averaged over the posterior: (arms, values of Y).

        Given the edges it is exact: a monomial of the circuit has one entry of each factor, and
        rows are independent, so the mean of the polynomial is the polynomial at the mean entries.
        It is averaged over all sets of open edges or, if there are too many (`has_exact_means`),
        over `MAX_DRAWN_SETS` samples.
        """
        if not self.is_settled:
            return self._mixed_mean_distributions(codes)
        if not self.model.has_circuit:
            return self.model.distributions(self.mean_entries(), codes)
        rows, circuit = self.model.rows(codes), self.model.circuit
        arms, values = circuit.results.shape  # all values but the first
        out = np.empty((arms, values + 1))
        _kernels.mean_results(self.prior, self.counts, rows, circuit.tape, out)
        return out

    def _mixed_mean_distributions(self, codes: Codes) -> FloatArray:
        shared, weights = self.shared, self.weights()
        reading = shared.reading(codes)
        lanes = lanes_of(shared.edge_weights, weights, reading.variables.tolist())
        if lanes is None:
            sets, counts = sample_edge_sets(self, weights, MAX_DRAWN_SETS)
            lanes = [
                (float(n), {v: {m: 1.0} for v, m in enumerate(versions)})
                for versions, n in zip(sets.tolist(), counts.tolist(), strict=True)
            ]
        means = self.layout.normalised(self.parameters)
        rows = mean_inputs(lanes, means, reading, self.model.circuit, shared.structures.first)
        chances = np.array([chance for chance, _ in lanes])
        return with_first_value(self.model.run(rows) @ (chances / chances.sum()))

    @cached_property
    def has_exact_means(self) -> bool:
        """True if `mean_distributions` is exact: there are few enough sets of open edges."""
        if self.is_settled:
            return True
        first_context = (0,) * len(self.problem.context)
        read = self.shared.reading(first_context).variables.tolist()
        return lanes_of(self.shared.edge_weights, self.weights(), read) is not None

    def alike(self) -> dict[str, CommonRow]:
        """Return the probability that the rows of each table are alike, and their common row.

        Versions of a variable that doubtful edges leave open have a number, "Y (version 2)".
        """
        if self.pooling is None:
            return {}
        state, names = self.state(), self._table_names()
        rows = {}
        for t in np.flatnonzero(self.pooling.is_pooled).tolist():
            shares = np.empty((int(self.pooling.sizes[t]) - 1, len(self.pooling.grid.a)))
            probability = float(_pooled_kernels.weigh_table(state, t, shares))
            rows[names[t]] = common_row(shares, probability, self.pooling)
        return rows

    def _table_names(self) -> list[str]:
        factors = self.model.factors
        if self.is_settled:
            return list(factors.names)
        numbers: Counter[int] = Counter()
        names = []
        for v in self.layout.targets.tolist():
            numbers[v] += 1
            names.append(f"{factors.variables[v]} (version {numbers[v]})")
        return names

    # -- draws --------------------------------------------------------------------------------

    def draw(self, codes: Codes, samples: int, rng: Random) -> Draws:
        """Draw the distribution of the reward under every arm.

        Every draw has its own set of open edges. Equal seeds give equal entries in every context:
        draw i is the same world in all contexts, so its best arms form a map from contexts to arms.
        """
        is_small = self.is_small_in(codes)
        key = draw_key(generator(rng))
        count = check_samples(samples, self.model.circuit, is_small)
        return self._draw_lanes(key, codes, 0, count, is_small)

    def draw_lanes(self, key: Key, codes: Codes, first: int, count: int) -> Draws:
        """Return draws `first` to `first + count` of a key; `first` is a multiple of `block`.

        If a parameter is small, they include the first reward value.
        """
        return self._draw_lanes(key, codes, first, count, self.is_small_in(codes))

    def _draw_lanes(self, key: Key, codes: Codes, first: int, count: int, is_small: bool) -> Draws:
        model = self.model
        circuit = model.whole_circuit if is_small else model.circuit
        out = np.empty((*circuit.results.shape, count), dtype=np.float32)
        if self.is_settled:
            rows = model.whole_rows(codes) if is_small else model.rows(codes)
            self._draw_settled(key, circuit, rows, first, out)
        else:
            shared = self.shared
            reading = shared.whole_reading(codes) if is_small else shared.reading(codes)
            self._draw_mixed(key, circuit, reading, first, out)
        if not is_small:
            return Draws(out)
        after_first = np.ascontiguousarray(out[:, 1:])
        return Draws(after_first, out, model.kinds, int(key[0]), first)

    def _draw_settled(
        self, key: Key, circuit: Circuit, rows: IntArray, first: int, out: NDArray[np.float32]
    ) -> None:
        _kernels.draw_results(
            key,
            self.prior,
            self.counts,
            rows,
            circuit.tape,
            self.block,
            first,
            out,
            self.any_shape,
        )

    def _draw_mixed(
        self, key: Key, circuit: Circuit, reading: Reading, first: int, out: NDArray[np.float32]
    ) -> None:
        edge_weights = self.shared.edge_weights
        _mixture_kernels.draw_mixed(
            key,
            self.state(),
            self.shared.tables,
            edge_weights.options,
            edge_weights.empty(),
            reading,
            circuit.tape,
            self.block,
            first,
            out,
            self.any_shape,
        )

    def draw_entries(self, samples: int, rng: Random) -> NDArray[np.float32]:
        """Draw all entries of the tables, those that `draw` uses for the same seed.

        Returns an array (entries, samples).
        """
        layout = self.layout
        out = np.empty((layout.entries, check_integer("samples", samples, 1)), dtype=np.float32)
        key = draw_key(generator(rng))
        starts, sizes = layout.row_starts, layout.row_sizes
        _kernels.draw_entries(key, self.parameters, starts, sizes, self.block, out, self.any_shape)
        return out

    # -- copies and files ---------------------------------------------------------------------

    def copy(self) -> Self:
        """Return an independent copy; constant arrays are shared."""
        copied = object.__new__(type(self))
        copied.__dict__ |= self.__dict__
        copied.counts, copied.evidence = self.counts.copy(), self.evidence.copy()
        copied.unused = self.unused.copy()
        if self.is_pooled:
            copied.prior = self.prior.copy()
            copied._told, copied._told_flat = self._told.copy(), self._told_flat.copy()
        return copied

    def as_dict(self) -> dict[str, Any]:
        """Return JSON data; `dowise.belief.serialization` documents the format."""
        from dowise.belief.serialization import posterior_to_json

        return posterior_to_json(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any], problem: Problem) -> Self:
        """Inverse of `as_dict`.

        Raises `DowiseError` if the data are damaged or belong to another problem.
        """
        from dowise.belief.serialization import read_posterior

        posterior = cls(problem, 1.0)
        read_posterior(posterior, data)
        return posterior


def block_size(slots: int) -> int:
    """Return the number of lanes of a circuit with this many slots that are drawn together."""
    return min(max(_CACHE_BYTES // (4 * slots) // 16 * 16, _MIN_BLOCK), _MAX_BLOCK)


def check_samples(samples: int, circuit: Circuit, is_small: bool) -> int:
    """Validate a number of draws; raises `DowiseError` if they do not fit into memory."""
    count = check_integer("samples", samples, 1)
    arms, values = circuit.results.shape  # all values but the first
    size = 4 * count * arms * (2 * values + 1 if is_small else values)
    if size > MAX_BYTES:
        raise DowiseError(
            f"{count:,} draws for {arms:,} arms take {size:.1e} bytes: draw fewer at a time",
            code="too-large",
        )
    return count


# -- the tables of open edges ---------------------------------------------------------------------


class SharedTables:
    """Tables, versions and readings that all posteriors of a problem with open edges share."""

    def __init__(self, problem: Problem) -> None:
        self.model = model_of(problem)
        self.structures: Structures = self.model.structures
        self.layout: TableLayout = self.structures.tables
        self.edge_weights = EdgeWeights(self.structures)
        self.under = self.structures.tables_under(self.structures.factors.sets)
        self._readings: dict[Codes, Reading] = {}
        self._context = problem.context_positions

    @cached_property
    def tables(self) -> Any:
        """Positions of the versions' tables, for kernels."""
        structures, layout = self.structures, self.layout
        variables = range(len(layout.sizes))
        scored = np.array([structures.scored >> v & 1 for v in variables], dtype=bool)
        return _mixture_kernels.VersionIndex(
            structures.first, layout.starts, layout.strides, layout.sizes, scored
        )

    def version_tables(
        self, entries: FloatArray, v: int, m: int
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield each factor of variable v with its table in version m, broadcast to its axes."""
        factors, tables = self.model.factors, self.structures.tables
        for f in np.flatnonzero(factors.targets == v).tolist():
            t = self.structures.table_of[m, f]
            axes = tables.families[t]
            spread = tuple(slice(None) if u in axes else None for u in factors.families[f])
            yield f, tables.table(entries, t)[spread]

    @cached_property
    def _reading(self) -> Reading:
        return reading_of(self.structures, self.model.circuit, self._context)

    @cached_property
    def _whole_reading(self) -> Reading:
        return reading_of(self.structures, self.model.whole_circuit, self._context)

    @cached_property
    def trace_reading(self) -> Reading:
        """Entries that the circuit of all seen variables (`Model.trace`) reads in context 0."""
        return reading_of(self.structures, self.model.trace, self._context)

    def reading(self, codes: Codes) -> Reading:
        """Return the entries that the circuit reads in this context."""
        reading = self._readings.get(codes)
        if reading is None:
            if len(self._readings) >= MAX_CONTEXTS:
                self._readings.clear()
            reading = self._readings[codes] = shift_reading(self._reading, codes)
        return reading

    def whole_reading(self, codes: Codes) -> Reading:
        """Return the entries that the circuit with the reward's first value reads."""
        return shift_reading(self._whole_reading, codes)


@lru_cache(maxsize=32)
def shared_tables(problem: Problem) -> SharedTables:
    """Return the shared tables of a problem, built once."""
    shared = SharedTables(problem)
    structures = shared.structures
    if structures.cut:
        names, (sets, considered) = max(structures.cut.items(), key=lambda cut: cut[1])
        warnings.warn(
            f"there are {sets:,} sets of doubtful edges around {names}: only the {considered} "
            "likeliest are considered. The true set is among those considered everywhere with "
            f"prior probability {structures.kept:.3f}; to consider all, mark edges as certain or "
            "remove them",
            DowiseWarning,
            stacklevel=5,
        )
    return shared


def shift_reading(reading: Reading, codes: Codes) -> Reading:
    """Return the reading of the first context, moved to this context."""
    shift = reading.shifts @ np.array(codes, dtype=np.int64)
    return reading._replace(entries=reading.entries + shift)


# -- draws of single rows -------------------------------------------------------------------------


class RowDraws:
    """Draws of some rows of a model's factors; `rows` are their numbers in the first context.

    The rows are drawn by a circuit without operations, whose inputs are its results, so that each
    lane has its own set of edges where some are open.
    """

    def __init__(self, model: Model, rows: IntArray) -> None:
        self.model = model
        builder = Builder()
        entries = builder.input_blocks(model.factors.row_sizes[rows])
        circuit = builder.finish(entries.reshape(-1, 1))
        self.circuit = circuit._replace(blocks=rows[circuit.blocks])
        self._rows: dict[Codes, IntArray] = {}

    @cached_property
    def _reading(self) -> Reading:
        problem, structures = self.model.problem, self.model.structures
        return reading_of(structures, self.circuit, problem.context_positions)

    def _rows_in(self, codes: Codes) -> IntArray:
        rows = self._rows.get(codes)
        if rows is None:
            if len(self._rows) >= MAX_CONTEXTS:
                self._rows.clear()
            rows = self._rows[codes] = self.model.rows_of(self.circuit, codes)
        return rows

    def draw(self, posterior: Posterior, key: Key, codes: Codes, count: int) -> NDArray[np.float32]:
        """Draw the entries of the rows, one row after the other, in a context: (entries, count)."""
        circuit = self.circuit
        entries = len(circuit.results)
        if 4 * entries * count > MAX_BYTES:
            raise DowiseError(
                f"{count:,} draws of {entries:,} entries take {4.0 * entries * count:.1e} bytes: "
                "draw fewer samples",
                code="too-large",
            )
        out = np.empty((entries, 1, count), dtype=np.float32)
        if posterior.is_settled:
            posterior._draw_settled(key, circuit, self._rows_in(codes), 0, out)
        else:
            reading = shift_reading(self._reading, codes)
            posterior._draw_mixed(key, circuit, reading, 0, out)
        return out[:, 0]
