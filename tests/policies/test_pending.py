"""Plays under way: index policies count them, so that a batch of decisions is spread over arms."""

import numpy as np
import pytest

from dowise import CausalGraph, DowiseError, Problem, make_environment, make_policy
from dowise.policies.baselines import kl_ucb_index

PROBLEM = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y; C -> W; W -> Y; X -> W"), "Y", "C", arms="all"
)
INDEX = ("ucb", "kl-ucb", "z2-kl-ucb")
HERE, THERE = {"C": "0"}, {"C": "1"}


def trained(name, rounds=60, **options):
    policy, world = make_policy(name, PROBLEM, **options), make_environment(PROBLEM, seed=2)
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        context = world.draw_context(rng)
        arm = policy.decide(context, 0).arm
        policy.observe(arm, world.play(arm, context, rng))
    return policy


def page(policy, context=HERE):
    decision = policy.decide(context, 0)
    return decision.as_dict(*decision.figures)


@pytest.mark.parametrize("name", INDEX)
def test_arms_that_were_never_played_are_asked_for_one_after_the_other(name):
    policy, asked = make_policy(name, PROBLEM), []
    for _ in PROBLEM.arms:
        decision = policy.decide(HERE, 0)
        asked.append(decision.arm)
        policy.add_pending(decision.arm, HERE)
    assert asked == list(PROBLEM.arms)
    assert policy.decide(THERE, 0).arm == PROBLEM.arms[0]  # nothing is under way there
    for _ in PROBLEM.arms:  # and when all are under way, once more each, nobody knowing better
        decision = policy.decide(HERE, 0)
        asked.append(decision.arm)
        policy.add_pending(decision.arm, HERE)
    assert sorted(map(str, asked)) == sorted(2 * [str(arm) for arm in PROBLEM.arms])


@pytest.mark.parametrize("name", INDEX)
def test_a_batch_is_spread_and_means_stay(name):
    policy = make_policy(name, PROBLEM)
    for i, arm in enumerate(PROBLEM.arms):
        for t in range(8):
            policy.observe(
                arm, {"X": t % 2, "W": t % 3 % 2, **HERE, **arm, "Y": t % (2 + i % 2) % 2}
            )
    before = page(policy)
    asked = set()
    for _ in range(30):
        decision = policy.decide(HERE, 0)
        asked.add(decision.arm)
        policy.add_pending(decision.arm, HERE)
    assert len(asked) > 2
    after = page(policy)
    assert after["figures"]["means"] == before["figures"]["means"]
    assert after["figures"]["counts"] == before["figures"]["counts"]
    assert sum(after["figures"]["pending"]) == 30 and sum(before["figures"]["pending"]) == 0
    assert "pending" in after["reason"] and "pending" not in before["reason"]
    assert page(policy, THERE)["figures"]["pending"] == [0] * len(PROBLEM.arms)


@pytest.mark.parametrize("name", INDEX)
def test_what_is_taken_back_leaves_no_trace(name):
    policy, other = trained(name), trained(name)
    for arm in PROBLEM.arms[:3]:
        policy.add_pending(arm, HERE, 4)
    policy.decide(HERE, 0)
    for arm in PROBLEM.arms[:3]:
        policy.add_pending(arm, HERE, -1)
        policy.add_pending(str(arm), HERE, -3)
    assert page(policy) == page(other) and policy.fingerprint() == other.fingerprint()
    assert not policy.pending
    with pytest.raises(DowiseError, match=r"1 plays of do\(\): 0 are pending"):
        policy.add_pending("do()", HERE, -1)
    with pytest.raises(DowiseError, match="no value for C"):
        policy.add_pending("do()")


@pytest.mark.parametrize("name", INDEX)
def test_what_is_no_arm_has_no_index_to_be_counted_in(name):
    """After a revision plays may be under way that are none of the arms any more."""
    few = Problem(PROBLEM.graph, "Y", "C", arms=["do(X=0)", "do(X=1)"])
    policy = make_policy(name, few)
    policy.add_pending(PROBLEM.intervention("do(W=1)"), HERE)
    policy.add_pending(PROBLEM.intervention("do(W=1)"), HERE, -1)
    assert not policy.pending and str(policy.decide(HERE, 0).arm) == "do(X=0)"


def test_the_indices_by_hand():
    """n + pending plays with the mean so far; an arm without a finished one brings one half."""
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", domains={"X": list("abc")})
    ucb, kl = make_policy("ucb", problem), make_policy("kl-ucb", problem)
    for policy in (ucb, kl):
        for reward in (1, 0, 0, 1, 1):
            policy.observe("do(X=a)", {"Y": reward})
        policy.observe("do(X=b)", {"Y": 0})
        policy.add_pending("do(X=a)", times=3)
        policy.add_pending("do(X=c)", times=2)
    plays, means = np.array([8, 1, 2]), np.array([0.6, 0.0, 0.5])
    found = ucb.decide(rng=0)
    np.testing.assert_allclose(
        found.figures["index"], means + np.sqrt(2 * np.log(11) / plays), rtol=1e-14
    )
    assert found.figures["counts"].tolist() == [5, 1, 0]
    assert found.figures["pending"].tolist() == [3, 0, 2]
    assert np.isnan(found.figures["means"][2])
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
def test_to_policies_that_draw_it_means_nothing(name):
    policy = make_policy(name, PROBLEM)
    before = page(policy)
    policy.add_pending(PROBLEM.arms[0], HERE, 5)
    assert page(policy) == before


def test_with_plays_under_way_a_trial_is_stepped():
    policy = make_policy("ucb", PROBLEM)
    assert policy.compiled_trial() is not None
    policy.add_pending("do()", HERE)
    assert policy.compiled_trial() is None
