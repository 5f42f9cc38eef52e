"""Tokens: who may come in."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from dowise.errors import NotFoundError
from dowise.service import tokens
from dowise.service.api.bodies import NewToken
from dowise.service.api.common import PROBLEMS, answer, house_of
from dowise.service.api.documents import TOKENS
from dowise.service.visitors import Admin, Reader

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["access"], responses=PROBLEMS)


@router.get("/me")
def me(visitor: Reader) -> Response:
    """Who this token is, and what it may do."""
    return answer({"name": visitor.name, "role": visitor.role})


@router.get("/tokens", responses=TOKENS)
def known(request: Request, visitor: Admin) -> Response:  # noqa: ARG001 (only for admins)
    """All tokens, links and sessions, without their secrets. Role: admin."""
    return answer({"tokens": tokens.pages(house_of(request).storage)})


@router.post("/tokens", status_code=201)
def make(request: Request, visitor: Admin, body: NewToken) -> Response:  # noqa: ARG001
    """A new token; its secret is told this once. Role: admin."""
    made = tokens.make_token(house_of(request).storage, body.role, body.name, body.days)
    return answer({**tokens.page(made.token), "secret": made.secret}, 201)


@router.delete("/tokens/{id}")
def revoke(
    request: Request,
    visitor: Admin,  # noqa: ARG001
    id: Annotated[int, Path(ge=1, le=2**53)],  # noqa: A002 (its name)
) -> Response:
    """End a token, and the sessions that it opened. Role: admin."""
    if not tokens.revoke(house_of(request).storage, id):
        raise NotFoundError(f"there is no token {id}")
    return answer({"id": id, "revoked": True})
