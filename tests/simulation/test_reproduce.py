"""`reproduce`: the report, resuming, and the folders and arguments that are rejected."""

import json
import sys

import pytest
from support.errors import raises_code

from dowise.simulation.paper_panels import POLICIES
from dowise.simulation.reproduce import (
    ReproductionSpec,
    heading,
    image,
    reproduce,
    table,
    to_html,
)
from dowise.simulation.run_directory import RunDirectory, write_checked_json

SMALL = {"trials": 3, "horizon": 20, "samples": 20}


def read_report(folder):
    return (folder / "report.md").read_text("utf-8")


def test_html_page_is_rendered_from_markdown():
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


def test_report_has_figures_tables_and_the_command(tmp_path):
    steps, out = [], tmp_path / "out"
    options = {"trials": 3, "horizon": 30, "samples": 50, "panels": ["task1", "random-10-0.1"]}
    result = reproduce(out, progress=lambda *step: steps.append(step), **options)
    assert [*result.finals] == ["task1", "random-10-0.1"]
    assert [*result.finals["task1"]] == list(POLICIES)
    for name in result.finals:
        for ending in ("png", "pdf"):
            assert (out / f"{name}.{ending}").stat().st_size > 3000
    report = read_report(out)
    assert "dowise reproduce task1 random-10-0.1 --trials 3 --horizon 30 --samples 50" in report
    assert "A check of refresh=0.05 on task 1, 3 trials both ways" in report
    assert "graphs have one intervention set only" in report
    for policy, final in result.finals["task1"].items():
        assert f"| {policy} | {final.mean:.2f} | {final.error:.2f} |" in report
    assert (out / "report.html").read_text("utf-8").count("<img") == 2
    (file,) = (out / "runs/task1/calls").iterdir()
    call = json.loads(file.read_text("utf-8"))
    assert call["spec"]["policies"]["ids"]["options"] == {"samples": 50}
    assert steps[-1] == ("random-10-0.1", 6, 6)
    assert reproduce(out, **options).finals == result.finals  # nothing is run again


@pytest.mark.slow
def test_report_on_panels_of_and_beyond_the_paper(tmp_path):
    options = {"trials": 2, "horizon": 20, "samples": 30}
    result = reproduce(tmp_path, ["task1", "bow-strong", "missing-arrow"], **options)
    report = read_report(tmp_path)
    assert "## Which claims hold" in report and "## Which claims beyond the paper hold" in report
    assert "ids, soft < 0.5 × (ids, drawn)" in report and "| ids < bernoulli-ts |" in report
    assert [*result.expected] == ["task1", "missing-arrow"]  # undefined with hidden causes
    measures = {name: {x.measure for x in claims} for name, claims in result.claims.items()}
    assert measures == {
        "task1": {"expected"},
        "bow-strong": {"regret"},
        "missing-arrow": {"expected"},
    }
    expected = result.expected["task1"]["ts"]
    assert f" | {expected.mean:.2f} | {expected.error:.2f} |" in report
    assert [*result.finals["missing-arrow"]][:3] == ["ids, right", "ids, drawn", "ids, soft"]
    (call,) = RunDirectory(tmp_path / "runs/bow-strong").calls()
    assert call.spec["problems"]["bow-strong"]["strong"] and call.horizon == 20
    (call,) = RunDirectory(tmp_path / "runs/missing-arrow").calls()
    assert call.spec["policies"]["ids, soft"]["options"] == {"samples": 30}
    reproduce(tmp_path / "single", ["bow"], **options)
    assert "# Beyond the paper" in read_report(tmp_path / "single")


@pytest.mark.slow
def test_panels_run_one_by_one_give_the_report_of_one_call(tmp_path):
    reproduce(tmp_path / "out", ["task3"], **SMALL)
    result = reproduce(tmp_path / "out", ["task2"], **SMALL)
    assert [*result.finals] == ["task2", "task3"] == [*result.claims]
    report = read_report(tmp_path / "out")
    assert "dowise reproduce task2 task3 --trials 3" in report
    single_call = reproduce(tmp_path / "once", ["task2", "task3", "task2"], **SMALL)
    assert single_call.finals == result.finals and read_report(tmp_path / "once") == report


@pytest.mark.slow
def test_interrupted_extension_keeps_the_earlier_report(tmp_path):
    def progress(panel, finished, _total):
        if panel == "task3" and finished:
            raise KeyboardInterrupt

    reproduce(tmp_path, ["task2"], **SMALL)
    report = read_report(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, ["task3"], **SMALL, progress=progress)
    assert read_report(tmp_path) == report
    assert [*reproduce(tmp_path, ["task3"], **SMALL, band="sd").finals] == ["task2", "task3"]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"trials": 4}, ("trials 3", "4")),
        ({"horizon": 21}, ("horizon 20", "21")),
        ({"horizon": None}, ("horizon 20", "that of the panel")),
        ({"samples": 21}, ("samples 20", "21")),
        ({"seed": 1}, ("seed 0", "1")),
    ],
)
def test_other_settings_in_the_same_folder_are_rejected(tmp_path, change, names):
    settings = ReproductionSpec(("task3",), 3, 20, 20, 0, False, "se", 3).settings
    write_checked_json(tmp_path / "reproduction.json", {"settings": settings, "panels": []})
    with raises_code("directory-in-use", *names):
        reproduce(tmp_path, ["task3"], **{**SMALL, **change})
    assert [path.name for path in tmp_path.iterdir()] == ["reproduction.json"]


@pytest.mark.parametrize("name", ["report.md", "notes.txt"])
def test_folder_with_other_contents_is_left_unchanged(tmp_path, name):
    (tmp_path / name).write_text("text")
    with raises_code("directory-in-use", str(tmp_path)):
        reproduce(tmp_path, ["task1"], **SMALL)
    assert [*tmp_path.iterdir()] == [tmp_path / name]
    assert (tmp_path / name).read_text() == "text"
    with raises_code("directory-in-use", name):
        reproduce(tmp_path / name, ["task1"], **SMALL)


@pytest.mark.parametrize("library", ["pyarrow", "matplotlib", "pandas", "cloudpickle"])
def test_missing_extra_is_noticed_before_anything_is_written(tmp_path, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with raises_code("missing-extra", library):
        reproduce(tmp_path / "out" / "deep", ["task1"], **SMALL, workers=2)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"trials": 1}, "invalid-number"),
        ({"horizon": 0}, "invalid-number"),
        ({"samples": 0}, "invalid-number"),
        ({"seed": -1}, "invalid-number"),
        ({"workers": 0}, "invalid-number"),
        ({"trials": "3"}, "invalid-number"),
        ({"band": "both"}, "unknown-value"),
        ({"panels": ["task4"]}, "unknown-panel"),
    ],
)
def test_invalid_arguments_are_noticed_before_anything_is_written(tmp_path, options, code):
    (name,) = options
    with raises_code(code, name.removesuffix("s")):
        reproduce(tmp_path / "out", **{"panels": ["task1"], **SMALL, **options})
    assert not (tmp_path / "out").exists()
