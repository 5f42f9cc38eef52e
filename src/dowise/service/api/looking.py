"""What is known: status, decisions, explanations, history."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

import dowise
from dowise.errors import DowiseError
from dowise.experiment.case import Status as CaseStatus
from dowise.experiment.documents import (
    asked_document,
    belief_document,
    case_document,
    evaluation_document,
    explanation_document,
    status_document,
)
from dowise.experiment.event import Head
from dowise.experiment.factor_views import formula_view, variable_view
from dowise.experiment.history import POINTS
from dowise.experiment.sent import target_from
from dowise.service.api.bodies import Evaluate, keyword_options
from dowise.service.api.common import (
    PREFIX,
    PROBLEMS,
    ContextQuery,
    Here,
    answer,
    check_policy_name,
    context_in,
    house_of,
    key_of,
    meant,
    not_modified,
    whose,
)
from dowise.service.api.documents import CASE, STATUS
from dowise.service.looks import PatientRoute

__all__ = ["MOST_ROUNDS", "router", "tag_of"]

router = APIRouter(prefix=PREFIX, tags=["looking"], responses=PROBLEMS, route_class=PatientRoute)
_MOST = 10_000  # that an option of a policy may ask for, such as draws at each decision
Id = Annotated[int, Path(ge=1, le=2**53, description="The number of a decision.")]
MOST_ROUNDS = 10_000  # which take seconds


def tag_of(head: Head, request: Request) -> str:
    """What an answer can be known by: the journal's head and what was asked of it."""
    asked = f"{dowise.__version__}|{head}|{request.url.path}|{request.url.query}"
    return f'W/"{hashlib.sha256(asked.encode()).hexdigest()[:32]}"'


@router.get("/status", responses=STATUS)
def status(
    request: Request,
    experiment: Here,
    context: ContextQuery = None,
    tolerance: Annotated[float | None, Query(ge=0, allow_inf_nan=False)] = None,
    rounds: Annotated[int | None, Query(ge=1, le=MOST_ROUNDS)] = None,
    evidence: bool | None = None,
) -> Response:
    """What each arm is expected to bring, how sure that is, what is open; with an ETag."""
    tag = tag_of(experiment.head, request)
    if (known := not_modified(request, tag)) is not None:
        return known
    seen = meant(experiment, context_in(context))
    head, found = house_of(request).look(
        experiment,
        ("status", key_of(seen), rounds, evidence),
        lambda: experiment.status(seen, evidence, rounds),
        whose(request) if rounds or evidence else None,
    )
    headers = {"ETag": tag_of(head, request), "Cache-Control": "private, no-cache"}
    return answer(status_document(found, tolerance), headers=headers)


@router.get("/decisions")
def decisions(
    experiment: Here,
    status: CaseStatus | None = None,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """The decisions with what was told of them, oldest first; `next` goes on."""
    problem, found = experiment.problem, experiment.decisions(after, limit + 1, status)
    page, more = found[:limit], len(found) > limit
    rest = page[-1].id if more else None
    return answer({"decisions": [case.as_dict(problem) for case in page], "next": rest})


@router.get("/decisions/{id}", responses=CASE)
def decision(experiment: Here, id: Id) -> Response:  # noqa: A002 (its name)
    """One decision, with what was told of it."""
    case = experiment.case(id)
    made = None if case.status == "erased" else asked_document(experiment.decision(id))
    return answer(case_document(experiment, case) | {"decision": made})


@router.get("/explain/{id}")
def explain(request: Request, experiment: Here, id: Id) -> Response:  # noqa: A002
    """Why a decision came out as it did."""
    _, found = house_of(request).look(
        experiment, ("explain", id), lambda: experiment.explain(id), whose(request)
    )
    return answer(explanation_document(found))


@router.get("/counted")
def counted(request: Request, experiment: Here) -> Response:
    """How many past records the policy learns from, and why not from the others."""
    with house_of(request).long_look(whose(request)):
        return answer(experiment.counted().as_dict())


@router.get("/belief")
def belief(request: Request, experiment: Here) -> Response:
    """What is known of every variable: counts by what they depend on."""
    with house_of(request).long_look(whose(request)):
        return answer(belief_document(experiment.belief))


@router.get("/variable")
def variable(
    request: Request, experiment: Here, variable: Annotated[str, Query(max_length=1000)]
) -> Response:
    """What is known of a variable: its factor, with counts and intervals."""
    key = ("variable", variable)
    _, found = house_of(request).look(
        experiment, key, lambda: variable_view(experiment.belief, variable)
    )
    return answer(found.as_dict())


@router.get("/formula")
def formula(experiment: Here, arm: Annotated[str, Query(max_length=10_000)]) -> Response:
    """The formula of an arm's expected reward."""
    return answer(formula_view(experiment.problem, arm).as_dict())


@router.get("/history")
def history(
    request: Request,
    experiment: Here,
    context: ContextQuery = None,
    points: Annotated[int, Query(ge=2, le=200)] = POINTS,
) -> Response:
    """How sure the experiment was along its journal."""
    seen = meant(experiment, context_in(context))
    key = ("history", key_of(seen), points)
    _, found = house_of(request).look(
        experiment, key, lambda: experiment.history(seen, points), whose(request)
    )
    return answer(found.as_dict())


@router.post("/evaluate")
def evaluate(request: Request, experiment: Here, body: Evaluate) -> Response:
    """What another policy, or one arm for all, would have earned on the same decisions."""
    policy = target_from(body.policy)
    if isinstance(policy, str) and not policy.lstrip().startswith("do("):
        check_policy_name(policy)
    elif body.options:
        raise DowiseError("an arm has no options: leave them out")
    _check_modest(body.options or {})
    with house_of(request).long_look(whose(request)):
        found = experiment.evaluate(policy, keyword_options(body.options), body.level)
    return answer(evaluation_document(found))


def _check_modest(options: Mapping[str, Any]) -> None:
    """Refuse what would take this process all its time or memory: whoever may look can ask."""
    for name, given in options.items():
        if isinstance(given, int | float) and given > _MOST:
            raise DowiseError(
                f"{name}={given:.6g} is too much for a server: give at most {_MOST:,}, or evaluate "
                "on a copy of the store with `dowise evaluate`"
            )
