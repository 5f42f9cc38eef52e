"""Prior counts: one number for every entry, or counts for each variable, or a file of those."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.belief.tables import Tables
from dowise.errors import DowiseError, InputSyntaxError, suggestion
from dowise.graph.formats.files import read_file

__all__ = ["Prior", "prior_counts"]

Prior = float | Mapping[str, Any] | str | Path


def prior_counts(tables: Tables, prior: Prior) -> NDArray[np.float64]:
    """The flat array of Dirichlet parameters α.

    A mapping gives for a variable a number (every entry of its CPT) or an array that fits its CPT:
    axes the parents in the order of names, then the variable; a shorter array is repeated over the
    parents. Variables that it does not name get 1. A path is a TOML file with such a mapping.
    """
    if isinstance(prior, str | Path):
        return read_file(prior, lambda text: prior_counts(tables, _parse(text)))
    if not isinstance(prior, Mapping):
        _check(np.asarray(prior), f"prior={prior!r}")
        return np.full(tables.entries, float(prior))
    flat = np.ones(tables.entries)
    for name, given in prior.items():
        if name not in tables.number:
            raise DowiseError(
                f"the prior names {name!r}, which is no variable"
                f"{suggestion(str(name), tables.variables)}"
            )
        shape = tables.shapes[tables.number[name]]
        try:
            counts = np.broadcast_to(np.asarray(given, dtype=np.float64), shape)
        except ValueError:
            raise DowiseError(
                f"the prior of {name} does not fit its CPT: give a number, {shape[-1]} numbers, or "
                f"an array of shape {shape} (axes {_axes(tables, name)})"
            ) from None
        _check(counts, f"the prior of {name}")
        tables.view(flat, name)[...] = counts
    return flat


def _parse(text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputSyntaxError(f"not valid TOML: {error}") from None


def _check(counts: NDArray[Any], what: str) -> None:
    if counts.dtype.kind not in "iuf" or not np.isfinite(counts).all() or (counts <= 0).any():
        raise DowiseError(f"{what} must be above 0: a Dirichlet count says how much is known")


def _axes(tables: Tables, name: str) -> str:
    return ", ".join(tables.variables[v] for v in tables.families[tables.number[name]])
