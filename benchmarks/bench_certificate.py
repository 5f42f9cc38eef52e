"""Whole trials of `certified-ids` beside those of `ids`, in the same worlds; one thread, one run.

    make bench

Processor time, by turns, the best of many counts. No time is asserted.
"""

from __future__ import annotations

from time import process_time

import pytest

from dowise import CausalGraph, Problem, load_problem, make_policy
from dowise.simulation.trial import make_world, run_trial

HORIZON = 500

HIDDEN = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y"), "Y", context="C")


def best_times(calls, turns=60):
    """The least processor time of each call, by turns: others may be at work on the machine."""
    best = [float("inf")] * len(calls)
    for _ in range(turns):
        for i, call in enumerate(calls):
            before = process_time()
            call()
            best[i] = min(best[i], process_time() - before)
    return best


@pytest.mark.parametrize("name", ["task1", "healthcare", "task2", "task3", "a hidden cause"])
def test_trials(benchmark, name):
    world = make_world(HIDDEN if name == "a hidden cause" else load_problem(name), 0, 1)

    def trial_of(policy):
        return lambda: run_trial(
            world, lambda p: make_policy(policy, p, horizon=HORIZON), HORIZON, 0, 1
        )

    calls = [trial_of("certified-ids"), trial_of("ids")]
    ours, theirs = benchmark.pedantic(best_times, (calls,), rounds=1)
    print(
        f"\n{name}: {1e6 * ours / HORIZON:.0f} µs a round of certified-ids, "
        f"{1e6 * theirs / HORIZON:.0f} of ids, {ours / theirs:.2f} times as long"
    )
