"""JSON format of a belief: small, readable and versioned.

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

Each factor has the Dirichlet parameters of the prior and the count of each entry, as nested lists
with named axes and labels, so that the file can be read without the problem. The name of a factor
is that of its variable if it is a CPT, and "Y | X" if a hidden cause joins Y to X. `unused` is the
number of values of a variable that could not be counted because another one was missing ("" if no
arm needs the factor). A table with pooled rows has "pooled": true; its "prior" is that of flat
rows. If edges are doubtful, there are "edges", with their priors, and "tables" in
place of "factors": for each variable a list with a table for each set of edges that changes it.

A belief that keeps its records (`Belief(problem, evidence=True)`) also has the distinct records,
each with its count, and their order of arrival: the index of each record in that list, as 32-bit
integers (little-endian), compressed and in base64. The evidence against the graph is computed again
from them. `withdrawn` lists levels whose alarm was withdrawn, with the number of the record whose
correction did that:

      "records": [{"set": ["X"], "values": {"X": "1", "Y": "0", "Z": "1"}, "count": 3}, …],
      "evidence": {"order": "eJxjYGBg…", "recomputed": false, "withdrawn": [[0.05, 41]]}

Numbers are restored to the last bit. Unknown versions and counts that do not fit are errors. Files
of earlier versions lack the order: their records count in the order of the list ("recomputed").
Version 3 had no pooled rows, and version 2 no "unused". Version 1 had "counts" in place of
"factors", the sums of prior and counts: they are read as a prior, so that the records can't be
retracted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from dowise._core.types import AnyArray, BoolArray
from dowise.errors import DowiseError, InputSyntaxError
from dowise.model.factors import TableLayout
from dowise.problem import Problem

if TYPE_CHECKING:
    from dowise.belief.posterior import Posterior


_FORMAT, _VERSION, _FLAT_VERSION = "dowise-belief", 4, 3
_NOT_A_BELIEF = "not a saved belief (expected a file written by belief.save)"
_MAX_COUNT = 10**9  # a larger one must be damage, and recomputing its evidence takes too long


def parse_belief(text: str) -> dict[str, Any]:
    """Parse the text of a file as JSON, without checking its contents."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputSyntaxError(f"not valid JSON: {error}", error.lineno, error.colno) from None
    except ValueError:  # Python does not parse numbers of thousands of digits
        raise InputSyntaxError("not valid JSON: a number is too long") from None
    except RecursionError:
        raise InputSyntaxError("not valid JSON: nested too deeply") from None
    if not isinstance(data, dict):
        raise DowiseError(_NOT_A_BELIEF, code="unsupported-format")
    return data


# -- writing ----------------------------------------------------------------------------------


def posterior_to_json(posterior: Posterior) -> dict[str, Any]:
    """Return the JSON data of a posterior."""
    factors, layout = posterior.model.factors, posterior.layout
    version = _VERSION if posterior.is_pooled else _FLAT_VERSION
    data: dict[str, Any] = {"format": _FORMAT, "version": version}
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
    layout, pooling = posterior.layout, posterior.pooling
    return {
        **_axes_to_json(posterior.problem, layout, t),
        "prior": layout.table(posterior.base, t).tolist(),
        "counts": layout.table(posterior.counts, t).tolist(),
        **({"pooled": True} if pooling is not None and pooling.is_pooled[t] else {}),
    }


# -- reading ----------------------------------------------------------------------------------


def read_posterior(posterior: Posterior, data: dict[str, Any]) -> None:
    """Fill a new posterior with prior, counts and evidence from JSON data."""
    version = _checked_version(data)
    is_pooled = np.zeros(len(posterior.layout.targets), dtype=bool)
    if posterior.is_settled:
        _read_factors(posterior, data, version, is_pooled)
    else:
        _read_versions(posterior, data, version, is_pooled)
    _read_unused(posterior, data)
    posterior.pool(is_pooled)
    posterior.recompute_evidence()


def _read_factors(
    posterior: Posterior, data: dict[str, Any], version: int, is_pooled: BoolArray
) -> None:
    factors = posterior.model.factors
    if "tables" in data:
        raise DowiseError(
            "the belief belongs to another problem: it has doubtful edges, and the problem has "
            "none that matter",
            code="wrong-problem",
        )
    stored = data.get("counts" if version == 1 else "factors")
    if not isinstance(stored, dict) or not all(isinstance(x, dict) for x in stored.values()):
        raise _damaged("it has no counts for each variable")
    for name in sorted({*stored} ^ {*factors.names}):
        where = "the belief" if name in stored else "the problem"
        raise DowiseError(
            f"the belief belongs to another problem: {name} is in {where} only",
            code="wrong-problem",
        )
    for f, name in enumerate(factors.names):
        is_pooled[f] = _read_table(posterior, f, stored[name], name, version)


def _read_versions(
    posterior: Posterior, data: dict[str, Any], version: int, is_pooled: BoolArray
) -> None:
    variables, priors = posterior.model.factors.variables, dict(posterior.problem.edge_priors)
    edges, stored = data.get("edges"), data.get("tables")
    remedy = "learn the records again"
    if posterior.problem.edge_rules > 1:
        remedy += ", or set edge_rules=1 in the problem if an earlier version saved it"
    if edges != priors:
        raise DowiseError(
            f"the belief belongs to another problem: its doubtful edges have the priors "
            f"{edges or 'none'}, those of the problem {priors}; {remedy}",
            code="wrong-problem",
        )
    if not isinstance(stored, dict) or {*stored} != {*variables}:
        raise _damaged("it has no tables for each variable")
    for v, name in enumerate(variables):
        numbers = np.flatnonzero(posterior.layout.targets == v).tolist()
        if not isinstance(stored[name], list):
            raise _damaged(f"it has no tables of {name}")
        if len(stored[name]) != len(numbers):
            raise DowiseError(
                f"the belief belongs to another problem: it has {len(stored[name])} tables of "
                f"{name}, not {len(numbers)}; {remedy}",
                code="wrong-problem",
            )
        for t, table in zip(numbers, stored[name], strict=True):
            if not isinstance(table, dict):
                raise _damaged(f"a table of {name} is missing")
            is_pooled[t] = _read_table(posterior, t, table, name, version)


def _damaged(problem: str) -> DowiseError:
    return DowiseError(f"the belief is damaged: {problem}", code="damaged-file")


def _checked_version(data: dict[str, Any]) -> int:
    if data.get("format") != _FORMAT:
        raise DowiseError(_NOT_A_BELIEF, code="unsupported-format")
    version = data.get("version")
    if type(version) is not int or not 1 <= version <= _VERSION:
        raise DowiseError(
            f"the belief has format version {version!r}, and this version of dowise reads 1 to "
            f"{_VERSION}: update dowise, or save the belief again",
            code="other-version",
        )
    return version


def _read_table(
    posterior: Posterior, t: int, stored: dict[str, Any], name: str, version: int
) -> bool:
    """Fill a table, and return True if its rows are pooled."""
    layout = posterior.layout
    for key, expected in _axes_to_json(posterior.problem, layout, t).items():
        if stored.get(key) != expected:
            raise DowiseError(
                f"the belief belongs to another problem: its CPT of {name} has the {key} "
                f"{stored.get(key)}, not {expected}",
                code="wrong-problem",
            )
    prior = _numbers(layout.shapes[t], stored, "counts" if version == 1 else "prior", name)
    if not (prior > 0).all():
        raise _damaged(f"the prior of {name} must be above 0")
    layout.table(posterior.base, t)[...] = prior
    if version > 1:
        counts = _numbers(layout.shapes[t], stored, "counts", name)
        if counts.dtype.kind not in "iu" or not (counts >= 0).all():
            raise _damaged(f"the counts of {name} must be whole numbers, 0 or more")
        if counts.max(initial=0) > _MAX_COUNT:
            raise _damaged(f"{name} was seen {counts.max():.1e} times")
        layout.table(posterior.counts, t)[...] = counts
    is_pooled = stored.get("pooled", False)
    if type(is_pooled) is not bool:
        raise _damaged(f"{name} has pooled={is_pooled!r:.30}, which must be true or false")
    return is_pooled


def _read_unused(posterior: Posterior, data: dict[str, Any]) -> None:
    unused = data.get("unused", {})
    if not isinstance(unused, dict) or not all(isinstance(x, dict) for x in unused.values()):
        raise _damaged("unused must have counts for each variable")
    names = {name: v for v, name in enumerate(posterior.model.factors.variables)} | {"": -1}
    for name, reasons in unused.items():
        for other, times in reasons.items():
            if name not in names or other not in names or type(times) is not int:
                raise _damaged(f"unused has {name}: {{{other!r}: {times!r}}}")
            if not 0 <= times <= _MAX_COUNT:
                raise _damaged(f"unused has {name} {times!r:.30} times")
            posterior.unused[names[name], names[other]] = times


def _numbers(shape: tuple[int, ...], stored: dict[str, Any], key: str, name: str) -> AnyArray:
    try:
        table = np.asarray(stored.get(key))
    except ValueError:  # rows of different lengths
        table = np.asarray(None)
    if table.dtype.kind not in "iuf" or not np.isfinite(table).all():
        raise _damaged(f"the {key} of {name} must be numbers")
    if table.shape != shape:
        raise _damaged(f"the {key} of {name} have the shape {table.shape}, not {shape}")
    return table


def _axes_to_json(problem: Problem, layout: TableLayout, t: int) -> dict[str, list[Any]]:
    axes = [problem.graph.variables[v] for v in layout.families[t]]
    return {"axes": axes, "labels": [list(problem.domains[axis]) for axis in axes]}
