"""Create, revise and fill experiments; tokens; previews and rehearsals of problems."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

import dowise
from dowise.errors import DowiseError, NotFoundError
from dowise.experiment import (
    API,
    experiment_to_json,
    forbidden_note,
    no_reward_note,
    problem_of,
    records_from_json,
)
from dowise.policies import is_built_in
from dowise.problem import Problem, problem_text
from dowise_web import tokens
from dowise_web.api.dependencies import (
    PREFIX,
    PROBLEMS,
    AdminExperiment,
    DecisionId,
    ReadExperiment,
    check_policy_name,
    get_registry,
    json_response,
)
from dowise_web.api.schemas import (
    EXPERIMENTS,
    TOKENS,
    Erase,
    Import,
    NewExperiment,
    NewToken,
    Preview,
    Rehearse,
    Revise,
    keyword_options,
)
from dowise_web.auth import Admin, Principal, Reader
from dowise_web.registry import ExperimentRegistry
from dowise_web.sandbox import get_sandbox

router = APIRouter(responses=PROBLEMS)
_ACCESS: list[Any] = ["access"]
_EXPERIMENTS: list[Any] = ["experiments"]
_PREVIEWS: list[Any] = ["previews"]

MAX_CELLS = 5_000_000  # of a table of records
MAX_SEED = 2**128 - 1


# -- changing experiments -----------------------------------------------------------------------


@router.post("/api/experiments", tags=_EXPERIMENTS, status_code=201)
def new(request: Request, principal: Admin, body: NewExperiment) -> Response:
    """Create an experiment; the problem is first tried in a sandbox. Role: admin."""
    return json_response(create_experiment(request, principal, body), 201)


def create_experiment(
    request: Request, principal: Principal, body: NewExperiment
) -> dict[str, Any]:
    """Create an experiment, and return its description."""
    registry = get_registry(request)
    registry.check_name(body.name)
    check_policy_name(body.policy)
    options, seed = keyword_options(body.options), _parse_seed(body.seed)
    trial = _try(request, body.problem, body.policy, options, body.learn_restricted)
    problem, notes, imported = problem_of(trial.problem), [*trial.notes], 0
    records = None
    if body.records is not None:
        _check_size(body.records)
        records = records_from_json(body.records, problem, body.skipped, body.asked_at)
        notes += no_reward_note(records.batch)
        imported = len(records.batch)
    experiment = registry.create(
        body.name,
        problem,
        policy=body.policy,
        options=options,
        seed=seed,
        learn_restricted=body.learn_restricted,
        records=records,
        source=body.source,
        skip_bad=body.skip_bad,
        actor=principal.name,
    )
    return {**experiment_to_json(experiment), "imported": imported, "notes": notes}


@router.post(f"{PREFIX}/revise", tags=_EXPERIMENTS)
def revise(request: Request, experiment: AdminExperiment, body: Revise) -> Response:
    """Change the problem, policy or prior from here on. Role: admin."""
    check_policy_name(body.policy)
    options = keyword_options(body.options)
    if all(part is None for part in (body.problem, body.policy, options, body.learn_restricted)):
        raise DowiseError(
            "nothing to revise: specify problem, policy, options or learn_restricted",
            code="missing-value",
        )
    config = experiment.view().config
    policy = config.policy if body.policy is None else body.policy
    inherited = config.options if policy == config.policy and body.problem is None else {}
    trial = _try(
        request,
        body.problem,
        policy,
        {**inherited, **(options or {})},
        config.learn_restricted,
        config.problem,
    )
    changes: dict[str, Any] = {
        "problem": None if body.problem is None else problem_of(trial.problem),
        "policy": body.policy,
        "options": options,
        "learn_restricted": body.learn_restricted,
    }
    config.with_changes(**changes)  # builds what takes long before the store is locked
    is_changed = experiment.revise(**changes, reason=body.reason)
    view = experiment.view()
    notes = [*trial.notes]
    if is_changed:
        notes += forbidden_note(view.pending(), view.problem)
    document = {**experiment_to_json(experiment), "changed": is_changed, "notes": notes}
    return json_response(document | {"past_records": view.counted().as_dict()})


@router.post(f"{PREFIX}/import", tags=_EXPERIMENTS)
def import_records(experiment: AdminExperiment, body: Import) -> Response:
    """Import past records. Role: admin."""
    _check_size(body.records)
    records = records_from_json(body.records, experiment.problem, body.skipped, body.asked_at)
    count = experiment.import_records(
        records, source=body.source, skip_bad=body.skip_bad, again=body.again
    )
    bad = [{"row": row.row, "line": row.line, "why": row.why} for row in records.bad]
    document = {"imported": count, "bad_count": records.bad_count, "bad": bad}
    document |= {"notes": no_reward_note(records.batch)}
    return json_response(document | {"changed": bool(count), "head": str(experiment.head)})


@router.post(f"{PREFIX}/erase/{{id}}", tags=_EXPERIMENTS)
def erase(experiment: AdminExperiment, id: DecisionId, body: Erase) -> Response:  # noqa: A002
    """Erase the personal data of a decision for good. Role: admin."""
    is_changed = experiment.erase(id, body.reason)
    document = {"id": id, "status": "erased", "changed": is_changed}
    return json_response(document | {"head": str(experiment.head)})


class _Trial(NamedTuple):
    problem: str
    """The text as the sandbox understood it, without what editors and browsers add."""
    notes: list[str]


def _try(
    request: Request,
    text: str | None,
    policy: str,
    options: Any,
    learn_restricted: bool,
    current: Problem | None = None,
) -> _Trial:
    """Build everything in the sandbox first, so that it can't harm this process.

    Without a text it is the current problem, which may be of any size: it was created where there
    are no limits. The sandbox does not have custom policies, which the operator loaded when the
    server started: with such a policy only the problem is tried.
    """
    sandbox = request.app.state.sandbox
    if not is_built_in(policy):
        policy, options = "best", None
    if text is None:
        assert current is not None
        if sandbox is not None:
            sandbox.begin(problem_text(current), policy, options, learn_restricted, is_current=True)
        return _Trial("", [])
    if sandbox is None:
        return _Trial(text, [])
    result = sandbox.begin(text, policy, options, learn_restricted)
    return _Trial(result["problem"], result["notes"])


def _check_size(rows: list[dict[str, Any]]) -> None:
    """Refuse rows that don't fit into memory once each has all names."""
    names = {name for row in rows for name in row}
    if len(names) * len(rows) > MAX_CELLS:
        raise DowiseError(
            f"{len(rows):,} rows with {len(names):,} names are too many: send fewer rows, each "
            "with the variables of the problem",
            code="too-large",
        )


def _parse_seed(seed: int | str | None) -> int | None:
    if seed is None:
        return None
    if isinstance(seed, str) and not (seed.isascii() and seed.isdigit() and len(seed) < 40):
        raise DowiseError(f"seed={seed!r:.80} must be a whole number", code="invalid-number")
    number = int(seed)
    if not 0 <= number <= MAX_SEED:
        raise DowiseError(f"seed={number} must be between 0 and 2**128 - 1", code="invalid-number")
    return number


# -- tokens -------------------------------------------------------------------------------------


@router.get("/api/me", tags=_ACCESS)
def me(principal: Reader) -> Response:
    """Return the name and the role of the token."""
    return json_response({"name": principal.name, "role": principal.role})


@router.get("/api/tokens", tags=_ACCESS, responses=TOKENS)
def list_tokens(request: Request, principal: Admin) -> Response:  # noqa: ARG001
    """List all tokens, links and sessions, without their secrets. Role: admin."""
    return json_response({"tokens": tokens.list_tokens(get_registry(request).storage)})


@router.post("/api/tokens", tags=_ACCESS, status_code=201)
def create_token(request: Request, principal: Admin, body: NewToken) -> Response:  # noqa: ARG001
    """Create a token; its secret is shown only once. Role: admin."""
    created = tokens.create_token(get_registry(request).storage, body.role, body.name, body.days)
    return json_response({**tokens.token_to_json(created.token), "secret": created.secret}, 201)


@router.delete("/api/tokens/{id}", tags=_ACCESS)
def revoke(
    request: Request,
    principal: Admin,  # noqa: ARG001
    id: Annotated[int, Path(ge=1, le=2**53)],  # noqa: A002
) -> Response:
    """Revoke a token and the sessions that it opened. Role: admin."""
    if not tokens.revoke(get_registry(request).storage, id):
        raise NotFoundError(f"there is no token {id}", code="unknown-token")
    return json_response({"id": id, "revoked": True})


# -- previews and rehearsals --------------------------------------------------------------------


@router.post("/api/preview", tags=_PREVIEWS)
def preview(request: Request, principal: Admin, body: Preview) -> Response:  # noqa: ARG001
    """Describe the graph and the arms of a problem, or its error and where it is. Role: admin."""
    return json_response(get_sandbox(request.app).preview(body.problem))


@router.post("/api/rehearse", tags=_PREVIEWS)
def rehearse(request: Request, principal: Admin, body: Rehearse) -> Response:  # noqa: ARG001
    """Simulate a whole experiment in worlds drawn from the prior. Role: admin."""
    check_policy_name(body.policy)
    settings = body.model_dump(exclude={"problem"})
    settings["options"] = keyword_options(body.options)
    return json_response(get_sandbox(request.app).rehearse(body.problem, **settings))


# -- the list of experiments, last: its paths match those above ---------------------------------


@router.get("/health", tags=_EXPERIMENTS)
async def health() -> Response:
    """Return that the server is ready, once its kernels are compiled. No token."""
    return json_response({"status": "ready", "kernels": "compiled", "version": dowise.__version__})


@router.get("/api/experiments", tags=_EXPERIMENTS, responses=EXPERIMENTS)
def experiments(request: Request, principal: Reader) -> Response:  # noqa: ARG001
    """List the experiments of the store."""
    return json_response({"api": API, "experiments": summaries(get_registry(request))})


def summaries(registry: ExperimentRegistry) -> list[dict[str, Any]]:
    """Return a short description of each experiment, or why it can't be read."""
    return [{"name": name, **_summary(registry, name)} for name in registry.names()]


def _summary(registry: ExperimentRegistry, name: str) -> dict[str, Any]:
    try:
        view = registry.experiment(name).view()
        return {"policy": view.policy, "decisions": view.counts(), "head": str(view.head)}
    except DowiseError as error:
        return {"error": registry.redact(str(error))}


@router.get(PREFIX, tags=_EXPERIMENTS)
def experiment(experiment: ReadExperiment) -> Response:
    """Describe an experiment: problem, policy and arms."""
    return json_response(experiment_to_json(experiment))
