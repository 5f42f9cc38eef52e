"""All arms' rewards for 1000 posterior draws, beside the NumPy yardstick, one thread, one run.

    make bench

`test_ratios` prints, for each problem after 100 observed rounds, the time of both, their ratio, and
the time that NumPy's generator needs for the yardstick's gamma variates alone. It asserts that both
give the same mean rewards, and no time. The best of many repetitions counts, taken by turns.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pytest
from reference_numpy import NumpyBelief

from dowise import Belief, load_problem

SAMPLES = 1000
PROBLEMS = ["task1", "task2", "task3", "healthcare"]


def trained(name):
    """Our belief and the yardstick's after the same 100 rounds of fair coins."""
    problem = load_problem(name)
    ours, theirs = Belief(problem), NumpyBelief(problem)
    rng = np.random.default_rng(0)
    for _ in range(100):
        arm = problem.arms[rng.integers(len(problem.arms))]
        outcome = {v: int(rng.integers(2)) for v in problem.graph if v not in arm}
        ours.update(arm, outcome)
        theirs.update(arm, outcome)
    return ours, theirs, dict.fromkeys(problem.context, 1)


def best_times(calls, seconds=3.0, in_a_row=1):
    """The shortest time of each call, taken by turns so that all meet the same machine.

    Rounds of a trial follow one another: they are timed so many in a row, and the mean counts.
    """
    for call in calls:
        call()  # whatever is done once, compiling for one, is not timed
    best = [float("inf")] * len(calls)
    start = perf_counter()
    repetitions = 0
    while perf_counter() < start + seconds or repetitions < 5:
        repetitions += 1
        for i, call in enumerate(calls):
            before = perf_counter()
            for _ in range(in_a_row):
                call()
            best[i] = min(best[i], (perf_counter() - before) / in_a_row)
    return best


@pytest.mark.parametrize("name", PROBLEMS)
def test_ratios(benchmark, name):
    ours, theirs, context = trained(name)
    rng = np.random.default_rng(1)

    def gammas_alone():
        for alpha in theirs.under(context).values():
            rng.standard_gamma(alpha, size=(SAMPLES, *alpha.shape))

    means = theirs.draw_rewards(context, 50_000, rng).mean(axis=1)
    np.testing.assert_allclose(ours.mean_rewards(context), means, atol=0.005)
    calls = [
        lambda: ours.draw_rewards(context, SAMPLES, rng),
        lambda: theirs.draw_rewards(context, SAMPLES, rng),
        gammas_alone,
    ]
    dowise, numpy, gammas = benchmark.pedantic(best_times, (calls,), rounds=1)
    benchmark.extra_info |= {"ratio": numpy / dowise, "gammas alone": gammas / dowise}
    entries = int(ours.posterior.model.circuit.block_sizes.sum())
    print(
        f"\n{name}: dowise {1e6 * dowise:.0f} µs ({entries} variates a draw, "
        f"{1e9 * dowise / SAMPLES / entries:.1f} ns each with everything), "
        f"NumPy {1e6 * numpy:.0f} µs: {numpy / dowise:.1f} times faster; "
        f"NumPy's gammas alone {1e6 * gammas:.0f} µs"
    )


@pytest.mark.parametrize("name", ["child", "alarm", "insurance"])
def test_networks(benchmark, name):
    problem = load_problem(name)
    start = perf_counter()
    belief = Belief(problem)
    print(f"\n{name}: built in {1e3 * (perf_counter() - start):.1f} ms")
    context = {c: belief.problem.domains[c][0] for c in belief.problem.context}
    benchmark.pedantic(belief.draw_rewards, (context, SAMPLES, 0), rounds=3, warmup_rounds=1)


@pytest.mark.parametrize("rounds", [0, 1_000, 100_000])
def test_a_round_costs_the_same_however_much_was_seen(benchmark, rounds):
    problem = load_problem("task3")
    belief = Belief(problem)
    rng = np.random.default_rng(0)
    belief.update_many({name: rng.integers(2, size=rounds) for name in problem.graph})
    benchmark.group = "task3 after so many records"
    benchmark(belief.draw_rewards, {"C": 1}, SAMPLES, 0)
