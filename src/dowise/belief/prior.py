"""Prior counts: one number for every entry, or counts for each variable, or a file of those."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dowise._core.files import read_file
from dowise._core.types import FloatArray
from dowise.errors import DowiseError, suggestion
from dowise.model import FactorLayout
from dowise.model.factors import TableLayout
from dowise.problem.prior import Prior, checked_counts, fits, misfit, parse_prior

__all__ = ["Prior", "parse_prior", "prior_counts"]


def prior_counts(tables: TableLayout, factors: FactorLayout, prior: Prior) -> FloatArray:
    """The flat array of Dirichlet parameters α of these tables: the factors, or their versions.

    A mapping gives for a variable a number (every entry of its tables) or an array that fits its
    CPT: axes the parents in the order of names, then the variable; a shorter array is repeated over
    the parents. Where hidden causes give a variable several factors, a factor's name stands for one
    of them ("Y | X", if no edge is doubtful), and the variable's for all. Variables that it does
    not name get 1. A path is a TOML file with such a mapping.
    """
    if isinstance(prior, str | Path):
        if isinstance(prior, str) and not os.path.lexists(prior):
            raise DowiseError(
                f"prior={prior!r}: there is no such file; give a number, such as 1.0, counts by "
                "variable, or the path of a TOML file of those"
            )
        return read_file(prior, lambda text: prior_counts(tables, factors, parse_prior(text)))
    if not isinstance(prior, Mapping):
        alpha = checked_counts(prior, f"prior={prior!r}")
        if alpha.ndim:
            raise DowiseError(
                f"prior={prior!r}: give one number, or a mapping from variable to counts"
            )
        return np.full(tables.entries, float(alpha))
    flat = np.ones(tables.entries)
    # What is said of one factor counts more than what is said of a variable.
    for name in sorted(prior, key=lambda name: name not in factors.positions):
        counts = checked_counts(prior[name], f"the prior of {name}")
        for t in _meant(tables, factors, name):
            if not fits(counts.shape, tables.shapes[t]):
                raise DowiseError(_misfit(tables, factors, name, t))
            tables.table(flat, t)[...] = counts
    return flat


def _meant(tables: TableLayout, factors: FactorLayout, name: str) -> list[int]:
    """The tables that a name stands for."""
    if name in factors.positions:
        return np.flatnonzero(tables.targets == factors.positions[name]).tolist()
    if tables is factors and name in factors.names:
        return [factors.names.index(name)]
    if name in factors.names:
        raise DowiseError(
            f"the prior names {name!r}, but doubtful edges give its variable several tables: give "
            "one number, or one for each value, under the variable's name, or make edges certain"
        )
    known = {*factors.variables, *factors.names} if tables is factors else factors.variables
    raise DowiseError(
        f"the prior names {name!r}, which is no variable{suggestion(str(name), known)}"
    )


def _misfit(tables: TableLayout, factors: FactorLayout, name: str, t: int) -> str:
    *_, size = shape = tables.shapes[t]
    if (tables.targets == tables.targets[t]).sum() == 1 or name not in factors.positions:
        return misfit(name, shape, (factors.variables[v] for v in tables.families[t]))
    several = f"the prior of {name} does not fit all of its tables, because "
    if tables is factors:
        own = ", ".join(repr(n) for n, v in zip(factors.names, factors.targets, strict=True)
                        if v == tables.targets[t])  # fmt: skip
        return (
            f"{several}hidden causes give it several: give a number, {size} numbers, or name {own}"
        )
    return f"{several}doubtful edges give it several: give a number or {size} numbers"
