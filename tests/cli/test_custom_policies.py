"""Custom policies, in every command that names a policy."""

import json
import subprocess
import sys

import pytest
from support.custom_policies import BROKEN, EXIT_LINES, FAILING_LINE, GREEDY

from dowise.policies import registry

RUN = ("--horizon", "5", "--trials", "2", "--workers", "1")
SIMULATE = ("simulate", "task1", *RUN, "--policies")
NEW = ("new", "ward.db", "ward.toml", "--policy")
REHEARSE = ("rehearse", "task1", "--horizon", "2", "--workers", "1", "--policy")
FAILURE = f"ZeroDivisionError: float division by zero (greedy_mine.py, line {FAILING_LINE})"


@pytest.fixture
def cli(cli, monkeypatch):
    """Yield a command line in a folder with modules of policies, which are forgotten later."""
    monkeypatch.setattr(registry, "_POLICIES", {**registry._POLICIES})
    monkeypatch.setattr(registry, "_MODULES", {})
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name, text in {"greedy_mine": GREEDY, **BROKEN}.items():
        cli.write(f"{name}.py", text)
    yield cli
    forget_modules()


def forget_modules():
    """Forget imported policies, as in a new process."""
    for name in [name for name in sys.modules if name.endswith("_mine")]:
        del sys.modules[name]
    registry._MODULES.clear()
    registry._POLICIES.pop("any-custom", None)


def run_program(cli, *words):
    command = [sys.executable, "-m", "dowise", *words]
    return subprocess.run(command, capture_output=True, cwd=cli.folder, text=True, check=False)


def result_files(cli):
    return sorted((cli.folder / "out" / "results").iterdir())


def test_simulate_accepts_classes_and_functions(cli):
    labels = ["ts", "greedy_mine:Greedy", "mine", "greedy_mine:any_custom"]
    names = "ts,greedy_mine:Greedy,mine=greedy_mine:Greedy,greedy_mine:any_custom"
    options = ("--option", "greedy_mine:Greedy.explore=0.5", "--option", "mine.explore=0")
    document = cli.run_json(*SIMULATE, names, *options, "--out", "out")
    assert [row["policy"] for row in document["final"]] == labels
    (file,) = (cli.folder / "out" / "calls").iterdir()
    spec = json.loads(file.read_text())["spec"]["policies"]
    assert spec["greedy_mine:Greedy"]["made by"] == spec["mine"]["made by"] == "greedy_mine:Greedy"
    assert spec["greedy_mine:Greedy"]["options"] == {"explore": 0.5}
    assert spec["mine"]["options"] == {"explore": 0} and spec["mine"]["source"]


def test_simulate_accepts_a_policy_that_a_module_registers(cli):
    assert cli.error_code(*SIMULATE, "any-custom") == "unknown-policy"
    document = cli.run_json(*SIMULATE, "any-custom", "--policy-module", "greedy_mine")
    assert [row["policy"] for row in document["final"]] == ["any-custom"]


@pytest.mark.slow
def test_workers_import_policies_from_the_current_folder(cli):
    """Programs of their own, so that workers inherit nothing."""
    simulate = ("simulate", "task1", "--policies", "ucb,greedy_mine:Greedy", "--horizon", "5")
    simulate += ("--trials", "12", "--json", "--workers")
    rehearse = ("rehearse", "task1", "--policy", "greedy_mine:Greedy", "--horizon", "3")
    rehearse += ("--worlds", "3", "--json", "--workers")
    for words in (simulate, rehearse):
        first, second = (run_program(cli, *words, workers).stdout for workers in ("1", "2"))
        assert first == second and "greedy_mine:Greedy" in first
    failing = ["greedy_mine:Failing" if x == "greedy_mine:Greedy" else x for x in rehearse]
    result = run_program(cli, *failing, "2")
    assert FAILURE in result.stderr and "Traceback" not in result.stderr
    leaving = [x.replace("ucb,greedy_mine:Greedy", "greedy_mine:ExitsInObserve") for x in simulate]
    result = run_program(cli, *leaving, "2")
    assert result.returncode == 2
    assert f"SystemExit: 0 (greedy_mine.py, line {EXIT_LINES[0]})" in result.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere_mine:X", "not found in this folder or on Python's path"),
        ("greedy_mine.py:Greedy", "expected a name such as greedy_mine"),
        (":Greedy", "'' is not the name of a module"),
        ("greedy_mine:Gredy", "has no 'Gredy' (did you mean 'Greedy'?)"),
        ("greedy_mine:", "needs a class or function (available: Greedy, Failing"),
        ("greedy_mine:NUMBER", "is an int, not a policy"),
        ("builtins:int", "name a class or a function"),
        ("greedy_mine:NoMethods", "makes a NoMethods, which has no decide"),
        ("divides_mine:X", "ZeroDivisionError: division by zero (divides_mine.py, line 1)"),
        ("wrong_mine:X", "SyntaxError: invalid syntax (wrong_mine.py, line 1)"),
        ("lacks_mine:X", "No module named 'no_such_thing' (lacks_mine.py, line 1)"),
        ("leaves_mine:X", "SystemExit: 3 (leaves_mine.py, line 2)"),
        ("refused_mine:X", "did you mean 'task1'?"),
    ],
)
@pytest.mark.parametrize(
    "words",
    [(*SIMULATE[:-1], "--out", "out", "--policies"), REHEARSE, NEW],
    ids=["simulate", "rehearse", "new"],
)
def test_an_invalid_policy_is_refused_before_anything_is_written(cli, words, name, message):
    before = {*cli.folder.iterdir()}
    assert message in cli.error(*words, name)
    assert {path for path in cli.folder.iterdir() if path.name != "__pycache__"} == before


def test_an_error_in_a_policy_names_its_line(cli, monkeypatch):
    message = f"greedy_mine:Failing on task1, trial 0: {FAILURE}"
    assert cli.error(*SIMULATE, "greedy_mine:Failing").strip() == message
    assert cli.error(*REHEARSE, "greedy_mine:Failing").startswith(FAILURE)
    assert "greedy_mine.py, line" in cli.error(*SIMULATE, "greedy_mine:ReadsMissingFile")
    monkeypatch.setenv("DOWISE_TRACEBACK", "1")
    lines = cli.run(*SIMULATE, "greedy_mine:Failing").stderr.splitlines()
    assert lines[0].startswith("Traceback") and any("in decide" in line for line in lines)
    assert lines[-1] == f"Error: {message}"


def test_a_policy_that_calls_sys_exit_is_an_error(cli):
    observe, decide, create = (
        f"SystemExit: 0 (greedy_mine.py, line {line})" for line in EXIT_LINES
    )
    assert observe in cli.error(*SIMULATE, "greedy_mine:ExitsInObserve")
    deciding, creating = "greedy_mine:ExitsInDecide", "greedy_mine:ExitsWhenMade"
    assert decide in cli.error(*SIMULATE, deciding)
    assert cli.error(*REHEARSE, deciding).startswith(decide)
    for words in (SIMULATE, REHEARSE, NEW):
        assert cli.error(*words, creating).startswith(f"the policy '{creating}': {create}")
    cli.create("--policy", deciding)
    assert cli.error("ask", "ward.db", "-c", "Age=1").startswith(decide)


def test_a_policy_whose_file_changed_is_run_again(cli):
    words = (*SIMULATE, "greedy_mine:Greedy", "--out", "out")
    first = cli.run_json(*words)
    forget_modules()
    assert cli.run_json(*words) == first
    number = len(result_files(cli))
    forget_modules()
    cli.write("greedy_mine.py", GREEDY.replace("NUMBER = 3", "NUMBER = 4"))
    cli.run_json(*words)
    assert len(result_files(cli)) == 2 * number


def test_a_policy_that_failed_can_be_corrected(cli):
    words = (*SIMULATE, "greedy_mine:Failing", "--out", "out")
    cli.error(*words)
    forget_modules()
    corrected = "return super().decide(context, rng, allowed)"
    cli.write("greedy_mine.py", GREEDY.replace("return self.explore / 0", corrected))
    assert cli.run_ok(*words) == cli.run_ok(*words)


def test_a_live_experiment_needs_the_module_to_ask_but_not_to_tell(cli):
    policy = ("--policy", "greedy_mine:Greedy", "--option", "explore=0.2")
    assert cli.create(*policy)["policy"] == "greedy_mine:Greedy"
    decision = cli.run_json("ask", "ward.db", "-c", "Age=1")
    arms = len(decision["probabilities"])
    assert max(decision["probabilities"]) == pytest.approx(0.8 + 0.2 / arms)

    forget_modules()
    assert cli.run_json("tell", "ward.db", "1", "Frailty=0", "Recovery=1")["status"] == "done"
    message = cli.error("ask", "ward.db", "-c", "Age=1")
    assert "'greedy_mine:Greedy'" in message and "--policy-module greedy_mine" in message
    assert "greedy_mine" not in sys.modules  # what a journal names is not imported
    module = ("--policy-module", "greedy_mine")
    assert cli.run_json("ask", "ward.db", "-c", "Age=1", *module)["id"] == 2
    assert cli.run_json("audit", "ward.db", *module)["ok"]


def test_an_error_in_a_live_policy_changes_nothing(cli):
    cli.create("--policy", "greedy_mine:Failing")
    events = cli.run_json("audit", "ward.db")["events"]
    assert FAILURE in cli.error("ask", "ward.db", "-c", "Age=1")
    assert cli.run_json("audit", "ward.db")["events"] == events


def test_evaluate_custom_policies_and_arms_with_a_colon(cli):
    cli.write(
        "ward.toml",
        "graph = 'X -> Y'\nreward = 'Y'\n[domains]\nX = ['at 8:00', 'at 9:00']\n",
    )
    cli.create("--policy", "random")
    for number in range(1, 4):
        cli.run_json("ask", "ward.db")
        cli.run_json("tell", "ward.db", number, "Y=1")
    for target in ("greedy_mine:Greedy", "do(X=at 8:00)"):
        assert target in cli.run_json("evaluate", "ward.db", target)["target"]
