"""A belief as JSON: small, readable, versioned, and no pickle.

    {
      "format": "dowise-belief",
      "version": 3,
      "factors": {
        "X": {
          "axes": ["Z", "X"],
          "labels": [["0", "1"], ["0", "1"]],
          "prior": [[1.0, 1.0], …],
          "counts": [[2, 0], …]
        },
        …
      },
      "unused": {"Y": {"Z": 3}}
    }

For each factor the prior's Dirichlet parameters and how often each entry was seen, as nested lists
with the axes and labels named, so that the file can be read without the problem. A factor's name is
that of its variable where it is a CPT, and "Y | X" where a hidden cause joins Y to X. `unused` says
how often what was seen of a variable could not be counted, and for want of which other one (""
where no arm has such a factor). Where edges are doubtful there are "edges", with their priors, and
in place of "factors" the "tables": for each variable a list, one for each set of edges that changes
it.

A belief that keeps its records (`Belief(problem, evidence=True)`) has them too, each with how often
it was seen, and how the evidence against the graph has grown (logarithms; "largest" in 2⁻³⁶ nats):

      "records": [{"set": ["X"], "values": {"X": "1", "Y": "0", "Z": "1"}, "count": 3}, …],
      "evidence": {
        "recomputed": false,
        "mixed": {"steps": [[17, 0.31], …], "largest": {"X <-> Y": 23141, …}},
        "strict": …
      }

Numbers read back to the last bit. A reader refuses a version that it does not know, and counts that
do not fit. Version 2 had no "unused". Version 1 had one table "counts" for both, their sum, under
"counts" in place of "factors": it is read as a prior, so that what it had learned can't be
retracted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dowise._core.types import AnyArray
from dowise.errors import DowiseError, InputSyntaxError
from dowise.model.factors import TableLayout
from dowise.problem import Problem

if TYPE_CHECKING:
    from dowise.belief.posterior import Posterior


_FORMAT, _VERSION = "dowise-belief", 3
_MAX_COUNT = 10**9  # more is damage, and would take for ever to weigh


def as_text(page: dict[str, Any]) -> str:
    """The text of the file."""
    return json.dumps(page, indent=1) + "\n"


def as_page(text: str) -> dict[str, Any]:
    """The page of a file's text, whatever is on it."""
    try:
        page = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputSyntaxError(f"not valid JSON: {error}", error.lineno, error.colno) from None
    except ValueError:  # Python reads no number of thousands of digits
        raise InputSyntaxError("not valid JSON: a number is too long") from None
    except RecursionError:
        raise InputSyntaxError("not valid JSON: nested too deeply") from None
    if not isinstance(page, dict):
        raise DowiseError("this is no belief: save one with belief.save(path)")
    return page


# -- writing ----------------------------------------------------------------------------------


def posterior_to_json(posterior: Posterior) -> dict[str, Any]:
    """Return the JSON data of a posterior."""
    factors, layout = posterior.model.factors, posterior.layout
    data: dict[str, Any] = {"format": _FORMAT, "version": _VERSION}
    if posterior.is_settled:
        names = enumerate(factors.names)
        data["factors"] = {name: _table_to_json(posterior, t) for t, name in names}
    else:
        data["edges"] = dict(posterior.problem.edge_priors)
        data["tables"] = {
            name: [_table_to_json(posterior, int(t)) for t in np.flatnonzero(layout.targets == v)]
            for v, name in enumerate(factors.variables)
        }
    return {**data, "unused": posterior.unused_by_name()}


def _table_to_json(posterior: Posterior, t: int) -> dict[str, Any]:
    layout = posterior.layout
    return {
        **_axes_to_json(posterior.problem, layout, t),
        "prior": layout.table(posterior.prior, t).tolist(),
        "counts": layout.table(posterior.counts, t).tolist(),
    }


# -- reading ----------------------------------------------------------------------------------


def read_posterior(posterior: Posterior, data: dict[str, Any]) -> None:
    """Fill a new posterior with prior, counts and evidence from JSON data."""
    version = _checked_version(data)
    if posterior.is_settled:
        _read_factors(posterior, data, version)
    else:
        _read_versions(posterior, data, version)
    _read_unused(posterior, data)
    posterior.recompute_evidence()


def _read_factors(posterior: Posterior, data: dict[str, Any], version: int) -> None:
    factors = posterior.model.factors
    if "tables" in data:
        raise DowiseError(
            "the belief is about another problem: it has doubtful edges, and the problem has none "
            "that matter"
        )
    stored = data.get("counts" if version == 1 else "factors")
    if not isinstance(stored, dict) or not all(isinstance(x, dict) for x in stored.values()):
        raise DowiseError("the belief is damaged: it has no counts for each variable")
    for name in sorted({*stored} ^ {*factors.names}):
        where = "the belief" if name in stored else "the problem"
        raise DowiseError(f"{name} is in {where} only: the belief is about another problem")
    for f, name in enumerate(factors.names):
        _read_table(posterior, f, stored[name], name, version)


def _read_versions(posterior: Posterior, data: dict[str, Any], version: int) -> None:
    variables, priors = posterior.model.factors.variables, dict(posterior.problem.edge_priors)
    edges, stored = data.get("edges"), data.get("tables")
    if edges != priors:
        raise DowiseError(
            "the belief is about another problem: its doubtful edges and their priors are "
            f"{edges or 'none'} there and {priors} here; learn the records anew"
        )
    if not isinstance(stored, dict) or {*stored} != {*variables}:
        raise DowiseError("the belief is damaged: it has no tables for each variable")
    for v, name in enumerate(variables):
        numbers = np.flatnonzero(posterior.layout.targets == v).tolist()
        if not isinstance(stored[name], list) or len(stored[name]) != len(numbers):
            raise DowiseError(
                f"the belief is damaged: it must have {len(numbers)} tables of {name}"
            )
        for t, table in zip(numbers, stored[name], strict=True):
            if not isinstance(table, dict):
                raise DowiseError(f"the belief is damaged: a table of {name} is missing")
            _read_table(posterior, t, table, name, version)


def _checked_version(page: dict[str, Any]) -> int:
    if page.get("format") != _FORMAT:
        raise DowiseError("this is no belief: save one with belief.save(path)")
    version = page.get("version")
    if type(version) is not int or not 1 <= version <= _VERSION:
        raise DowiseError(
            f"this belief has format version {version!r}, and this dowise reads versions 1 to "
            f"{_VERSION}: update dowise, or save the belief anew"
        )
    return version


def _read_table(
    posterior: Posterior, t: int, stored: dict[str, Any], name: str, version: int
) -> None:
    layout = posterior.layout
    for key, expected in _axes_to_json(posterior.problem, layout, t).items():
        if stored.get(key) != expected:
            raise DowiseError(
                f"the belief is about another problem: the CPT of {name} has the {key} "
                f"{stored.get(key)} there and {expected} here"
            )
    prior = _numbers(layout.shapes[t], stored, "counts" if version == 1 else "prior", name)
    if not (prior > 0).all():
        raise DowiseError(f"the belief is damaged: the prior of {name} must be above 0")
    layout.table(posterior.prior, t)[...] = prior
    if version > 1:
        counts = _numbers(layout.shapes[t], stored, "counts", name)
        if counts.dtype.kind not in "iu" or not (counts >= 0).all():
            raise DowiseError(
                f"the belief is damaged: the counts of {name} must be whole numbers from 0 on"
            )
        if counts.max(initial=0) > _MAX_COUNT:
            raise DowiseError(f"the belief is damaged: {name} was seen {counts.max():.1e} times")
        layout.table(posterior.counts, t)[...] = counts


def _read_unused(posterior: Posterior, page: dict[str, Any]) -> None:
    names = {name: v for v, name in enumerate(posterior.model.factors.variables)} | {"": -1}
    for name, other, times in _unused(page.get("unused", {})):
        if name not in names or other not in names or type(times) is not int:
            raise DowiseError(f"the belief is damaged: unused has {name}: {{{other!r}: {times!r}}}")
        if not 0 <= times <= _MAX_COUNT:
            raise DowiseError(f"the belief is damaged: unused has {name} {times!r:.30} times")
        posterior.unused[names[name], names[other]] = times


def _unused(page: Any) -> Iterator[tuple[str, str, Any]]:
    if not isinstance(page, dict) or not all(isinstance(x, dict) for x in page.values()):
        raise DowiseError("the belief is damaged: unused must have counts for each variable")
    for name, reasons in page.items():
        for other, times in reasons.items():
            yield name, other, times


def _numbers(shape: tuple[int, ...], stored: dict[str, Any], what: str, name: str) -> AnyArray:
    """Numbers in the shape of a table."""
    try:
        table = np.asarray(stored.get(what))
    except ValueError:  # rows of different lengths
        table = np.asarray(None)
    if table.dtype.kind not in "iuf" or not np.isfinite(table).all():
        raise DowiseError(f"the belief is damaged: the {what} of {name} must be numbers")
    if table.shape != shape:
        raise DowiseError(
            f"the belief is damaged: the {what} of {name} have the shape {table.shape}, not {shape}"
        )
    return table


def _axes_to_json(problem: Problem, layout: TableLayout, t: int) -> dict[str, list[Any]]:
    axes = [problem.graph.variables[v] for v in layout.families[t]]
    return {"axes": axes, "labels": [list(problem.domains[axis]) for axis in axes]}
