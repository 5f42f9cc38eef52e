"""What an experiment says of verbs and arguments is printed as it is typed."""

import warnings

import click
import pytest
from support.cli_runner import one_line

import dowise.problem
from dowise import Experiment
from dowise.cli.main import main
from dowise.cli.spelling import spelled
from dowise.errors import DowiseWarning


@pytest.mark.parametrize(
    ("running", "said", "printed"),
    [
        ("tell", "`amend` corrects it", "`dowise amend` corrects it"),
        ("import", "leave them out (`skip_bad`)", "leave them out (--skip-bad)"),
        ("status", "nobody said so (`unrelated`)", "nobody said so (--unrelated)"),
        ("status", "say it with `reward_values`", "say it with `reward_values`"),
        ("status", "`dowise audit --head` finds it", "`dowise audit --head` finds it"),
    ],
)
def test_it_is_said_for_the_command_that_runs(running, said, printed):
    assert spelled(said) == said  # nobody types anything
    with click.Context(main) as root:
        root.invoked_subcommand = running
        with click.Context(main.commands[running], parent=root):
            assert spelled(said) == printed


def test_notes_on_decisions(desk):
    with Experiment.create("ward.db", "ward", "ward.toml", seed=7) as experiment:
        asked = experiment.ask({"Age": 1}, allowed=["do(Dose=none)", "do(Dose=high)"])
    seen = ("Recovery=1", "Frailty=0", "--played", "do(Dose=low)")
    told = desk.well("tell", "ward.db", asked.id, *seen)
    status = desk.well("status", "ward.db")
    (desk.folder / "past.csv").write_text("arm,Age,Frailty,Dose,Recovery\ndo(),1,0,low,1\n")
    for shown in (told, status, desk.well("import", "ward.db", "past.csv")):
        assert "nothing to do with the unit (--unrelated)" in one_line(shown)


def test_advice_on_a_policy(desk):
    shown = desk.well("new", "ward.db", "ward.toml", "--policy", "ucb")
    assert "which `dowise evaluate` needs" in one_line(shown)


@pytest.mark.filterwarnings("always::dowise.errors.DowiseWarning")
def test_warnings(desk, monkeypatch):
    load = dowise.problem.load_problem

    def doubtful(source):
        warnings.warn("`revise` mends it (`skip_bad`)", DowiseWarning, stacklevel=2)
        return load(source)

    monkeypatch.setattr(dowise.problem, "load_problem", doubtful)
    said = desk.run("arms", "ward.toml").stderr
    assert said == "Note: `dowise revise` mends it (--skip-bad)\n"
