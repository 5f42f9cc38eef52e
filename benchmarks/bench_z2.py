"""A round of z2-ts on task3 with 100 resamples, beside a plain twin with SLSQP; one thread.

    make bench

The twin's estimates on the data themselves are asserted to be ours; no time is.
"""

from __future__ import annotations

import numpy as np
from bench_belief import best_times
from reference_z2 import NumpyZ2

from dowise import load_problem, make_environment, make_policy
from dowise.environments import random_problem


def test_a_round_of_z2_ts(benchmark):
    world = make_environment("task3", seed=1)
    problem, rng = world.problem, np.random.default_rng(0)
    ours, theirs = make_policy("z2-ts", problem, resamples=100), NumpyZ2(problem, resamples=100)
    context = {"C": "1"}
    outcomes = [(arm, world.play(arm, context, rng)) for _ in range(100) for arm in problem.arms]
    for arm, outcome in outcomes:
        ours.observe(arm, outcome)
        theirs.observe(arm, outcome)
    check_same_estimates(ours, theirs, context)
    state = {"round": 0}

    def next_outcome():
        state["round"] += 1
        return outcomes[state["round"] % len(outcomes)]

    def our_round():
        ours.decide(context, rng)
        ours.observe(*next_outcome())

    def their_round():
        theirs.decide(context, rng)
        theirs.observe(*next_outcome())

    def our_refreshed_round():
        seldom.decide(context, rng)
        seldom.observe(*next_outcome())

    seldom = make_policy("z2-ts", problem, resamples=100, refresh=0.05)
    for arm, outcome in outcomes:
        seldom.observe(arm, outcome)
    calls = [our_round, their_round, our_refreshed_round]
    dowise, numpy, refreshed = benchmark.pedantic(best_times, (calls, 5.0, 10), rounds=1)
    print(
        f"\nz2-ts on task3, B = 100: {1e6 * dowise:.0f} µs a round, the twin {1e3 * numpy:.1f} ms: "
        f"{numpy / dowise:.0f} times faster; with refresh=0.05 {1e6 * refreshed:.0f} µs"
    )


def check_same_estimates(ours, theirs, context):
    """Every estimator of every arm on the data: lane 0 of both."""
    ours.pooled(context)
    tables = {arm: table[None] for arm, table in theirs.counts["1",].items()}
    found, circuit = ours.estimates, ours.estimates.circuit
    for i, arm in enumerate(ours.problem.arms):
        values = ours._values[circuit.results[found.offsets[i] : found.offsets[i + 1]]]
        defined = values[:, 0] == values[:, 101]
        with np.errstate(invalid="ignore"):
            plain = [theirs.lanes(e, arm, free, tables)[0] for e, free in theirs.instances(arm)]
        assert (defined | np.isnan(plain)).all()  # the twin knows no 0 · undefined = 0
        seen = np.isfinite(plain)
        assert seen[0]
        np.testing.assert_allclose(values[seen, 0], np.array(plain)[seen], rtol=1e-12)


def test_fifteen_variables(benchmark):
    """A random chordal problem with several intervention sets, after 300 rounds."""
    for seed in range(100):
        problem = random_problem(15, 0.1, rng=seed).problem
        if len(problem.intervention_sets) > 2:
            break
    world, policy = make_environment(problem, seed=0), make_policy("z2-ts", problem)
    rng = np.random.default_rng(0)

    def a_round():
        context = world.draw_context(rng)
        arm = policy.decide(context, rng).arm
        policy.observe(arm, world.play(arm, context, rng))

    for _ in range(300):
        a_round()
    benchmark.pedantic(a_round, rounds=100)
    print(f"\n{len(problem.arms)} arms, {policy.estimates.circuit.slots:,} slots")


def test_building(benchmark):
    benchmark.pedantic(lambda: make_policy("z2-ts", load_problem("task3")), rounds=20)
