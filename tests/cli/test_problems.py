"""`dowise problems`, `arms` and `bounds`."""

import json
from contextlib import contextmanager

import pytest

import dowise

DETAILED = """\
graph = "U -> X; U -> Y; C -> X -> Y; Z ?-> Y; W -> Y"
reward = "Y"
context = ["C"]
hidden = ["U"]
non_manipulable = ["Z"]
minimise = true
forbidden = ["do(W=0, X=b)"]
[domains]
X = ["a", "b"]
U = ["u", "v", "w"]
[reward_values]
well = 0.0
ill = 3.0
"""


def test_problems_lists_builtin_problems_with_their_arms(cli):
    document = cli.run_json("problems")
    counts = {entry["name"]: entry["arms"] for entry in document["problems"]}
    sizes = {"task1": 3, "task2": 4, "task3": 9, "healthcare": 4}
    assert counts | sizes == counts
    output = cli.run_ok("problems")
    assert all(name in output for name in counts)


def test_arms_lists_intervention_sets_and_arms(cli):
    output = cli.run_text("arms", "healthcare")
    for part in (
        "maximise",
        "{Diet, Treatment}",
        "do(Diet=0, Treatment=1)",
        "set Diet to 0 and Treatment to 1",
        "doing nothing never beats",
    ):
        assert part in output
    document = cli.run_json("arms", "task2")
    assert document["intervention_sets"] == [["X1"], ["X2"]]
    assert document["arms"] == [{"X1": "0"}, {"X1": "1"}, {"X2": "0"}, {"X2": "1"}]


def test_arms_as_json_describes_the_whole_problem(cli):
    cli.write("detailed.toml", DETAILED)
    document = cli.run_json("arms", "detailed.toml")
    assert document["name"] == "detailed" and document["reward"] == "Y" and document["minimise"]
    roles = {"manipulable": "WX", "context": "C", "hidden": "U", "reward": "Y"}
    roles |= {"non_manipulable": "Z"}
    assert document["roles"] == {name: role for role, names in roles.items() for name in names}
    assert document["domains"]["U"] == ["u", "v", "w"] and document["domains"]["C"] == ["0", "1"]
    assert document["domains"]["Y"] == ["well", "ill"] and document["domains"]["X"] == ["a", "b"]
    assert document["reward_values"] == {"well": 0.0, "ill": 3.0}
    assert document["forbidden"] == [{"W": "0", "X": "b"}] and document["kind"] == "minimal"
    assert document["edge_priors"] == {"Z -> Y": 0.5} and document["hidden"] == ["U"]
    drawn = dowise.load_problem("detailed.toml").drawn
    assert dowise.CausalGraph.parse(document["graph"]) == drawn


def test_an_unnamed_problem_has_the_name_of_its_file(cli):
    text = 'graph = "X -> Y"\nreward = "Y"\n'
    first, second = cli.write("a/ward.toml", text), cli.write("b/ward.toml", text)
    assert cli.run_ok("arms", first).startswith("ward\n")
    assert dowise.load_problem(first) == dowise.load_problem(second)
    options = ("--policies", "random", "--horizon", "2", "--trials", "1")
    assert "ward" in cli.run_ok("simulate", first, *options)
    assert cli.error_code("simulate", first, second, *options) == "duplicate-name"
    dowise.load_problem(first).save("copy.toml")
    assert dowise.load_problem("copy.toml").name == "ward"
    first.write_text('name = "seven"\n' + text)
    assert dowise.load_problem(first).name == "seven"


def test_arms_list_hidden_variables_and_doubtful_edges(cli):
    cli.write(
        "doubtful.toml",
        'graph = "U -> X; U -> Y; Z ?-> X -> Y; Z <-> Y"\n'
        'reward = "Y"\nhidden = ["U"]\nsoft = 0.1\n[edge_prior]\n"Y <-> Z" = 0.8\n',
    )
    output = cli.run_text("arms", "doubtful.toml")
    for part in (
        "hidden, never recorded U",
        "doubtful edges Y <-> Z with probability 0.8 Z -> X with probability 0.5",
        "2 more, not drawn, each with probability 0.1 (soft)",
    ):
        assert part in output
    document = cli.run_json("arms", "doubtful.toml")
    assert document["hidden"] == ["U"] and document["soft"] == 0.1
    assert document["edge_priors"]["Y <-> Z"] == 0.8
    assert "doubtful" not in cli.run_ok("arms", "task1")


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_arms_draws_a_picture(cli, suffix):
    path = cli.folder / f"graph.{suffix}"
    assert str(path) in cli.run_ok("arms", "task3", "--picture", path).replace("\n", "")
    assert path.stat().st_size > 1000
    assert len(cli.run_json("arms", "task3", "--picture", path)["arms"]) == 9


@pytest.mark.parametrize(
    ("arms", "heading"), [('"all"', "4 intervention sets\n"), ('["do(X=1)"]', "1 intervention set")]
)
def test_arms_that_were_listed_are_not_claimed_to_be_optimal(cli, arms, heading):
    cli.write("p.toml", f'graph = "Z -> X -> Y; Z -> Y"\nreward = "Y"\narms = {arms}\n')
    assert heading in cli.run_ok("arms", "p.toml")


def test_a_reward_that_nothing_affects_has_one_arm(cli):
    cli.write("lonely.toml", 'graph = "Y -> X"\nreward = "Y"\n')
    message = "No variable that you can set has an effect on Y, so do() is the only arm."
    assert message in cli.run_text("arms", "lonely.toml")


def test_long_lists_are_truncated_except_in_json(cli):
    cli.write("wide.toml", 'graph = "A -> Y; B -> Y; C -> Y; D -> Y; E -> Y; F -> Y"\nreward = "Y"')
    assert "and 24 more; --json lists them all" in cli.run_ok("arms", "wide.toml")
    assert len(cli.run_json("arms", "wide.toml")["arms"]) == 64


def test_a_minimised_reward_equals_a_maximised_negative_one(cli):
    text = 'graph = "C -> X -> Y; C -> Y"\nreward = "Y"\ncontext = ["C"]\nname = "ward"\n'
    values = "[reward_values]\nalive = 0\nill = {}\ndead = {}\n"
    cli.write("down.toml", text + "minimise = true\n" + values.format(2, 10))
    cli.write("up.toml", text + values.format(-2, -10))
    assert "minimise Y (best alive, worst dead)" in cli.run_text("arms", "down.toml")
    assert "maximise Y (best alive, worst dead)" in cli.run_text("arms", "up.toml")
    for words in (
        "bounds {} --horizon 5 --samples 500 --policy-samples 200 --json",
        "simulate {} --policies ts,ucb,ids --horizon 30 --trials 4 --workers 1 --json",
    ):
        down, up = (cli.run_ok(*words.format(f).split()) for f in ("down.toml", "up.toml"))
        assert down == up != ""


def test_bounds_prints_the_bounds_of_each_context(cli):
    output = cli.run_ok("bounds", "task2", "--horizon", "20", "--samples", "5000")
    assert "4 arms, 2 contexts, T = 20" in output and "C=0" in output and "C=1" in output
    assert "Theorem 2, IDS, N = 1,000" in output and "infinite" in output
    text = "in 20 of 20 rounds; γ_t is infinite in 20 of 20 rounds, so Theorem 2 says nothing"
    assert text in " ".join(output.split())


def test_bounds_prints_json(cli):
    document = cli.run_json("bounds", "task1", "--horizon", "1000", "--policy-samples", "50")
    assert document["theorem_2"] == "inf"
    assert document["p_best_radius"] == pytest.approx(0.0093, abs=5e-5)
    assert document["worst_coefficient"] == pytest.approx(1.2837, abs=5e-5)
    assert len(document["p_best"]) == document["arms"] == 3


def test_bounds_draws_ten_samples_per_arm_for_many_arms(cli):
    cli.write(
        "many.toml",
        'graph = "A -> Y; B -> Y; C -> Y"\nreward = "Y"\n[domains]\n'
        "A = [0, 1, 2, 3, 4, 5, 6]\nB = [0, 1, 2, 3, 4, 5, 6, 7]\nC = [0, 1, 2, 3, 4, 5]\n",
    )
    bounds = ("bounds", "many.toml", "--horizon", "2")
    assert "With N = 3,360 draws per round, 10 per arm, L" in cli.run_text(*bounds)
    message = cli.error(*bounds, "--policy-samples", "1000")
    assert "--policy-samples 1000 must be at least 3,360" in message


def test_bounds_report_progress(cli, monkeypatch):
    labels = set()

    @contextmanager
    def progress_bar(off_terminal):
        assert off_terminal
        yield lambda label, _completed, _total: labels.add(label)

    monkeypatch.setattr("dowise.cli.problems.progress_bar", progress_bar)
    json.loads(cli.run_ok("bounds", "task1", "--horizon", "3", "--samples", "1000", "--json"))
    assert len(labels) == 3


def test_a_pooled_prior_is_named(cli):
    cli.write("p.toml", 'graph = "X -> Y"\nreward = "Y"\nprior = "pooled"\n')
    assert "pooled: rows of a table are learned together" in cli.run_text("arms", "p.toml")
