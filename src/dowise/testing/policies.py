"""Conformance suite for policies: `check_policy` checks the contract that every policy keeps."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from typing import Any, cast

import numpy as np

from dowise._core.codec import to_json
from dowise.errors import USER_CODE_ERRORS, DowiseError
from dowise.policies.base import MinimalPolicy, Policy
from dowise.policies.decision import Decision
from dowise.policies.registry import make_policy
from dowise.problem import Intervention, Problem, Record, load_problem
from dowise.problem.record import RecordBatch, past_record


def demand(kept: bool, promise: str) -> None:
    """Raise `DowiseError` unless the promise was kept."""
    if not kept:
        raise DowiseError(f"this policy breaks the contract: {promise}", code="broken-contract")


def check_records(make: Callable[[], MinimalPolicy]) -> None:
    """Check how fresh policies of `make` learn and forget records, if they are `Policy` objects."""
    fresh = [policy for policy in (make() for _ in range(7)) if isinstance(policy, Policy)]
    if not fresh:
        return
    records = _records(fresh[0].problem)
    _check_order(fresh[0], fresh[1], records)
    _check_fingerprint(fresh[0], fresh[1], records)
    _check_rejections(fresh[2], records[:2])
    _check_many(fresh[3], fresh[4], fresh[5], records)
    _check_pending(fresh[6], records[:2])


def _records(problem: Problem) -> list[Record]:
    rng, records = np.random.default_rng(5), []
    for number in range(8):
        arm = problem.arms[number % len(problem.arms)]
        seen = {name: str(rng.choice(problem.domains[name])) for name in problem.graph}
        records.append(problem.record(arm, seen | dict(arm), number))
    return records


def _check_order(one: Policy, other: Policy, records: list[Record]) -> None:
    """Compare six records in order with eight in another order, two of which are retracted."""
    for record in records[:6]:
        one.learn(record)
    for record in reversed(records):
        other.learn(record)
    for record in records[6:]:
        other.retract(record)
    _demand_same(
        one, other,
        "what it knows must be a function of its records, not of their order, and a record that is "
        "retracted must leave no trace",
    )  # fmt: skip


def _check_fingerprint(one: Policy, other: Policy, records: list[Record]) -> None:
    """Check fingerprints of two policies that have learned the same six records."""
    first = one.fingerprint()
    demand(isinstance(first, bytes), f"fingerprint() must be bytes, not {first!r}")
    demand(
        first == other.fingerprint(),
        "fingerprint() must be the same for the same records, whatever their order",
    )
    before = _state(one)
    one.learn(records[6])
    demand(
        (one.fingerprint() != first) == (_state(one) != before),
        "fingerprint() must change with what was learned, and with nothing else",
    )
    one.retract(records[6])
    demand(one.fingerprint() == first, "fingerprint() must forget a record that is retracted")


def _check_rejections(policy: Policy, records: list[Record]) -> None:
    """Check that `rejection_reason` is what `learn` raises, and changes nothing."""
    policy.learn(records[0])
    before = policy.fingerprint()
    for record in (records[1], *_odd_records(records[1])):
        why = policy.rejection_reason(record)
        demand(
            why is None or isinstance(why, str),
            f"rejection_reason(record) must be a text, not {why!r}",
        )
        demand(policy.fingerprint() == before, "rejection_reason(record) must change nothing")
        try:
            policy.learn(record)
        except DowiseError as error:
            demand(
                str(error) == why,
                "rejection_reason(record) must be the reason why learn refuses it: "
                f"{why!r} is not {str(error)!r}",
            )
            demand(policy.fingerprint() == before, "a record that is refused must change nothing")
        else:
            demand(why is None, f"rejection_reason(record) is {why!r}, but learn takes the record")
            policy.retract(record)


def _odd_records(record: Record) -> Iterable[Record]:
    """Return records without reward, without context, and after what may not be an arm."""
    problem, seen = record.problem, record.labels
    number = 100
    yield past_record(problem, record.arm, _without(seen, problem.reward), number)
    if problem.context:
        yield past_record(problem, record.arm, _without(seen, *problem.context), number)
    others = _without(seen, problem.reward)
    yield past_record(problem, others, seen, number)
    yield past_record(problem, {name: others[name] for name in sorted(others)[:1]}, seen, number)


def _without(seen: dict[str, str], *names: str) -> dict[str, str]:
    return {name: label for name, label in seen.items() if name not in names}


def _check_many(one: Policy, other: Policy, third: Policy, records: list[Record]) -> None:
    """Compare learning many records with learning one by one, and the mask with the reasons."""
    for record in records[:6]:
        one.learn(record)
    other.learn_many(_batch(records[:6]), _numbers(records[:6]))
    _demand_same(one, other, "learn_many(records) must be the same as learning one by one")
    demand(one.fingerprint() == other.fingerprint(), "learn_many must learn as learn does")
    mixed = [records[0], *_odd_records(records[1]), records[2]]
    before = third.fingerprint()
    mask, reasons = third.usable_mask(_batch(mixed), _numbers(mixed))
    demand(third.fingerprint() == before, "usable_mask(records) must change nothing")
    expected: list[bool] = []
    counts: dict[str, int] = {}
    for record in mixed:
        why = third.rejection_reason(record)
        expected.append(why is None)
        if why is None:
            third.learn(record)
        else:
            counts[why] = counts.get(why, 0) + 1
    demand(
        (np.asarray(mask).tolist(), dict(reasons)) == (expected, counts),
        f"usable_mask(records) must agree with rejection_reason: {reasons} is not {counts}",
    )


def _check_pending(policy: Policy, records: list[Record]) -> None:
    """Check that pending plays are not learned, and leave no trace once taken back."""
    problem = policy.problem
    policy.learn(records[0])
    known, pages = policy.fingerprint(), _pages(policy)
    context = {name: problem.domains[name][0] for name in problem.context}
    for arm in (problem.arms[0], problem.arms[-1]):
        policy.add_pending(arm, context)
        policy.add_pending(arm, context, 2)
    demand(policy.fingerprint() == known, "add_pending must not change what was learned")
    policy.decide(context, 0)
    for arm in (problem.arms[0], problem.arms[-1]):
        policy.add_pending(arm, context, -3)
    demand(_pages(policy) == pages, "plays that are pending and taken back must leave no trace")


def _demand_same(one: Policy, other: Policy, promise: str) -> None:
    for first, second in zip(_pages(one), _pages(other), strict=True):
        demand(first == second, f"{promise}: {first} is not {second}")


def _pages(policy: Policy) -> list[dict[str, object]]:
    """Return the decisions in every context."""
    problem, pages = policy.problem, []
    for labels in product(*(problem.domains[name] for name in problem.context)):
        context = dict(zip(problem.context, labels, strict=True))
        pages.append(policy.decide(context, 3).as_dict())
    return pages


def _state(policy: Policy) -> str:
    return json.dumps(to_json(policy.state()), sort_keys=True)


def _batch(records: list[Record]) -> RecordBatch:
    codes = np.array([record.codes for record in records]).T.copy()
    was_set = np.array([record.fixed for record in records]).T >= 0
    return RecordBatch(records[0].problem, codes, was_set)


def _numbers(records: list[Record]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([record.number for record in records], dtype=np.int64)


SIZE = 4

DecideMany = Callable[..., list[Decision]]


def check_batches(policy: MinimalPolicy, most: int) -> None:
    """Check batches of up to `most` decisions; a policy without `decide_many` passes."""
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
    demand(
        _batch_checks_pages(first) == _batch_checks_pages(again),
        "decide_many: same seed, same decisions",
    )
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
    """Return contexts of first values, with one of last values in between."""
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
        f"decide_many: a decision for {context} is labelled {decision.context}",
    )
    known = decision.probabilities
    demand(
        known is None
        or (abs(float(known.sum()) - 1) < 1e-9 and known[problem.arm_index(decision.arm)] > 0),
        "decide_many: probabilities must sum to 1, and be above 0 for the arm that is played",
    )


def _check_bad(many: DecideMany, contexts: list[dict[str, str]]) -> None:
    """Check a bad context among good ones, an empty list, and a number despite a context."""
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
        except USER_CODE_ERRORS as error:
            demand(False, f"decide_many({given!r}) must be a DowiseError, not {error!r}")
        demand(False, f"decide_many({given!r}) must be a DowiseError")


def _known(policy: MinimalPolicy) -> bytes | None:
    return policy.fingerprint() if isinstance(policy, Policy) else None


def _batch_checks_pages(decisions: list[Decision]) -> list[dict[str, object]]:
    return [decision.as_dict() for decision in decisions]


def check_policy(
    policy: str | Callable[..., MinimalPolicy],
    rounds: int = 1000,
    problems: Iterable[str | Problem] = ("task1", "task2"),
    **options: Any,
) -> None:
    """Play a policy on small problems and check that it keeps the contract.

    The same seed gives the same decisions; probabilities sum to 1 if they are known; only allowed
    arms are played; `decide` changes no state; `rounds` rounds pass without a warning; a bad
    context raises a `DowiseError`. The decisions of a `Policy` do not depend on the order of its
    records, nor on those that were retracted; `rejection_reason` is what `learn` raises;
    `learn_many` is the same as one by one; `fingerprint` changes with what was learned and with
    nothing else; pending plays that are taken back leave no trace. `decide_many`, if there is one,
    makes a decision for each context and changes no state.

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
        If the policy breaks the contract, with the promise that is broken.

    Examples
    --------
    >>> check_policy("random", rounds=10)
    """

    def make(problem: Problem) -> MinimalPolicy:
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
            raise DowiseError(
                f"this policy breaks the contract: it warns, {warning}", code="broken-contract"
            ) from warning
        except DowiseError:
            raise
        except USER_CODE_ERRORS as error:
            raise DowiseError(
                f"this policy breaks the contract: it raises {type(error).__name__}: {error}",
                code="broken-contract",
            ) from error


def _play(policy: MinimalPolicy, rounds: int, seed: int) -> list[str]:
    """Play rounds with uniformly random outcomes; return the arms."""
    rng = np.random.default_rng(seed)
    problem, played = policy.problem, []
    for t in range(rounds):
        context = {name: str(rng.choice(problem.domains[name])) for name in problem.context}
        decision = policy.decide(dict(context), np.random.default_rng([seed, t]))
        demand(isinstance(decision, Decision), f"decide must return a Decision, not {decision!r}")
        demand(
            isinstance(decision.arm, Intervention) and decision.arm in problem.arms,
            f"it played {decision.arm!r}, which is not one of the problem's arms",
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


def _played(policy: MinimalPolicy, rounds: int) -> MinimalPolicy:
    _play(policy, rounds, seed=2)
    return policy


def _check_repeatable(one: MinimalPolicy, other: MinimalPolicy, rounds: int) -> None:
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


def _check_allowed(policy: MinimalPolicy) -> None:
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


def _check_bad_context(policy: MinimalPolicy) -> None:
    good = {name: policy.problem.domains[name][0] for name in policy.problem.context}
    bad = [{**good, "no such variable": "1"}]
    bad += [{**good, name: "no such value"} for name in good] + ([{}] if good else [])
    for context in bad:
        try:
            policy.decide(context, 0)
        except DowiseError:
            continue
        except USER_CODE_ERRORS as error:
            demand(False, f"the context {context} must be a DowiseError, not {error!r}")
        demand(
            False,
            f"the context {context} must be a DowiseError; problem.context_codes checks contexts",
        )
