"""What a policy that decides several times before it learns promises, for `check_policy`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from dowise.errors import FAILURES, DowiseError
from dowise.policies.decision import Decision
from dowise.policies.policy import Policy
from dowise.policies.record_checks import demand
from dowise.policies.record_policy import RecordPolicy
from dowise.problem import Problem

__all__ = ["check_batches"]

SIZE = 4

DecideMany = Callable[..., list[Decision]]


def check_batches(policy: Policy, most: int) -> None:
    """Check a policy that may be asked for so many decisions; one without `decide_many` passes."""
    if not hasattr(policy, "decide_many"):
        return
    many, problem = cast(DecideMany, policy.decide_many), policy.problem
    contexts = _contexts(problem, min(SIZE, most))
    alone, known = policy.decide(contexts[0], 3), _known(policy)
    first, again = many(contexts, 7), many(iter(contexts), 7)
    demand(
        len(first) == len(contexts),
        f"decide_many must make a decision for each of {len(contexts)} contexts, not {len(first)}",
    )
    demand(_pages(first) == _pages(again), "decide_many: same seed, same decisions")
    for decision, context in zip(first, contexts, strict=True):
        _check_one(problem, decision, context)
    for arms in ([problem.arms[0]], problem.arms[-2:]):
        for decision in many(contexts, 8, iter(arms)):
            demand(decision.arm in arms, f"decide_many: {decision.arm} was not allowed")
    _check_bad(many, contexts)
    is_as_before = _known(policy) == known
    is_as_before &= policy.decide(contexts[0], 3).as_dict() == alone.as_dict()
    demand(is_as_before, "decide_many must not change its state")


def _contexts(problem: Problem, count: int) -> list[dict[str, str]]:
    """The first one often, the last values in between."""
    kinds = [{name: problem.domains[name][i] for name in problem.context} for i in (0, 0, -1, 0)]
    return kinds[:count]


def _check_one(problem: Problem, decision: object, context: dict[str, str]) -> None:
    demand(
        isinstance(decision, Decision) and decision.arm in problem.arms,
        f"decide_many must return Decisions for the problem's arms, not {decision!r}",
    )
    assert isinstance(decision, Decision)
    demand(
        decision.context is None or dict(decision.context) == context,
        f"decide_many: a decision for {context} says that it was for {decision.context}",
    )
    known = decision.probabilities
    demand(
        known is None
        or (abs(float(known.sum()) - 1) < 1e-9 and known[problem.arm_index(decision.arm)] > 0),
        "decide_many: probabilities must sum to 1, and be above 0 for the arm that is played",
    )


def _check_bad(many: DecideMany, contexts: list[dict[str, str]]) -> None:
    """One bad context among good ones, an empty list, and a number where there is a context."""
    bad: list[Any] = [[*contexts, {**contexts[0], "no such variable": "1"}], []]
    bad += [len(contexts)] if contexts[0] else [0]
    for given in bad:
        source = np.random.default_rng(0)
        before = str(source.bit_generator.state)
        try:
            many(given, source)
        except DowiseError:
            is_untouched = str(source.bit_generator.state) == before
            demand(is_untouched, "decide_many must refuse a bad context before it decides")
            continue
        except FAILURES as error:
            demand(False, f"decide_many({given!r}) must be a DowiseError, not {error!r}")
        demand(False, f"decide_many({given!r}) must be a DowiseError")


def _known(policy: Policy) -> bytes | None:
    return policy.fingerprint() if isinstance(policy, RecordPolicy) else None


def _pages(decisions: list[Decision]) -> list[dict[str, object]]:
    return [decision.as_dict() for decision in decisions]
