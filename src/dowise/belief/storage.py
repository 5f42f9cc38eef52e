"""A belief as JSON: small, readable, versioned, and no pickle.

    {
      "format": "dowise-belief",
      "version": 2,
      "factors": {
        "X": {
          "axes": ["Z", "X"],
          "labels": [["0", "1"], ["0", "1"]],
          "prior": [[1.0, 1.0], …],
          "counts": [[2, 0], …]
        },
        …
      }
    }

For each variable the prior's Dirichlet parameters of its CPT and how often each entry was seen, as
nested lists with the axes and labels named, so that the file can be read without the problem.
Numbers read back to the last bit. A reader refuses a version that it does not know, and counts that
do not fit. Version 1 had one table "counts" for both, their sum, under "counts" in place of
"factors": it is read as a prior, so that what it had learned can't be retracted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError, InputSyntaxError
from dowise.problem import Problem

if TYPE_CHECKING:
    from dowise.belief.dirichlet import Dirichlet

__all__ = ["as_page", "as_text", "dirichlet_page", "read_dirichlet"]

_FORMAT, _VERSION = "dowise-belief", 2

Tables = dict[str, NDArray[Any]]


def as_text(page: dict[str, Any]) -> str:
    """The text of the file."""
    return json.dumps(page, indent=1) + "\n"


def as_page(text: str) -> dict[str, Any]:
    """The page of a file's text, whatever is on it."""
    try:
        page = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputSyntaxError(f"not valid JSON: {error}", error.lineno, error.colno) from None
    except RecursionError:
        raise InputSyntaxError("not valid JSON: nested too deeply") from None
    if not isinstance(page, dict):
        raise DowiseError("this is no belief: save one with belief.save(path)")
    return page


def dirichlet_page(posterior: Dirichlet) -> dict[str, Any]:
    """The page of a Dirichlet posterior."""
    factors = posterior.model.factors
    tables = {
        name: {
            **_shape_of(posterior.problem, name),
            "prior": factors.view(posterior.prior, name).tolist(),
            "counts": factors.view(posterior.counts, name).tolist(),
        }
        for name in factors.variables
    }
    return {"format": _FORMAT, "version": _VERSION, "factors": tables}


def read_dirichlet(page: dict[str, Any], problem: Problem) -> tuple[Tables, Tables]:
    """Prior and counts of a page, which must be about the same variables with the same values."""
    if page.get("format") != _FORMAT:
        raise DowiseError("this is no belief: save one with belief.save(path)")
    version = page.get("version")
    if type(version) is not int or version not in (1, _VERSION):
        raise DowiseError(
            f"this belief has format version {version!r}, and this dowise reads versions 1 and "
            f"{_VERSION}: update dowise, or save the belief anew"
        )
    stored = page.get("counts" if version == 1 else "factors")
    if not isinstance(stored, dict) or not all(isinstance(x, dict) for x in stored.values()):
        raise DowiseError("the belief is damaged: it has no counts for each variable")
    for name in sorted({*stored} ^ {*problem.graph}):
        where = "the belief" if name in stored else "the problem"
        raise DowiseError(f"{name} is in {where} only: the belief is about another problem")
    prior, counts = {}, {}
    for name in problem.graph:
        for key, expected in _shape_of(problem, name).items():
            if stored[name].get(key) != expected:
                raise DowiseError(
                    f"the belief is about another problem: the CPT of {name} has the {key} "
                    f"{stored[name].get(key)} there and {expected} here"
                )
        prior[name] = _table(problem, stored[name], "counts" if version == 1 else "prior", name)
        if not (prior[name] > 0).all():
            raise DowiseError(f"the belief is damaged: the prior of {name} must be above 0")
        if version == _VERSION:
            counts[name] = _table(problem, stored[name], "counts", name)
            if counts[name].dtype.kind not in "iu" or not (counts[name] >= 0).all():
                raise DowiseError(
                    f"the belief is damaged: the counts of {name} must be whole numbers from 0 on"
                )
    return prior, counts


def _table(problem: Problem, stored: dict[str, Any], what: str, name: str) -> NDArray[Any]:
    """Numbers in the shape of a CPT."""
    try:
        table = np.asarray(stored.get(what))
    except ValueError:  # rows of different lengths
        table = np.asarray(None)
    if table.dtype.kind not in "iuf" or not np.isfinite(table).all():
        raise DowiseError(f"the belief is damaged: the {what} of {name} must be numbers")
    shape = tuple(len(labels) for labels in _shape_of(problem, name)["labels"])
    if table.shape != shape:
        raise DowiseError(
            f"the belief is damaged: the {what} of {name} have the shape {table.shape}, not {shape}"
        )
    return table


def _shape_of(problem: Problem, name: str) -> dict[str, list[Any]]:
    axes = [*problem.graph.parents(name), name]
    return {"axes": axes, "labels": [list(problem.domains[axis]) for axis in axes]}
