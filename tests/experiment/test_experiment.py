"""`Experiment` in Python; `test_surfaces.py` has what all surfaces do alike."""

import getpass
import os
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from support.errors import raises_code
from support.experiments import WARD, new_experiment

from dowise import Belief, CausalGraph, Problem, load_problem
from dowise.experiment import event as event_module
from dowise.experiment.experiment import Experiment
from dowise.experiment.storage import MemoryStorage

# -- creating and opening ------------------------------------------------------------------------


def test_the_first_event_has_the_whole_configuration():
    payload = new_experiment().events()[0].payload
    assert (
        payload["seed"] == "7"
        and payload["policy"] == "ids"
        and payload["learn_restricted"] is True
    )
    assert payload["options"]["samples"] == 50 and payload["options"]["prior"] == 1.0
    assert {"dowise", "numpy", "numba", "processor"} <= payload["maker"].keys()


def test_the_default_seed_is_128_random_bits():
    one, other = (Experiment.create(MemoryStorage(), "w", WARD, "random") for _ in range(2))
    seeds = [int(x.events()[0].payload["seed"]) for x in (one, other)]
    assert seeds[0] != seeds[1] and all(2**64 < seed < 2**128 for seed in seeds)
    arms = [[x.ask({"C": 0}).arm for _ in range(40)] for x in (one, other)]
    assert arms[0] != arms[1]  # equal with probability 8^-40 at most


def test_open_needs_a_name_if_there_are_several_experiments():
    storage = MemoryStorage()
    with raises_code("not-found", "dowise new"):
        Experiment.open(storage)
    new_experiment(storage=storage)
    assert Experiment.open(storage).name == "w"
    Experiment.create(storage, "ward-7", WARD)
    with raises_code("missing-value", "w, ward-7"):
        Experiment.open(storage)
    with raises_code("unknown-experiment", "'ward-8'", "did you mean 'ward-7'"):
        Experiment.open(storage, "ward-8")
    assert Experiment.open(storage, "ward-7").name == "ward-7"


def test_create_refuses_an_existing_name():
    first = new_experiment()
    first.ask({"C": 0})
    with raises_code("duplicate-name", "'w'"):
        new_experiment(storage=first._journal.storage)
    assert first.head.number == 2 and first.audit().ok


@pytest.mark.parametrize("name", ["", "  ", "a\nb", 7, None, "x" * 201])
def test_invalid_names_are_refused(name):
    with raises_code("invalid-input"):
        Experiment.create(MemoryStorage(), name, WARD)


@pytest.mark.parametrize(
    ("more", "code", "mentioned"),
    [
        ({"policy": "idz"}, "unknown-policy", "did you mean 'ids'"),
        ({"policy": 3}, "invalid-type", "policy=3 must be the name of a policy"),
        ({"options": {"samplez": 3}}, "unknown-option", "no option 'samplez'"),
        ({"options": [3]}, "invalid-type", "must map names to values"),
        ({"options": {"belief": Belief(WARD)}}, "unknown-option", "belief is not an option"),
        (
            {"policy": "ts", "options": {"propensity_samples": 0}},
            "invalid-number",
            "leaves the probabilities",
        ),
        ({"seed": -1}, "invalid-number", "seed=-1"),
        ({"seed": "7"}, "invalid-number", "seed='7'"),
        ({"learn_restricted": 1}, "invalid-type", "learn_restricted=1"),
        ({"actor": " "}, "invalid-type", "actor="),
    ],
)
def test_invalid_arguments_create_nothing(more, code, mentioned):
    storage = MemoryStorage()
    with raises_code(code, mentioned):
        new_experiment(storage=storage, **{"options": None, **more})
    assert storage.experiments() == ()


# -- actors and clocks ---------------------------------------------------------------------------


def test_the_default_actor_is_the_user_of_the_system(monkeypatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "ann")
    experiment = new_experiment()
    assert experiment.events()[0].actor == "ann"
    other = Experiment.open(experiment._journal.storage, actor=" ward bot ")
    other.ask({"C": 1})
    assert experiment.events()[1].actor == "ward bot"


def test_a_user_without_a_name_is_a_number(monkeypatch):
    def raise_key_error():
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(getpass, "getuser", raise_key_error)
    assert new_experiment().events()[0].actor == f"user {os.getuid()}"


def test_a_clock_that_is_far_behind_is_an_error(monkeypatch):
    time = datetime(2026, 3, 1, tzinfo=UTC)
    monkeypatch.setattr(event_module, "now", lambda: time)
    experiment = new_experiment()
    time -= timedelta(minutes=4)
    experiment.ask({"C": 1})
    assert experiment.events()[1].at == experiment.events()[0].at
    time -= timedelta(minutes=2)
    with raises_code("conflict", "2026-02-28T23:54", "`accept_clock`"):
        experiment.ask({"C": 1})
    assert experiment.head.number == 2
    patient = Experiment.open(experiment._journal.storage, accept_clock=True)
    patient.ask({"C": 1})
    assert [event.at for event in patient.events()] == [experiment.events()[0].at] * 3
    assert patient.audit().ok


# -- the journal is self-contained ----------------------------------------------------------------


def rich_problem():
    graph = CausalGraph.parse("C -> X -> Y; M -> X; M -> Y; Z ?-> X")
    return Problem(
        graph, "Y", "C", hidden=("M",), minimise=True, edge_prior={"Z -> X": 0.3},
        domains={"Y": ("none", "some", "much")}, reward_values={"none": 0, "some": 2, "much": 7},
    )  # fmt: skip


def test_the_journal_holds_the_whole_problem_and_opens_no_file(tmp_path, monkeypatch):
    file, prior = tmp_path / "ward.toml", tmp_path / "prior.toml"
    rich_problem().save(file)
    prior.write_text("Z = [3.0, 1.0]\n")
    storage = MemoryStorage()
    made = Experiment.create(storage, "w", file, "ts", {"prior": prior}, seed=3)
    assert made.events()[0].payload["options"] == {
        "prior": {"Z": [3.0, 1.0]}, "propensity_samples": 1000, "graph_free_prior": 0.0,
    }  # fmt: skip
    asked = made.ask({"C": 1})
    made.tell(1, {"Y": "much", "X": 1, "Z": 0} | dict(asked.arm))
    file.unlink(), prior.unlink()

    def no(*_args, **_kwargs):
        raise AssertionError("a file was opened, or code imported")

    with monkeypatch.context() as closed:
        closed.setattr("builtins.open", no)
        closed.setattr("pathlib.Path.read_bytes", no)
        closed.setattr("importlib.import_module", no)
        opened = Experiment.open(storage)
        assert opened.problem == rich_problem() and opened.records() == made.records()
    assert opened.problem.minimise and opened.problem.edge_priors == {"Z -> X": 0.3}
    assert opened.belief.as_dict() == made.belief.as_dict()
    twin = Belief(rich_problem(), {"Z": [3.0, 1.0]})
    with_prior = new_experiment(rich_problem(), "ts", {"prior": {"Z": [3.0, 1.0]}})
    context = {"C": 1}
    assert np.allclose(with_prior.belief.mean_rewards(context), twin.mean_rewards(context))
    assert opened.audit().ok


def test_soft_problems_and_networks_are_read_from_the_journal():
    soft = Problem(CausalGraph.parse("X -> Z -> Y"), "Y", soft=0.1)
    assert Experiment.open(new_experiment(soft)._journal.storage).problem == soft
    alarm = load_problem("asia")
    assert Experiment.open(new_experiment(alarm, "ucb")._journal.storage).problem == alarm


def test_each_call_sees_the_events_of_others():
    one = new_experiment()
    other = Experiment.open(one._journal.storage)
    assert one.ask({"C": 1}).id == 1 and other.ask({"C": 1}).id == 2
    other.tell(1, {"Y": 1})
    one.tell(1, {"Y": 1})
    with raises_code("conflict", "Y is recorded as 1, not 0"):
        one.tell(1, {"Y": 0})
    assert one.records() == other.records() and one.head == other.head


# -- special cases --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "code", "mentioned"),
    [
        (lambda x: x.ask({"C": 10**5000}), "too-large", "C"),
        (lambda x: x.tell(1, {"Y": 10**5000}), "too-large", "Y"),
        (lambda x: x.ask_many(5), "invalid-type", "list of contexts"),
        (lambda x: x.ask_many(np.zeros((2, 2))), "invalid-type", "context"),
        (lambda x: x.ask_many([]), "missing-value", "list of contexts"),
        (lambda x: x.tell(True, {"Y": 1}), "unknown-decision", "True"),
        (lambda x: x.import_records({"X": [1]}, source=os), "invalid-type", "source="),
        (lambda _: new_experiment(seed=2**128), "invalid-number", "seed="),
        (lambda _: new_experiment(actor="a\udc80"), "invalid-type", "actor="),
        (lambda _: new_experiment(actor="a\nb"), "invalid-type", "1 to 200 printable characters"),
    ],
)
def test_invalid_python_values_are_refused(call, code, mentioned):
    experiment = new_experiment()
    experiment.ask({"C": 0})
    before = experiment.head
    with raises_code(code, mentioned):
        call(experiment)
    assert experiment.head == before


def test_numpy_numbers_and_pandas_rows_are_accepted():
    pandas = pytest.importorskip("pandas")
    experiment = new_experiment()
    asked = experiment.ask_many(pandas.DataFrame({"C": [0, 1]}))
    assert [one.context["C"] for one in asked] == ["0", "1"]
    experiment.tell(np.int64(1), {"Y": np.int64(1)}, played="do()", unrelated=np.True_)
    assert experiment.case(1).is_unrelated is True


def test_naming_the_same_policy_keeps_its_options():
    experiment = new_experiment(options={"samples": 60})
    experiment.revise(policy="ids", options={"delta": 0.1}, reason="why not")
    assert experiment.options["samples"] == 60 and experiment.options["delta"] == 0.1
    experiment.options["prior"] = 7
    assert experiment.options["prior"] == 1.0


def test_an_unprintable_user_name_is_replaced(monkeypatch):
    monkeypatch.setenv("LOGNAME", "j\udcf6rg\n")
    assert event_module.resolve_actor(None) == "j?rg?"
