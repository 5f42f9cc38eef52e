"""`dowise rehearse`."""

import json
import re

import pytest
from click.testing import CliRunner

from dowise.cli.main import main


def run(*words):
    return CliRunner().invoke(main, ["rehearse", *words])


FEW = ("task1", "--horizon", "6", "--worlds", "2", "--looks", "3", "--workers", "1")


def test_words_and_a_table():
    shown = run(*FEW)
    assert shown.exit_code == 0
    assert "In 2 worlds drawn from the prior, commit-kg over 6 rounds:" in shown.stdout
    rounds = [line.split()[0] for line in shown.stdout.splitlines() if line.startswith("      ")]
    assert rounds == ["0", "2", "4", "6"]


MONEY = """
name = "costs"
graph = "X -> Y"
reward = "Y"
[reward_values]
0 = 100
1 = 9000
"""


def test_the_usual_tolerance_is_a_hundredth_of_the_rewards_range(tmp_path):
    (tmp_path / "costs.toml").write_text(MONEY)
    words = [str(tmp_path / "costs.toml"), *FEW[1:], "--json"]
    assert json.loads(run(*words).stdout)["tolerance"] == 89
    assert json.loads(run(*words, "--tolerance", "5").stdout)["tolerance"] == 5
    assert json.loads(run(*FEW, "--json").stdout)["tolerance"] == 0.01


HEADER = ["round", "regret", "at random", "stopping", "truly", "sure", "right", "advised"]


@pytest.mark.parametrize(
    ("width", "headers"),
    [
        (80, [HEADER]),
        (60, [HEADER[:7], ["round", *HEADER[7:]]]),
        (30, [HEADER[:3], ["round", *HEADER[3:6]], ["round", *HEADER[6:]]]),
    ],
)
def test_a_table_that_is_too_wide_is_cut_between_columns(tmp_path, monkeypatch, width, headers):
    monkeypatch.setenv("COLUMNS", str(width))
    (tmp_path / "costs.toml").write_text(MONEY)
    shown = run(str(tmp_path / "costs.toml"), *FEW[1:]).stdout
    parts = [part for part in shown.split("\n\n") if part.split()[0] == "round"]
    table = [line for part in parts for line in part.splitlines()]
    assert max(map(len, shown.splitlines())) <= width
    assert len(table) == 5 * len(headers) and "e+0" not in shown
    cells = [re.split("  +", line.strip()) for line in table]
    assert cells[::5] == headers
    for i, header in enumerate(headers):
        lines = cells[5 * i + 1 : 5 * i + 5]
        assert [line[0] for line in lines] == ["0", "2", "4", "6"]
        assert {len(line) for line in lines} == {len(header)}
    assert re.search(r"\d,\d{3}", "".join(table))


def test_json_is_one_document_with_the_looks():
    shown = run(*FEW, "--json", "--delay", "2", "--policy", "ts", "--option", "prior=2")
    page = json.loads(shown.stdout)
    assert page["policy"] == "ts" and page["delay"] == 2 and page["prior"] == 2
    assert [look["round"] for look in page["looks"]] == [0, 2, 4, 6]
    assert page["rounds_until_stop"].keys() >= {"median", "low", "high", "share_never"}


def test_a_figure_and_a_prior_from_a_file(tmp_path):
    prior, figure = tmp_path / "prior.toml", tmp_path / "r.svg"
    prior.write_text("Y = [1.0, 2.0]\n")
    shown = run(*FEW, "--prior", str(prior), "--figure", str(figure), "--json")
    assert json.loads(shown.stdout)["prior"] == {"Y": [1.0, 2.0]}
    assert figure.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--policy", "idz"), "did you mean 'ids'"),
        (("--figure", "r.gif"), "use one of .svg, .png, .pdf"),
        (("--prior", "none.toml"), "there is no such file"),
        (("--prior", "-1"), "must be above 0"),
        (("--option", "samples"), "is not NAME=VALUE"),
    ],
)
def test_what_can_not_be_done_is_said_in_one_line(words, said):
    shown = run(*FEW, *words)
    assert shown.exit_code == 2 and said in shown.stderr
    assert len(shown.stderr.strip().splitlines()) == 1 and not shown.stdout
