"""Pictures of experiments: their numbers, and that they are drawn."""

import numpy as np
import pytest
from support.parametrize import one_in
from support.played_experiments import begun, played, tossed

from dowise.errors import DowiseError
from dowise.experiment.plots import MOST_ARMS, draw, figure_data, intervals_then
from dowise.graph import CausalGraph
from dowise.problem import Problem


def data_of(experiment, context=None, **more):
    status = experiment.status(context, evidence=False)
    return status, figure_data(status, experiment.history(context, 6), experiment.records(), **more)


def test_the_numbers_are_those_of_the_status():
    experiment = played("task2", 30)
    status, data = data_of(experiment, tolerance=0.01)
    assert data.title == "ward: 30 outcomes, 0 pending" and data.tolerance == 0.01
    for panel, one in zip(data.contexts, status.contexts, strict=True):
        intervals = panel.intervals
        assert intervals.title == f"C={one.context['C']}" and intervals.left_out == 0
        assert intervals.arms == tuple(map(str, one.arms)) and intervals.marked == one.leader
        for name in ("mean", "low", "high", "best"):
            assert getattr(intervals, name).tolist() == getattr(one, name).tolist()
        assert panel.others is None and panel.best.sum(axis=1) == pytest.approx(1)


def test_regrets_are_those_of_the_arms_that_were_played_in_their_contexts():
    experiment = played("task2", 12)
    experiment.ask({"C": 1})
    experiment.ask({"C": 0})
    experiment.withdraw(14, reason="left")
    experiment.erase(3, reason="asked for")
    other = next(a for a in experiment.problem.arms if a != experiment.records()[12].arm)
    experiment.tell(13, {"Y": 1}, played=other)
    status, data = data_of(experiment)
    assert data.decisions.tolist() == [n for n in range(1, 14) if n != 3]
    by_context = {one.context["C"]: one for one in status.contexts}
    arms = [*status.problem.arms]
    by_hand = [
        by_context[case.context["C"]].regret[arms.index(case.arm)]
        for case in experiment.records()
        if case.id not in (3, 14)
    ]
    assert data.regret.tolist() == by_hand
    assert data.cumulative_regret[-1] == pytest.approx(sum(by_hand))
    _, one = data_of(experiment, {"C": 1})
    assert [*one.decisions] == [
        case.id for case in experiment.records() if case.context == {"C": "1"}
    ]


@pytest.mark.slow
def test_of_many_arms_those_that_matter_are_drawn(tmp_path):
    graph = CausalGraph.parse("; ".join(f"X{i} -> Y" for i in range(4)))
    experiment = begun(Problem(graph, "Y"))  # 16 arms
    for _ in range(20):
        decision = experiment.ask(allowed=["do(X0=1, X1=1, X2=1, X3=1)"])
        experiment.tell(decision.id, {"Y": 1})
    status, data = data_of(experiment)
    (panel,), past = data.contexts, experiment.history(points=6)
    assert len(panel.intervals.arms) == MOST_ARMS and panel.intervals.left_out == 4
    assert (np.diff(panel.intervals.places) > 0).all()
    assert panel.intervals.arms[panel.intervals.marked] == "do(X0=1, X1=1, X2=1, X3=1)"
    assert panel.best.sum(axis=1) + panel.others == pytest.approx(1)
    ever = np.maximum(past.best[:, 0].max(axis=0), status.contexts[0].best)
    others = np.setdiff1d(np.arange(16), panel.intervals.places)
    assert ever[others].max() <= ever[panel.intervals.places].min()
    draw(data, tmp_path / "many.png")
    assert (tmp_path / "many.png").read_bytes().startswith(b"\x89PNG")


def test_a_unit_that_is_better_small_is_named_so():
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", minimise=True)
    _, data = data_of(begun(problem))
    assert data.unit == "mean Y, smaller is better"
    assert data.decisions.tolist() == [] and data.cumulative_regret.tolist() == []


THREE = Problem(CausalGraph.parse("X -> Y"), "Y", domains={"X": ["a", "b", "c"]}, minimise=True)


@pytest.mark.slow
def test_no_arm_is_marked_where_leaders_tie(tmp_path):
    for outcomes, marked, along in (
        ({}, None, "nothing tells the arms apart; mean Y, smaller is better"),
        ({"a": [1]}, None, "2 arms tie for the best; mean Y, smaller is better"),
        ({"a": [0]}, 0, "▸ looks best; mean Y, smaller is better"),
    ):
        _, data = data_of(tossed(outcomes, problem=THREE))
        (panel,) = data.contexts
        assert (panel.intervals.marked, panel.intervals.along) == (marked, along)
        draw(data, tmp_path / "tie.svg")
        assert (">▸ do(X=a)</text>" in (tmp_path / "tie.svg").read_text()) == (marked == 0)


def test_a_title_counts_one_outcome():
    assert data_of(tossed({"a": [1]}, problem=THREE))[1].title == "ward: 1 outcome, 0 pending"


def test_an_explanation_is_drawn_in_the_unit_of_the_reward(tmp_path):
    found = tossed({"a": [1]}, problem=THREE).explain(1)
    assert intervals_then(found).along == "▸ chosen; mean Y, smaller is better"
    found.figure(tmp_path / "then.svg")
    assert "chosen; mean Y, smaller is better, with its" in (tmp_path / "then.svg").read_text()


def test_of_many_contexts_four_are_drawn():
    names = ("C1", "C2", "C3")
    problem = Problem(CausalGraph.parse("C1 -> Y; C2 -> Y; C3 -> Y; X -> Y"), "Y", context=names)
    experiment = begun(problem)
    last = dict.fromkeys(names, "1")
    experiment.ask(last)
    _, data = data_of(experiment)
    assert [panel.intervals.title for panel in data.contexts] == ["C1=1, C2=1, C3=1"]
    for number in range(6):
        experiment.ask({"C1": number % 2, "C2": number // 2 % 2, "C3": number // 4})
    _, data = data_of(experiment)
    assert len(data.contexts) == 4 and data.title.endswith("; the contexts that came most often")


def test_long_titles_and_names_keep_to_their_panels(tmp_path, monkeypatch):
    """Titles once ran into those beside them, and names broke inside words."""
    context = "Mean_arterial_blood_pressure_before", "Respiratory_support_on_admission", "Ward"
    treatment = "Continuous_positive_airway_pressure_target"
    edges = [(name, "Y") for name in (*context, treatment)]
    domains = {"Ward": ["surgery and after", "all others"], treatment: ["as before", "raised"]}
    experiment = begun(Problem(CausalGraph(edges), "Y", context=context, domains=domains))
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
def test_pictures_are_drawn(tmp_path, ending):
    path = tmp_path / f"ward.{ending}"
    played("task2", 3).figure(path, tolerance=0.1)
    assert path.stat().st_size > 5000


def test_an_experiment_without_decisions_has_a_picture(tmp_path):
    begun("task1").figure(tmp_path / "empty.svg")
    assert "do(X=1)" in (tmp_path / "empty.svg").read_text()


def test_a_path_that_can_not_be_is_refused_before_any_work(tmp_path):
    experiment = begun()
    with pytest.raises(DowiseError, match="ending"):
        experiment.figure(tmp_path / "ward.bmp")
    with pytest.raises(DowiseError, match="no folder"):
        experiment.figure(tmp_path / "nowhere" / "ward.png")


def test_status_and_history_must_be_of_one_experiment():
    one, other = begun("task2"), begun("task1")
    with pytest.raises(DowiseError, match="no context"):
        figure_data(other.status(), one.history(points=2), ())
