"""A belief as JSON: small, readable, versioned, and no pickle.

    {
      "format": "dowise-belief",
      "version": 1,
      "counts": {
        "X": {"axes": ["Z", "X"], "labels": [["0", "1"], ["0", "1"]], "counts": [[3.0, 1.0], …]},
        …
      }
    }

For each variable the Dirichlet parameters of its CPT (prior plus observed), as a nested list with
the axes and labels named, so that the file can be read without the problem. Numbers read back to
the last bit. A reader refuses a version that it does not know, and counts that do not fit.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError, InputSyntaxError
from dowise.problem import Problem

if TYPE_CHECKING:
    from dowise.belief.belief import Belief

__all__ = ["from_json", "to_json"]

_FORMAT, _VERSION = "dowise-belief", 1


def to_json(belief: Belief) -> str:
    """The text of the file."""
    tables = belief.tables
    counts = {
        name: {
            **_shape_of(belief.problem, name),
            "counts": tables.view(belief.counts, name).tolist(),
        }
        for name in tables.variables
    }
    return json.dumps({"format": _FORMAT, "version": _VERSION, "counts": counts}, indent=1) + "\n"


def from_json(text: str, problem: Problem) -> Belief:
    """The belief of a file's text, which must be about the same variables with the same values."""
    from dowise.belief.belief import Belief

    try:
        page = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputSyntaxError(f"not valid JSON: {error}", error.lineno, error.colno) from None
    except RecursionError:
        raise InputSyntaxError("not valid JSON: nested too deeply") from None
    if not isinstance(page, dict) or page.get("format") != _FORMAT:
        raise DowiseError("this is no belief: save one with belief.save(path)")
    version = page.get("version")
    if type(version) is not int or version != _VERSION:
        raise DowiseError(
            f"this belief has format version {version!r}, and this dowise reads "
            f"version {_VERSION}: update dowise, or save the belief anew"
        )
    stored = page.get("counts")
    if not isinstance(stored, dict) or not all(isinstance(x, dict) for x in stored.values()):
        raise DowiseError("the belief is damaged: it has no counts for each variable")
    for name in sorted({*stored} ^ {*problem.graph}):
        where = "the belief" if name in stored else "the problem"
        raise DowiseError(f"{name} is in {where} only: the belief is about another problem")
    belief = Belief(problem)
    for name in problem.graph:
        for key, expected in _shape_of(problem, name).items():
            if stored[name].get(key) != expected:
                raise DowiseError(
                    f"the belief is about another problem: the CPT of {name} has the {key} "
                    f"{stored[name].get(key)} there and {expected} here"
                )
        counts = _checked_counts(stored[name].get("counts"), name)
        table = belief.tables.view(belief.counts, name)
        if counts.shape != table.shape:
            raise DowiseError(
                f"the belief is damaged: the counts of {name} have the shape {counts.shape}, "
                f"not {table.shape}"
            )
        table[...] = counts
    return belief


def _checked_counts(given: Any, name: str) -> NDArray[np.float64]:
    try:
        counts = np.asarray(given)
    except ValueError:  # rows of different lengths
        counts = np.asarray(None)
    if counts.dtype.kind not in "iuf" or not (np.isfinite(counts) & (counts > 0)).all():
        raise DowiseError(f"the belief is damaged: the counts of {name} must be numbers above 0")
    return counts.astype(np.float64)


def _shape_of(problem: Problem, name: str) -> dict[str, list[Any]]:
    axes = [*problem.graph.parents(name), name]
    return {"axes": axes, "labels": [list(problem.domains[axis]) for axis in axes]}
