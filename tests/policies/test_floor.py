"""A floor under the probabilities of any policy."""

import pickle
from copy import copy

import numpy as np
import pytest

from dowise import CausalGraph, DowiseError, Problem, check_policy, load_problem, make_policy
from dowise.policies import BayesianPolicy, Decision, Policy, policy_names
from dowise.policies.base import add_floor
from dowise.simulation import simulate
from dowise.simulation.spec import policy_specs

pytestmark = pytest.mark.slow  # every policy, played

TINY = Problem(CausalGraph.parse("C -> X -> Y; C -> Y"), "Y", context="C")
SMALL = {"bayes-optimal": {"problems": [TINY], "rounds": 10, "horizon": 11}}
THREE = Problem(
    CausalGraph.parse("Z -> X -> Y; Z -> Y"), "Y", non_manipulable="Z",
    reward_values={"bad": 0, "fair": 1, "good": 3},
)  # fmt: skip


def options_of(name):
    given = {"horizon": 11} if name == "bayes-optimal" else {}
    return given | ({"resamples": 20} if name.startswith("z2") else {})


@pytest.mark.parametrize("name", policy_names())
def test_the_contract(name):
    small = SMALL.get(name, {"rounds": 15, "problems": ["task1", "task2", THREE]})
    check_policy(name, **small | options_of(name), floor=0.2)


@pytest.mark.parametrize("name", policy_names())
def test_probabilities_are_the_policy_s_own_and_p_star(name):
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
            own = plain.decide({"C": 0}, seed)
            np.testing.assert_array_equal(
                pi, 0.6 * own.probabilities + 0.4 * decision.figures["floor"]
            )
            by_floor = decision.reason.startswith("chosen by the floor of 40 %, which keeps")
            assert by_floor or (decision.arm, decision.reason) == (own.arm, own.reason)
            assert set(own.figures) < set(decision.figures)
        assert (pi > 0.4 * 0.05).all()
        played[TINY.arm_index(decision.arm)] += 1
        expected, variance = expected + pi, variance + pi * (1 - pi)
    assert (np.abs(played - expected) <= 5 * np.sqrt(variance)).all()


def test_p_star_is_that_of_the_belief_or_of_the_rewards():
    """Ten thousand draws beside a thousand: within five standard errors of a share."""
    problem = load_problem("task1")
    for name, twin in (("ts", "ts"), ("kl-ucb", "bernoulli-ts"), ("random", "bernoulli-ts")):
        policy = make_policy(name, problem, floor=0.1)
        other = make_policy(twin, problem, propensity_samples=10_000)
        for x, y in ((0, 0), (1, 1), (1, 1), (1, 0)):
            for one in (policy, other):
                one.observe({"X": x}, {"X": x, "Y": y, "Z": 0})
        share = policy.decide(rng=0).figures["floor"][1]
        exact = other.decide(rng=0).probabilities[1]
        assert abs(share - exact) <= 5 * np.sqrt(exact * (1 - exact) * (1 / 1000 + 1 / 10_000))


def test_a_floor_of_0_is_none():
    problem = load_problem("task1")
    assert type(make_policy("ts", problem, floor=0)) is type(make_policy("ts", problem))
    for bad in (1, -0.1, "much", None):
        with pytest.raises(DowiseError, match="must be at least 0 and below 1, such as 0.1"):
            make_policy("ts", problem, floor=bad)


def test_what_it_is_stays_visible():
    ts = make_policy("ts", load_problem("task1"), floor=0.1)
    assert isinstance(ts, BayesianPolicy) and ts.floor == 0.1
    assert ts.propensity_samples == 1000 and ts.compiled_trial() is None
    ucb = make_policy("ucb", load_problem("task1"), floor=0.1)
    assert isinstance(ucb, Policy) and not isinstance(ucb, BayesianPolicy)
    assert make_policy("bayes-optimal", TINY, horizon=3, floor=0.1).value > 0
    again = pickle.loads(pickle.dumps(ts))
    assert again.decide(rng=1).arm == ts.decide(rng=1).arm and "floor=0.1" in repr(again)


class Plain:
    """A policy of somebody's own that neither learns from records nor knows its probabilities."""

    def __init__(self, problem, knows=True):
        self.problem, self.knows, self.seen = problem, knows, 0

    def decide(self, context=None, rng=None, allowed=None):
        assert rng is not None
        self.problem.context_codes(context)
        arms = self.problem.arms if allowed is None else list(allowed)
        arm = self.problem.intervention(arms[0])
        pi = np.zeros(len(self.problem.arms))
        pi[self.problem.arm_index(arm)] = 1
        return Decision(arm, pi if self.knows else None, "because")

    def observe(self, _arm, _outcome):
        self.seen += 1


def test_a_policy_of_one_s_own_has_it_too():
    (entrant,) = policy_specs([("mine", Plain)])
    policy = entrant.make(load_problem("task1"), floor=0.5)
    outcome = {"X": 0, "Z": 0, "Y": 0}
    for _ in range(9):
        policy.observe("do(X=0)", outcome)
    policy.observe("do(X=0)", {"X": 0, "Z": 0})  # no reward: the policy has seen it, p* has not
    assert policy.inner.seen == 10
    decision = policy.decide(rng=0)
    assert decision.probabilities[1] == pytest.approx(0.5 * decision.figures["floor"][1])
    assert decision.figures["floor"][1] < 0.1  # after nine failures
    unknown = entrant.make(load_problem("task1"), floor=0.5, knows=False)
    decisions = [unknown.decide(rng=seed) for seed in range(30)]
    assert all(decision.probabilities is None for decision in decisions)
    assert {str(decision.arm) for decision in decisions} == {"do()", "do(X=0)", "do(X=1)"}


def test_races_take_it():
    given = {"horizon": 30, "trials": 2, "seed": 0}
    plain = simulate(["task1"], ["ucb", "ts"], **given)
    floors = {"ucb": {"floor": 0.5}, "ts": {"floor": 0.5, "propensity_samples": 20}}
    with_floor = simulate(["task1"], ["ucb", "ts"], options=floors, **given)
    again = simulate(["task1"], ["ucb", "ts"], options=floors, **given)
    assert with_floor.frame().equals(again.frame())
    assert not with_floor.frame().equals(plain.frame())


class Always:
    """Plays the first arm, in batches too, and learns nothing."""

    def __init__(self, problem):
        self.problem = problem

    def decide(self, *_given):
        return Decision(self.problem.arms[0], np.eye(len(self.problem.arms))[0], "always")

    def decide_many(self, contexts, *_given):
        return [self.decide()] * contexts

    def observe(self, arm, outcome):
        pass


def test_batches_of_a_policy_of_ones_own_do_not_go_round_the_floor():
    policy = add_floor(Always(load_problem("task1")), 0.5)
    assert not hasattr(policy, "decide_many")
    assert policy.decide(rng=0).probabilities.max() < 1
