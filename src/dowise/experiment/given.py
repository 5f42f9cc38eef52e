"""What a call to ask is given, checked before anybody waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dowise.errors import DowiseError
from dowise.problem.problem import ArmLike, Context

__all__ = ["checked_request", "listed_arms", "listed_contexts"]


def listed_contexts(given: object) -> list[Context]:
    """A list of contexts; a table is one row a context."""
    if hasattr(given, "to_dict") and getattr(given, "ndim", 0) == 2:  # of pandas
        given = given.to_dict("records")
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise DowiseError("ask_many takes a list of contexts, one for each decision")
    contexts = list(given)
    if not contexts:
        raise DowiseError("ask_many takes a list of contexts, one at least")
    return contexts


def checked_request(request: object) -> str | None:
    """A request's id, if there is one."""
    if request is not None and (not isinstance(request, str) or not request.strip()):
        raise DowiseError(f"request_id={request!r:.80} must be a text")
    return request


def listed_arms(what: str, arms: Iterable[ArmLike] | None) -> list[ArmLike] | None:
    """Arms, if any are named; a single one is no list."""
    if arms is None:
        return None
    if isinstance(arms, str | Mapping) or not isinstance(arms, Iterable):
        raise DowiseError(f"{what}={arms!r}: give a list of arms, such as ['do(X=1)']")
    return list(arms)
