"""What all mixtures of a problem have in common, built once."""

from __future__ import annotations

import warnings
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from dowise.belief.options import Choices
from dowise.compiling import kernels_of
from dowise.errors import DowiseWarning
from dowise.model import Codes, model_of
from dowise.model.reading import Reading, reading_of
from dowise.model.structures import Structures
from dowise.problem import Problem

__all__ = ["Shared", "moved", "shared_of"]

MAX_CONTEXTS = 1024  # whose readings are kept

_kernels = kernels_of("dowise.belief.mixture_kernels")


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
        return _kernels.Tables(
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
