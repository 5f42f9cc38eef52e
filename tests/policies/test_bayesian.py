"""Policies with a belief: fantasies in batches, warnings about unused records, doubtful edges."""

import json
import warnings

import numpy as np
import pytest
from support.doubtful_problems import with_doubtful
from support.errors import raises_code
from support.policies import CONFOUNDED, DOUBTFUL, TWO_ARMS, learn_all, random_records

from dowise import Belief, CausalGraph, Problem, load_problem, make_policy
from dowise.belief.predictive import draw_record
from dowise.errors import DowiseWarning
from dowise.policies.base import Policy

TASK1, TASK3 = load_problem("task1"), load_problem("task3")


def trained(name, problem, **options):
    return learn_all(make_policy(name, problem, **options), random_records(problem, 12, seed=3))


def as_data(decisions):
    return [decision.as_dict() for decision in decisions]


# -- batches ----------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", [TASK3, CONFOUNDED], ids=["task3", "doubtful cause"])
def test_a_batch_of_ids_learns_imagined_outcomes(problem):
    policy = trained("ids", problem, samples=200)
    contexts = [{c: problem.domains[c][i % 2] for c in problem.context} for i in (0, 1, 1, 0, 0)]
    before, rng = policy.fingerprint(), np.random.default_rng(5)
    twin = make_policy("ids", problem, samples=200, belief=policy.belief.copy())
    expected = []
    for context in contexts:
        expected.append(twin.decide(context, rng))
        if len(expected) < len(contexts):
            codes, arm = problem.context_codes(context), problem.arm_index(expected[-1].arm)
            twin.learn(draw_record(twin.belief.posterior, arm, codes, rng))
    assert as_data(policy.decide_many(contexts, 5)) == as_data(expected)
    assert as_data(policy.decide_many(contexts[:1], 5)) == as_data(expected[:1])
    assert policy.fingerprint() == before
    without_fantasies = Policy.decide_many(policy, contexts, 5)
    assert as_data(without_fantasies) != as_data(expected)


def test_fantasies_spread_a_batch_over_more_arms():
    """Arms of 10 decisions after 12 records, over 60 seeds: means 3 standard errors apart.

    The seeds are fixed, so it always passes or never does; by chance a difference of 0 would look
    so large once in 740 times.
    """
    policy, context = trained("ids", TASK3, samples=100), dict.fromkeys(TASK3.context, "0")

    def arms_played(decide_many):
        batches = [decide_many([context] * 10, seed) for seed in range(60)]
        return np.array([len({decision.arm for decision in batch}) for batch in batches])

    without = arms_played(lambda *arguments: Policy.decide_many(policy, *arguments))
    difference = arms_played(policy.decide_many) - without
    assert difference.mean() > 3 * difference.std() / np.sqrt(60)


def test_imagined_outcomes_are_rounds_of_a_plan():
    policy = make_policy("bayes-optimal", TWO_ARMS, horizon=6)
    policy.observe("do(X=0)", {"Y": 1})
    decisions = policy.decide_many(5, 2)
    assert [decision.figures["rounds_left"] for decision in decisions] == [5, 4, 3, 2, 1]
    assert policy.decide(None, 0).figures["rounds_left"] == 5
    with raises_code("horizon-over", "5 of 6 rounds"):
        policy.decide_many(6, 2)


def test_imagined_outcomes_teach_about_doubtful_edges_of_the_belief():
    policy = trained("ids", TASK3, samples=50)
    policy.knowledge.belief = Belief(with_doubtful(TASK3, ("Z2 -> Y",)))
    before = policy.belief.as_dict()
    decisions = policy.decide_many([dict.fromkeys(TASK3.context, "0")] * 20, 1)
    assert all(decision.arm in TASK3.arms for decision in decisions)
    assert len({decision.figures["edges"]["Z2 -> Y"] for decision in decisions}) > 1
    assert policy.belief.as_dict() == before


# -- the belief -------------------------------------------------------------------------------


def test_a_policy_learns_into_the_belief_that_is_passed():
    belief = Belief(TASK1)
    policy = make_policy("ids", TASK1, samples=50, belief=belief)
    before = belief.as_dict()
    policy.decide_many(6, 0)
    assert policy.belief is belief and belief.as_dict() == before
    with raises_code("invalid-option", "prior or belief"):
        make_policy("ts", TASK1, prior=2, belief=belief)
    with raises_code("invalid-type", "belief must be a Belief"):
        make_policy("ts", TASK1, belief=object())
    with raises_code("wrong-problem"):
        make_policy("ts", TASK3, belief=belief)


@pytest.mark.parametrize("evidence", [False, True])
def test_many_records_are_learned_as_one_by_one_with_evidence(evidence):
    problem = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; Z -> Y"), "Y", "C")
    together, singly = (
        make_policy("ts", problem, belief=Belief(problem, evidence=evidence)) for _ in range(2)
    )
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(2, size=150).astype(str) for name in "CXZ"}
    batch = problem.records(columns | {"Y": columns["X"]})
    together.learn_many(batch)
    learn_all(singly, batch.each())
    assert together.fingerprint() == singly.fingerprint()
    assert together.belief.as_dict() == singly.belief.as_dict()


@pytest.mark.parametrize("name", ["ids", "ts"])
def test_a_decision_has_the_probabilities_of_doubtful_edges_at_that_time(name):
    policy = make_policy(name, DOUBTFUL)
    decision = policy.decide({"C": 1}, 0)
    for _ in range(30):
        policy.observe("do(X=2)", {"C": 1, "Z": 0, "Y": 1})
        policy.observe("do(X=2)", {"C": 0, "Z": 0, "Y": 0})
    assert decision.figures["edges"] == pytest.approx(dict(DOUBTFUL.edge_priors))
    assert policy.decide({"C": 1}, 0).figures["edges"]["C -> Y"] > 0.99
    assert json.dumps(decision.as_dict("edges"))
    assert "edges" not in make_policy(name, TASK1).decide(rng=0).figures


# -- records that teach nothing ---------------------------------------------------------------


def test_a_variable_that_is_never_recorded_is_reported_once():
    problem = Problem(CausalGraph.parse("X -> M -> Y"), "Y", non_manipulable="M")
    policy = make_policy("ts", problem)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(9):
            policy.observe("do(X=1)", {"Y": 1})
    with pytest.warns(DowiseWarning, match=r'about M, Y, because M was.*hidden = \["M"\]'):
        policy.observe("do(X=1)", {"Y": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(100):
            policy.observe("do(X=1)", {"Y": 1})
    assert policy.belief.unused == {"M": {"M was not seen": 110}, "Y": {"M was not seen": 110}}
    assert policy.belief.never_used() == {"M": ("M",), "Y": ("M",)}


def test_a_variable_that_is_never_recorded_in_a_batch_is_reported_once():
    problem = Problem(CausalGraph.parse("X -> M -> Y"), "Y")
    policy = make_policy("ts", problem)
    batch = problem.records({"X": ["0"] * 30, "Y": ["1"] * 30})
    with pytest.warns(DowiseWarning, match="30 records taught nothing about M, Y"):
        policy.learn_many(batch)
    policy.learn_many(batch)


def test_policies_learn_although_a_variable_is_hidden():
    problem = Problem(CausalGraph.parse("X -> M -> Y"), "Y", hidden="M")
    assert str(problem.graph) == "X -> Y"
    policy = make_policy("ts", problem)
    for _ in range(20):
        policy.observe("do(X=1)", {"Y": 1})
        policy.observe("do(X=0)", {"Y": 0})
    assert policy.belief.unused == {}
    assert policy.belief.mean_rewards()[-1] > 0.9


def test_occasionally_missing_values_cause_no_warning():
    policy = make_policy("ts", TASK1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(30):
            policy.observe("do(X=1)", {"Z": 0, "Y": 1} if i % 3 else {"Y": 0})
    assert policy.belief.unused == {"Y": {"Z was not seen": 10}, "Z": {"Z was not seen": 10}}


def test_retracting_a_record_lowers_the_counts_of_unused_values():
    belief, incomplete = Belief(TASK1), TASK1.record("do(X=1)", {"Y": 1})
    belief.learn(incomplete)
    assert belief.unused == {"Y": {"Z was not seen": 1}, "Z": {"Z was not seen": 1}}
    belief.retract(incomplete)
    assert belief.unused == {}
    with raises_code("not-learned"):
        belief.retract(incomplete)
    assert belief.unused == {}


def test_counts_are_exact_although_the_prior_is_not_representable():
    belief, record = Belief(TASK1, prior=0.1), TASK1.record("do()", {"Z": 0, "X": 1, "Y": 1})
    for method in (belief.learn, belief.retract):
        for _ in range(1000):
            method(record)
    assert (belief.parameters == 0.1).all()


def test_reward_intervals_are_defined_with_doubtful_edges():
    intervals = Belief(DOUBTFUL).reward_intervals({"C": 1}, 0.9)
    assert intervals.shape == (len(DOUBTFUL.arms), 2)
    assert (intervals[:, 0] < intervals[:, 1]).all()
