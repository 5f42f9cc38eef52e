"""Prior counts: one number for every entry, or counts for each variable, or a file of those."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError, InputSyntaxError, suggestion
from dowise.files import read_file
from dowise.model import Factors

__all__ = ["Prior", "prior_counts"]

# Beyond these a single-precision draw is a point anyway.
SMALLEST, LARGEST = 1e-6, 1e9

Prior = float | Mapping[str, Any] | str | Path


def prior_counts(factors: Factors, prior: Prior) -> NDArray[np.float64]:
    """The flat array of Dirichlet parameters α.

    A mapping gives for a variable a number (every entry of its CPT) or an array that fits its CPT:
    axes the parents in the order of names, then the variable; a shorter array is repeated over the
    parents. Variables that it does not name get 1. A path is a TOML file with such a mapping.
    """
    if isinstance(prior, str | Path):
        return read_file(prior, lambda text: prior_counts(factors, _parse(text)))
    if not isinstance(prior, Mapping):
        alpha = _checked(prior, f"prior={prior!r}")
        if alpha.ndim:
            raise DowiseError(
                f"prior={prior!r}: give one number, or a mapping from variable to counts"
            )
        return np.full(factors.entries, float(alpha))
    flat = np.ones(factors.entries)
    for name, given in prior.items():
        if name not in factors.positions:
            raise DowiseError(
                f"the prior names {name!r}, which is no variable"
                f"{suggestion(str(name), factors.variables)}"
            )
        shape = factors.shapes[factors.positions[name]]
        counts = _checked(given, f"the prior of {name}")
        try:
            factors.view(flat, name)[...] = counts
        except ValueError:
            raise DowiseError(
                f"the prior of {name} does not fit its CPT: give a number, {shape[-1]} numbers, or "
                f"an array of shape {shape} (axes {_axes(factors, name)})"
            ) from None
    return flat


def _parse(text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputSyntaxError(f"not valid TOML: {error}") from None


def _checked(given: Any, what: str) -> NDArray[np.float64]:
    try:
        counts = np.asarray(given)
    except ValueError:  # rows of different lengths
        counts = np.asarray(None)
    if counts.dtype.kind not in "iuf":
        raise DowiseError(f"{what} must be numbers")
    if not ((counts >= SMALLEST) & (counts <= LARGEST)).all():
        raise DowiseError(
            f"{what} must be above 0, from {SMALLEST:g} to {LARGEST:g}: a Dirichlet count says how "
            "much is known, in records"
        )
    return counts.astype(np.float64)


def _axes(factors: Factors, name: str) -> str:
    return ", ".join(factors.variables[v] for v in factors.families[factors.positions[name]])
