"""`commit-kg` against its slow twin, for every feature of a problem."""

import re
from itertools import product

import numpy as np
import pytest
from scipy.special import polygamma
from support.commit_kg_twin import World, plan
from support.errors import raises_code
from support.parametrize import one_in
from support.policies import learn_all, played

from dowise import (
    Belief,
    CausalGraph,
    Problem,
    load_problem,
    make_environment,
    make_policy,
)
from dowise.model import model_of
from dowise.model.kernels import trace_of
from dowise.policies import commit_kg_kernels
from dowise.simulation.trial import run_trial

THREE = Problem(
    CausalGraph.parse("C -> X; C -> Y; Z -> X -> W -> Y; Z -> Y"),
    "Y",
    "C",
    "Z",
    domains={"X": ("a", "b", "c"), "Y": ("0", "1", "2"), "C": ("u", "v", "w")},
    reward_values={"0": 3.0, "1": -1.0, "2": 7.0},
)
SMALLER = Problem(CausalGraph.parse("Z -> X -> Y; Z -> Y"), "Y", minimise=True)
HIDDEN = Problem(
    CausalGraph.parse("C -> Y; Z -> X -> W -> Y; X <-> Y; Z <-> W"), "Y", "C", edge_prior=1
)
COSTLY = Problem(
    CausalGraph.parse("C -> Y; Z -> X -> Y; Z -> Y"),
    "Y",
    "C",
    costs={"X": 0.1, "Z": 0.05, "do(Z=1)": 0.02},
)
DEARER = Problem(
    CausalGraph.parse("Z -> X -> Y; Z -> Y"),
    "Y",
    minimise=True,
    costs={"X": 3.0},
    reward_values={"0": 0.0, "1": 10.0},
)
PROBLEMS = {
    "task1": load_problem("task1"),
    "task2": load_problem("task2"),
    "healthcare": load_problem("healthcare"),
    "three values": THREE,
    "minimise": SMALLER,
    "hidden causes": HIDDEN,
    "costs": COSTLY,
    "costs, minimise": DEARER,
}


def all_contexts(problem):
    return list(product(*(range(len(problem.domains[name])) for name in problem.context)))


def trained(problem, seed, rounds):
    return played(make_policy("commit-kg", problem), make_environment(problem, seed), rounds, seed)


def weights_of(policy, contexts):
    return {codes: 1.0 + policy.visits[codes] for codes in contexts}


@pytest.mark.parametrize("rounds", one_in(4, [25, 0, 3, 200]))
@pytest.mark.parametrize("name", PROBLEMS)
def test_decisions_equal_those_of_the_twin(name, rounds):
    problem = PROBLEMS[name]
    for seed in range(2):
        policy = trained(problem, seed, rounds)
        contexts = all_contexts(problem)
        world = World(problem, model_of(problem).factors, policy.belief.parameters, contexts)
        for codes in contexts[:2]:
            decision = policy.decide(problem.context_labels(codes), 0)
            arm, plays, gain = plan(
                [(1.0, world)],
                weights_of(policy, contexts),
                codes,
                2 * (rounds + 30),
                problem.payoff.scaled_costs,
            )
            assert problem.arm_index(decision.arm) == arm
            assert decision.figures["plays"] == plays
            assert decision.figures["value"] == pytest.approx(
                gain * problem.payoff.span, rel=1e-6, abs=1e-9
            )


@pytest.mark.parametrize("text", ["Z -> X -> Y; Z ?-> Y; C -> Y", "C -> Y; Z -> X -> Y; X <?> Y"])
@pytest.mark.parametrize("rounds", one_in(3, [12, 0, 60]))
def test_values_are_averaged_over_doubtful_edges(text, rounds):
    """Two sets of edges, each with its own posterior and wide tables, learn the same records."""
    problem = Problem(CausalGraph.parse(text), "Y", "C", edge_rules=1)
    present = text.replace("?->", "->").replace("<?>", "<->")
    absent = "; ".join(edges for edges in text.split("; ") if "?" not in edges)
    settled = [
        Problem(CausalGraph.parse(t), "Y", "C", arms=list(problem.arms), edge_prior=1)
        for t in (present, absent)
    ]
    policy, rng = make_policy("commit-kg", problem), np.random.default_rng(5)
    beliefs = [Belief(part) for part in settled]
    world = make_environment(problem, seed=1)
    for _ in range(rounds):
        context = world.draw_context(rng)
        arm = problem.arms[rng.integers(len(problem.arms))]
        outcome = world.play(arm, context, rng)
        policy.observe(arm, outcome)
        for belief in beliefs:
            belief.update(arm, outcome)
    (probability,) = policy.belief.edges().values()
    contexts = all_contexts(problem)
    worlds = [
        (chance, World(part, model_of(part).factors, belief.parameters, contexts))
        for chance, part, belief in zip(
            (probability, 1 - probability), settled, beliefs, strict=True
        )
    ]
    for codes in contexts:
        decision = policy.decide(problem.context_labels(codes), 0)
        arm, plays, gain = plan(
            worlds,
            weights_of(policy, contexts),
            codes,
            2 * (rounds + 30),
            problem.payoff.scaled_costs,
        )
        assert (problem.arm_index(decision.arm), decision.figures["plays"]) == (arm, plays)
        assert decision.figures["value"] == pytest.approx(gain, rel=1e-6, abs=1e-9)


def test_only_allowed_arms_compete():
    problem = load_problem("task1")
    policy = trained(problem, 3, 10)
    world = World(problem, model_of(problem).factors, policy.belief.parameters, [()])
    for allowed in ([0, 1], [1, 2], [2]):
        decision = policy.decide(rng=0, allowed=[problem.arms[a] for a in allowed])
        arm, plays, _ = plan([(1.0, world)], {(): 1.0}, (), 80, np.zeros(3), allowed)
        assert (problem.arm_index(decision.arm), decision.figures["plays"]) == (arm, plays)
        assert decision.probabilities.tolist() == [float(a == arm) for a in range(3)]
        means = policy.belief.mean_rewards()[allowed]
        delta = np.full(3, np.nan)
        delta[allowed] = means.max() - means
        np.testing.assert_allclose(decision.figures["delta"], delta, atol=1e-12)


MANY = Problem(
    CausalGraph.parse("A -> Y; B -> Y; D -> Y; X -> Y"),
    "Y",
    ("A", "B", "D"),
    domains={"A": ("0", "1", "2"), "B": ("0", "1", "2"), "D": ("0", "1")},
)


def test_only_records_of_decisions_count_as_rounds():
    problem = load_problem("task2")
    rng = np.random.default_rng(0)
    records = []
    for number in [*range(20), *[None] * 5]:
        arm = problem.arms[rng.integers(len(problem.arms))]
        outcome = {name: str(rng.integers(2)) for name in problem.graph}
        records.append(problem.record(arm, outcome | dict(arm), number))
    policy = learn_all(make_policy("commit-kg", problem), records)
    assert policy.rounds == 20 and sum(policy.visits.values()) == 25
    policy.retract(records[3])
    policy.retract(records[22])
    assert policy.rounds == 19 and sum(policy.visits.values()) == 23
    context = problem.context_labels((1,))
    assert policy.decide(context, 0).as_dict() == policy.decide(context, 1).as_dict()


def test_trigamma_agrees_with_scipy():
    for x in (1e-3, 0.5, 1.0, 1.5, 5.9, 6.0, 100.0, 1e6):
        assert commit_kg_kernels.trigamma(x) == pytest.approx(polygamma(1, x), rel=1e-9)


def test_reasons_state_information_and_cost_of_a_play():
    teaches = (
        r"what is learned by playing this one (once|twice|\d+ times) is expected to gain [\d.]+ in "
        r"total over the next \d+ rounds"
    )
    patterns = {
        "stays": "it has the best expected reward, and what could be learned from another arm "
        "would not pay for itself",
        "as good": rf"it looks as good as do\(.*\), and {teaches}",
        "dearer": rf"do\(.*\) looks better by [\d.]+ per round, but {teaches}, net of that cost",
    }
    ways = set()
    for name, rounds in (("task1", 0), ("task1", 8), ("task3", 0)):
        for seed in range(3):
            policy = trained(load_problem(name), seed, rounds)
            decision = policy.decide(policy.problem.context_labels((0,) * (name == "task3")), 0)
            (way,) = [
                way for way, pattern in patterns.items() if re.fullmatch(pattern, decision.reason)
            ]
            assert (way == "stays") == (decision.figures["plays"] == 0)
            ways.add(way)
    assert ways == {*patterns}


def test_a_problem_whose_circuit_is_too_large_is_refused():
    child = load_problem("child")
    problem = Problem(
        child.graph,
        child.reward,
        child.context,
        child.non_manipulable,
        domains=child.domains,
        reward_values=child.reward_values,
        max_program=1,
    )
    with raises_code("too-large", "max_program"):
        make_policy("commit-kg", problem)


MANY_CONTEXTS = Problem(
    CausalGraph.parse("A -> Y; B -> Y; D -> Y; X -> Y"),
    "Y",
    ("A", "B", "D"),
    domains={name: tuple("0123456") for name in "ABD"},
)


def test_only_the_most_frequent_of_many_contexts_count(monkeypatch):
    """A compiled trial plays the same arms, though a single decision considers no others."""
    policies = []

    def make(problem):
        policies.append(make_policy("commit-kg", problem))
        return policies[-1]

    world = make_environment(MANY_CONTEXTS, seed=2)
    fast = run_trial(world, make, 300, seed=4, trial=1)
    monkeypatch.setattr(type(policies[0]), "compiled_trial", lambda _: None)
    slow = run_trial(world, make, 300, seed=4, trial=1)
    np.testing.assert_array_equal(fast.arms, slow.arms)
    assert len(policies[0].visits) > 100 and policies[0].visits == policies[1].visits
    assert len(policies[1]._all_contexts([(6, 6, 6)], 64)) <= 65


@pytest.mark.parametrize("text", ["C -> Y; X -> Y", "C -> Y; Z -> X -> Y; Z ?-> Y"])
def test_fewer_lanes_are_used_if_memory_is_short(text, monkeypatch):
    problem = Problem(CausalGraph.parse(text), "Y", "C", domains={"C": tuple("012345")})
    policy = trained(problem, 3, 40)
    full = policy.decide({"C": "1"}, 0)
    monkeypatch.setattr(commit_kg_kernels, "MAX_NUMBERS", 1)
    assert policy.decide({"C": "1"}, 0).arm in problem.arms
    assert commit_kg_kernels.max_lanes(trace_of(problem)) == 1
    monkeypatch.setattr(commit_kg_kernels, "MAX_NUMBERS", 2**22)
    assert policy.decide({"C": "1"}, 0).as_dict() == full.as_dict()
