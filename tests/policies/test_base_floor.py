"""The option `floor` of any policy."""

import pickle
from copy import copy

import numpy as np
import pytest
from support.errors import raises_code

from dowise import CausalGraph, Problem, load_problem, make_policy
from dowise.policies import BayesianPolicy, Decision, Policy, policy_names
from dowise.policies.base import one_hot
from dowise.policies.floor import add_floor
from dowise.simulation import simulate
from dowise.simulation.spec import policy_specs

pytestmark = pytest.mark.slow  # plays every policy

TINY = Problem(CausalGraph.parse("C -> X -> Y; C -> Y"), "Y", context="C")


def options_of(name):
    options = {"horizon": 11} if name == "bayes-optimal" else {}
    return options | ({"resamples": 20} if name.startswith("z2") else {})


@pytest.mark.parametrize("name", policy_names())
def test_probabilities_mix_the_rule_with_p_star(name):
    """400 decisions: each arm within five standard errors of the sum of its probabilities."""
    policy = make_policy(name, TINY, floor=0.4, **options_of(name))
    rng = np.random.default_rng(0)
    for number in range(4):
        arm = TINY.arms[number % 2]
        policy.observe(arm, {"C": 0, "Y": rng.integers(2)} | dict(arm))
    policy.observe(TINY.arms[0], {"C": 0, "Y": 1} | dict(TINY.arms[0]))
    plain = copy(policy)
    plain.floor = 0.0
    played, expected, variance = np.zeros(2), np.zeros(2), np.zeros(2)
    for seed in range(400):
        decision = policy.decide({"C": 0}, seed)
        pi = decision.probabilities
        if name != "ids":
            without = plain.decide({"C": 0}, seed)
            np.testing.assert_array_equal(
                pi, 0.6 * without.probabilities + 0.4 * decision.figures["floor"]
            )
            by_floor = decision.reason.startswith("chosen by the floor of 40 %, which keeps")
            assert by_floor or (decision.arm, decision.reason) == (without.arm, without.reason)
            assert set(without.figures) < set(decision.figures)
        assert (pi > 0.4 * 0.05).all()
        played[TINY.arm_index(decision.arm)] += 1
        expected, variance = expected + pi, variance + pi * (1 - pi)
    assert (np.abs(played - expected) <= 5 * np.sqrt(variance)).all()


@pytest.mark.parametrize(
    ("name", "source"), [("ts", "ts"), ("kl-ucb", "bernoulli-ts"), ("random", "bernoulli-ts")]
)
def test_p_star_comes_from_the_belief_or_from_the_rewards(name, source):
    """10,000 draws against 1,000: within five standard errors of a share."""
    problem = load_problem("task1")
    policy = make_policy(name, problem, floor=0.1)
    reference = make_policy(source, problem, propensity_samples=10_000)
    for x, y in ((0, 0), (1, 1), (1, 1), (1, 0)):
        for learner in (policy, reference):
            learner.observe({"X": x}, {"X": x, "Y": y, "Z": 0})
    share = policy.decide(rng=0).figures["floor"][1]
    exact = reference.decide(rng=0).probabilities[1]
    assert abs(share - exact) <= 5 * np.sqrt(exact * (1 - exact) * (1 / 1000 + 1 / 10_000))


def test_a_floor_of_0_changes_nothing():
    problem = load_problem("task1")
    policy = make_policy("ts", problem, floor=0)
    assert (policy.floor, policy.propensity_samples) == (0, 0)
    for invalid in (1, -0.1, "much", None):
        with raises_code("invalid-number", "floor="):
            make_policy("ts", problem, floor=invalid)


def test_a_policy_with_a_floor_keeps_its_type():
    problem = load_problem("task1")
    ts = make_policy("ts", problem, floor=0.1)
    assert isinstance(ts, BayesianPolicy) and ts.floor == 0.1
    assert ts.propensity_samples == 1000 and ts.compiled_trial() is None
    ucb = make_policy("ucb", problem, floor=0.1)
    assert isinstance(ucb, Policy) and not isinstance(ucb, BayesianPolicy)
    assert make_policy("bayes-optimal", TINY, horizon=3, floor=0.1).value > 0
    pickled = pickle.loads(pickle.dumps(ts))
    assert pickled.decide(rng=1).arm == ts.decide(rng=1).arm and "floor=0.1" in repr(pickled)


class FirstArm:
    """Custom policy that plays the first arm and learns nothing."""

    def __init__(self, problem, knows_probabilities=True):
        self.problem, self.knows_probabilities = problem, knows_probabilities
        self.observed = 0

    def decide(self, context=None, rng=None, allowed=None):  # noqa: ARG002
        arm = self.problem.intervention((allowed or self.problem.arms)[0])
        probabilities = one_hot(self.problem, self.problem.arm_index(arm))
        return Decision(arm, probabilities if self.knows_probabilities else None, "because")

    def decide_many(self, contexts, rng=None, allowed=None):
        return [self.decide(None, rng, allowed)] * contexts

    def observe(self, _arm, _outcome):
        self.observed += 1


def test_a_custom_policy_can_have_a_floor():
    (spec,) = policy_specs([("custom", FirstArm)])
    policy = spec.make(load_problem("task1"), floor=0.5)
    for _ in range(9):
        policy.observe("do(X=0)", {"X": 0, "Z": 0, "Y": 0})
    policy.observe("do(X=0)", {"X": 0, "Z": 0})  # without reward: p* ignores it
    assert policy.inner.observed == 10
    decision = policy.decide(rng=0)
    assert decision.probabilities[1] == pytest.approx(0.5 * decision.figures["floor"][1])
    assert decision.figures["floor"][1] < 0.1  # after nine failures
    unknown = spec.make(load_problem("task1"), floor=0.5, knows_probabilities=False)
    decisions = [unknown.decide(rng=seed) for seed in range(30)]
    assert all(decision.probabilities is None for decision in decisions)
    assert {str(decision.arm) for decision in decisions} == {"do()", "do(X=0)", "do(X=1)"}


def test_batches_of_a_custom_policy_do_not_bypass_the_floor():
    policy = add_floor(FirstArm(load_problem("task1")), 0.5)
    assert not hasattr(policy, "decide_many")
    assert policy.decide(rng=0).probabilities.max() < 1


def test_simulations_take_a_floor():
    run = {"horizon": 30, "trials": 2, "seed": 0}
    plain = simulate(["task1"], ["ucb", "ts"], **run)
    options = {"ucb": {"floor": 0.5}, "ts": {"floor": 0.5, "propensity_samples": 20}}
    first, second = (simulate(["task1"], ["ucb", "ts"], options=options, **run) for _ in range(2))
    assert first.frame().equals(second.frame())
    assert not first.frame().equals(plain.frame())
