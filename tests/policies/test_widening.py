"""`widen`: at an alarm a policy makes its belief anew, on a graph with the suspected edges."""

import numpy as np
import pytest

from dowise import (
    Belief,
    CausalGraph,
    DowiseError,
    Problem,
    check_policy,
    load_problem,
    make_policy,
)
from dowise import make_environment as make_world
from dowise.belief import Mixture
from dowise.problem.widen import with_doubtful

TASK2 = load_problem("task2")
TRUE = Problem(TASK2.graph.with_edges("X1 -> Y"), "Y", "C", "Z", arms="all")


def play(policy, world, rounds, seed):
    rng, lost = np.random.default_rng(seed), 0.0
    for _ in range(rounds):
        context = world.draw_context(rng)
        arm = policy.decide(context, rng).arm
        policy.observe(arm, world.play(arm, context, rng))
        lost += world.regret(arm, context)
    return lost


@pytest.mark.parametrize("name", ["ts", "ids"])
def test_the_contract(name):
    options = {"samples": 100} if name == "ids" else {}
    check_policy(name, rounds=60, widen=True, **options)
    bow = Problem(CausalGraph.parse("C -> X -> Y; X <-> Y"), "Y", context="C")
    check_policy(name, rounds=60, problems=[bow], widen=0.2, **options)


@pytest.mark.parametrize("name", ["ts", "ids"])
def test_a_missing_arrow_is_put_in_and_past_records_count_again(name):
    options = {"samples": 200} if name == "ids" else {}
    policy, rng = make_policy(name, TASK2, widen=True, **options), np.random.default_rng(0)
    for number in range(120):  # X1 decides Y, which the graph does not know
        x1 = number % 2
        seen = {"C": int(rng.integers(2)), "Z": int(rng.integers(2)), "X2": int(rng.integers(2))}
        policy.observe({"X1": x1}, {**seen, "Y": x1})
    assert policy.widening.alarms
    assert {"X1 -> Y", "X1 <-> Y"} <= {*policy.widening.alarms[0]}
    wide = policy.belief.problem
    assert policy.problem is TASK2 and wide.arms == TASK2.arms
    assert wide.edge_priors["X1 -> Y"] == 0.5 and policy.belief.edges()["X1 -> Y"] > 0.99
    assert policy.belief.evidence().records == 120  # all of them, before the alarm too
    context = {"C": 0}
    assert (
        policy.belief.mean_rewards(context)[1] > 0.9 > 0.1 > policy.belief.mean_rewards(context)[0]
    )
    assert {str(policy.decide(context, seed).arm) for seed in range(20)} == {"do(X1=1)"}
    policy.retract(TASK2.record({"X1": 1}, {**seen, "Y": 1}, 119))
    assert policy.belief.evidence().records == 119 and policy.belief.evidence().recomputed


def test_a_wide_belief_is_one_that_had_learned_the_records_on_the_wide_problem():
    policy = make_policy("ts", TASK2, widen=True, prior=0.7)
    play(policy, make_world(TRUE, 6), 400, seed=1)
    assert policy.widening.alarms
    own = policy.belief
    assert isinstance(own.posterior, Mixture)
    fresh = Belief(own.problem, 0.7)
    fresh.posterior.learn_many(own.monitor.records.batch())
    assert fresh.edges() == own.edges()
    np.testing.assert_array_equal(fresh.posterior.counts, own.posterior.counts)


def test_without_an_alarm_it_decides_as_without_widen():
    world = make_world(TASK2, 1)
    one, other = make_policy("ts", TASK2), make_policy("ts", TASK2, widen=True)
    assert play(one, world, 150, seed=3) == play(other, world, 150, seed=3)
    assert not other.widening.alarms


def test_what_is_certain_stays_certain_and_what_is_soft_stays_soft():
    graph = CausalGraph.parse("U -> X; U -> Y; X -> Y; Z -> Y; A <-> Y; A -> X; B <-> Y!")
    problem = Problem(graph, "Y", hidden="U", edge_prior=1.0)
    wide = with_doubtful(problem, ["Z -> X"])
    assert dict(wide.edge_priors) == {"Z -> X": 0.5}
    assert wide.arms == problem.arms and dict(wide.domains) == dict(problem.domains)
    settled = Problem(CausalGraph.parse("Z -> X ?-> Y"), "Y", edge_prior={"X -> Y": 1.0})
    assert dict(with_doubtful(settled, ["Z -> Y"]).edge_priors) == {"Z -> Y": 0.5}
    soft = Problem(CausalGraph.parse("Z -> X -> Y"), "Y", soft=0.2)
    assert dict(soft.edge_priors) == dict(with_doubtful(soft, []).edge_priors)
    assert with_doubtful(soft, []).possible.has_edges_of(soft.possible)


def records_of_a_missing_arrow():
    x1 = [0, 1] * 60
    coins = np.random.default_rng(0).integers(2, size=(3, 120)).tolist()
    columns = {"arm": [f"do(X1={x})" for x in x1], "Y": x1}
    return columns | dict(zip(("C", "Z", "X2"), coins, strict=True))


@pytest.mark.parametrize("name", ["ts", "ids"])
def test_a_belief_that_is_alarmed_already_is_widened_at_once(name):
    belief = Belief(TASK2, evidence=True)
    belief.update_many(records_of_a_missing_arrow())
    options = {"samples": 100} if name == "ids" else {}
    policy = make_policy(name, TASK2, belief=belief, widen=True, **options)
    assert "X1 -> Y" in policy.widening.alarms[0]
    assert policy.belief.edges()["X1 -> Y"] > 0.99 and belief.problem is TASK2
    later = make_policy(name, TASK2, widen=True, **options)
    later.belief.update_many(records_of_a_missing_arrow())  # not through the policy
    assert not later.widening.alarms
    assert str(later.decide({"C": 0}, 0).arm) == "do(X1=1)"
    assert later.widening.alarms == policy.widening.alarms


def test_a_widened_policy_is_saved_and_goes_on(tmp_path):
    policy = make_policy("ts", TASK2, widen=True)
    policy.belief.update_many(records_of_a_missing_arrow())
    policy.decide({"C": 0}, 0)
    policy.belief.problem.save(tmp_path / "wide.toml")
    policy.belief.save(tmp_path / "wide.json")
    problem = load_problem(tmp_path / "wide.toml")
    belief = Belief.load(tmp_path / "wide.json", problem)
    again = make_policy("ts", problem, belief=belief, widen=True)
    assert again.belief.edges() == policy.belief.edges()
    assert [str(again.decide({"C": 0}, seed).arm) for seed in range(5)] == [
        str(policy.decide({"C": 0}, seed).arm) for seed in range(5)
    ]


def test_bad_options():
    for least in (1e-12, 1.9e-12):
        with pytest.raises(DowiseError, match="is too small: 2e-12 is the least"):
            make_policy("ts", TASK2, widen=least)
    make_policy("ts", TASK2, widen=2e-12)
    with pytest.raises(DowiseError, match="widen=2 must be between 0 and 1"):
        make_policy("ts", TASK2, widen=2)
    with pytest.raises(DowiseError, match="keeps its records: evidence=True"):
        make_policy("ts", TASK2, widen=True, belief=Belief(TASK2))
    with pytest.raises(DowiseError, match="a prior that is one number"):
        make_policy("ids", TASK2, widen=True, prior={"Y": 2.0})
    make_policy("ids", TASK2, widen=0.01, belief=Belief(TASK2, 0.5, evidence=True))


@pytest.mark.slow
def test_regret_with_a_missing_arrow_is_a_fraction_of_what_it_is_without_widening():
    """A quarter in 24 worlds of 1000 rounds; a half is three standard errors away from that."""
    drawn = Problem(TASK2.graph, "Y", "C", "Z", arms="all")
    lost = dict.fromkeys((False, True), 0.0)
    for seed in range(24):
        world = make_world(TRUE, seed)
        for widen in lost:
            lost[widen] += play(make_policy("ts", drawn, widen=widen), world, 1000, seed)
    assert lost[True] < 0.5 * lost[False]
