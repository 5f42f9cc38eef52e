"""Request and response schemas. Unknown fields are errors, so that a misspelt name is noticed."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictInt, model_validator

from dowise.errors import DowiseError
from dowise.experiment import option_to_json
from dowise.problem import is_prior_name

MAX_BATCH_ARMS = 100_000  # listed arms times contexts: more take seconds
Text = Annotated[str, Field(max_length=10_000)]
Label = str | int | float | bool | None
Values = Annotated[dict[str, Label], Field(examples=[{"Recovery": "1"}])]
Arm = Annotated[str | dict[str, Label], Field(examples=["do(Dose=low)"])]
Reason = Annotated[str, Field(max_length=10_000, examples=["a typing error"])]
Name = Annotated[str, Field(max_length=200)]
Options = Annotated[dict[str, JsonValue], Field(examples=[{"floor": 0.1}])]
ProblemText = Annotated[
    str, Field(max_length=256 * 1024, examples=['graph = "X -> Y"\nreward = "Y"'])
]
Records = Annotated[
    list[dict[str, Label]] | None,
    Field(description="Past records, one row each; `arm` is what was set."),
]


RequestId = Annotated[
    str | None,
    Field(max_length=200, description="Instead of Idempotency-Key, which must be ASCII."),
]
Skipped = Annotated[
    int, Field(ge=0, le=2**53, description="Rows that were left out before sending.")
]
AskedAt = Annotated[
    list[str], Field(description="For records from an export: when they were asked for.")
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Ask(_Body):
    """A request for a decision in a context."""

    context: Values | None = Field(None, description="What is known before the choice.")
    allowed: list[Arm] | None = Field(None, description="Choose only among these arms.")
    forbid: list[Arm] | None = Field(None, description="Exclude every arm that sets this.")
    request_id: RequestId = None


class AskMany(_Body):
    """A request for decisions in several contexts, made together."""

    contexts: list[Values | None] = Field(min_length=1, max_length=1000)
    allowed: list[Arm] | None = None
    forbid: list[Arm] | None = None
    request_id: RequestId = None

    @model_validator(mode="after")
    def _limit_arms(self) -> AskMany:
        """Limit the work of a batch, during which other requests wait."""
        listed = len(self.allowed or ()) + len(self.forbid or ())
        if listed * len(self.contexts) > MAX_BATCH_ARMS:
            raise ValueError(f"{listed:,} arms are too many for {len(self.contexts):,} contexts")
        return self


class Tell(_Body):
    """The outcome of a decision; null marks a value as permanently missing."""

    values: Values | None = None
    played: Arm | None = Field(None, description="What was done instead of the arm.")
    unrelated: bool = Field(
        False, description="True if the reason to deviate had nothing to do with the unit."
    )


class Amend(Tell):
    """Corrected values of a decision."""

    reason: Reason = ""


class Withdraw(_Body):
    """The reason why a decision gets no outcome."""

    reason: Reason = ""


class Erase(_Body):
    """The reason why a decision is erased."""

    reason: Reason = ""


class Revise(_Body):
    """Another problem, policy or prior from here on; fields that are left out stay."""

    problem: ProblemText | None = None
    policy: Name | None = None
    options: Options | None = None
    learn_restricted: bool | None = None
    reason: Reason = ""


class Import(_Body):
    """Past records."""

    records: list[dict[str, Label]] = Field(description="One row each; `arm` is what was set.")
    source: Text | None = None
    skip_bad: bool = False
    again: bool = False
    skipped: Skipped = 0
    asked_at: AskedAt = []


class NewExperiment(_Body):
    """A new experiment."""

    name: Name
    problem: ProblemText = Field(
        description="The text of a problem file; it can't name other files."
    )
    policy: Name = "best"
    options: Options | None = None
    seed: Annotated[
        StrictInt | str | None, Field(description="A whole number, as a number or as text.")
    ] = None
    learn_restricted: bool = True
    records: Records = None
    source: Text | None = None
    skip_bad: bool = False
    skipped: Skipped = 0
    asked_at: AskedAt = []


class Evaluate(_Body):
    """Another policy, one arm for everyone, or a rule: an arm for the labels of each context."""

    policy: Arm | list[tuple[list[str], Arm]]
    options: Options | None = None
    level: Annotated[float, Field(gt=0, lt=1)] = 0.9


class Preview(_Body):
    """A problem to preview."""

    problem: ProblemText


class Rehearse(_Body):
    """An experiment to rehearse."""

    problem: ProblemText
    horizon: Annotated[int, Field(ge=1)]
    worlds: Annotated[int, Field(ge=1)] = 20
    policy: Name = "best"
    options: Options | None = None
    tolerance: Annotated[
        float | None, Field(ge=0, description="Defaults to a hundredth of the range of the reward.")
    ] = None
    delay: Annotated[int, Field(ge=0)] = 0
    looks: Annotated[int, Field(ge=1)] = 20
    seed: Annotated[int, Field(ge=0)] = 0


class NewToken(_Body):
    """A token to create."""

    role: str = Field(examples=["ask"])
    name: Name = Field(examples=["tablet of ward 7"])
    days: Annotated[float | None, Field(gt=0, le=36_500)] = None


def keyword_options(options: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the options of a policy. Raises `DowiseError` unless they can be stored as they are.

    The path of a file is not a prior here.
    """
    prior = None if options is None else options.get("prior")
    if isinstance(prior, str) and not is_prior_name(prior):
        raise DowiseError(
            f'prior={prior!r} is not known, and no files are read here: send "flat", "pooled", a '
            "number, or counts by variable",
            code="invalid-type",
        )
    for name, value in (options or {}).items():
        option_to_json(name, value)
    return options


class _Response(BaseModel):
    model_config = ConfigDict(extra="allow")  # fields may be added, these stay


class DecisionResponse(_Response):
    """An arm to play, and the reason."""

    id: int
    context: dict[str, str]
    arm: dict[str, str]
    text: str
    arms: list[str]
    probabilities: list[float] | None
    allowed: list[str] | None
    reason: str


class DecisionsResponse(_Response):
    """The decisions of a batch."""

    decisions: list[DecisionResponse]


class CaseResponse(_Response):
    """A decision with its outcome."""

    id: int
    status: str


class ArmResponse(_Response):
    """An arm in a context, in units of the reward."""

    arm: str
    mean: float
    low: float
    high: float
    best: float
    regret: float
    plays: int


class ContextResponse(_Response):
    """The arms in a context."""

    context: dict[str, str]
    share: float
    leader: str
    arms: list[ArmResponse]


class StatusResponse(_Response):
    """Status of an experiment."""

    name: str
    policy: str
    decisions: dict[str, int]
    expected_regret_of_stopping: float
    contexts: list[ContextResponse]


class EventResponse(_Response):
    """An event of the journal."""

    number: int
    kind: str
    at: str
    actor: str


class EventsResponse(_Response):
    """Some events of the journal; `next` continues the list."""

    events: list[EventResponse]
    next: int | None


class SummaryResponse(_Response):
    """An experiment of the store."""

    name: str


class ExperimentsResponse(_Response):
    """The experiments of the store."""

    experiments: list[SummaryResponse]


class TokenResponse(_Response):
    """A token, link or session."""

    id: int
    kind: str
    role: str
    name: str


class TokensResponse(_Response):
    """All tokens, links and sessions."""

    tokens: list[TokenResponse]


def _response(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    return {200: {"model": model, "description": (model.__doc__ or "").strip()}}


DECISION, DECISIONS = _response(DecisionResponse), _response(DecisionsResponse)
CASE, STATUS, EVENTS = _response(CaseResponse), _response(StatusResponse), _response(EventsResponse)
EXPERIMENTS, TOKENS = _response(ExperimentsResponse), _response(TokensResponse)
