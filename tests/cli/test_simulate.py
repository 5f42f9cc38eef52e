"""`dowise simulate`: labels and options of policies, figures."""

import json

import pytest

import dowise
from dowise.cli.arguments import parse_policy_options

RACE = ("--horizon", "20", "--trials", "4", "--workers", "1")


def test_options_are_those_of_the_policy_named(desk):
    page = desk.json(
        "simulate", "task1", "--policies", "ids,few=ids,z2-ts", *RACE, "--samples", "40",
        "--option", "few.samples=7", "--option", "z2-ts.refresh=0.05", "--option",
        "z2-ts.resamples=20", "--out", "race",
    )  # fmt: skip
    (file,) = (desk.folder / "race" / "calls").iterdir()
    spec = json.loads(file.read_text())["spec"]["policies"]
    assert {label: one["options"] for label, one in spec.items()} == {
        "ids": {"samples": 40},
        "few": {"samples": 7},
        "z2-ts": {"refresh": 0.05, "resamples": 20},
    }
    options = {"few": {"samples": 7}, "z2-ts": {"refresh": 0.05, "resamples": 20}}
    again = dowise.simulate(
        ["task1"], [("ids", "ids"), ("few", "ids"), "z2-ts"], horizon=20, trials=4,
        options={"ids": {"samples": 40}} | options,
    )  # fmt: skip
    assert page["final"] == again.as_dict()["final"]


def test_values_are_typed_as_toml_has_them():
    pairs = ["a.x=3", "a.y=0.05", "a.z=true", 'b.c:D.w="3"', "a.v=[1, 2]", "a.u=optimistic"]
    assert parse_policy_options(pairs, ["a", "b.c:D"]) == {
        "a": {"x": 3, "y": 0.05, "z": True, "v": [1, 2], "u": "optimistic"},
        "b.c:D": {"w": "3"},
    }


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("refresh=0.05", "the policy is missing (expected ids.refresh=0.05)"),
        (".refresh", "the policy is missing (expected ids.refresh=1000)"),
        ("z2ts.refresh=0.05", "'z2ts' is not among the policies (did you mean 'z2-ts'?): they are"),
        ("z2-ts.refesh=0.05", "has no option 'refesh' (did you mean 'refresh'?) (available:"),
        ("z2-ts.refresh=", "the value of refresh is missing (expected z2-ts.refresh=1000)"),
        ("z2-ts.refresh=often", "refresh='often'"),
    ],
)
def test_an_option_that_can_t_be_is_refused_before_anything_runs(desk, option, message):
    args = ("simulate", "task1", "--policies", "ids,z2-ts", *RACE, "--out", "race")
    assert message in desk.fails(*args, "--option", option)
    assert not (desk.folder / "race").exists()


def test_an_option_that_is_given_twice(desk):
    twice = ("--option", "ids.samples=5", "--option", "ids.samples=6")
    refused = desk.fails("simulate", "task1", "--policies", "ids", *RACE, *twice)
    assert "the option samples is given twice" in refused


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ("a=ts,a=ucb", "two policies are called 'a'"),
        ("ts,ts", "two policies are called 'ts'"),
        ("a=", "the policy is missing (expected a=ids)"),
        ("a=tss", "unknown policy 'tss' (did you mean 'ts'?)"),
    ],
)
def test_names_in_a_race(desk, policies, message):
    assert message in desk.fails("simulate", "task1", "--policies", policies, *RACE)


@pytest.mark.slow
def test_the_figure(desk):
    args = ("simulate", "task1", "--policies", "ucb,random", *RACE)
    shown = desk.well(*args, "--figure", "race.png", "--out", "race")
    assert shown.endswith("The regret is drawn in race.png\n")
    drawn = (desk.folder / "race.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    page = desk.json(*args, "--figure", "again.png")
    assert page["figure"] == "again.png" and page["out"] is None
    assert (desk.folder / "again.png").read_bytes() == drawn
    wide = desk.json(*args, "--figure", "wide.png", "--band", "sd")
    assert wide["final"] == page["final"] and (desk.folder / "wide.png").read_bytes() != drawn
    desk.well(*args, "--figure", "kept/race.svg", "--out", "kept")  # a folder that is yet to be
    assert (desk.folder / "kept" / "race.svg").read_text("utf-8").startswith("<?xml")
    desk.well(*args, "--figure", "kept/race.svg", "--out", "kept")  # goes on beside the picture


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        ("race.gif", "by its ending: use one of .svg, .png, .pdf"),
        ("race", "by its ending: use one of .svg, .png, .pdf"),
        ("none/race.png", "there is no folder 'none'"),
        ("folder.png", "it is a folder"),
    ],
)
def test_a_figure_that_can_t_be_drawn_is_refused_before_the_race(
    desk, monkeypatch, figure, message
):
    (desk.folder / "folder.png").mkdir()
    monkeypatch.setattr("dowise.simulation.simulate", lambda *_, **__: pytest.fail("it was run"))
    refused = desk.fails("simulate", "task1", "--policies", "ucb", *RACE, "--figure", figure)
    assert message in refused


def test_json_has_the_difference_of_every_two_policies_on_every_problem(desk):
    args = ("simulate", "task1", "task2", "--policies", "ucb,random,ts", *RACE)
    page = desk.json(*args)
    pairs = [("random", "ucb"), ("ts", "ucb"), ("ts", "random")]
    assert [(row["problem"], row["policy"], row["than"]) for row in page["differences"]] == [
        (problem, *pair) for problem in ("task1", "task2") for pair in pairs
    ]
    final = dowise.simulate(
        ["task1", "task2"], ["ucb", "random", "ts"], horizon=20, trials=4
    ).final()
    for row in page["differences"]:
        paired = final.loc[row["problem"]][row["policy"]] - final.loc[row["problem"]][row["than"]]
        assert row["mean"] == pytest.approx(paired.mean())
        assert row["standard_error"] == pytest.approx(paired.std() / 2)
        assert row["low"] < row["mean"] < row["high"] and row["trials"] == 4
    shown = desk.well(*args)  # for people, against the first
    assert "random − ucb" in shown and "ts − random" not in shown
