"""Data of the page What we know: the table of arms, axes and charts."""

import numpy as np
import pytest
from support.experiments import new_experiment

from dowise import CausalGraph, Problem
from dowise_web.pages.results import arm_table, axis_for, history_charts, unit


def play_27_arms(minimise=False):
    """An experiment with 27 arms, of which one has been played."""
    graph = CausalGraph.parse("A -> Y; B -> Y; C -> Y")
    domains = dict.fromkeys("ABC", ("0", "1", "2"))
    experiment = new_experiment(Problem(graph, "Y", domains=domains, minimise=minimise), "ts")
    for reward in (1, 1, 1, 0):
        decision = experiment.ask(allowed=["do(A=1, B=1, C=1)"])
        experiment.tell(decision.id, {"Y": reward})
    return experiment


@pytest.mark.parametrize("minimise", [False, True])
def test_the_best_arms_are_listed_first(minimise):
    status = play_27_arms(minimise).status(evidence=False)
    (context,) = status.contexts
    table = arm_table(status, context)
    assert len(table.rows) == 12 and table.left_out == len(context.arms) - 12
    means = [row.mean for row in table.rows]
    assert means == sorted(means, reverse=not minimise)
    complete = arm_table(status, context, shows_all=True)
    assert len(complete.rows) == len(context.arms) and complete.left_out == 0
    if not minimise:
        assert table.rows[0].arm == "do(A=1, B=1, C=1)" and table.rows[0].plays == 4
        assert [row.is_leader for row in table.rows] == [True] + [False] * 11
    else:  # all others tie
        assert (
            table.leaders == len(context.arms) - 1 and complete.rows[-1].arm == "do(A=1, B=1, C=1)"
        )


def test_marks_stay_within_the_axis():
    status = play_27_arms().status(evidence=False)
    table = arm_table(status, status.contexts[0])
    for row in table.rows:
        positions = [float(table.axis.at(x).rstrip("%")) for x in (row.low, row.mean, row.high)]
        assert 0 < positions[0] <= positions[1] <= positions[2] < 100


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3.2, 17), (1e-7, 3e-7), (2e6, 9e6), (5, 5)])
def test_ticks_are_few_and_on_the_axis(low, high):
    axis = axis_for(low, high)
    assert 1 <= len(axis.ticks) <= 7
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in axis.ticks)
    assert all(0 < float(position.rstrip("%")) < 100 for position, _ in axis.labels)


def test_units_name_the_reward():
    graph = CausalGraph.parse("X -> Y")
    assert unit(Problem(graph, "Y")) == "mean Y"
    costly = Problem(graph, "Y", costs={"X": 0.1}, minimise=True)
    assert unit(costly) == "mean Y, net of cost, lower is better"


def test_lines_have_one_point_per_number_of_outcomes():
    experiment = play_27_arms()
    past, context = experiment.history(), experiment.status(evidence=False).contexts[0]
    chances, means, cost = history_charts(experiment.problem, past, context.leader)
    assert chances.x == [0, 1, 2, 3, 4] == means.x == cost.x
    assert (
        chances.series[0]["name"] == str(context.arms[context.leader])
        and chances.series[0]["leads"]
    )
    assert chances.series[-1]["name"] == "all others" and len(chances.series) == 7
    assert np.sum([line["values"] for line in chances.series], axis=0) == pytest.approx(1)
    assert means.series[0]["values"][-1] == pytest.approx(context.mean[context.leader])
    assert cost.series[0]["values"][-1] == pytest.approx(past.stopping[-1, 0])
    assert len(chances.rows()) == 5 and chances.rows()[-1][0] == "4"
    data = chances.as_dict()
    assert data["range"] == [0, 1] and isinstance(data["series"][0]["values"], list)
