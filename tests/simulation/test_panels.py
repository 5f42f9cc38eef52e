"""The panels beyond the paper: what they race in, what they claim, and the evidence for it."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from dowise import simulate
from dowise.cli.main import main
from dowise.simulation.analysis import Claimed, claims
from dowise.simulation.paper_panels import ALL_PANELS, BEYOND, PANELS
from dowise.simulation.reproduce import reproduce
from dowise.simulation.run_directory import RunDirectory
from dowise.simulation.spec import policy_specs

EVIDENCE = Path(__file__).parents[2] / "evidence"


def test_help_lists_every_panel():
    shown = CliRunner().invoke(main, ["reproduce", "--help"]).output
    for name in ALL_PANELS:
        assert name.removesuffix("-strong") in shown
    assert "Beyond the paper, only if named" in shown and not {*PANELS} & {*BEYOND}


def test_claims_of_times_as_much():
    final = pd.DataFrame({"soft": [4.0] * 12, "drawn": [9.0, 10.0, 11.0] * 4})
    less, half, third = claims(
        final, [Claimed("soft", "drawn", times) for times in (1.0, 0.5, 0.3)]
    )
    assert less.difference.mean == pytest.approx(-6) and half.difference.mean == pytest.approx(-1)
    assert [one.verdict for one in (less, half, third)] == ["holds", "holds", "does not hold"]
    assert [str(less), str(half)] == ["soft < drawn", "soft < 0.5 × (drawn)"]


def test_expected_regret_decides_where_there_is_any():
    final = pd.DataFrame({"a": [1.0, 9.0] * 6, "b": [8.0, 3.0] * 6})
    expected = pd.DataFrame({"a": [4.0, 4.1] * 6, "b": [5.0, 5.2] * 6})
    (by_regret,) = claims(final, [Claimed("a", "b")])
    (by_expected,) = claims(final, [Claimed("a", "b")], expected)
    assert (by_regret.measure, by_regret.verdict) == ("regret", "not shown")
    assert (by_expected.measure, by_expected.verdict) == ("expected", "holds")
    assert by_expected.difference == by_regret.difference == by_regret.decides
    assert by_expected.decides.mean == pytest.approx(-1.05)


def test_worlds_of_wrong_graphs_have_what_is_not_drawn():
    for name, edge in (("missing-arrow", "X1 -> Y"), ("missing-cause", "X2 <-> Y"),
                       ("missing-arrow-7", "A -> Y"), ("right-graph", None)):  # fmt: skip
        panel = BEYOND[name]
        own = {entry.label: entry.problem for entry in panel.policies if not isinstance(entry, str)}
        lacking = {*panel.problem.graph.edge_texts} - {*own["ids, drawn"].graph.edge_texts}
        assert lacking == ({edge} if edge else set())
        assert panel.problem.arms_kind == "all" and own["ts, soft"].soft == 0.1
        assert edge is None or edge in own["ids, soft"].edge_priors
    assert BEYOND["missing-cause"].strong and not BEYOND["missing-arrow"].strong
    assert len(BEYOND["missing-arrow-7"].problem.graph) == 7
    two = BEYOND["two-causes"].problem
    assert len(two.graph.bidirected_edges) == 2 and max(map(len, two.domains.values())) == 3


@pytest.mark.slow
def test_a_report_with_panels_of_both_kinds(tmp_path):
    options = {"trials": 2, "horizon": 20, "samples": 30}
    found = reproduce(tmp_path, ["task1", "bow-strong", "missing-arrow"], **options)
    report = (tmp_path / "report.md").read_text("utf-8")
    assert "2 trials of 20 rounds" in report
    assert "## Which claims hold" in report and "## Which claims beyond the paper hold" in report
    assert "ids, soft < 0.5 × (ids, drawn)" in report and "| ids < bernoulli-ts |" in report
    assert [*found.expected] == ["task1", "missing-arrow"]  # with hidden causes there is none
    by = {name: {claim.measure for claim in made} for name, made in found.claims.items()}
    assert by == {"task1": {"expected"}, "bow-strong": {"regret"}, "missing-arrow": {"expected"}}
    own = found.expected["task1"]["ts"]
    assert f" | {own.mean:.2f} | {own.error:.2f} |" in report
    assert "| expected regret |" in report and "| regret |" in report
    assert [*found.finals["missing-arrow"]][:3] == ["ids, right", "ids, drawn", "ids, soft"]
    (call,) = RunDirectory(tmp_path / "runs/bow-strong").calls()
    assert call.spec["problems"]["bow-strong"]["strong"] and call.horizon == 20
    (call,) = RunDirectory(tmp_path / "runs/missing-arrow").calls()
    assert call.spec["policies"]["ids, soft"]["options"] == {"samples": 30}
    alone = reproduce(tmp_path / "alone", ["bow"], **options)
    assert "# Beyond the paper" in (tmp_path / "alone/report.md").read_text("utf-8")
    assert [*alone.claims] == ["bow"]


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(EVIDENCE.glob("[!_]*.py")), ids=lambda path: path.stem)
def test_evidence_can_be_made_and_is_listed(script):
    subprocess.run([sys.executable, script, "--help"], check=True, capture_output=True)
    assert f"[{script.name}]" in (EVIDENCE / "README.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    "panels",
    [
        ["missing-arrow", "right-graph"],
        pytest.param(
            ["missing-arrow", "missing-cause", "missing-arrow-7", "right-graph"],
            marks=pytest.mark.slow,  # that on seven variables takes its time
            id="all",
        ),
    ],
)
def test_evidence_is_written(panels, tmp_path):
    all_of_them = len(panels) == 4
    options = [
        "--trials", "2", "--horizon", "10", "--samples", "20", "--workers", "1",
        *([] if all_of_them else ["--panels", *panels]),
        "--runs", str(tmp_path / "runs"), "--results", str(tmp_path),
    ]  # fmt: skip
    script = EVIDENCE / "wrong_graphs.py"
    subprocess.run([sys.executable, script, *options], check=True, capture_output=True)
    page = (tmp_path / "wrong_graphs.md").read_text("utf-8")
    assert "`python evidence/wrong_graphs.py --trials 2 --horizon 10 --samples 20" in page
    assert (" --panels missing-arrow right-graph`" in page) != all_of_them
    found = json.loads((tmp_path / "wrong_graphs.json").read_text("utf-8"))["panels"]
    assert [*found] == panels
    assert all("ids, soft" in panel["regret"] for panel in found.values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:there are .* sets of doubtful edges")  # on seven variables
@pytest.mark.parametrize(
    ("name", "trials", "policies"),
    [
        ("task2-hidden", 40, ("ids", "bernoulli-ts", "z2-ts")),
        ("task3-hidden-strong", 40, ("ids", "bernoulli-ts")),
        ("missing-arrow", 40, ("ids, drawn", "ids, soft", "ts, drawn", "ts, soft", "bernoulli-ts")),
        ("missing-arrow-7", 40, ("ts, drawn", "ts, soft", "bernoulli-ts")),
        ("right-graph", 400, ("ts, drawn", "ts, soft", "bernoulli-ts")),
    ],
)
def test_the_main_claims_beyond_the_paper_hold(name, trials, policies):
    """The seed is fixed. With seeds 0 to 3 each claim held by three standard errors or more, but
    for the quarter more of the last panel: by 1.9 to 4.0, because a soft graph does cost `ts` a
    tenth more there."""
    panel = BEYOND[name]
    entries = [
        entry
        for entry, entrant in zip(panel.policies, policy_specs(panel.policies), strict=True)
        if entrant.label in policies
    ]
    race = simulate(
        [(name, panel.problem)], entries, panel.horizon, trials, every=panel.horizon,
        options={label: {"samples": 300} for label in policies if label.startswith("ids")},
        strong=panel.strong,
    )  # fmt: skip
    final = race.final().loc[name]
    made = claims(final, [e for e in panel.claimed if {e.less, e.more} <= {*policies}])
    assert len(made) >= len(policies) - 1
    assert [(str(claim), claim.verdict) for claim in made] == [(str(c), "holds") for c in made]
