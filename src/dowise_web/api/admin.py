"""Changing an experiment itself: begin it, revise it, bring records in, forget somebody."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

import dowise
from dowise._core.validation import check_integer
from dowise.errors import DowiseError, NotFoundError
from dowise.experiment.config import problem_of
from dowise.experiment.wire import API, experiment_to_json, records_from_json
from dowise.policies.registry import is_built_in
from dowise.problem import Problem
from dowise.problem.problem_file import problem_text
from dowise_web import tokens
from dowise_web.api.dependencies import (
    PREFIX,
    PROBLEMS,
    Here,
    Keeping,
    answer,
    check_policy_name,
    house_of,
)
from dowise_web.api.schemas import (
    EXPERIMENTS,
    TOKENS,
    Erase,
    Import,
    New,
    NewToken,
    Preview,
    Rehearse,
    Revise,
    keyword_options,
)
from dowise_web.auth import Admin, Principal, Reader
from dowise_web.registry import ExperimentRegistry, listening

router = APIRouter(tags=["changing"], responses=PROBLEMS)
_MOST_CELLS = 5_000_000
Id = Annotated[int, Path(ge=1, le=2**53, description="The number of a decision.")]


@router.post("/api/experiments", status_code=201)
def new(request: Request, visitor: Admin, body: New) -> Response:
    """Begin an experiment. Role: admin. The problem is tried in a process of its own first."""
    return answer(create(request, visitor, body), 201)


def create(request: Request, visitor: Principal, body: New) -> dict[str, Any]:
    """Begin an experiment as a request says; what there is to know of it."""
    house_of(request).check_name(body.name)
    check_policy_name(body.policy)
    options = keyword_options(body.options)
    seed = None if body.seed is None else check_integer("seed", _number(body.seed), 0, 2**128 - 1)
    tried = _try(request, body.problem, body.policy, options, body.learn_restricted)
    problem = problem_of(tried.problem)
    records = None
    if body.records is not None:
        records = records_from_json(_table(body.records), problem, body.skipped, body.asked_at)
    with listening() as notes:
        experiment = house_of(request).create(
            body.name, problem, policy=body.policy, options=options, seed=seed,
            learn_restricted=body.learn_restricted, records=records, source=body.source,
            skip_bad=body.skip_bad, actor=visitor.name,
        )  # fmt: skip
    page = experiment_to_json(experiment)
    count = 0 if records is None else len(records.batch)
    return page | {"imported": count, "notes": [*tried.notes, *notes]}


@router.post(f"{PREFIX}/revise")
def revise(request: Request, experiment: Keeping, body: Revise) -> Response:
    """Another problem, policy or prior from here on. Role: admin."""
    check_policy_name(body.policy)
    options = keyword_options(body.options)
    if all(part is None for part in (body.problem, body.policy, options, body.learn_restricted)):
        raise DowiseError("say what changes: problem, policy, options or learn_restricted")
    held = experiment.view().config
    policy = held.policy if body.policy is None else body.policy
    kept = held.options if policy == held.policy and body.problem is None else {}
    tried = _try(
        request, body.problem, policy, {**kept, **(options or {})}, held.learn_restricted,
        held.problem,
    )  # fmt: skip
    problem = None if body.problem is None else problem_of(tried.problem)
    changes: dict[str, Any] = {
        "problem": problem, "policy": body.policy, "options": options,
        "learn_restricted": body.learn_restricted,
    }  # fmt: skip
    held.with_changes(**changes)  # what takes long is built now, while nobody waits for it
    with listening() as notes:
        is_news = experiment.revise(**changes, reason=body.reason)
    page = {**experiment_to_json(experiment), "changed": is_news}
    page["notes"] = [*tried.notes, *notes]
    return answer(page | {"past_records": experiment.counted().as_dict()})


@router.post(f"{PREFIX}/import")
def import_records(experiment: Keeping, body: Import) -> Response:
    """Bring past records in. Role: admin."""
    rows = _table(body.records)
    found = records_from_json(rows, experiment.problem, body.skipped, body.asked_at)
    with listening() as notes:
        count = experiment.import_records(
            found, source=body.source, skip_bad=body.skip_bad, again=body.again
        )
    bad = [{"row": one.row, "line": one.line, "why": one.why} for one in found.bad]
    page = {"imported": count, "bad_count": found.bad_count, "bad": bad, "notes": notes}
    return answer(page | {"changed": bool(count), "head": str(experiment.head)})


@router.post(f"{PREFIX}/erase/{{id}}")
def erase(experiment: Keeping, id: Id, body: Erase) -> Response:  # noqa: A002 (its name)
    """Blank all that was said of a decision, for good: a person's right. Role: admin."""
    is_news = experiment.erase(id, body.reason)
    page = {"id": id, "status": "erased", "changed": is_news}
    return answer(page | {"head": str(experiment.head)})


class _Tried(NamedTuple):
    problem: str
    """The text as the process understood it, whatever editors and browsers put around it."""
    notes: list[str]


def _try(
    request: Request, text: str | None, policy: str, options: Any, learn_restricted: bool,
    held: Problem | None = None,
) -> _Tried:  # fmt: skip
    """Let a process with limits build it all first, so that it can't hurt this one.

    Without a text it is the problem that holds already, which may be of any size: it came in where
    there are no limits. A policy that was loaded when the server started is the operator's own
    code, which the process does not have: with such a one the problem alone is tried.
    """
    workshop = request.app.state.workshop
    if not is_built_in(policy):
        policy, options = "best", None
    if text is None:
        assert held is not None
        if workshop is not None:
            workshop.begin(problem_text(held), policy, options, learn_restricted, is_held=True)
        return _Tried("", [])
    if workshop is None:
        return _Tried(text, [])
    found = workshop.begin(text, policy, options, learn_restricted)
    return _Tried(found["problem"], found["notes"])


def _table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that fit into memory once each has all names: many short ones could be huge together."""
    names = {name for row in rows for name in row}
    if len(names) * len(rows) > _MOST_CELLS:
        raise DowiseError(
            f"{len(rows):,} rows with {len(names):,} names are too many at once: send fewer rows, "
            "each with the variables of the problem"
        )
    return rows


def _number(seed: int | str) -> int:
    if isinstance(seed, str) and not (seed.isascii() and seed.isdigit() and len(seed) < 40):
        raise DowiseError(f"seed={seed!r:.80} must be a whole number")
    return int(seed)


experiments_router = APIRouter(tags=["experiments"], responses=PROBLEMS)


@experiments_router.get("/health")
async def health() -> Response:
    """Whether the server is ready: it answers only once its kernels are compiled. No token."""
    page = {"status": "ready", "kernels": "compiled", "version": dowise.__version__}
    return answer(page)


@experiments_router.get("/api/experiments", responses=EXPERIMENTS)
def experiments(request: Request, visitor: Reader) -> Response:  # noqa: ARG001
    """The experiments of the store."""
    return answer({"api": API, "experiments": summaries(house_of(request))})


@experiments_router.get(PREFIX)
def experiment(experiment: Here) -> Response:
    """What holds in an experiment: its problem, its policy, its arms."""
    return answer(experiment_to_json(experiment))


def summaries(house: ExperimentRegistry) -> list[dict[str, Any]]:
    """Each experiment in short; one that can't be read says why."""
    found = []
    for name in house.names():
        try:
            one = house.experiment(name)
            page = {"policy": one.policy, "decisions": one.counts(), "head": str(one.head)}
        except DowiseError as error:
            page = {"error": house.discreet(str(error))}
        found.append({"name": name, **page})
    return found


access_router = APIRouter(prefix="/api", tags=["access"], responses=PROBLEMS)


@access_router.get("/me")
def me(visitor: Reader) -> Response:
    """Who this token is, and what it may do."""
    return answer({"name": visitor.name, "role": visitor.role})


@access_router.get("/tokens", responses=TOKENS)
def known(request: Request, visitor: Admin) -> Response:  # noqa: ARG001 (only for admins)
    """All tokens, links and sessions, without their secrets. Role: admin."""
    return answer({"tokens": tokens.pages(house_of(request).storage)})


@access_router.post("/tokens", status_code=201)
def make(request: Request, visitor: Admin, body: NewToken) -> Response:  # noqa: ARG001
    """A new token; its secret is told this once. Role: admin."""
    made = tokens.make_token(house_of(request).storage, body.role, body.name, body.days)
    return answer({**tokens.page(made.token), "secret": made.secret}, 201)


@access_router.delete("/tokens/{id}")
def revoke(
    request: Request,
    visitor: Admin,  # noqa: ARG001
    id: Annotated[int, Path(ge=1, le=2**53)],  # noqa: A002 (its name)
) -> Response:
    """End a token, and the sessions that it opened. Role: admin."""
    if not tokens.revoke(house_of(request).storage, id):
        raise NotFoundError(f"there is no token {id}")
    return answer({"id": id, "revoked": True})


trying_router = APIRouter(prefix="/api", tags=["trying"], responses=PROBLEMS)


@trying_router.post("/preview")
def preview(request: Request, visitor: Admin, body: Preview) -> Response:  # noqa: ARG001
    """The graph and the arms of a problem, or what is wrong with it and where. Role: admin."""
    return answer(request.app.state.workshop.preview(body.problem))


@trying_router.post("/rehearse")
def rehearse(request: Request, visitor: Admin, body: Rehearse) -> Response:  # noqa: ARG001
    """Play a whole experiment beforehand, in worlds drawn from the prior. Role: admin."""
    check_policy_name(body.policy)
    settings = body.model_dump(exclude={"problem"})
    settings["options"] = keyword_options(body.options)
    return answer(request.app.state.workshop.rehearse(body.problem, **settings))
