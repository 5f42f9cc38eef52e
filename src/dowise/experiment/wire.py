"""The documents that a service of experiments answers with, and that a client reads back.

They are what the commands print with `--json`, and besides:

    api           on what finds an experiment: the version of all this
    problem_id    which problem an answer is to be read under: it may have been revised since. The
                  document of the experiment has the texts of all that there were
    notes         of a decision: what was told and does not count, or not yet, in sentences
    earlier       of a decision that was changed: what it was before

Other answers (history, audit, counted, lists of decisions) are what `as_dict` gives. All are JSON
as `dowise._core.text.plain` has it: NaN is null, infinity "inf". The way back is `from_dict` of the
class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dowise._core.codec import to_json
from dowise._core.files import read_file
from dowise.belief import Belief
from dowise.errors import DowiseError
from dowise.experiment.ask import LiveDecision
from dowise.experiment.case import Case
from dowise.experiment.config import option_to_json
from dowise.experiment.evaluation import Evaluation
from dowise.experiment.explanation import Explanation
from dowise.experiment.status import Status
from dowise.experiment.view import StateView
from dowise.problem import Intervention, Problem
from dowise.problem.domains import MISSING, as_mapping, text_of
from dowise.problem.prior import parse_prior
from dowise.problem.problem import ArmLike
from dowise.problem.problem_file import problem_text
from dowise.problem.tables import CheckedRecords

if TYPE_CHECKING:
    from dowise.experiment.experiment import Experiment

API = 1
"""The version of these documents; a client refuses a newer one."""

Document = dict[str, Any]


def problem_id(problem: Problem) -> str:
    """Short for the whole text of a problem."""
    return sha256(problem_text(problem).encode()).hexdigest()[:16]


def experiment_to_json(experiment: Experiment) -> Document:
    """What holds in an experiment."""
    view = experiment.view()
    problem, own = view.problem, problem_id(view.problem)
    texts = {problem_id(one): problem_text(one) for one in view.earlier_problems}
    page: Document = to_json(
        {
            "api": API,
            "name": experiment.name,
            "problem": problem_text(problem),
            "problem_id": own,
            "earlier_problems": {key: text for key, text in texts.items() if key != own},
            "policy": view.policy,
            "options": view.options,
            "learn_restricted": view.learn_restricted,
            "arms": [dict(arm) for arm in problem.arms],
            "forbidden": [dict(assignment) for assignment in problem.forbidden],
            "costs": problem.costs,
            "is_one_of_many": experiment.is_one_of_many,
            "head": str(view.head),
        }
    )
    return page


def decision_to_json(asked: LiveDecision) -> Document:
    """A decision, as it was made."""
    return asked.to_json() | {"problem_id": problem_id(asked.problem)}


def case_to_json(view: StateView, case: Case) -> Document:
    """A decision with what was told of it."""
    notes = [f"{line}." for line in view.idle(case.id)]
    return {**case.as_dict(view.problem), "notes": notes, "head": str(view.head)}


def change_to_json(view: StateView, case: Case) -> Document:
    """A decision after something was said of it, and whether that changed it."""
    earlier = None if case.previous is None else case.previous.as_dict(view.problem)
    page = case_to_json(view, case)
    return page | {"changed": case.changed, "earlier": earlier}


def status_to_json(status: Status, tolerance: float | None = None) -> Document:
    """Where an experiment stands."""
    return status.as_dict(tolerance) | {"problem_id": problem_id(status.problem)}


def explanation_to_json(found: Explanation) -> Document:
    """Why a decision came out as it did."""
    return found.as_dict() | {"problem_id": problem_id(found.decision.problem)}


def evaluation_to_json(found: Evaluation) -> Document:
    """What another policy would have earned."""
    return found.as_dict() | {"problem_id": problem_id(found.problem)}


def belief_to_json(belief: Belief) -> Document:
    """What is known."""
    return {"problem_id": problem_id(belief.problem), "belief": belief.as_dict()}


Page = dict[str, Any]


def values_to_json(values: object, what: str) -> dict[str, str | None]:
    """A context, or what was told: texts by variable, None where a value is missing."""
    return {str(name): text_of(value) for name, value in as_mapping(values, what).items()}


def arm_to_json(arm: ArmLike) -> Any:
    """An arm as it was given: a text, or what it sets."""
    return arm if isinstance(arm, str) else dict(Intervention(arm))


def arms_to_json(arms: Iterable[ArmLike] | None) -> list[Any] | None:
    """Several of them; None where nothing was said of any."""
    return None if arms is None else [arm_to_json(arm) for arm in arms]


# -- the options of a policy ------------------------------------------------------------------


def options_to_json(options: object) -> Page:
    """Options of a policy, with what a file says of the prior in place of its path."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise DowiseError(f"options={options!r} must map names to values, {{'samples': 1000}}")
    given = dict(options)
    if isinstance(prior := given.get("prior"), str | Path):
        given["prior"] = read_file(prior, parse_prior)
    return {str(name): option_to_json(str(name), value) for name, value in given.items()}


# -- whom to evaluate -------------------------------------------------------------------------


def target_to_json(target: Any) -> Any:
    """A policy's name or an arm; a rule as a list of pairs: the labels of a context, an arm."""
    if isinstance(target, str):
        return target
    if not isinstance(target, Mapping):
        raise DowiseError(
            f"{target!r:.80} can't be sent: give the name of a policy that the server knows, an "
            "arm such as 'do(X=1)', or a mapping from contexts to arms"
        )
    if any(isinstance(key, tuple) for key in target):
        return [[[*map(str, key)], arm_to_json(arm)] for key, arm in target.items()]
    return arm_to_json(target)


def target_from_json(page: object) -> Any:
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


def records_to_json(found: CheckedRecords) -> Page:
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


def records_from_json(
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
