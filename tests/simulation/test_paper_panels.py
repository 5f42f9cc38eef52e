"""Panels of and beyond the paper: their worlds, their claims, and the evidence for them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dowise import simulate
from dowise.cli.main import main
from dowise.simulation.paper_panels import ALL_PANELS, BEYOND, PANELS
from dowise.simulation.spec import policy_specs

EVIDENCE = Path(__file__).parents[2] / "evidence"


def test_panels_are_those_of_the_paper():
    random = ["random-10-0.1", "random-15-0.1", "random-15-0.2"]
    assert [*PANELS] == ["task1", "task2", "task3", *random, "healthcare"]
    worlds = PANELS["random-15-0.2"].random
    assert (worlds.size, worlds.density) == (15, 0.2) and PANELS["task1"].random is None


def test_help_lists_every_panel():
    output = CliRunner().invoke(main, ["reproduce", "--help"]).output
    for name in ALL_PANELS:
        assert name.removesuffix("-strong") in output
    assert not {*PANELS} & {*BEYOND}


@pytest.mark.parametrize(
    ("name", "edge"),
    [
        ("missing-arrow", "X1 -> Y"),
        ("missing-cause", "X2 <-> Y"),
        ("missing-arrow-7", "A -> Y"),
        ("right-graph", None),
    ],
)
def test_worlds_of_wrong_graphs_have_the_missing_edge(name, edge):
    panel = BEYOND[name]
    problems = {policy.label: policy.problem for policy in policy_specs(panel.policies)}
    missing = {*panel.problem.graph.edge_texts} - {*problems["ids, drawn"].graph.edge_texts}
    assert missing == ({edge} if edge else set())
    assert panel.problem.arms_kind == "all" and problems["ts, soft"].soft == 0.1
    assert edge is None or edge in problems["ids, soft"].edge_priors
    assert panel.strong == (name == "missing-cause")


def test_two_causes_have_two_hidden_causes_and_three_values():
    problem = BEYOND["two-causes"].problem
    assert len(problem.graph.bidirected_edges) == 2
    assert max(map(len, problem.domains.values())) == 3


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(EVIDENCE.glob("[!_]*.py")), ids=lambda path: path.stem)
def test_evidence_scripts_have_help_and_are_listed(script):
    subprocess.run([sys.executable, script, "--help"], check=True, capture_output=True)
    assert f"[{script.name}]" in (EVIDENCE / "README.md").read_text("utf-8")


@pytest.mark.slow
def test_evidence_script_writes_its_results(tmp_path):
    arguments = ["--trials", "2", "--horizon", "10", "--samples", "20"]
    panels = ["missing-arrow", "right-graph"]
    command = [sys.executable, EVIDENCE / "wrong_graphs.py", *arguments, "--panels", *panels]
    command += ["--workers", "1", "--runs", tmp_path / "runs", "--results", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    page = (tmp_path / "wrong_graphs.md").read_text("utf-8")
    assert f"`python evidence/wrong_graphs.py {' '.join(arguments)} --panels" in page
    results = json.loads((tmp_path / "wrong_graphs.json").read_text("utf-8"))["panels"]
    assert [*results] == panels
    assert all("ids, soft" in panel["regret"] for panel in results.values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:there are .* sets of doubtful edges")  # on seven variables
@pytest.mark.parametrize(
    ("name", "trials", "labels"),
    [
        ("task2-hidden", 40, ("ids", "bernoulli-ts", "z2-ts")),
        ("task3-hidden-strong", 40, ("ids", "bernoulli-ts")),
        ("missing-arrow", 40, ("ids, drawn", "ids, soft", "ts, drawn", "ts, soft", "bernoulli-ts")),
        ("missing-arrow-7", 40, ("ts, drawn", "ts, soft", "bernoulli-ts")),
        ("right-graph", 400, ("ts, drawn", "ts, soft", "bernoulli-ts")),
    ],
)
def test_main_claims_beyond_the_paper_hold(name, trials, labels):
    """With seeds 0 to 3 each claim held by three standard errors or more, except that of a quarter
    more in the last panel: by 1.9 to 4.0, because a soft graph costs `ts` a tenth more there."""
    panel = BEYOND[name]
    specs = zip(panel.policies, policy_specs(panel.policies), strict=True)
    result = simulate(
        [(name, panel.problem)],
        [policy for policy, spec in specs if spec.label in labels],
        panel.horizon,
        trials,
        every=panel.horizon,
        options={label: {"samples": 300} for label in labels if label.startswith("ids")},
        strong=panel.strong,
    )
    final = result.final().loc[name]
    claims = [claim for claim in panel.claims if {claim.less, claim.more} <= {*labels}]
    judged = [claim.judge(final) for claim in claims]
    assert len(judged) >= len(labels) - 1
    assert {str(claim): claim.verdict for claim in judged if claim.verdict != "holds"} == {}
