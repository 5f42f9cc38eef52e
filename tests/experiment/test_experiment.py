"""`Experiment` in Python; `test_behaviours.py` has what all surfaces do alike."""

import getpass
import os
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from support.errors import raises_code
from support.experiments import WARD, new_experiment

from dowise import Belief, CausalGraph, DowiseError, Problem, load_problem, make_policy
from dowise.experiment import event as event_module
from dowise.experiment.experiment import Experiment
from dowise.experiment.storage import MemoryStorage
from dowise.policies.registry import policy_names

OUTCOME = {"X": 1, "W": 0, "Z": 1, "Y": 1}


def outcome_of(asked):
    return OUTCOME | dict(asked.arm)


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
    with pytest.raises(
        DowiseError,
        match=r"has no experiment: .*dowise new .*Python.; or",
    ):
        Experiment.open(storage)
    new_experiment(storage=storage)
    assert Experiment.open(storage).name == "w"
    Experiment.create(storage, "ward-7", WARD)
    with raises_code("missing-value", "w, ward-7"):
        Experiment.open(storage)
    with pytest.raises(DowiseError, match="no experiment 'ward-8' \\(did you mean 'ward-7'"):
        Experiment.open(storage, "ward-8")
    assert Experiment.open(storage, "ward-7").name == "ward-7"


def test_create_refuses_an_existing_name():
    first = new_experiment()
    first.ask({"C": 0})
    with pytest.raises(DowiseError, match="there is an experiment 'w'"):
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


# -- asking ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", policy_names())
def test_every_policy_uses_the_stream_of_the_decision(policy):
    problem = Problem(CausalGraph.parse("X -> Y; Z -> Y"), "Y", non_manipulable="Z")
    options = {"horizon": 12} if policy == "bayes-optimal" else {}
    experiment = Experiment.create(MemoryStorage(), "w", problem, policy, options, seed=11)
    twin = make_policy(policy, problem, **experiment.events()[0].payload["options"])
    for number in range(1, 7):
        asked = experiment.ask()
        rng = np.random.default_rng(np.random.SeedSequence(11, spawn_key=(number,)))
        expected = twin.decide({}, rng)
        assert asked.id == number and asked.arm == expected.arm
        assert np.array_equal(asked.probabilities, expected.probabilities)
        assert asked.probabilities.sum() == pytest.approx(1) and asked.probability > 0
        outcome = {"X": 0, "Z": number % 2, "Y": 1} | dict(asked.arm)
        experiment.tell(asked.id, outcome)
        twin.observe(asked.arm, outcome)
    assert experiment.audit().ok


def test_a_batch_with_an_invalid_context_records_nothing():
    experiment = new_experiment()
    with pytest.raises(DowiseError, match="C"):
        experiment.ask_many([{"C": 0}, {}])
    assert experiment.head.number == 1 and experiment.ask({"C": 0}).id == 1


@pytest.mark.parametrize(
    ("restriction", "message"),
    [
        ({"allowed": []}, "allowed is empty"),
        ({"allowed": "do(X=1)"}, "must be a list of arms"),
        ({"forbid": {"X": 1}}, "must be a list of arms"),
        ({"request_id": ""}, "request_id=''"),
        ({"request_id": 7}, "request_id=7"),
    ],
)
def test_arguments_of_ask_of_the_wrong_type_are_refused(restriction, message):
    experiment = new_experiment()
    with pytest.raises(DowiseError, match=message):
        experiment.ask({"C": 1}, **restriction)
    assert experiment.head.number == 1


def test_index_policies_count_pending_plays():
    experiment = new_experiment(policy="ucb")
    arms = [experiment.ask({"C": 0}).arm for _ in WARD.arms]
    assert {*arms} == {*WARD.arms}  # an index policy counts plays that are under way
    assert [case.id for case in experiment.pending()] == [*range(1, len(arms) + 1)]


# -- telling ---------------------------------------------------------------------------------------


def test_values_may_be_told_in_any_order():
    at_once, in_pieces = new_experiment(), new_experiment()
    for experiment in (at_once, in_pieces):
        for _ in range(3):
            experiment.ask({"C": 1})
    for asked in at_once.records():
        at_once.tell(asked.id, outcome_of(asked))
    for name in ("Y", "Z", "W", "X"):
        for asked in reversed(in_pieces.records()):
            in_pieces.tell(asked.id, {name: outcome_of(asked)[name]})
    assert np.array_equal(at_once.belief.parameters, in_pieces.belief.parameters)
    assert at_once.ask({"C": 0}).arm == in_pieces.ask({"C": 0}).arm
    assert in_pieces.audit().ok


def test_amending_the_context_does_not_change_earlier_results():
    experiment = new_experiment()
    asked = experiment.ask({"C": 1})
    experiment.amend(1, {"C": 0}, "typo")
    assert asked.context == experiment.events()[1].payload["context"] == {"C": "1"}
    asked.context["C"] = "0"
    assert experiment.audit().ok


def test_an_amended_record_counts_like_a_correct_one():
    experiment, twin = new_experiment(), Belief(WARD)
    asked = experiment.ask({"C": 1})
    experiment.tell(1, outcome_of(asked))
    experiment.ask({"C": 1})  # by now the first version was learned
    experiment.amend(1, {"Y": 0, "C": 0}, "typo")
    twin.update(asked.arm, outcome_of(asked) | {"Y": 0, "C": 0})
    assert np.array_equal(experiment.belief.parameters, twin.parameters)


@pytest.mark.parametrize("number", [0, 2, -1, "1", 1.0, None, True])
def test_numbers_that_are_not_of_a_decision_are_refused(number):
    experiment = new_experiment()
    experiment.ask({"C": 1})
    with raises_code("unknown-decision"):
        experiment.tell(number, {"Y": 1})


def test_values_of_a_withdrawn_decision_count():
    experiment, twin = new_experiment(), Belief(WARD)
    asked = experiment.ask({"C": 1})
    experiment.tell(1, {"Z": 1, "X": 1} | dict(asked.arm))
    experiment.withdraw(1, "moved away")
    twin.update(asked.arm, {"C": 1, "Z": 1, "X": 1} | dict(asked.arm))
    assert np.array_equal(experiment.belief.parameters, twin.parameters)


# -- other arms -------------------------------------------------------------------------


@pytest.mark.parametrize("unrelated", [False, True])
def test_another_arm_is_learned_from_only_if_unrelated(unrelated):
    experiment, twin = new_experiment(), Belief(WARD)
    experiment.ask({"C": 1}, allowed=["do(W=0, X=1)"])
    outcome = {"X": 0, "W": 1, "Z": 1, "Y": 1}
    case = experiment.tell(1, outcome, played="do(W=1, X=0)", unrelated=unrelated)
    assert dict(case.arm) == {"W": "1", "X": "0"} and dict(case.asked) == {"W": "0", "X": "1"}
    if unrelated:
        twin.update("do(W=1, X=0)", outcome | {"C": 1})
    assert np.array_equal(experiment.belief.parameters, twin.parameters)
    status = experiment.status({"C": 1}, evidence=False)
    assert status.counts["played_otherwise"] == 1
    assert sum(status.left_out.values()) == (0 if unrelated else 1)


def test_playing_the_chosen_arm_is_not_a_change():
    experiment = new_experiment()
    asked = experiment.ask({"C": 1}, allowed=["do(W=0, X=1)"])
    assert experiment.tell(1, played=asked.arm).played is None and experiment.head.number == 2


def test_amending_to_the_chosen_arm_is_not_a_change():
    experiment = new_experiment()
    asked = experiment.ask({"C": 1})
    for _ in range(2):
        experiment.amend(1, reason="to be sure", played=asked.arm, unrelated=True)
    assert experiment.head.number == 2


def test_earlier_values_must_fit_another_arm():
    experiment = new_experiment()
    experiment.ask({"C": 1}, allowed=["do(W=0)"])
    experiment.tell(1, {"X": 1})
    with pytest.raises(DowiseError, match="set X=0, but X=1 was told"):
        experiment.tell(1, played="do(W=0, X=0)")
    assert experiment.records()[0].played is None


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
    with pytest.raises(DowiseError, match="clock says 2026-02-28T23:54.*`accept_clock`"):
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
        "prior": {"Z": [3.0, 1.0]}, "propensity_samples": 1000,
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


def test_a_tell_may_be_repeated_after_the_context_was_amended():
    experiment = new_experiment()
    experiment.ask({"C": 1}, allowed=["do(X=1)"])
    told = {"C": 1, "X": 1, "Y": 1}
    experiment.tell(1, told)
    experiment.amend(1, {"C": 0}, "wrong file")
    before = experiment.head
    assert experiment.tell(1, told).context == {"C": "0"}
    assert experiment.head == before


def test_a_tell_may_be_repeated_after_something_else_was_played():
    experiment = new_experiment()
    experiment.ask({"C": 1}, allowed=["do(X=1)"])
    experiment.tell(1, {"X": 1, "Y": 1})
    experiment.amend(1, reason="misheard", played="do(X=0)")
    before = experiment.head
    experiment.tell(1, {"X": 1, "Y": 1})
    assert experiment.head == before
    with pytest.raises(DowiseError, match="set X=0"):
        experiment.tell(1, {"X": 1, "Z": 1})  # no repetition: Z is new


def test_a_variable_that_the_played_arm_did_not_set_can_be_told():
    experiment = new_experiment()
    experiment.ask({"C": 1}, allowed=["do(X=1)"])
    experiment.tell(1, played="do(W=0)")
    experiment.amend(1, reason="misheard", played="do(X=0)")
    for _ in range(2):
        assert experiment.tell(1, {"W": 0}).values == {"W": "0"}
    assert experiment.head.number == 5
    experiment.amend(1, reason="misheard again", played="do(W=0)")
    assert experiment.tell(1, {"X": 0}).values == {"W": "0", "X": "0"}


def test_a_tell_may_be_repeated_after_a_withdrawal_or_a_revision():
    experiment = new_experiment()
    for _ in range(2):
        experiment.ask({"C": 1}, allowed=["do(X=1)"])
    experiment.tell(1, {"Z": 1})
    experiment.withdraw(1, "left")
    experiment.tell(2, {"W": 1, "Z": 1})
    less = Problem(CausalGraph.parse("C -> X -> Z -> Y; C -> Y"), "Y", "C", "Z", arms="all")
    experiment.revise(less, reason="W is not recorded any more")
    before = experiment.head
    experiment.tell(1, {"Z": 1})
    experiment.tell(2, {"W": 1, "Z": 1})
    assert experiment.head == before
    with pytest.raises(DowiseError, match="withdrawn"):
        experiment.tell(1, {"Z": 0})
    with pytest.raises(DowiseError, match="'W'"):
        experiment.tell(2, {"W": 0})


def test_plays_that_are_never_learned_from_are_not_pending():
    plain, other = (new_experiment(policy="kl-ucb", learn_restricted=False) for _ in range(2))
    for experiment in (plain, other):
        for number in range(12):
            experiment.tell(experiment.ask({"C": 1}).id, {"Y": number % 2})
    for _ in range(10):
        other.ask({"C": 1}, allowed=["do(X=1)"])
    arms = [[one.arm for one in x.ask_many([{"C": 1}] * 6)] for x in (plain, other)]
    assert arms[0] == arms[1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.ask({"C": 10**5000}), "thousands of digits"),
        (lambda x: x.tell(1, {"Y": 10**5000}), "thousands of digits"),
        (lambda x: x.ask_many(5), "list of contexts"),
        (lambda x: x.ask_many(np.zeros((2, 2))), "must map variables"),
        (lambda x: x.ask_many([]), "at least one"),
        (lambda x: x.tell(True, {"Y": 1}), "no decision True"),
        (lambda x: x.import_records({"X": [1]}, source=os), "source="),
        (lambda _: new_experiment(seed=2**128), "at most"),
        (lambda _: new_experiment(actor="a\udc80"), "actor="),
        (lambda _: new_experiment(actor="a\nb"), "actor="),
    ],
)
def test_invalid_python_values_are_refused(call, message):
    experiment = new_experiment()
    experiment.ask({"C": 0})
    before = experiment.head
    with pytest.raises(DowiseError, match=message):
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
