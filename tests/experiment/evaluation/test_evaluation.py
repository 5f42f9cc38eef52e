"""Evaluations of small logs that can be worked out by hand; targets; errors."""

import json

import numpy as np
import pytest
from support.errors import raises_code

from dowise import Belief, CausalGraph, DowiseError, Problem, load_problem, make_policy
from dowise.experiment.evaluation import Decide, Learn, LoggedDecision, Retract, evaluate
from dowise.policies import Decision

COIN = Problem(CausalGraph.parse("X -> Y"), "Y")  # arms do(X=0), do(X=1)
TASK2 = load_problem("task2")


def logged(number, arm, reward, chances, problem=COIN, allowed=None, **context):
    chances = np.array(chances, dtype=float)
    allowed = np.full(len(chances), True) if allowed is None else np.array(allowed)
    record = problem.record(arm, {problem.reward: reward, **context}, number)
    return LoggedDecision(number, {k: str(v) for k, v in context.items()}, chances, allowed, record)


ONE = logged(1, "do(X=1)", 1, (0.8, 0.2))
TWO = logged(2, "do(X=0)", 0, (0.5, 0.5))
THREE = logged(3, "do(X=1)", 1, (0.5, 0.5))
PROMPT = [Decide(ONE), Learn(ONE.record), Decide(TWO), Learn(TWO.record)]
LATE = [Decide(ONE), Decide(TWO), Learn(TWO.record), Learn(ONE.record)]


# -- estimates ------------------------------------------------------------------------------------


def test_estimates_of_two_decisions_are_those_by_hand():
    result = evaluate(COIN, PROMPT, "do(X=1)")
    assert result.ips.value == pytest.approx((1 / 0.2 + 0) / 2)
    # The model expects 1/2 of both arms, and 2/3 of do(X=1) after its success.
    assert result.dr.value == pytest.approx(((1 / 2 + 5 / 2) + 2 / 3) / 2)
    assert result.logged.value == pytest.approx((1 + (7 / 12 - 1 / 2)) / 2)
    assert result.difference.value == pytest.approx(result.dr.value - result.logged.value)
    assert result.earned == 0.5 and result.self_normalised == 1.0
    assert result.largest_weight == 5 and result.effective_decisions == 1
    assert result.decisions == 2 and result.unsupported == 0 and result.refusal is None


def test_late_outcomes_are_not_known_before_they_come():
    result = evaluate(COIN, LATE, "do(X=1)")
    assert result.dr.value == pytest.approx((3 + 1 / 2) / 2)
    np.testing.assert_allclose(result.replay.predictions, 0.5)


def test_retracted_records_no_longer_count():
    wrong = COIN.record("do(X=1)", {"Y": 0}, 1)
    steps = [Decide(ONE), Learn(wrong), Retract(wrong), Learn(ONE.record), Decide(TWO)]
    result, expected = evaluate(COIN, steps, "ucb"), evaluate(COIN, PROMPT[:3], "ucb")
    np.testing.assert_array_equal(result.replay.predictions, expected.replay.predictions)
    np.testing.assert_array_equal(result.replay.target, expected.replay.target)
    assert result.as_dict() == expected.as_dict()


def test_inverse_propensity_of_the_policy_that_decided_is_what_it_earned():
    steps = [Decide(logged(i, f"do(X={i % 2})", i % 3 == 0, (0.5, 0.5))) for i in range(1, 31)]
    result = evaluate(COIN, steps, "random")
    assert result.ips.value == pytest.approx(result.earned)
    assert result.difference.value == result.difference.low == result.difference.high == 0
    assert result.verdict == "not clear"
    low, high = result.dr.normal
    assert result.dr.low < low < result.dr.value < high < result.dr.high


def test_inverse_propensity_is_refused_for_arms_with_probability_0():
    steps = [Decide(logged(i, "do(X=0)", 1, (1, 0))) for i in range(1, 4)]
    steps += [Decide(logged(4, "do(X=1)", 1, (0.5, 0.5)))]
    result = evaluate(COIN, steps, "do(X=1)")
    assert result.unsupported == 0.75
    assert result.ips is result.self_normalised is result.dr.normal is None
    assert result.dr.value == pytest.approx((3 * 0.5 + (0.5 + 2 * 0.5)) / 4)
    assert "75.0 %" in result.refusal and "rests on the model alone" in result.words()
    assert evaluate(COIN, steps, "random").unsupported == 0.375
    assert result.frame().isna().loc[1, "value"] and result.as_dict()["ips"] is None


def test_intervals_allow_for_what_could_not_be_played():
    never = [Decide(logged(i, "do(X=0)", 1, (1, 0))) for i in range(1, 201)]
    certain = [Decide(logged(i, "do(X=1)", 1, (0, 1))) for i in range(201, 4001)]
    belief = Belief(COIN, {"Y": np.array([[1, 1], [1e-6, 1e6]])})  # do(X=1) is sure to win
    result = evaluate(COIN, never + certain, "do(X=1)", belief=belief)
    assert result.dr.value == pytest.approx(1) and result.dr.high == pytest.approx(1)
    assert 0.94 < result.dr.low < 0.95  # 200 of 4000, and what the other wins leave open


def test_units_of_the_user_and_smaller_is_better():
    days = Problem(
        CausalGraph.parse("X -> Y"), "Y", reward_values={"0": 10, "1": 30}, minimise=True
    )
    steps = []
    for i in range(400):
        arm = i % 2
        steps.append(Decide(logged(i, f"do(X={arm})", 1 - arm, (0.5, 0.5), days)))
        steps.append(Learn(steps[-1].row.record))
    result = evaluate(days, steps, "do(X=1)")  # ten days rather than twenty on average
    assert result.ips.value == pytest.approx(10) and result.earned == 20
    assert result.dr.value == pytest.approx(10, abs=0.2) and result.dr.low >= 10
    assert result.difference.value == pytest.approx(-10, abs=0.3)
    assert result.difference.high < 0 and result.verdict == "better"
    assert "smaller is better" in result.words() and ": better." in result.words()
    worse = evaluate(days, steps, "do(X=0)")
    assert worse.verdict == "worse" and worse.ips.value == pytest.approx(30)


def test_table_and_json_have_the_estimates():
    result = evaluate(COIN, PROMPT, "do(X=1)")
    table = result.frame().set_index("estimate")
    assert table.loc["doubly robust", "value"] == result.dr.value
    assert list(table.loc["difference", ["low", "high"]]) == list(result.difference.interval)
    data = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert data["ips"]["value"] == result.ips.value and data["target"] == "do(X=1)"
    assert data["verdict"] == result.verdict and data["decisions"] == 2


# -- targets --------------------------------------------------------------------------------------


def test_targets_stay_among_the_allowed_arms():
    free = [Decide(logged(i, "do(X=0)", 1, (0.5, 0.5))) for i in (1, 2)]
    bound = Decide(logged(3, "do(X=0)", 0, (1, 0), allowed=(True, False)))
    result = evaluate(COIN, [*free, bound], "do(X=1)")
    np.testing.assert_array_equal(result.replay.target, [[0, 1], [0, 1], [1, 0]])
    assert result.not_allowed == 1 and result.unsupported == 0
    assert "not allowed" in result.words()
    for name in ("random", "ts", "ids", "kl-ucb"):
        assert evaluate(COIN, [*free, bound], name).replay.target[2].tolist() == [1, 0]


def test_rule_has_an_arm_for_each_context():
    chances = np.full(len(TASK2.arms), 1 / len(TASK2.arms))
    steps = [Decide(logged(i, TASK2.arms[0], 1, chances, TASK2, C=i % 2)) for i in range(4)]
    rule = {("0",): TASK2.arms[1], ("1",): dict(TASK2.arms[2])}
    target = evaluate(TASK2, steps, rule).replay.target
    assert target.argmax(axis=1).tolist() == [1, 2, 1, 2] and set(target.ravel()) == {0, 1}
    with raises_code("missing-value", "('1',)", "decision 1"):
        evaluate(TASK2, steps, {("0",): TASK2.arms[1]})


def test_policy_learns_from_the_log_and_draws_from_its_own_stream():
    steps = []
    for i in range(1, 41):
        steps.append(Decide(logged(i, f"do(X={i % 2})", i % 2, (0.5, 0.5))))
        steps.append(Learn(steps[-1].row.record))
    target = evaluate(COIN, steps, "ts", {"propensity_samples": 300}).replay.target
    assert target[0].min() > 0.3 and target[-1, 1] > 0.95
    np.testing.assert_allclose(target.sum(axis=1), 1)
    again = evaluate(COIN, iter(steps), make_policy("ts", COIN, propensity_samples=300))
    np.testing.assert_array_equal(again.replay.target, target)
    other = evaluate(COIN, steps, "ts", {"propensity_samples": 300}, seed=1)
    assert (other.replay.target != target).any()
    # Without probabilities, the arm that the policy draws has probability 1.
    drawn = evaluate(COIN, steps, "ts", {"propensity_samples": 0}).replay.target
    assert set(drawn.ravel()) == {0, 1} and drawn[20:, 1].mean() > 0.9


def test_unusable_records_are_counted_and_can_be_retracted():
    without_reward = COIN.record("do(X=1)", {}, 1)
    steps = [Learn(without_reward), Decide(TWO)]
    assert evaluate(COIN, steps, "bernoulli-ts").unused == 1
    assert "1 record" in evaluate(COIN, steps, "bernoulli-ts").words()
    steps += [Retract(without_reward), Learn(ONE.record), Decide(THREE)]
    assert evaluate(COIN, steps, "bernoulli-ts").unused == 0


class RepeatWinner:
    """A policy without `retract` that plays what won last."""

    def __init__(self, problem):
        self.problem, self._last = problem, problem.arms[0]

    def decide(self, context=None, rng=None, allowed=None):  # noqa: ARG002
        return Decision(self._last, None, "it won")

    def observe(self, arm, outcome):
        self._last = arm if outcome["Y"] == "1" else self._last


def test_policy_that_only_observes():
    result = evaluate(COIN, [*PROMPT, Decide(THREE)], RepeatWinner(COIN))
    assert result.target == "RepeatWinner"
    assert result.replay.target.tolist() == [[1, 0], [0, 1], [0, 1]]
    without_reward = COIN.record("do(X=1)", {}, 4)
    steps = [*PROMPT, Learn(without_reward), Retract(without_reward)]
    evaluate(COIN, steps, RepeatWinner(COIN))
    with raises_code("invalid-policy", "RepeatWinner"):
        evaluate(COIN, [*PROMPT, Retract(ONE.record)], RepeatWinner(COIN))


# -- errors ---------------------------------------------------------------------------------------


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
def test_invalid_decisions_are_refused(row, message):
    with pytest.raises(DowiseError, match=message):
        evaluate(COIN, [Decide(row)], "random")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (([Learn(ONE.record)], "random"), "invalid-input"),  # no decision
        (([Learn(ONE.record), Decide(ONE)], "random"), "invalid-input"),
        (([Decide(ONE), Decide(ONE)], "random"), "invalid-input"),
        (([ONE], "random"), "invalid-type"),
        ((PROMPT, 3), "invalid-type"),
        ((PROMPT, "tss"), "unknown-policy"),
        ((PROMPT, "ids", {"sample": 10}), "unknown-option"),
        ((PROMPT, "do(X=1)", {"samples": 10}), "unused-option"),
        ((PROMPT, "do()"), "unknown-arm"),
        ((PROMPT, make_policy("random", TASK2)), "wrong-problem"),
        ((PROMPT, "random", None, 0.9, Belief(TASK2)), "wrong-problem"),
        ((PROMPT, "random", None, 90), "invalid-number"),
    ],
)
def test_invalid_arguments_are_refused(arguments, code):
    with raises_code(code):
        evaluate(COIN, *arguments)
