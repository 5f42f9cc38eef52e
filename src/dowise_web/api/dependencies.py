"""Dependencies of the routers: experiments by path and role, views, contexts, responses."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool

from dowise.errors import DowiseError, suggestion
from dowise.experiment import Experiment, StateView, to_json
from dowise.policies import is_known, policy_names
from dowise.problem import Problem
from dowise_web.auth import Principal, Reader, principal_id, require_role
from dowise_web.registry import ExperimentRegistry

Result = TypeVar("Result")

PREFIX = "/api/experiments/{name:path}"


class ProblemDetails(BaseModel):
    """Problem details (RFC 9457); `code` is a stable identifier."""

    model_config = ConfigDict(extra="allow", title="Problem")
    type: str
    title: str
    status: int
    detail: str
    code: str


_DESCRIPTIONS = {
    400: "The request is malformed.",
    401: "The token is missing or not valid.",
    403: "The role of the token does not allow this.",
    404: "Not found.",
    408: "The request arrived too slowly.",
    409: "The request contradicts what is recorded.",
    413: "The request is too large.",
    415: "The media type is not supported.",
    421: "The server has another name.",
    422: "Something in the request is wrong.",
    429: "Too many requests; Retry-After tells when to try again.",
    503: "Not possible at the moment, for example because the disk is full.",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": description,
        "content": {"application/problem+json": {"schema": ProblemDetails.model_json_schema()}},
    }
    for status, description in _DESCRIPTIONS.items()
}


def get_registry(request: Request) -> ExperimentRegistry:
    """Return the registry of the app."""
    registry: ExperimentRegistry = request.app.state.registry
    return registry


def _experiment_for(role: str) -> Any:
    required = Depends(require_role(role))

    def experiment(request: Request, name: str, principal: Principal = required) -> Experiment:
        """Return the experiment of the path, with the principal as the actor."""
        return get_registry(request).experiment(name).acting_as(principal.name)

    return Depends(experiment)


ReadExperiment = Annotated[Experiment, _experiment_for("read")]
TellExperiment = Annotated[Experiment, _experiment_for("tell")]
AskExperiment = Annotated[Experiment, _experiment_for("ask")]
AdminExperiment = Annotated[Experiment, _experiment_for("admin")]


def _view(request: Request, name: str, principal: Reader) -> StateView:  # noqa: ARG001
    """Return a view of the experiment: everything in a response is of this one moment."""
    return get_registry(request).experiment(name).view()


CurrentView = Annotated[StateView, Depends(_view)]
DecisionId = Annotated[int, Path(ge=1, le=2**53, description="The number of a decision.")]
ContextQuery = Annotated[
    str | None,
    Query(
        alias="context",
        max_length=10_000,
        examples=['{"Age": "1"}'],
        description="A context, as JSON; all contexts without it.",
    ),
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        description="The same request with the same key returns the same decision.",
    ),
]


async def cached(
    request: Request,
    view: StateView,
    key: Hashable,
    compute: Callable[[StateView], Result],
    *,
    is_long: bool = False,
    is_exact: bool = False,
) -> tuple[StateView, Result]:
    """Return a result from the cache of the registry, computed if needed, and its view."""
    return await get_registry(request).results.get(
        view, key, compute, principal_id(request), is_long=is_long, is_exact=is_exact
    )


async def run_long(request: Request, function: Callable[..., Result], *arguments: Any) -> Result:
    """Run a long query in a thread, in a slot of the limiter; nothing is cached."""
    async with get_registry(request).limiter.enqueue(principal_id(request)):
        return await run_in_threadpool(partial(function, *arguments))


def parse_context(text: str | None, problem: Problem) -> dict[str, str] | None:
    """Parse a context given as JSON, in the labels of the problem."""
    if text is None:
        return None
    try:
        context = json.loads(text)
    except (ValueError, RecursionError):
        context = None
    if not isinstance(context, dict):
        raise DowiseError(
            f'context={text!r:.80} must be a JSON object, such as {{"Age": "1"}}',
            code="invalid-context",
        )
    return normalize_context(context, problem)


def normalize_context(context: Mapping[str, Any], problem: Problem) -> dict[str, str] | None:
    """Return a context in the labels of the problem, so that equal contexts share a result."""
    return problem.context_labels(problem.context_codes(context)) or None


def context_key(context: Mapping[str, str] | None) -> Hashable:
    """Return a hashable key of a context."""
    return None if context is None else tuple(context.items())


def check_policy_name(policy: str | None) -> None:
    """Raise `DowiseError` for policies that would have to be imported."""
    if policy is not None and policy != "best" and not is_known(policy):
        raise DowiseError(
            f"unknown policy {policy!r:.80}{suggestion(policy, policy_names())}; custom policies "
            "must be loaded when the server starts (dowise serve --policy-module MODULE)",
            code="unknown-policy",
        )


def json_response(
    data: Any, status: int = 200, headers: dict[str, str] | None = None
) -> JSONResponse:
    """Return data as JSON."""
    return JSONResponse(to_json(data), status, headers)


def not_modified(request: Request, tag: str) -> Response | None:
    """Return the response for a client that already has the current document."""
    header = request.headers.get("if-none-match", "")
    tags = {part.strip().removeprefix("W/") for part in header.split(",")}
    if tag.removeprefix("W/") not in tags:
        return None
    return Response(status_code=304, headers={"ETag": tag, "Cache-Control": "private, no-cache"})
