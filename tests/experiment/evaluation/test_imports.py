"""Evaluating where past records were brought in, and experiments as a whole."""

import numpy as np
import pytest
from support.played_experiments import create_experiment, played_experiment

from dowise.errors import DowiseError
from dowise.experiment.evaluation import Decide, Learn, LearnMany, LoggedDecision, evaluate
from dowise.policies import make_policy
from dowise.problem import Problem, load_problem

TASK2 = load_problem("task2")
PAST = {
    "arm": ["do(X2=1)", "do(X2=1)", "do(X1=0)", "do()", "do(X2=0)"],
    "C": [1, 1, 0, 1, 1],
    "Z": [0, 1, 1, 0, None],
    "Y": [1, 1, 0, 1, None],
}


def decision(number):
    record = TASK2.record("do(X2=1)", {"C": 1, "Z": 0, "Y": 1}, number)
    chances = np.full(4, 0.25)
    return Decide(LoggedDecision(number, {"C": "1"}, chances, np.full(4, True), record))


@pytest.mark.parametrize("policy", ["ids", "ucb", "bernoulli-ts"])
def test_many_records_teach_the_same_as_one_by_one(policy):
    batch = TASK2.records(PAST)
    one = [decision(1), LearnMany(batch), decision(2)]
    other = [decision(1), *(Learn(record) for record in batch.each(None)), decision(2)]
    first, second = evaluate(TASK2, one, policy), evaluate(TASK2, other, policy)
    np.testing.assert_array_equal(first.replay.target, second.replay.target)
    np.testing.assert_array_equal(first.replay.predictions, second.replay.predictions)
    assert first.unused == second.unused == (0 if policy == "ids" else 2)
    assert (first.replay.predictions[0] != first.replay.predictions[1]).any()


def test_a_policy_that_only_observes_is_shown_each_of_many_records():
    class Notes:
        """Notes what it is shown."""

        def __init__(self):
            self.problem, self.seen = TASK2, []

        def decide(self, context=None, rng=None, allowed=None):
            return make_policy("ucb", TASK2).decide(context, rng, allowed)

        def observe(self, arm, outcome):
            self.seen.append((str(arm), outcome["Y"]))

    notes = Notes()
    evaluate(TASK2, [LearnMany(TASK2.records(PAST)), decision(1)], notes)
    assert notes.seen == [("do(X2=1)", "1"), ("do(X2=1)", "1"), ("do(X1=0)", "0"), ("do()", "1")]


def test_what_a_revision_left_nothing_of_is_said():
    experiment = create_experiment("task2", policy="ts")
    experiment.ask({"C": 1})
    experiment.tell(1, {"Z": 0, "Y": 1})
    more = Problem(TASK2.graph, "Y", "C", "Z", arms="all")
    experiment.revise(problem=more, reason="more arms")
    with pytest.raises(DowiseError, match=r"no decision to evaluate \(1: made when there were oth"):
        experiment.evaluate("ts")


def test_an_experiment_is_evaluated_with_what_was_imported_when():
    experiment = create_experiment("task2", policy="ts")
    with pytest.raises(DowiseError, match="no decision to evaluate"):
        experiment.evaluate("ts")
    experiment.ask({"C": 1})
    experiment.tell(1, {"Z": 0, "Y": 1})
    experiment.import_records(PAST)
    experiment.ask({"C": 1})
    experiment.tell(2, {"Z": 0, "Y": 0})
    found = experiment.evaluate("ids", {"samples": 100})
    before, after = found.replay.predictions
    assert before == pytest.approx([0.5] * 4)
    twin = create_experiment("task2")
    twin.import_records(PAST)
    twin.ask({"C": 1}, allowed=[experiment.records()[0].arm])
    twin.tell(1, {"Z": 0, "Y": 1})
    assert after == pytest.approx(twin.belief.mean_rewards({"C": 1}))


def test_what_is_left_out_is_counted_by_the_reason():
    experiment = played_experiment("task2", 4)
    experiment.ask_many([{"C": 1}] * 5)
    experiment.withdraw(5, reason="left")
    experiment.tell(6, {"Y": 1}, played=next(
        arm for arm in experiment.problem.arms if arm != experiment.records()[5].arm
    ))  # fmt: skip
    experiment.tell(7, {"Y": None})
    experiment.erase(8, reason="asked for")
    found = experiment.evaluate("random")
    assert found.decisions == 4 and found.left_out == {
        "withdrawn": 1, "another arm was played": 1, "the reward is missing": 1, "erased": 1,
        "pending": 1,
    }  # fmt: skip
    assert "5 decisions left out (1: withdrawn; " in str(found)
    assert found.as_dict()["left_out"] == found.left_out


def test_the_policy_that_decided_is_found_again():
    """Evaluating the same policy with the same streams is no part of this: its shares are close."""
    experiment = played_experiment("task2", 30, "ts")
    found = experiment.evaluate("ts")
    assert np.abs(found.replay.target - found.replay.logged).max() < 0.1  # 1000 draws each
    assert found.unsupported < 0.05


def test_an_amended_context_is_not_what_the_target_saw():
    """The decision was made in C=0, whatever was found out later: the rule is asked there."""
    experiment = create_experiment("task2", "random")
    number = experiment.ask({"C": 0}, allowed=["do(X1=0)", "do(X1=1)"]).id
    experiment.tell(number, {"Z": 0, "X2": 0, "Y": 1})
    rule = {("0",): "do(X1=0)", ("1",): "do(X1=1)"}
    before = experiment.evaluate(rule).replay.target
    experiment.amend(number, {"C": 1}, "wrong file")
    assert (experiment.evaluate(rule).replay.target == before).all()
    assert before[0, experiment.problem.arm_index("do(X1=0)")] == 1
