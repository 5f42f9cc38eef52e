"""Rounds with one doubtful edge beside rounds on the same graph with all edges certain.

    make bench

Whole trials, compiled, the best of several, taken by turns. The aim: a `ts` round at most three
times a plain one, an `ids` round with 1000 draws at most twice. Then the soft graph, and what it
takes to keep evidence. No time is asserted.
"""

from __future__ import annotations

import numpy as np
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
    print(
        f"\n{case}, {name}: {plain * each:.1f} and {doubtful * each:.1f} µs a round, "
        f"{doubtful / plain:.2f} times"
    )
    benchmark.extra_info["ratio"] = doubtful / plain
    benchmark.pedantic(lambda: trial(1), rounds=1)


SEVEN = Problem(
    CausalGraph.parse("C -> A -> B -> M -> Y; C -> D -> M; Z -> B; Z -> Y"), "Y", "C", ("D", "Z")
)


def records_of(problem, count=100):
    world, rng = make_environment(problem, seed=1), np.random.default_rng(0)
    found = []
    for _ in range(count):
        context, arm = world.draw_context(rng), problem.arms[rng.integers(len(problem.arms))]
        found.append(problem.record(arm, world.play(arm, context, rng)))
    return found


@pytest.mark.filterwarnings("ignore:there are .* sets of doubtful edges")
@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare", "seven variables"])
def test_draws_and_records_on_the_soft_graph(benchmark, name):
    drawn = SEVEN if name == "seven variables" else load_problem(name)
    soft = Problem(
        drawn.graph, drawn.reward, drawn.context, drawn.non_manipulable, drawn.domains, soft=0.1
    )
    plain, wide = Belief(drawn), Belief(soft)
    codes, records = tuple(0 for _ in drawn.context), records_of(soft)
    one, other, learned = best_times(
        [
            lambda: plain.draw(codes, 1000, 0),
            lambda: wide.draw(codes, 1000, 0),
            lambda: [wide.learn(record) for record in records],
        ]
    )
    print(
        f"\n{name}: 1000 draws {1e3 * one:.2f} ms, on the soft graph {1e3 * other:.2f} ms; "
        f"one record there {1e6 * learned / len(records):.0f} µs"
    )
    benchmark.pedantic(lambda: wide.draw(codes, 1000, 0), rounds=3)


@pytest.mark.parametrize("name", ["task2", "task3", "asia", "alarm"])
def test_a_record_that_is_kept_as_evidence(benchmark, name):
    problem = load_problem(name)
    belief, records = Belief(problem, evidence=True), records_of(problem)
    belief.evidence()

    def learn() -> None:
        for record in records:
            belief.learn(record)
        belief.monitor.catch_up()

    (learned,) = best_times([learn])
    print(
        f"\n{name}: {len(belief.evidence().edges)} alternatives, one record "
        f"{1e6 * learned / len(records):.0f} µs"
    )
    benchmark.pedantic(lambda: belief.learn(records[0]), rounds=3)
