"""Prior of a problem: Dirichlet counts for the tables of variables, in units of records.

A problem stores its prior as plain numbers or as "pooled"; the belief interprets it.

>>> from dowise import CausalGraph, Problem
>>> Problem(CausalGraph.parse("X -> Y"), "Y", prior={"X": [3, 1]}).prior["X"]
(3.0, 1.0)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dowise._core.files import read_file
from dowise._core.types import FloatArray
from dowise.errors import DowiseError, suggestion
from dowise.graph.edges import EdgeName
from dowise.problem.domains import refuse_hidden

if TYPE_CHECKING:
    from dowise.problem.problem import Problem


# Beyond these limits a single-precision draw is always the same number.
SMALLEST, LARGEST = 1e-6, 1e9

Prior = float | Mapping[str, Any] | str | Path
"""A number for every entry, counts by variable, the path of a TOML file with such counts, "flat" (1
for every entry) or "pooled" (`dowise.belief.pooling`)."""
KnownPrior = float | Mapping[str, Any] | Literal["pooled"]
"""A number, for each variable a number or nested tuples of numbers, or "pooled"."""
PRIOR_NAMES = ("flat", "pooled")


def is_prior_name(prior: object) -> bool:
    """Return True for "flat" and "pooled", which are not the names of files."""
    return isinstance(prior, str) and prior in PRIOR_NAMES


def is_pooled(prior: object) -> bool:
    """Return True for the pooled prior; also for arrays, which do not compare with texts."""
    return isinstance(prior, str) and prior == "pooled"


def prior_from_user(problem: Problem, prior: Prior | None) -> KnownPrior:
    """Return the prior as plain numbers, checked as far as the graph allows; the default is 1.

    Counts by parents are checked here if the variable has a single table with the shape of the
    CPT: no hidden causes and no doubtful edges into it. Otherwise the belief checks them.
    """
    if is_pooled(prior):
        return "pooled"
    if prior is None or is_prior_name(prior):
        return 1.0
    if isinstance(prior, str | Path):
        path = prior_file(prior)
        return read_file(path, lambda text: prior_from_user(problem, parse_prior(text)))
    if not isinstance(prior, Mapping):
        alpha = checked_counts(prior, f"prior={prior!r}")
        if alpha.ndim:
            raise DowiseError(
                f"prior={prior!r} must be a number, or a mapping from variable to counts",
                code="invalid-type",
            )
        return float(alpha)
    by_name = {name: _known_counts(problem, name, counts) for name, counts in prior.items()}
    return MappingProxyType(dict(sorted(by_name.items())))


def plain_prior(prior: KnownPrior | None) -> float | dict[str, Any] | str | None:
    """Return a prior as a number, a dict or "pooled", for pickle and JSON."""
    return dict(prior) if isinstance(prior, Mapping) else prior


def _known_counts(problem: Problem, name: object, value: Any) -> Any:
    """Return the counts of a variable or factor as floats and nested tuples."""
    refuse_hidden(name, problem.hidden, "the prior: ")
    variable = name if name in problem.domains else str(name).partition(" | ")[0]
    if not isinstance(name, str) or variable not in problem.domains:
        raise DowiseError(
            f"the prior names {name!r}, which is not a variable"
            f"{suggestion(str(name), problem.graph.variables)}",
            code="unknown-variable",
        )
    counts = checked_counts(value, f"the prior of {name}")
    axes = (*problem.possible.parents(str(variable)), str(variable))
    shape = tuple(len(problem.domains[axis]) for axis in axes)
    is_one_table = name == variable and not _has_several_tables(problem, name)
    if not fits(counts.shape, shape if is_one_table else (*counts.shape[:-1], shape[-1])):
        raise DowiseError(misfit(name, shape, axes), code="invalid-shape")
    return _as_tuples(counts.tolist())


def _has_several_tables(problem: Problem, name: str) -> bool:
    """Return True if hidden causes or doubtful edges give the variable several tables."""
    doubtful = map(EdgeName.parse, problem.edge_priors)
    into = any(edge.right == name and not edge.is_bidirected for edge in doubtful)
    return into or bool(problem.possible.siblings(name))


def fits(counts: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return True if counts broadcast over the parents to the shape of a table.

    They do not broadcast over the values: a list of one number is probably a mistake.
    """
    if counts[-1:] not in ((), shape[-1:]):
        return False
    try:
        return np.broadcast_shapes(counts, shape) == shape
    except (ValueError, RuntimeError):  # RuntimeError: more axes than NumPy supports
        return False


def misfit(name: str, shape: tuple[int, ...], axes: Iterable[str]) -> str:
    """Return the message that counts do not fit a CPT."""
    return (
        f"the prior of {name} does not fit its CPT: pass a number, {shape[-1]} numbers, or an "
        f"array of shape {shape} (axes {', '.join(axes)})"
    )


def prior_file(prior: str | Path) -> str | Path:
    """Return the path of a file of counts; if there is none, the error names what else is known."""
    if not os.path.lexists(prior):
        raise DowiseError(
            f'prior={str(prior)!r}: no such file (expected "flat", "pooled", a number, such as '
            "1.0, counts by variable, or the path of a TOML file of those)",
            code="file-not-found",
        )
    return prior


def read_prior(prior: str | Path) -> Mapping[str, Any]:
    """Read a TOML file of counts."""
    return read_file(prior_file(prior), parse_prior)


def parse_prior(text: str) -> Mapping[str, Any]:
    """Parse a TOML file of counts."""
    from dowise.problem.problem_file import read_toml

    return read_toml(text)


def checked_counts(values: Any, name: str) -> FloatArray:
    """Return the numbers as an array. Raises `DowiseError` unless they can be Dirichlet counts."""
    try:
        counts = np.asarray(values)
    except ValueError:  # rows of different lengths
        counts = np.asarray(None)
    if counts.dtype.kind not in "iuf" or not counts.size:
        raise DowiseError(f"{name} must be numbers", code="invalid-number")
    if not ((counts >= SMALLEST) & (counts <= LARGEST)).all():
        raise DowiseError(
            f"{name} must be above 0, from {SMALLEST:g} to {LARGEST:g}: Dirichlet counts measure "
            "prior knowledge in records",
            code="invalid-number",
        )
    return counts.astype(np.float64)


def _as_tuples(counts: Any) -> Any:
    return tuple(map(_as_tuples, counts)) if isinstance(counts, list) else counts
