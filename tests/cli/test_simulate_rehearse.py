"""`dowise rehearse`."""

import re

import pytest

REHEARSE = ("rehearse", "task1", "--horizon", "6", "--worlds", "2", "--looks", "3")
REHEARSE += ("--workers", "1")
COSTS = 'graph = "X -> Y"\nreward = "Y"\n[reward_values]\n0 = 100\n1 = 9000\n'
COLUMNS = ["round", "regret", "at random", "stopping", "truly", "sure", "right", "advised"]


def test_rehearse_prints_a_row_per_look(cli):
    output = cli.run_ok(*REHEARSE)
    assert "In 2 worlds drawn from the prior, commit-kg over 6 rounds:" in output
    rounds = [line.split()[0] for line in output.splitlines() if line.startswith("      ")]
    assert rounds == ["0", "2", "4", "6"]


def test_rehearse_prints_json(cli):
    options = ("--delay", "2", "--policy", "ts", "--option", "prior=2")
    document = cli.run_json(*REHEARSE, *options)
    assert document["policy"] == "ts" and document["delay"] == 2 and document["prior"] == 2
    assert [look["round"] for look in document["looks"]] == [0, 2, 4, 6]
    assert document["rounds_until_stop"].keys() >= {"median", "low", "high", "share_never"}


def test_the_default_tolerance_is_a_hundredth_of_the_range_of_rewards(cli):
    cli.write("costs.toml", COSTS)
    costs = ["costs.toml" if word == "task1" else word for word in REHEARSE]
    assert cli.run_json(*costs)["tolerance"] == 89
    assert cli.run_json(*costs, "--tolerance", "5")["tolerance"] == 5
    assert cli.run_json(*REHEARSE)["tolerance"] == 0.01


@pytest.mark.parametrize(
    ("width", "headers"),
    [
        (80, [COLUMNS]),
        (60, [COLUMNS[:7], ["round", *COLUMNS[7:]]]),
        (30, [COLUMNS[:3], ["round", *COLUMNS[3:6]], ["round", *COLUMNS[6:]]]),
    ],
)
def test_a_table_that_is_too_wide_is_split_between_columns(cli, monkeypatch, width, headers):
    monkeypatch.setenv("COLUMNS", str(width))
    cli.write("costs.toml", COSTS)
    output = cli.run_ok(*("costs.toml" if word == "task1" else word for word in REHEARSE))
    parts = [part for part in output.split("\n\n") if part.split()[0] == "round"]
    table = [line for part in parts for line in part.splitlines()]
    assert max(map(len, output.splitlines())) <= width
    assert len(table) == 5 * len(headers) and "e+0" not in output
    cells = [re.split("  +", line.strip()) for line in table]
    assert cells[::5] == headers
    for i, header in enumerate(headers):
        rows = cells[5 * i + 1 : 5 * i + 5]
        assert [row[0] for row in rows] == ["0", "2", "4", "6"]
        assert {len(row) for row in rows} == {len(header)}
    assert re.search(r"\d,\d{3}", "".join(table))


def test_rehearse_draws_a_figure_and_reads_a_prior_file(cli):
    cli.write("prior.toml", "Y = [1.0, 2.0]\n")
    document = cli.run_json(*REHEARSE, "--prior", "prior.toml", "--figure", "r.svg")
    assert document["prior"] == {"Y": [1.0, 2.0]}
    assert (cli.folder / "r.svg").read_text().startswith("<?xml")
