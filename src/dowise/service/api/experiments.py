"""The experiments of the store, and whether the server is ready."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

import dowise
from dowise.errors import DowiseError
from dowise.experiment.documents import API, experiment_document
from dowise.service.api.common import PREFIX, PROBLEMS, Here, answer, house_of
from dowise.service.api.documents import EXPERIMENTS
from dowise.service.house import House
from dowise.service.visitors import Reader

__all__ = ["router", "summaries"]

router = APIRouter(tags=["experiments"], responses=PROBLEMS)


@router.get("/health")
async def health() -> Response:
    """Whether the server is ready: it answers only once its kernels are compiled. No token."""
    page = {"status": "ready", "kernels": "compiled", "version": dowise.__version__}
    return answer(page)


@router.get("/api/experiments", responses=EXPERIMENTS)
def experiments(request: Request, visitor: Reader) -> Response:  # noqa: ARG001
    """The experiments of the store."""
    return answer({"api": API, "experiments": summaries(house_of(request))})


@router.get(PREFIX)
def experiment(experiment: Here) -> Response:
    """What holds in an experiment: its problem, its policy, its arms."""
    return answer(experiment_document(experiment))


def summaries(house: House) -> list[dict[str, Any]]:
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
