"""Charts: their numbers, and that they are drawn."""

import numpy as np
import pytest
from support.errors import raises_code
from support.parametrize import one_in
from support.played_experiments import coin_experiment, create_experiment, played_experiment
from support.rehearsals import BY_HAND, IN_MONEY, ONE_WORLD

from dowise.experiment.plots import (
    MAX_ARMS,
    draw_rehearsal,
    draw_status,
    explanation_chart,
    rehearsal_panels,
    rehearsal_title,
    status_chart,
)
from dowise.graph import CausalGraph
from dowise.problem import Problem


def chart_of(experiment, context=None, **more):
    status = experiment.status(context, evidence=False)
    history = experiment.history(context, 6)
    return status, status_chart(status, history, experiment.records(), **more)


# -- an experiment --------------------------------------------------------------------------------


def test_numbers_are_those_of_the_status():
    status, chart = chart_of(played_experiment("task2", 30), tolerance=0.01)
    assert chart.title == "ward: 30 outcomes, 0 pending" and chart.tolerance == 0.01
    for panel, arms in zip(chart.contexts, status.contexts, strict=True):
        intervals = panel.intervals
        assert intervals.title == f"C={arms.context['C']}" and intervals.left_out == 0
        assert intervals.arms == tuple(map(str, arms.arms)) and intervals.marked == arms.leader
        for name in ("mean", "low", "high", "best"):
            assert getattr(intervals, name).tolist() == getattr(arms, name).tolist()
        assert panel.best_of_others is None and panel.best.sum(axis=1) == pytest.approx(1)


def test_regrets_are_those_of_the_played_arms_in_their_contexts():
    experiment = played_experiment("task2", 12)
    experiment.ask({"C": 1})
    experiment.ask({"C": 0})
    experiment.withdraw(14, reason="left")
    experiment.erase(3, reason="asked for")
    other = next(a for a in experiment.problem.arms if a != experiment.records()[12].arm)
    experiment.tell(13, {"Y": 1}, played=other)
    status, chart = chart_of(experiment)
    by_context = {arms.context["C"]: arms for arms in status.contexts}
    expected = {
        case.id: by_context[case.context["C"]].regret[status.problem.arm_index(case.arm)]
        for case in experiment.records()
        if case.id not in (3, 14)
    }
    assert dict(zip(chart.decisions.tolist(), chart.regret, strict=True)) == expected
    _, chart = chart_of(experiment, {"C": 1})
    assert chart.decisions.tolist() == [
        case.id for case in experiment.records() if case.context == {"C": "1"}
    ]


@pytest.mark.slow
def test_of_many_arms_the_most_relevant_are_drawn(tmp_path):
    experiment = create_experiment(
        Problem(CausalGraph.parse("; ".join(f"X{i} -> Y" for i in range(4))), "Y")  # 16 arms
    )
    for _ in range(20):
        decision = experiment.ask(allowed=["do(X0=1, X1=1, X2=1, X3=1)"])
        experiment.tell(decision.id, {"Y": 1})
    status, chart = chart_of(experiment)
    (panel,), history = chart.contexts, experiment.history(points=6)
    intervals = panel.intervals
    assert len(intervals.arms) == MAX_ARMS and intervals.left_out == 4
    assert (np.diff(intervals.indices) > 0).all()
    assert intervals.arms[intervals.marked] == "do(X0=1, X1=1, X2=1, X3=1)"
    assert panel.best.sum(axis=1) + panel.best_of_others == pytest.approx(1)
    largest = np.maximum(history.best[:, 0].max(axis=0), status.contexts[0].best)
    left_out = np.setdiff1d(np.arange(16), intervals.indices)
    assert largest[left_out].max() <= largest[intervals.indices].min()
    draw_status(chart, tmp_path / "many.png")
    assert (tmp_path / "many.png").read_bytes().startswith(b"\x89PNG")


THREE = Problem(CausalGraph.parse("X -> Y"), "Y", domains={"X": ["a", "b", "c"]}, minimise=True)


@pytest.mark.parametrize(
    ("outcomes", "marked", "label"),
    [
        ({}, None, "nothing tells the arms apart"),
        ({"a": [1]}, None, "2 arms tie for the best"),
        ({"a": [0]}, 0, "▸ looks best"),
    ],
)
def test_leader_is_marked_unless_arms_tie(tmp_path, outcomes, marked, label):
    _, chart = chart_of(coin_experiment(outcomes, problem=THREE))
    (panel,) = chart.contexts
    assert panel.intervals.marked == marked
    assert panel.intervals.axis_label == f"{label}; mean Y, smaller is better"
    assert chart.title == f"ward: {len(outcomes)} outcome{'s'[len(outcomes) :]}, 0 pending"
    draw_status(chart, tmp_path / "tie.svg")
    assert (">▸ do(X=a)</text>" in (tmp_path / "tie.svg").read_text()) == (marked == 0)


def test_most_frequent_contexts_are_drawn():
    names = ("C1", "C2", "C3")
    problem = Problem(CausalGraph.parse("C1 -> Y; C2 -> Y; C3 -> Y; X -> Y"), "Y", context=names)
    experiment = create_experiment(problem)
    experiment.ask(dict.fromkeys(names, "1"))
    _, chart = chart_of(experiment)
    assert [panel.intervals.title for panel in chart.contexts] == ["C1=1, C2=1, C3=1"]
    for number in range(6):
        experiment.ask({"C1": number % 2, "C2": number // 2 % 2, "C3": number // 4})
    _, chart = chart_of(experiment)
    assert len(chart.contexts) == 4 and chart.title.endswith("; the most frequent contexts")


def test_long_titles_and_names_stay_in_their_panels(tmp_path, monkeypatch):
    context = "Mean_arterial_blood_pressure_before", "Respiratory_support_on_admission", "Ward"
    treatment = "Continuous_positive_airway_pressure_target"
    graph = CausalGraph([(name, "Y") for name in (*context, treatment)])
    domains = {"Ward": ["surgery and after", "all others"], treatment: ["as before", "raised"]}
    experiment = create_experiment(Problem(graph, "Y", context=context, domains=domains))
    experiment.ask({context[0]: 0, context[1]: 1, "Ward": "surgery and after"})
    figures = []
    monkeypatch.setattr(
        "dowise.experiment.plots.save_figure", lambda figure, _path: figures.append(figure)
    )
    experiment.figure(tmp_path / "ward.png")
    (figure,) = figures
    figure.canvas.draw()
    left, right, *_ = figure.axes
    title = left.get_title(loc="left")
    assert title.replace("\n", "").replace(" ", "") == (
        "Mean_arterial_blood_pressure_before=0,Respiratory_support_on_admission=1,"
        "Ward=surgeryandafter"
    )
    assert left._left_title.get_window_extent().x1 < right._left_title.get_window_extent().x0
    names = [label.get_text() for label in left.get_yticklabels()]
    assert names[0] == "1  do(Continuous_positive_airway_\npressure_target=as before)"


@pytest.mark.parametrize("ending", one_in(3, ["svg", "png", "pdf"]))
def test_experiment_is_drawn(tmp_path, ending):
    path = tmp_path / f"ward.{ending}"
    played_experiment("task2", 3).figure(path, tolerance=0.1)
    assert path.stat().st_size > 5000


def test_new_experiment_has_a_chart(tmp_path):
    experiment = create_experiment("task1")
    _, chart = chart_of(experiment)
    assert len(chart.decisions) == 0
    experiment.figure(tmp_path / "empty.svg")
    assert "do(X=1)" in (tmp_path / "empty.svg").read_text()


def test_invalid_paths_are_refused(tmp_path):
    experiment = create_experiment()
    with raises_code("unsupported-format"):
        experiment.figure(tmp_path / "ward.bmp")
    with raises_code("unwritable-file"):
        experiment.figure(tmp_path / "nowhere" / "ward.png")


def test_status_and_history_of_different_experiments_are_refused():
    one, other = create_experiment("task2"), create_experiment("task1")
    with raises_code("wrong-problem"):
        status_chart(other.status(), one.history(points=2), ())


# -- an explanation -------------------------------------------------------------------------------


def test_explanation_has_the_intervals_of_its_time(tmp_path):
    explanation = played_experiment("task2", 8).explain(4)
    chart = explanation_chart(explanation)
    assert chart.title == f"decision 4, C={explanation.decision.context['C']}"
    assert chart.axis_label == "▸ chosen; mean Y"
    assert chart.arms[chart.marked] == str(explanation.decision.arm) and chart.left_out == 0
    assert chart.mean.tolist() == explanation.then.mean.tolist()
    explanation.figure(tmp_path / "then.svg")
    assert "chosen; mean Y, with its" in (tmp_path / "then.svg").read_text()
    with raises_code("unsupported-format"):
        explanation.figure(tmp_path / "then.gif")


def test_arms_that_were_never_tried_are_hollow(tmp_path):
    experiment = coin_experiment({"1": [1, 0, 1]})
    _, chart = chart_of(experiment)
    assert chart.contexts[0].intervals.is_assumption.tolist() == [True, False]
    draw_status(chart, tmp_path / "status.svg")
    assert (tmp_path / "status.svg").read_text().count("assumption only") == 1
    _, chart = chart_of(coin_experiment({"0": [1], "1": [1, 0, 1]}))
    draw_status(chart, tmp_path / "status.svg")
    assert "assumption only" not in (tmp_path / "status.svg").read_text()


# -- a rehearsal ----------------------------------------------------------------------------------


def test_rehearsal_panels_have_the_numbers_of_the_looks():
    regret, stopping, sure, stopped = rehearsal_panels(BY_HAND)
    assert [curve.label for curve in regret.curves] == ["ids", "at random"]
    assert regret.curves[0].middle.tolist() == [0, 2, 3.5]
    assert regret.curves[0].low.tolist() == [0, 1, 1]
    assert regret.curves[1].middle.tolist() == [0, 4, 8]
    assert stopping.curves[1].middle.tolist() == pytest.approx([0.175, 0.14, 0.0325])
    assert sure.curves[2].middle.tolist() == BY_HAND.is_nearly_best.mean(axis=0).tolist()
    assert stopped.curves[0].middle.tolist() == [0, 0.5, 0.75]
    assert "task1: ids in 4 worlds" in rehearsal_title(BY_HAND)


def test_one_world_has_no_ranges():
    assert rehearsal_title(ONE_WORLD) == "task1: ids in 1 world drawn from the prior"
    panels = rehearsal_panels(ONE_WORLD)
    assert all(curve.low is None for panel in panels for curve in panel.curves)


@pytest.mark.parametrize("ending", one_in(3, ["svg", "png", "pdf"]))
def test_rehearsal_is_drawn_the_same_each_time(tmp_path, ending):
    first, second = tmp_path / f"first.{ending}", tmp_path / f"second.{ending}"
    for path in (first, second):
        draw_rehearsal(BY_HAND, path)
    assert len(first.read_bytes()) > 5000
    if ending != "svg":  # which has random names inside
        assert first.read_bytes() == second.read_bytes()


def test_rehearsal_chart_writes_numbers_out(tmp_path):
    draw_rehearsal(IN_MONEY, tmp_path / "money.svg")
    drawn = (tmp_path / "money.svg").read_text()
    assert ">14,000</text>" in drawn and ">tolerance 1,250.5</text>" in drawn
    assert "… within 1,250.5" in drawn
