"""Conformance suite for policies."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, cast

import numpy as np

from dowise._core.codec import to_json
from dowise._core.types import IntArray
from dowise.errors import USER_CODE_ERRORS, DowiseError
from dowise.policies.base import MinimalPolicy, Policy
from dowise.policies.decision import Decision
from dowise.policies.registry import make_policy
from dowise.problem import Intervention, Problem, Record, load_problem
from dowise.problem.record import RecordBatch, past_record
from dowise.testing.contract import Contract

BATCH_SIZE = 4

Labels = dict[str, str]
DecideMany = Callable[..., list[Decision]]

_CONTRACT = Contract("this policy")
_broken, _require = _CONTRACT.broken, _CONTRACT.require


def check_policy(
    policy: str | Callable[..., MinimalPolicy],
    rounds: int = 1000,
    problems: Iterable[str | Problem] = ("task1", "task2"),
    **options: Any,
) -> None:
    """Play a policy on small problems and raise an error if it breaks the contract.

    Equal seeds give equal decisions; probabilities sum to 1 if they are known; only allowed arms
    are played; `decide` changes no state; `rounds` rounds pass without a warning; a bad context
    raises a `DowiseError`. The decisions of a `Policy` do not depend on the order of its records,
    nor on records that were retracted; `rejection_reason` is what `learn` raises; `learn_many` is
    the same as learning one by one; `fingerprint` changes if and only if what was learned changes;
    pending plays that are taken back leave no trace. `decide_many`, if there is one, makes a
    decision for each context and changes no state.

    Parameters
    ----------
    policy : str or callable
        Registered name, or a class or function that makes a policy from a problem and the options.
    rounds : int
        Number of rounds to play. The policy must be able to decide once more after the last one.
    problems : iterable of str or Problem
        Problems to play on, for policies that fit only some.
    **options
        Options of the policy.

    Raises
    ------
    DowiseError
        If the policy breaks the contract ("broken-contract"); the message names the promise.

    Examples
    --------
    >>> check_policy("random", rounds=10)
    """

    def make(problem: Problem) -> MinimalPolicy:
        if isinstance(policy, str):
            return make_policy(policy, problem, **options)
        return policy(problem, **options)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            for source in problems:
                problem = load_problem(source) if isinstance(source, str) else source
                _check_repeatable(make(problem), make(problem), min(rounds, 30))
                _check_allowed(make(problem))
                _check_bad_context(make(problem))
                _check_records(problem, make)
                _check_batches(make(problem), rounds)
                _play(make(problem), rounds, seed=0)
        except Warning as warning:
            raise _broken(f"it warns, {warning}") from warning
        except DowiseError:
            raise
        except USER_CODE_ERRORS as error:
            raise _broken(f"it raises {type(error).__name__}: {error}") from error


def _require_error(call: Callable[[], object], name: str, remedy: str = "") -> None:
    """Require that a call raises a `DowiseError`."""
    try:
        call()
    except DowiseError:
        return
    except USER_CODE_ERRORS as error:
        raise _broken(f"{name} must be a DowiseError, not {error!r}") from error
    raise _broken(f"{name} must be a DowiseError{remedy}")


# -- decisions --------------------------------------------------------------------------------


def _first_context(problem: Problem) -> Labels:
    return {name: problem.domains[name][0] for name in problem.context}


def _play(policy: MinimalPolicy, rounds: int, seed: int) -> list[str]:
    """Play rounds with uniformly random outcomes; return the arms."""
    rng = np.random.default_rng(seed)
    problem, arms = policy.problem, []
    for t in range(rounds):
        context = {name: str(rng.choice(problem.domains[name])) for name in problem.context}
        decision = policy.decide(dict(context), np.random.default_rng([seed, t]))
        _check_decision(problem, decision, "decide")
        outcome = {
            name: str(rng.choice(problem.domains[name]))
            for name in problem.graph
            if name not in decision.arm
        }
        policy.observe(decision.arm, outcome | context)
        arms.append(str(decision.arm))
    return arms


def _check_decision(problem: Problem, decision: object, method: str) -> None:
    _require(isinstance(decision, Decision), f"{method} must return Decisions, not {decision!r}")
    assert isinstance(decision, Decision)
    _require(
        isinstance(decision.arm, Intervention) and decision.arm in problem.arms,
        f"{method} chose {decision.arm!r}, which is not one of the problem's arms",
    )
    probabilities = decision.probabilities
    if probabilities is None:
        return
    _require(
        probabilities.shape == (len(problem.arms),)
        and bool((probabilities >= 0).all())
        and abs(float(probabilities.sum()) - 1) < 1e-9,
        f"{method}: probabilities must be one for each arm and sum to 1",
    )
    _require(
        probabilities[problem.arm_index(decision.arm)] > 0,
        f"{method} chose {decision.arm} with probability 0",
    )


def _check_repeatable(first: MinimalPolicy, second: MinimalPolicy, rounds: int) -> None:
    same_arms = _play(first, rounds, seed=1) == _play(second, rounds, seed=1)
    _require(same_arms, "same seed, same decisions")
    context = _first_context(first.problem)
    before = first.decide(context, 7)
    for seed in range(5):
        first.decide(context, seed)
    after = first.decide(context, 7)
    same = before.arm == after.arm and np.array_equal(
        [] if before.probabilities is None else before.probabilities,
        [] if after.probabilities is None else after.probabilities,
    )
    _require(same, "decide must not change its state")


def _check_allowed(policy: MinimalPolicy) -> None:
    problem = policy.problem
    context = _first_context(problem)
    for arm in problem.arms:
        decision = policy.decide(context, 0, allowed=[arm])
        _require(decision.arm == arm, f"only {arm} was allowed, but it chose {decision.arm}")
    pair = problem.arms[-2:]
    for seed in range(20):
        if seed == 10:  # from here on with one record
            outcome = {name: problem.domains[name][0] for name in problem.graph} | dict(pair[-1])
            policy.observe(pair[-1], outcome)
        decision = policy.decide(context, seed, allowed=pair)
        _require(decision.arm in pair, f"{decision.arm} was not allowed")
        if decision.probabilities is not None:
            outside = float(decision.probabilities[:-2].sum())
            _require(outside == 0, "arms that are not allowed must have probability 0")


def _check_bad_context(policy: MinimalPolicy) -> None:
    context = _first_context(policy.problem)
    bad = [{**context, "no such variable": "1"}]
    bad += [{**context, name: "no such value"} for name in context] + ([{}] if context else [])
    for labels in bad:
        _require_error(
            lambda labels=labels: policy.decide(labels, 0),  # type: ignore[misc]
            f"the context {labels}",
            "; problem.context_codes checks contexts",
        )


# -- records ----------------------------------------------------------------------------------


def _check_records(problem: Problem, make: Callable[[Problem], MinimalPolicy]) -> None:
    """Check how a `Policy` learns and forgets records; other policies pass."""
    policies = [
        policy for policy in (make(problem) for _ in range(7)) if isinstance(policy, Policy)
    ]
    if not policies:
        return
    rng, records = np.random.default_rng(5), []
    for number in range(8):
        arm = problem.arms[number % len(problem.arms)]
        outcome = {name: str(rng.choice(problem.domains[name])) for name in problem.graph}
        records.append(problem.record(arm, outcome | dict(arm), number))
    _check_order(policies[0], policies[1], records)
    _check_rejections(policies[2], records[:2])
    _check_many(policies[3], policies[4], records[:6])
    _check_mask(policies[5], records[:3])
    _check_pending(policies[6], records[0])


def _check_order(first: Policy, second: Policy, records: list[Record]) -> None:
    """Compare six records with eight, two of which are retracted, in reverse order if possible."""
    for record in records[:6]:
        first.learn(record)
    for record in reversed(records) if first.arrivals is None else records:
        second.learn(record)
    for record in records[6:]:
        second.retract(record)
    _require_same_decisions(
        first,
        second,
        "what it knows must be a function of its records, not of their order, and a record that is "
        "retracted must leave no trace",
    )
    fingerprint = first.fingerprint()
    _require(isinstance(fingerprint, bytes), f"fingerprint() must be bytes, not {fingerprint!r}")
    _require(
        fingerprint == second.fingerprint(),
        "fingerprint() must be the same for the same records, whatever their order (unless "
        "it has arrivals)",
    )
    state = _state(first)
    first.learn(records[6])
    _require(
        (first.fingerprint() != fingerprint) == (_state(first) != state),
        "fingerprint() must change with what was learned, and with nothing else",
    )
    first.retract(records[6])
    _require(first.fingerprint() == fingerprint, "fingerprint() must forget retracted records")


def _check_rejections(policy: Policy, records: list[Record]) -> None:
    """Check that `rejection_reason` is what `learn` raises, and that it changes nothing."""
    policy.learn(records[0])
    before = policy.fingerprint()
    for record in (records[1], *_incomplete_records(records[1])):
        reason = policy.rejection_reason(record)
        _require(
            reason is None or isinstance(reason, str),
            f"rejection_reason(record) must be a text, not {reason!r}",
        )
        _require(policy.fingerprint() == before, "rejection_reason(record) must change nothing")
        try:
            policy.learn(record)
        except DowiseError as error:
            _require(
                str(error) == reason,
                "rejection_reason(record) must be the reason why learn refuses it: "
                f"{reason!r} is not {str(error)!r}",
            )
            _require(policy.fingerprint() == before, "a refused record must change nothing")
        else:
            _require(
                reason is None, f"rejection_reason(record) is {reason!r}, but learn accepts it"
            )
            policy.retract(record)


def _incomplete_records(record: Record) -> Iterable[Record]:
    """Return records without reward, without context, and after interventions that are no arms."""
    problem, labels = record.problem, record.labels
    number = 100
    settings = {name: label for name, label in labels.items() if name != problem.reward}
    yield past_record(problem, record.arm, settings, number)
    if problem.context:
        rest = {name: label for name, label in labels.items() if name not in problem.context}
        yield past_record(problem, record.arm, rest, number)
    yield past_record(problem, settings, labels, number)
    single = {name: settings[name] for name in sorted(settings)[:1]}
    yield past_record(problem, single, labels, number)


def _check_many(first: Policy, second: Policy, records: list[Record]) -> None:
    for record in records:
        first.learn(record)
    second.learn_many(*_batch(records))
    promise = "learn_many(records) must be the same as learning one by one"
    _require_same_decisions(first, second, promise)
    _require(first.fingerprint() == second.fingerprint(), promise)


def _check_mask(policy: Policy, records: list[Record]) -> None:
    """Compare the mask of usable records with the reasons for single ones."""
    mixed = [records[0], *_incomplete_records(records[1]), records[2]]
    before = policy.fingerprint()
    mask, reasons = policy.usable_mask(*_batch(mixed))
    _require(policy.fingerprint() == before, "usable_mask(records) must change nothing")
    expected_mask, expected_reasons = [], dict[str, int]()
    for record in mixed:
        reason = policy.rejection_reason(record)
        expected_mask.append(reason is None)
        if reason is None:
            policy.learn(record)
        else:
            expected_reasons[reason] = expected_reasons.get(reason, 0) + 1
    _require(
        (np.asarray(mask).tolist(), dict(reasons)) == (expected_mask, expected_reasons),
        f"usable_mask(records) must agree with rejection_reason: {reasons} is not "
        f"{expected_reasons}",
    )


def _check_pending(policy: Policy, record: Record) -> None:
    """Check that pending plays are not learned and leave no trace once they are taken back."""
    problem, context = policy.problem, _first_context(policy.problem)
    policy.learn(record)
    fingerprint, decisions = policy.fingerprint(), _decisions(policy)
    for arm in (problem.arms[0], problem.arms[-1]):
        policy.add_pending(arm, context)
        policy.add_pending(arm, context, 2)
    _require(policy.fingerprint() == fingerprint, "add_pending must not change what was learned")
    policy.decide(context, 0)
    for arm in (problem.arms[0], problem.arms[-1]):
        policy.add_pending(arm, context, -3)
    same = _decisions(policy) == decisions
    _require(same, "plays that are pending and taken back must leave no trace")


def _require_same_decisions(first: Policy, second: Policy, promise: str) -> None:
    for one, other in zip(_decisions(first), _decisions(second), strict=True):
        _require(one == other, f"{promise}: {one} is not {other}")


def _decisions(policy: Policy) -> list[dict[str, object]]:
    """Return the decisions in every context."""
    problem = policy.problem
    contexts = product(*(problem.domains[name] for name in problem.context))
    return [
        policy.decide(dict(zip(problem.context, labels, strict=True)), 3).as_dict()
        for labels in contexts
    ]


def _state(policy: Policy) -> str:
    return json.dumps(to_json(policy.state()), sort_keys=True)


def _batch(records: list[Record]) -> tuple[RecordBatch, IntArray]:
    """Return records as a batch, and their numbers."""
    codes = np.array([record.codes for record in records]).T.copy()
    was_set = np.array([record.fixed for record in records]).T >= 0
    numbers = np.array([record.number for record in records], dtype=np.int64)
    return RecordBatch(records[0].problem, codes, was_set), numbers


# -- batches ----------------------------------------------------------------------------------


def _check_batches(policy: MinimalPolicy, rounds: int) -> None:
    """Check batches of decisions after some rounds; a policy without `decide_many` passes."""
    if not hasattr(policy, "decide_many"):
        return
    _play(policy, min(rounds // 2, 5), seed=2)
    many, problem = cast(DecideMany, policy.decide_many), policy.problem
    size = min(BATCH_SIZE, rounds - rounds // 2)
    contexts = [
        {name: problem.domains[name][i] for name in problem.context} for i in (0, 0, -1, 0)[:size]
    ]
    before = policy.decide(contexts[0], 3).as_dict(), _fingerprint(policy)
    first, second = many(contexts, 7), many(iter(contexts), 7)
    _require(
        len(first) == len(contexts),
        f"decide_many must make a decision for each of {len(contexts)} contexts, not {len(first)}",
    )
    _require(
        [decision.as_dict() for decision in first] == [decision.as_dict() for decision in second],
        "decide_many: same seed, same decisions",
    )
    for decision, context in zip(first, contexts, strict=True):
        _check_decision(problem, decision, "decide_many")
        _require(
            decision.context is None or dict(decision.context) == context,
            f"decide_many: a decision for {context} is labelled {decision.context}",
        )
    for arms in ([problem.arms[0]], problem.arms[-2:]):
        for decision in many(contexts, 8, iter(arms)):
            _require(decision.arm in arms, f"decide_many: {decision.arm} was not allowed")
    bad: list[Any] = [[*contexts, {**contexts[0], "no such variable": "1"}], []]
    bad += [len(contexts)] if contexts[0] else [0]  # a number is enough only without a context
    for argument in bad:
        rng = np.random.default_rng(0)
        state = str(rng.bit_generator.state)
        _require_error(
            lambda argument=argument, rng=rng: many(argument, rng),  # type: ignore[misc]
            f"decide_many({argument!r})",
        )
        _require(
            str(rng.bit_generator.state) == state,
            "decide_many must refuse a bad context before it decides",
        )
    after = policy.decide(contexts[0], 3).as_dict(), _fingerprint(policy)
    _require(after == before, "decide_many must not change its state")


def _fingerprint(policy: MinimalPolicy) -> bytes | None:
    return policy.fingerprint() if isinstance(policy, Policy) else None
