"""What routers share: the experiment that a path names, contexts in queries, answers."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict

from dowise._core.codec import to_json
from dowise.errors import DowiseError
from dowise.experiment.experiment import Experiment
from dowise.policies.registry import is_known
from dowise_web.auth import Principal, needs
from dowise_web.registry import ExperimentRegistry

PREFIX = "/api/experiments/{name:path}"


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    model_config = ConfigDict(extra="allow")
    type: str
    title: str
    status: int
    detail: str


_WHY = {
    400: "It can't be read.", 401: "No token, or one that is not valid.",
    403: "The token's role does not allow this.", 404: "There is no such thing.",
    408: "It came too slowly.", 409: "It contradicts what holds already.",
    413: "It is too large.",
    415: "It is of a kind that is not read here.", 422: "Something in it is wrong.",
    421: "The server has another name.", 429: "Too much at once; Retry-After says for how long.",
    503: "It can't be done now, as with a full disk.",
}  # fmt: skip
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": why,
        "content": {"application/problem+json": {"schema": Problem.model_json_schema()}},
    }
    for status, why in _WHY.items()
}


def house_of(request: Request) -> ExperimentRegistry:
    """The house that is served."""
    house: ExperimentRegistry = request.app.state.house
    return house


def whose(request: Request) -> int:
    """For whom a long look takes its turn: one who has passed the door."""
    visitor: Principal = request.state.visitor
    return visitor.source


def _here(role: str) -> Any:
    allowed = Depends(needs(role))

    def experiment(request: Request, name: str, visitor: Principal = allowed) -> Experiment:
        """The experiment, with the visitor as the one who acts: only for those who may."""
        return house_of(request).experiment(name).acting_as(visitor.name)

    return Depends(experiment)


Here = Annotated[Experiment, _here("read")]
Telling = Annotated[Experiment, _here("tell")]
Asking = Annotated[Experiment, _here("ask")]
Keeping = Annotated[Experiment, _here("admin")]
ContextQuery = Annotated[
    str | None,
    Query(
        alias="context", max_length=10_000, examples=['{"Age": "1"}'],
        description="A context, as JSON; all contexts without it.",
    ),
]  # fmt: skip
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", max_length=200,
        description="The same question with the same key gives the same decision.",
    ),
]  # fmt: skip


def context_in(text: str | None) -> dict[str, Any] | None:
    """The context that a query names."""
    if text is None:
        return None
    try:
        context = json.loads(text)
    except (ValueError, RecursionError):
        context = None
    if not isinstance(context, dict):
        raise DowiseError(f'context={text!r:.80} must be a JSON object, such as {{"Age": "1"}}')
    return context


def meant(experiment: Experiment, context: Mapping[str, Any] | None) -> dict[str, str] | None:
    """A context as the problem has it, so that equal ones are one look however they are written."""
    if context is None:
        return None
    problem = experiment.problem
    return problem.context_labels(problem.context_codes(context)) or None


def key_of(context: Mapping[str, str] | None) -> Hashable:
    """The same for the key of a look."""
    return None if context is None else tuple(context.items())


def check_policy_name(policy: str | None) -> None:
    """Refuse what would have to be imported."""
    if policy is not None and policy != "best" and not is_known(policy):
        from dowise.errors import suggestion
        from dowise.policies.registry import policy_names

        near = suggestion(policy, policy_names())
        raise DowiseError(
            f"the policy {policy!r:.80} is not known here{near}: one of your own must be loaded "
            "when the server starts (dowise serve --policy-module MODULE)"
        )


def answer(page: Any, status: int = 200, headers: dict[str, str] | None = None) -> JSONResponse:
    """A document, as JSON has it."""
    return JSONResponse(to_json(page), status, headers)


def not_modified(request: Request, tag: str) -> Response | None:
    """The answer for those who have it already."""
    given = request.headers.get("if-none-match", "")
    known = {one.strip().removeprefix("W/") for one in given.split(",")}
    if tag.removeprefix("W/") in known:
        return Response(
            status_code=304, headers={"ETag": tag, "Cache-Control": "private, no-cache"}
        )
    return None
