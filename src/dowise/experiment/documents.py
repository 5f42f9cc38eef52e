"""The documents that a service of experiments answers with, and that a client reads back.

One function for each kind of answer, so that both sides have them from one place. They are what the
commands print with `--json`, and besides them:

    api           on what finds an experiment: the version of all this
    problem_id    which problem an answer is to be read under: it may have been revised since. The
                  document of the experiment has the texts of all that there were
    next          in a list that goes on: what `after` has to be for the rest, else null

All are JSON as `dowise.plain.plain` has it: NaN is null, infinity "inf".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from hashlib import sha256
from typing import Any

from dowise.belief import Belief
from dowise.experiment.advice import floor_advice
from dowise.experiment.asking import Asked
from dowise.experiment.audit import Audit
from dowise.experiment.case import Case
from dowise.experiment.counted import Counted
from dowise.experiment.evaluation import Evaluation
from dowise.experiment.event import DamagedEventError, Event, as_body
from dowise.experiment.explain import Explanation
from dowise.experiment.history import History
from dowise.experiment.status import Status
from dowise.experiment.views import Views
from dowise.plain import plain
from dowise.problem import Problem
from dowise.problem.files import problem_text

__all__ = [
    "API", "asked_document", "asked_many_document", "audit_document", "belief_document",
    "case_document", "counted_document", "decisions_document", "erased_document",
    "evaluation_document", "event_row", "events_document", "experiment_document",
    "experiments_document", "explanation_document", "history_document", "imported_document",
    "problem_id", "revised_document", "status_document", "table_document",
]  # fmt: skip

API = 1
"""The version of these documents; a client refuses a newer one."""

Document = dict[str, Any]

_AT_ONCE = 500  # events that are read together
_MOST_BYTES = 4 << 20  # of the bodies of events in one answer, and one event more


def problem_id(problem: Problem) -> str:
    """Short for the whole text of a problem."""
    return sha256(problem_text(problem).encode()).hexdigest()[:16]


# -- what there is ----------------------------------------------------------------------------


def experiments_document(experiments: Iterable[Views]) -> Document:
    """GET /api/experiments."""
    rows = []
    for experiment in experiments:
        plan, _, head, decisions = experiment.outline()
        page = {"name": experiment.name, "policy": plan.policy, "decisions": decisions}
        rows.append(page | {"head": str(head)})
    return {"api": API, "experiments": rows}


def experiment_document(experiment: Views) -> Document:
    """GET /api/experiments/{name}, and what making one answers."""
    plan, earlier, head, decisions = experiment.outline()
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
            "deterministic": floor_advice(plan.policy, plan.options) is not None,
            "arms": [dict(arm) for arm in problem.arms],
            "forbidden": [dict(assignment) for assignment in problem.forbidden],
            "costs": problem.costs,
            "decisions": decisions,
            "head": str(head),
            "is_one_of_many": experiment.is_one_of_many,
        }
    )
    return page


# -- asking and telling -----------------------------------------------------------------------


def asked_document(asked: Asked) -> Document:
    """POST …/ask."""
    return asked.as_dict() | {"problem_id": problem_id(asked.problem)}


def asked_many_document(asked: Iterable[Asked]) -> Document:
    """POST …/ask-many."""
    return {"decisions": [asked_document(one) for one in asked]}


def case_document(experiment: Views, case: Case, before: Case | None = None) -> Document:
    """GET …/decisions/{id}; POST …/tell, …/amend, …/withdraw with what it was `before`.

    `notes` says what was told and does not count, or not yet.
    """
    page = case.as_dict(experiment.problem)
    notes = [f"{line}." for line in experiment.idle(case.id)]
    changed = {} if before is None else {"changed": case.last_event != before.last_event}
    return {**page, "notes": notes, **changed, "head": str(experiment.head)}


def erased_document(experiment: Views, before: Case) -> Document:
    """POST …/erase/{id}, with what the decision was before."""
    changed = before.status != "erased"
    page = {"id": before.id, "status": "erased", "changed": changed}
    return {**page, "head": str(experiment.head)}


def revised_document(experiment: Views, changed: bool) -> Document:
    """POST …/revise."""
    return experiment_document(experiment) | {"changed": changed}


def imported_document(experiment: Views, imported: int) -> Document:
    """POST …/import."""
    return {"imported": imported, "changed": imported > 0, "head": str(experiment.head)}


# -- looking ----------------------------------------------------------------------------------


def decisions_document(
    experiment: Views, status: str | None = None, after: int = 0, limit: int = 500
) -> Document:
    """GET …/decisions: those of a status with a larger number than `after`, so many at most."""
    problem = experiment.problem
    wanted = [
        case
        for case in experiment.records()
        if case.id > after and status in (None, case.status)
    ]  # fmt: skip
    shown = wanted[: max(limit, 1)]
    return {
        "decisions": [case.as_dict(problem) for case in shown],
        "next": shown[-1].id if len(shown) < len(wanted) else None,
    }


def status_document(status: Status, tolerance: float | None = None) -> Document:
    """GET …/status."""
    return status.as_dict(tolerance) | {"problem_id": problem_id(status.problem)}


def explanation_document(found: Explanation) -> Document:
    """GET …/explain/{id}."""
    return found.as_dict() | {"problem_id": problem_id(found.decision.problem)}


def evaluation_document(found: Evaluation) -> Document:
    """POST …/evaluate."""
    return found.as_dict() | {"problem_id": problem_id(found.problem)}


def history_document(found: History) -> Document:
    """GET …/history."""
    return found.as_dict()


def audit_document(found: Audit) -> Document:
    """GET …/audit."""
    return found.as_dict()


def counted_document(found: Counted) -> Document:
    """GET …/counted."""
    return found.as_dict()


def belief_document(belief: Belief) -> Document:
    """GET …/belief."""
    return {"problem_id": problem_id(belief.problem), "belief": belief.as_dict()}


def table_document(table: dict[str, list[Any]]) -> Document:
    """GET …/export?format=json: the columns of `Experiment.table`."""
    return {"rows": len(table["id"]), "columns": table}


# -- the journal ------------------------------------------------------------------------------


def events_document(
    experiment: Views,
    after: int = 0,
    limit: int = 500,
    kinds: Collection[str] | None = None,
    search: str | None = None,
    whole: bool = False,
) -> Document:
    """GET …/events: those with a larger number than `after`, so many at most.

    They may be of some `kinds`, or say something that is searched for. Only an admin sees them
    `whole`.
    """
    last = experiment.head.number
    wanted, rows, room = _wanted(kinds, search), list[Document](), _MOST_BYTES
    number = after
    while number < last:
        chunk = experiment.events(number, min(number + _AT_ONCE, last))
        if not chunk:
            return {"events": rows, "next": None}
        for event in chunk:
            number = event.number
            row = event_row(event, whole)
            if wanted(row):
                rows.append(row)
                room -= len(row["body"])
                if len(rows) >= max(limit, 1) or room <= 0:
                    return {"events": rows, "next": number if number < last else None}
    return {"events": rows, "next": None}


def event_row(event: Event, whole: bool = False) -> Document:
    """An event as it is stored, for an admin; for others without what must stay secret.

    That is the seed, by which arms could be foreseen, and the salts, with which one could try out
    what an event said that is erased later. Then it is `cut`: nobody can verify it.
    """
    row: Document = {**event.row(), "cut": False}
    if whole or event.is_erased:
        return row
    row |= {"salt": None, "cut": True}
    if event.kind == "created":
        try:
            page = event.says | {"seed": None}
        except DamagedEventError:
            page = {}
        row["body"] = as_body(page)
    return row


def _wanted(kinds: Collection[str] | None, search: str | None) -> Callable[[Document], bool]:
    text = (search or "").casefold()

    def wanted(row: Document) -> bool:
        if kinds is not None and row["kind"] not in kinds:
            return False
        said = (row["kind"], row["at"], row["actor"], row["body"])
        return not text or any(text in part.casefold() for part in said)

    return wanted
