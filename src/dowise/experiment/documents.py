"""The documents that a service of experiments answers with, and that a client reads back.

They are what the commands print with `--json`, and besides:

    api           on what finds an experiment: the version of all this
    problem_id    which problem an answer is to be read under: it may have been revised since. The
                  document of the experiment has the texts of all that there were
    notes         of a decision: what was told and does not count, or not yet, in sentences
    earlier       of a decision that was changed: what it was before

Other answers (history, audit, counted, lists of decisions) are what `as_dict` gives. All are JSON
as `dowise.plain.plain` has it: NaN is null, infinity "inf". The way back is `from_dict` of the
class.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from dowise.belief import Belief
from dowise.experiment.asking import Asked
from dowise.experiment.case import Case
from dowise.experiment.evaluation import Evaluation
from dowise.experiment.explain import Explanation
from dowise.experiment.status import Status
from dowise.experiment.views import Views
from dowise.plain import plain
from dowise.problem import Problem
from dowise.problem.problem_file import problem_text

__all__ = [
    "API", "asked_document", "belief_document", "case_document", "evaluation_document",
    "experiment_document", "explanation_document", "problem_id", "said_document",
    "status_document",
]  # fmt: skip

API = 1
"""The version of these documents; a client refuses a newer one."""

Document = dict[str, Any]


def problem_id(problem: Problem) -> str:
    """Short for the whole text of a problem."""
    return sha256(problem_text(problem).encode()).hexdigest()[:16]


def experiment_document(experiment: Views) -> Document:
    """What holds in an experiment."""
    plan, earlier, head = experiment.outline()
    problem, own = plan.problem, problem_id(plan.problem)
    texts = {problem_id(one): problem_text(one) for one in earlier}
    page: Document = plain(
        {
            "api": API,
            "name": experiment.name,
            "problem": problem_text(problem),
            "problem_id": own,
            "earlier_problems": {key: text for key, text in texts.items() if key != own},
            "policy": plan.policy,
            "options": plan.options,
            "learn_restricted": plan.learn_restricted,
            "arms": [dict(arm) for arm in problem.arms],
            "forbidden": [dict(assignment) for assignment in problem.forbidden],
            "costs": problem.costs,
            "is_one_of_many": experiment.is_one_of_many,
            "head": str(head),
        }
    )
    return page


def asked_document(asked: Asked) -> Document:
    """A decision, as it was made."""
    return asked.document() | {"problem_id": problem_id(asked.problem)}


def case_document(experiment: Views, case: Case) -> Document:
    """A decision with what was told of it."""
    page = case.as_dict(experiment.problem)
    notes = [f"{line}." for line in experiment.idle(case.id)]
    return {**page, "notes": notes, "head": str(experiment.head)}


def said_document(experiment: Views, case: Case) -> Document:
    """A decision after something was said of it, and whether that changed it."""
    earlier = None if case.earlier is None else case.earlier.as_dict(experiment.problem)
    page = case_document(experiment, case)
    return page | {"changed": case.is_news, "earlier": earlier}


def status_document(status: Status, tolerance: float | None = None) -> Document:
    """Where an experiment stands."""
    return status.as_dict(tolerance) | {"problem_id": problem_id(status.problem)}


def explanation_document(found: Explanation) -> Document:
    """Why a decision came out as it did."""
    return found.as_dict() | {"problem_id": problem_id(found.decision.problem)}


def evaluation_document(found: Evaluation) -> Document:
    """What another policy would have earned."""
    return found.as_dict() | {"problem_id": problem_id(found.problem)}


def belief_document(belief: Belief) -> Document:
    """What is known."""
    return {"problem_id": problem_id(belief.problem), "belief": belief.as_dict()}
