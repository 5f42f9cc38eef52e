"""Prior parameters of tables: a number for every entry, counts by variable, or a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dowise._core.files import read_file
from dowise._core.types import BoolArray, FloatArray
from dowise.errors import DowiseError, suggestion
from dowise.model import FactorLayout
from dowise.model.factors import TableLayout
from dowise.problem.prior import Prior, checked_counts, fits, misfit, parse_prior, prior_file


def prior_counts(tables: TableLayout, factors: FactorLayout, prior: Prior) -> FloatArray:
    """Return the Dirichlet parameters α of these tables, flat: the factors, or their versions.

    A mapping has for each variable a number, which is for every entry of its tables, or an array
    that fits its CPT, whose axes are the parents in the order of names, then the variable; a
    shorter array is repeated over the parents. Other variables get 1. If hidden causes give a
    variable several factors, the name of the variable stands for all of them, and the name of a
    factor ("Y | X") for one, unless edges are doubtful. A path is a TOML file with such a mapping.
    """
    if isinstance(prior, str) and prior == "flat":
        prior = 1.0
    if isinstance(prior, str | Path):
        path = prior_file(prior)
        return read_file(path, lambda text: prior_counts(tables, factors, parse_prior(text)))
    if not isinstance(prior, Mapping):
        alpha = checked_counts(prior, f"prior={prior!r}")
        if alpha.ndim:
            raise DowiseError(
                f"prior={prior!r} must be one number, or a mapping from variable to counts",
                code="invalid-type",
            )
        return np.full(tables.entries, float(alpha))
    flat = np.ones(tables.entries)
    # The name of a factor takes precedence over that of a variable.
    for name in sorted(prior, key=lambda name: name not in factors.positions):
        counts = checked_counts(prior[name], f"the prior of {name}")
        for t in _tables_named(tables, factors, name):
            if not fits(counts.shape, tables.shapes[t]):
                raise DowiseError(_misfit(tables, factors, name, t), code="invalid-shape")
            tables.table(flat, t)[...] = counts
    return flat


def named_tables(tables: TableLayout, factors: FactorLayout, prior: Prior) -> BoolArray:
    """Return True for each table that a mapping of counts names."""
    named = np.zeros(len(tables.targets), dtype=bool)
    for name in prior if isinstance(prior, Mapping) else ():
        named[_tables_named(tables, factors, name)] = True
    return named


def _tables_named(tables: TableLayout, factors: FactorLayout, name: str) -> list[int]:
    if name in factors.positions:
        return np.flatnonzero(tables.targets == factors.positions[name]).tolist()
    if tables is factors and name in factors.names:
        return [factors.names.index(name)]
    if name in factors.names:
        raise DowiseError(
            f"the prior names {name!r}, but doubtful edges give its variable several tables: pass "
            "one number, or one per value, under the variable's name, or make edges certain",
            code="doubtful-edges",
        )
    names = {*factors.variables, *factors.names} if tables is factors else factors.variables
    raise DowiseError(
        f"the prior names {name!r}, which is not a variable{suggestion(str(name), names)}",
        code="unknown-variable",
    )


def _misfit(tables: TableLayout, factors: FactorLayout, name: str, t: int) -> str:
    *_, size = shape = tables.shapes[t]
    if (tables.targets == tables.targets[t]).sum() == 1 or name not in factors.positions:
        return misfit(name, shape, (factors.variables[v] for v in tables.families[t]))
    several = f"the prior of {name} does not fit all of its tables: "
    if tables is factors:
        pairs = zip(factors.names, factors.targets, strict=True)
        names = ", ".join(repr(n) for n, v in pairs if v == tables.targets[t])
        return f"{several}hidden causes give it several; pass a number or {size}, or name {names}"
    return f"{several}doubtful edges give it several; pass a number or {size} numbers"
