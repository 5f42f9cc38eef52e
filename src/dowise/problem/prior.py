"""What is known beforehand, in records: Dirichlet counts for the tables of variables.

A problem carries its prior as plain numbers, whole: what they count in is the belief's affair.

>>> from dowise import CausalGraph, Problem
>>> Problem(CausalGraph.parse("X -> Y"), "Y", prior={"X": [3, 1]}).prior["X"]
(3.0, 1.0)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError, suggestion
from dowise.files import read_file
from dowise.graph.edges import EdgeName
from dowise.problem.roles import refuse_hidden
from dowise.problem.toml_text import read_toml

if TYPE_CHECKING:
    from dowise.problem.problem import Problem

__all__ = [
    "KnownPrior",
    "Prior",
    "checked_counts",
    "fits",
    "known_prior",
    "misfit",
    "parse_prior",
    "plain_prior",
]

# Beyond these a single-precision draw is a point anyway.
SMALLEST, LARGEST = 1e-6, 1e9

Prior = float | Mapping[str, Any] | str | Path
"""One number for every entry, counts by variable, or the path of a TOML file of those."""
KnownPrior = float | Mapping[str, Any]
"""A number, or by variable a number or nested tuples of them."""


def known_prior(problem: Problem, prior: Prior | None) -> KnownPrior:
    """The prior as plain numbers, checked as far as the graph tells what fits; 1 unless told.

    Whether counts by the parents fit is told where a variable has one table, with the CPT's shape:
    neither hidden causes nor doubtful arrows into it. Elsewhere the belief says.
    """
    if prior is None:
        return 1.0
    if isinstance(prior, str | Path):
        return read_file(prior, lambda text: known_prior(problem, parse_prior(text)))
    if not isinstance(prior, Mapping):
        alpha = checked_counts(prior, f"prior={prior!r}")
        if alpha.ndim:
            raise DowiseError(
                f"prior={prior!r}: give one number, or a mapping from variable to counts"
            )
        return float(alpha)
    found = {name: _known_counts(problem, name, counts) for name, counts in prior.items()}
    return MappingProxyType(dict(sorted(found.items())))


def plain_prior(prior: KnownPrior) -> float | dict[str, Any]:
    """The same as what travels between processes: a number or a dict."""
    return dict(prior) if isinstance(prior, Mapping) else prior


def _known_counts(problem: Problem, name: object, given: Any) -> Any:
    """The counts of one variable or factor as floats and nested tuples."""
    refuse_hidden(name, problem.hidden, "the prior: ")
    variable = name if name in problem.domains else str(name).partition(" | ")[0]
    if not isinstance(name, str) or variable not in problem.domains:
        raise DowiseError(
            f"the prior names {name!r}, which is no variable"
            f"{suggestion(str(name), problem.graph.variables)}"
        )
    counts = checked_counts(given, f"the prior of {name}")
    axes = (*problem.possible.parents(str(variable)), str(variable))
    shape = tuple(len(problem.domains[axis]) for axis in axes)
    is_one_table = name == variable and not _has_several(problem, name)
    if not fits(counts.shape, shape if is_one_table else (*counts.shape[:-1], shape[-1])):
        raise DowiseError(misfit(name, shape, axes))
    return _as_tuples(counts.tolist())


def _has_several(problem: Problem, name: str) -> bool:
    """Whether hidden causes or doubtful arrows give the variable more than one table."""
    doubtful = map(EdgeName.parse, problem.edge_priors)
    into = any(edge.other == name and not edge.is_bidirected for edge in doubtful)
    return into or bool(problem.possible.siblings(name))


def fits(counts: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether counts of one shape fill a table of another, repeated over the parents.

    They are not repeated over the values: one number in a list is a number forgotten.
    """
    if counts[-1:] not in ((), shape[-1:]):
        return False
    try:
        return np.broadcast_shapes(counts, shape) == shape
    except (ValueError, RuntimeError):  # the latter: more axes than NumPy knows of here
        return False


def misfit(name: str, shape: tuple[int, ...], axes: Iterable[str]) -> str:
    """That counts do not fit a CPT, in words."""
    return (
        f"the prior of {name} does not fit its CPT: give a number, {shape[-1]} numbers, or an "
        f"array of shape {shape} (axes {', '.join(axes)})"
    )


def parse_prior(text: str) -> Mapping[str, Any]:
    """The mapping of a TOML file."""
    return read_toml(text)


def checked_counts(given: Any, what: str) -> NDArray[np.float64]:
    """Numbers that can be Dirichlet counts."""
    try:
        counts = np.asarray(given)
    except ValueError:  # rows of different lengths
        counts = np.asarray(None)
    if counts.dtype.kind not in "iuf" or not counts.size:
        raise DowiseError(f"{what} must be numbers")
    if not ((counts >= SMALLEST) & (counts <= LARGEST)).all():
        raise DowiseError(
            f"{what} must be above 0, from {SMALLEST:g} to {LARGEST:g}: a Dirichlet count says how "
            "much is known, in records"
        )
    return counts.astype(np.float64)


def _as_tuples(counts: Any) -> Any:
    return tuple(map(_as_tuples, counts)) if isinstance(counts, list) else counts
