"""What answers look like, for the API's own description of itself."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

__all__ = ["CASE", "DECISION", "DECISIONS", "EVENTS", "EXPERIMENTS", "STATUS", "TOKENS", "page_of"]

Labels = dict[str, str | None]


class _Document(BaseModel):
    model_config = ConfigDict(extra="allow")  # more may come; what is here stays


class Decision(_Document):
    """An arm to play, and why."""

    id: int
    context: dict[str, str]
    arm: dict[str, str]
    text: str
    arms: list[str]
    probabilities: list[float] | None
    allowed: list[str] | None
    reason: str


class Decisions(_Document):
    """A batch."""

    decisions: list[Decision]


class Case(_Document):
    """A decision, and what was told of it."""

    id: int
    status: str


class Arm(_Document):
    """What is known of an arm in a context, in the reward's units."""

    arm: str
    mean: float
    low: float
    high: float
    best: float
    regret: float
    plays: int


class Context(_Document):
    """The arms in a context."""

    context: dict[str, str]
    share: float
    leader: str
    arms: list[Arm]


class Status(_Document):
    """Where an experiment stands."""

    name: str
    policy: str
    decisions: dict[str, int]
    expected_regret_of_stopping: float
    contexts: list[Context]


class Event(_Document):
    """A line of the journal."""

    number: int
    kind: str
    at: str
    actor: str


class Events(_Document):
    """Some lines of the journal; `next` goes on."""

    events: list[Event]
    next: int | None


class Summary(_Document):
    """An experiment of the store."""

    name: str


class Experiments(_Document):
    """Those of the store."""

    experiments: list[Summary]


class Token(_Document):
    """Somebody who may come in."""

    id: int
    kind: str
    role: str
    name: str


class Tokens(_Document):
    """All of them."""

    tokens: list[Token]


def page_of(model: type[BaseModel], status: int = 200) -> dict[int | str, dict[str, Any]]:
    """The entry of an answer in the description."""
    return {status: {"model": model, "description": (model.__doc__ or "").strip()}}


DECISION, DECISIONS, CASE = page_of(Decision), page_of(Decisions), page_of(Case)
STATUS, EVENTS = page_of(Status), page_of(Events)
EXPERIMENTS, TOKENS = page_of(Experiments), page_of(Tokens)
