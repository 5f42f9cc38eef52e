"""Rounds by prior; and rounds of `ids` with rows drawn by Beta variates or by gammas alone.

    make bench

**By prior**: rounds of `ids` (1000 draws) and `ts` with pooled rows, with prior=0.5 and with
prior=0.05, beside those with flat rows: by `decide` and `observe` after 100 rounds, and in compiled
trials of 400 rounds, by turns in one process.

**By method.** Two processes take turns. In one of them `uses_betas` is replaced before anything is
compiled, so that all rows are drawn by gamma variates; its kernels are kept in a temporary folder.
Everything else is the same.
After 100 rounds of fair coins the draws alone, and rounds by `decide` and `observe`; and rounds of
whole trials from the prior on with the world's part. Processor time, the least of all turns;
no time is asserted. As a program it reads lines such as "trial task3" and answers with seconds, so
that other versions of dowise can be asked too (docs/design/performance.md).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from time import process_time

import numpy as np
import pytest

SAMPLES, HORIZON, IN_A_ROW, TURNS = 1000, 400, 100, 100
PROBLEMS = ["task1", "task2", "healthcare", "task3"]
WAYS = ["betas", "gammas"]


@pytest.fixture(scope="module")
def children(tmp_path_factory):
    """A process for each way of drawing, which answers a line by a line."""
    folder = tmp_path_factory.mktemp("kernels")
    folders = {"betas": {}, "gammas": {"NUMBA_CACHE_DIR": str(folder)}}
    started = [
        subprocess.Popen(
            [sys.executable, str(Path(__file__)), way],
            text=True,
            env=os.environ | folders[way],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for way in WAYS
    ]
    yield started
    for child in started:
        child.communicate()


def asked(child, what, name):
    child.stdin.write(f"{what} {name}\n")
    child.stdin.flush()
    return float(child.stdout.readline())


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("what", ["draws", "stepped", "trial"])
def test_rounds(benchmark, children, what, name):
    def by_turns():
        for child in children:
            asked(child, what, name)  # compiled once
        times = [[asked(child, what, name) for child in children] for _ in range(TURNS)]
        return np.min(times, axis=0)

    betas, gammas = benchmark.pedantic(by_turns, rounds=1)
    print(
        f"\n{name}, {what}: {1e6 * betas:.1f} µs a round of ids, by gammas alone "
        f"{1e6 * gammas:.1f} µs: {betas / gammas:.2f} times as long by betas"
    )


PRIORS = [1.0, "pooled", 0.5, 0.05]


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("policy", ["ids", "ts"])
@pytest.mark.parametrize("what", ["stepped", "trial"])
def test_rounds_by_prior(benchmark, what, policy, name):
    measure = {"stepped": stepped, "trial": trial}[what]

    def by_turns():
        turns = range(12 if what == "trial" else 40)
        times = [[measure(name, policy, prior) for prior in PRIORS] for _ in turns]
        return np.min(times, axis=0)

    flat, *others = benchmark.pedantic(by_turns, rounds=1)
    ratios = ", ".join(
        f"prior={prior} {1e6 * time:.1f} µs ({time / flat:.2f} times)"
        for prior, time in zip(PRIORS[1:], others, strict=True)
    )
    print(f"\n{name}, {policy}, {what}: flat {1e6 * flat:.1f} µs a round, {ratios}")


def learned(name, policy="ids", prior=1.0):
    """A problem, a policy after 100 rounds, and a context."""
    from dowise import load_problem, make_policy

    problem, rng = load_problem(name), np.random.default_rng(0)
    policy = make_policy(policy, problem, prior=prior)
    for _ in range(100):
        arm = problem.arms[rng.integers(len(problem.arms))]
        policy.observe(arm, {v: str(rng.integers(2)) for v in problem.graph if v not in arm})
    return problem, policy, dict.fromkeys(problem.context, "1")


def draws(name):
    """What a round draws, many times."""
    _, policy, context = learned(name)
    rng = np.random.default_rng(1)
    start = process_time()
    for _ in range(IN_A_ROW):
        policy.belief.draw_rewards(context, SAMPLES, rng)
    return (process_time() - start) / IN_A_ROW


def stepped(name, policy="ids", prior=1.0):
    """Many rounds by `decide` and `observe`, from about the same counts."""
    from dowise import make_environment

    problem, policy, context = learned(name, policy, prior)
    rng, world = np.random.default_rng(1), make_environment(problem, seed=1)
    shown = {arm: world.play(arm, context, rng) for arm in problem.arms}
    before = policy.belief.posterior.counts.copy()
    start = process_time()
    for _ in range(IN_A_ROW):
        decision = policy.decide(context, rng)
        policy.observe(decision.arm, shown[decision.arm])
        policy.belief.posterior.counts[:] = before
    return (process_time() - start) / IN_A_ROW


def trial(name, policy="ids", prior=1.0):
    """A whole trial, in one world."""
    from dowise import load_problem, make_policy
    from dowise.simulation.trial import make_world, run_trial

    world = make_world(load_problem(name), 0, 1)
    start = process_time()
    run_trial(world, lambda p: make_policy(policy, p, prior=prior), HORIZON, 0, 1)
    return (process_time() - start) / HORIZON


def answer(way):
    if way == "gammas":
        from numba import njit

        from dowise.belief import draw_kernels as kernels

        kernels.uses_betas = njit(lambda _shapes, _lanes: False)
    for line in sys.stdin:
        what, name = line.split()
        print({"draws": draws, "stepped": stepped, "trial": trial}[what](name), flush=True)


if __name__ == "__main__":
    answer(sys.argv[1])
