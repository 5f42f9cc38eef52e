"""Whole trials: rounds a second of compiled loops, ids on task3 beside NumPy, and two workers.

    make bench

The yardstick plays the same trials in the same worlds (`reference_numpy.NumpyIDS`); no time is
asserted.
"""

from __future__ import annotations

import resource
from time import perf_counter

import numpy as np
import pytest
from bench_belief import best_times
from reference_numpy import NumpyIDS
from support.simulation_times import time_outside_and_inside_rounds

from dowise import load_problem, make_policy, simulate
from dowise.simulation.trial import make_world, run_trial

HORIZON = 1000


@pytest.mark.parametrize("name", ["ts", "ucb", "bernoulli-ts"])
def test_rounds_a_second_on_task1(benchmark, name):
    problem = load_problem("task1")

    def ten_trials():
        for trial in range(10):
            world = make_world(problem, 0, trial)
            run_trial(world, lambda p: make_policy(name, p), HORIZON, 0, trial)

    (seconds,) = benchmark.pedantic(best_times, ([ten_trials],), rounds=1)
    print(f"\n{name} on task1: {10 * HORIZON / seconds:,.0f} rounds a second, worlds and all")


@pytest.mark.parametrize("problem", ["task1", "task3", "healthcare"])
@pytest.mark.parametrize("name", ["ucb", "bernoulli-ts", "ts"])
def test_the_rest_of_a_race_beside_its_play(benchmark, problem, name):
    """Processor time of 500 trials in this process: in the kernel that plays, and around it."""
    race = {"times": 20 if name == "ucb" else 5, "horizon": HORIZON, "trials": 500}
    rest, play = benchmark.pedantic(time_outside_and_inside_rounds, (problem, name), race, rounds=1)
    print(
        f"\n500 trials of {name} on {problem}: {1000 * play:.0f} ms of play, {1000 * rest:.0f} ms "
        f"around it: the rest is {rest / play:.2f} times the play"
    )


def test_trials_of_ids_on_task3(benchmark):
    problem = load_problem("task3")

    def ours():
        world = make_world(problem, 0, 0)
        run_trial(world, lambda p: make_policy("ids", p, samples=1000), HORIZON, 0, 0)

    def theirs():
        world, policy, rng = make_world(problem, 0, 0), NumpyIDS(problem), np.random.default_rng(0)
        regret = 0.0
        for _ in range(HORIZON):
            context = world.draw_context(rng)
            arm = policy.decide(context, rng)
            policy.update(arm, world.play(arm, context, rng))
            regret += world.regret(arm, context)

    calls = [ours, theirs]
    dowise, numpy = benchmark.pedantic(best_times, (calls, 10.0), rounds=1)
    print(
        f"\na trial of ids on task3: {dowise:.3f} s, NumPy {numpy:.2f} s: "
        f"{numpy / dowise:.1f} times faster"
    )


def test_two_workers(benchmark):
    """After both workers have started and loaded their kernels, which happens once."""
    options = {"horizon": HORIZON, "every": HORIZON, "options": {"ids": {"samples": 1000}}}
    simulate(["task3"], ["ids"], trials=20, workers=2, **options)

    def race(workers, seed):
        start = perf_counter()
        simulate(["task3"], ["ids"], trials=80, seed=seed, workers=workers, **options)
        return perf_counter() - start

    def both():
        return min(race(1, i) for i in range(2)), min(race(2, i) for i in range(2))

    one, two = benchmark.pedantic(both, rounds=1)
    print(f"\n80 trials of ids on task3: one worker {one:.1f} s, two {two:.1f} s: {one / two:.2f}")


def test_memory_is_flat_in_the_number_of_trials(benchmark):
    """The peak of this process after 200 trials and after 2,000 more."""

    def race(trials):
        simulate(["task1"], ["ts"], horizon=HORIZON, trials=trials, every=10)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    few, many = benchmark.pedantic(lambda: (race(200), race(2000)), rounds=1)
    print(f"\npeak memory: {few:.0f} MB after 200 trials, {many:.0f} MB after 2,000 more")
