"""Problems from the models of pgmpy and DoWhy.

What is said here goes before what the model says: its outcome is the reward, its exposures or
treatments are what can be set, and what it calls latent or unobserved is hidden. Labels come from
a model's states, or from the values in the table that it came with.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dowise.errors import DowiseError, join_names
from dowise.graph.formats.libraries import Outline, from_dowhy, from_pgmpy
from dowise.problem.problem import Problem

__all__ = ["problem_from_dowhy", "problem_from_pgmpy"]

_MOST_LABELS = 20  # that are taken from a table; a column with more is a measurement


def problem_from_pgmpy(model: Any, **options: Any) -> Problem:
    """The problem of a DAG, an ADMG or a Bayesian network of pgmpy; options are Problem's own."""
    return _problem(from_pgmpy(model), options)


def problem_from_dowhy(model: Any, **options: Any) -> Problem:
    """The problem of a CausalModel or a causal graph of DoWhy; options are Problem's own.

    Effect modifiers are no context by themselves: whether they are seen before the choice is not
    in the model. Say `context=…` where they are.
    """
    return _problem(from_dowhy(model), options)


def _problem(outline: Outline, options: dict[str, Any]) -> Problem:
    options = {"hidden": outline.latent, **options}
    if "reward" not in options:
        if len(outline.outcomes) != 1:
            named = f" (the model has {join_names(outline.outcomes)})" if outline.outcomes else ""
            raise DowiseError(f"say which variable to maximise, reward=…{named}")
        options["reward"] = outline.outcomes[0]
    if outline.exposures and not {"manipulable", "non_manipulable"} & options.keys():
        options["manipulable"] = outline.exposures
    given = dict(options.get("domains") or {})
    known = {**outline.domains, **_labels(outline, given), **given}
    options["domains"] = {name: known[name] for name in known if name in outline.graph}
    return Problem(outline.graph, **options)


def _labels(outline: Outline, given: dict[str, Any]) -> dict[str, list[Any]]:
    """The values that the table of a model has for each variable, in order."""
    found = {}
    columns = () if outline.data is None else outline.data.columns
    for column in columns:
        name, values = str(column), outline.data[column]
        if name not in outline.graph or name in given:
            continue
        ordered = getattr(values.dtype, "categories", None)
        labels = _sorted(values.dropna().unique()) if ordered is None else list(ordered)
        if len(labels) > _MOST_LABELS:
            raise DowiseError(
                f"{name} has {len(labels):,} different values in the model's table: cut it into a "
                f"few (pandas.cut) or say its labels, domains={{{name!r}: […]}}"
            )
        found[name] = labels
    return found


def _sorted(values: Iterable[Any]) -> list[Any]:
    """In order; as texts where numbers and texts are mixed."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=str)
