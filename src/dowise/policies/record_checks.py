"""What a policy that learns from records promises about them, for `check_policy`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import product
from typing import cast

import numpy as np

from dowise.errors import DowiseError
from dowise.plain import plain
from dowise.policies.policy import Policy
from dowise.policies.record_policy import RecordPolicy
from dowise.problem import Problem, Record
from dowise.problem.record import RecordBatch, past_record

__all__ = ["check_records", "demand"]


def demand(kept: bool, promise: str) -> None:
    """Raise, unless the promise was kept."""
    if not kept:
        raise DowiseError(f"this policy breaks the contract: {promise}")


def check_records(make: Callable[[], Policy]) -> None:
    """Check a policy that `make` makes anew, if it is one that learns from records."""
    fresh = [policy for policy in (make() for _ in range(7)) if isinstance(policy, RecordPolicy)]
    if not fresh:
        return
    records = _records(fresh[0].problem)
    _check_order(fresh[0], fresh[1], records)
    _check_fingerprint(fresh[0], fresh[1], records)
    _check_lacks(fresh[2], records[:2])
    _check_many(fresh[3], fresh[4], fresh[5], records)
    _check_expect(fresh[6], records[:2])


def _records(problem: Problem) -> list[Record]:
    rng, records = np.random.default_rng(5), []
    for number in range(8):
        arm = problem.arms[number % len(problem.arms)]
        seen = {name: str(rng.choice(problem.domains[name])) for name in problem.graph}
        records.append(problem.record(arm, seen | dict(arm), number))
    return records


def _check_order(one: RecordPolicy, other: RecordPolicy, records: list[Record]) -> None:
    """Six records in order, beside eight in another order of which two are retracted."""
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


def _check_fingerprint(one: RecordPolicy, other: RecordPolicy, records: list[Record]) -> None:
    """Both know the same six records."""
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


def _check_lacks(policy: RecordPolicy, records: list[Record]) -> None:
    """Of each record, lacks says just what learn does; asking changes nothing."""
    policy.learn(records[0])
    before = policy.fingerprint()
    for record in (records[1], *_odd_records(records[1])):
        why = policy.lacks(record)
        demand(why is None or isinstance(why, str), f"lacks(record) must be a text, not {why!r}")
        demand(policy.fingerprint() == before, "lacks(record) must change nothing")
        try:
            policy.learn(record)
        except DowiseError as error:
            demand(
                str(error) == why,
                f"lacks(record) must say why learn refuses it: {why!r} is not {str(error)!r}",
            )
            demand(policy.fingerprint() == before, "a record that is refused must change nothing")
        else:
            demand(why is None, f"lacks(record) is {why!r}, but learn takes the record")
            policy.retract(record)


def _odd_records(record: Record) -> Iterable[Record]:
    """Without the reward, without the context, and after what may be no arm."""
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


def _check_many(
    one: RecordPolicy, other: RecordPolicy, third: RecordPolicy, records: list[Record]
) -> None:
    """Six records at once, beside one by one; and which of some that lack something are taken."""
    for record in records[:6]:
        one.learn(record)
    other.learn_many(_batch(records[:6]), _numbers(records[:6]))
    _demand_same(one, other, "learn_many(records) must be the same as learning one by one")
    demand(one.fingerprint() == other.fingerprint(), "learn_many must learn as learn does")
    mixed = [records[0], *_odd_records(records[1]), records[2]]
    before = third.fingerprint()
    mask, reasons = third.usable(_batch(mixed), _numbers(mixed))
    demand(third.fingerprint() == before, "usable(records) must change nothing")
    expected: list[bool] = []
    counts: dict[str, int] = {}
    for record in mixed:
        why = third.lacks(record)
        expected.append(why is None)
        if why is None:
            third.learn(record)
        else:
            counts[why] = counts.get(why, 0) + 1
    demand(
        (np.asarray(mask).tolist(), dict(reasons)) == (expected, counts),
        f"usable(records) must be what lacks says of each: {reasons} is not {counts}",
    )


def _check_expect(policy: RecordPolicy, records: list[Record]) -> None:
    """What is under way is not learned, and once taken back leaves no trace."""
    problem = policy.problem
    policy.learn(records[0])
    known, pages = policy.fingerprint(), _pages(policy)
    context = {name: problem.domains[name][0] for name in problem.context}
    for arm in (problem.arms[0], problem.arms[-1]):
        policy.expect(arm, context)
        policy.expect(arm, context, 2)
    demand(policy.fingerprint() == known, "expect must not change what was learned")
    cast(Policy, policy).decide(context, 0)
    for arm in (problem.arms[0], problem.arms[-1]):
        policy.expect(arm, context, -3)
    demand(_pages(policy) == pages, "plays that are expected and taken back must leave no trace")


def _demand_same(one: RecordPolicy, other: RecordPolicy, promise: str) -> None:
    for first, second in zip(_pages(one), _pages(other), strict=True):
        demand(first == second, f"{promise}: {first} is not {second}")


def _pages(policy: RecordPolicy) -> list[dict[str, object]]:
    """What it decides in every context."""
    problem, pages = policy.problem, []
    for labels in product(*(problem.domains[name] for name in problem.context)):
        context = dict(zip(problem.context, labels, strict=True))
        pages.append(cast(Policy, policy).decide(context, 3).as_dict())
    return pages


def _state(policy: RecordPolicy) -> str:
    return json.dumps(plain(policy.state()), sort_keys=True)


def _batch(records: list[Record]) -> RecordBatch:
    codes = np.array([record.codes for record in records]).T.copy()
    was_set = np.array([record.fixed for record in records]).T >= 0
    return RecordBatch(records[0].problem, codes, was_set)


def _numbers(records: list[Record]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([record.number for record in records], dtype=np.int64)
