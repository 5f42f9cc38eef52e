"""Ask for decisions, and record their outcomes."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from dowise.experiment import Case, Experiment, change_to_json, decision_to_json
from dowise_web.api.dependencies import (
    PREFIX,
    PROBLEMS,
    AskExperiment,
    DecisionId,
    IdempotencyKey,
    TellExperiment,
    json_response,
)
from dowise_web.api.schemas import CASE, DECISION, DECISIONS, Amend, Ask, AskMany, Tell, Withdraw

router = APIRouter(prefix=PREFIX, tags=["decisions"], responses=PROBLEMS)


@router.post("/ask", responses=DECISION)
def ask(experiment: AskExperiment, body: Ask, key: IdempotencyKey = None) -> Response:
    """Decide which arm to play in a context; the decision is pending from then on. Role: ask."""
    request_id = key if body.request_id is None else body.request_id
    decision = experiment.ask(body.context, request_id, body.allowed, body.forbid)
    return json_response(decision_to_json(decision))


@router.post("/ask-many", responses=DECISIONS)
def ask_many(experiment: AskExperiment, body: AskMany, key: IdempotencyKey = None) -> Response:
    """Decide for each of several contexts, in one step. Role: ask."""
    request_id = key if body.request_id is None else body.request_id
    decisions = experiment.ask_many(body.contexts, request_id, body.allowed, body.forbid)
    return json_response({"decisions": [decision_to_json(decision) for decision in decisions]})


@router.post("/tell/{id}", responses=CASE)
def tell(experiment: TellExperiment, id: DecisionId, body: Tell) -> Response:  # noqa: A002
    """Record the outcome of a decision: in parts, at any time, in any order. Role: tell."""
    case = experiment.tell(id, body.values, played=body.played, unrelated=body.unrelated)
    return _case_response(experiment, case)


@router.post("/amend/{id}", responses=CASE)
def amend(experiment: TellExperiment, id: DecisionId, body: Amend) -> Response:  # noqa: A002
    """Correct what was recorded; the journal keeps what was there before. Role: tell."""
    case = experiment.amend(
        id, body.values, body.reason, played=body.played, unrelated=body.unrelated
    )
    return _case_response(experiment, case)


@router.post("/withdraw/{id}", responses=CASE)
def withdraw(experiment: TellExperiment, id: DecisionId, body: Withdraw) -> Response:  # noqa: A002
    """Close a pending decision that will not get an outcome. Role: tell."""
    return _case_response(experiment, experiment.withdraw(id, body.reason))


def _case_response(experiment: Experiment, case: Case) -> Response:
    return json_response(change_to_json(experiment.view(), case))
