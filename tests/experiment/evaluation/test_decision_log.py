"""Steps of an evaluation: imported records, and those of whole experiments."""

import numpy as np
import pytest
from support.errors import raises_code
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
    return Decide(LoggedDecision(number, {"C": "1"}, np.full(4, 0.25), np.full(4, True), record))


@pytest.mark.parametrize("policy", ["ids", "ucb", "bernoulli-ts"])
def test_many_records_count_like_single_ones(policy):
    batch = TASK2.records(PAST)
    together = evaluate(TASK2, [decision(1), LearnMany(batch), decision(2)], policy)
    singly = evaluate(TASK2, [decision(1), *map(Learn, batch.each()), decision(2)], policy)
    np.testing.assert_array_equal(together.replay.target, singly.replay.target)
    np.testing.assert_array_equal(together.replay.predictions, singly.replay.predictions)
    assert together.unused == singly.unused == (0 if policy == "ids" else 2)
    assert (together.replay.predictions[0] != together.replay.predictions[1]).any()


def test_policy_that_only_observes_sees_each_of_many_records():
    class Recorder:
        """Records what it observes."""

        def __init__(self):
            self.problem, self.observed = TASK2, []

        def decide(self, context=None, rng=None, allowed=None):
            return make_policy("ucb", TASK2).decide(context, rng, allowed)

        def observe(self, arm, outcome):
            self.observed.append((str(arm), outcome["Y"]))

    recorder = Recorder()
    evaluate(TASK2, [LearnMany(TASK2.records(PAST)), decision(1)], recorder)
    assert recorder.observed == [
        ("do(X2=1)", "1"), ("do(X2=1)", "1"), ("do(X1=0)", "0"), ("do()", "1"),
    ]  # fmt: skip


def test_imports_are_known_from_their_event_on():
    experiment = create_experiment("task2", policy="ts")
    with raises_code("invalid-input", "no decision to evaluate"):
        experiment.evaluate("ts")
    experiment.ask({"C": 1})
    experiment.tell(1, {"Z": 0, "Y": 1})
    experiment.import_records(PAST)
    experiment.ask({"C": 1})
    experiment.tell(2, {"Z": 0, "Y": 0})
    before, after = experiment.evaluate("ids", {"samples": 100}).replay.predictions
    assert before == pytest.approx([0.5] * 4)
    twin = create_experiment("task2")
    twin.import_records(PAST)
    twin.ask({"C": 1}, allowed=[experiment.records()[0].arm])
    twin.tell(1, {"Z": 0, "Y": 1})
    assert after == pytest.approx(twin.belief.mean_rewards({"C": 1}))


def test_decisions_left_out_are_counted_by_reason():
    experiment = played_experiment("task2", 4)
    experiment.ask_many([{"C": 1}] * 5)
    experiment.withdraw(5, reason="left")
    other = next(a for a in experiment.problem.arms if a != experiment.records()[5].arm)
    experiment.tell(6, {"Y": 1}, played=other)
    experiment.tell(7, {"Y": None})
    experiment.erase(8, reason="asked for")
    result = experiment.evaluate("random")
    assert result.decisions == 4 and result.left_out == {
        "withdrawn": 1,
        "another arm was played": 1,
        "the reward is missing": 1,
        "erased": 1,
        "pending": 1,
    }
    assert "5 decisions left out (1: withdrawn; " in str(result)
    assert result.as_dict()["left_out"] == result.left_out


def test_decisions_among_other_arms_are_left_out():
    experiment = create_experiment("task2", policy="ts")
    experiment.ask({"C": 1})
    experiment.tell(1, {"Z": 0, "Y": 1})
    experiment.revise(problem=Problem(TASK2.graph, "Y", "C", "Z", arms="all"), reason="more arms")
    with pytest.raises(DowiseError, match=r"no decision to evaluate \(1: made when there were oth"):
        experiment.evaluate("ts")


def test_the_policy_that_decided_has_its_own_probabilities():
    # Its draws are from other streams, so the probabilities are only close.
    result = played_experiment("task2", 30, "ts").evaluate("ts")
    assert np.abs(result.replay.target - result.replay.logged).max() < 0.1  # 1000 draws each
    assert result.unsupported < 0.05


def test_target_sees_the_context_before_an_amendment():
    experiment = create_experiment("task2", "random")
    number = experiment.ask({"C": 0}, allowed=["do(X1=0)", "do(X1=1)"]).id
    experiment.tell(number, {"Z": 0, "X2": 0, "Y": 1})
    rule = {("0",): "do(X1=0)", ("1",): "do(X1=1)"}
    before = experiment.evaluate(rule).replay.target
    experiment.amend(number, {"C": 1}, "wrong file")
    assert (experiment.evaluate(rule).replay.target == before).all()
    assert before[0, experiment.problem.arm_index("do(X1=0)")] == 1
