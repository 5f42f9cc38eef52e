"""Live experiments, evaluations and commands with costs of arms."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from support.payoff_problems import THREE, costly_problem, costs_of_arms
from support.played_experiments import COIN, coin_experiment

from dowise import Problem
from dowise.cli.main import main
from dowise.experiment import Experiment
from dowise.experiment.evaluation import Decide, Learn, LoggedDecision, evaluate
from dowise.experiment.plots import explanation_chart


@pytest.mark.parametrize("minimise", [False, True])
def test_evaluations_subtract_known_costs(minimise):
    """Costs are known, so intervals are as wide as without costs."""
    worth, chances = {"0": 10.0, "1": 30.0}, np.array([0.75, 0.25])
    evaluations = []
    for costs in (None, {"do(X=1)": 4}):
        problem = Problem(
            COIN.graph, "Y", arms=COIN.arms, reward_values=worth, costs=costs, minimise=minimise
        )
        steps = []
        for i in range(1, 41):
            record = problem.record(f"do(X={i % 2})", {"Y": int(i % 3 == 0)}, i)
            row = LoggedDecision(i, {}, chances, np.array([True, True]), record)
            steps += [Decide(row), Learn(row.record)]
        evaluations.append(evaluate(problem, steps, "do(X=1)"))
    free, costly = evaluations
    sign = 1 if minimise else -1
    for name, cost in (("dr", 4), ("ips", 4), ("logged", 1), ("difference", 3)):
        gross, net = getattr(free, name), getattr(costly, name)
        assert net.value == pytest.approx(gross.value + sign * cost)
        np.testing.assert_allclose(net.interval, np.array(gross.interval) + sign * cost)
        np.testing.assert_allclose(net.normal, np.array(gross.normal) + sign * cost)
    assert costly.self_normalised == pytest.approx(free.self_normalised + sign * 4)
    assert costly.earned == pytest.approx(free.earned + sign * 2)  # half were do(X=1)
    assert "net of cost" in str(costly) and "net of" not in str(free)


def test_experiments_keep_costs_and_show_net_means(tmp_path):
    costs = {"X": 0.1, "do(X=1)": 0.4}
    problem = Problem(COIN.graph, "Y", costs=costs)
    store = f"sqlite:///{tmp_path}/ward.db"
    experiment = Experiment.create(store, "ward", problem, policy="ts", seed=1)
    for reward in (1, 0, 1, 1):
        decision = experiment.ask(allowed=["do(X=1)"])
        experiment.tell(decision.id, {"Y": reward})
    reopened = Experiment.open(store)
    assert reopened.problem == problem and dict(reopened.problem.costs) == costs
    for status in (experiment.status(), reopened.status()):
        table = {row["arm"]: row for row in status.rows()}
        assert table["do(X=1)"]["mean"] == pytest.approx(4 / 6 - 0.4)
        assert table["do(X=0)"]["mean"] == pytest.approx(1 / 2 - 0.1)
        assert table["do(X=1)"]["low"] < 4 / 6 - 0.4 < table["do(X=1)"]["high"] < 0.6
        assert "(net of cost)" in str(status)
    explanation = reopened.explain(1)
    assert explanation.rows()[2]["mean"] == pytest.approx(0.5 - 0.4)
    assert explanation_chart(explanation).axis_label == "▸ chosen; mean Y, net of cost"
    reopened.export(tmp_path / "ward.csv")  # exports have gross outcomes
    rows = [line.split(",")[-1] for line in (tmp_path / "ward.csv").read_text().splitlines()]
    assert rows == ["Y", "1", "0", "1", "1"]
    assert reopened.audit().ok


def test_revised_costs_apply_to_past_outcomes():
    experiment = coin_experiment({"0": [1, 0], "1": [1, 1]}, policy="ids")
    before = experiment.status().contexts[0].mean
    costly = Problem(COIN.graph, "Y", arms=COIN.arms, costs={"do(X=1)": 0.5})
    experiment.revise(problem=costly, reason="the drug has a price now")
    after = experiment.status().contexts[0]
    np.testing.assert_allclose(after.mean, before - [0, 0.5])
    assert str(after.arms[after.leader]) == "do(X=0)" and experiment.audit().ok
    assert experiment.explain(1).rows()[1]["mean"] == 0.5  # as at that time


def test_commands_show_costs(tmp_path):
    problem = costly_problem(THREE)
    path, run = str(tmp_path / "p.toml"), CliRunner().invoke
    problem.save(path)
    output = run(main, ["arms", path]).output
    assert "W 10.25, X 5.125, do(X=1) 20.5" in output
    assert "do(W=0, X=0)" in output and "15.375" in output
    document = json.loads(run(main, ["arms", path, "--json"]).output)
    assert document["costs"] == {"W": 10.25, "X": 5.125, "do(X=1)": 20.5}
    assert document["arm_costs"] == costs_of_arms(problem).tolist()
    assert "cost" not in run(main, ["arms", "task2"]).output
    output = run(main, ["new", str(tmp_path / "ward.db"), path]).output
    assert "W 10.25, X 5.125, do(X=1) 20.5" in output
