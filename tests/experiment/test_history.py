"""History of an experiment along its journal."""

import pytest
from support.errors import raises_code
from support.played_experiments import coin_experiment, create_experiment, played_experiment

from dowise.experiment.history import POINTS
from dowise.graph import CausalGraph
from dowise.problem import Problem


def test_history_goes_from_the_prior_to_today():
    experiment = coin_experiment({"0": [0] * 12, "1": [1] * 12})
    history, status = experiment.history(), experiment.status()
    (arms,) = status.contexts
    assert history.events[0] == 1 and history.events[-1] == experiment.head.number
    assert history.outcomes[0] == 0 and history.outcomes[-1] == 24
    assert (history.outcomes[1:] >= history.outcomes[:-1]).all()
    assert len(history.events) <= POINTS
    assert history.best.shape == (len(history.events), 1, 2)
    assert history.best.sum(axis=2) == pytest.approx(1)
    assert history.best[0, 0] == pytest.approx([0.5, 0.5], abs=0.05)  # two even coins, 2000 draws
    # E[max] of two uniforms is 2/3, the mean of the leader 1/2.
    assert history.stopping[0, 0] == pytest.approx(1 / 6, abs=0.03)
    assert history.best[-1, 0] == pytest.approx(arms.best, abs=0.02)
    assert history.mean[0, 0] == pytest.approx([0.5, 0.5])
    assert history.mean[-1, 0] == pytest.approx(arms.mean)
    assert history.expected_regret_of_stopping[-1] == pytest.approx(status.stopping, abs=0.005)


def test_points_show_the_values_of_their_time():
    experiment = create_experiment()
    for _ in range(30):
        decision = experiment.ask(allowed=["do(X=1)"])
        experiment.tell(decision.id, {"Y": 0})
    before_amendments = experiment.head.number
    for number in range(1, 31):
        experiment.amend(number, {"Y": 1}, reason="the scale was turned")
    history = experiment.history(points=200)
    assert history.best[history.events == before_amendments][0, 0, 0] > 0.9
    assert history.best[-1, 0, 1] > 0.9


def test_contexts_are_weighted_by_their_decisions():
    experiment = create_experiment("task2")
    for context in (0, 1, 1, 1):
        experiment.ask({"C": context})
    history = experiment.history(points=5)
    assert history.contexts == ({"C": "0"}, {"C": "1"})
    assert history.weights.tolist() == [0.25, 0.75]
    assert history.expected_regret_of_stopping == pytest.approx(
        0.25 * history.stopping[:, 0] + 0.75 * history.stopping[:, 1]
    )
    in_context = experiment.history({"C": 1}, points=5)
    assert in_context.contexts == ({"C": "1"},) and in_context.weights.tolist() == [1]
    assert in_context.best[:, 0] == pytest.approx(history.best[:, 1], abs=0.1)


def test_history_counts_imports_but_no_erased_decision():
    experiment = create_experiment()
    experiment.import_records({"Y": [1] * 50}, "do(X=1)")
    for number in (1, 2, 3):
        experiment.ask(allowed=["do(X=0)"])
        if number > 1:
            experiment.tell(number, {"Y": 0})
    experiment.withdraw(1, reason="left")
    experiment.erase(2, reason="asked for")
    history = experiment.history(points=100)
    assert history.imported.tolist()[:2] == [0, 50] and history.outcomes[-1] == 1
    assert history.best[1, 0, 1] > 0.9


def test_history_is_under_todays_problem():
    experiment = played_experiment("task2", 3)
    narrow = Problem(CausalGraph.parse("C -> X2 -> Y; C -> Y"), "Y", context="C")
    experiment.revise(problem=narrow, reason="simpler")
    history = experiment.history(points=4)
    assert history.arms == narrow.arms and history.best.shape[2] == len(narrow.arms)


def test_table_and_json_have_all_points():
    history = played_experiment("task2", 2).history(points=3)
    table = history.frame()
    first = ["events", "outcomes", "imported", "C"]
    assert [*table.columns] == [*first, "arm", "best", "mean", "stopping"]
    assert len(table) == 3 * 2 * 4
    data = history.as_dict()
    assert data["arms"][0] == "do(X1=0)" and data["events"] == [1, 3, 5]


def test_too_few_points_are_refused():
    with raises_code("invalid-number", "points"):
        create_experiment().history(points=1)
