"""What is sent to a service of experiments: as JSON, and the way back, which opens no file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dowise.belief.prior import parse_prior
from dowise.checks import whole_number
from dowise.errors import DowiseError, kind_of
from dowise.experiment.plan import as_json
from dowise.files import read_file
from dowise.problem import Intervention, Problem
from dowise.problem.checked import CheckedRecords
from dowise.problem.problem import ArmLike
from dowise.problem.values import MISSING, as_mapping, text_of

__all__ = [
    "arm_page", "arm_pages", "options_from", "options_page", "records_from", "records_page",
    "target_from", "target_page", "values_page",
]  # fmt: skip

Page = dict[str, Any]


def values_page(values: object, what: str) -> dict[str, str | None]:
    """A context, or what was told: texts by variable, None where a value is missing."""
    return {str(name): text_of(value) for name, value in as_mapping(values, what).items()}


def arm_page(arm: ArmLike) -> Any:
    """An arm as it was given: a text, or what it sets."""
    return arm if isinstance(arm, str) else dict(Intervention(arm))


def arm_pages(arms: Iterable[ArmLike] | None) -> list[Any] | None:
    """Several of them; None where nothing was said of any."""
    return None if arms is None else [arm_page(arm) for arm in arms]


# -- the options of a policy ------------------------------------------------------------------


def options_page(options: object) -> Page:
    """Options of a policy, with what a file says of the prior in place of its path."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise DowiseError(f"options={options!r} must map names to values, {{'samples': 1000}}")
    given = dict(options)
    if isinstance(prior := given.get("prior"), str | Path):
        given["prior"] = read_file(prior, parse_prior)
    return {str(name): as_json(str(name), value) for name, value in given.items()}


def options_from(page: object) -> Page:
    """The way back; a prior that is a text would name a file here, and is refused."""
    if page is None:
        return {}
    if not isinstance(page, dict):
        raise DowiseError(f"options must map names to values, not be {kind_of(page)}")
    if isinstance(page.get("prior"), str):
        raise DowiseError("a file of the prior is not read here: send its counts by variable")
    return dict(page)


# -- whom to evaluate -------------------------------------------------------------------------


def target_page(target: Any) -> Any:
    """A policy's name or an arm; a rule as a list of pairs: the labels of a context, an arm."""
    if isinstance(target, str):
        return target
    if not isinstance(target, Mapping):
        raise DowiseError(
            f"{target!r:.80} can't be sent: give the name of a policy that the server knows, an "
            "arm such as 'do(X=1)', or a mapping from contexts to arms"
        )
    if any(isinstance(key, tuple) for key in target):
        return [[[*map(str, key)], arm_page(arm)] for key, arm in target.items()]
    return arm_page(target)


def target_from(page: object) -> Any:
    """The way back."""
    if not isinstance(page, list):
        return page
    try:
        return {tuple(map(str, labels)): arm for labels, arm in page}
    except (TypeError, ValueError):
        raise DowiseError(
            "a rule is a list of pairs, the labels of a context and an arm: [[['1'], 'do(X=1)']]"
        ) from None


# -- records ----------------------------------------------------------------------------------


def records_page(found: CheckedRecords) -> Page:
    """The good rows of a table by columns, and how many others it has."""
    batch, columns = found.batch, dict[str, list[str | None]]()
    for v, (name, domain) in enumerate(batch.problem.domains.items()):
        seen = np.where(batch.was_set[v], MISSING, batch.codes[v])
        if (seen != MISSING).any():
            labels = np.array([*domain, None], dtype=object)  # MISSING is the last one
            columns[name] = labels[seen].tolist()
    arms, which = batch.arms()
    if any(arms) and "arm" in batch.problem.graph:
        raise DowiseError(
            "a variable is called 'arm', so the table can't say which arms were played: import it "
            "where the store is"
        )
    if "arm" not in batch.problem.graph:
        texts = [str(arm) for arm in arms]
        columns["arm"] = [texts[i] for i in which.tolist()]
    page: Page = {"columns": columns, "skipped": found.bad_count}
    return page | ({"asked_at": sorted(found.asked_at)} if found.asked_at else {})


def records_from(page: object, problem: Problem) -> CheckedRecords:
    """The way back, checked anew; `rows`, a list of mappings, may stand in place of `columns`."""
    if not isinstance(page, Mapping) or ("columns" in page) == ("rows" in page):
        raise DowiseError(
            "records are sent as {'columns': {'X': ['0', '1'], 'arm': […]}} or as "
            "{'rows': [{'X': '0', 'arm': 'do()'}, …]}"
        )
    table = page["columns"] if "columns" in page else _columns(page["rows"])
    if not isinstance(table, Mapping) or not all(isinstance(x, list) for x in table.values()):
        raise DowiseError("the columns of records must map names to lists of values")
    found = problem.checked_records(table)
    skipped = whole_number("skipped", page.get("skipped", 0), 0)
    asked_at = page.get("asked_at", [])
    if not isinstance(asked_at, list):
        raise DowiseError("asked_at must be a list of times")
    return replace(
        found,
        bad_count=found.bad_count + skipped,
        asked_at=found.asked_at | {str(at) for at in asked_at},
    )


def _columns(rows: object) -> dict[str, list[Any]]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DowiseError("the rows of records must be a list of mappings from name to value")
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}
