"""From a table to claims, pictures and a report; and the whole of it on a small scale."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dowise import DowiseError
from dowise.plotting.figures import spread
from dowise.simulation.analysis import (
    Claim,
    RegretCurve,
    Spread,
    claims,
    curves,
    differences,
    spread_of,
    standings,
)
from dowise.simulation.paper_panels import PANELS, POLICIES
from dowise.simulation.plots import save_curves
from dowise.simulation.reproduce import (
    ReproductionSpec,
    heading,
    image,
    reproduce,
    table,
    to_html,
)
from dowise.simulation.run_directory import write_checked_json


def test_spread_and_interval():
    found = spread_of(np.array([1.0, 2.0, 3.0, 6.0]))
    assert found.mean == 3 and found.trials == 4
    assert found.error == pytest.approx(np.std([1, 2, 3, 6], ddof=1) / 2)
    width = stats.t.ppf(0.975, 3) * found.error
    assert found.interval == pytest.approx((3 - width, 3 + width), rel=1e-9)
    alone = spread_of(np.array([1.0]))
    assert np.isnan(alone.error) and alone.interval == (-np.inf, np.inf)


def test_curves_from_the_table_in_any_order():
    rows = [
        {"policy": policy, "trial": trial, "round": t, "regret": (trial + 1) * t * worse}
        for policy, worse in (("a", 1.0), ("b", 2.0))
        for trial in range(3)
        for t in (10, 20)
    ]
    frame = pd.DataFrame(rows).sample(frac=1, random_state=0)
    a, b = curves(frame, ["a", "b"])
    assert a.rounds.tolist() == [10, 20] and a.trials == 3
    np.testing.assert_allclose(a.mean, [20, 40])
    np.testing.assert_allclose(b.deviation, [20, 40])
    np.testing.assert_allclose(b.band("sd")[1], [80, 160])
    np.testing.assert_allclose(b.band("se")[0], [40 - 40 / np.sqrt(3), 80 - 80 / np.sqrt(3)])


def test_claims_are_paired():
    """The worlds differ a lot, the policies by one: only a paired difference shows it."""
    worlds = np.random.default_rng(0).normal(50, 20, size=100)
    final = pd.DataFrame({"ids": worlds, "ts": worlds + 1, "ucb": worlds - 1, "x": worlds + 1})
    final["x"] += np.random.default_rng(1).normal(0, 50, size=100)
    made = {(c.less, c.more): c.verdict for c in claims(final)}
    assert made == {
        ("ids", "ts"): "holds", ("ts", "ucb"): "does not hold", ("ts", "x"): "not shown",
    }  # fmt: skip


def final_table(rows):
    names = ["problem", "trial", "ts", "ucb", "ids"]
    return pd.DataFrame(rows, columns=names).set_index(["problem", "trial"])


def test_standings_and_paired_differences():
    """Differences are taken within a trial; a trial that one of the two lacks does not count."""
    final = final_table([
        ("b", 0, 1.0, 4.0, 2.0), ("b", 1, 3.0, 8.0, 1.0),
        ("a", 0, 1.0, 5.0, np.nan), ("a", 1, 9.0, np.nan, np.nan),
    ])  # fmt: skip
    found = [one.as_dict() for one in standings(final)]
    assert found[0] == {
        "problem": "b", "policy": "ts", "regret": 2.0, "standard_error": 1.0, "trials": 2,
    }  # fmt: skip
    assert [(one["problem"], one["policy"], one["trials"]) for one in found] == [
        ("b", "ts", 2), ("b", "ucb", 2), ("b", "ids", 2), ("a", "ts", 2), ("a", "ucb", 1),
    ]  # fmt: skip
    ucb, ids, alone = (one.as_dict() for one in differences(final))
    width = stats.t.ppf(0.975, 1) * np.std([3.0, 5.0], ddof=1) / np.sqrt(2)
    assert (ucb["policy"], ucb["than"], ucb["mean"]) == ("ucb", "ts", 4.0)
    assert (ucb["low"], ucb["high"]) == pytest.approx((4 - width, 4 + width))
    assert (ids["policy"], ids["mean"]) == ("ids", -0.5)
    assert (ucb["trials"], ucb["standard_error"]) == (2, pytest.approx(1.0))
    assert alone == {
        "problem": "a", "policy": "ucb", "than": "ts", "mean": 4.0, "standard_error": None,
        "low": None, "high": None, "trials": 1,
    }  # fmt: skip
    json.dumps([*found, ucb, ids, alone], allow_nan=False)
    pairs = [one.as_dict() for one in differences(final, all_pairs=True)]
    assert [(one["problem"], one["policy"], one["than"], one["mean"]) for one in pairs] == [
        ("b", "ucb", "ts", 4.0), ("b", "ids", "ts", -0.5), ("b", "ids", "ucb", -4.5),
        ("a", "ucb", "ts", 4.0),
    ]  # fmt: skip


def test_verdicts():
    assert Claim("a", "b", Spread(-1.0, 0.50, 500)).verdict == "holds"
    assert Claim("a", "b", Spread(-1.0, 0.52, 500)).verdict == "not shown"
    assert Claim("a", "b", Spread(-1.0, 0.50, 10)).verdict == "not shown"
    assert Claim("a", "b", Spread(1.0, 0.50, 500)).verdict == "does not hold"
    assert Claim("a", "b", Spread(-9.0, 0.50, 9)).verdict == "not shown"  # too few to say


def test_labels_do_not_overlap():
    placed = spread([1.0, 1.1, 1.2, 9.0], 0.5)
    assert (np.diff(placed) >= 0.5 - 1e-12).all()
    assert np.mean(placed) == pytest.approx(np.mean([1.0, 1.1, 1.2, 9.0]))


def test_pictures_are_written(tmp_path):
    rounds = np.arange(1, 11)
    lines = [
        RegretCurve(name, rounds, rounds * slope, rounds * 0.5, 5)
        for name, slope in (("ids", 1.0), ("ts", 1.5), ("mine", 2.0))
    ]
    files = [tmp_path / f"plot.{ending}" for ending in ("png", "pdf", "svg")]
    save_curves(lines, "A race", files)
    assert all(file.stat().st_size > 3000 for file in files)
    text = files[2].read_text("utf-8")
    for colour in ("#0072b2", "#d55e00", "#999999"):
        assert colour in text.lower()


def test_the_page_is_made_of_the_markdown():
    text = "\n\n".join(
        [
            heading(1, "A < B"),
            "text & `more` <b>",
            table(("policy", "regret"), [("a|b", "1.0")]),
            image("a.png", "curves"),
        ]
    )
    assert text == (
        "# A < B\n\ntext & `more` <b>\n\n| policy | regret |\n|---|---:|\n| a\\|b | 1.0 |\n\n"
        "![curves](a.png)"
    )
    page = to_html(text)
    assert "<title>A &lt; B</title>" in page and "<h1>A &lt; B</h1>" in page
    assert "<td>a|b</td>" in page and '<td style="text-align:right">1.0</td>' in page
    assert '<img src="a.png" alt="curves"' in page
    assert "text &amp; <code>more</code> &lt;b&gt;" in page


def test_the_whole_on_a_small_scale(tmp_path):
    told = []
    options = {"trials": 3, "horizon": 30, "samples": 50, "panels": ["task1", "random-10-0.1"]}
    found = reproduce(tmp_path / "out", progress=lambda *step: told.append(step), **options)
    assert [*found.finals] == ["task1", "random-10-0.1"]
    assert [*found.finals["task1"]] == list(POLICIES)
    for name in found.finals:
        for ending in ("png", "pdf"):
            assert (tmp_path / "out" / f"{name}.{ending}").stat().st_size > 3000
    report = (tmp_path / "out" / "report.md").read_text("utf-8")
    assert "dowise reproduce task1 random-10-0.1 --trials 3 --horizon 30 --samples 50" in report
    assert "A check of refresh=0.05 on task 1, 3 trials both ways" in report
    assert "graphs have one intervention set only" in report
    for policy, final in found.finals["task1"].items():
        assert f"| {policy} | {final.mean:.2f} | {final.error:.2f} |" in report
    assert (tmp_path / "out" / "report.html").read_text("utf-8").count("<img") == 2
    (file,) = (tmp_path / "out/runs/task1/calls").iterdir()
    manifest = json.loads(file.read_text("utf-8"))
    assert manifest["spec"]["policies"]["ids"]["options"] == {"samples": 50}
    assert told[-1] == ("random-10-0.1", 6, 6)
    again = reproduce(tmp_path / "out", **options)  # nothing is left to do
    assert again.finals == found.finals


def test_what_can_not_be_reproduced_is_explained(tmp_path):
    with pytest.raises(DowiseError, match="unknown panel 'task4'.*there are task1"):
        reproduce(tmp_path, ["task4"])
    with pytest.raises(DowiseError, match="band='both'"):
        reproduce(tmp_path, ["task1"], band="both")


SMALL = {"trials": 3, "horizon": 20, "samples": 20}


@pytest.mark.slow
def test_further_panels_are_added_to_the_report(tmp_path):
    """One after another they make the report that all at once make."""
    reproduce(tmp_path / "out", ["task3"], **SMALL)
    both = reproduce(tmp_path / "out", ["task2"], **SMALL)
    assert [*both.finals] == ["task2", "task3"] == [*both.claims]
    report = (tmp_path / "out" / "report.md").read_text("utf-8")
    assert "These are all panels that were run in this folder so far" in " ".join(report.split())
    assert "dowise reproduce task2 task3 --trials 3" in report
    at_once = reproduce(tmp_path / "once", ["task2", "task3", "task2"], **SMALL)
    assert at_once.finals == both.finals
    assert (tmp_path / "once" / "report.md").read_text("utf-8") == report


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"trials": 4}, "has another reproduction, with trials 3, not 4"),
        ({"horizon": 21}, "with horizon 20, not 21"),
        ({"horizon": None}, "with horizon 20, not 'that of the panel'"),
        ({"samples": 21}, "with samples 20, not 21"),
        ({"seed": 1}, "with seed 0, not 1"),
    ],
)
def test_other_settings_in_the_same_folder_are_refused(tmp_path, change, complaint):
    write_checked_json(
        tmp_path / "reproduction.json", {"settings": settings_of(**SMALL), "panels": []}
    )
    with pytest.raises(DowiseError, match=complaint):
        reproduce(tmp_path, ["task3"], **{**SMALL, **change})
    assert [path.name for path in tmp_path.iterdir()] == ["reproduction.json"]


def settings_of(trials, horizon, samples):
    return ReproductionSpec(("task3",), trials, horizon, samples, 0, False, "se", trials).settings


@pytest.mark.slow
def test_a_stop_leaves_the_report_that_was_there(tmp_path):
    def progress(panel, done, _total):
        if panel == "task3" and done:
            raise KeyboardInterrupt

    reproduce(tmp_path, ["task2"], **SMALL)
    before = (tmp_path / "report.md").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, ["task3"], **SMALL, progress=progress)
    assert (tmp_path / "report.md").read_bytes() == before
    found = reproduce(tmp_path, ["task3"], **SMALL, band="sd")
    assert [*found.finals] == ["task2", "task3"]


@pytest.mark.parametrize("name", ["report.md", "report.html", "task1.png", "notes.txt"])
def test_a_folder_of_somebody_else_is_left_alone(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(DowiseError, match="already exists and is not a reproduction"):
        reproduce(tmp_path, ["task1"], **SMALL)
    assert [*tmp_path.iterdir()] == [tmp_path / name]
    assert (tmp_path / name).read_text() == "mine"
    with pytest.raises(DowiseError, match="is a file, or is inside one: choose a new directory"):
        reproduce(tmp_path / name, ["task1"], **SMALL)


@pytest.mark.parametrize("library", ["pyarrow", "matplotlib", "pandas", "cloudpickle"])
def test_where_an_extra_is_missing_no_folder_is_left_behind(tmp_path, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(DowiseError, match=rf"needs {library}.*dowise\[simulate\]"):
        reproduce(tmp_path / "out" / "deep", ["task1"], **SMALL, workers=2)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "wrong",
    [{"trials": 1}, {"horizon": 0}, {"samples": 0}, {"seed": -1}, {"workers": 0}, {"trials": "3"}],
)
def test_wrong_numbers_are_noticed_before_anything_is_written(tmp_path, wrong):
    with pytest.raises(DowiseError, match=next(iter(wrong))):
        reproduce(tmp_path / "out", ["task1"], **{**SMALL, **wrong})
    assert not (tmp_path / "out").exists()


def test_the_panels_are_those_of_the_paper():
    assert [*PANELS] == [
        "task1", "task2", "task3", "random-10-0.1", "random-15-0.1", "random-15-0.2", "healthcare",
    ]  # fmt: skip
    worlds = PANELS["random-15-0.2"].random
    assert (worlds.size, worlds.density) == (15, 0.2) and PANELS["task1"].random is None
