"""IDS: probabilities, figures, and what drives the choice."""

import pickle
import re

import numpy as np
import pytest

from dowise import CausalGraph, DowiseError, Problem, load_problem, make_policy
from dowise.information import estimate, minimise_ratio


def test_a_decision_is_the_minimiser_on_the_same_draws():
    policy = make_policy("ids", load_problem("task3"), samples=500)
    decision = policy.decide({"C": 1}, rng=11)
    found = estimate(policy.belief.draw_rewards({"C": 1}, 500, rng=11))
    action = minimise_ratio(found.delta, found.gain)
    np.testing.assert_array_equal(decision.figures["delta"], found.delta)
    np.testing.assert_array_equal(decision.figures["gain"], found.gain)
    np.testing.assert_array_equal(decision.figures["best"], found.best)
    assert decision.figures["q"] == action.probability
    assert decision.figures["pair"] == tuple(policy.problem.arms[i] for i in action[:2])
    expected = np.zeros(9)
    expected[action.first] += action.probability
    expected[action.second] += 1 - action.probability
    np.testing.assert_allclose(decision.probabilities, expected)
    pi = decision.probabilities
    assert decision.figures["ratio"] == pytest.approx((pi @ found.delta) ** 2 / (pi @ found.gain))


def test_arms_are_played_as_often_as_the_probabilities_say():
    """3,000 decisions, each with its own mixture: within five standard errors of their sum."""
    # do(X=1) is known to be good, do(X=0) little known: worth a try now and then.
    problem = Problem(CausalGraph.parse("X -> Y"), "Y")
    policy = make_policy("ids", problem, samples=400, prior={"Y": [[3, 3], [40, 60]]})
    played, expected, variance = 0, 0.0, 0.0
    for seed in range(3000):
        decision = policy.decide(rng=seed)
        first = decision.figures["pair"][0]
        q = decision.probabilities[policy.problem.arm_index(first)]
        played += decision.arm == first
        expected += q
        variance += q * (1 - q)
    assert variance > 300  # they are real mixtures
    assert abs(played - expected) <= 5 * np.sqrt(variance)


def test_only_allowed_arms_count_as_best():
    policy = make_policy("ids", load_problem("task3"), samples=300)
    allowed = ["do(X1=0)", "do(X2=1)"]
    decision = policy.decide({"C": 0}, 3, allowed)
    places = [policy.problem.arm_index(arm) for arm in allowed]
    assert decision.figures["best"][places].sum() == pytest.approx(1)
    assert decision.probabilities[places].sum() == pytest.approx(1)
    others = np.setdiff1d(np.arange(9), places)
    assert np.isnan(decision.figures["delta"][others]).all()
    for bad, message in (
        ([], "allowed is empty"),
        ("do()", "list of arms"),
        (["do(X3=1)"], "not one"),
    ):
        with pytest.raises(DowiseError, match=message):
            policy.decide({"C": 0}, 3, bad)


def test_intervals_are_there_when_asked_for():
    decision = make_policy("ids", load_problem("task2")).decide({"C": 0}, 0)
    interval = decision.figures["gain_interval"]
    np.testing.assert_allclose(interval.high, np.log(2))
    assert (interval.low == 0).all()
    assert (decision.figures["delta_interval"].high > decision.figures["delta"]).all()
    assert {*decision.figures} == {
        "delta", "gain", "best", "ratio", "pair", "q", "delta_interval", "gain_interval",
    }  # fmt: skip


def test_the_ends_of_wide_intervals_do_not_get_stuck_on_the_first_arm():
    """With everything known, each variant plays the best arm, though all lower ends of Δ are 0."""
    for interval in ("point", "optimistic", "pessimistic"):
        prior = {"Y": [[[90, 10], [90, 10]], [[10, 90], [10, 90]]]}
        policy = make_policy(
            "ids", load_problem("task1"), samples=200, interval=interval, prior=prior
        )
        assert str(policy.decide(rng=0).arm) == "do(X=1)", interval


def test_decisions_travel_between_processes():
    decision = make_policy("ids", load_problem("task1"), samples=50).decide(rng=0)
    again = pickle.loads(pickle.dumps(decision))
    assert again.arm == decision.arm and str(again) == str(decision)
    np.testing.assert_array_equal(
        again.figures["gain_interval"].high, decision.figures["gain_interval"].high
    )


def test_units_do_not_change_the_choice():
    graph = load_problem("task1").graph
    plain = make_policy("ids", Problem(graph, "Y", non_manipulable="Z"))
    money = make_policy(
        "ids", Problem(graph, "Y", non_manipulable="Z", reward_values={"0": -50, "1": 150})
    )
    for seed in range(20):
        one, other = plain.decide(rng=seed), money.decide(rng=seed)
        assert one.arm == other.arm
        np.testing.assert_allclose(one.figures["delta"], other.figures["delta"], atol=1e-6)


def test_three_values_of_the_reward():
    problem = Problem(
        CausalGraph.parse("Z -> X -> Y; Z -> Y"), "Y", non_manipulable="Z",
        reward_values={"bad": 0, "fair": 1, "good": 3},
    )  # fmt: skip
    policy = make_policy("ids", problem, samples=300)
    decision = policy.decide(rng=0)
    assert (decision.figures["gain"] <= np.log(3)).all()
    assert decision.probabilities.sum() == pytest.approx(1)


def test_do_nothing_can_teach_less_than_a_rare_intervention():
    """Section 6's X -> Y: X = 0 is rare, so little is known of Y there and do() hardly ever shows
    it; do(X=0) tells far more about which arm is best. do() is no POMIS: it is an arm by hand."""
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", arms=["do()", "do(X=0)", "do(X=1)"])
    prior = {"X": [1, 99], "Y": [[1, 1], [50, 50]]}
    policy = make_policy("ids", problem, samples=20_000, prior=prior)
    nothing, rare, _common = policy.decide(rng=0).figures["gain"]
    assert rare > 10 * nothing
    assert [str(arm) for arm in Problem(problem.graph, "Y").arms] == ["do(X=0)", "do(X=1)"]


def test_a_decision_explains_itself():
    text = str(make_policy("ids", load_problem("task1")).decide(rng=0))
    assert text.startswith("do(X=") and "best trade-off of cost and information: " in text
    taught, sure = re.fullmatch(
        r".*: expected to lose 0\.\d+ against the best arm and to resolve (\d+) % of the "
        r"uncertainty about which arm is best; most likely the best is do\(X=\d\) \((\d+) %\)",
        text,
    ).groups()
    assert 0 < int(taught) < 20 and 33 < int(sure) < 60


def test_what_an_arm_teaches_is_a_share_of_what_is_unknown():
    """By 1,000 draws one arm of two is the best in all: nothing is left to learn."""
    problem = Problem(CausalGraph.parse("X -> Y"), "Y")
    sure = make_policy("ids", problem, prior={"Y": [[1e6, 1], [1, 1e6]]}).decide(rng=0)
    assert "to resolve less than 1 % of the uncertainty" in sure.reason
    open_ = make_policy("ids", problem, prior={"Y": 1e-3}).decide(rng=0)
    share = float(re.search(r"resolve (\d+) %", open_.reason)[1]) / 100
    best, gain = open_.figures["best"], open_.figures["gain"]
    unknown = -sum(p * np.log(p) for p in best if p)
    assert share == pytest.approx(gain[problem.arm_index(open_.arm)] / unknown, abs=0.006)


@pytest.mark.parametrize(
    "options",
    [{"samples": 0}, {"samples": 1.5}, {"delta": 0}, {"horizon": 0}, {"interval": "bold"}],
)
def test_bad_options_are_explained(options):
    with pytest.raises(DowiseError, match="must be"):
        make_policy("ids", load_problem("task1"), **options)


def test_a_generator_or_a_seed_must_be_given():
    with pytest.raises(DowiseError, match="must be a seed"):
        make_policy("ids", load_problem("task1")).decide()
