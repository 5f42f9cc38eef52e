"""Asking and telling: what each call does, what it refuses, and that the same call may be made
again."""

import getpass
import os
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from support.errors import raises_code
from support.experiments import WARD, new

from dowise import Belief, CausalGraph, DowiseError, Problem, load_problem, make_policy
from dowise.experiment import event as made_by
from dowise.experiment.experiment import Experiment
from dowise.experiment.storage import MemoryStorage
from dowise.policies.registry import policy_names

SEEN = {"X": 1, "W": 0, "Z": 1, "Y": 1}


def seen(asked):
    return SEEN | dict(asked.arm)


# -- making and opening ----------------------------------------------------------------------------


def test_the_journal_begins_with_everything_that_is_needed():
    says = new().events()[0].payload
    assert says["seed"] == "7" and says["policy"] == "ids" and says["learn_restricted"] is True
    assert says["options"]["samples"] == 50 and says["options"]["prior"] == 1.0
    assert {"dowise", "numpy", "numba", "processor"} <= says["maker"].keys()


def test_without_a_seed_it_has_128_bits_of_the_systems_so_that_arms_can_not_be_foreseen():
    one, other = (Experiment.create(MemoryStorage(), "w", WARD, "random") for _ in range(2))
    seeds = [int(x.events()[0].payload["seed"]) for x in (one, other)]
    assert seeds[0] != seeds[1] and all(2**64 < seed < 2**128 for seed in seeds)
    arms = [[x.ask({"C": 0}).arm for _ in range(40)] for x in (one, other)]
    assert arms[0] != arms[1]  # equal with probability 8^-40 at most


def test_a_store_with_one_experiment_needs_no_name_and_one_with_two_does():
    storage = MemoryStorage()
    with pytest.raises(
        DowiseError,
        match=r"has no experiment: .*dowise new .*Python.; or",
    ):
        Experiment.open(storage)
    new(storage=storage)
    assert Experiment.open(storage).name == "w"
    Experiment.create(storage, "ward-7", WARD)
    with raises_code("missing-value", "w, ward-7"):
        Experiment.open(storage)
    with pytest.raises(DowiseError, match="no experiment 'ward-8' \\(did you mean 'ward-7'"):
        Experiment.open(storage, "ward-8")
    assert Experiment.open(storage, "ward-7").name == "ward-7"


def test_a_name_that_is_taken_is_refused_and_what_is_there_stays():
    first = new()
    first.ask({"C": 0})
    with pytest.raises(DowiseError, match="there is an experiment 'w'"):
        new(storage=first._journal.storage)
    assert first.head.number == 2 and first.audit().ok


@pytest.mark.parametrize("name", ["", "  ", "a\nb", 7, None, "x" * 201])
def test_names_are_short_texts(name):
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
def test_what_can_not_be_is_refused_and_no_store_is_made_of_it(more, code, mentioned):
    storage = MemoryStorage()
    with raises_code(code, mentioned):
        new(storage=storage, **{"options": None, **more})
    assert storage.experiments() == ()


# -- asking ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", policy_names())
def test_every_policy_decides_from_a_stream_of_its_own_and_records_true_propensities(policy):
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


def test_the_same_request_gives_the_same_decision_and_writes_nothing():
    experiment = new()
    first = experiment.ask({"C": 1}, "r1", forbid=["do(W=1)"])
    again = Experiment.open(experiment._journal.storage).ask({"C": "1"}, "r1", forbid=["do(W=1)"])
    assert again.id == first.id == 1 and again.arm == first.arm
    assert np.array_equal(again.probabilities, first.probabilities)
    assert experiment.head.number == 2


@pytest.mark.parametrize(
    "other",
    [
        ({"C": 0}, {"forbid": ["do(W=1)"]}),
        ({"C": 1}, {}),
        ({"C": 1}, {"allowed": ["do(X=1)"]}),
    ],
)
def test_the_same_request_with_another_question_is_a_conflict(other):
    experiment = new()
    experiment.ask({"C": 1}, "r1", forbid=["do(W=1)"])
    context, restriction = other
    with pytest.raises(DowiseError, match="'r1' was made before, as decision 1, with another"):
        experiment.ask(context, "r1", **restriction)
    assert experiment.head.number == 2


def test_a_request_that_says_the_same_in_other_words_is_no_conflict():
    experiment = new()
    rest = [arm for arm in WARD.arms if arm.get("W") != "1"]
    first = experiment.ask({"C": 1}, "r1", forbid=["do(W=1)"])
    assert experiment.ask({"C": 1}, "r1", allowed=rest).id == first.id


def test_a_batch_is_one_request_and_one_step():
    experiment = new()
    asked = experiment.ask_many([{"C": 0}, {"C": 1}, {"C": 0}], "batch")
    assert [one.id for one in asked] == [1, 2, 3]
    again = experiment.ask_many([{"C": 0}, {"C": 1}, {"C": 0}], "batch")
    assert [one.arm for one in again] == [one.arm for one in asked]
    for contexts, said in (
        ([{"C": 0}], "for 3 at once, now for 1"),
        ([{"C": 0}, {"C": 1}, {"C": 1}], "with another context or restriction"),
    ):
        with pytest.raises(DowiseError, match=f"decision 1, 2, 3, {said}"):
            experiment.ask_many(contexts, "batch")
    with pytest.raises(DowiseError):
        experiment.ask_many([{"C": 0}, {"C": 2}])
    assert experiment.head.number == 4


def test_a_bad_context_in_a_batch_leaves_no_part_of_it():
    experiment = new()
    with pytest.raises(DowiseError, match="C"):
        experiment.ask_many([{"C": 0}, {}])
    assert experiment.head.number == 1 and experiment.ask({"C": 0}).id == 1


def test_forbidding_a_setting_rules_out_every_arm_that_has_it():
    experiment = new()
    for _ in range(6):
        asked = experiment.ask({"C": 0}, forbid=["do(W=1)"])
        assert asked.arm.get("W") != "1"
        assert all(arm.get("W") != "1" for arm in asked.allowed)
        for arm, chance in zip(WARD.arms, asked.probabilities, strict=True):
            assert chance == 0 or arm.get("W") != "1"
    assert [case.is_restricted for case in experiment.records()] == [True] * 6
    assert experiment.status({"C": 0}, evidence=False).counts["restricted"] == 6


def test_forbidding_two_settings_together_leaves_each_of_them():
    asked = new(policy="random").ask({"C": 0}, forbid=["do(W=1, X=0)"])
    assert {str(arm) for arm in WARD.arms} - {str(arm) for arm in asked.allowed} == {"do(W=1, X=0)"}
    something = new(policy="random").ask({"C": 0}, forbid=["do()"])
    assert len(something.allowed) == len(WARD.arms) - 1


def test_a_restriction_that_restricts_nothing_is_none():
    experiment = new()
    experiment.ask({"C": 0}, allowed=WARD.arms)
    assert not experiment.records()[0].is_restricted


@pytest.mark.parametrize(
    ("restriction", "said"),
    [
        ({"forbid": [f"do({x}={i})" for x in "WX" for i in (0, 1)] + ["do()"]}, "no arm left"),
        ({"allowed": ["do(W=1, X=1)"], "forbid": ["do(X=1)"]}, "every allowed arm"),
        ({"allowed": []}, "allowed is empty"),
        ({"allowed": "do(X=1)"}, "must be a list of arms"),
        ({"forbid": {"X": 1}}, "must be a list of arms"),
        ({"forbid": ["do(Z=1)"]}, "Z"),
        ({"allowed": ["do(X=2)"]}, "X"),
        ({"request_id": ""}, "request_id=''"),
        ({"request_id": 7}, "request_id=7"),
    ],
)
def test_questions_that_can_not_be_answered(restriction, said):
    experiment = new()
    with pytest.raises(DowiseError, match=said):
        experiment.ask({"C": 1}, **restriction)
    assert experiment.head.number == 1


def test_any_number_of_decisions_may_be_pending():
    experiment = new(policy="ucb")
    arms = [experiment.ask({"C": 0}).arm for _ in WARD.arms]
    assert {*arms} == {*WARD.arms}  # an index policy counts plays that are under way
    assert [case.id for case in experiment.pending()] == [*range(1, len(arms) + 1)]


# -- telling ---------------------------------------------------------------------------------------


def test_pieces_in_any_order_say_the_same_as_all_at_once():
    at_once, in_pieces = new(), new()
    for experiment in (at_once, in_pieces):
        for _ in range(3):
            experiment.ask({"C": 1})
    for asked in at_once.records():
        at_once.tell(asked.id, seen(asked))
    for name in ("Y", "Z", "W", "X"):
        for asked in reversed(in_pieces.records()):
            in_pieces.tell(asked.id, {name: seen(asked)[name]})
    assert np.array_equal(at_once.belief.parameters, in_pieces.belief.parameters)
    assert at_once.ask({"C": 0}).arm == in_pieces.ask({"C": 0}).arm
    assert in_pieces.audit().ok


def test_a_decision_is_done_when_its_reward_is_told_or_missing_for_good():
    experiment = new()
    experiment.ask_many([{"C": 0}] * 2)
    assert experiment.tell(1, {"Z": 1}).status == "pending"
    assert experiment.tell(1, {"Y": 0}).status == "done"
    assert experiment.tell(2, {"Y": None}).status == "done"
    assert experiment.pending() == ()


def test_telling_the_same_again_changes_nothing_and_something_else_is_a_conflict():
    experiment = new()
    asked = experiment.ask({"C": 1})
    experiment.tell(1, seen(asked))
    head = experiment.head
    for values in (seen(asked), {"Y": 1}, {"Y": "1", "C": 1}, {"Y": 1.0}, {"Y": True}):
        experiment.tell(1, values)
    with raises_code("conflict", "decision 1", "Y is recorded as 1, not 0"):
        experiment.tell(1, {"Y": 0})
    with raises_code("conflict", "Y is recorded as 1, not missing"):
        experiment.tell(1, {"Y": None})
    with raises_code("conflict", "C is recorded as 1, not 0"):
        experiment.tell(1, {"C": 0})
    assert experiment.head == head


def test_a_conflict_with_what_the_arm_set_says_how_to_tell_what_was_done():
    experiment = new()
    asked = experiment.ask({"C": 1}, allowed=["do(W=0, X=1)"])
    assert experiment.tell(1, {"X": 1}).status == "pending" and experiment.head.number == 2
    with pytest.raises(DowiseError, match="set X=1, but X=0 was told; .*played"):
        experiment.tell(asked.id, {"X": 0, "Y": 1})
    assert experiment.records()[0].values == {}


def test_repeating_an_earlier_tell_after_an_amendment_is_a_no_op_but_not_with_news():
    experiment = new()
    experiment.ask({"C": 1})
    experiment.tell(1, {"Y": 1})
    experiment.amend(1, {"Y": 0}, "typo")
    head = experiment.head
    assert experiment.tell(1, {"Y": 1}).values == {"Y": "0"}
    assert experiment.amend(1, {"Y": 0}, "typo again").values == {"Y": "0"}
    with raises_code("conflict", "Y was amended to 0, not 1"):
        experiment.tell(1, {"Y": 1, "Z": 1})
    assert experiment.head == head


def test_an_amendment_keeps_what_was_said_before_in_the_journal():
    experiment = new()
    experiment.ask({"C": 1})
    experiment.tell(1, {"Y": 1, "Z": 0})
    experiment.amend(1, {"Y": 0, "Z": 0, "C": 0}, "two typos")
    says = experiment.events()[-1].payload
    assert says["values"] == {"Y": "0", "C": "0"} and says["before"] == {"Y": "1", "C": "1"}
    assert says["reason"] == "two typos"
    case = experiment.records()[0]
    assert case.context == {"C": "0"} and case.values == {"Y": "0", "Z": "0"}


def test_amending_the_context_leaves_alone_what_was_handed_out_before():
    experiment = new()
    asked = experiment.ask({"C": 1})
    experiment.amend(1, {"C": 0}, "typo")
    assert asked.context == experiment.events()[1].payload["context"] == {"C": "1"}
    asked.context["C"] = "0"
    assert experiment.audit().ok


def test_an_amended_record_counts_as_if_it_had_been_told_so_at_once():
    experiment, twin = new(), Belief(WARD)
    asked = experiment.ask({"C": 1})
    experiment.tell(1, seen(asked))
    experiment.ask({"C": 1})  # by now the first version was learned
    experiment.amend(1, {"Y": 0, "C": 0}, "typo")
    twin.update(asked.arm, seen(asked) | {"Y": 0, "C": 0})
    assert np.array_equal(experiment.belief.parameters, twin.parameters)


@pytest.mark.parametrize(
    ("values", "more", "said"),
    [
        ({"Z": 1}, {}, "Z of decision 1 has not been told yet"),
        ({"C": None}, {}, "C is context, which is always seen"),
        ({"X": 0}, {}, "set X=1, but X=0"),
        ({}, {}, "no correction was passed"),
        ({"Q": 1}, {}, "names 'Q', which is not a variable"),
        ({"Y": 5}, {}, "5"),
        ({"Y": 0}, {"reason": " "}, "a reason is required"),
        ({"Y": 0}, {"unrelated": True}, "unrelated=True needs the arm"),
        ({"Y": 0}, {"played": "do(Z=1)"}, "Z"),
    ],
)
def test_amendments_that_are_refused(values, more, said):
    experiment = new()
    experiment.ask({"C": 1}, allowed=["do(W=0, X=1)"])
    experiment.tell(1, {"Y": 1})
    head, case = experiment.head, experiment.records()[0]
    with pytest.raises(DowiseError, match=said):
        experiment.amend(1, values, **{"reason": "typo", **more})
    assert experiment.head == head and experiment.records()[0] == case


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "nothing was told"),
        (None, "nothing was told"),
        ({"Q": 1}, "names 'Q', which is not a variable"),
        ({"z": 1}, "did you mean 'Z'"),
        ({"Z": "high"}, "high"),
        ([("Z", 1)], "must map"),
    ],
)
def test_tells_that_are_refused(values, said):
    experiment = new()
    experiment.ask({"C": 1})
    with pytest.raises(DowiseError, match=said):
        experiment.tell(1, values)
    assert experiment.head.number == 2


@pytest.mark.parametrize("number", [0, 2, -1, "1", 1.0, None, True])
def test_a_decision_that_is_not_there(number):
    experiment = new()
    experiment.ask({"C": 1})
    with raises_code("unknown-decision"):
        experiment.tell(number, {"Y": 1})


def test_withdrawing_ends_a_pending_decision_once_and_what_was_seen_of_it_counts():
    experiment, twin = new(), Belief(WARD)
    asked = experiment.ask({"C": 1})
    experiment.tell(1, {"Z": 1, "X": 1} | dict(asked.arm))
    experiment.withdraw(1, "moved away")
    head = experiment.head
    assert experiment.withdraw(1, "moved away").status == "withdrawn" and experiment.head == head
    with raises_code("decision-withdrawn", "decision 1", "told"):
        experiment.tell(1, {"Y": 1})
    with raises_code("decision-withdrawn", "decision 1", "amended"):
        experiment.amend(1, {"Z": 0}, "typo")
    twin.update(asked.arm, {"C": 1, "Z": 1, "X": 1} | dict(asked.arm))
    assert np.array_equal(experiment.belief.parameters, twin.parameters)
    assert experiment.pending() == ()


def test_a_decision_with_an_outcome_can_not_be_withdrawn():
    experiment = new()
    experiment.ask({"C": 1})
    with raises_code("missing-value", "withdraw"):
        experiment.withdraw(1)
    experiment.tell(1, {"Y": 1})
    with raises_code("conflict", "decision 1"):
        experiment.withdraw(1, "late")


# -- what was done instead -------------------------------------------------------------------------


@pytest.mark.parametrize("unrelated", [False, True])
def test_what_was_done_instead_is_learned_from_only_if_that_is_said(unrelated):
    experiment, twin = new(), Belief(WARD)
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


def test_playing_as_decided_is_no_news_and_another_story_is_a_conflict():
    experiment = new()
    asked = experiment.ask({"C": 1}, allowed=["do(W=0, X=1)"])
    assert experiment.tell(1, played=asked.arm).played is None and experiment.head.number == 2
    experiment.tell(1, played="do(W=0, X=0)")
    experiment.tell(1, played="do(W=0, X=0)")
    assert experiment.head.number == 3
    for other, unrelated in (("do(W=1, X=0)", False), ("do(W=0, X=0)", True)):
        with raises_code("conflict", "recorded as played do(W=0, X=0)"):
            experiment.tell(1, played=other, unrelated=unrelated)
    experiment.amend(1, reason="it was done after all", played=asked.arm)
    assert experiment.records()[0].played is None


def test_amending_what_was_played_to_what_was_decided_is_said_once():
    experiment = new()
    asked = experiment.ask({"C": 1})
    for _ in range(2):
        experiment.amend(1, reason="to be sure", played=asked.arm, unrelated=True)
    assert experiment.head.number == 2


def test_what_was_told_must_fit_what_was_done_instead():
    experiment = new()
    experiment.ask({"C": 1}, allowed=["do(W=0)"])
    experiment.tell(1, {"X": 1})
    with pytest.raises(DowiseError, match="set X=0, but X=1 was told"):
        experiment.tell(1, played="do(W=0, X=0)")
    assert experiment.records()[0].played is None


# -- who and when ----------------------------------------------------------------------------------


def test_the_actor_is_the_systems_user_unless_named(monkeypatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "ann")
    experiment = new()
    assert experiment.events()[0].actor == "ann"
    other = Experiment.open(experiment._journal.storage, actor=" ward bot ")
    other.ask({"C": 1})
    assert experiment.events()[1].actor == "ward bot"


def test_a_user_without_a_name_acts_by_number(monkeypatch):
    def nobody():
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert new().events()[0].actor == f"user {os.getuid()}"


def test_a_clock_that_is_a_little_behind_repeats_the_time_and_one_far_behind_is_an_error(
    monkeypatch,
):
    time = datetime(2026, 3, 1, tzinfo=UTC)
    monkeypatch.setattr(made_by, "now", lambda: time)
    experiment = new()
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


# -- the journal needs nothing else ----------------------------------------------------------------


def rich_problem():
    graph = CausalGraph.parse("C -> X -> Y; M -> X; M -> Y; Z ?-> X")
    return Problem(
        graph, "Y", "C", hidden=("M",), minimise=True, edge_prior={"Z -> X": 0.3},
        domains={"Y": ("none", "some", "much")}, reward_values={"none": 0, "some": 2, "much": 7},
    )  # fmt: skip


def test_a_problem_with_all_there_is_comes_back_from_the_journal(tmp_path, monkeypatch):
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
    assert np.allclose(new(rich_problem(), "ts", {"prior": {"Z": [3.0, 1.0]}}).belief.mean_rewards(
        {"C": 1}), twin.mean_rewards({"C": 1}))  # fmt: skip
    assert opened.audit().ok


def test_a_soft_problem_and_a_network_come_back_too():
    soft = Problem(CausalGraph.parse("X -> Z -> Y"), "Y", soft=0.1)
    assert Experiment.open(new(soft)._journal.storage).problem == soft
    alarm = load_problem("asia")
    assert Experiment.open(new(alarm, "ucb")._journal.storage).problem == alarm


def test_a_call_that_others_wrote_before_sees_what_they_wrote():
    one = new()
    other = Experiment.open(one._journal.storage)
    assert one.ask({"C": 1}).id == 1 and other.ask({"C": 1}).id == 2
    other.tell(1, {"Y": 1})
    one.tell(1, {"Y": 1})
    with raises_code("conflict", "Y is recorded as 1, not 0"):
        one.tell(1, {"Y": 0})
    assert one.records() == other.records() and one.head == other.head


# -- what a strict reader found --------------------------------------------------------------------


def test_a_tell_may_be_repeated_after_the_context_was_amended():
    experiment = new()
    experiment.ask({"C": 1}, allowed=["do(X=1)"])
    told = {"C": 1, "X": 1, "Y": 1}
    experiment.tell(1, told)
    experiment.amend(1, {"C": 0}, "wrong file")
    before = experiment.head
    assert experiment.tell(1, told).context == {"C": "0"}
    assert experiment.head == before


def test_a_tell_may_be_repeated_after_something_else_was_played():
    experiment = new()
    experiment.ask({"C": 1}, allowed=["do(X=1)"])
    experiment.tell(1, {"X": 1, "Y": 1})
    experiment.amend(1, reason="misheard", played="do(X=0)")
    before = experiment.head
    experiment.tell(1, {"X": 1, "Y": 1})
    assert experiment.head == before
    with pytest.raises(DowiseError, match="set X=0"):
        experiment.tell(1, {"X": 1, "Z": 1})  # no repetition: Z is new


def test_what_an_arm_set_that_was_not_played_after_all_can_be_told():
    experiment = new()
    experiment.ask({"C": 1}, allowed=["do(X=1)"])
    experiment.tell(1, played="do(W=0)")
    experiment.amend(1, reason="misheard", played="do(X=0)")
    for _ in range(2):
        assert experiment.tell(1, {"W": 0}).values == {"W": "0"}
    assert experiment.head.number == 5
    experiment.amend(1, reason="misheard again", played="do(W=0)")
    assert experiment.tell(1, {"X": 0}).values == {"W": "0", "X": "0"}


def test_a_tell_may_be_repeated_after_a_withdrawal_and_after_its_variable_is_gone():
    experiment = new()
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


def test_plays_that_can_never_teach_are_not_under_way():
    plain, other = (new(policy="kl-ucb", learn_restricted=False) for _ in range(2))
    for experiment in (plain, other):
        for number in range(12):
            experiment.tell(experiment.ask({"C": 1}).id, {"Y": number % 2})
    for _ in range(10):
        other.ask({"C": 1}, allowed=["do(X=1)"])
    arms = [[one.arm for one in x.ask_many([{"C": 1}] * 6)] for x in (plain, other)]
    assert arms[0] == arms[1]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: x.ask({"C": 10**5000}), "thousands of digits"),
        (lambda x: x.tell(1, {"Y": 10**5000}), "thousands of digits"),
        (lambda x: x.ask_many(5), "list of contexts"),
        (lambda x: x.ask_many(np.zeros((2, 2))), "must map variables"),
        (lambda x: x.ask_many([]), "at least one"),
        (lambda x: x.tell(True, {"Y": 1}), "no decision True"),
        (lambda x: x.import_records({"X": [1]}, source=os), "source="),
        (lambda _: new(seed=2**128), "at most"),
        (lambda _: new(actor="a\udc80"), "actor="),
        (lambda _: new(actor="a\nb"), "actor="),
    ],
)
def test_bad_input_is_an_error_of_ours_and_changes_nothing(call, said):
    experiment = new()
    experiment.ask({"C": 0})
    before = experiment.head
    with pytest.raises(DowiseError, match=said):
        call(experiment)
    assert experiment.head == before


def test_numbers_of_numpy_and_rows_of_pandas_are_welcome():
    pandas = pytest.importorskip("pandas")
    experiment = new()
    asked = experiment.ask_many(pandas.DataFrame({"C": [0, 1]}))
    assert [one.context["C"] for one in asked] == ["0", "1"]
    experiment.tell(np.int64(1), {"Y": np.int64(1)}, played="do()", unrelated=np.True_)
    assert experiment.case(1).is_unrelated is True


def test_a_request_of_which_something_was_erased_is_not_repeated():
    experiment = new()
    experiment.ask_many([{"C": 0}, {"C": 1}], request_id="b")
    experiment.erase(2, "asked for")
    for contexts in ([{"C": 0}, {"C": 1}], [{"C": 0}]):
        with raises_code("decision-erased"):
            experiment.ask_many(contexts, request_id="b")


def test_the_same_policy_named_again_keeps_its_options():
    experiment = new(options={"samples": 60})
    experiment.revise(policy="ids", options={"delta": 0.1}, reason="why not")
    assert experiment.options["samples"] == 60 and experiment.options["delta"] == 0.1
    experiment.options["prior"] = 7
    assert experiment.options["prior"] == 1.0


@pytest.mark.parametrize(
    "store",
    ["host=db password=s3cr3tpw", "postgresql:/ann:s3cr3tpw@h/db", "postgres:ann:s3cr3tpw@h"],
)
def test_a_store_that_looks_like_a_url_is_refused_and_not_shown(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DowiseError, match="neither a file name nor a URL") as error:
        Experiment.create(store, "w", WARD)
    assert "s3cr3tpw" not in str(error.value) and not list(tmp_path.iterdir())


def test_an_actor_whose_name_is_no_text_still_has_one(monkeypatch):
    monkeypatch.setenv("LOGNAME", "j\udcf6rg\n")
    assert made_by.resolve_actor(None) == "j?rg?"
