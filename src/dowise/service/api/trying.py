"""Problems that are no experiments yet: a look at one, and an experiment played beforehand."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from dowise.service.api.bodies import Preview, Rehearse, keyword_options
from dowise.service.api.common import PROBLEMS, answer, check_policy_name
from dowise.service.visitors import Admin

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["trying"], responses=PROBLEMS)


@router.post("/preview")
def preview(request: Request, visitor: Admin, body: Preview) -> Response:  # noqa: ARG001
    """The graph and the arms of a problem, or what is wrong with it and where. Role: admin."""
    return answer(request.app.state.workshop.preview(body.problem))


@router.post("/rehearse")
def rehearse(request: Request, visitor: Admin, body: Rehearse) -> Response:  # noqa: ARG001
    """Play a whole experiment beforehand, in worlds drawn from the prior. Role: admin."""
    check_policy_name(body.policy)
    settings = body.model_dump(exclude={"problem"})
    settings["options"] = keyword_options(body.options)
    return answer(request.app.state.workshop.rehearse(body.problem, **settings))
