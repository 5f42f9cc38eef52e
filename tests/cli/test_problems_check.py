"""`dowise check`: past records against the graph."""

import numpy as np
import pandas as pd
import pytest

from dowise import Belief, load_problem

PROBLEM = 'graph = "X -> Y; Z ?-> X; Z"\nreward = "Y"\nnon_manipulable = ["Z"]\n'


@pytest.fixture
def cli(cli):
    cli.write("p.toml", PROBLEM)
    return cli


def records(effect, count=200):
    """Return records in which Z changes Y by `effect`, and some values of Z are missing."""
    rng = np.random.default_rng(0)
    x, z = rng.integers(2, size=(2, count))
    y = (rng.random(count) < 0.5 + effect * (z - 0.5)).astype(int)
    arm = np.where(rng.random(count) < 0.5, [f"do(X={value})" for value in x], "do()")
    table = pd.DataFrame({"arm": arm, "X": x, "Z": z, "Y": y}).astype("string")
    table.loc[::40, "Z"] = None
    return table


def test_a_missing_edge_raises_an_alarm(cli):
    records(0.6).to_csv("records.csv", index=False)
    output = cli.run_text("check", "p.toml", "records.csv")
    for part in (
        "Alarm at level 0.05 at record",
        "Strongest: Z -> Y (e-value",
        "Z ?-> Y; Y <?> Z",
        "Z causes Y directly",
        "alarm needs",
        "Doubtful edges",
        "200 records",
        "Z was not seen",
    ):
        assert part in output, part
    report = cli.run_json("check", "p.toml", "records.csv")
    assert report["alarms"][0] == "Z -> Y" and report["suspected"][:2] == ["Z -> Y", "Y <-> Z"]
    assert 5 < report["since"] < 150 and report["records"] == 200
    assert {*report["edges"]} == {"Z -> X"} and report["edges"]["Z -> X"] < 0.5
    best = report["alternatives"][0]
    assert best["edge"] == "Z -> Y" and best["e_value"] > 1e6 and best["alarm"]
    assert np.log(best["e_value"]) == pytest.approx(best["log_e_value"])
    assert best["e_value"] > best["needed"] > 20
    assert report["unused"]["Z"] == {"Z was not seen": 5}
    belief = Belief(load_problem("p.toml"), evidence=True)
    belief.update_many(records(0.6))
    assert report["since"] == belief.evidence().since


def test_a_right_graph_raises_no_alarm(cli):
    records(0.0).to_csv("records.csv", index=False)
    output = cli.run_ok("check", "p.toml", "records.csv")
    quiet = "No alarm at level 0.05 in 200 records, and no hint of a missing edge."
    assert output.startswith(quiet)
    report = cli.run_json("check", "p.toml", "records.csv")
    assert report["alarms"] == report["suspected"] == [] and report["since"] is None


def test_stricter_levels_need_more_records(cli):
    records(0.6).to_csv("records.csv", index=False)
    usual, low, strict = (
        cli.run_json("check", "p.toml", "records.csv", *options)["since"]
        for options in ((), ("--alpha", "0.001"), ("--strict",))
    )
    assert usual == strict < low


def test_tables_in_several_forms_give_the_same_result(cli):
    table = records(0.6)
    table.to_csv("plain.csv", index=False)
    table.to_parquet("records.parquet")
    table.assign(Z=table["Z"].astype("float")).to_csv("floats.csv", index=False)
    table.to_csv("na.csv", index=False, na_rep="NA")
    table.to_csv("null.csv", index=False, na_rep="null")
    cli.write("blank.csv", "\n  \n" + (cli.folder / "plain.csv").read_text())
    names = ("plain.csv", "records.parquet", "floats.csv", "na.csv", "null.csv", "blank.csv")
    assert len({cli.run_ok("check", "p.toml", name, "--json") for name in names}) == 1


def test_labels_may_look_like_missing_values_and_numbers(cli):
    cli.write("p.toml", 'graph = "X -> Y"\nreward = "Y"\n[domains]\nX = ["NA", "1.0", "1"]\n')
    cli.write("records.csv", "X,Y\nNA,1\n1.0,0\n1,1\n")
    report = cli.run_json("check", "p.toml", "records.csv")
    assert report["used"] == 3 and report["unused"] == {}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("X,Y\n0,1\n0\n", "bad-rows"),
        ("\nX,Y\n0,1\n\n0,5\n", "bad-rows"),
        ("arm,Y\n,1\n", "bad-rows"),
        ("X,Y\n0,1.5\n", "bad-rows"),
        (",,\n", "missing-value"),
        ("X\tY\n0\t1\n", "unsupported-format"),
        (",X,Y\n0,0,1\n", "unknown-variable"),
    ],
)
def test_bad_tables_are_refused(cli, text, code):
    cli.write("bad.csv", text)
    assert cli.error_code("check", "p.toml", "bad.csv") == code


def test_a_table_without_rows_is_accepted(cli):
    cli.write("none.csv", "X,Y\n")
    output = cli.run_ok("check", "p.toml", "none.csv")
    assert output.startswith("There are no records: the table has no rows.")
    assert "No alarm" not in output


def test_the_picture_shows_suspected_edges(cli):
    for effect in (0.6, 0.0):
        records(effect).to_csv("records.csv", index=False)
        assert "ward.svg" in cli.run_ok("check", "p.toml", "records.csv", "--picture", "ward.svg")
        assert ("suspected" in (cli.folder / "ward.svg").read_text()) == (effect > 0)


def test_records_that_tell_nothing_about_the_reward_are_pointed_out_first(cli):
    cli.write("p.toml", 'graph = "Age -> X -> Y; Age -> Y"\nreward = "Y"\n')
    cli.write("records.csv", "X,Y\n" + "0,1\n" * 60)
    output = cli.run_ok("check", "p.toml", "records.csv")
    reason = "None of 60 records could be used for Y: the table has no column Age."
    assert output.startswith(reason) and "No alarm" not in output
    report = cli.run_json("check", "p.toml", "records.csv")
    assert report["used"] == 0 and report["records"] == 60
    cli.write("records.csv", "X,Y,Age\n" + "0,1,\n" * 60)
    assert "used for Y: Age was not seen." in cli.run_ok("check", "p.toml", "records.csv")


@pytest.mark.parametrize("effect", [0.6, 0.0])
def test_favoured_soft_edges_come_first_and_are_drawn(cli, effect):
    cli.write("p.toml", 'graph = "Z -> X -> Y"\nreward = "Y"\nsoft = 0.1\n')
    records(effect).to_csv("records.csv", index=False)
    output = cli.run_ok("check", "p.toml", "records.csv", "--picture", "ward.svg")
    favoured = cli.run_json("check", "p.toml", "records.csv")["favoured"]
    is_favoured = effect > 0
    assert ("Z -> Y" in favoured) == is_favoured
    assert ("Y <-> Z" in favoured) == is_favoured  # records can't tell it from Z -> Y
    assert output.startswith("The records favour") == is_favoured
    assert ("suspected" in (cli.folder / "ward.svg").read_text()) == is_favoured
    first_row = output.partition("Doubtful edges")[2].splitlines()[2]
    assert ("Z -> Y" in first_row and "positive" in first_row) == is_favoured


def test_edges_without_relevant_records_are_counted(cli):
    cli.write("p.toml", 'graph = "X -> Y; W -> Y; Z"\nreward = "Y"\n')
    cli.write("records.csv", "X,W,Y\n" + "0,1,1\n1,0,1\n" * 10)
    output = cli.run_ok("check", "p.toml", "records.csv")
    assert "Z -> Y" not in output and "without evidence; --json lists them" in output
    alternatives = cli.run_json("check", "p.toml", "records.csv")["alternatives"]
    assert [edge["values"] for edge in alternatives if edge["edge"] == "Z -> Y"] == [0]


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ('context = ["Z"]', "look alike, and Z can't be set to tell them apart"),
        ('non_manipulable = ["Z"]', "look alike, and Z can't be set to tell them apart"),
        ("", 'look alike until Z is set, which no arm does: arms = "all"'),
        ('arms = "all"', "look alike until Z is set."),
    ],
)
def test_advice_to_intervene_names_only_variables_that_can_be_set(cli, settings, advice):
    cli.write("p.toml", f'graph = "X -> Y; Z"\nreward = "Y"\n{settings}\n')
    records(0.9).to_csv("records.csv", index=False)
    assert advice in cli.run_text("check", "p.toml", "records.csv")
