"""Expected regret has the mean of the regret with less noise.

Tolerances of 4.5 standard errors are exceeded with probability 7e-6; the seeds are fixed.
"""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from support.errors import raises_code
from support.parametrize import one_in

from dowise import Belief, CausalGraph, Environment, Problem, make_policy, simulate
from dowise._core.rng import stream
from dowise.cli.main import main
from dowise.environments import WorldOptions, resolve_worlds
from dowise.problem import Intervention
from dowise.simulation import On, Result
from dowise.simulation import expected_regret as module
from dowise.simulation.expected_regret import DRAWS
from dowise.simulation.trial import Purpose, make_world, run_trial

DOUBTFUL = Problem("Z -> X -> Y; Z ?-> Y; W ?-> X", "Y", context="Z", name="doubtful")
THREE_VALUES = Problem(
    "Z -> X -> Y; Z -> Y",
    "Y",
    non_manipulable="Z",
    minimise=True,
    name="three values",
    reward_values={"low": 2, "fair": 5, "high": 3},
)
SMALL_PRIOR = Problem("C -> X -> Y; C -> Y", "Y", context="C", prior=0.2, name="small prior")
HIDDEN = Problem("X -> Y; X <-> Y", "Y", name="hidden")
QUICK = {"horizon": 30, "trials": 23, "seed": 3, "expected": True}


def expected_regrets_by_labels(problem, world, arms, seed, trial, observational):
    """Slow twin: a belief learns all records by their labels and draws rewards in each round."""
    belief = Belief(problem)
    records = stream(seed, trial, Purpose.RECORDS)
    for _ in range(observational):
        belief.update("do()", world.play("do()", world.draw_context(records), records))
    contexts, outcomes = (stream(seed, trial, x) for x in (Purpose.CONTEXTS, Purpose.OUTCOMES))
    draws = stream(seed, trial, Purpose.EXPECTED)
    gaps = []
    for arm in arms.tolist():
        context = world.draw_context(contexts)
        rewards = belief.draw_rewards(context, DRAWS, draws).astype(np.float64)
        best = rewards.min(axis=0) if problem.minimise else rewards.max(axis=0)
        gaps.append(abs(best - rewards[arm]).mean())
        played = problem.arms[arm]
        belief.update(played, world.play(played, context, outcomes))
    return np.array(gaps)


@pytest.mark.parametrize("observational", [0, 5])
@pytest.mark.parametrize("policy", ["ts", "ucb", "kl-ucb"])
@pytest.mark.parametrize(
    ("source", "is_settled", "is_small"),
    [
        ("task2", True, False),
        ("chordal-10-0.1", True, False),
        (THREE_VALUES, True, False),
        (SMALL_PRIOR, True, True),
        pytest.param(DOUBTFUL, False, False, marks=pytest.mark.slow),
    ],
)
def test_expected_regret_equals_its_slow_twin(source, is_settled, is_small, policy, observational):
    worlds = resolve_worlds(source, WorldOptions(edges="prior"))
    world = make_world(worlds, 3, 1)
    posterior = Belief(world.problem).posterior
    assert posterior.is_settled == is_settled
    assert posterior.may_be_small == is_small
    trial = run_trial(world, lambda p: make_policy(policy, p), 40, 3, 1, observational, True)
    twin = expected_regrets_by_labels(world.problem, world, trial.arms, 3, 1, observational)
    np.testing.assert_allclose(trial.expected, twin, atol=2e-6)
    assert twin.max() > 0.01
    without = run_trial(world, lambda p: make_policy(policy, p), 40, 3, 1, observational)
    np.testing.assert_array_equal(without.arms, trial.arms)
    assert without.expected is None


@pytest.mark.parametrize(
    ("source", "policies", "options"),
    one_in(
        4,
        [
            ("task1", ("ts", "ucb"), {}),
            (THREE_VALUES, ("ts", "ucb"), {"observational": 10}),
            (DOUBTFUL, ("ts", "random"), {"edges": "prior"}),
            (SMALL_PRIOR, ("random",), {}),
        ],
    ),
    ids=["task1", "three values", "doubtful edges", "small prior"],
)
def test_has_the_mean_of_the_regret_and_a_smaller_deviation(source, policies, options):
    result = simulate([("it", source)], policies, 50, 400, every=50, expected=True, **options)
    regret, expected = result.final(), result.final("expected")
    for policy in policies:
        difference = expected[policy] - regret[policy]
        assert abs(difference.mean()) < 4.5 * difference.std() / 20
        assert expected[policy].std() < 0.85 * regret[policy].std()


@pytest.mark.parametrize("problem", one_in(3, ["task1", "task3", "healthcare"]))
def test_variance_of_the_draws_is_small(problem, monkeypatch):
    """Against 512 draws, 32 draws add less than a hundredth of the variance over worlds."""
    few = simulate([problem], ["ts"], 300, 40, every=300, expected=True).final("expected")["ts"]
    monkeypatch.setattr(module, "DRAWS", 512)
    many = simulate([problem], ["ts"], 300, 40, every=300, expected=True).final("expected")["ts"]
    assert 0 < (few - many).var() < 0.01 * many.var()


def test_policy_with_a_wrong_graph_is_evaluated_with_the_true_graph():
    truth = Problem("X -> Z -> Y; X -> Y", "Y", arms="all", name="truth")
    drawn = On(Problem("X -> Z -> Y", "Y"), "ts", label="drawn")
    result = simulate([truth], [drawn, "ts"], 200, 200, every=200, expected=True)
    regret, expected = result.final(), result.final("expected")
    for policy in ("drawn", "ts"):
        difference = expected[policy] - regret[policy]
        assert abs(difference.mean()) < 4.5 * difference.std() / np.sqrt(200)
    assert expected["drawn"].mean() > 1.5 * expected["ts"].mean()


def test_bits_do_not_depend_on_the_number_of_workers(tmp_path):
    frame = simulate(["task1", "task2"], ["ts", "ucb"], **QUICK).frame()
    assert frame.columns.tolist()[-1] == "expected"
    result = simulate(["task1", "task2"], ["ts", "ucb"], **QUICK, workers=2, out=tmp_path / "two")
    assert result.frame().equals(frame)
    assert Result.open(tmp_path / "two").frame().equals(frame)
    without = simulate(["task1", "task2"], ["ts", "ucb"], **{**QUICK, "expected": False}).frame()
    assert frame.drop(columns="expected").equals(without)


def test_extended_run_equals_a_new_one(tmp_path):
    whole = simulate(["task1"], ["ts", "ucb"], **QUICK)
    simulate(["task1"], ["ts"], **{**QUICK, "trials": 7, "horizon": 20}, out=tmp_path)
    longer = simulate(["task1"], ["ts", "ucb"], **QUICK, out=tmp_path)
    np.testing.assert_array_equal(longer.final("expected"), whole.final("expected"))
    without = simulate(["task1"], ["ts"], **{**QUICK, "expected": False}, out=tmp_path)
    assert without.measures == ("regret",)


def test_result_has_both_measures():
    result = simulate(["task1"], ["ts", "ucb"], **QUICK)
    assert result.measures == ("regret", "expected")
    curve = result.curves("expected")["task1"][0]
    final = result.final("expected")["ts"]
    assert curve.mean[-1] == pytest.approx(final.mean()) and curve.trials == 23
    axes = result.plot(measure="expected").axes
    assert axes[0].get_ylabel() == "mean cumulative expected regret"
    assert result.plot().axes[0].get_ylabel() == "mean cumulative regret"
    data = result.as_dict()["expected"]
    assert data["final"][0] == {
        "problem": "task1",
        "policy": "ts",
        "expected": pytest.approx(final.mean()),
        "standard_error": pytest.approx(final.std() / np.sqrt(23)),
        "trials": 23,
    }
    (difference,) = data["differences"]
    paired = result.final("expected")["ucb"] - final
    assert (difference["policy"], difference["than"]) == ("ucb", "ts")
    assert difference["mean"] == pytest.approx(paired.mean())
    assert difference["standard_error"] == pytest.approx(paired.std() / np.sqrt(23))
    with raises_code("unknown-value", "'mean'"):
        result.final("mean")


def test_result_without_expected_regret_rejects_the_measure():
    result = simulate(["task1"], ["ts"], 5, 2)
    assert result.measures == ("regret",) and "expected" not in result.as_dict()
    for method in (result.final, result.curves, lambda measure: result.plot(measure=measure)):
        with raises_code("no-results", "expected=True"):
            method("expected")


@pytest.mark.parametrize(
    ("source", "options", "reason"),
    [
        (Environment.from_bif("asia"), {}, "fixed CPTs"),
        (HIDDEN, {}, "hidden causes"),
        (HIDDEN, {"edges": "prior"}, "hidden causes"),
        (Problem("X -> M -> Y", "Y", hidden="M", name="mediator"), {}, "hidden causes"),
        (Problem("X -> Y", "Y", soft=0.1, name="soft"), {"edges": "prior"}, "hidden causes"),
        (DOUBTFUL, {}, "doubtful edges (W -> X, Z -> Y)"),
        ("task1", {"strong": True}, "strong"),
        ("chordal-10-0.1", {"strong": True}, "strong"),
    ],
)
def test_worlds_with_another_prior_are_rejected(source, options, reason, tmp_path):
    with raises_code("no-expected-regret", reason):
        simulate([source], ["random"], 5, 2, expected=True, **options, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_command_shows_both_measures():
    command = ["simulate", "task1", "--policies", "ts,ucb", "--horizon", "20", "--trials", "12"]
    command += ["--workers", "1"]
    output = CliRunner().invoke(main, [*command, "--expected"]).output
    assert "final regret" in output and "expected regret" in output
    header = next(line for line in output.splitlines() if "mean" in line)
    assert header.count("95 % interval") == 2 and "expected" in header
    data = json.loads(CliRunner().invoke(main, [*command, "--expected", "--json"]).stdout)
    assert [row["policy"] for row in data["expected"]["final"]] == ["ts", "ucb"]
    assert "expected" not in CliRunner().invoke(main, command).output


def test_observational_records_are_learned_even_if_do_nothing_is_not_an_arm():
    problem = make_world("task2", 0, 0).problem
    assert Intervention() not in problem.arms
    cold, warm = (
        simulate(["task2"], ["ucb"], 20, 60, expected=True, observational=n) for n in (0, 50)
    )
    np.testing.assert_array_equal(cold.final(), warm.final())  # ucb can't learn from them
    assert not np.allclose(cold.final("expected"), warm.final("expected"))


@pytest.mark.slow
def test_certain_edge_with_a_prior_is_not_doubtful():
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", edge_prior={"X -> Y": 1.0}, name="sure")
    assert simulate([problem], ["ts"], 5, 2, expected=True).measures[1] == "expected"
