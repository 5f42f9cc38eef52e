"""Rounds with one doubtful edge beside rounds on the same graph with all edges certain.

    make bench

Whole trials, compiled, the best of several, taken by turns. The aim: a `ts` round at most three
times a plain one, an `ids` round with 1000 draws at most twice. No time is asserted.
"""

from __future__ import annotations

import pytest
from bench_belief import best_times

from dowise import Belief, CausalGraph, Problem, load_problem, make_environment, make_policy
from dowise.simulation.trial import run_trial

TASK_2 = "C -> X1; C -> X2; X1 -> X2; Z -> X2; Z -> Y; X2 -> Y"
ROLES = {"context": "C", "non_manipulable": "Z"}
PAIRS = {
    "a doubtful arrow": (TASK_2, TASK_2.replace("Z -> Y", "Z ?-> Y"), ROLES),
    "an instrument": ("Z -> X -> Y; X <-> Y!", "Z -> X -> Y; X <-> Y", {}),
    "a hidden cause": (f"{TASK_2}; X1 <-> Y!", f"{TASK_2}; X1 <-> Y", ROLES),
}
ROUNDS = {"ts": 5000, "ids": 300}


@pytest.mark.parametrize("name", ["ids", "ts"])
@pytest.mark.parametrize("case", PAIRS)
def test_rounds_with_one_doubtful_edge(benchmark, case, name):
    *texts, roles = PAIRS[case]
    problems = [Problem(CausalGraph.parse(text), "Y", **roles) for text in texts]
    worlds = [make_environment(problem, seed=1) for problem in problems]

    def trial(i):
        return run_trial(worlds[i], lambda _: make_policy(name, problems[i]), ROUNDS[name], 0, 0)

    plain, doubtful = best_times([lambda: trial(0), lambda: trial(1)])
    each = 1e6 / ROUNDS[name]
    print(f"\n{case}, {name}: {plain * each:.1f} and {doubtful * each:.1f} µs a round, "
          f"{doubtful / plain:.2f} times")  # fmt: skip
    benchmark.extra_info["ratio"] = doubtful / plain
    benchmark.pedantic(lambda: trial(1), rounds=1)


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare"])
def test_draws_on_the_soft_graph(benchmark, name):
    drawn = load_problem(name)
    soft = Problem(
        drawn.graph, drawn.reward, drawn.context, drawn.non_manipulable, drawn.domains, soft=0.1
    )
    plain, wide = Belief(drawn), Belief(soft)
    codes = tuple(0 for _ in drawn.context)
    calls = [lambda: plain.draw(codes, 1000, 0), lambda: wide.draw(codes, 1000, 0)]
    one, other = best_times(calls)
    print(f"\n{name}: 1000 draws {1e3 * one:.2f} ms, on the soft graph {1e3 * other:.2f} ms")
    benchmark.pedantic(lambda: wide.draw(codes, 1000, 0), rounds=3)
