"""Whole trials of `certified-ids` beside those of `ids`, in the same worlds; one thread, one run.

    make bench

By turns, the best of many counts. No time is asserted.
"""

from __future__ import annotations

import pytest
from bench_belief import best_times

from dowise import CausalGraph, Problem, load_problem, make_policy
from dowise.simulation.trial import make_world, run_trial

HORIZON = 500


DOUBTFUL = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y"), "Y", context="C")


@pytest.mark.parametrize("name", ["task1", "healthcare", "task2", "task3", "a doubtful edge"])
def test_trials(benchmark, name):
    world = make_world(DOUBTFUL if name == "a doubtful edge" else load_problem(name), 0, 1)

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
