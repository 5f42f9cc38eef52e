"""The posterior of section 4: an independent Dirichlet distribution for each row of each factor.

Its parameters are the prior's plus how often each value was seen, equations (2) and (3). The two
are kept apart, so that learning and retracting count by whole numbers and no rounding is left.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dowise.belief.prior import Prior, prior_counts
from dowise.checks import whole_number
from dowise.compiling import kernels_of
from dowise.errors import DowiseError
from dowise.model import Codes, model_of
from dowise.model.circuit import Circuit
from dowise.model.draws import Draws
from dowise.model.factors import NONE
from dowise.problem import Problem, Record
from dowise.problem.record import RecordBatch, check_record, check_same_problem
from dowise.randomness import Random, generator, key_of

__all__ = ["Dirichlet"]

Integers = NDArray[np.int64]
Key = NDArray[np.uint64]
"""Of a call of a counter-based kernel: `randomness.key_of`."""

MAX_BYTES = 16 * 2**30  # of one array of draws
# From here on two arms are at 1 together, in single precision, once in 1e8 draws.
CAREFUL_BELOW = 0.5
# All values of a block of lanes should fit in the second-level cache of a core.
_CACHE = 512 * 1024
_LARGEST_BLOCK, _SMALLEST_BLOCK = 256, 16

_kernels = kernels_of("dowise.belief.kernels")
_careful = kernels_of("dowise.belief.careful")


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
        out = np.empty((factors.entries, whole_number("samples", samples, 1)), dtype=np.float32)
        key = key_of(generator(rng))
        starts, sizes = factors.row_starts, factors.row_sizes
        _kernels.draw_entries(key, self.parameters, starts, sizes, self.block, out)
        return out

    def draw(self, codes: Codes, samples: int, rng: Random) -> Draws:
        """The distribution of the reward under every arm, for draws from the posterior.

        Drawing and evaluating in one kernel, lane by lane. Equal seeds give equal entries in every
        context: a variate is a hash of the key, its entry and its lane.
        """
        circuit, is_fine = self.model.circuit, self.is_fine_in(codes)
        key, count = key_of(generator(rng)), checked_samples(samples, circuit, is_fine)
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
        """For JSON; `dowise.belief.storage` documents the format."""
        from dowise.belief.storage import dirichlet_page

        return dirichlet_page(self)

    @classmethod
    def from_dict(cls, page: dict[str, Any], problem: Problem) -> Self:
        """The way back from `as_dict`."""
        from dowise.belief.storage import read_dirichlet

        posterior = cls(problem)
        read_dirichlet(posterior, page)
        return posterior


def block_size(slots: int) -> int:
    """How many lanes of a circuit with so many slots are drawn together."""
    return min(max(_CACHE // (4 * slots) // 16 * 16, _SMALLEST_BLOCK), _LARGEST_BLOCK)


def checked_samples(samples: int, circuit: Circuit, is_fine: bool) -> int:
    """A number of draws for which there is room."""
    count = whole_number("samples", samples, 1)
    arms, others = circuit.results.shape
    size = count * arms * (4 * others if is_fine else 8 * (others + 1))
    if size > MAX_BYTES:
        raise DowiseError(
            f"{count:,} draws for {arms:,} arms take {size:.1e} bytes: draw fewer at a time"
        )
    return count
