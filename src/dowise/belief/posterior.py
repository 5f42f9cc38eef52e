"""What a posterior can do, for whoever writes one: `Dirichlet` is one such.

A posterior knows how likely the numbers of a problem are after some records. It is a function of
these records, not of their order: learning and retracting count up and down by whole numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dowise._core.kernels import lazy_kernels
from dowise._core.rng import Random, draw_key, generator
from dowise._core.validation import check_integer
from dowise.belief.edge_weights import MAX_LANES, Choices, Lane, Weights, lanes_of, mean_inputs
from dowise.belief.prior import Prior, prior_counts
from dowise.errors import DowiseError, DowiseWarning
from dowise.model import Codes, model_of
from dowise.model.circuit import Circuit
from dowise.model.draws import Draws
from dowise.model.edge_structures import Structures
from dowise.model.factors import NONE
from dowise.model.model import with_first_value
from dowise.model.reward_circuit import Reading, reading_of
from dowise.problem import Problem, Record
from dowise.problem.record import RecordBatch, check_record, check_same_problem


class Posterior(Protocol):
    """The promises that `Belief`, the policies and the bounds rely on."""

    @property
    def problem(self) -> Problem:
        """What it is about."""

    def learn(self, record: Record) -> None:
        """One record more."""

    def retract(self, record: Record) -> None:
        """One record less: as if it had never been learned. Refuses what was not learned."""

    def learn_many(self, records: RecordBatch) -> None:
        """Many records more, the same as one by one."""

    def draw(self, codes: Codes, samples: int, rng: Random) -> Draws:
        """The distribution of the reward under every arm, for draws from the posterior.

        Equal seeds give equal entries in every context: draw i under seed s in one context and draw
        i under seed s in another are one world. So the best arms of all contexts under one draw
        make one map from contexts to arms, which the entropy of that map is computed from.
        """

    def mean_distributions(self, codes: Codes) -> NDArray[np.float64]:
        """P(Y = y | do(arm), c) averaged over the posterior, exact: (arms, values of Y)."""

    def copy(self) -> Self:
        """A posterior that learns on its own from here."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON, with a version."""

    @classmethod
    def from_dict(cls, page: dict[str, Any], problem: Problem) -> Self:
        """The way back from `as_dict`; refuses what is damaged or about another problem."""


Integers = NDArray[np.int64]
Key = NDArray[np.uint64]
"""Of a call of a counter-based kernel: `randomness.key_of`."""

MAX_BYTES = 16 * 2**30  # of one array of draws
# From here on two arms are at 1 together, in single precision, once in 1e8 draws.
CAREFUL_BELOW = 0.5
# All values of a block of lanes should fit in the second-level cache of a core.
_CACHE = 512 * 1024
_LARGEST_BLOCK, _SMALLEST_BLOCK = 256, 16

_kernels = lazy_kernels("dowise.belief.draw_kernels")
_careful = lazy_kernels("dowise.belief.draw_kernels")


class Dirichlet:
    """A Dirichlet posterior over every row of a problem's factors; see `Posterior`.

    `prior` is described in `dowise.belief.prior`; the problem's unless given.
    """

    def __init__(self, problem: Problem, prior: Prior | None = None) -> None:
        self.problem = problem
        prior = problem.prior if prior is None else prior
        self.model = model_of(problem)
        self.prior: NDArray[np.float64] = prior_counts(
            self.model.factors, self.model.factors, prior
        )
        """The prior's parameter of every entry; see `Factors`."""
        self.counts: NDArray[np.int64] = np.zeros(len(self.prior), dtype=np.int64)
        """How often every entry was seen."""
        variables = len(self.model.factors.variables)
        self.unused: NDArray[np.int64] = np.zeros((variables, variables + 1), dtype=np.int64)
        """How often the factor of a variable could not be counted, for want of another one.

        The last column: because no arm needs it.
        """
        self.block = block_size(self.model.circuit.slots)
        """How many lanes are drawn together."""

    @cached_property
    def is_fine(self) -> bool:
        """Whether single precision tells draws apart, whatever is learned."""
        return bool(self.prior.min() >= CAREFUL_BELOW)

    @property
    def parameters(self) -> NDArray[np.float64]:
        """The Dirichlet parameter of every entry: prior plus observed."""
        parameters: NDArray[np.float64] = self.prior + self.counts
        return parameters

    # -- learning -----------------------------------------------------------------------------

    def learn(self, record: Record) -> None:
        """One record more: each factor that was seen whole counts one entry."""
        if getattr(record, "problem", None) is not self.problem:
            check_record(record, self.problem)
        self._count(record, 1)

    def retract(self, record: Record) -> None:
        """One record less."""
        check_record(record, self.problem)
        entries = self.model.factors.entries_of(record)
        if (self.counts[entries] < 1).any():
            raise DowiseError(f"{record!r} can't be retracted: it was not learned")
        self._count(record, -1)
        if (self.unused < 0).any():
            self._count(record, 1)
            raise DowiseError(f"{record!r} can't be retracted: it was not learned")

    def _count(self, record: Record, step: int) -> None:
        factors = self.model.factors
        place = factors.place(record.arm)
        if place != NONE:
            under = factors.under_arms[place]
        else:
            under = factors.under(self.problem.graph.mask(record.arm))
        self._count_codes(record.codes, record.fixed, under, step)

    def count_at(self, place: int, codes: Integers, fixed: Integers) -> None:
        """Learn what was seen under an arm whose place is known."""
        self._count_codes(codes, fixed, self.model.factors.under_arms[place], 1)

    def _count_codes(self, codes: Integers, fixed: Integers, under: Integers, step: int) -> None:
        factors = self.model.factors
        _kernels.count_record(
            self.counts, self.unused, codes, fixed, under, factors.starts, factors.strides, step
        )

    def learn_many(self, records: RecordBatch) -> None:
        """Many records more."""
        check_same_problem(records, self.problem)
        if not len(records):
            return
        sets, place = records.by_set()
        factors = self.model.factors
        _kernels.count_records(
            self.counts, self.unused, records.codes, records.was_set, place,
            factors.under_sets(sets), factors.starts, factors.strides,
        )  # fmt: skip

    # -- what it says -------------------------------------------------------------------------

    def times_learned(self) -> Integers:
        """How many records taught something about each variable."""
        factors = self.model.factors
        each = np.add.reduceat(self.counts, factors.starts[:-1])
        return np.bincount(factors.targets, each).astype(np.int64)

    def mean_entries(self) -> NDArray[np.float64]:
        """The posterior mean of every entry."""
        return self.model.factors.normalised(self.parameters)

    def mean_distributions(self, codes: Codes) -> NDArray[np.float64]:
        """P(Y = y | do(arm), c), averaged over the posterior: an array (arms, values of Y).

        Exact: a monomial of the circuit has one entry of each factor, and rows are independent, so
        the mean of the polynomial is the polynomial at the mean entries.
        """
        if not self.model.has_circuit:
            return self.model.distributions(self.mean_entries(), codes)
        rows, circuit = self.model.rows(codes), self.model.circuit
        arms, others = circuit.results.shape
        out = np.empty((arms, others + 1))
        _kernels.mean_results(self.prior, self.counts, rows, circuit.tape, out)
        return out

    def draw_entries(self, samples: int, rng: Random) -> NDArray[np.float32]:
        """Draws of all entries in single precision: (entries, samples).

        `draw` evaluates the same ones as it goes, but where parameters are so small that it takes
        double precision.
        """
        factors = self.model.factors
        out = np.empty((factors.entries, check_integer("samples", samples, 1)), dtype=np.float32)
        key = draw_key(generator(rng))
        starts, sizes = factors.row_starts, factors.row_sizes
        _kernels.draw_entries(key, self.parameters, starts, sizes, self.block, out)
        return out

    def draw(self, codes: Codes, samples: int, rng: Random) -> Draws:
        """The distribution of the reward under every arm, for draws from the posterior.

        Drawing and evaluating in one kernel, lane by lane. Equal seeds give equal entries in every
        context: a variate is a hash of the key, its entry and its lane.
        """
        circuit, is_fine = self.model.circuit, self.is_fine_in(codes)
        key, count = draw_key(generator(rng)), checked_samples(samples, circuit, is_fine)
        if is_fine:
            return self.draw_lanes(key, codes, 0, count)
        return self.draw_whole_lanes(key, codes, 0, count)

    def draw_lanes(self, key: Key, codes: Codes, first: int, count: int) -> Draws:
        """Some of the draws of a key, from this one on; `first` is a multiple of `block`.

        In single precision: for what is fine in this context.
        """
        rows, circuit = self.model.rows(codes), self.model.circuit
        out = np.empty((*circuit.results.shape, count), dtype=np.float32)
        _kernels.draw_results(
            key, self.prior, self.counts, rows, circuit.tape, self.block, first, out
        )
        return Draws(out)

    def draw_whole_lanes(self, key: Key, codes: Codes, first: int, count: int) -> Draws:
        """The same in double precision: for what is not fine."""
        circuit = self.model.whole_circuit
        rows = self.model.rows_of(circuit, codes)
        whole = np.empty((*circuit.results.shape, count))
        _careful.draw_whole(
            key, self.prior, self.counts, rows, circuit.tape, self.block, first, whole
        )
        return Draws(whole[:, 1:], whole, self.model.kinds, int(key[0]), first)

    def is_fine_in(self, codes: Codes) -> bool:
        """Whether the parameters are by now large enough for single precision."""
        if self.is_fine:
            return True
        rows, sizes = self.model.rows(codes), self.model.circuit.block_sizes
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        entries = np.repeat(rows, sizes) + within
        return bool((self.prior[entries] + self.counts[entries]).min() >= CAREFUL_BELOW)

    # -- keeping it ---------------------------------------------------------------------------

    def copy(self) -> Self:
        """A posterior that learns on its own from here; what never changes is shared."""
        twin = object.__new__(type(self))
        twin.__dict__ |= self.__dict__
        twin.counts, twin.unused = self.counts.copy(), self.unused.copy()
        return twin

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `dowise.belief.serialization` documents the format."""
        from dowise.belief.serialization import dirichlet_page

        return dirichlet_page(self)

    @classmethod
    def from_dict(cls, page: dict[str, Any], problem: Problem) -> Self:
        """The way back from `as_dict`."""
        from dowise.belief.serialization import read_dirichlet

        posterior = cls(problem)
        read_dirichlet(posterior, page)
        return posterior


def block_size(slots: int) -> int:
    """How many lanes of a circuit with so many slots are drawn together."""
    return min(max(_CACHE // (4 * slots) // 16 * 16, _SMALLEST_BLOCK), _LARGEST_BLOCK)


def checked_samples(samples: int, circuit: Circuit, is_fine: bool) -> int:
    """A number of draws for which there is room."""
    count = check_integer("samples", samples, 1)
    arms, others = circuit.results.shape
    size = count * arms * (4 * others if is_fine else 8 * (others + 1))
    if size > MAX_BYTES:
        raise DowiseError(
            f"{count:,} draws for {arms:,} arms take {size:.1e} bytes: draw fewer at a time"
        )
    return count


MAX_CONTEXTS = 1024  # whose readings are kept

_shared_kernels = lazy_kernels("dowise.belief.mixture_kernels")


class Shared:
    """All that every mixture of a problem has in common."""

    def __init__(self, problem: Problem) -> None:
        self.model = model_of(problem)
        self.structures = structures = self.model.structures
        self.choices = Choices(structures)
        self.under = structures.tables_under(structures.factors.sets)
        self._readings: dict[Codes, Reading] = {}
        self._context = problem.context_positions

    @cached_property
    def tables(self) -> Any:
        """For kernels."""
        structures, tables = self.structures, self.structures.tables
        scored = np.array(
            [structures.scored >> v & 1 for v in range(len(tables.sizes))], dtype=bool
        )
        return _shared_kernels.Tables(
            structures.first, tables.starts, tables.strides, tables.sizes, scored
        )

    @cached_property
    def _reading(self) -> Reading:
        return reading_of(self.structures, self.model.circuit, self._context)

    @cached_property
    def _whole_reading(self) -> Reading:
        return reading_of(self.structures, self.model.whole_circuit, self._context)

    @cached_property
    def trace_reading(self) -> Reading:
        """What the circuit of all that is seen (`Model.trace`) reads in the first context."""
        return reading_of(self.structures, self.model.trace, self._context)

    def reading(self, codes: Codes) -> Reading:
        """What the circuit reads under this context."""
        found = self._readings.get(codes)
        if found is None:
            if len(self._readings) >= MAX_CONTEXTS:
                self._readings.clear()
            found = self._readings[codes] = moved(self._reading, codes)
        return found

    def whole_reading(self, codes: Codes) -> Reading:
        """The same for the circuit with the reward's first value."""
        return moved(self._whole_reading, codes)


@lru_cache(maxsize=32)
def shared_of(problem: Problem) -> Shared:
    """Of a problem, built once however many mixtures there are of it."""
    shared = Shared(problem)
    _say_what_is_left_out(shared.structures)
    return shared


def _say_what_is_left_out(structures: Structures) -> None:
    if structures.cut:
        names, (sets, serve) = max(structures.cut.items(), key=lambda cut: cut[1])
        warnings.warn(
            f"there are {sets:,} sets of doubtful edges around {names}: of these the {serve} "
            "likeliest serve. All that was left out counted, what is there is among the rest with "
            f"prior probability {structures.kept:.3f}; to have all, mark edges as certain or leave "
            "them out",
            DowiseWarning,
            stacklevel=4,
        )


def moved(reading: Reading, codes: Codes) -> Reading:
    """What is read under this context."""
    shift = reading.shifts @ np.array(codes, dtype=np.int64)
    return reading._replace(entries=reading.entries + shift)


DRAWN_LANES = 4 * MAX_LANES

_mixture_kernels = lazy_kernels("dowise.belief.mixture_kernels")
_draws = lazy_kernels("dowise.belief.mixture_kernels")


class Mixture:
    """A mixture over sets of doubtful edges of Dirichlet posteriors; see `Posterior`.

    `prior` is a number, or numbers by variable (`dowise.belief.prior`); the problem's unless given.
    """

    def __init__(self, problem: Problem, prior: Prior | None = None) -> None:
        self.problem = problem
        prior = problem.prior if prior is None else prior
        self.shared = shared_of(problem)
        self.model = self.shared.model
        structures = self.shared.structures
        self.prior: NDArray[np.float64] = prior_counts(structures.tables, self.model.factors, prior)
        """The prior's parameter of every entry of every version's tables."""
        self.counts: NDArray[np.int64] = np.zeros(len(self.prior), dtype=np.int64)
        """How often every entry was seen."""
        self.evidence: NDArray[np.int64] = np.zeros(len(structures.versions), dtype=np.int64)
        """The logarithm of each version's evidence, in 2⁻³⁶ nats: a function of the counts."""
        variables = len(self.model.factors.variables)
        self.unused: NDArray[np.int64] = np.zeros((variables, variables + 1), dtype=np.int64)
        """As in `Dirichlet`."""
        self.block = block_size(self.model.circuit.slots)

    @cached_property
    def is_fine(self) -> bool:
        """Whether single precision tells draws apart, whatever is learned."""
        return bool(self.prior.min() >= CAREFUL_BELOW)

    # -- learning -----------------------------------------------------------------------------

    def learn(self, record: Record) -> None:
        """One record more, in every version of every variable that was seen with its scope.

        The scope is that of the full graph, so that every set of edges learns the same records.
        """
        if getattr(record, "problem", None) is not self.problem:
            check_record(record, self.problem)
        self._count(record, 1)

    def retract(self, record: Record) -> None:
        """One record less."""
        check_record(record, self.problem)
        before = self.counts.copy(), self.evidence.copy(), self.unused.copy()
        self._count(record, -1)
        if (self.counts < 0).any() or (self.unused < 0).any():
            self.counts[:], self.evidence[:], self.unused[:] = before
            raise DowiseError(f"{record!r} can't be retracted: it was not learned")

    def learn_many(self, records: RecordBatch) -> None:
        """Many records more."""
        check_same_problem(records, self.problem)
        if not len(records):
            return
        sets, place = records.by_set()
        factors, shared = self.model.factors, self.shared
        _mixture_kernels.learn_mixed_many(
            self.learned, shared.tables, shared.structures.tables_under(sets),
            factors.under_sets(sets), factors.strides, records.codes, records.was_set, place,
        )  # fmt: skip

    def _count(self, record: Record, step: int) -> None:
        factors, shared = self.model.factors, self.shared
        place = factors.place(record.arm)
        if place != NONE:
            tables, under = shared.under[place], factors.under_arms[place]
        else:
            sets = [self.problem.graph.mask(record.arm)]
            (tables,), (under,) = shared.structures.tables_under(sets), factors.under_sets(sets)
        self._count_codes(record.codes, record.fixed, tables, under, step)

    def count_at(self, place: int, codes: Integers, fixed: Integers) -> None:
        """Learn what was seen under an arm whose place is known."""
        under = self.model.factors.under_arms[place]
        self._count_codes(codes, fixed, self.shared.under[place], under, 1)

    def _count_codes(
        self, codes: Integers, fixed: Integers, tables: Integers, under: Integers, step: int
    ) -> None:
        strides = self.model.factors.strides
        _mixture_kernels.learn_mixed(
            self.learned, self.shared.tables, tables, under, strides, codes, fixed, step
        )

    @property
    def learned(self) -> Any:
        """All that was learned, for kernels."""
        return _mixture_kernels.Learned(self.prior, self.counts, self.evidence, self.unused)

    # -- which edges are there ------------------------------------------------------------------

    def weights(self) -> Weights:
        """How likely the sets of edges are."""
        return self._weights(self.evidence)

    def _weights(self, evidence: Integers) -> Weights:
        weights = self.shared.choices.room()
        _mixture_kernels.weigh(evidence, self.shared.choices.options, weights)
        return weights

    def edges(self) -> dict[str, float]:
        """How likely each doubtful edge is that makes a difference."""
        return self.edges_of_today()()

    def edges_of_today(self) -> Callable[[], dict[str, float]]:
        """What tells how likely edges are today, also when it is asked later."""
        evidence = self.evidence.copy()
        return lambda: self.shared.choices.edge_chances(self._weights(evidence))

    # -- what it says -------------------------------------------------------------------------

    def times_learned(self) -> Integers:
        """How many records taught something about each variable: the same in all its versions."""
        structures = self.shared.structures
        each = np.add.reduceat(self.counts, structures.tables.starts[:-1])
        total = np.bincount(structures.tables.targets, each).astype(np.int64)
        return total // np.diff(structures.first)

    def mean_entries(self) -> NDArray[np.float64]:
        """The posterior mean of every entry of the full graph's factors, over all sets of edges."""
        structures, factors = self.shared.structures, self.model.factors
        chances = self.shared.choices.version_chances(self.weights())
        own = structures.tables.normalised(self.prior + self.counts)
        means = np.zeros(factors.entries)
        for m, version in enumerate(structures.versions):
            for f in np.flatnonzero(factors.targets == version.variable).tolist():
                t = structures.table_of[m, f]
                axes = structures.tables.families[t]
                spread = tuple(slice(None) if u in axes else None for u in factors.families[f])
                factors.table(means, f)[...] += chances[m] * structures.tables.table(own, t)[spread]
        return means

    def mean_distributions(self, codes: Codes) -> NDArray[np.float64]:
        """P(Y = y | do(arm), c), averaged over the posterior: an array (arms, values of Y).

        Given the edges it is the circuit at the mean entries, as in `Dirichlet`; these are averaged
        over all sets of edges (`belief.means`), or where they are too many over some thousand of
        them that are drawn.
        """
        shared, weights = self.shared, self.weights()
        reading = shared.reading(codes)
        lanes = lanes_of(shared.choices, weights, reading.variables.tolist())
        if lanes is None:
            lanes = self._drawn_lanes(weights)
        tables = shared.structures.tables
        means = tables.normalised(self.prior + self.counts)
        rows = mean_inputs(lanes, means, reading, self.model.circuit, shared.structures.first)
        chances = np.array([chance for chance, _ in lanes])
        return with_first_value(self.model.run(rows) @ (chances / chances.sum()))

    @cached_property
    def has_exact_means(self) -> bool:
        """Whether there are few enough sets of edges for `mean_distributions` to be exact."""
        anywhere = (0,) * len(self.problem.context)
        read = self.shared.reading(anywhere).variables.tolist()
        return lanes_of(self.shared.choices, self.weights(), read) is not None

    def _drawn_lanes(self, weights: Weights) -> list[Lane]:
        """Sets of edges that are drawn, always the same for the same weights."""
        versions = np.zeros((len(self.model.factors.variables), DRAWN_LANES), dtype=np.int64)
        options, key = self.shared.choices.options, draw_key(generator(0))
        _draws.choose(key, len(self.counts), options, weights, 0, DRAWN_LANES, versions)
        several = np.flatnonzero(np.diff(self.shared.structures.first) > 1).tolist()
        kinds, counts = np.unique(versions[several], axis=1, return_counts=True)
        pairs = zip(kinds.T.tolist(), counts.tolist(), strict=True)
        return [
            (float(n), {v: {m: 1.0} for v, m in zip(several, own, strict=True)}) for own, n in pairs
        ]

    def draw(self, codes: Codes, samples: int, rng: Random) -> Draws:
        """The distribution of the reward under every arm, for draws from the posterior.

        Every draw has a set of edges of its own. Equal seeds give equal entries in every context.
        """
        circuit, is_fine = self.model.circuit, self.is_fine_in(codes)
        key, count = draw_key(generator(rng)), checked_samples(samples, circuit, is_fine)
        if is_fine:
            return self.draw_lanes(key, codes, 0, count)
        return self.draw_whole_lanes(key, codes, 0, count)

    def is_fine_in(self, _codes: Codes) -> bool:
        """Whether single precision tells draws apart by now."""
        return self.is_fine or bool((self.prior + self.counts).min() >= CAREFUL_BELOW)

    def draw_lanes(self, key: Key, codes: Codes, first: int, count: int) -> Draws:
        """See `Dirichlet.draw_lanes`."""
        circuit, shared = self.model.circuit, self.shared
        out = np.empty((*circuit.results.shape, count), dtype=np.float32)
        _draws.draw_mixed(
            key, self.learned, shared.tables, shared.choices.options, shared.choices.room(),
            shared.reading(codes), circuit.tape, self.block, first, out,
        )  # fmt: skip
        return Draws(out)

    def draw_whole_lanes(self, key: Key, codes: Codes, first: int, count: int) -> Draws:
        """See `Dirichlet.draw_whole_lanes`."""
        circuit, shared = self.model.whole_circuit, self.shared
        whole = np.empty((*circuit.results.shape, count))
        _draws.draw_mixed_whole(
            key, self.learned, shared.tables, shared.choices.options, shared.choices.room(),
            shared.whole_reading(codes), circuit.tape, self.block, first, whole,
        )  # fmt: skip
        return Draws(whole[:, 1:], whole, self.model.kinds, int(key[0]), first)

    # -- keeping it ---------------------------------------------------------------------------

    def copy(self) -> Self:
        """A posterior that learns on its own from here; what never changes is shared."""
        twin = object.__new__(type(self))
        twin.__dict__ |= self.__dict__
        twin.counts, twin.evidence = self.counts.copy(), self.evidence.copy()
        twin.unused = self.unused.copy()
        return twin

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `dowise.belief.serialization` documents the format."""
        from dowise.belief.serialization import mixture_page

        return mixture_page(self)

    @classmethod
    def from_dict(cls, page: dict[str, Any], problem: Problem) -> Self:
        """The way back from `as_dict`."""
        from dowise.belief.serialization import read_mixture

        posterior = cls(problem)
        read_mixture(posterior, page)
        return posterior

    def weigh_anew(self) -> None:
        """Work the evidence out from prior and counts."""
        structures, tables = self.shared.structures, self.shared.structures.tables
        for m, version in enumerate(structures.versions):
            if structures.scored >> version.variable & 1:
                own = np.isin(tables.row_tables, structures.table_of[m])
                self.evidence[m] = _mixture_kernels.evidence_of(
                    self.prior, self.counts, tables.row_starts[own], tables.row_sizes[own]
                )


def posterior_for(problem: Problem) -> type[Dirichlet] | type[Mixture]:
    """What is known of a problem's numbers: a mixture where a doubtful edge makes a difference."""
    if not problem.edge_priors or model_of(problem).structures.is_settled:
        return Dirichlet
    return Mixture
