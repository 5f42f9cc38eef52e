"""The posterior where edges are doubtful: Dirichlet rows for every set of edges, and its evidence.

For each set of doubtful edges the posterior is that of `Dirichlet`, over the factors of that graph;
how likely the set is follows from the counts alone (docs/hidden.md). All sets share one circuit,
that of the graph with every edge; what differs is where its rows are read (`Structures`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dowise.belief.dirichlet import CAREFUL_BELOW, Dirichlet, Key, block_size, checked_samples
from dowise.belief.means import MAX_LANES, Lane, lanes_of, mean_inputs
from dowise.belief.options import Weights
from dowise.belief.prior import Prior, prior_counts
from dowise.belief.shared import shared_of
from dowise.compiling import kernels_of
from dowise.errors import DowiseError
from dowise.model import Codes, model_of
from dowise.model.draws import Draws
from dowise.model.factors import NONE
from dowise.model.model import with_first_value
from dowise.problem import Problem, Record
from dowise.problem.record import RecordBatch, check_record, check_same_problem
from dowise.randomness import Random, generator, key_of

__all__ = ["Mixture", "posterior_for"]

Integers = NDArray[np.int64]

DRAWN_LANES = 4 * MAX_LANES

_kernels = kernels_of("dowise.belief.mixture_kernels")
_draws = kernels_of("dowise.belief.mixture_draws")


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
        _kernels.learn_mixed_many(
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
        _kernels.learn_mixed(
            self.learned, self.shared.tables, tables, under, strides, codes, fixed, step
        )

    @property
    def learned(self) -> Any:
        """All that was learned, for kernels."""
        return _kernels.Learned(self.prior, self.counts, self.evidence, self.unused)

    # -- which edges are there ------------------------------------------------------------------

    def weights(self) -> Weights:
        """How likely the sets of edges are."""
        return self._weights(self.evidence)

    def _weights(self, evidence: Integers) -> Weights:
        weights = self.shared.choices.room()
        _kernels.weigh(evidence, self.shared.choices.options, weights)
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
        options, key = self.shared.choices.options, key_of(generator(0))
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
        key, count = key_of(generator(rng)), checked_samples(samples, circuit, is_fine)
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
        """For JSON; `dowise.belief.storage` documents the format."""
        from dowise.belief.storage import mixture_page

        return mixture_page(self)

    @classmethod
    def from_dict(cls, page: dict[str, Any], problem: Problem) -> Self:
        """The way back from `as_dict`."""
        from dowise.belief.storage import read_mixture

        posterior = cls(problem)
        read_mixture(posterior, page)
        return posterior

    def weigh_anew(self) -> None:
        """Work the evidence out from prior and counts."""
        structures, tables = self.shared.structures, self.shared.structures.tables
        for m, version in enumerate(structures.versions):
            if structures.scored >> version.variable & 1:
                own = np.isin(tables.row_tables, structures.table_of[m])
                self.evidence[m] = _kernels.evidence_of(
                    self.prior, self.counts, tables.row_starts[own], tables.row_sizes[own]
                )


def posterior_for(problem: Problem) -> type[Dirichlet] | type[Mixture]:
    """What is known of a problem's numbers: a mixture where a doubtful edge makes a difference."""
    if not problem.edge_priors or model_of(problem).structures.is_settled:
        return Dirichlet
    return Mixture
