"""JSON documents of the HTTP API: what a server sends, and a client reads.

Most of them are the `as_dict` of a result, as the commands print with `--json`. Some have further
keys:

    api           of an experiment: version of these documents
    problem_id    of a result: the problem to read it under, since the experiment may have been
                  revised; the document of the experiment has the texts of all its problems
    notes         of a decision: sentences about values that do not count, or not yet
    earlier       of a decision that was changed: the decision before the change

NaN is null and infinity is "inf". The inverse is `from_dict` of the class of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dowise._core.codec import to_json
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
from dowise.problem.prior import is_prior_name, read_prior
from dowise.problem.problem import ArmLike
from dowise.problem.problem_file import problem_text
from dowise.problem.tables import CheckedRecords

if TYPE_CHECKING:
    from dowise.experiment.experiment import Experiment

API = 1
"""Version of these documents; a client refuses a newer one."""

Json = dict[str, Any]


# -- responses ------------------------------------------------------------------------------------


def problem_id(problem: Problem) -> str:
    """Return a short digest of the text of a problem."""
    return sha256(problem_text(problem).encode()).hexdigest()[:16]


def experiment_to_json(experiment: Experiment) -> Json:
    """Return the document of an experiment: its configuration and its head."""
    view = experiment.view()
    problem = view.problem
    earlier = {problem_id(past): problem_text(past) for past in view.earlier_problems}
    earlier.pop(problem_id(problem), None)
    data: Json = to_json(
        {
            "api": API,
            "name": experiment.name,
            "problem": problem_text(problem),
            "problem_id": problem_id(problem),
            "earlier_problems": earlier,
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
    return data


def decision_to_json(decision: LiveDecision) -> Json:
    """Return the document of a decision as it was made."""
    return decision.to_json() | {"problem_id": problem_id(decision.problem)}


def case_to_json(view: StateView, case: Case) -> Json:
    """Return the document of a decision with its outcome."""
    notes = [f"{line}." for line in view.idle(case.id)]
    return {**case.as_dict(view.problem), "notes": notes, "head": str(view.head)}


def change_to_json(view: StateView, case: Case) -> Json:
    """Return the document of a decision after a call, and whether the call changed it."""
    earlier = None if case.previous is None else case.previous.as_dict(view.problem)
    return case_to_json(view, case) | {"changed": case.changed, "earlier": earlier}


def status_to_json(status: Status, tolerance: float | None = None) -> Json:
    """Return the document of a status."""
    return status.as_dict(tolerance) | {"problem_id": problem_id(status.problem)}


def explanation_to_json(explanation: Explanation) -> Json:
    """Return the document of an explanation."""
    return explanation.as_dict() | {"problem_id": problem_id(explanation.decision.problem)}


def evaluation_to_json(evaluation: Evaluation) -> Json:
    """Return the document of an evaluation."""
    return evaluation.as_dict() | {"problem_id": problem_id(evaluation.problem)}


def belief_to_json(belief: Belief) -> Json:
    """Return the document of a belief."""
    return {"problem_id": problem_id(belief.problem), "belief": belief.as_dict()}


# -- requests -------------------------------------------------------------------------------------


def values_to_json(values: object, name: str) -> dict[str, str | None]:
    """Return a context or an outcome as texts by variable, None if missing; errors say `name`."""
    return {str(key): text_of(value) for key, value in as_mapping(values, name).items()}


def arm_to_json(arm: ArmLike) -> Any:
    """Return an arm as the user wrote it: a text, or a mapping."""
    return arm if isinstance(arm, str) else dict(Intervention(arm))


def arms_to_json(arms: Iterable[ArmLike] | None) -> list[Any] | None:
    """Return several arms."""
    return None if arms is None else [arm_to_json(arm) for arm in arms]


def options_to_json(options: object) -> Json:
    """Return the options of a policy; the path of a prior is replaced by its content."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise DowiseError(
            f"options={options!r} must map names to values, {{'samples': 1000}}",
            code="invalid-type",
        )
    values = dict(options)
    prior = values.get("prior")
    if isinstance(prior, str | Path) and not is_prior_name(prior):
        values["prior"] = read_prior(prior)
    return {str(name): option_to_json(str(name), value) for name, value in values.items()}


def target_to_json(target: Any) -> Any:
    """Return a policy's name or an arm; a rule as pairs of the labels of a context and an arm."""
    if isinstance(target, str):
        return target
    if not isinstance(target, Mapping):
        raise DowiseError(
            f"{target!r:.80} can't be sent (expected the name of a policy that the server knows, "
            "an arm such as 'do(X=1)', or a mapping from contexts to arms)",
            code="invalid-type",
        )
    if any(isinstance(key, tuple) for key in target):
        return [[[*map(str, key)], arm_to_json(arm)] for key, arm in target.items()]
    return arm_to_json(target)


def target_from_json(data: object) -> Any:
    """Inverse of `target_to_json`."""
    if not isinstance(data, list):
        return data
    try:
        return {tuple(map(str, labels)): arm for labels, arm in data}
    except (TypeError, ValueError):
        raise DowiseError(
            "a rule must be a list of pairs, the labels of a context and an arm: "
            "[[['1'], 'do(X=1)']]"
        ) from None


def records_to_json(checked: CheckedRecords) -> Json:
    """Return the good rows of a table, the number of bad ones, and the times of their decisions.

    A row has the labels that were observed, and under `arm` what was set.
    """
    batch = checked.batch
    names, domains = batch.problem.graph.variables, list(batch.problem.domains.values())
    arms, arm_of_row = batch.arms()
    if any(arms) and "arm" in names:
        raise DowiseError(
            "a variable is called 'arm', so rows can't say which arms were played: import the "
            "table where the store is"
        )
    texts = [{} if "arm" in names else {"arm": str(arm)} for arm in arms]
    observed = np.where(batch.was_set, MISSING, batch.codes)
    rows = [
        texts[arm] | {names[v]: domains[v][code] for v, code in enumerate(codes) if code >= 0}
        for arm, codes in zip(arm_of_row.tolist(), observed.T.tolist(), strict=True)
    ]
    return {"records": rows, "skipped": checked.bad_count, "asked_at": sorted(checked.asked_at)}


def records_from_json(
    rows: Sequence[Mapping[str, Any]],
    problem: Problem,
    skipped: int = 0,
    asked_at: Iterable[str] = (),
) -> CheckedRecords:
    """Check rows again, as the inverse of `records_to_json`; what a row lacks is missing in it."""
    names = dict.fromkeys(name for row in rows for name in row)
    checked = problem.checked_records({name: [row.get(name) for row in rows] for name in names})
    return replace(
        checked, bad_count=checked.bad_count + skipped, asked_at=checked.asked_at | {*asked_at}
    )
