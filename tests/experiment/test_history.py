"""How sure an experiment was along its journal."""

import pytest
from support.played_experiments import COIN, coin_experiment, create_experiment, played_experiment

from dowise.errors import DowiseError
from dowise.experiment.history import POINTS
from dowise.graph import CausalGraph
from dowise.problem import Problem


def test_it_goes_from_the_prior_to_today():
    experiment = coin_experiment({"0": [0] * 12, "1": [1] * 12})
    found, status = experiment.history(), experiment.status()
    assert found.events[0] == 1 and found.events[-1] == experiment.head.number
    assert found.outcomes[0] == 0 and found.outcomes[-1] == 24
    assert (found.outcomes[1:] >= found.outcomes[:-1]).all() and len(found.events) <= POINTS
    assert found.best.shape == (len(found.events), 1, 2)
    assert found.best.sum(axis=2) == pytest.approx(1)
    assert found.best[0, 0] == pytest.approx([0.5, 0.5], abs=0.05)  # two even coins, 2000 draws
    # E[max] of two uniforms is 2/3, the mean of the leader 1/2.
    assert found.stopping[0, 0] == pytest.approx(1 / 6, abs=0.03)
    assert found.best[-1, 0] == pytest.approx(status.contexts[0].best, abs=0.02)
    assert found.mean[0, 0] == pytest.approx([0.5, 0.5])
    assert found.mean[-1, 0] == pytest.approx(status.contexts[0].mean)
    assert found.expected_regret_of_stopping[-1] == pytest.approx(status.stopping, abs=0.005)


def test_it_is_read_by_what_was_told_by_then():
    experiment = create_experiment()
    for _ in range(30):
        decision = experiment.ask(allowed=["do(X=1)"])
        experiment.tell(decision.id, {"Y": 0})
    wrong = experiment.head.number
    for number in range(1, 31):
        experiment.amend(number, {"Y": 1}, reason="the scale was turned")
    found = experiment.history(points=200)
    before = found.best[found.events == wrong][0, 0]
    assert before[0] > 0.9 and found.best[-1, 0, 1] > 0.9


def test_contexts_are_weighted_as_they_came():
    experiment = create_experiment("task2")
    for context in (0, 1, 1, 1):
        experiment.ask({"C": context})
    found = experiment.history(points=5)
    assert found.contexts == ({"C": "0"}, {"C": "1"}) and found.weights.tolist() == [0.25, 0.75]
    assert found.expected_regret_of_stopping == pytest.approx(
        0.25 * found.stopping[:, 0] + 0.75 * found.stopping[:, 1]
    )
    one = experiment.history({"C": 1}, points=5)
    assert one.contexts == ({"C": "1"},) and one.weights.tolist() == [1]
    assert one.best[:, 0] == pytest.approx(found.best[:, 1], abs=0.1)


def test_imports_withdrawals_and_erasures_are_on_the_way():
    experiment = create_experiment()
    experiment.import_records({"Y": [1] * 50}, "do(X=1)")
    for number in (1, 2, 3):
        experiment.ask(allowed=["do(X=0)"])
        if number > 1:
            experiment.tell(number, {"Y": 0})
    experiment.withdraw(1, reason="left")
    experiment.erase(2, reason="asked for")
    found = experiment.history(points=100)
    assert found.imported.tolist()[:2] == [0, 50] and found.outcomes[-1] == 1
    assert found.best[1, 0, 1] > 0.9


def test_it_is_read_under_todays_problem():
    experiment = played_experiment("task2", 3)
    narrow = Problem(CausalGraph.parse("C -> X2 -> Y; C -> Y"), "Y", context="C")
    experiment.revise(problem=narrow, reason="simpler")
    found = experiment.history(points=4)
    assert found.arms == narrow.arms and found.best.shape[2] == len(narrow.arms)


def test_as_tables():
    found = played_experiment("task2", 2).history(points=3)
    table = found.frame()
    first = ["events", "outcomes", "imported", "C"]
    assert [*table.columns] == [*first, "arm", "best", "mean", "stopping"]
    assert len(table) == 3 * 2 * 4
    page = found.as_dict()
    assert page["arms"][0] == "do(X1=0)" and page["events"] == [1, 3, 5]


def test_too_few_points_are_refused():
    with pytest.raises(DowiseError, match="points"):
        create_experiment(COIN).history(points=1)
