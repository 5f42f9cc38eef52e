"""Custom policies, in every command that names a policy."""

import json
import subprocess
import sys

import pytest
from support.custom_policies import BROKEN, FAILING_LINE, GREEDY, LEAVING_LINES

from dowise.policies import registry
from dowise.policies import registry as own

RACE = ("--horizon", "5", "--trials", "2", "--workers", "1")


@pytest.fixture
def desk(desk, monkeypatch):
    """A desk with modules; what they made known is forgotten after the test."""
    monkeypatch.setattr(registry, "_POLICIES", {**registry._POLICIES})
    monkeypatch.setattr(own, "_MODULES", {})
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name, text in {"greedy_mine": GREEDY, **BROKEN}.items():
        (desk.folder / f"{name}.py").write_text(text)
    yield desk
    for name in [name for name in sys.modules if name.endswith("_mine")]:
        del sys.modules[name]


def test_a_race_with_a_class_and_a_function_of_one_s_own(desk):
    names = "ts,greedy_mine:Greedy,mine=greedy_mine:Greedy,greedy_mine:anything"
    page = desk.json(
        "simulate", "task1", "--policies", names, *RACE, "--option",
        "greedy_mine:Greedy.explore=0.5", "--option", "mine.explore=0", "--out", "race",
    )  # fmt: skip
    labels = ["ts", "greedy_mine:Greedy", "mine", "greedy_mine:anything"]
    assert [row["policy"] for row in page["final"]] == labels
    (file,) = (desk.folder / "race" / "calls").iterdir()
    spec = json.loads(file.read_text())["spec"]["policies"]
    assert spec["greedy_mine:Greedy"]["made by"] == spec["mine"]["made by"] == "greedy_mine:Greedy"
    assert spec["greedy_mine:Greedy"]["options"] == {"explore": 0.5}
    assert spec["mine"]["options"] == {"explore": 0} and spec["mine"]["source"]


def test_a_policy_that_a_module_registers(desk):
    args = ("simulate", "task1", "--policies", "any-of-mine", *RACE)
    assert "unknown policy 'any-of-mine'" in desk.fails(*args)
    page = desk.json(*args, "--policy-module", "greedy_mine")
    assert [row["policy"] for row in page["final"]] == ["any-of-mine"]


@pytest.mark.slow
def test_workers_import_it_from_the_current_folder(desk):
    command = [sys.executable, "-m", "dowise"]  # a process of its own, so that nothing is inherited
    race = [*command, "simulate", "task1", "--policies", "ucb,greedy_mine:Greedy", "--horizon", "5",
            "--trials", "12", "--json", "--workers"]  # fmt: skip
    one, two = (
        subprocess.run([*race, workers], capture_output=True, check=True, cwd=desk.folder).stdout
        for workers in ("1", "2")
    )
    assert json.loads(one)["final"][1]["policy"] == "greedy_mine:Greedy" and one == two
    rehearsal = [*command, "rehearse", "task1", "--policy", "greedy_mine:Greedy", "--horizon", "3",
                 "--worlds", "3", "--json", "--workers"]  # fmt: skip
    one, two = (
        subprocess.run([*rehearsal, workers], capture_output=True, check=True, cwd=desk.folder)
        for workers in ("1", "2")
    )
    assert json.loads(one.stdout)["policy"] == "greedy_mine:Greedy" and one.stdout == two.stdout
    failing = ["greedy_mine:Failing" if x == "greedy_mine:Greedy" else x for x in rehearsal]
    failed = subprocess.run([*failing, "2"], capture_output=True, cwd=desk.folder, text=True)
    (line,) = (x for x in failed.stderr.splitlines() if x.startswith("Error"))
    assert f"(greedy_mine.py, line {FAILING_LINE})" in line and "Traceback" not in failed.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere_mine:X", "not found in this folder or on Python's path (expected"),
        ("greedy_mine.py:Greedy", "(expected a name such as greedy_mine)\n"),
        ("./greedy_mine.py:Greedy", "is not the name of a module (expected a name such as greedy"),
        (":Greedy", "'' is not the name of a module"),
        (
            "greedy_mine:Gredy",
            "has no 'Gredy' (did you mean 'Greedy'?) (available: Greedy, Failing",
        ),
        ("greedy_mine:", "needs a class or function (available: Greedy, Failing"),
        ("greedy_mine:NUMBER", "is an int, not a policy: name a class or a function"),
        ("builtins:int", "name a class or a function that makes one from a problem"),
        (
            "greedy_mine:Nothing",
            "makes a Nothing, which has no decide: check_policy(Nothing) tells",
        ),
        ("divides_mine:X", "ZeroDivisionError: division by zero (divides_mine.py, line 1)"),
        ("wrong_mine:X", "SyntaxError: invalid syntax (wrong_mine.py, line 1)"),
        ("lacks_mine:X", "No module named 'no_such_thing' (lacks_mine.py, line 1)"),
        ("leaves_mine:X", "SystemExit: 3 (leaves_mine.py, line 2)"),
        ("refused_mine:X", "did you mean 'task1'?"),
    ],
)
@pytest.mark.parametrize("command", ["simulate", "rehearse", "new"])
def test_what_is_no_policy_is_refused_in_one_line_and_before_anything_runs(
    desk, name, message, command
):
    before = {*desk.folder.iterdir()}
    args = {
        "simulate": ("task1", "--policies", f"ts,{name}", *RACE, "--out", "race"),
        "rehearse": ("task1", "--policy", name, "--horizon", "5", "--workers", "1"),
        "new": ("ward.db", "ward.toml", "--policy", name),
    }[command]
    assert message in desk.fails(command, *args)
    assert {path for path in desk.folder.iterdir() if path.name != "__pycache__"} == before


def test_an_error_in_a_policy_says_where_and_how_to_see_more(desk, monkeypatch):
    args = ("simulate", "task1", "--policies", "greedy_mine:Failing", *RACE)
    said = f"ZeroDivisionError: float division by zero (greedy_mine.py, line {FAILING_LINE})"
    shown = desk.fails(*args)
    assert f"greedy_mine:Failing on task1, trial 0: {said}" in shown
    assert desk.fails("rehearse", "task1", "--policy", "greedy_mine:Failing", "--horizon", "2",
                      "--workers", "1").startswith(said)  # fmt: skip
    wants = desk.fails("simulate", "task1", "--policies", "greedy_mine:Reading", *RACE)
    assert wants.startswith("FileNotFoundError") and "greedy_mine.py, line" in wants
    monkeypatch.setenv("DOWISE_TRACEBACK", "1")
    lines = desk.run(*args).stderr.splitlines()
    assert lines[0].startswith("Traceback") and any("in decide" in line for line in lines)
    assert lines[-1] == f"Error: greedy_mine:Failing on task1, trial 0: {said}"


def test_a_policy_that_leaves_is_an_error_as_any_other(desk):
    said = [f"SystemExit: 0 (greedy_mine.py, line {line})" for line in LEAVING_LINES]
    race = ("simulate", "task1", *RACE, "--policies")
    failed = desk.run(*race, "greedy_mine:Leaving")
    assert failed.exit_code == 2 and failed.stdout == ""
    assert (
        f"Error: greedy_mine:Leaving on task1, trial 0: {said[0]}\nHint: DOWISE_TRACEBACK=1"
        in failed.stderr
    )
    decides, at_once = "greedy_mine:LeavingToDecide", "greedy_mine:LeavingAtOnce"
    assert desk.fails(*race, decides).startswith(f"{decides} on task1, trial 0: {said[1]}")
    for command in (
        (*race, at_once),
        ("rehearse", "task1", "--policy", at_once, "--horizon", "2", "--workers", "1"),
        ("new", "ward.db", "ward.toml", "--policy", at_once),
    ):
        assert desk.fails(*command).startswith(f"the policy '{at_once}': {said[2]}")
    rehearsal = ("rehearse", "task1", "--policy", decides, "--horizon", "2", "--workers", "1")
    assert desk.fails(*rehearsal).startswith(said[1])
    desk.begin("--policy", decides)
    assert desk.fails("ask", "ward.db", "-c", "Age=1").startswith(said[1])


@pytest.mark.slow
def test_a_policy_that_leaves_in_a_worker_is_an_error_as_any_other(desk):
    race = [sys.executable, "-m", "dowise", "simulate", "task1", "--policies",
            "greedy_mine:Leaving", "--horizon", "5", "--trials", "12",
            "--workers", "2"]  # fmt: skip
    failed = subprocess.run(race, capture_output=True, cwd=desk.folder, text=True)
    assert failed.returncode == 2 and failed.stdout == ""
    assert "greedy_mine:Leaving on task1, trial" in failed.stderr
    assert f"SystemExit: 0 (greedy_mine.py, line {LEAVING_LINES[0]})" in failed.stderr


def forget_modules():
    """As a process that begins anew."""
    for name in [name for name in sys.modules if name.endswith("_mine")]:
        del sys.modules[name]
    own._MODULES.clear()
    registry._POLICIES.pop("any-of-mine", None)


def test_a_policy_whose_file_changed_is_run_again(desk):
    command = ("simulate", "task1", "--policies", "greedy_mine:Greedy", *RACE, "--out", "race")
    first = desk.json(*command)
    forget_modules()
    assert desk.json(*command) == first
    files = sorted((desk.folder / "race" / "results").iterdir())
    forget_modules()
    source = desk.folder / "greedy_mine.py"
    source.write_text(source.read_text().replace("NUMBER = 3", "NUMBER = 4"))
    desk.json(*command)
    assert len(sorted((desk.folder / "race" / "results").iterdir())) == 2 * len(files)


@pytest.mark.filterwarnings("default::dowise.errors.DowiseWarning")
def test_a_policy_that_failed_at_once_may_be_mended(desk):
    race = ("simulate", "task1", "--policies", "greedy_mine:Failing", *RACE, "--out", "race")
    desk.fails(*race)
    forget_modules()
    file = desk.folder / "greedy_mine.py"
    file.write_text(
        file.read_text().replace(
            "return self.explore / 0", "return super().decide(context, rng, allowed)"
        )
    )
    done = desk.run(*race)
    assert done.exit_code == 0
    again = desk.run(*race)
    assert again.stdout == done.stdout and "Note" not in again.stderr


def test_a_live_experiment(desk, monkeypatch):
    policy = ("--policy", "greedy_mine:Greedy", "--option", "explore=0.2")
    assert desk.begin(*policy)["policy"] == "greedy_mine:Greedy"
    first = desk.json("ask", "ward.db", "-c", "Age=1")
    assert max(first["probabilities"]) == pytest.approx(0.8 + 0.2 / len(first["probabilities"]))
    desk.json("tell", "ward.db", "1", "Frailty=0", "Recovery=1")

    monkeypatch.setattr(own, "_MODULES", {})  # another process, which nobody told of the module
    del sys.modules["greedy_mine"], registry._POLICIES["any-of-mine"]
    refused = desk.fails("ask", "ward.db", "-c", "Age=1")
    assert "'greedy_mine:Greedy' is not known here" in refused
    assert (
        "import the module that has it first (in a command, --policy-module greedy_mine)" in refused
    )
    assert "greedy_mine" not in sys.modules  # what a journal names is not imported
    module = ("--policy-module", "greedy_mine")
    assert desk.json("ask", "ward.db", "-c", "Age=1", *module)["id"] == 2
    assert desk.json("audit", "ward.db", *module)["ok"]


def test_an_error_in_a_live_policy_changes_nothing(desk):
    desk.begin("--policy", "greedy_mine:Failing")
    events = desk.json("audit", "ward.db")["events"]
    refused = desk.fails("ask", "ward.db", "-c", "Age=1")
    assert f"ZeroDivisionError: float division by zero (greedy_mine.py, line {FAILING_LINE})" in (
        refused
    )
    assert desk.json("audit", "ward.db")["events"] == events


def test_another_policy_is_evaluated(desk):
    desk.begin("--policy", "random")
    for number in range(1, 4):
        desk.json("ask", "ward.db", "-c", "Age=1")
        desk.json("tell", "ward.db", number, "Frailty=0", "Recovery=1")
    found = desk.json("evaluate", "ward.db", "greedy_mine:Greedy", "--option", "explore=0.2")
    assert "greedy_mine:Greedy" in json.dumps(found)


def test_an_arm_with_a_colon_is_no_module(desk):
    (desk.folder / "ward.toml").write_text(
        "graph = 'X -> Y'\nreward = 'Y'\n[domains]\nX = ['at 8:00', 'at 9:00']\n"
    )
    desk.begin("--policy", "random")
    for number in range(1, 3):
        desk.json("ask", "ward.db")
        desk.json("tell", "ward.db", number, "Y=1")
    assert "do(X=at 8:00)" in json.dumps(desk.json("evaluate", "ward.db", "do(X=at 8:00)"))


def test_the_help_says_how(desk):
    for command in ("simulate", "rehearse", "new", "revise", "evaluate"):
        shown = " ".join(desk.well(command, "--help").split())
        assert "MODULE:CLASS a custom policy" in shown and "--policy-module" in shown
