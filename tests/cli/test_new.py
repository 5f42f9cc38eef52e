"""`dowise new` and `dowise revise`."""

import inspect
import re
import sys

import pytest
from support.cli_runner import WARD, one_line

from dowise.experiment import Experiment
from dowise.policies import registry
from dowise.policies import registry as own


def test_a_new_experiment_for_people(desk):
    shown = desk.well("new", "ward.db", "ward.toml", "--seed", "7")
    assert all(len(line) <= 80 and line == line.rstrip() for line in shown.splitlines())
    shown += shown.replace("\n", " ")
    for part in (
        "ward is in ward.db",
        "arms      do(), do(Dose=none), do(Dose=low), do(Dose=high)",
        "policy    commit-kg",
        "\n  dowise ask ward.db -c Age=…\n",
        "With soft = 0.1 in the problem file, edges that are not drawn",
    ):
        assert part in shown
    with Experiment.open("ward.db") as experiment:
        assert f"head      {experiment.head}" in shown


def test_a_new_experiment_for_programs(desk):
    page = desk.begin(
        "--policy", "ids", "--option", "samples=50", "--option", "interval=optimistic"
    )
    assert page["store"] == "ward.db" and page["name"] == "ward" and page["policy"] == "ids"
    assert page["arms"] == [{}, {"Dose": "none"}, {"Dose": "low"}, {"Dose": "high"}]
    assert page["options"]["samples"] == 50 and page["options"]["interval"] == "optimistic"
    assert re.fullmatch("1:[0-9a-f]{64}", page["head"]) and page["imported"] == 0
    assert page["advice"]["edges"] == ["Age -> Frailty", "Dose <-> Recovery"]


def test_the_default_policy_is_the_experiment_s(desk):
    default = inspect.signature(Experiment.create).parameters["policy"].default
    assert default == "best" and desk.begin()["policy"] == "commit-kg"
    assert f"[default: ({default})]" in " ".join(desk.well("new", "--help").split())


def test_a_name_is_the_problem_s_or_the_file_s_or_given(desk):
    assert desk.json("new", "a.db", "task1")["name"] == "task1"
    (desk.folder / "plain.toml").write_text('graph = "X -> Y"\nreward = "Y"\n')
    assert desk.json("new", "a.db", "plain.toml")["name"] == "plain"
    shown = desk.well("new", "a.db", "plain.toml", "--name", "ward 7")
    assert "ward 7 is in a.db" in shown and "\n  dowise ask a.db --name 'ward 7'\n" in shown
    assert "soft" not in shown
    assert "so a name is needed: plain, task1, ward 7" in desk.fails("ask", "a.db")
    assert desk.json("ask", "a.db", "--name", "plain")["id"] == 1
    assert "did you mean 'plain'" in desk.fails("ask", "a.db", "--name", "plein")
    again = desk.fails("new", "a.db", "plain.toml")
    assert "there is an experiment 'plain' in a.db already" in again


def test_a_url_names_the_same_file(desk):
    desk.begin()
    assert "dowise tell ward.db 1" in desk.well("ask", "sqlite:///ward.db", "-c", "Age=1")


def test_seeds_priors_and_other_options(desk):
    (desk.folder / "prior.toml").write_text("Frailty = [3, 1]\n")
    first = desk.json("new", "a.db", "ward.toml", "--prior", "0.5", "--no-learn-restricted")
    assert first["options"]["prior"] == 0.5
    second = desk.json("new", "b.db", "ward.toml", "--prior", "prior.toml", "--policy", "ts")
    assert second["policy"] == "ts" and second["options"]["prior"] == {"Frailty": [3, 1]}
    with Experiment.open("a.db") as a:
        (event,) = a.events()
        assert event.payload["learn_restricted"] is False
    for store in ("c.db", "d.db"):
        desk.json("new", store, "ward.toml", "--seed", "3")
    arms = [desk.json("ask", store, "-c", "Age=1", "-n", "9") for store in ("c.db", "d.db")]
    assert arms[0] == arms[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("new", "a.db", "wrad.toml"), "there is no file wrad.toml (did you mean 'ward.toml'?)"),
        (("new", "a.db", "ward.toml", "--policy", "idss"), "did you mean 'ids'"),
        (("new", "a.db", "ward.toml", "--option", "flor=3"), "did you mean 'floor'"),
        (("new", "a.db", "ward.toml", "--option", "samples"), "'samples' is not NAME=VALUE"),
        (("new", "a.db", "ward.toml", "--option", "samples="), "the value of samples is missing"),
        (("new", "a.db", "ward.toml", "--option", "samples=some"), "samples"),
        (
            ("new", "a.db", "ward.toml", "--option", "samples=3", "--option", "samples=4"),
            "'samples=4': the option samples is given twice",
        ),
        (("new", "a.db", "ward.toml", "--prior", "none.toml"), "there is no such file"),
        (("new", "a.db", "ward.toml", "--prior", "1", "--option", "prior=2"), "given twice"),
        (("new", "a.db", "ward.toml", "--name", " "), "--name is empty"),
        (("new", "a.db", "ward.toml", "--actor", " "), "--actor "),
        (("new", "a.db", "ward.toml", "--data", "none.csv"), "there is no such file"),
        (("new", "a.db", "ward.toml", "--policy-module", "nowhere"), "not found in this folder"),
        (("new", "none/a.db", "ward.toml"), "none"),
    ],
)
def test_what_is_refused_leaves_nothing_behind(desk, arguments, message):
    assert message in desk.fails(*arguments)
    assert [path.name for path in desk.folder.iterdir()] == ["ward.toml"]


@pytest.fixture
def _as_it_was(monkeypatch):
    """Policies and modules of a test are gone after it."""
    monkeypatch.setattr(registry, "_POLICIES", {**registry._POLICIES})
    monkeypatch.setattr(own, "_MODULES", {})
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = {*sys.modules}
    yield
    for name in {*sys.modules} - before:
        if name.endswith("_live"):
            del sys.modules[name]


@pytest.mark.usefixtures("_as_it_was")
def test_a_policy_of_one_s_own(desk, monkeypatch):
    (desk.folder / "ours_live.py").write_text(
        "import numpy as np\n"
        "from dowise import Decision, register_policy\n"
        "@register_policy('first-live')\n"
        "class First:\n"
        "    'Always the first arm.'\n"
        "    def __init__(self, problem):\n"
        "        self.problem = problem\n"
        "    def decide(self, context=None, rng=None, allowed=None):\n"
        "        sure = np.zeros(len(self.problem.arms)); sure[0] = 1\n"
        "        return Decision(self.problem.arms[0], sure, '')\n"
        "    def observe(self, arm, outcome):\n"
        "        pass\n"
    )
    module = ("--policy-module", "ours_live")
    assert desk.begin(*module, "--policy", "first-live")["policy"] == "first-live"
    assert desk.json("ask", "ward.db", "-c", "Age=1", *module)["text"] == "do()"
    assert "with probability 1.00\n" in desk.well("ask", "ward.db", "-c", "Age=1")
    (desk.folder / "broken_live.py").write_text("1 / 0\n")
    refused = desk.fails("ask", "ward.db", "-c", "Age=1", "--policy-module", "broken_live")
    assert "--policy-module broken_live can't be imported: ZeroDivisionError" in refused
    with monkeypatch.context() as elsewhere:
        elsewhere.delitem(registry._POLICIES, "first-live")
        refused = desk.fails("ask", "ward.db", "-c", "Age=1")
        assert "the policy 'first-live' is not known here" in refused
        assert desk.json("tell", "ward.db", "1", "Recovery=1")["status"] == "done"
    (desk.folder / "lacking_live.py").write_text("import no_such_thing\n")
    refused = desk.fails("ask", "ward.db", "-c", "Age=1", "--policy-module", "lacking_live")
    assert "No module named 'no_such_thing'" in refused


# -- revise -----------------------------------------------------------------------------------


def test_a_revision_for_people_and_for_programs(desk):
    desk.begin("--policy", "ids")
    desk.well("ask", "ward.db", "-c", "Age=1")
    (desk.folder / "soft.toml").write_text(WARD.replace("context", "soft = 0.1\ncontext"))
    reason = ("--reason", "an arrow may be missing")
    page = desk.json("revise", "ward.db", "--problem", "soft.toml", *reason)
    assert page["changed"] and page["head"].startswith("3:") and page["policy"] == "ids"
    assert not desk.json("revise", "ward.db", "--problem", "soft.toml", *reason)["changed"]
    assert "Nothing changes" in desk.well("revise", "ward.db", "--policy", "ids", *reason)
    assert "policy    ts" in desk.well("revise", "ward.db", "--policy", "ts", *reason)
    page = desk.json("revise", "ward.db", "--option", "propensity_samples=10", *reason)
    assert page["policy"] == "ts" and page["options"]["propensity_samples"] == 10
    page = desk.json("revise", "ward.db", "--prior", "2", "--no-learn-restricted", *reason)
    assert page["options"] == {**page["options"], "prior": 2.0, "propensity_samples": 10}
    with Experiment.open("ward.db") as experiment:
        assert experiment.events()[-1].payload["learn_restricted"] is False
        assert experiment.events()[-1].payload["reason"] == "an arrow may be missing"
        assert experiment.problem.soft == 0.1
    assert desk.json("ask", "ward.db", "-c", "Age=1")["id"] == 2


def test_a_revision_says_which_past_records_count(desk):
    (desk.folder / "past.csv").write_text("Age,Frailty,Dose,Recovery\n1,0,low,1\n0,1,low,0\n")
    desk.begin("--data", "past.csv")
    desk.well("ask", "ward.db", "-c", "Age=1", "--allow", "do(Dose=low)")
    desk.well("tell", "ward.db", "1", "Frailty=1", "Recovery=1")
    reason = ("--reason", "we learned more")
    shown = desk.well("revise", "ward.db", "--policy", "ts", *reason)
    assert "All 3 past records (1 decision and 2 imported) count." in shown
    page = desk.json("revise", "ward.db", "--no-learn-restricted", *reason)["past_records"]
    why = "some arms were not allowed, and learn_restricted is False"
    left_out = {"used": 2, "left_out": {why: 1}, "unused": {}}
    assert page == {"decisions": 1, "imported": 2, "reward": "Recovery", **left_out}
    (desk.folder / "sex.toml").write_text(
        WARD.replace('["Age"]', '["Age", "Sex"]').replace('graph = "', 'graph = "Sex -> Recovery; ')
    )
    shown = desk.well("revise", "ward.db", "--problem", "sex.toml", *reason)
    assert "NONE of 3 past records (1 decision and 2 imported) counts, so nothing is known" in shown
    assert "\n  1: some arms" in shown and "\n  2: the outcome has no value for Sex" in shown


def test_a_revision_after_which_no_reward_counts_is_told_loudly(desk):
    desk.begin()
    for number in (1, 2):
        desk.well("ask", "ward.db", "-c", "Age=1")
        desk.well("tell", "ward.db", str(number), "Frailty=1", "Recovery=1")
    (desk.folder / "sleep.toml").write_text(
        WARD.replace('graph = "', 'graph = "Sleep -> Recovery; ')
    )
    args = ("revise", "ward.db", "--problem", "sleep.toml", "--reason", "we learned more")
    shown = one_line(desk.well(*args))
    assert "Recovery is NOT USED in any of 2 records: Sleep was not seen, so nothing is" in shown
    page = desk.json("revise", "ward.db", "--policy", "ts", "--reason", "faster")["past_records"]
    assert page["used"] == 2 and page["unused"] == {"Recovery": {"Sleep was not seen": 2}}


def test_a_revision_before_anything_was_told(desk):
    desk.begin()
    shown = desk.well("revise", "ward.db", "--policy", "ts", "--reason", "faster")
    assert shown.endswith("There are no past records yet.\n")


def test_revisions_that_are_refused(desk):
    desk.begin()
    desk.well("ask", "ward.db", "-c", "Age=1")
    desk.well("tell", "ward.db", "1", "Frailty=1")
    assert "nothing to change" in desk.fails("revise", "ward.db", "--reason", "x")
    assert "a reason is required" in desk.fails("revise", "ward.db", "--policy", "ts")
    (desk.folder / "other.toml").write_text(WARD + 'Frailty = ["no", "yes"]\n')
    refused = desk.fails("revise", "ward.db", "--problem", "other.toml", "--reason", "labels")
    assert "Frailty=1 is in 1 decision" in refused


def test_numbers_that_count_as_something_else_are_pointed_out(desk):
    (desk.folder / "stay.toml").write_text(
        'graph = "Drug -> Days"\nreward = "Days"\nminimise = true\n[domains]\nDays = [1, 2, 30]\n'
    )
    shown = one_line(desk.well("new", "stay.db", "stay.toml"))
    assert "minimise Days (1 counts as 0, 2 counts as 0.5, 30 counts as 1)" in shown
    assert "The labels of Days are numbers, but only their order counts" in shown
    with (desk.folder / "stay.toml").open("a") as file:
        file.write('[reward_values]\n"1" = 1\n"2" = 2\n"30" = 9\n')
    shown = one_line(desk.well("new", "right.db", "stay.toml"))
    assert "30 counts as 9" in shown and "The labels" not in shown  # as somebody said
    assert "The labels" not in desk.well("new", "ward.db", "ward.toml")  # 0 and 1
