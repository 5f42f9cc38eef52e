"""Whole rounds, decide and observe, beside the NumPy yardstick; one thread, one run.

    make bench

Both sides play the same kind of round: decide for a context, observe what a world shows. The world
itself is not timed. Many rounds in a row are one repetition; the best of many counts, taken by
turns. No time is asserted.
"""

from __future__ import annotations

from time import perf_counter

import cvxpy
import numpy as np
import pytest
from bench_belief import PROBLEMS, best_times
from bench_growth import fork
from reference_numpy import NumpyIDS, NumpyThompson

from dowise import Belief, load_problem, make_environment, make_policy
from dowise.information import estimate, gain_interval, minimise_kl, radii

SAMPLES = 1000
IN_A_ROW = {"ids": 50, "ts": 500}  # as in a trial


def rounds_of(name, ours, theirs):
    """Two functions that play one round each, after the same 100 rounds of fair coins."""
    problem = load_problem(name)
    rng, world = np.random.default_rng(0), make_environment(problem, seed=1)
    context = dict.fromkeys(problem.context, "1")
    shown = {arm: world.play(arm, context, rng) for arm in problem.arms}
    for _ in range(100):
        arm = problem.arms[rng.integers(len(problem.arms))]
        outcome = {v: str(rng.integers(2)) for v in problem.graph if v not in arm}
        ours.observe(arm, outcome)
        theirs.update(arm, outcome)
    before = ours.belief.posterior.counts.copy()
    their_counts = {name: table.copy() for name, table in theirs.counts.items()}

    def our_round():
        decision = ours.decide(context, rng)
        ours.observe(decision.arm, shown[decision.arm])
        ours.belief.posterior.counts[:] = before

    def their_round():
        arm = theirs.decide(context, rng)
        theirs.update(arm, shown[arm])
        for name, table in their_counts.items():
            theirs.counts[name][...] = table

    return our_round, their_round


@pytest.mark.parametrize("policy", ["ids", "ts"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_rounds(benchmark, name, policy):
    problem = load_problem(name)
    if policy == "ids":
        ours, theirs = make_policy("ids", problem, samples=SAMPLES), NumpyIDS(problem, SAMPLES)
    else:
        ours, theirs = make_policy("ts", problem), NumpyThompson(problem)
    calls = rounds_of(name, ours, theirs)
    dowise, numpy = benchmark.pedantic(best_times, (calls, 3.0, IN_A_ROW[policy]), rounds=1)
    benchmark.extra_info |= {"ratio": numpy / dowise}
    print(
        f"\n{name}: a round of {policy} takes {1e6 * dowise:.1f} µs, NumPy {1e6 * numpy:.0f} µs: "
        f"{numpy / dowise:.1f} times faster"
    )


def test_256_arms(benchmark):
    """The draws alone, and the whole round, with 256 arms and 1000 draws."""
    problem = fork(8)
    assert len(problem.arms) == 256
    policy, rng = make_policy("ids", problem, samples=SAMPLES), np.random.default_rng(0)
    outcome = dict.fromkeys(problem.graph, 0)

    def whole():
        arm = policy.decide(None, rng).arm
        policy.observe(arm, outcome | dict(arm))

    calls = [lambda: policy.belief.draw_rewards(None, SAMPLES, rng), whole]
    draws, round_ = benchmark.pedantic(best_times, (calls,), rounds=1)
    print(f"\n256 arms: draws {1e3 * draws:.2f} ms, a round {round_ / draws:.2f} times that")


def test_lower_bounds_of_the_gain_beside_clarabel(benchmark):
    """Lemma 4's lower bound for the 9 arms of task3, one convex problem an arm."""
    problem = load_problem("task3")
    found = estimate(Belief(problem).draw_rewards({"C": 0}, 200_000, 0))
    samples, delta = 10**6, 0.05 / (2 * 1000 * 9)
    arms, _, values = found.joint.shape
    e = radii(samples, arms, values, delta)

    def boxes(a):
        joint, best, out = found.joint[a], found.best[:, None], found.outcomes[a]
        p = (joint - e.joint).clip(0), (joint + e.joint).clip(max=1)
        q = (
            (best - e.best).clip(0) * (out - e.outcome).clip(0),
            (best + e.best).clip(max=1) * (out + e.outcome).clip(max=1),
        )
        return [box.ravel() for box in (*p, *q)]

    every = [boxes(a) for a in range(arms)]
    # Stated once with parameters, so that only the solver is timed, as far as CVXPY allows.
    bounds = [cvxpy.Parameter(arms * values, nonneg=True) for _ in range(4)]
    p, q = cvxpy.Variable(arms * values), cvxpy.Variable(arms * values)
    box = [p >= bounds[0], p <= bounds[1], q >= bounds[2], q <= bounds[3]]
    divergence = cvxpy.sum(cvxpy.rel_entr(p, q))
    stated = cvxpy.Problem(cvxpy.Minimize(divergence), [*box, cvxpy.sum(p) == 1, cvxpy.sum(q) == 1])

    def clarabel():
        values = []
        for numbers in every:
            for parameter, number in zip(bounds, numbers, strict=True):
                parameter.value = number
            values.append(stated.solve(solver="CLARABEL"))
        return values

    np.testing.assert_allclose([minimise_kl(*b) for b in every], clarabel(), atol=1e-6)
    calls = [
        lambda: [minimise_kl(*b) for b in every],
        lambda: gain_interval(found, delta, samples),
        clarabel,
    ]
    one_by_one, interval, oracle = benchmark.pedantic(best_times, (calls, 5.0, 10), rounds=1)
    print(
        f"\nnine lower bounds: minimise_kl {1e6 * one_by_one:.0f} µs, the whole of Lemma 4 at once "
        f"{1e6 * interval:.0f} µs, CVXPY with Clarabel {1e3 * oracle:.1f} ms: "
        f"{oracle / one_by_one:.0f} and {oracle / interval:.0f} times faster"
    )
    start = perf_counter()
    gain_interval(found, delta, 1000)
    print(f"where the intervals say nothing (N = 1000): {1e6 * (perf_counter() - start):.0f} µs")
