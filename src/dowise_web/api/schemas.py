"""What requests bring: read strictly, so that a misspelt name is an error and not left out."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictInt, model_validator

_MOST_ARMS = 100_000  # that a batch goes through, which takes seconds
Text = Annotated[str, Field(max_length=10_000)]
Label = str | int | float | bool | None
Values = Annotated[dict[str, Label], Field(examples=[{"Recovery": "1"}])]
Arm = Annotated[str | dict[str, Label], Field(examples=["do(Dose=low)"])]
Reason = Annotated[str, Field(max_length=10_000, examples=["a typing error"])]
Name = Annotated[str, Field(max_length=200)]
Options = Annotated[dict[str, JsonValue], Field(examples=[{"floor": 0.1}])]
Problem = Annotated[str, Field(max_length=256 * 1024, examples=['graph = "X -> Y"\nreward = "Y"'])]
Records = Annotated[
    list[dict[str, Label]] | None,
    Field(description="Past records, a row each; `arm` says what was set."),
]


Request = Annotated[
    str | None,
    Field(max_length=200, description="In place of Idempotency-Key, which is ASCII."),
]
Skipped = Annotated[int, Field(ge=0, le=2**53, description="Rows that were left out before.")]
AskedAt = Annotated[
    list[str], Field(description="Of records from an export: when they were asked for.")
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Ask(_Body):
    """A question: which arm for this context?"""

    context: Values | None = Field(None, description="What is seen before the choice.")
    allowed: list[Arm] | None = Field(None, description="Choose among these arms only.")
    forbid: list[Arm] | None = Field(None, description="Rule out every arm that sets this.")
    request_id: Request = None


class AskMany(_Body):
    """A batch of questions, answered together."""

    contexts: list[Values | None] = Field(min_length=1, max_length=1000)
    allowed: list[Arm] | None = None
    forbid: list[Arm] | None = None

    @model_validator(mode="after")
    def _few_arms(self) -> AskMany:
        """Each context goes through all of them, while nobody else can ask."""
        listed = len(self.allowed or ()) + len(self.forbid or ())
        if listed * len(self.contexts) > _MOST_ARMS:
            raise ValueError(f"{listed:,} arms are too many for so many contexts: ask for fewer")
        return self

    request_id: Request = None


class Tell(_Body):
    """What was seen after a decision; null says that a value is missing for good."""

    values: Values | None = None
    played: Arm | None = Field(None, description="What was done instead of the arm.")
    unrelated: bool = Field(False, description="What made you deviate was not about the unit.")


class Amend(Tell):
    """What was told wrongly."""

    reason: Reason = ""


class Withdraw(_Body):
    """Why nothing more will be told."""

    reason: Reason = ""


class Erase(_Body):
    """Why somebody is forgotten."""

    reason: Reason = ""


class Revise(_Body):
    """Another problem, policy or prior from here on; what is left out stays."""

    problem: Problem | None = None
    policy: Name | None = None
    options: Options | None = None
    learn_restricted: bool | None = None
    reason: Reason = ""


class Import(_Body):
    """Past records."""

    records: list[dict[str, Label]] = Field(description="A row each; `arm` says what was set.")
    source: Text | None = None
    skip_bad: bool = False
    again: bool = False
    skipped: Skipped = 0
    asked_at: AskedAt = []


class New(_Body):
    """A new experiment."""

    name: Name
    problem: Problem = Field(description="A problem file as a text; it can't name other files.")
    policy: Name = "best"
    options: Options | None = None
    seed: Annotated[
        StrictInt | str | None, Field(description="A whole number; JSON's may be a text.")
    ] = None
    learn_restricted: bool = True
    records: Records = None
    source: Text | None = None
    skip_bad: bool = False
    skipped: Skipped = 0
    asked_at: AskedAt = []


class Evaluate(_Body):
    """Another policy, an arm for all, or a rule: an arm for the labels of each context."""

    policy: Arm | list[tuple[list[str], Arm]]
    options: Options | None = None
    level: Annotated[float, Field(gt=0, lt=1)] = 0.9


class Preview(_Body):
    """A problem to look at."""

    problem: Problem


class Rehearse(_Body):
    """An experiment to play beforehand."""

    problem: Problem
    horizon: Annotated[int, Field(ge=1)]
    worlds: Annotated[int, Field(ge=1)] = 20
    policy: Name = "best"
    options: Options | None = None
    tolerance: Annotated[
        float | None, Field(ge=0, description="A hundredth of the rewards' range unless you say.")
    ] = None
    delay: Annotated[int, Field(ge=0)] = 0
    looks: Annotated[int, Field(ge=1)] = 20
    seed: Annotated[int, Field(ge=0)] = 0


class NewToken(_Body):
    """A token to be made."""

    role: str = Field(examples=["ask"])
    name: Name = Field(examples=["tablet of ward 7"])
    days: Annotated[float | None, Field(gt=0, le=36_500)] = None


def keyword_options(given: dict[str, Any] | None) -> dict[str, Any] | None:
    """Options of a policy as they may come over the wire."""
    from dowise.errors import DowiseError

    if given is not None and isinstance(given.get("prior"), str):
        raise DowiseError("a file of the prior is not read here: give its counts by variable")
    return given


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


class ArmOfDocuments(_Document):
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
    arms: list[ArmOfDocuments]


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
