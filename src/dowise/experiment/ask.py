"""Asking: which arms there are to choose from, what the policy says, and what comes of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise._core.codec import to_json
from dowise._core.rng import stream
from dowise.errors import DowiseError
from dowise.experiment.event import Event, build_info
from dowise.experiment.replay import PolicyReplay
from dowise.experiment.state import ExperimentState
from dowise.policies.base import allowed_arms
from dowise.problem import Intervention, Problem
from dowise.problem.problem import ArmLike, Context

_DIGITS = 6  # of figures, which are for people; probabilities are kept to the last bit


class AskRequest:
    """A context, and the arms that may be chosen from; `allowed` is None where all may."""

    def __init__(
        self,
        problem: Problem,
        context: Context,
        allowed: Iterable[ArmLike] | None = None,
        forbid: Iterable[ArmLike] | None = None,
    ) -> None:
        self.context = problem.context_labels(problem.context_codes(context))
        self.forbid = () if forbid is None else _forbidden(problem, forbid)
        positions = allowed_arms(problem, allowed).tolist()
        left = [i for i in positions if not _is_forbidden(problem.arms[i], self.forbid)]
        if not left:
            raise DowiseError(
                f"nothing is left to choose from: {', '.join(map(str, self.forbid))} rules out "
                f"every arm{'' if allowed is None else ' that is allowed'}"
            )
        self.allowed = None if len(left) == len(problem.arms) else left

    def arms(self, problem: Problem) -> list[Intervention] | None:
        """The allowed arms, None where all are."""
        return None if self.allowed is None else [problem.arms[i] for i in self.allowed]

    def is_that_of(self, says: Mapping[str, Any]) -> bool:
        """Whether an earlier decision was asked for by the same question."""
        return bool(says["context"] == self.context and says["allowed"] == self.allowed)


def _forbidden(problem: Problem, forbid: Iterable[ArmLike]) -> tuple[Intervention, ...]:
    if isinstance(forbid, str | Mapping) or not isinstance(forbid, Iterable):
        raise DowiseError(f"forbid={forbid!r}: give a list, such as ['do(X=1)']")
    return tuple(problem.intervention(arm) for arm in forbid)


def _is_forbidden(arm: Intervention, forbidden: Collection[Intervention]) -> bool:
    """Whether the arm sets all that is forbidden to be set together; do() forbids itself only."""
    return any(arm.items() >= settings.items() if settings else not arm for settings in forbidden)


class _Said(NamedTuple):
    """What an event said, as a document has it."""

    number: int
    at: str
    payload: Mapping[str, Any]


class LiveDecision:
    """A decision of a live experiment; `id` is what `tell` wants."""

    def __init__(self, event: Event | _Said, problem: Problem) -> None:
        says = event.payload
        self.id: int = says["decision"]
        self.event = event.number
        self.at = event.at
        self.context: dict[str, str] = {**says["context"]}
        self.arm = Intervention(says["arm"])
        self.probabilities: NDArray[np.float64] | None = (
            None if says["probabilities"] is None else np.array(says["probabilities"], dtype=float)
        )
        """Of every arm of the problem, at that moment; None where the policy does not know."""
        self.reason: str = says["reason"]
        self.figures: dict[str, Any] = {**says["figures"]}
        self.request_id: str | None = says["request_id"]
        self.imagined: int = says.get("imagined", 0)
        """How many decisions of its batch came before it, whose outcomes were imagined."""
        every = problem.arms
        self.allowed = every if says["allowed"] is None else [every[i] for i in says["allowed"]]
        self.problem = problem

    @property
    def probability(self) -> float | None:
        """With which the arm was chosen."""
        if self.probabilities is None:
            return None
        return float(self.probabilities[self.problem.arm_index(self.arm)])

    def as_dict(self) -> dict[str, Any]:
        """For JSON: `probabilities` are those of `arms`; `allowed` is null where all were."""
        is_free = len(self.allowed) == len(self.problem.arms)
        page: dict[str, Any] = to_json(
            {
                "id": self.id,
                "context": self.context,
                "arm": self.arm,
                "text": str(self.arm),
                "arms": [str(arm) for arm in self.problem.arms],
                "probabilities": self.probabilities,
                "allowed": None if is_free else [str(arm) for arm in self.allowed],
                "reason": self.reason,
            }
        )
        return page

    def document(self) -> dict[str, Any]:
        """The same, and all that the way back needs; it also tells when and where that was."""
        more = {"figures": self.figures, "request_id": self.request_id, "imagined": self.imagined}
        return self.as_dict() | {"event": self.event, "asked_at": self.at} | more

    @classmethod
    def from_dict(cls, page: Mapping[str, Any], problem: Problem) -> LiveDecision:
        """The way back from `document`, under the problem that held then."""
        says = {**page, "decision": page["id"]}
        if page["allowed"] is not None:
            places = {str(arm): i for i, arm in enumerate(problem.arms)}
            says["allowed"] = [places[text] for text in page["allowed"]]
        return cls(_Said(page["event"], page["asked_at"], says), problem)

    def __str__(self) -> str:
        return f"{self.id}: {self.arm}: {self.reason}"

    def __repr__(self) -> str:
        return f"<Decision {self}>"


def decide(
    state: ExperimentState, learner: PolicyReplay, question: AskRequest, before: int = 0
) -> dict[str, Any]:
    """What the next `asked` event says, but for the request: it follows from what is known.

    `before` is how many decisions of the same batch came before it. Policies that imagine their
    outcomes say so (`imagined`).
    """
    problem, number = state.config.problem, state.next_id
    rng, policy = stream(state.seed, number), learner.batch_policy(state, before)
    decision = policy.decide(question.context, rng, question.arms(problem))
    assert state.head is not None
    names = [name for name in decision.figures if not name.endswith("_interval")]
    return {
        "decision": number,
        "context": question.context,
        "allowed": question.allowed,
        "arm": dict(decision.arm),
        "probabilities": to_json(decision.probabilities),
        "reason": decision.reason,
        "figures": {name: _short(to_json(decision.figures[name])) for name in names},
        "stream": [number],
        "known": {
            "event": state.head.number,
            "counts": learner.policy.fingerprint().hex(),
            "cases": state.digest(),
        },
        **({} if policy is learner.policy else {"imagined": before}),
    }


def as_asked(
    says: dict[str, Any], state: ExperimentState, question: AskRequest, request: Any, batch: int
) -> dict[str, Any]:
    """The whole body of the event, with what does not follow from what is known.

    `batch` is how many decisions were asked for together.
    """
    more: dict[str, Any] = {"request_id": request, "batch": batch}
    if question.forbid:
        more["forbid"] = [str(settings) for settings in question.forbid]
    if state.maker != build_info():
        more["maker"] = build_info()
    return says | more


def _short(value: Any) -> Any:
    """Numbers with as many digits as people look at."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, list):
        return [_short(part) for part in value]
    if isinstance(value, dict):
        return {name: _short(part) for name, part in value.items()}
    return value


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


def validate_request_id(request: object) -> str | None:
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
