"""Outcomes: their order, corrections, other arms than the chosen one, and repeated calls."""

import numpy as np
import pytest
from support.errors import raises_code
from support.experiments import WARD, new_experiment

from dowise import Belief, CausalGraph, Problem

OUTCOME = {"X": 1, "W": 0, "Z": 1, "Y": 1}


def outcome_of(asked):
    return OUTCOME | dict(asked.arm)


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


# -- other arms --------------------------------------------------------------------------------


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
    with raises_code("conflict", "X=0", "X=1"):
        experiment.tell(1, played="do(W=0, X=0)")
    assert experiment.records()[0].played is None


# -- repeated calls --------------------------------------------------------------------------------


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
    with raises_code("conflict", "X=0"):
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
    with raises_code("decision-withdrawn"):
        experiment.tell(1, {"Z": 0})
    with raises_code("unknown-variable", "'W'"):
        experiment.tell(2, {"W": 0})


@pytest.mark.parametrize("call", ["tell", "amend"])
def test_nothing_can_be_recorded_for_an_erased_decision(call):
    experiment = new_experiment(policy="random")
    experiment.ask({"C": 0})
    experiment.erase(1, "asked for")
    arguments = {"reason": "typo"} if call == "amend" else {}
    with raises_code("decision-erased", "decision 1", "separate record"):
        getattr(experiment, call)(1, {"Y": 1}, **arguments)
