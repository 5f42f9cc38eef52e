"""Rates of false and of true alarms; evidence/monitor.py has the long versions of these tests."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from dowise import Belief, Problem, load_problem, make_environment, make_policy

SCRIPT = Path(__file__).parents[2] / "evidence" / "monitor.py"
script = SimpleNamespace(**runpy.run_path(str(SCRIPT), run_name="monitor"))
TASK2 = load_problem("task2")
TRUE = Problem(TASK2.graph.with_edges("X1 -> Y"), "Y", "C", "Z", arms="all")


def count_false_alarms(name, concentration, worlds, rounds=400):
    """Return the number of worlds on the graph with an alarm, mixed and strict."""
    problem, alarms = script.RIGHT[name], np.zeros(2, dtype=int)
    for trial in range(worlds):
        rng = np.random.default_rng([11, trial])
        cpts = script.drawn_cpts(problem, concentration, rng)
        belief = Belief(problem, evidence=True)
        belief.monitor.learn_many(script.random_play(problem, cpts, rounds, rng))
        alarms += [belief.evidence(strict=strict).since is not None for strict in (False, True)]
    return alarms


@pytest.mark.slow
@pytest.mark.parametrize("name", ["task 2", "sixteen rows", "three values", "hidden cause"])
@pytest.mark.parametrize("concentration", [np.inf, 1.0])
def test_false_alarms_are_rare(name, concentration):
    """Of 200 worlds, more than 21 have an alarm once in 2000 runs at a rate of .05, and at most 21
    four times in 100 at a rate of .15."""
    limit = int(binom.ppf(0.9995, 200, 0.05))
    assert limit == 21
    assert (count_false_alarms(name, concentration, 200) <= limit).all()


@pytest.mark.slow
def test_plain_bayes_factors_would_raise_too_many_false_alarms():
    """At a rate of .05 there are more than 9 of 40 once in 48,000 runs."""
    problem, alarms = script.RIGHT["three values"], 0
    for trial in range(40):
        rng = np.random.default_rng([12, trial])
        cpts = script.drawn_cpts(problem, np.inf, rng)
        since = script.watch(script.random_play(problem, cpts, 400, rng))
        alarms += since["Dirichlet(1)"] is not None
        assert since["strict"] is None
    assert alarms > 9


@pytest.mark.slow
def test_a_missing_arrow_raises_an_alarm_in_most_worlds_under_ts():
    """At a rate of 6/7 (evidence/results/monitor.md) fewer than 12 of 20 come once in 750 runs."""
    alarms = []
    for trial in range(20):
        world, belief = make_environment(TRUE, trial), Belief(TASK2, evidence=True)
        policy = make_policy("ts", TASK2, belief=belief)
        script.play(policy, world, 600, np.random.default_rng(trial))
        evidence = belief.evidence()
        alarms += [evidence] * (evidence.since is not None)
    assert len(alarms) >= 12
    named = sum(bool({"X1 -> Y", "X1 <-> Y"} & {*evidence.alarms}) for evidence in alarms)
    assert named >= len(alarms) - 1
    assert all({"X1 -> Y", "X1 <-> Y"} <= {*evidence.suspected} for evidence in alarms[:5])


def test_a_strong_missing_arrow_raises_an_alarm():
    rng, belief = np.random.default_rng(0), Belief(TASK2, evidence=True)
    policy = make_policy("ts", TASK2, belief=belief)
    for _ in range(150):
        values = {name: int(rng.integers(2)) for name in ("C", "Z", "X1", "X2")}
        arm = policy.decide({"C": values["C"]}, rng).arm
        values |= {name: int(value) for name, value in arm.items()}
        policy.observe(arm, {**values, "Y": int(rng.random() < 0.1 + 0.8 * values["X1"])})
    assert belief.evidence().alarms[0] in ("X1 -> Y", "X1 <-> Y")
    assert policy.belief is belief and belief.evidence().records == 150
