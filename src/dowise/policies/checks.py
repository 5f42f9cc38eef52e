"""The contract that every policy keeps, as a check to run on a policy of one's own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from dowise.errors import FAILURES, DowiseError
from dowise.policies.batch_checks import check_batches
from dowise.policies.decision import Decision
from dowise.policies.policy import Policy
from dowise.policies.record_checks import check_records, demand
from dowise.policies.registry import make_policy
from dowise.problem import Intervention, Problem, load_problem

__all__ = ["check_policy"]


def check_policy(
    policy: str | Callable[..., Policy],
    rounds: int = 1000,
    problems: Iterable[str | Problem] = ("task1", "task2"),
    **options: Any,
) -> None:
    """Play a policy on small problems and raise a `DowiseError` where it breaks the contract.

    Same seed, same decisions; probabilities sum to 1 where they are known; never an arm outside the
    allowed ones; `decide` changes no state; `rounds` rounds without a warning; a bad context gets a
    `DowiseError`. A `RecordPolicy` decides alike whatever the order of its records, and as if those
    that it retracted had never been; `lacks` says just what `learn` refuses, `learn_many` learns as
    one by one, `fingerprint` is that of what was learned, and plays that were expected and taken
    back leave no trace. `decide_many`, where a policy has it, makes a decision for each context and
    changes no state either. `policy` is a registered name, or what makes one from a problem and the
    options. A policy that only fits smaller problems or fewer
    rounds says so by `problems` and `rounds`; it must be able to decide once more after the last
    round.
    """

    def make(problem: Problem) -> Policy:
        return (
            make_policy(policy, problem, **options)
            if isinstance(policy, str)
            else policy(problem, **options)
        )

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            for given in problems:
                problem = load_problem(given) if isinstance(given, str) else given
                _check_repeatable(make(problem), make(problem), min(rounds, 30))
                _check_allowed(make(problem))
                _check_bad_context(make(problem))
                check_records(partial(make, problem))
                check_batches(_played(make(problem), min(rounds // 2, 5)), rounds - rounds // 2)
                _play(make(problem), rounds, seed=0)
        except Warning as warning:
            raise DowiseError(f"this policy breaks the contract: it warns, {warning}") from warning
        except DowiseError:
            raise
        except FAILURES as error:
            raise DowiseError(
                f"this policy breaks the contract: it raises {type(error).__name__}: {error}"
            ) from error


def _play(policy: Policy, rounds: int, seed: int) -> list[str]:
    """Outcomes are fair coins: whether a policy learns well is not the question here."""
    rng = np.random.default_rng(seed)
    problem, played = policy.problem, []
    for t in range(rounds):
        context = {name: str(rng.choice(problem.domains[name])) for name in problem.context}
        decision = policy.decide(dict(context), np.random.default_rng([seed, t]))
        demand(isinstance(decision, Decision), f"decide must return a Decision, not {decision!r}")
        demand(
            isinstance(decision.arm, Intervention) and decision.arm in problem.arms,
            f"it played {decision.arm!r}, which is none of the problem's arms",
        )
        known = decision.probabilities
        if known is not None:
            demand(
                known.shape == (len(problem.arms),)
                and bool((known >= 0).all())
                and abs(float(known.sum()) - 1) < 1e-9,
                "probabilities must be one for each arm and sum to 1",
            )
            demand(
                known[problem.arm_index(decision.arm)] > 0,
                f"it played {decision.arm} with probability 0",
            )
        outcome = {
            name: str(rng.choice(problem.domains[name]))
            for name in problem.graph
            if name not in decision.arm
        }
        policy.observe(decision.arm, outcome | context)
        played.append(str(decision.arm))
    return played


def _played(policy: Policy, rounds: int) -> Policy:
    _play(policy, rounds, seed=2)
    return policy


def _check_repeatable(one: Policy, other: Policy, rounds: int) -> None:
    same_arms = _play(one, rounds, seed=1) == _play(other, rounds, seed=1)
    demand(same_arms, "same seed, same decisions")
    context = {name: one.problem.domains[name][0] for name in one.problem.context}
    first = one.decide(context, 7)
    for seed in range(5):
        one.decide(context, seed)
    again = one.decide(context, 7)
    same = first.arm == again.arm and np.array_equal(
        [] if first.probabilities is None else first.probabilities,
        [] if again.probabilities is None else again.probabilities,
    )
    demand(same, "decide must not change its state")


def _check_allowed(policy: Policy) -> None:
    problem = policy.problem
    context = {name: problem.domains[name][0] for name in problem.context}
    for arm in problem.arms:
        decision = policy.decide(context, 0, allowed=[arm])
        demand(decision.arm == arm, f"only {arm} was allowed, but it chose {decision.arm}")
    pair = problem.arms[-2:]
    for seed in range(20):
        if seed == 10:  # with something seen of one arm only
            outcome = {name: problem.domains[name][0] for name in problem.graph} | dict(pair[-1])
            policy.observe(pair[-1], outcome)
        decision = policy.decide(context, seed, allowed=pair)
        demand(decision.arm in pair, f"{decision.arm} was not allowed")
        if decision.probabilities is not None:
            outside = float(decision.probabilities[:-2].sum())
            demand(outside == 0, "arms that are not allowed must have probability 0")


def _check_bad_context(policy: Policy) -> None:
    good = {name: policy.problem.domains[name][0] for name in policy.problem.context}
    bad = [{**good, "no such variable": "1"}]
    bad += [{**good, name: "no such value"} for name in good] + ([{}] if good else [])
    for context in bad:
        try:
            policy.decide(context, 0)
        except DowiseError:
            continue
        except FAILURES as error:
            demand(False, f"the context {context} must be a DowiseError, not {error!r}")
        demand(
            False,
            f"the context {context} must be a DowiseError; problem.context_codes checks contexts",
        )
