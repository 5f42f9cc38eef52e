"""Index policies on the rewards of arms, and the pending plays that they count."""

import numpy as np
import pytest
from support.errors import raises_code
from support.policies import learn_all, play, random_records

from dowise import CausalGraph, Problem, load_problem, make_environment, make_policy
from dowise.policies.baselines import kl_ucb_index

PROBLEM = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y; C -> W; W -> Y; X -> W"), "Y", "C", arms="all"
)
TASK1 = load_problem("task1")
INDEX = ("ucb", "kl-ucb", "z2-kl-ucb")
FIRST, SECOND = {"C": "0"}, {"C": "1"}


def trained(name):
    policy = make_policy(name, PROBLEM)
    play(policy, make_environment(PROBLEM, seed=2), 60, rng=1)
    return policy


def decide(policy, context=FIRST):
    decision = policy.decide(context, 0)
    return decision.as_dict(*decision.figures)


@pytest.mark.parametrize("name", INDEX)
def test_pending_plays_count_where_an_arm_was_never_played(name):
    policy, chosen = make_policy(name, PROBLEM), []
    for _ in PROBLEM.arms:
        decision = policy.decide(FIRST, 0)
        chosen.append(decision.arm)
        policy.add_pending(decision.arm, FIRST)
    assert chosen == list(PROBLEM.arms)
    assert policy.decide(SECOND, 0).arm == PROBLEM.arms[0]  # nothing pending
    for _ in PROBLEM.arms:  # if all are pending, each once more
        decision = policy.decide(FIRST, 0)
        chosen.append(decision.arm)
        policy.add_pending(decision.arm, FIRST)
    assert sorted(map(str, chosen)) == sorted(2 * [str(arm) for arm in PROBLEM.arms])


@pytest.mark.parametrize("name", INDEX)
def test_pending_plays_spread_a_batch_and_leave_means_alone(name):
    policy = make_policy(name, PROBLEM)
    for i, arm in enumerate(PROBLEM.arms):
        for t in range(8):
            policy.observe(
                arm, {"X": t % 2, "W": t % 3 % 2, **FIRST, **arm, "Y": t % (2 + i % 2) % 2}
            )
    before = decide(policy)
    chosen = set()
    for _ in range(30):
        decision = policy.decide(FIRST, 0)
        chosen.add(decision.arm)
        policy.add_pending(decision.arm, FIRST)
    assert len(chosen) > 2
    after = decide(policy)
    assert after["figures"]["means"] == before["figures"]["means"]
    assert after["figures"]["counts"] == before["figures"]["counts"]
    assert sum(after["figures"]["pending"]) == 30 and sum(before["figures"]["pending"]) == 0
    assert "pending" in after["reason"] and "pending" not in before["reason"]
    assert decide(policy, SECOND)["figures"]["pending"] == [0] * len(PROBLEM.arms)


@pytest.mark.parametrize("name", INDEX)
def test_withdrawn_pending_plays_change_nothing(name):
    policy, unchanged = trained(name), trained(name)
    for arm in PROBLEM.arms[:3]:
        policy.add_pending(arm, FIRST, 4)
    policy.decide(FIRST, 0)
    for arm in PROBLEM.arms[:3]:
        policy.add_pending(arm, FIRST, -1)
        policy.add_pending(str(arm), FIRST, -3)
    assert decide(policy) == decide(unchanged) and policy.fingerprint() == unchanged.fingerprint()
    assert not policy.pending
    with raises_code("invalid-number", "1 plays of do(): 0 are pending"):
        policy.add_pending("do()", FIRST, -1)
    with raises_code("missing-value", "C"):
        policy.add_pending("do()")


@pytest.mark.parametrize("name", INDEX)
def test_pending_plays_of_other_interventions_are_ignored(name):
    """After a revision, plays may be pending that are no longer arms."""
    few = Problem(PROBLEM.graph, "Y", "C", arms=["do(X=0)", "do(X=1)"])
    policy = make_policy(name, few)
    policy.add_pending(PROBLEM.intervention("do(W=1)"), FIRST)
    policy.add_pending(PROBLEM.intervention("do(W=1)"), FIRST, -1)
    assert not policy.pending and str(policy.decide(FIRST, 0).arm) == "do(X=0)"


def test_indices_count_pending_plays_with_the_mean_so_far():
    """An arm without a finished play is assumed to bring one half."""
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", domains={"X": list("abc")})
    ucb, kl = make_policy("ucb", problem), make_policy("kl-ucb", problem)
    for policy in (ucb, kl):
        for reward in (1, 0, 0, 1, 1):
            policy.observe("do(X=a)", {"Y": reward})
        policy.observe("do(X=b)", {"Y": 0})
        policy.add_pending("do(X=a)", times=3)
        policy.add_pending("do(X=c)", times=2)
    plays, means = np.array([8, 1, 2]), np.array([0.6, 0.0, 0.5])
    decision = ucb.decide(rng=0)
    np.testing.assert_allclose(
        decision.figures["index"], means + np.sqrt(2 * np.log(11) / plays), rtol=1e-14
    )
    assert decision.figures["counts"].tolist() == [5, 1, 0]
    assert decision.figures["pending"].tolist() == [3, 0, 2]
    assert np.isnan(decision.figures["means"][2])
    index = kl.decide(rng=0).figures["index"]
    np.testing.assert_allclose(index, kl_ucb_index(plays, plays * means, 11, 3.0), rtol=1e-12)
    ucb.add_pending("do(X=c)", times=-2)
    assert str(ucb.decide(rng=0)) == (
        "do(X=c): not played yet: each arm is played once before they are compared"
    )
    ucb.add_pending("do(X=c)")
    only = ucb.decide(rng=0, allowed=["do(X=c)"])
    assert only.reason == (
        "none of its plays has an outcome yet (1 play pending), and allowing for chance it has the "
        "highest plausible mean of all arms"
    )


@pytest.mark.parametrize("name", ["ids", "ts", "bernoulli-ts", "random", "z2-ts"])
def test_policies_that_sample_ignore_pending_plays(name):
    policy = make_policy(name, PROBLEM)
    before = decide(policy)
    policy.add_pending(PROBLEM.arms[0], FIRST, 5)
    assert decide(policy) == before


@pytest.mark.parametrize("name", INDEX)
def test_a_batch_counts_its_own_decisions_as_pending(name):
    policy = learn_all(make_policy(name, TASK1), random_records(TASK1, 12, seed=3))
    batch, singly = policy.decide_many(8, 0), []
    for _ in range(8):
        singly.append(policy.decide(None, 0))
        policy.add_pending(singly[-1].arm, None)
    assert [x.as_dict() for x in batch] == [x.as_dict() for x in singly]
    assert len({decision.arm for decision in batch}) > 1
    for decision in singly:
        policy.add_pending(decision.arm, None, -1)
    again = policy.decide_many(8, 0)
    assert [x.as_dict() for x in again] == [x.as_dict() for x in batch]
