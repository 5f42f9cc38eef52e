"""Commands on problems, and what all commands share."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

import dowise
from dowise.cli.main import _make_warning_printer, main
from dowise.errors import DowiseWarning


@pytest.fixture
def run():
    def call(*arguments):
        return CliRunner().invoke(main, arguments, catch_exceptions=False)

    return call


def test_arms_as_a_table(run):
    result = run("arms", "healthcare")
    assert result.exit_code == 0
    for part in ("maximise", "{Diet, Treatment}", "do(Diet=0, Treatment=1)",
                 "set Diet to 0 and Treatment to 1", "doing nothing never beats"):  # fmt: skip
        assert part in " ".join(result.stdout.split())


def test_arms_as_json(run):
    result = run("arms", "task2", "--json")
    document = json.loads(result.stdout)
    assert document["intervention_sets"] == [["X1"], ["X2"]]
    assert document["arms"] == [{"X1": "0"}, {"X1": "1"}, {"X2": "0"}, {"X2": "1"}]
    assert result.stderr == ""


def test_arms_as_json_say_all_that_a_program_needs(run, tmp_path):
    path = tmp_path / "ward.toml"
    path.write_text(
        'graph = "U -> X; U -> Y; C -> X -> Y; Z ?-> Y; W -> Y"\nreward = "Y"\ncontext = ["C"]\n'
        'hidden = ["U"]\nnon_manipulable = ["Z"]\nminimise = true\nforbidden = ["do(W=0, X=b)"]\n'
        '[domains]\nX = ["a", "b"]\nU = ["u", "v", "w"]\n[reward_values]\nwell = 0.0\nill = 3.0\n'
    )
    document = json.loads(run("arms", str(path), "--json").stdout)
    assert document["name"] == "ward" and document["reward"] == "Y" and document["minimise"]
    assert document["roles"] == {
        "C": "context", "U": "hidden", "W": "manipulable", "X": "manipulable", "Y": "reward",
        "Z": "non_manipulable",
    }  # fmt: skip
    assert document["domains"] == {
        "C": ["0", "1"], "U": ["u", "v", "w"], "W": ["0", "1"], "X": ["a", "b"],
        "Y": ["well", "ill"], "Z": ["0", "1"],
    }  # fmt: skip
    assert document["reward_values"] == {"well": 0.0, "ill": 3.0}
    assert document["forbidden"] == [{"W": "0", "X": "b"}] and document["kind"] == "minimal"
    assert document["edge_priors"] == {"Z -> Y": 0.5} and document["hidden"] == ["U"]
    assert dowise.CausalGraph.parse(document["graph"]) == dowise.load_problem(path).drawn


def test_an_unnamed_problem_has_its_files_name(run, tmp_path):
    page = 'graph = "X -> Y"\nreward = "Y"\n'
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "ward.toml").write_text(page)
    one, other = (tmp_path / folder / "ward.toml" for folder in ("a", "b"))
    assert run("arms", str(one)).stdout.startswith("ward\n")
    raced = run("simulate", str(one), "--policies", "random", "--horizon", "2", "--trials", "1")
    assert "ward" in raced.stdout and "problem 1" not in raced.stdout
    assert dowise.load_problem(one) == dowise.load_problem(other)
    dowise.load_problem(one).save(tmp_path / "copy.toml")
    assert dowise.load_problem(tmp_path / "copy.toml").name == "ward"
    one.write_text('name = "seven"\n' + page)
    assert dowise.load_problem(one).name == "seven"
    both = ("simulate", str(other), str(other), "--policies", "random", "--horizon", "2")
    refused = run(*both, "--trials", "1")
    assert refused.exit_code == 2 and "'ward'" in refused.stderr


def test_arms_say_what_is_hidden_and_in_doubt(run, tmp_path):
    path = tmp_path / "ward.toml"
    path.write_text(
        'graph = "U -> X; U -> Y; Z ?-> X -> Y; Z <-> Y"\n'
        'reward = "Y"\nhidden = ["U"]\nsoft = 0.1\n[edge_prior]\n"Y <-> Z" = 0.8\n'
    )
    told = " ".join(run("arms", str(path)).stdout.split())
    for part in (
        "hidden, never recorded U",
        "doubtful edges Y <-> Z with probability 0.8 Z -> X with probability 0.5",
        "2 more, not drawn, each with probability 0.1 (soft)",
    ):
        assert part in told
    document = json.loads(run("arms", str(path), "--json").stdout)
    assert document["hidden"] == ["U"] and document["soft"] == 0.1
    assert document["edge_priors"]["Y <-> Z"] == 0.8
    assert "doubtful" not in run("arms", "task1").stdout


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_arms_with_a_picture(run, tmp_path, ending):
    path = tmp_path / f"graph.{ending}"
    result = run("arms", "task3", "--picture", str(path))
    assert result.exit_code == 0 and str(path) in result.stdout.replace("\n", "")
    assert path.stat().st_size > 1000
    beside_json = run("arms", "task3", "--picture", str(path), "--json")
    assert len(json.loads(beside_json.stdout)["arms"]) == 9


def test_problems(run):
    listed = run("problems").stdout
    document = json.loads(run("problems", "--json").stdout)
    counts = {entry["name"]: entry["arms"] for entry in document["problems"]}
    assert {name: counts[name] for name in ("task1", "task2", "task3", "healthcare")} == {
        "task1": 3, "task2": 4, "task3": 9, "healthcare": 4,
    }  # fmt: skip
    assert all(name in listed for name in counts)


def test_version(run):
    written = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    assert run("--version").stdout == f"dowise {written['project']['version']}\n"
    assert dowise.__version__ == written["project"]["version"]


def test_the_heading_claims_no_more_than_is_known(run, tmp_path):
    path = tmp_path / "all.toml"
    for arms, heading in (
        ('"all"', "4 intervention sets\n"),
        ('["do(X=1)"]', "1 intervention set\n"),
    ):
        path.write_text(f'graph = "Z -> X -> Y; Z -> Y"\nreward = "Y"\narms = {arms}\n')
        assert heading in run("arms", str(path)).stdout


def test_the_best_value_of_the_reward_is_shown(run, tmp_path):
    path = tmp_path / "drug.toml"
    path.write_text(
        'graph = "Drug -> Outcome"\nreward = "Outcome"\n[domains]\nOutcome = ["alive", "dead"]\n'
    )
    assert "Outcome (best dead, worst alive)" in run("arms", str(path)).stdout


def test_a_reward_to_minimise(run, tmp_path):
    page = 'graph = "C -> X -> Y; C -> Y"\nreward = "Y"\ncontext = ["C"]\nname = "ward"\n'
    down, up = tmp_path / "down.toml", tmp_path / "up.toml"
    down.write_text(page + "minimise = true\n[reward_values]\nalive = 0\nill = 2\ndead = 10\n")
    up.write_text(page + "[reward_values]\nalive = 0\nill = -2\ndead = -10\n")
    shown = " ".join(run("arms", str(down)).stdout.split())
    assert "minimise Y (best alive, worst dead)" in shown and "maximise" not in shown
    assert "maximise Y (best alive, worst dead)" in " ".join(run("arms", str(up)).stdout.split())
    for command in (
        ("bounds", "--horizon", "5", "--samples", "500", "--policy-samples", "200"),
        ("bounds", "--horizon", "5", "--samples", "500", "--policy-samples", "200", "--json"),
    ):
        shown = [run(command[0], str(path), *command[1:]).stdout for path in (down, up)]
        assert shown[0] == shown[1] != ""
    race = (
        "--policies",
        "ts,ucb,ids",
        "--horizon",
        "30",
        "--trials",
        "4",
        "--workers",
        "1",
        "--json",
    )
    found = [json.loads(run("simulate", str(path), *race).stdout) for path in (down, up)]
    regrets = [[row["regret"] for row in document["final"]] for document in found]
    assert regrets[0] == regrets[1] and min(regrets[0]) > 0
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(page + 'minimise = "yes"\n')
    result = run("arms", str(wrong))
    assert result.exit_code == 2 and "minimise='yes' must be True or False" in result.stderr


@pytest.mark.parametrize("command", ["arms", "formulas"])
def test_a_terminal_without_greek_and_a_full_disk_are_no_tracebacks(command):
    program = [sys.executable, "-m", "dowise", command, "task1"]
    latin = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(program, capture_output=True, env=latin, check=False)
    assert done.returncode == 0 and done.stderr == b""
    if Path("/dev/full").exists():
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 2 and b"cannot write the output" in done.stderr
        assert b"Traceback" not in done.stderr


def test_help_has_examples(run):
    assert "dowise arms my-problem.toml --picture graph.svg" in run("arms", "--help").stdout


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ('graph = "X -> Y"\nreward = "Z"', "unknown reward 'Z'"),
        ('graph = "X -> "\nreward = "Y"', "line 1, column 6: the text ends"),
        ("graph", "not valid TOML"),
        ("", "the file is empty"),
    ],
)
def test_bad_input_is_one_message_and_status_2(run, tmp_path, page, message):
    path = tmp_path / "bad.toml"
    path.write_text(page)
    for command in ("arms", "formulas"):
        result = run(command, str(path))
        assert result.exit_code == 2
        assert message in result.stderr and result.stdout == ""
        assert result.stderr.startswith("Error: ") and len(result.stderr.splitlines()) == 1


def test_bad_pictures_and_names(run, tmp_path):
    for arguments, message in (
        (("arms", "tsak1"), "did you mean 'task1'"),
        (("arms", "task1", "--picture", str(tmp_path / "graph.bmp")), ".svg"),
        (("arms", "task1", "--picture", str(tmp_path / "none" / "graph.svg")), "none"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2 and message in result.stderr and result.stdout == ""


def test_only_do_nothing_is_said_so(run, tmp_path):
    path = tmp_path / "lonely.toml"
    path.write_text('graph = "Y -> X"\nreward = "Y"\n')
    told = " ".join(run("arms", str(path)).stdout.split())
    assert "No variable that you can set has an effect on Y, so do() is the only arm." in told


def test_long_lists_are_cut_for_people_only(run, tmp_path):
    path = tmp_path / "wide.toml"
    path.write_text('graph = "A -> Y; B -> Y; C -> Y; D -> Y; E -> Y; F -> Y"\nreward = "Y"\n')
    assert "and 24 more; --json lists them all" in run("arms", str(path)).stdout
    assert len(json.loads(run("arms", str(path), "--json").stdout)["arms"]) == 64


def test_names_that_look_like_markup_are_printed_as_they_are(run, tmp_path):
    path = tmp_path / "odd.toml"
    path.write_text('graph = \'"[bold]X[/]" -> Y\'\nreward = "Y"\n')
    told = run("arms", str(path)).stdout
    assert "{[bold]X[/]}" in told
    assert "you can set [bold]X[/]" in " ".join(told.split())


def test_the_help_has_every_command_once_in_the_order_of_use(run):
    shown = run("--help").stdout
    assert "Others:" not in shown
    for name in main.commands:
        assert len(re.findall(rf"^  {name} ", shown, re.MULTILINE)) == 1, name
    places = [shown.index(part) for part in (
        "\nBefore you begin:\n", "\n  rehearse ", "\nLive experiments:\n  new ", "\n  ask ",
        "\n  tell ", "\n  status ", "\n  audit ", "\nResearch:\n", "\n  reproduce ",
    )]  # fmt: skip
    assert places == sorted(places)


def test_heavy_libraries_are_not_loaded_for_help():
    code = (
        "import sys; from dowise.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'numba', 'networkx', 'lark', 'rich', 'matplotlib', 'pandas'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_bounds_for_people(run):
    shown = run("bounds", "task2", "--horizon", "20", "--samples", "5000").stdout
    assert "4 arms, 2 contexts, T = 20" in shown
    assert "C=0" in shown and "C=1" in shown
    assert "Theorem 2, IDS, N = 1,000" in shown and "infinite" in shown
    text = " ".join(shown.split())
    assert (
        "in 20 of 20 rounds; γ_t is infinite in 20 of 20 rounds, so Theorem 2 says nothing" in text
    )


def test_bounds_of_many_arms_say_how_many_draws_they_took(run, tmp_path):
    """336 arms take more draws than a round of ids has; an option that is too small is named."""
    (tmp_path / "many.toml").write_text(
        'graph = "A -> Y; B -> Y; C -> Y"\nreward = "Y"\n[domains]\n'
        "A = [0, 1, 2, 3, 4, 5, 6]\nB = [0, 1, 2, 3, 4, 5, 6, 7]\nC = [0, 1, 2, 3, 4, 5]\n",
        "utf-8",
    )
    args = ("bounds", str(tmp_path / "many.toml"), "--horizon", "2")
    shown = " ".join(run(*args).stdout.split())
    assert "336 arms" in shown and "With N = 3,360 draws per round, 10 per arm, L" in shown
    refused = CliRunner().invoke(main, [*args, "--policy-samples", "1000"])
    assert refused.exit_code == 2
    assert "--policy-samples 1000 must be at least 3,360" in refused.stderr
    refused = CliRunner().invoke(main, ["bounds", "task1", "--horizon", "1000000000000"])
    assert refused.exit_code == 2
    assert refused.stderr == "Error: horizon=1000000000000 must be at most 10,000,000\n"


def test_bounds_show_how_far_they_are(run, monkeypatch):
    told = []

    @contextmanager
    def bar(off_terminal):
        assert off_terminal
        yield lambda *news: told.append(news)

    monkeypatch.setattr("dowise.cli.problems.progress_bar", bar)
    run("bounds", "task1", "--horizon", "3", "--samples", "1000")
    assert len({what for what, _, _ in told}) == 3


def test_bounds_for_programs(run):
    args = ("bounds", "task1", "--horizon", "1000", "--policy-samples", "50", "--json")
    document = json.loads(run(*args).stdout)
    assert document["theorem_2"] == "inf"
    assert document["p_best_radius"] == pytest.approx(0.0093, abs=5e-5)
    assert document["worst_coefficient"] == pytest.approx(1.2837, abs=5e-5)
    assert len(document["p_best"]) == document["arms"] == 3
    names = {"entropy", "entropy_error", "coefficient", "saving", "corollary_1", "corollary_2"}
    assert names | {"theorem_1", "theorem_1_run", "gamma_sum", "vacuous_rounds"} <= {*document}


def test_a_race_for_people_and_for_programs(run, tmp_path):
    args = ("simulate", "task1", "--policies", "ts, ucb", "--horizon", "30", "--trials", "12",
            "--workers", "1")  # fmt: skip
    shown = run(*args, "--out", str(tmp_path / "race")).stdout
    assert "final regret" in shown and "ucb" in shown and "12" in shown
    assert f"The results are in {tmp_path / 'race'}" in shown
    files = len(list((tmp_path / "race" / "results").iterdir()))
    assert files == 3  # trials 0 to 9 and 10 to 11 of ts, and all of ucb, which is quick
    assert "ucb − ts" in shown and "95 % interval" in shown
    document = json.loads(run(*args, "--json").stdout)
    assert [(row["problem"], row["policy"]) for row in document["final"]] == [
        ("task1", "ts"), ("task1", "ucb"),
    ]  # fmt: skip
    assert document["final"][0]["trials"] == 12
    ts, ucb = document["final"]
    (pair,) = document["differences"]
    assert (pair["problem"], pair["policy"], pair["than"]) == ("task1", "ucb", "ts")
    assert pair["mean"] == pytest.approx(ucb["regret"] - ts["regret"])
    assert pair["low"] < pair["mean"] < pair["high"]
    assert f"{pair['low']:+.2f} to {pair['high']:+.2f}" in shown
    again = run(*args, "--seed", "1", "--out", str(tmp_path / "race"))
    assert again.exit_code == 0  # other settings have other files
    assert len(list((tmp_path / "race" / "results").iterdir())) == 2 * files


@pytest.mark.filterwarnings("default")
def test_damaged_results_are_mended_with_a_note(run, tmp_path):
    args = ("simulate", "task1", "--policies", "ucb", "--horizon", "30", "--trials", "60",
            "--workers", "1", "--json", "--out", str(tmp_path / "race"))  # fmt: skip
    first = run(*args)
    file = sorted((tmp_path / "race" / "results").iterdir())[1]
    content = bytearray(file.read_bytes())
    content[60:68] = bytes(x ^ 255 for x in content[60:68])
    file.write_bytes(content)
    again = run(*args)
    assert again.exit_code == 0 and again.stdout == first.stdout
    assert f"Note: {file} is damaged (its checksum does not match): its trials" in again.stderr


def test_a_race_in_the_world_of_a_bif_file(run):
    args = ("simulate", "asia", "--world", "bif", "--policies", "ts,ucb", "--horizon", "20",
            "--trials", "3", "--workers", "1", "--json")  # fmt: skip
    document = json.loads(run(*args).stdout)
    given = dowise.simulate(
        [dowise.Environment.from_bif("asia")], ["ts", "ucb"], horizon=20, trials=3
    )
    means = given.final().mean()
    assert {row["policy"]: row["regret"] for row in document["final"]} == pytest.approx({**means})
    assert {row["problem"] for row in document["final"]} == {"asia"}
    refused = run("simulate", "task1", "--world", "bif", "--policies", "ts")
    assert refused.exit_code == 2 and "task1 has no CPTs" in refused.stderr


def test_a_race_in_strong_worlds_with_edges_by_their_priors(run, tmp_path):
    path = tmp_path / "doubtful.toml"
    path.write_text(
        'name = "doubtful"\ngraph = "X -> Y; Z ?-> Y; X <-> Y"\nreward = "Y"\n', "utf-8"
    )
    race = (
        "simulate", str(path), "--policies", "ucb", "--horizon", "20", "--trials", "3", "--workers",
        "1", "--json",
    )  # fmt: skip
    found = [
        json.loads(run(*race, *others).stdout)["final"][0]["regret"]
        for others in ((), ("--strong",), ("--edges", "prior"), ("--strong", "--edges", "prior"))
    ]
    assert len({*found}) == 4
    strong = dowise.simulate([path], ["ucb"], horizon=20, trials=3, strong=True, edges="prior")
    assert found[3] == pytest.approx(float(strong.final()["ucb"].mean()))


@pytest.mark.slow
def test_reproduce_one_panel(run, tmp_path):
    result = run("reproduce", "task2", "--trials", "2", "--horizon", "20", "--samples", "40",
                 "--workers", "1", "--out", str(tmp_path))  # fmt: skip
    assert result.exit_code == 0
    assert "task2" in result.stdout and f"The report is {tmp_path / 'report.html'}" in result.stdout
    assert "are not shown by this number of trials" in " ".join(result.stdout.split())
    assert (tmp_path / "task2.pdf").exists()


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_keeps_what_is_done(tmp_path, workers):
    """Stopped in the middle of a long race: a word on what is kept, no traceback; then resumed."""
    command = [sys.executable, "-m", "dowise", "simulate", "task3", "--policies", "ids",
               "--horizon", "300", "--trials", "60", "--samples", "300", "--workers", workers,
               "--out", str(tmp_path / "race")]  # fmt: skip
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell starts what runs in its background, these tests for one, with Ctrl-C ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("race/results/*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopped; finished results are kept in" in errors and "Traceback" not in errors
    done = len(list(tmp_path.glob("race/results/*.parquet")))
    assert 1 <= done < 6
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert len(list(tmp_path.glob("race/results/*.parquet"))) == 6


def test_ctrl_c_is_one_line_everywhere(monkeypatch):
    def stopped(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("dowise.simulation.bounds", stopped)
    result = CliRunner().invoke(main, ["bounds", "task1", "--horizon", "10"])
    assert result.exit_code == 130
    assert result.stderr == "\nStopped.\n"


def test_a_folder_that_can_t_be_used_is_named(monkeypatch):
    def refused(*_args, **_options):
        raise PermissionError(13, "Permission denied", "/races/first")

    monkeypatch.setattr("dowise.simulation.simulate", refused)
    result = CliRunner().invoke(main, ["simulate", "task1", "--policies", "ts"])
    assert result.exit_code == 2
    assert result.stderr == "Error: cannot read or write /races/first: Permission denied\n"


@pytest.mark.filterwarnings("default")
def test_warnings_of_ours_are_one_line_and_others_are_not_swallowed(
    run, tmp_path, capsys, monkeypatch
):
    path = tmp_path / "soft.toml"
    path.write_text('graph = "A -> B -> C -> D -> Y"\nreward = "Y"\nsoft = 0.1\n')
    found = run("simulate", str(path), "--policies", "ts", "--horizon", "2", "--trials", "1")
    assert found.exit_code == 0
    (line,) = (x for x in found.stderr.splitlines() if "sets of doubtful edges" in x)
    assert line.startswith("Note: there are ") and "mixture.py" not in found.stderr
    others = []
    monkeypatch.setattr("dowise.cli.main._default_showwarning", lambda *given: others.append(given))
    say = _make_warning_printer()
    say("odd", RuntimeWarning, "h.py", 7)
    say("known", DowiseWarning, "h.py", 8)
    say("known", DowiseWarning, "elsewhere.py", 9)  # once is enough
    assert others == [("odd", RuntimeWarning, "h.py", 7)]
    assert capsys.readouterr().err == "Note: known\n"


def test_a_pipe_to_another_process_that_breaks_is_no_reader_who_has_seen_enough(monkeypatch):
    def broken(*_arguments, **_more):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("dowise.cli.problems.read_problem", broken)
    result = CliRunner().invoke(main, ["arms", "task1"])
    assert result.exit_code == 2 and "cannot write the output: Broken pipe" in result.stderr
