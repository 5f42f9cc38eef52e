"""`dowise simulate` and `dowise reproduce`."""

import json

import pytest

import dowise

OPTIONS = ("--horizon", "20", "--trials", "4", "--workers", "1")


def result_files(cli):
    return sorted((cli.folder / "out" / "results").iterdir())


def test_simulate_prints_the_final_regret_and_where_results_are(cli):
    arguments = ("simulate", "task1", "--policies", "ts, ucb", "--horizon", "30", "--trials", "12")
    arguments += ("--workers", "1")
    output = cli.run_ok(*arguments, "--out", "out")
    assert "final regret" in output and "The results are in out" in output
    assert len(result_files(cli)) == 3  # trials 0 to 9 and 10 to 11 of ts, and all of ucb
    document = cli.run_json(*arguments)
    ts, ucb = document["final"]
    assert (ts["problem"], ts["policy"], ts["trials"]) == ("task1", "ts", 12)
    assert ucb["policy"] == "ucb"
    (pair,) = document["differences"]
    assert (pair["problem"], pair["policy"], pair["than"]) == ("task1", "ucb", "ts")
    assert pair["mean"] == pytest.approx(ucb["regret"] - ts["regret"])
    assert pair["low"] < pair["mean"] < pair["high"]
    assert "ucb − ts" in output and f"{pair['low']:+.2f} to {pair['high']:+.2f}" in output
    cli.run_ok(*arguments, "--seed", "1", "--out", "out")
    assert len(result_files(cli)) == 6  # other settings have other files


def test_json_has_the_difference_of_every_two_policies_on_every_problem(cli):
    arguments = ("simulate", "task1", "task2", "--policies", "ucb,random,ts", *OPTIONS)
    document = cli.run_json(*arguments)
    pairs = [("random", "ucb"), ("ts", "ucb"), ("ts", "random")]
    assert [(row["problem"], row["policy"], row["than"]) for row in document["differences"]] == [
        (problem, *pair) for problem in ("task1", "task2") for pair in pairs
    ]
    result = dowise.simulate(["task1", "task2"], ["ucb", "random", "ts"], horizon=20, trials=4)
    for row in document["differences"]:
        regrets = result.final().loc[row["problem"]]
        paired = regrets[row["policy"]] - regrets[row["than"]]
        assert row["mean"] == pytest.approx(paired.mean())
        assert row["standard_error"] == pytest.approx(paired.std() / 2)
        assert row["low"] < row["mean"] < row["high"] and row["trials"] == 4
    output = cli.run_ok(*arguments)  # on a terminal, compared with the first
    assert "random − ucb" in output and "ts − random" not in output


def test_options_belong_to_the_policy_that_is_named(cli):
    options = {"few": {"samples": 7}, "z2-ts": {"refresh": 0.05, "resamples": 20}}
    words = [
        word
        for label, values in options.items()
        for name, value in values.items()
        for word in ("--option", f"{label}.{name}={value}")
    ]
    policies = ("--policies", "ids,few=ids,z2-ts", "--samples", "40")
    document = cli.run_json("simulate", "task1", *policies, *OPTIONS, *words, "--out", "out")
    (file,) = (cli.folder / "out" / "calls").iterdir()
    spec = json.loads(file.read_text())["spec"]["policies"]
    options["ids"] = {"samples": 40}
    assert {label: policy["options"] for label, policy in spec.items()} == options
    policies = [("ids", "ids"), ("few", "ids"), "z2-ts"]
    result = dowise.simulate(["task1"], policies, horizon=20, trials=4, options=options)
    assert document["final"] == result.as_dict()["final"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--option .refresh", "missing-value"),
        ("--option z2ts.refresh=0.05", "unknown-policy"),
        ("--option z2-ts.refresh=", "missing-value"),
        ("--option z2-ts.refresh=often", "invalid-number"),
        ("--option ids.samples=5 --option ids.samples=6", "duplicate-name"),
        ("--policies a=ts,a=ucb", "duplicate-name"),
        ("--policies a=", "missing-value"),
        ("--figure none/race.png", "unwritable-file"),
        ("--figure folder.png", "unwritable-file"),
    ],
)
def test_nothing_runs_after_an_error(cli, monkeypatch, words, code):
    (cli.folder / "folder.png").mkdir()
    if "--figure" in words:
        monkeypatch.setattr("dowise.simulation.simulate", lambda *_, **__: pytest.fail("it ran"))
    arguments = ("simulate", "task1", "--policies", "ids,z2-ts", *OPTIONS)
    assert cli.error_code(*arguments, "--out", "out", *words.split()) == code
    assert not (cli.folder / "out").exists()


def test_simulate_plays_in_the_world_of_a_bif_file(cli):
    options = ("--policies", "ts,ucb", *OPTIONS)
    document = cli.run_json("simulate", "asia", "--world", "bif", *options)
    world = dowise.Environment.from_bif("asia")
    means = dowise.simulate([world], ["ts", "ucb"], horizon=20, trials=4).final().mean()
    assert {row["policy"]: row["regret"] for row in document["final"]} == pytest.approx({**means})
    assert {row["problem"] for row in document["final"]} == {"asia"}


def test_simulate_draws_strong_worlds_with_edges_from_their_priors(cli):
    cli.write("p.toml", 'name = "p"\ngraph = "X -> Y; Z ?-> Y; X <-> Y"\nreward = "Y"\n')
    arguments = ("simulate", "p.toml", "--policies", "ucb", *OPTIONS)
    choices = ((), ("--strong",), ("--edges", "prior"), ("--strong", "--edges", "prior"))
    regrets = [cli.run_json(*arguments, *words)["final"][0]["regret"] for words in choices]
    assert len({*regrets}) == 4
    result = dowise.simulate(["p.toml"], ["ucb"], horizon=20, trials=4, strong=True, edges="prior")
    assert regrets[3] == pytest.approx(float(result.final()["ucb"].mean()))


@pytest.mark.filterwarnings("default")
def test_damaged_results_are_computed_again_with_a_note(cli):
    arguments = ("simulate", "task1", "--policies", "ucb", "--horizon", "30", "--trials", "60")
    arguments += ("--workers", "1", "--json", "--out", cli.folder / "out")
    first = cli.run_ok(*arguments)
    file = result_files(cli)[1]
    content = bytearray(file.read_bytes())
    content[60:68] = bytes(x ^ 255 for x in content[60:68])
    file.write_bytes(content)
    again = cli.run(*arguments)
    assert again.exit_code == 0 and again.stdout == first
    assert f"Note: {file} is damaged" in again.stderr


@pytest.mark.slow
def test_simulate_draws_a_figure(cli):
    arguments = ("simulate", "task1", "--policies", "ucb,random", *OPTIONS)
    output = cli.run_ok(*arguments, "--figure", "race.png", "--out", "out")
    assert output.endswith("The regret is drawn in race.png\n")
    drawn = (cli.folder / "race.png").read_bytes()
    document = cli.run_json(*arguments, "--figure", "again.png")
    assert document["figure"] == "again.png" and document["out"] is None
    assert (cli.folder / "again.png").read_bytes() == drawn
    assert cli.run_json(*arguments, "--figure", "wide.png", "--band", "sd") == {
        **document,
        "figure": "wide.png",
    }
    assert (cli.folder / "wide.png").read_bytes() != drawn
    for _ in range(2):  # into the folder of results, before and after it exists
        cli.run_ok(*arguments, "--figure", "kept/race.svg", "--out", "kept")
    assert (cli.folder / "kept" / "race.svg").read_text("utf-8").startswith("<?xml")


@pytest.mark.slow
def test_reproduce_writes_a_report_of_a_panel(cli):
    options = ("--trials", "2", "--horizon", "20", "--samples", "40", "--workers", "1")
    output = cli.run_text("reproduce", "task2", *options, "--out", "out")
    assert "task2" in output and "The report is out/report.html" in output
    assert "are not shown by this number of trials" in output
    assert (cli.folder / "out" / "task2.pdf").exists()
