"""Whole trials of `commit-kg` beside those of `ids` and `ts`, in the same worlds; one thread.

And of `best`, with pooled rows and the graph-free hypothesis, beside `best` without either.

    make bench

By turns, the best of many counts. No time is asserted.
"""

from __future__ import annotations

import pytest
from bench_belief import best_times

from dowise import load_problem, make_policy
from dowise.simulation.trial import make_world, run_trial

POLICIES = ("commit-kg", "ids", "ts")
HORIZON = {"child": 50}


@pytest.mark.parametrize("name", ["task1", "task2", "healthcare", "task3", "asia", "child"])
def test_trials(benchmark, name):
    world, horizon = make_world(load_problem(name), 0, 1), HORIZON.get(name, 300)

    def trial_of(policy):
        return lambda: run_trial(world, lambda p: make_policy(policy, p), horizon, 0, 1)

    calls = [trial_of(policy) for policy in POLICIES]
    times = benchmark.pedantic(best_times, (calls,), rounds=1)
    shown = (
        f"{1e6 * time / horizon:.0f} of {policy}"
        for policy, time in zip(POLICIES, times, strict=True)
    )
    print(f"\n{name}: µs a round {', '.join(shown)}; {times[0] / times[1]:.2f} times ids")


@pytest.mark.parametrize("name", ["task1", "task2", "healthcare", "task3", "asia"])
def test_best(benchmark, name):
    world, horizon = make_world(load_problem(name), 0, 1), 300

    def trial_of(**options):
        return lambda: run_trial(world, lambda p: make_policy("best", p, **options), horizon, 0, 1)

    calls = [trial_of(), trial_of(prior="flat", graph_free_prior=0)]
    robust, plain = benchmark.pedantic(best_times, (calls,), rounds=1)
    print(
        f"\n{name}: {1e6 * robust / horizon:.0f} µs a round of best, {1e6 * plain / horizon:.0f} "
        f"with flat rows and the graph alone: {robust / plain:.2f} times as long"
    )
