"""What is sent to a service of experiments, as JSON, and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dowise.belief.prior import parse_prior
from dowise.errors import DowiseError
from dowise.experiment.plan import as_json
from dowise.files import read_file
from dowise.problem import Intervention, Problem
from dowise.problem.domains import MISSING, as_mapping, text_of
from dowise.problem.problem import ArmLike
from dowise.problem.tables import CheckedRecords

__all__ = [
    "arm_page", "arm_pages", "options_page", "records_from", "records_page", "target_from",
    "target_page", "values_page",
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
    """The good rows of a table, how many others it had, and whose decisions they are.

    A row has the labels that were seen, and under `arm` what was set.
    """
    batch = found.batch
    names, domains = batch.problem.graph.variables, list(batch.problem.domains.values())
    arms, which = batch.arms()
    if any(arms) and "arm" in names:
        raise DowiseError(
            "a variable is called 'arm', so rows can't say which arms were played: import the "
            "table where the store is"
        )
    texts = [{} if "arm" in names else {"arm": str(arm)} for arm in arms]
    seen = np.where(batch.was_set, MISSING, batch.codes)
    rows = [
        texts[kind] | {names[v]: domains[v][code] for v, code in enumerate(codes) if code >= 0}
        for kind, codes in zip(which.tolist(), seen.T.tolist(), strict=True)
    ]
    return {"records": rows, "skipped": found.bad_count, "asked_at": sorted(found.asked_at)}


def records_from(
    rows: Sequence[Mapping[str, Any]],
    problem: Problem,
    skipped: int = 0,
    asked_at: Iterable[str] = (),
) -> CheckedRecords:
    """The way back, checked anew; what a row lacks is missing in it."""
    names = dict.fromkeys(name for row in rows for name in row)
    found = problem.checked_records({name: [row.get(name) for row in rows] for name in names})
    return replace(
        found, bad_count=found.bad_count + skipped, asked_at=found.asked_at | {*asked_at}
    )
