"""Small logs that can be worked out by hand, whom to evaluate, what is refused and said."""

import json

import numpy as np
import pytest

from dowise import Belief, CausalGraph, DowiseError, Problem, load_problem, make_policy
from dowise.experiment.evaluation import Decide, Learn, LoggedDecision, Retract, evaluate
from dowise.policies import Decision

COIN = Problem(CausalGraph.parse("X -> Y"), "Y")  # arms do(X=0), do(X=1)
TASK2 = load_problem("task2")


def logged(number, arm, reward, chances, problem=COIN, allowed=None, **seen):
    chances = np.array(chances, dtype=float)
    allowed = np.full(len(chances), True) if allowed is None else np.array(allowed)
    outcome = {problem.reward: reward, **seen}
    context = {name: str(seen[name]) for name in problem.context}
    return LoggedDecision(number, context, chances, allowed, problem.record(arm, outcome, number))


ONE = logged(1, "do(X=1)", 1, (0.8, 0.2))
TWO = logged(2, "do(X=0)", 0, (0.5, 0.5))
THREE = logged(3, "do(X=1)", 1, (0.5, 0.5))
PROMPT = [Decide(ONE), Learn(ONE.record), Decide(TWO), Learn(TWO.record)]
LATE = [Decide(ONE), Decide(TWO), Learn(TWO.record), Learn(ONE.record)]


def test_estimates_of_two_decisions_worked_out_by_hand():
    found = evaluate(COIN, PROMPT, "do(X=1)")
    assert found.ips.value == pytest.approx((1 / 0.2 + 0) / 2)
    # The model expects 1/2 of both arms, and 2/3 of do(X=1) once that has won.
    assert found.dr.value == pytest.approx(((1 / 2 + 5 / 2) + 2 / 3) / 2)
    assert found.logged.value == pytest.approx((1 + (7 / 12 - 1 / 2)) / 2)
    assert found.difference.value == pytest.approx(found.dr.value - found.logged.value)
    assert found.earned == 0.5 and found.self_normalised == 1.0
    assert found.largest_weight == 5 and found.effective_decisions == 1
    assert found.decisions == 2 and found.unsupported == 0 and found.refusal is None


def test_a_late_outcome_teaches_nothing_before_it_comes():
    assert evaluate(COIN, LATE, "do(X=1)").dr.value == pytest.approx((3 + 1 / 2) / 2)
    np.testing.assert_allclose(evaluate(COIN, LATE, "do(X=1)").replay.predictions, 0.5)


def test_a_record_that_was_retracted_counts_no_longer():
    wrong = COIN.record("do(X=1)", {"Y": 0}, 1)
    steps = [Decide(ONE), Learn(wrong), Retract(wrong), Learn(ONE.record), Decide(TWO)]
    one, other = evaluate(COIN, steps, "ucb"), evaluate(COIN, PROMPT[:3], "ucb")
    np.testing.assert_array_equal(one.replay.predictions, other.replay.predictions)
    np.testing.assert_array_equal(one.replay.target, other.replay.target)
    assert one.as_dict() == other.as_dict()


def test_the_policy_that_decided_earned_what_was_seen_by_inverse_propensity():
    steps = [Decide(logged(i, f"do(X={i % 2})", i % 3 == 0, (0.5, 0.5))) for i in range(1, 31)]
    found = evaluate(COIN, steps, "random")
    assert found.ips.value == pytest.approx(found.earned)
    assert found.difference.value == found.difference.low == found.difference.high == 0
    assert found.verdict == "not clear"
    low, high = found.dr.normal
    assert found.dr.low < low < found.dr.value < high < found.dr.high


def test_what_had_probability_0_is_told_and_inverse_propensity_refused():
    steps = [Decide(logged(i, "do(X=0)", 1, (1, 0))) for i in range(1, 4)]
    steps += [Decide(logged(4, "do(X=1)", 1, (0.5, 0.5)))]
    found = evaluate(COIN, steps, "do(X=1)")
    assert found.unsupported == 0.75
    assert found.ips is found.self_normalised is found.dr.normal is None
    assert found.dr.value == pytest.approx((3 * 0.5 + (0.5 + 2 * 0.5)) / 4)
    assert "75.0 %" in found.refusal and "rests on the model alone" in found.words()
    half = evaluate(COIN, steps, "random")
    assert half.unsupported == 0.375


def test_an_interval_leaves_room_for_all_that_could_not_be_played():
    """All else is known for sure, so it is about as wide as the share that is not."""
    never = [Decide(logged(i, "do(X=0)", 1, (1, 0))) for i in range(1, 201)]
    seen = [Decide(logged(i, "do(X=1)", 1, (0, 1))) for i in range(201, 4001)]
    belief = Belief(COIN, {"Y": np.array([[1, 1], [1e-6, 1e6]])})  # do(X=1) is sure to win
    found = evaluate(COIN, never + seen, "do(X=1)", belief=belief)
    assert found.dr.value == pytest.approx(1) and found.dr.high == pytest.approx(1)
    assert 0.94 < found.dr.low < 0.95  # 200 of 4000, and what the other wins leave open


def test_rewards_in_units_of_ones_own_where_smaller_is_better():
    days = Problem(
        CausalGraph.parse("X -> Y"), "Y", reward_values={"0": 10, "1": 30}, minimise=True
    )
    steps = []
    for i in range(400):
        arm = i % 2
        steps.append(Decide(logged(i, f"do(X={arm})", 1 - arm, (0.5, 0.5), days)))
        steps.append(Learn(steps[-1].row.record))
    found = evaluate(days, steps, "do(X=1)")  # ten days rather than twenty on average
    assert found.ips.value == pytest.approx(10) and found.earned == 20
    assert found.dr.value == pytest.approx(10, abs=0.2) and found.dr.low >= 10
    assert found.difference.value == pytest.approx(-10, abs=0.3)
    assert found.difference.high < 0 and found.verdict == "better"
    assert "smaller is better" in found.words() and ": better." in found.words()
    worse = evaluate(days, steps, "do(X=0)")
    assert worse.verdict == "worse" and worse.ips.value == pytest.approx(30)


def test_numbers_as_a_table_and_as_json():
    found = evaluate(COIN, PROMPT, "do(X=1)")
    table = found.frame().set_index("estimate")
    assert table.loc["doubly robust", "value"] == found.dr.value
    assert list(table.loc["difference", ["low", "high"]]) == list(found.difference.interval)
    page = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert page["ips"]["value"] == found.ips.value and page["target"] == "do(X=1)"
    assert page["verdict"] == found.verdict and page["decisions"] == 2
    refused = evaluate(COIN, [Decide(logged(1, "do(X=0)", 1, (1, 0)))], "do(X=1)")
    assert refused.frame().isna().loc[1, "value"] and refused.as_dict()["ips"] is None


def test_targets_stay_among_the_allowed_arms():
    free = [Decide(logged(i, "do(X=0)", 1, (0.5, 0.5))) for i in (1, 2)]
    bound = Decide(logged(3, "do(X=0)", 0, (1, 0), allowed=(True, False)))
    arm = evaluate(COIN, [*free, bound], "do(X=1)")
    np.testing.assert_array_equal(arm.replay.target, [[0, 1], [0, 1], [1, 0]])
    assert arm.not_allowed == 1 and arm.unsupported == 0
    assert "not allowed" in arm.words()
    for name in ("random", "ts", "ids", "kl-ucb"):
        assert evaluate(COIN, [*free, bound], name).replay.target[2].tolist() == [1, 0]


def test_a_rule_has_an_arm_for_each_context():
    chances = np.full(len(TASK2.arms), 1 / len(TASK2.arms))
    steps = [Decide(logged(i, TASK2.arms[0], 1, chances, TASK2, C=i % 2)) for i in range(4)]
    rule = {("0",): TASK2.arms[1], ("1",): dict(TASK2.arms[2])}
    target = evaluate(TASK2, steps, rule).replay.target
    assert target.argmax(axis=1).tolist() == [1, 2, 1, 2] and set(target.ravel()) == {0, 1}
    with pytest.raises(DowiseError, match=r"no arm for the context \('1',\) of decision 1"):
        evaluate(TASK2, steps, {("0",): TASK2.arms[1]})


def test_a_policy_learns_what_was_known_and_draws_from_a_stream_of_its_own():
    steps = []
    for i in range(1, 41):
        steps.append(Decide(logged(i, f"do(X={i % 2})", i % 2, (0.5, 0.5))))
        steps.append(Learn(steps[-1].row.record))
    found = evaluate(COIN, steps, "ts", {"propensity_samples": 300})
    assert found.replay.target[0].min() > 0.3 and found.replay.target[-1, 1] > 0.95
    np.testing.assert_allclose(found.replay.target.sum(axis=1), 1)
    again = evaluate(COIN, iter(steps), make_policy("ts", COIN, propensity_samples=300))
    np.testing.assert_array_equal(again.replay.target, found.replay.target)
    other = evaluate(COIN, steps, "ts", {"propensity_samples": 300}, seed=1)
    assert (other.replay.target != found.replay.target).any()
    # Without probabilities the arm that it draws stands for them.
    drawn = evaluate(COIN, steps, "ts", {"propensity_samples": 0}).replay.target
    assert set(drawn.ravel()) == {0, 1} and drawn[20:, 1].mean() > 0.9


def test_what_a_policy_cannot_learn_from_is_counted_and_taken_back_without_harm():
    unseen = COIN.record("do(X=1)", {}, 1)  # no reward yet
    steps = [Learn(unseen), Decide(TWO), Retract(unseen), Learn(ONE.record), Decide(THREE)]
    assert evaluate(COIN, steps[:2], "bernoulli-ts").unused == 1
    assert "1 record" in evaluate(COIN, steps[:2], "bernoulli-ts").words()
    assert evaluate(COIN, steps, "bernoulli-ts").unused == 0


class Follower:
    """A policy without `retract`: it plays what won last."""

    def __init__(self, problem):
        self.problem, self._last = problem, problem.arms[0]

    def decide(self, context=None, rng=None, allowed=None):  # noqa: ARG002
        return Decision(self._last, None, "it won")

    def observe(self, arm, outcome):
        self._last = arm if outcome["Y"] == "1" else self._last


def test_a_policy_that_only_observes_is_fed_in_order():
    found = evaluate(COIN, [*PROMPT, Decide(THREE)], Follower(COIN))
    assert found.target == "Follower"
    assert found.replay.target.tolist() == [[1, 0], [0, 1], [0, 1]]
    unseen = COIN.record("do(X=1)", {}, 4)
    evaluate(COIN, [*PROMPT, Learn(unseen), Retract(unseen)], Follower(COIN))
    with pytest.raises(DowiseError, match="can't forget"):
        evaluate(COIN, [*PROMPT, Retract(ONE.record)], Follower(COIN))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (logged(7, "do(X=1)", 1, (1, 0)), "decision 7 played do.X=1., which had probability 0"),
        (logged(7, "do(X=1)", 1, (0.5, 0.4)), "decision 7: .* sum to 1, not 0.9"),
        (logged(7, "do(X=1)", None, (0.5, 0.5)), "decision 7 has no Y yet"),
        (logged(7, "do(X=1)", 1, (0.5, 0.5), allowed=(False, True)), "decision 7: .* not allowed"),
        (logged(7, "do(X=1)", 1, (0.5, 0.5, 0)), "decision 7: .* each of the 2 arms"),
    ],
)
def test_bad_rows_are_named(row, message):
    with pytest.raises(DowiseError, match=message):
        evaluate(COIN, [Decide(row)], "random")


def test_bad_questions_are_refused():
    with pytest.raises(DowiseError, match="no decision to evaluate"):
        evaluate(COIN, [Learn(ONE.record)], "random")
    with pytest.raises(DowiseError, match="unknown policy 'tss'.*'ts'"):
        evaluate(COIN, PROMPT, "tss")
    with pytest.raises(DowiseError, match="no option 'sample'"):
        evaluate(COIN, PROMPT, "ids", {"sample": 10})
    with pytest.raises(DowiseError, match="options=.* for a policy"):
        evaluate(COIN, PROMPT, "do(X=1)", {"samples": 10})
    with pytest.raises(DowiseError, match="not one of the 2 arms"):
        evaluate(COIN, PROMPT, "do()")
    with pytest.raises(DowiseError, match="another problem"):
        evaluate(COIN, PROMPT, make_policy("random", TASK2))
    with pytest.raises(DowiseError, match="another problem"):
        evaluate(COIN, PROMPT, "random", belief=Belief(TASK2))
    with pytest.raises(DowiseError, match="level=90 must be between 0 and 1"):
        evaluate(COIN, PROMPT, "random", level=90)
    with pytest.raises(DowiseError, match="3 can't be evaluated"):
        evaluate(COIN, PROMPT, 3)
    for steps in ([Learn(ONE.record), Decide(ONE)], [Decide(ONE), Decide(ONE)]):
        with pytest.raises(DowiseError, match="decision 1 comes twice, or after its outcome"):
            evaluate(COIN, steps, "random")
    with pytest.raises(DowiseError, match="is not a step"):
        evaluate(COIN, [ONE], "random")
