"""Asking and telling: what those do who play an arm and see what comes of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import Response

from dowise.experiment.wire import change_to_json, decision_to_json
from dowise_web.api.dependencies import PREFIX, PROBLEMS, Asking, Key, Telling, answer
from dowise_web.api.schemas import CASE, DECISION, DECISIONS, Amend, Ask, AskMany, Tell, Withdraw

router = APIRouter(prefix=PREFIX, tags=["deciding"], responses=PROBLEMS)
Id = Annotated[int, Path(ge=1, le=2**53, description="The number of a decision.")]


@router.post("/ask", responses=DECISION)
def ask(experiment: Asking, body: Ask, key: Key = None) -> Response:
    """Which arm to play for this context; the decision is pending from then on. Role: ask."""
    request_id = key if body.request_id is None else body.request_id
    asked = experiment.ask(body.context, request_id, body.allowed, body.forbid)
    return answer(decision_to_json(asked))


@router.post("/ask-many", responses=DECISIONS)
def ask_many(experiment: Asking, body: AskMany, key: Key = None) -> Response:
    """A decision for each of these contexts, in one step. Role: ask."""
    request_id = key if body.request_id is None else body.request_id
    asked = experiment.ask_many(body.contexts, request_id, body.allowed, body.forbid)
    return answer({"decisions": [decision_to_json(one) for one in asked]})


@router.post("/tell/{id}", responses=CASE)
def tell(experiment: Telling, id: Id, body: Tell) -> Response:  # noqa: A002 (its name)
    """What was seen after a decision: in pieces, at any time, in any order. Role: tell."""
    case = experiment.tell(id, body.values, played=body.played, unrelated=body.unrelated)
    return answer(change_to_json(experiment.view(), case))


@router.post("/amend/{id}", responses=CASE)
def amend(experiment: Telling, id: Id, body: Amend) -> Response:  # noqa: A002
    """Correct what was told; the journal keeps what was before. Role: tell."""
    case = experiment.amend(
        id, body.values, body.reason, played=body.played, unrelated=body.unrelated
    )
    return answer(change_to_json(experiment.view(), case))


@router.post("/withdraw/{id}", responses=CASE)
def withdraw(experiment: Telling, id: Id, body: Withdraw) -> Response:  # noqa: A002
    """End a decision of which nothing more will be told. Role: tell."""
    case = experiment.withdraw(id, body.reason)
    return answer(change_to_json(experiment.view(), case))
