"""Ask: validate a request, let the policy decide, and describe the decisions.

The payload of an `asked` event follows from the events before it, except for the request and the
build: an audit derives it again with `decide`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dowise._core.codec import to_json
from dowise._core.rng import stream
from dowise._core.types import FloatArray
from dowise.errors import ConflictError, DowiseError
from dowise.experiment.event import Event, build_info
from dowise.experiment.state import ExperimentState
from dowise.policies.base import Policy, allowed_arms
from dowise.policies.decision import Decision, not_played_reason, rounded_figures
from dowise.problem import Intervention, Problem
from dowise.problem.problem import ArmLike, Context

if TYPE_CHECKING:
    from dowise.experiment.journal import Transaction
    from dowise.experiment.replay import PolicyReplay


UNTRIED = "untried"
"""Figure of a decision that tries an arm: number of arms that were not tried before."""


@dataclass(frozen=True)
class AskRequest:
    """Arguments of `ask_many`, as far as they can be validated without the problem."""

    contexts: list[Context]
    request_id: str | None = None
    allowed: list[ArmLike] | None = None
    forbid: list[ArmLike] | None = None

    @classmethod
    def from_user(
        cls,
        contexts: object,
        request_id: object = None,
        allowed: object = None,
        forbid: object = None,
    ) -> AskRequest:
        """Validate the arguments of `ask_many` before taking the lock.

        `contexts` may also be a table, with one context per row.
        """
        if hasattr(contexts, "to_dict") and getattr(contexts, "ndim", 0) == 2:  # pandas
            contexts = contexts.to_dict("records")
        if isinstance(contexts, str | Mapping) or not isinstance(contexts, Iterable):
            raise DowiseError(
                "ask_many takes a list of contexts, one per decision", code="invalid-type"
            )
        if request_id is not None and (not isinstance(request_id, str) or not request_id.strip()):
            raise DowiseError(f"request_id={request_id!r:.80} must be a text", code="invalid-type")
        arms: dict[str, list[ArmLike] | None] = {}
        for name, listed in (("allowed", allowed), ("forbid", forbid)):
            is_list = isinstance(listed, Iterable) and not isinstance(listed, str | Mapping)
            if listed is not None and not is_list:
                raise DowiseError(
                    f"{name}={listed!r} must be a list of arms, such as ['do(X=1)']",
                    code="invalid-type",
                )
            arms[name] = None if listed is None else list(listed)  # type: ignore[call-overload]
        request = cls(list(contexts), request_id, **arms)
        if not request.contexts:
            raise DowiseError(
                "ask_many takes a list of contexts, at least one", code="missing-value"
            )
        return request

    def questions(self, problem: Problem) -> list[Question]:
        """Validate the request under a problem; one question per context."""
        forbidden = tuple(problem.intervention(arm) for arm in self.forbid or ())
        indices = allowed_arms(problem, self.allowed).tolist()
        if forbidden:
            indices = [i for i in indices if not _is_forbidden(problem.arms[i], forbidden)]
            if not indices:
                raise DowiseError(
                    f"no arm left: forbidding {', '.join(map(str, forbidden))} excludes every "
                    f"{'arm' if self.allowed is None else 'allowed arm'}",
                    code="no-arms",
                )
        allowed = None if len(indices) == len(problem.arms) else indices
        return [
            Question(problem.context_labels(problem.context_codes(context)), allowed, forbidden)
            for context in self.contexts
        ]


class Question(NamedTuple):
    """A context, and the arms to choose from."""

    context: dict[str, str]
    allowed: list[int] | None = None
    """Indices of the allowed arms; None if all are allowed."""
    forbid: tuple[Intervention, ...] = ()


def _is_forbidden(arm: Intervention, forbidden: Iterable[Intervention]) -> bool:
    """Return True if an arm sets everything that some entry forbids; do() forbids only itself."""
    return any(arm.items() >= settings.items() if settings else not arm for settings in forbidden)


def find_answer(
    state: ExperimentState, request: AskRequest, read_event: Callable[[int], Event]
) -> list[LiveDecision]:
    """Return the decisions that answered an earlier call with the same request id, if any.

    Raises `ConflictError` if that call asked another question.
    """
    ids = [] if request.request_id is None else state.requests.get(request.request_id, [])
    if not ids:
        return []
    events = [read_event(state.cases[number].event) for number in ids]
    numbers = ", ".join(map(str, ids))
    if events[0].payload["batch"] > len(ids):
        raise DowiseError(
            f"some decisions of the request {request.request_id!r} were erased, so it can't be "
            f"repeated: {numbers} are left; use a new request_id",
            code="decision-erased",
        )
    problem = state.config_at(events[0].number).problem
    questions = request.questions(problem)
    if len(ids) != len(questions):
        difference = f"for {len(ids)} at once, now for {len(questions)}"
    elif any(
        question.context != event.payload["context"] or question.allowed != event.payload["allowed"]
        for question, event in zip(questions, events, strict=True)
    ):
        difference = "with another context or restriction"
    else:
        return [LiveDecision(event, problem) for event in events]
    raise ConflictError(
        f"the request {request.request_id!r} was made before, as "
        f"decision{'s' * (len(ids) > 1)} {numbers}, {difference}: use a new request_id for another "
        "question",
        code="request-conflict",
    )


class _AskedEvent(NamedTuple):
    """Parts of an `asked` event that are in the JSON of a decision."""

    number: int
    at: str
    payload: Mapping[str, Any]


class LiveDecision:
    """Decision of a live experiment: the arm to play, and why.

    Attributes
    ----------
    id : int
        Number of the decision, which `tell` takes.
    event, at : int, str
        Number and time of the event that recorded it.
    context : dict of str to str
        The context it was made in.
    arm : Intervention
        The arm to play.
    probabilities : array or None
        Probability of every arm of the problem at that moment; None if the policy has none.
    allowed : sequence of Intervention
        The arms to choose from.
    reason : str
        Why this arm, in a sentence.
    figures : dict
        Numbers behind the reason.
    request_id : str or None
        Id of the request.
    imagined : int
        Number of earlier decisions of its batch whose outcomes were imagined.
    problem : Problem
        The problem at that moment.

    Examples
    --------
    >>> from dowise import Experiment
    >>> from dowise.experiment.storage import MemoryStorage
    >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", "random", seed=1)
    >>> decision = experiment.ask()
    >>> decision.id, decision.arm in experiment.problem.arms
    (1, True)
    """

    def __init__(self, event: Event | _AskedEvent, problem: Problem) -> None:
        payload = event.payload
        self.id: int = payload["decision"]
        self.event = event.number
        self.at = event.at
        self.context: dict[str, str] = {**payload["context"]}
        self.arm = Intervention(payload["arm"])
        self.probabilities: FloatArray | None = (
            None
            if payload["probabilities"] is None
            else np.array(payload["probabilities"], dtype=float)
        )
        self.reason: str = payload["reason"]
        self.figures: dict[str, Any] = {**payload["figures"]}
        self.request_id: str | None = payload["request_id"]
        self.imagined: int = payload.get("imagined", 0)
        arms, allowed = problem.arms, payload["allowed"]
        self.allowed = arms if allowed is None else [arms[i] for i in allowed]
        self.problem = problem

    @property
    def probability(self) -> float | None:
        """Probability with which the arm was chosen."""
        if self.probabilities is None:
            return None
        return float(self.probabilities[self.problem.arm_index(self.arm)])

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: `probabilities` of `arms`; `allowed` is null if all were."""
        is_unrestricted = len(self.allowed) == len(self.problem.arms)
        data: dict[str, Any] = to_json(
            {
                "id": self.id,
                "context": self.context,
                "arm": self.arm,
                "text": str(self.arm),
                "arms": [str(arm) for arm in self.problem.arms],
                "probabilities": self.probabilities,
                "allowed": None if is_unrestricted else [str(arm) for arm in self.allowed],
                "reason": self.reason,
            }
        )
        return data

    def to_json(self) -> dict[str, Any]:
        """Return `as_dict` with everything that `from_dict` needs."""
        more = {"figures": self.figures, "request_id": self.request_id, "imagined": self.imagined}
        return self.as_dict() | {"event": self.event, "asked_at": self.at} | more

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], problem: Problem) -> LiveDecision:
        """Inverse of `to_json`, under the problem of that moment."""
        payload = {**data, "decision": data["id"]}
        if data["allowed"] is not None:
            indices = {str(arm): i for i, arm in enumerate(problem.arms)}
            payload["allowed"] = [indices[text] for text in data["allowed"]]
        return cls(_AskedEvent(data["event"], data["asked_at"], payload), problem)

    def __str__(self) -> str:
        return f"{self.id}: {self.arm}: {self.reason}"

    def __repr__(self) -> str:
        return f"<LiveDecision {self}>"


def decide(
    state: ExperimentState, replay: PolicyReplay, question: Question, position: int = 0
) -> dict[str, Any]:
    """Return the payload of the next `asked` event, as far as it follows from the events before.

    `position` is the number of earlier decisions of the same batch. It is recorded (`imagined`) if
    the policy imagines their outcomes.
    """
    problem, number, head = state.config.problem, len(state.cases) + 1, state.head
    assert head is not None
    source, allowed = stream(state.seed, number), question.allowed
    policy: Policy = replay.policy
    if untried := untried_arms(state, replay, allowed):
        decision = _try_arm(problem, untried, source)
    else:
        policy = replay.batch_policy(state, position)
        arms = None if allowed is None else [problem.arms[i] for i in allowed]
        decision = policy.decide(question.context, source, arms)
    probabilities = decision.probabilities
    payload = {
        "decision": number,
        "context": question.context,
        "allowed": allowed,
        "arm": dict(decision.arm),
        "probabilities": None if probabilities is None else probabilities.tolist(),
        "reason": decision.reason,
        "figures": rounded_figures(decision.figures),
        "stream": [number],
        "known": {
            "event": head.number,
            "counts": replay.policy.fingerprint().hex(),
            "cases": state.digest(),
        },
    }
    if policy is not replay.policy:
        payload["imagined"] = position
    return payload


def untried_arms(
    state: ExperimentState, replay: PolicyReplay, allowed: list[int] | None
) -> list[int]:
    """Return the allowed arms that have to be tried before the policy chooses, as indices.

    An arm was tried if it was played by a decision, in any context, that is pending or has an
    outcome, or by an imported record with a reward.
    """
    if not state.config.tries_all:
        return []
    arms = state.config.problem.arms
    indices = range(len(arms)) if allowed is None else allowed
    untried = {arms[i]: i for i in indices if arms[i] not in replay.imported_arms}
    for case in state.cases.values():  # every arm is among the first ones, as a rule
        if not untried:
            break
        if case.status in ("pending", "done"):
            untried.pop(case.arm, None)
    return [*untried.values()]


def _try_arm(problem: Problem, untried: list[int], source: np.random.Generator) -> Decision:
    """Choose one of the arms that were not tried yet, all with the same probability."""
    probabilities = np.zeros(len(problem.arms))
    probabilities[untried] = 1 / len(untried)
    arm = problem.arms[untried[int(source.integers(len(untried)))]]
    figures = {UNTRIED: len(untried)}
    return Decision(arm, probabilities, not_played_reason(in_context=False), figures)


def decide_batch(tx: Transaction, request: AskRequest) -> list[LiveDecision]:
    """Decide for each context of a request, and append the decisions to the journal.

    Each decision is made in the state in which the one before it is pending.
    """
    state, problem = tx.state, tx.state.config.problem
    questions = request.questions(problem)
    decisions = []
    for position, question in enumerate(questions):
        payload = decide(state, tx.replay(), question, position)
        payload |= {"request_id": request.request_id, "batch": len(questions)}
        if question.forbid:
            payload["forbid"] = [str(settings) for settings in question.forbid]
        if state.build_info != build_info():
            payload["maker"] = build_info()
        decisions.append(LiveDecision(tx.append("asked", payload), problem))
    return decisions
