"""All of a problem's mathematics that does not depend on what is known.

Where each entry of each factor stands, and the circuit from the entries to the distribution of the
reward under every arm. A belief brings posterior draws of the entries, a world the true ones. The
circuit is built when it is first needed: what asks for one set of numbers at a time does without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise._core.kernels import lazy_kernels
from dowise.errors import DowiseError
from dowise.model.circuit import Circuit
from dowise.model.edge_structures import Structures
from dowise.model.elimination import Plans
from dowise.model.factors import Factors
from dowise.model.reward_circuit import (
    reward_circuit,
    reward_distributions,
    too_large,
    too_large_at_once,
)
from dowise.problem import Problem

__all__ = ["Codes", "Model", "model_of", "with_first_value"]

Codes = tuple[int, ...]
"""Of a context: the positions of its values, in the order of names."""

_kernels = lazy_kernels("dowise.model.kernels")
_NONE = np.zeros(1)
_ROOM = 2**18  # numbers on the way, of a circuit in several contexts at once

MAX_CELLS = 2**26  # of a table of numbers on the way: half a gigabyte
MAX_AT_ONCE = 1e10  # multiplications at one set of numbers: about a minute


class Model:
    """Factors and reward circuit of a problem: built once, whatever is learned."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.factors = Factors(problem)
        self._rows: dict[Codes, NDArray[np.int64]] = {}

    @cached_property
    def _plans(self) -> Plans:
        return Plans(self.problem, self.factors)

    @cached_property
    def _whole_plans(self) -> Plans:
        return Plans(self.problem, self.factors, whole=True)

    @cached_property
    def circuit(self) -> Circuit:
        """results[arm, y − 1]: all values of the reward but the first."""
        if not self.has_circuit:
            raise DowiseError(self._too_large)
        return reward_circuit(self._plans)

    @cached_property
    def _too_large(self) -> str:
        return too_large(self._plans)  # takes a while

    @property
    def has_circuit(self) -> bool:
        """Whether the circuit is within the problem's limit."""
        return self._plans.multiplications <= self.problem.max_program

    @cached_property
    def whole_circuit(self) -> Circuit:
        """The same with the reward's first value: results[arm, y]. It is up to twice as large."""
        assert self.has_circuit
        return reward_circuit(self._whole_plans)

    @cached_property
    def trace(self) -> Circuit:
        """P(Y = y | do(arm), c) of every arm and value, through all variables that are seen.

        Every variable that some arm's reward needs is summed out under every arm that leaves it be,
        and no slot is used twice: for passes backward (`dowise.model.kernels`).
        """
        if not self.has_circuit:
            raise DowiseError(self._too_large)
        if not self.has_trace:
            raise DowiseError(
                f"what all variables teach under every arm takes "
                f"{self._trace_plans.multiplications:.1e} multiplications, and the limit is "
                f"{self.problem.max_program:.1e}: raise max_program, or choose a policy such as "
                "ids or ts, which do without"
            )
        return reward_circuit(self._trace_plans, keep=True)

    @cached_property
    def _trace_plans(self) -> Plans:
        families, needed = self.factors.families, set[int]()
        for plan in self._plans.of.values():
            needed.update(families[f][-1] for f in plan.factors)
        return Plans(self.problem, self.factors, whole=True, followed=frozenset(needed))

    @property
    def has_trace(self) -> bool:
        """Whether `trace` is within the limit."""
        limit = self.problem.max_program
        return self.has_circuit and self._trace_plans.multiplications <= limit

    @cached_property
    def kinds(self) -> NDArray[np.int64]:
        """A number for each arm, the same for arms that are alike in every world."""
        kinds = np.unique(self.whole_circuit.results, axis=0, return_inverse=True)[1]
        return kinds.ravel()

    @cached_property
    def structures(self) -> Structures:
        """What doubtful edges leave open."""
        return Structures(self.factors, self.problem.edge_priors)

    def rows(self, codes: Codes) -> NDArray[np.int64]:
        """The first entries of the rows that feed the circuit under this context.

        The context-conditioned posterior of section 4 differs from the posterior only in the rows
        of the context variables themselves, and no arm's reward depends on those.
        """
        found = self._rows.get(codes)
        if found is None:
            found = self._rows[codes] = self.rows_of(self.circuit, codes)
        return found

    def rows_of(self, circuit: Circuit, codes: Codes) -> NDArray[np.int64]:
        """The same for another circuit of this model's rows."""
        return self.first_entries(circuit.blocks, codes)

    def first_entries(self, rows: NDArray[np.int64], codes: Codes) -> NDArray[np.int64]:
        """Where rows that are given in the context of all first values start under this one."""
        tables = self.factors.row_tables[rows]
        strides = self.factors.strides[tables][:, self.problem.context_positions]
        shift: NDArray[np.int64] = strides @ np.array(codes, dtype=np.int64)
        return self.factors.row_starts[rows] + shift

    def distributions(self, entries: NDArray[np.float64], codes: Codes) -> NDArray[np.float64]:
        """P(Y = y | do(arm), c) at these entries of all factors: an array (arms, values of Y).

        Exact also where the circuit would be too large.
        """
        if not self.has_circuit:
            self.check_distributions()
            return reward_distributions(self._whole_plans, entries, codes)
        return with_first_value(self.evaluated(entries[:, None], codes)[..., 0])

    def distributions_in(
        self, entries: Sequence[NDArray[np.float64]], contexts: Sequence[Codes]
    ) -> Iterator[NDArray[np.float64]]:
        """The same in several contexts, which have entries each: parts (contexts, arms, values).

        Bit by bit as each alone: what is summed over lies close together in both.
        """
        pairs = list(zip(entries, contexts, strict=True))
        if not self.has_circuit:
            yield from (self.distributions(*pair)[None] for pair in pairs)
            return
        together = max(1, _ROOM // self.circuit.slots)
        places = {codes: self._places(codes) for codes in dict.fromkeys(contexts)}
        for start in range(0, len(pairs), together):
            columns = [flat[places[codes]] for flat, codes in pairs[start : start + together]]
            found = self.run(np.stack(columns, axis=1))
            yield with_first_value(np.ascontiguousarray(np.moveaxis(found, -1, 0)), axis=2)

    def check_distributions(self) -> None:
        """Raise where even one set of numbers takes too much time or room."""
        if self.has_circuit:
            return
        plans = self._whole_plans
        cells = max(plans.cells(plan.largest) for plan in plans.of.values())
        if cells > MAX_CELLS or plans.multiplications > MAX_AT_ONCE:
            raise DowiseError(too_large_at_once(plans, cells))

    def evaluated(self, entries: NDArray[Any], codes: Codes) -> NDArray[Any]:
        """The circuit at entries (entries, lanes): (arms, values of Y but the first, lanes).

        In the precision of the entries.
        """
        return self.run(entries[self._places(codes)])

    def _places(self, codes: Codes) -> NDArray[np.int64]:
        """Which entries are the circuit's inputs under this context."""
        return np.repeat(self.rows(codes), self.circuit.block_sizes) + self._within

    @cached_property
    def _within(self) -> NDArray[np.int64]:
        """Of each input, where it stands in its block."""
        sizes = self.circuit.block_sizes
        return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)

    def run(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """The circuit at (inputs, lanes): all blocks one behind the other, which is as they lie."""
        circuit, constants = self.circuit, self.circuit.constants
        values = np.empty((circuit.slots, inputs.shape[1]), dtype=inputs.dtype)
        values[: len(constants)] = constants[:, None]
        values[len(constants) : len(constants) + len(inputs)] = inputs
        _kernels.run_circuit(values, inputs.shape[1], circuit.operations, _NONE)
        return values[circuit.results]


@lru_cache(maxsize=32)
def model_of(problem: Problem) -> Model:
    """The model of a problem, built once however many beliefs and worlds there are of it."""
    return Model(problem)


def with_first_value(others: NDArray[Any], axis: int = 1) -> NDArray[Any]:
    """Put the probability of the reward's first value, one minus the others, in front."""
    first = 1 - others.sum(axis=axis, keepdims=True)
    return np.concatenate([np.maximum(first, 0), others], axis=axis)
