"""Charts of a simulation: the curves, then their drawing."""

import numpy as np
import pytest
from matplotlib._pylab_helpers import Gcf
from matplotlib.figure import Figure
from support.errors import raises_code
from support.parametrize import one_in

from dowise import CausalGraph, Problem, simulate
from dowise.simulation import Result
from dowise.simulation.analysis import RegretCurve
from dowise.simulation.plots import save_curves


@pytest.fixture(scope="module")
def result():
    policies = ["ucb", ("any", "random"), ("$a$ _b", "random")]
    return simulate(["task1", "task2"], policies, horizon=12, trials=5, seed=3, every=4)


def texts_of(axes):
    return [text.get_text() for text in axes.texts]


def test_curves_are_means_over_trials_by_problem(result):
    curves = result.curves()
    assert list(curves) == ["task1", "task2"]
    assert [curve.policy for curve in curves["task2"]] == ["ucb", "any", "$a$ _b"]
    frame = result.frame()
    for problem, by_policy in curves.items():
        for curve in by_policy:
            rows = frame[(frame["problem"] == problem) & (frame["policy"] == curve.policy)]
            wide = rows.pivot(index="trial", columns="round", values="regret")
            assert curve.rounds.tolist() == [4, 8, 12] and curve.trials == 5
            np.testing.assert_allclose(curve.mean, wide.mean())
            np.testing.assert_allclose(curve.deviation, wide.std())


def test_figure_has_a_panel_per_problem_and_a_line_per_policy(result):
    figure = result.plot()
    assert isinstance(figure, Figure) and not Gcf.figs  # not registered with pyplot
    assert len(figure.axes) == 2
    for axes, (problem, curves) in zip(figure.axes, result.curves().items(), strict=True):
        assert axes.get_title("left") == f"{problem}   (5 trials, bands: two standard errors)"
        assert {*texts_of(axes)} == {"ucb", "any", "$a$ _b"}
        assert len(axes.collections) == 3  # bands
        for line, curve in zip(axes.lines, curves, strict=True):
            assert line.get_xdata().tolist() == [0, 4, 8, 12]
            assert line.get_ydata().tolist() == [0, *curve.mean]
        highest = max(float(curve.band("se")[1].max()) for curve in curves)
        assert axes.get_ylim()[1] == pytest.approx(1.05 * highest)


def test_bands_of_standard_deviations_are_wider(result):
    se, sd = (result.plot(band=band).axes[0].get_ylim()[1] for band in ("se", "sd"))
    assert sd > se
    with raises_code("unknown-value", "'ci'", "se"):
        result.plot(band="ci")


@pytest.mark.parametrize("ending", one_in(3, ["png", "pdf", "svg"]))
def test_equal_results_give_equal_bytes(result, tmp_path, ending):
    first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    result.plot(first)
    Result(result._results, result._jobs).plot(str(second), band="se")
    assert first.read_bytes() == second.read_bytes()
    assert [path.name for path in sorted(tmp_path.iterdir())] == [first.name, second.name]


def test_user_settings_of_matplotlib_have_no_effect(result, tmp_path):
    import matplotlib

    result.plot(tmp_path / "a.png")
    with matplotlib.rc_context({"axes.facecolor": "red", "savefig.bbox": "tight"}):
        result.plot(tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_a_plot_uses_the_axes_that_are_passed(result):
    figure = Figure()
    axes = figure.subplots(1, 2)
    assert result.plot(axes=axes) is figure
    assert [len(part.lines) for part in axes] == [3, 3]
    for invalid in (axes[0], ["left", "right"]):
        with raises_code("invalid-type", "2 matplotlib Axes"):
            result.plot(axes=invalid)


@pytest.mark.parametrize(
    ("name", "code"),
    [("chart.gif", "unsupported-format"), ("none/chart.png", "unwritable-file")],
)
def test_invalid_path_is_rejected(result, tmp_path, name, code):
    with raises_code(code, name):
        result.plot(tmp_path / name)
    assert not [*tmp_path.iterdir()]


def test_single_trial_of_one_round_has_lines_without_bands():
    (axes,) = simulate(["task1"], ["ucb", "random"], horizon=1, trials=1).plot().axes
    assert axes.get_title("left") == "task1   (1 trial)"
    assert not axes.collections
    assert [line.get_xdata().tolist() for line in axes.lines] == [[0, 1], [0, 1]]
    assert all(tick == int(tick) for tick in axes.get_xticks())


def test_zero_regret_and_long_names_are_drawn():
    name = "a problem with a name that is much longer than the title of a panel has room for"
    flat = Problem(CausalGraph.parse("X -> Y"), "Y", arms=["do(X=0)"], name=name)
    policies = [("a", "ucb"), ("b", "ucb"), ("my_policies.for_this_paper:GreedyWithALong", "ucb")]
    (axes,) = simulate([flat], policies, horizon=5, trials=3).plot().axes
    low, high = axes.get_ylim()
    assert low == 0 < high
    heights = [text.xy[1] for text in axes.texts]  # separate, and none on the label of the x axis
    assert min(heights) == 0 and min(np.diff(heights)) > 0.03
    assert "my_policies.for_th…r:GreedyWithALong" in texts_of(axes)
    title = axes.get_title("left")
    assert title.endswith("\n(3 trials, bands: two standard errors)") and "…" in title


def test_title_has_the_range_of_trials_of_an_unfinished_simulation(tmp_path):
    result = simulate(["task1"], ["ucb", "random"], horizon=5, trials=20, out=tmp_path / "run")
    *finished, last = result._jobs
    assert last.last - last.first + 1 == 10
    (axes,) = Result(result._results, finished).plot().axes
    assert axes.get_title("left").startswith("task1   (10 to 20 trials, bands")


def test_registered_policies_have_fixed_colours(tmp_path):
    rounds = np.arange(1, 11)
    curves = [
        RegretCurve(name, rounds, rounds * slope, rounds * 0.5, 5)
        for name, slope in (("ids", 1.0), ("ts", 1.5), ("mine", 2.0))
    ]
    files = [tmp_path / f"plot.{ending}" for ending in ("png", "pdf", "svg")]
    save_curves(curves, "A simulation", files)
    assert all(file.stat().st_size > 3000 for file in files)
    text = files[2].read_text("utf-8").lower()
    assert all(colour in text for colour in ("#0072b2", "#d55e00", "#999999"))
