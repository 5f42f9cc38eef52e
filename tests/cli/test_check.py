"""`dowise check`: records against a graph."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from dowise import Belief, load_problem
from dowise.cli.main import main

PAGE = 'graph = "X -> Y; Z ?-> X; Z"\nreward = "Y"\nnon_manipulable = ["Z"]\n'


@pytest.fixture
def run():
    def call(*arguments):
        return CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)

    return call


@pytest.fixture
def problem(tmp_path):
    path = tmp_path / "ward.toml"
    path.write_text(PAGE)
    return path


def records(effect, count=200):
    """Z changes Y by `effect`, and X not at all; a few values of Z are missing."""
    rng = np.random.default_rng(0)
    x, z = rng.integers(2, size=(2, count))
    y = (rng.random(count) < 0.5 + effect * (z - 0.5)).astype(int)
    arm = np.where(rng.random(count) < 0.5, [f"do(X={value})" for value in x], "do()")
    table = pd.DataFrame({"arm": arm, "X": x, "Z": z, "Y": y}).astype("string")
    table.loc[::40, "Z"] = None
    return table


def test_an_arrow_that_is_missing_is_accused(run, problem, tmp_path):
    data = tmp_path / "records.csv"
    records(0.6).to_csv(data, index=False)
    result = run("check", problem, data)
    assert result.exit_code == 0
    shown = " ".join(result.stdout.split())
    for part in ("Alarm at level 0.05, since record", "Accused: Z -> Y", "Z ?-> Y; Y <?> Z",
                 "Z causes Y directly", "very strongly for it", "Doubtful edges",
                 "200 records", "X was left out of", "Z was not seen"):  # fmt: skip
        assert part in shown, part
    found = json.loads(run("check", problem, data, "--json").stdout)
    assert found["alarms"][0] == "Z -> Y" and found["suspected"][:2] == ["Z -> Y", "Y <-> Z"]
    assert 5 < found["since"] < 150 and found["records"] == 200
    assert set(found["edges"]) == {"Z -> X"} and found["edges"]["Z -> X"] < 0.5
    best = found["alternatives"][0]
    assert best["edge"] == "Z -> Y" and best["bayes_factor"] > 1e6 and best["alarm"]
    assert np.log(best["bayes_factor"]) == pytest.approx(best["log_bayes_factor"])
    assert found["unused"]["Z"] == {"Z was not seen": 5}
    belief = Belief(load_problem(problem), evidence=True)
    belief.update_many(records(0.6))
    assert found["since"] == belief.evidence().since


def test_a_right_graph_is_not_accused_and_stricter_levels_take_longer(run, problem, tmp_path):
    right, wrong = tmp_path / "right.csv", tmp_path / "wrong.csv"
    records(0.0).to_csv(right, index=False)
    records(0.6).to_csv(wrong, index=False)
    shown = run("check", problem, right).stdout
    assert shown.startswith("No alarm at level 0.05 in 200 records.") and "Accused" not in shown
    found = json.loads(run("check", problem, right, "--json").stdout)
    assert found["alarms"] == [] and found["since"] is None and found["suspected"] == []
    ways = ((), ("--alpha", "0.001"), ("--strict",))
    since = [
        json.loads(run("check", problem, wrong, "--json", *way).stdout)["since"] for way in ways
    ]
    assert since[0] < since[1] and since[0] < since[2]
    assert "(strict)" in run("check", problem, wrong, "--strict").stdout


def test_parquet_and_csv_say_the_same(run, problem, tmp_path):
    table = records(0.3)
    table.to_csv(tmp_path / "records.csv", index=False)
    table.to_parquet(tmp_path / "records.parquet")
    shown = [run("check", problem, tmp_path / f"records.{x}", "--json").stdout
             for x in ("csv", "parquet")]  # fmt: skip
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X,Y\n0,1\n0\n", "line 3 has 1 values, but there are 2 columns"),
        ("X,X\n0,1\n", "two columns are named 'X'"),
        ("X,W\n0,1\n", "a column 'W', which is not a variable"),
        ("X,Y\n0,5\n", "'5'"),
        ("arm,Y\ndo(Z=1),1\n", "Z can't be set"),
        ("arm,Y\n,1\n", "has no arm"),
        ('X,Y\n"0,1\n', "is not valid CSV"),
        ("", "the file is empty"),
        (",,\n", "the table has no column names"),
        ("X;Y\n0;1\n", "separated by semicolons: separate them by commas"),
        ("X\tY\n0\t1\n", "separated by tabs"),
        (",X,Y\n0,0,1\n", "to_csv(path, index=False)"),
        ("Unnamed: 0,X,Y\n0,0,1\n", "to_csv(path, index=False)"),
        ("\nX,Y\n0,1\n\n0,5\n", "bad.csv: line 5: Y has no value '5'"),
        ("X,Y\n0,1.5\n", "Y has no value '1.5'"),
        ("arm,X,Y\ndo(X=1),0,1\n", "bad.csv: line 2: do(X=1) set X=1"),
    ],
)
def test_bad_data_is_one_line_and_status_2(run, problem, tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    result = run("check", problem, tmp_path / "bad.csv")
    assert result.exit_code == 2 and message in result.stderr and result.stdout == ""
    assert result.stderr.startswith("Error: ") and len(result.stderr.splitlines()) == 1


def test_other_bad_input(run, problem, tmp_path):
    (tmp_path / "bad.parquet").write_text("X,Y\n")
    for data, message in (
        ("bad.parquet", "not a Parquet file, or a damaged one"),
        ("no.csv", "no such file"),
    ):
        result = run("check", problem, tmp_path / data)
        assert result.exit_code == 2 and message in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert run("check", problem, tmp_path / "no.csv", "--alpha", "2").exit_code == 2
    (tmp_path / "none.csv").write_text("X,Y\n")
    shown = run("check", problem, tmp_path / "none.csv").stdout
    assert shown.startswith("There are no records: the table has no rows.")
    assert "No alarm" not in shown


def test_the_picture_has_what_is_suspected(run, problem, tmp_path):
    data, path = tmp_path / "records.csv", tmp_path / "ward.svg"
    for effect, suspected in ((0.6, True), (0.0, False)):
        records(effect).to_csv(data, index=False)
        result = run("check", problem, data, "--picture", path)
        assert result.exit_code == 0 and str(path) in result.stdout.replace("\n", "")
        assert ("suspected" in path.read_text()) == suspected
    bad = run("check", problem, data, "--picture", tmp_path / "ward.bmp")
    assert bad.exit_code == 2 and ".svg" in bad.stderr


def test_cells_as_pandas_and_others_write_them(run, problem, tmp_path):
    table = records(0.6)
    table.to_csv(tmp_path / "plain.csv", index=False)
    numbers = table.assign(Z=table["Z"].astype("float"))
    assert "0.0" in numbers.to_csv()
    numbers.to_csv(tmp_path / "floats.csv", index=False)
    expected = run("check", problem, tmp_path / "plain.csv", "--json").stdout
    assert run("check", problem, tmp_path / "floats.csv", "--json").stdout == expected
    for text in ("NA", "NaN", "N/A", "null"):
        table.to_csv(tmp_path / "na.csv", index=False, na_rep=text)
        assert run("check", problem, tmp_path / "na.csv", "--json").stdout == expected
    (tmp_path / "late.csv").write_text("\n  \n" + (tmp_path / "plain.csv").read_text())
    assert run("check", problem, tmp_path / "late.csv", "--json").stdout == expected


def test_labels_stay_labels(run, tmp_path):
    page = 'graph = "X -> Y"\nreward = "Y"\n[domains]\nX = ["NA", "1.0", "1"]\n'
    (tmp_path / "ward.toml").write_text(page)
    (tmp_path / "records.csv").write_text("X,Y\nNA,1\n1.0,0\n1,1\n")
    found = json.loads(
        run("check", tmp_path / "ward.toml", tmp_path / "records.csv", "--json").stdout
    )
    assert found["used"] == 3 and found["unused"] == {}


def test_records_that_say_nothing_of_the_reward_are_said_loudly(run, tmp_path):
    (tmp_path / "ward.toml").write_text('graph = "Age -> X -> Y; Age -> Y"\nreward = "Y"\n')
    data = tmp_path / "records.csv"
    data.write_text("X,Y\n" + "0,1\n" * 60)
    shown = run("check", tmp_path / "ward.toml", data).stdout
    first = "None of 60 records could be used for Y: the table has no column Age."
    assert shown.startswith(first) and "No alarm" not in shown
    found = json.loads(run("check", tmp_path / "ward.toml", data, "--json").stdout)
    assert found["used"] == 0 and found["records"] == 60
    data.write_text("X,Y,Age\n" + "0,1,\n" * 60)
    assert "used for Y: Age was not seen." in run("check", tmp_path / "ward.toml", data).stdout


def test_soft_edges_that_the_records_favour_come_first_and_are_drawn(run, tmp_path):
    (tmp_path / "ward.toml").write_text('graph = "Z -> X -> Y"\nreward = "Y"\nsoft = 0.1\n')
    data, path = tmp_path / "records.csv", tmp_path / "ward.svg"
    for effect in (0.6, 0.0):
        records(effect).to_csv(data, index=False)
        shown = run("check", tmp_path / "ward.toml", data, "--picture", path).stdout
        found = json.loads(run("check", tmp_path / "ward.toml", data, "--json").stdout)
        is_there = effect > 0
        assert ("Z -> Y" in found["favoured"]) == is_there
        assert shown.startswith("The records favour") == is_there
        assert ("suspected" in path.read_text()) == is_there
        table = shown.partition("Doubtful edges")[2].splitlines()
        assert ("Z -> Y" in table[2] and "for it" in table[2]) == is_there
        assert ("Y <-> Z" in found["favoured"]) == is_there  # which looks like it


def test_edges_that_no_record_tells_of_are_counted_not_listed(run, tmp_path):
    (tmp_path / "ward.toml").write_text('graph = "X -> Y; W -> Y; Z"\nreward = "Y"\n')
    data = tmp_path / "records.csv"
    data.write_text("X,W,Y\n" + "0,1,1\n1,0,1\n" * 10)
    shown = run("check", tmp_path / "ward.toml", data).stdout
    assert "Z -> Y" not in shown and "that no record tells of left out" in shown
    assert "20 values" in shown
    found = json.loads(run("check", tmp_path / "ward.toml", data, "--json").stdout)
    assert {"edge": "Z -> Y", "values": 0} in [
        {key: one[key] for key in ("edge", "values")} for one in found["alternatives"]
    ]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('context = ["Z"]', "look alike, and Z can't be set to tell them apart"),
        ('non_manipulable = ["Z"]', "look alike, and Z can't be set to tell them apart"),
        ("", 'look alike until Z is set, which no arm does: arms = "all"'),
        ('arms = "all"', "look alike until Z is set."),
    ],
)
def test_the_advice_names_only_what_can_be_set(run, tmp_path, more, words):
    (tmp_path / "ward.toml").write_text(f'graph = "X -> Y; Z"\nreward = "Y"\n{more}\n')
    records(0.9).to_csv(tmp_path / "records.csv", index=False)
    shown = " ".join(run("check", tmp_path / "ward.toml", tmp_path / "records.csv").stdout.split())
    assert words in shown
