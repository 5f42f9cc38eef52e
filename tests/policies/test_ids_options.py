"""What `ids` has beyond the paper: other gains, a pure choice, and a floor."""

import numpy as np
import pytest
from support.errors import raises_code

from dowise import (
    CausalGraph,
    Problem,
    check_policy,
    load_problem,
    make_policy,
)
from dowise.information import information_ratio, least_ratio
from dowise.policies.ids import InformationDirectedSampling
from dowise.simulation.trial import make_world, run_trial

OPTIONS = [
    {"gain": "all"},
    {"gain": "rows", "about": "map", "choice": "deterministic"},
    {"about": "map", "choice": "deterministic", "floor": 0.1},
    {"gain": "all", "about": "map", "choice": "deterministic", "floor": 0.1},
]
DOUBTFUL = Problem(
    CausalGraph.parse("C -> X -> Y; C ?-> Y; X <?> Y; Z -> X"), "Y", context="C"
)  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_contract(options):
    check_policy("ids", rounds=20, problems=["task1", "task2", DOUBTFUL], samples=30, **options)


def test_the_paper_s_own_are_the_defaults():
    problem = load_problem("task3")
    plain = make_policy("ids", problem, samples=200)
    told = make_policy(
        "ids", problem, samples=200, gain="reward", about="arm", choice="mixture", floor=0
    )
    for policy in (plain, told):
        assert policy.gains is None and policy.compiled_trial() == policy._play_whole
    for seed in range(20):
        one, other = (policy.decide({"C": seed % 2}, seed) for policy in (plain, told))
        assert one.arm == other.arm and str(one) == str(other)
        np.testing.assert_array_equal(one.probabilities, other.probabilities)


def test_regret_and_p_star_are_those_of_the_same_draws():
    problem = load_problem("task3")
    plain = make_policy("ids", problem, samples=200).decide({"C": 0}, 4)
    own = make_policy("ids", problem, samples=200, gain="all").decide({"C": 0}, 4)
    for name in ("delta", "best"):
        np.testing.assert_array_equal(own.figures[name], plain.figures[name])
    assert (own.figures["gain"] >= plain.figures["gain"] - 1e-7).all()
    assert "gain_interval" in plain.figures and "gain_interval" not in own.figures


def test_a_pure_choice_has_the_smallest_ratio():
    policy = make_policy("ids", load_problem("task3"), samples=300, choice="deterministic")
    for seed in range(10):
        decision = policy.decide({"C": 1}, seed)
        ratios = information_ratio(decision.figures["delta"], decision.figures["gain"])
        assert policy.problem.arm_index(decision.arm) == ratios.argmin()
        assert decision.probabilities.max() == 1


def test_without_gains_a_pure_choice_costs_least():
    assert least_ratio([0.3, 0.2, 0.2], [0.0, 1e-13, 0.0]).first == 1
    assert least_ratio([0.3, 0.2, 0.4], [0.9, 0.1, 0.0]).first == 0


def test_a_floor_mixes_p_star_in_and_arms_are_played_by_it():
    """2,000 decisions: each arm within five standard errors of the sum of its probabilities."""
    problem = load_problem("task1")
    given = {"samples": 200, "prior": {"Y": [[[3, 3], [5, 2]], [[6, 4], [2, 4]]]}}
    plain = make_policy("ids", problem, choice="deterministic", **given)
    policy = make_policy("ids", problem, choice="deterministic", floor=0.3, **given)
    played, expected, variance = np.zeros(3), np.zeros(3), np.zeros(3)
    for seed in range(2000):
        decision, without = policy.decide(rng=seed), plain.decide(rng=seed)
        pi = decision.probabilities
        np.testing.assert_allclose(
            pi, 0.7 * without.probabilities + 0.3 * decision.figures["best"], atol=1e-12
        )
        played[problem.arm_index(decision.arm)] += 1
        expected, variance = expected + pi, variance + pi * (1 - pi)
        if "by the floor" in decision.reason:
            assert "by the floor of 30 %, which keeps every arm in play: " in decision.reason
    assert (np.abs(played - expected) <= 5 * np.sqrt(variance)).all()


def test_only_allowed_arms_are_played_and_asked_about():
    policy = make_policy(
        "ids", load_problem("task3"), samples=100, gain="all", about="map", floor=0.5
    )
    allowed = ["do(X1=0)", "do(X2=1)"]
    places = [policy.problem.arm_index(arm) for arm in allowed]
    for seed in range(20):
        decision = policy.decide({"C": 0}, seed, allowed)
        assert decision.probabilities[places].sum() == pytest.approx(1)
        assert "bits about which arm is best in each context" in decision.reason


@pytest.mark.parametrize("options", OPTIONS[1:3], ids=str)
def test_a_trial_is_the_same_stepped(options):
    world = make_world("task2", 0, 0)

    def make(problem):
        return make_policy("ids", problem, samples=50, **options)

    class Stepped(InformationDirectedSampling):
        """No compiled loop plays a class of somebody's own."""

    def stepped(problem):
        return Stepped(problem, samples=50, **options)

    one, other = (run_trial(world, factory, 40, 0, 0) for factory in (make, stepped))
    np.testing.assert_array_equal(one.arms, other.arms)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"gain": "some"}, "unknown-value", "gain='some' must be one of reward, all, rows"),
        ({"about": "world"}, "unknown-value", "about='world' must be one of arm, map"),
        ({"choice": "random"}, "unknown-value", "choice='random' must be one of mixture, determ"),
        ({"floor": 1}, "invalid-number", "floor=1 must be at least 0 and below 1"),
        ({"floor": -0.1}, "invalid-number", "floor=-0.1 must be at least 0 and below 1"),
        ({"floor": True}, "invalid-number", "floor=True must be"),
        ({"gain": "all", "interval": "optimistic"}, "invalid-option", "interval='optimistic'"),
        ({"gain": "all", "interval": "optimistic"}, "invalid-option", "Lemma 4 has no intervals"),
    ],
)
def test_bad_options_are_explained(options, code, message):
    with raises_code(code, message):
        make_policy("ids", load_problem("task1"), **options)
