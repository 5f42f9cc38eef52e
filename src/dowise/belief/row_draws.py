"""Draws of rows themselves, lane for lane those that the rewards of the same key come from."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dowise.belief.dirichlet import MAX_BYTES, Dirichlet, Key
from dowise.belief.mixture import Mixture
from dowise.belief.shared import MAX_CONTEXTS, moved, shared_of
from dowise.compiling import kernels_of
from dowise.errors import DowiseError
from dowise.model import Codes
from dowise.model.circuit import Builder
from dowise.model.model import Model
from dowise.model.reading import Reading, reading_of

__all__ = ["RowDraws"]

_kernels = kernels_of("dowise.belief.kernels")
_draws = kernels_of("dowise.belief.mixture_draws")


class RowDraws:
    """Some rows of a model's factors, given by number, in the context of all first values.

    They are drawn by a circuit without operations, whose inputs are its results: so one posterior
    draws them as the other does, each lane with a set of edges of its own where some are doubtful.
    """

    def __init__(self, model: Model, rows: NDArray[np.int64]) -> None:
        self.model = model
        builder = Builder()
        entries = builder.input_blocks(model.factors.row_sizes[rows])
        circuit = builder.finish(entries.reshape(-1, 1))
        self.circuit = circuit._replace(blocks=rows[circuit.blocks])
        self._known: dict[Codes, NDArray[np.int64]] = {}

    @cached_property
    def _reading(self) -> Reading:
        problem = self.model.problem
        return reading_of(shared_of(problem).structures, self.circuit, problem.context_positions)

    def _starts(self, codes: Codes) -> NDArray[np.int64]:
        found = self._known.get(codes)
        if found is None:
            if len(self._known) >= MAX_CONTEXTS:
                self._known.clear()
            found = self._known[codes] = self.model.rows_of(self.circuit, codes)
        return found

    def draw(
        self, posterior: Dirichlet | Mixture, key: Key, codes: Codes, count: int
    ) -> NDArray[np.float32]:
        """The entries of the rows, one row behind the other, in this context: (entries, count)."""
        circuit = self.circuit
        entries = len(circuit.results)
        if 4 * entries * count > MAX_BYTES:
            raise DowiseError(
                f"{count:,} draws of {entries:,} entries take {4.0 * entries * count:.1e} bytes: "
                "draw fewer samples"
            )
        out = np.empty((entries, 1, count), dtype=np.float32)
        if isinstance(posterior, Dirichlet):
            rows = self._starts(codes)
            _kernels.draw_results(
                key, posterior.prior, posterior.counts, rows, circuit.tape, posterior.block, 0, out
            )
        else:
            shared = posterior.shared
            _draws.draw_mixed(
                key, posterior.learned, shared.tables, shared.choices.options,
                shared.choices.room(), moved(self._reading, codes), circuit.tape, posterior.block,
                0, out,
            )  # fmt: skip
        return out[:, 0]
