"""Arms on one axis, and their past as lines: the numbers before they are drawn."""

import numpy as np
import pytest
from support.experiments import new

from dowise import CausalGraph, Problem
from dowise_web.pages.results import arm_table, axis_for, history_charts, unit


def many(minimise=False):
    """An experiment with 27 arms, of which one has been played."""
    graph = CausalGraph.parse("A -> Y; B -> Y; C -> Y")
    domains = dict.fromkeys("ABC", ("0", "1", "2"))
    experiment = new(Problem(graph, "Y", domains=domains, minimise=minimise), "ts")
    for reward in (1, 1, 1, 0):
        asked = experiment.ask(allowed=["do(A=1, B=1, C=1)"])
        experiment.tell(asked.id, {"Y": reward})
    return experiment


@pytest.mark.parametrize("minimise", [False, True])
def test_the_best_arms_are_listed_first(minimise):
    status = many(minimise).status(evidence=False)
    (one,) = status.contexts
    found = arm_table(status, one)
    assert len(found.rows) == 12 and found.left_out == len(one.arms) - 12
    means = [row.mean for row in found.rows]
    assert means == sorted(means, reverse=not minimise)
    whole = arm_table(status, one, shows_all=True)
    assert len(whole.rows) == len(one.arms) and whole.left_out == 0
    if not minimise:
        assert found.rows[0].arm == "do(A=1, B=1, C=1)" and found.rows[0].plays == 4
        assert [row.is_leader for row in found.rows] == [True] + [False] * 11
    else:  # all others tie
        assert found.leaders == len(one.arms) - 1 and whole.rows[-1].arm == "do(A=1, B=1, C=1)"


def test_marks_stay_within_the_axis():
    status = many().status(evidence=False)
    found = arm_table(status, status.contexts[0])
    for row in found.rows:
        places = [float(found.axis.at(x).rstrip("%")) for x in (row.low, row.mean, row.high)]
        assert 0 < places[0] <= places[1] <= places[2] < 100


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3.2, 17), (1e-7, 3e-7), (2e6, 9e6), (5, 5)])
def test_ticks_are_few_and_on_the_axis(low, high):
    axis = axis_for(low, high)
    assert 1 <= len(axis.ticks) <= 7
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in axis.ticks)
    assert all(0 < float(place.rstrip("%")) < 100 for place, _ in axis.labels)


def test_units_name_the_reward():
    graph = CausalGraph.parse("X -> Y")
    assert unit(Problem(graph, "Y")) == "mean Y"
    dear = Problem(graph, "Y", costs={"X": 0.1}, minimise=True)
    assert unit(dear) == "mean Y, net of cost, lower is better"


def test_lines_have_one_point_per_number_of_outcomes():
    experiment = many()
    past, one = experiment.history(), experiment.status(evidence=False).contexts[0]
    chances, means, cost = history_charts(experiment.problem, past, one.leader)
    assert chances.x == [0, 1, 2, 3, 4] == means.x == cost.x
    assert chances.series[0]["name"] == str(one.arms[one.leader]) and chances.series[0]["leads"]
    assert chances.series[-1]["name"] == "all others" and len(chances.series) == 7
    assert np.sum([line["values"] for line in chances.series], axis=0) == pytest.approx(1)
    assert means.series[0]["values"][-1] == pytest.approx(one.mean[one.leader])
    assert cost.series[0]["values"][-1] == pytest.approx(past.stopping[-1, 0])
    assert len(chances.rows()) == 5 and chances.rows()[-1][0] == "4"
    page = chances.as_dict()
    assert page["range"] == [0, 1] and isinstance(page["series"][0]["values"], list)
