"""The picture of a race: its numbers, then what is drawn of them."""

import numpy as np
import pytest
from matplotlib._pylab_helpers import Gcf
from matplotlib.figure import Figure
from support.errors import raises_code
from support.parametrize import one_in

from dowise import CausalGraph, Problem, simulate
from dowise.errors import DowiseError
from dowise.simulation import Result


@pytest.fixture(scope="module")
def result():
    policies = ["ucb", ("any", "random"), ("$a$ _b", "random")]
    return simulate(["task1", "task2"], policies, horizon=12, trials=5, seed=3, every=4)


def _texts(axes):
    return [text.get_text() for text in axes.texts]


def test_the_numbers_are_means_over_trials_by_problem(result):
    found = result.curves()
    assert list(found) == ["task1", "task2"]
    assert [curve.policy for curve in found["task2"]] == ["ucb", "any", "$a$ _b"]
    frame = result.frame()
    for problem, lines in found.items():
        for curve in lines:
            rows = frame[(frame["problem"] == problem) & (frame["policy"] == curve.policy)]
            wide = rows.pivot(index="trial", columns="round", values="regret")
            assert curve.rounds.tolist() == [4, 8, 12] and curve.trials == 5
            np.testing.assert_allclose(curve.mean, wide.mean())
            np.testing.assert_allclose(curve.deviation, wide.std())


def test_a_panel_for_each_problem_with_a_line_for_each_policy(result):
    figure = result.plot()
    assert isinstance(figure, Figure) and not Gcf.figs  # pyplot knows nothing of it
    assert len(figure.axes) == 2
    for axes, (problem, lines) in zip(figure.axes, result.curves().items(), strict=True):
        assert axes.get_title("left") == f"{problem}   (5 trials, bands: two standard errors)"
        assert {*_texts(axes)} == {"ucb", "any", "$a$ _b"}
        assert len(axes.collections) == 3  # bands
        for line, curve in zip(axes.lines, lines, strict=True):
            assert line.get_xdata().tolist() == [0, 4, 8, 12]
            assert line.get_ydata().tolist() == [0, *curve.mean]
        highest = max(float(curve.band("se")[1].max()) for curve in lines)
        assert axes.get_ylim()[1] == pytest.approx(1.05 * highest)


def test_bands_of_standard_deviations_are_wider(result):
    se, sd = (result.plot(band=band).axes[0].get_ylim()[1] for band in ("se", "sd"))
    assert sd > se
    with raises_code("unknown-value", "'ci'", "se"):
        result.plot(band="ci")


@pytest.mark.parametrize("ending", one_in(3, ["png", "pdf", "svg"]))
def test_the_same_run_gives_the_same_bytes(result, tmp_path, ending):
    first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    result.plot(first)
    again = Result(result._results, result._jobs)
    again.plot(str(second), band="se")
    assert first.read_bytes() == second.read_bytes()
    assert [path.name for path in sorted(tmp_path.iterdir())] == [first.name, second.name]


def test_somebody_s_settings_do_not_show_in_our_picture(result, tmp_path):
    import matplotlib

    result.plot(tmp_path / "a.png")
    with matplotlib.rc_context({"axes.facecolor": "red", "savefig.bbox": "tight"}):
        result.plot(tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_axes_of_one_s_own(result):
    figure = Figure()
    places = figure.subplots(1, 2)
    assert result.plot(axes=places) is figure
    assert [len(axes.lines) for axes in places] == [3, 3]
    with raises_code("invalid-type", "2 matplotlib Axes"):
        result.plot(axes=places[0])
    with raises_code("invalid-type", "2 matplotlib Axes"):
        result.plot(axes=["left", "right"])


@pytest.mark.parametrize(
    ("name", "code"),
    [("race.gif", "unsupported-format"), ("none/race.png", "unwritable-file")],
)
def test_a_path_that_can_t_be_drawn_to_is_refused(result, tmp_path, name, code):
    with raises_code(code, name):
        result.plot(tmp_path / name)
    assert not [*tmp_path.iterdir()]


def test_a_picture_that_can_t_be_written_leaves_the_older_one(result, tmp_path, monkeypatch):
    path = tmp_path / "race.png"
    path.write_bytes(b"older")

    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dowise._core.files.os.fsync", full)
    with pytest.raises(DowiseError, match="race.png: can't be written .No space left"):
        result.plot(path)
    assert path.read_bytes() == b"older" and len([*tmp_path.iterdir()]) == 1


def test_one_trial_of_one_round_has_no_bands_and_a_line():
    (axes,) = simulate(["task1"], ["ucb", "random"], horizon=1, trials=1).plot().axes
    assert axes.get_title("left") == "task1   (1 trial)"
    assert not axes.collections
    assert [line.get_xdata().tolist() for line in axes.lines] == [[0, 1], [0, 1]]
    assert all(tick == int(tick) for tick in axes.get_xticks())


def test_no_regret_at_all_and_names_that_are_long():
    name = "a problem with a name that goes on and on, for longer than anybody would expect"
    flat = Problem(CausalGraph.parse("X -> Y"), "Y", arms=["do(X=0)"], name=name)
    long = "my_policies.for_this_paper:GreedyWithALongName"
    policies = [("a", "ucb"), ("b", "ucb"), (long, "ucb")]
    (axes,) = simulate([flat], policies, horizon=5, trials=3).plot().axes
    low, high = axes.get_ylim()
    assert low == 0 < high
    heights = [text.xy[1] for text in axes.texts]  # apart, and none on the label of the rounds
    assert min(heights) == 0 and min(np.diff(heights)) > 0.03
    assert "my_policies.for_th…eedyWithALongName" in _texts(axes)
    title = axes.get_title("left")
    assert title.endswith("\n(3 trials, bands: two standard errors)") and "…" in title


def test_a_race_under_way_says_of_how_many_trials(tmp_path):
    whole = simulate(["task1"], ["ucb", "random"], horizon=5, trials=20, out=tmp_path / "race")
    (*there, last) = whole._jobs
    (axes,) = Result(whole._results, there).plot().axes
    assert last.last - last.first + 1 == 10  # of one policy these trials are still to come
    assert axes.get_title("left").startswith("task1   (10 to 20 trials, bands")
