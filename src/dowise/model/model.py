"""Model of a problem: everything that does not depend on records.

It has the layout of the factors and the circuit from their entries to the distribution of the
reward under every arm. A belief supplies posterior draws of the entries, an environment the true
ones. The circuit is built when it is first needed; a single set of entries does without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache

import numpy as np

from dowise._core.kernels import lazy_kernels
from dowise._core.types import AnyArray, FloatArray, IntArray
from dowise.errors import DowiseError
from dowise.model.circuit import Circuit
from dowise.model.edge_structures import Structures
from dowise.model.elimination import Plans
from dowise.model.factors import Codes, FactorLayout
from dowise.model.reward_circuit import (
    means_size_message,
    reward_circuit,
    reward_distributions,
    size_message,
)
from dowise.problem import Problem

_kernels = lazy_kernels("dowise.model.kernels")
_NO_QUOTIENTS = np.zeros(1)
_MAX_NUMBERS = 2**18  # intermediate values of a circuit that runs in several contexts together

MAX_CELLS = 2**26  # entries of an intermediate table: half a gigabyte
MAX_MULTIPLICATIONS = 1e10  # for a single set of entries: about a minute


class Model:
    """Factors and reward circuit of a problem, independent of records.

    Use `model_of`, which builds the model of a problem once.

    Parameters
    ----------
    problem : Problem
        The problem to model.

    Examples
    --------
    >>> from dowise.problem import load_problem
    >>> model = model_of(load_problem("task1"))
    >>> model.factors.names
    ('X', 'Y', 'Z')
    >>> model.distributions(model.factors.uniform, ()).tolist()[0]  # under do()
    [0.5, 0.5]
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.factors = FactorLayout(problem)
        self._rows: dict[Codes, IntArray] = {}
        self._whole_rows: dict[Codes, IntArray] = {}

    @cached_property
    def _plans(self) -> Plans:
        return Plans(self.problem, self.factors)

    @cached_property
    def _whole_plans(self) -> Plans:
        return Plans(self.problem, self.factors, whole=True)

    @cached_property
    def circuit(self) -> Circuit:
        """Circuit of the rewards: results[arm, y − 1], for all values y but the first.

        Raises `DowiseError` if it takes more than `max_program` multiplications.
        """
        if not self.has_circuit:
            raise DowiseError(size_message(self._plans), code="too-large")
        return reward_circuit(self._plans)

    @property
    def has_circuit(self) -> bool:
        """True if the circuit is within the problem's limit."""
        return self._plans.multiplications <= self.problem.max_program

    @cached_property
    def whole_circuit(self) -> Circuit:
        """Circuit with the reward's first value, up to twice as large: results[arm, y]."""
        assert self.has_circuit
        return reward_circuit(self._whole_plans)

    @cached_property
    def trace(self) -> Circuit:
        """Circuit of P(Y = y | do(arm), c) for the reverse mode in `dowise.model.kernels`.

        Every variable that some arm's reward needs is summed out under every arm that does not set
        it, and no slot is used twice.
        """
        if not self.has_circuit:
            raise DowiseError(size_message(self._plans), code="too-large")
        if not self.has_trace:
            raise DowiseError(
                "the circuit through all variables under every arm takes "
                f"{self._trace_plans.multiplications:.1e} multiplications, more than max_program = "
                f"{self.problem.max_program:,}: raise it, or use a policy such as ids or ts, which "
                "do not need this circuit",
                code="too-large",
            )
        return reward_circuit(self._trace_plans, keep=True)

    @cached_property
    def _trace_plans(self) -> Plans:
        families, needed = self.factors.families, set[int]()
        for plan in self._plans.of.values():
            needed.update(families[f][-1] for f in plan.factors)
        return Plans(self.problem, self.factors, whole=True, followed=frozenset(needed))

    @property
    def trace_multiplications(self) -> float:
        """Number of multiplications of `trace`; known without compiling it."""
        return self._trace_plans.multiplications

    @property
    def has_trace(self) -> bool:
        """True if `trace` is within the limit."""
        limit = self.problem.max_program
        return self.has_circuit and self._trace_plans.multiplications <= limit

    @cached_property
    def kinds(self) -> IntArray:
        """Number of each arm, equal for arms that have the same reward in every world."""
        kinds = np.unique(self.whole_circuit.results, axis=0, return_inverse=True)[1]
        return kinds.ravel()

    @cached_property
    def structures(self) -> Structures:
        """Sets of doubtful edges, and the tables under each."""
        problem = self.problem
        return Structures(self.factors, problem.edge_priors, has_narrow=problem.edge_rules > 1)

    def rows(self, codes: Codes) -> IntArray:
        """Return the first entries of the rows that feed the circuit in this context.

        The context-conditioned posterior of section 4 differs from the posterior only in the rows
        of the context variables themselves, and no arm's reward depends on those.
        """
        rows = self._rows.get(codes)
        if rows is None:
            rows = self._rows[codes] = self.rows_of(self.circuit, codes)
        return rows

    def whole_rows(self, codes: Codes) -> IntArray:
        """Return the first entries of the rows that feed the whole circuit in this context."""
        rows = self._whole_rows.get(codes)
        if rows is None:
            rows = self._whole_rows[codes] = self.rows_of(self.whole_circuit, codes)
        return rows

    def rows_of(self, circuit: Circuit, codes: Codes) -> IntArray:
        """Return the first entries of the rows that feed another circuit of this model."""
        return self.first_entries(circuit.blocks, codes)

    def first_entries(self, rows: IntArray, codes: Codes) -> IntArray:
        """Return the first entries of rows, numbered in the first context, in this one."""
        tables = self.factors.row_tables[rows]
        strides = self.factors.strides[tables][:, self.problem.context_positions]
        shift: IntArray = strides @ np.array(codes, dtype=np.int64)
        return self.factors.row_starts[rows] + shift

    def distributions(self, entries: FloatArray, codes: Codes) -> FloatArray:
        """Return P(Y = y | do(arm), c) at these entries of all factors: (arms, values of Y).

        It is exact even if the circuit would be too large.
        """
        if not self.has_circuit:
            self.check_distributions()
            return reward_distributions(self._whole_plans, entries, codes)
        return with_first_value(self.evaluated(entries[:, None], codes)[..., 0])

    def distributions_in(
        self, entries: Sequence[FloatArray], contexts: Sequence[Codes]
    ) -> Iterator[FloatArray]:
        """Yield `distributions` for pairs of entries and contexts, in parts (pairs, arms, values).

        The results are bit for bit those of single calls.
        """
        pairs = list(zip(entries, contexts, strict=True))
        if not self.has_circuit:
            yield from (self.distributions(*pair)[None] for pair in pairs)
            return
        together = max(1, _MAX_NUMBERS // self.circuit.slots)
        places = {codes: self._places(codes) for codes in dict.fromkeys(contexts)}
        for start in range(0, len(pairs), together):
            columns = [flat[places[codes]] for flat, codes in pairs[start : start + together]]
            probabilities = np.moveaxis(self.run(np.stack(columns, axis=1)), -1, 0)
            yield with_first_value(np.ascontiguousarray(probabilities), axis=2)

    def check_distributions(self) -> None:
        """Raise `DowiseError` if even a single set of entries takes too much time or memory."""
        if self.has_circuit:
            return
        plans = self._whole_plans
        cells = max(plans.cells(plan.largest) for plan in plans.of.values())
        if cells > MAX_CELLS or plans.multiplications > MAX_MULTIPLICATIONS:
            raise DowiseError(means_size_message(plans), code="too-large")

    def evaluated(self, entries: AnyArray, codes: Codes) -> AnyArray:
        """Run the circuit at (entries, lanes); return (arms, values of Y but the first, lanes).

        The results have the precision of the entries.
        """
        return self.run(entries[self._places(codes)])

    def _places(self, codes: Codes) -> IntArray:
        """Return the entries that are the inputs of the circuit in this context."""
        return np.repeat(self.rows(codes), self.circuit.block_sizes) + self._within

    @cached_property
    def _within(self) -> IntArray:
        """Position of each input within its block."""
        sizes = self.circuit.block_sizes
        return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)

    def run(self, inputs: AnyArray) -> AnyArray:
        """Run the circuit at (inputs, lanes), the blocks of inputs one after the other."""
        circuit, constants = self.circuit, self.circuit.constants
        values = np.empty((circuit.slots, inputs.shape[1]), dtype=inputs.dtype)
        values[: len(constants)] = constants[:, None]
        values[len(constants) : len(constants) + len(inputs)] = inputs
        _kernels.run_circuit(values, inputs.shape[1], circuit.operations, _NO_QUOTIENTS)
        return values[circuit.results]


@lru_cache(maxsize=32)
def model_of(problem: Problem) -> Model:
    """Return the model of a problem, built once for all beliefs and environments.

    Parameters
    ----------
    problem : Problem
        The problem to model.

    Returns
    -------
    Model
        The same object for equal problems.

    Raises
    ------
    DowiseError
        If the tables of the factors have more than `MAX_ENTRIES` entries.

    Examples
    --------
    >>> from dowise.problem import load_problem
    >>> model_of(load_problem("task1")) is model_of(load_problem("task1"))
    True
    """
    return Model(problem)


def with_first_value(others: AnyArray, axis: int = 1) -> AnyArray:
    """Prepend the probability of the reward's first value, one minus the others."""
    first = 1 - others.sum(axis=axis, keepdims=True)
    return np.concatenate([np.maximum(first, 0), others], axis=axis)
