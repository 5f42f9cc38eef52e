"""IDS: the paper's choice, and the options beyond it."""

import re

import numpy as np
import pytest
from support.errors import raises_code
from support.policies import TWO_ARMS

from dowise import CausalGraph, Problem, load_problem, make_policy
from dowise.information import estimate, information_ratio, least_ratio, minimise_ratio

TASK1, TASK3 = load_problem("task1"), load_problem("task3")


def test_a_decision_is_the_minimiser_on_the_same_draws():
    policy = make_policy("ids", TASK3, samples=500)
    decision = policy.decide({"C": 1}, rng=11)
    expected = estimate(policy.belief.draw_rewards({"C": 1}, 500, rng=11))
    action = minimise_ratio(expected.delta, expected.gain)
    for figure in ("delta", "gain", "best"):
        np.testing.assert_array_equal(decision.figures[figure], getattr(expected, figure))
    assert decision.figures["q"] == action.probability
    assert decision.figures["pair"] == tuple(TASK3.arms[i] for i in action[:2])
    pi = np.zeros(9)
    pi[action.first] += action.probability
    pi[action.second] += 1 - action.probability
    np.testing.assert_allclose(decision.probabilities, pi)
    ratio = (pi @ expected.delta) ** 2 / (pi @ expected.gain)
    assert decision.figures["ratio"] == pytest.approx(ratio)


@pytest.mark.parametrize("floor", [0, 0.3])
def test_arms_are_played_as_often_as_the_probabilities_say(floor):
    """2,000 decisions: each arm within five standard errors of the sum of its probabilities."""
    # do(X=1) is known to be good and do(X=0) little known: worth trying occasionally.
    policy = make_policy("ids", TWO_ARMS, samples=400, prior={"Y": [[3, 3], [40, 60]]}, floor=floor)
    played, expected, variance = np.zeros(2), np.zeros(2), np.zeros(2)
    for seed in range(2000):
        decision = policy.decide(rng=seed)
        played[TWO_ARMS.arm_index(decision.arm)] += 1
        pi = decision.probabilities
        expected, variance = expected + pi, variance + pi * (1 - pi)
    assert (variance > 200).all()  # real mixtures
    assert (np.abs(played - expected) <= 5 * np.sqrt(variance)).all()


@pytest.mark.parametrize("options", [{}, {"gain": "all", "about": "map", "floor": 0.5}], ids=str)
def test_only_allowed_arms_compete(options):
    policy = make_policy("ids", TASK3, samples=300, **options)
    allowed = ["do(X1=0)", "do(X2=1)"]
    indices = [TASK3.arm_index(arm) for arm in allowed]
    decision = policy.decide({"C": 0}, 3, allowed)
    assert decision.figures["best"][indices].sum() == pytest.approx(1)
    assert decision.probabilities[indices].sum() == pytest.approx(1)
    others = np.setdiff1d(np.arange(9), indices)
    assert np.isnan(decision.figures["delta"][others]).all()


def test_figures_include_intervals():
    decision = make_policy("ids", load_problem("task2")).decide({"C": 0}, 0)
    interval = decision.figures["gain_interval"]
    np.testing.assert_allclose(interval.high, np.log(2))
    assert (interval.low == 0).all()
    assert (decision.figures["delta_interval"].high > decision.figures["delta"]).all()
    names = ("delta", "gain", "best", "ratio", "pair", "q", "delta_interval", "gain_interval")
    assert {*decision.figures} == {*names}


@pytest.mark.parametrize("interval", ["point", "optimistic", "pessimistic"])
def test_ties_of_wide_intervals_do_not_favour_the_first_arm(interval):
    """With everything known, the best arm is played, though all lower ends of Δ are 0."""
    prior = {"Y": [[[90, 10], [90, 10]], [[10, 90], [10, 90]]]}
    policy = make_policy("ids", TASK1, samples=200, interval=interval, prior=prior)
    assert str(policy.decide(rng=0).arm) == "do(X=1)"


def test_units_do_not_change_the_choice():
    plain = make_policy("ids", Problem(TASK1.graph, "Y", non_manipulable="Z"))
    values = {"0": -50, "1": 150}
    scaled = make_policy(
        "ids", Problem(TASK1.graph, "Y", non_manipulable="Z", reward_values=values)
    )
    for seed in range(20):
        first, second = plain.decide(rng=seed), scaled.decide(rng=seed)
        assert first.arm == second.arm
        np.testing.assert_allclose(first.figures["delta"], second.figures["delta"], atol=1e-6)


def test_do_nothing_can_teach_less_than_a_rare_intervention():
    """Section 6's X -> Y: X = 0 is rare, so do() hardly ever shows Y there; do(X=0) tells far more
    about which arm is best. do() is not in a POMIS, so it is passed as an arm."""
    problem = Problem(TWO_ARMS.graph, "Y", arms=["do()", "do(X=0)", "do(X=1)"])
    prior = {"X": [1, 99], "Y": [[1, 1], [50, 50]]}
    policy = make_policy("ids", problem, samples=20_000, prior=prior)
    nothing, rare, _common = policy.decide(rng=0).figures["gain"]
    assert rare > 10 * nothing
    assert [str(arm) for arm in TWO_ARMS.arms] == ["do(X=0)", "do(X=1)"]


def test_a_reason_states_loss_information_and_likely_best_arm():
    text = str(make_policy("ids", TASK1).decide(rng=0))
    assert text.startswith("do(X=") and "best trade-off of cost and information: " in text
    taught, certainty = re.fullmatch(
        r".*: expected to lose 0\.\d+ against the best arm and to resolve (\d+) % of the "
        r"uncertainty about which arm is best; most likely the best is do\(X=\d\) \((\d+) %\)",
        text,
    ).groups()
    assert 0 < int(taught) < 20 and 33 < int(certainty) < 60
    policy = make_policy("ids", TASK3, samples=100, about="map", floor=0.99)
    reason = policy.decide({"C": 0}, 0).reason
    assert "bits about which arm is best in each context" in reason
    assert "by the floor of 99 %, which keeps every arm in play: " in reason


def test_information_is_stated_as_a_share_of_the_uncertainty():
    """In the first case one arm is the best in all draws: nothing is left to learn."""
    certain = make_policy("ids", TWO_ARMS, prior={"Y": [[1e6, 1], [1, 1e6]]}).decide(rng=0)
    assert "to resolve less than 1 % of the uncertainty" in certain.reason
    uncertain = make_policy("ids", TWO_ARMS, prior={"Y": 1e-3}).decide(rng=0)
    share = float(re.search(r"resolve (\d+) %", uncertain.reason)[1]) / 100
    best, gain = uncertain.figures["best"], uncertain.figures["gain"]
    uncertainty = -sum(p * np.log(p) for p in best if p)
    expected = gain[TWO_ARMS.arm_index(uncertain.arm)] / uncertainty
    assert share == pytest.approx(expected, abs=0.006)


def test_too_many_arms_for_the_draws_are_refused_when_the_policy_is_made():
    edges = [(f"X{i:02}", "Y") for i in range(13)]
    values = {str(i): float(i) for i in range(9)}
    wide = Problem(CausalGraph(edges), "Y", domains={"Y": range(9)}, reward_values=values)
    with raises_code("too-large", "8,192 arms and 8,192 best arms", "4.8 GB"):
        make_policy("ids", wide, samples=10**5)


# -- options beyond the paper -----------------------------------------------------------------


def test_the_defaults_are_the_paper_s_choices():
    plain = make_policy("ids", TASK3, samples=200)
    explicit = make_policy(
        "ids", TASK3, samples=200, gain="reward", about="arm", choice="mixture", floor=0
    )
    for policy in (plain, explicit):
        assert policy.gains is None and policy.compiled_trial() == policy._play_whole
    for seed in range(20):
        first, second = (policy.decide({"C": seed % 2}, seed) for policy in (plain, explicit))
        assert str(first) == str(second)
        np.testing.assert_array_equal(first.probabilities, second.probabilities)


def test_other_gains_leave_regret_and_p_star_as_they_are():
    plain = make_policy("ids", TASK3, samples=200).decide({"C": 0}, 4)
    other = make_policy("ids", TASK3, samples=200, gain="all").decide({"C": 0}, 4)
    for figure in ("delta", "best"):
        np.testing.assert_array_equal(other.figures[figure], plain.figures[figure])
    assert (other.figures["gain"] >= plain.figures["gain"] - 1e-7).all()
    assert "gain_interval" not in other.figures


def test_a_deterministic_choice_has_the_smallest_ratio():
    policy = make_policy("ids", TASK3, samples=300, choice="deterministic")
    for seed in range(10):
        decision = policy.decide({"C": 1}, seed)
        ratios = information_ratio(decision.figures["delta"], decision.figures["gain"])
        assert TASK3.arm_index(decision.arm) == ratios.argmin()
        assert decision.probabilities.max() == 1
    assert least_ratio([0.3, 0.2, 0.2], [0.0, 1e-13, 0.0]).first == 1  # nothing to gain
    assert least_ratio([0.3, 0.2, 0.4], [0.9, 0.1, 0.0]).first == 0


def test_a_floor_mixes_in_the_shares_of_the_same_draws():
    options = {"samples": 200, "choice": "deterministic"}
    plain = make_policy("ids", TASK1, **options)
    floored = make_policy("ids", TASK1, **options, floor=0.3)
    for seed in range(50):
        decision, without = floored.decide(rng=seed), plain.decide(rng=seed)
        expected = 0.7 * without.probabilities + 0.3 * decision.figures["best"]
        np.testing.assert_allclose(decision.probabilities, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"samples": 0}, "invalid-number"),
        ({"samples": 1.5}, "invalid-number"),
        ({"delta": 0}, "invalid-number"),
        ({"horizon": 0}, "invalid-number"),
        ({"floor": 1}, "invalid-number"),
        ({"floor": -0.1}, "invalid-number"),
        ({"floor": True}, "invalid-number"),
        ({"interval": "bold"}, "unknown-value"),
        ({"gain": "some"}, "unknown-value"),
        ({"about": "world"}, "unknown-value"),
        ({"choice": "random"}, "unknown-value"),
        ({"interval": "optimistic", "gain": "all"}, "invalid-option"),
    ],
)
def test_invalid_options_are_refused(options, code):
    option, value = next(iter(options.items()))
    with raises_code(code, f"{option}={value!r}"):
        make_policy("ids", TASK1, **options)
