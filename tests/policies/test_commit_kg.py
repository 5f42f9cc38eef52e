"""`commit-kg` beside its slow twin, stepped and compiled, with all that a problem can have."""

import re
from itertools import product

import numpy as np
import pytest
from scipy.special import polygamma
from support.commit_kg_twin import World, plan
from support.errors import raises_code
from support.parametrize import one_in

from dowise import (
    Belief,
    CausalGraph,
    DowiseError,
    Problem,
    load_problem,
    make_environment,
    make_policy,
)
from dowise.model import model_of
from dowise.model.kernels import trace_of
from dowise.policies import best_name
from dowise.policies import commit_kg_kernels as commit_lanes
from dowise.policies.commit_kg_kernels import trigamma
from dowise.policies.registry import policy_factory
from dowise.simulation.trial import run_trial

THREE = Problem(
    CausalGraph.parse("C -> X; C -> Y; Z -> X -> W -> Y; Z -> Y"), "Y", "C", "Z",
    domains={"X": ("a", "b", "c"), "Y": ("0", "1", "2"), "C": ("u", "v", "w")},
    reward_values={"0": 3.0, "1": -1.0, "2": 7.0},
)  # fmt: skip
SMALLER = Problem(CausalGraph.parse("Z -> X -> Y; Z -> Y"), "Y", minimise=True)
HIDDEN = Problem(
    CausalGraph.parse("C -> Y; Z -> X -> W -> Y; X <-> Y; Z <-> W"), "Y", "C", edge_prior=1
)
COSTLY = Problem(
    CausalGraph.parse("C -> Y; Z -> X -> Y; Z -> Y"), "Y", "C",
    costs={"X": 0.1, "Z": 0.05, "do(Z=1)": 0.02},
)  # fmt: skip
DEARER = Problem(
    CausalGraph.parse("Z -> X -> Y; Z -> Y"), "Y", minimise=True, costs={"X": 3.0},
    reward_values={"0": 0.0, "1": 10.0},
)  # fmt: skip
PROBLEMS = {
    "task1": load_problem("task1"), "task2": load_problem("task2"),
    "healthcare": load_problem("healthcare"), "three values": THREE, "minimise": SMALLER,
    "hidden causes": HIDDEN, "costs": COSTLY, "costs, minimise": DEARER,
}  # fmt: skip


def all_contexts(problem):
    return list(product(*(range(len(problem.domains[name])) for name in problem.context)))


def played(problem, seed, rounds, name="commit-kg", **options):
    """A policy after some rounds with arms at random, so that odd states occur too."""
    policy, rng = make_policy(name, problem, **options), np.random.default_rng(seed)
    world = make_environment(problem, seed=seed)
    for _ in range(rounds):
        context = world.draw_context(rng)
        arm = problem.arms[rng.integers(len(problem.arms))]
        policy.observe(arm, world.play(arm, context, rng))
    return policy


def weights_of(policy, contexts):
    return {codes: 1.0 + policy.visits[codes] for codes in contexts}


@pytest.mark.parametrize("rounds", one_in(4, [25, 0, 3, 200]))
@pytest.mark.parametrize("name", PROBLEMS)
def test_it_decides_as_its_twin(name, rounds):
    problem = PROBLEMS[name]
    for seed in range(2):
        policy = played(problem, seed, rounds)
        contexts = all_contexts(problem)
        world = World(problem, model_of(problem).factors, policy.belief.parameters, contexts)
        for codes in contexts[:2]:
            decision = policy.decide(problem.context_labels(codes), 0)
            arm, plays, gain = plan(
                [(1.0, world)], weights_of(policy, contexts), codes, 2 * (rounds + 30),
                problem.payoff.scaled_costs,
            )  # fmt: skip
            assert problem.arm_index(decision.arm) == arm
            assert decision.figures["plays"] == plays
            assert decision.figures["value"] == pytest.approx(
                gain * problem.payoff.span, rel=1e-6, abs=1e-9
            )


@pytest.mark.parametrize("text", ["Z -> X -> Y; Z ?-> Y; C -> Y", "C -> Y; Z -> X -> Y; X <?> Y"])
@pytest.mark.parametrize("rounds", one_in(3, [12, 0, 60]))
def test_over_doubtful_edges_it_averages(text, rounds):
    """Two sets of edges, each with a posterior of its own that has learned the same records."""
    problem = Problem(CausalGraph.parse(text), "Y", "C")
    certain = text.replace("?->", "->").replace("<?>", "<->"), text.split("; ")
    without = "; ".join(part for part in certain[1] if "?" not in part)
    parts = [
        Problem(CausalGraph.parse(t), "Y", "C", arms=list(problem.arms), edge_prior=1)
        for t in (certain[0], without)
    ]
    policy, rng = make_policy("commit-kg", problem), np.random.default_rng(5)
    beliefs = [Belief(part) for part in parts]
    world = make_environment(problem, seed=1)
    for _ in range(rounds):
        context = world.draw_context(rng)
        arm = problem.arms[rng.integers(len(problem.arms))]
        outcome = world.play(arm, context, rng)
        policy.observe(arm, outcome)
        for belief in beliefs:
            belief.update(arm, outcome)
    (there,) = policy.belief.edges().values()
    contexts = all_contexts(problem)
    worlds = [
        (chance, World(part, model_of(part).factors, belief.parameters, contexts))
        for chance, part, belief in zip((there, 1 - there), parts, beliefs, strict=True)
    ]
    for codes in contexts:
        decision = policy.decide(problem.context_labels(codes), 0)
        arm, plays, gain = plan(
            worlds, weights_of(policy, contexts), codes, 2 * (rounds + 30),
            problem.payoff.scaled_costs,
        )  # fmt: skip
        assert (problem.arm_index(decision.arm), decision.figures["plays"]) == (arm, plays)
        assert decision.figures["value"] == pytest.approx(gain, rel=1e-6, abs=1e-9)


def test_only_allowed_arms_compete():
    problem = load_problem("task1")
    policy = played(problem, 3, 10)
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
    CausalGraph.parse("A -> Y; B -> Y; D -> Y; X -> Y"), "Y", ("A", "B", "D"),
    domains={"A": ("0", "1", "2"), "B": ("0", "1", "2"), "D": ("0", "1")},
)  # fmt: skip


@pytest.mark.parametrize(
    "problem",
    [
        *(PROBLEMS[name] for name in ("task1", "task2", "three values", "hidden causes", "costs")),
        MANY,
    ],
    ids=["task1", "task2", "three values", "hidden causes", "costs", "many contexts"],
)
def test_a_compiled_trial_is_a_stepped_one(problem, monkeypatch):
    """After observational records, too, which teach and are no rounds."""
    made = []

    def make(problem):
        made.append(make_policy("commit-kg", problem))
        return made[-1]

    world = make_environment(problem, seed=2)
    fast = run_trial(world, make, 120, seed=4, trial=1, observational=7)
    monkeypatch.setattr(type(made[0]), "compiled_trial", lambda _: None)
    slow = run_trial(world, make, 120, seed=4, trial=1, observational=7)
    np.testing.assert_array_equal(fast.arms, slow.arms)
    assert made[0].fingerprint() == made[1].fingerprint()
    assert made[0].visits == made[1].visits and made[0].rounds == made[1].rounds
    assert len(np.unique(fast.arms)) > 1


def test_what_it_knows_depends_on_the_records_not_on_their_order():
    problem = load_problem("task2")
    rng = np.random.default_rng(0)
    records = []
    for number in [*range(20), *[None] * 5]:
        arm = problem.arms[rng.integers(len(problem.arms))]
        seen = {name: str(rng.integers(2)) for name in problem.graph}
        records.append(problem.record(arm, seen | dict(arm), number))
    one, other = make_policy("commit-kg", problem), make_policy("commit-kg", problem)
    for record in records:
        one.learn(record)
    for record in reversed(records):
        other.learn(record)
    other.learn(records[3])
    other.retract(records[3])
    assert (
        one.fingerprint() == other.fingerprint() != make_policy("commit-kg", problem).fingerprint()
    )
    assert one.rounds == other.rounds == 20 and sum(one.visits.values()) == 25
    context = problem.context_labels((1,))
    assert one.decide(context, 0).as_dict() == other.decide(context, 1).as_dict()


def test_trigamma():
    for x in (1e-3, 0.5, 1.0, 1.5, 5.9, 6.0, 100.0, 1e6):
        assert trigamma(x) == pytest.approx(polygamma(1, x), rel=1e-9)


def test_its_reasons_are_sentences():
    taught = (
        r"what is learned by playing this one (once|twice|\d+ times) is expected to gain [\d.]+ in "
        r"total over the next \d+ rounds"
    )
    ways = {
        "stays": "it has the best expected reward, and what could be learned from another arm "
        "would not pay for itself",
        "as good": rf"it looks as good as do\(.*\), and {taught}",
        "dearer": rf"do\(.*\) looks better by [\d.]+ per round, but {taught}, net of that cost",
    }
    seen = set()
    for name, rounds in (("task1", 0), ("task1", 8), ("task3", 0)):
        for seed in range(3):
            policy = played(load_problem(name), seed, rounds)
            decision = policy.decide(policy.problem.context_labels((0,) * (name == "task3")), 0)
            (way,) = [way for way, words in ways.items() if re.fullmatch(words, decision.reason)]
            assert (way == "stays") == (decision.figures["plays"] == 0)
            seen.add(way)
    assert seen == {*ways}


def test_only_a_belief_is_taken_as_belief():
    with pytest.raises(DowiseError, match="must be a Belief"):
        make_policy("commit-kg", load_problem("task1"), belief=object())


def test_a_problem_whose_circuit_is_too_large_is_refused():
    own = load_problem("child")
    problem = Problem(
        own.graph, own.reward, own.context, own.non_manipulable, domains=own.domains,
        reward_values=own.reward_values, max_program=1,
    )  # fmt: skip
    with pytest.raises(DowiseError, match="max_program"):
        make_policy("commit-kg", problem)


HUNDREDS = Problem(
    CausalGraph.parse("A -> Y; B -> Y; D -> Y; X -> Y"), "Y", ("A", "B", "D"),
    domains={name: tuple("0123456") for name in "ABD"},
)  # fmt: skip


def test_of_hundreds_of_contexts_the_most_frequent_count(monkeypatch):
    """The same in a trial and round by round, though a decision looks at no others."""
    made = []

    def make(problem):
        made.append(make_policy("commit-kg", problem))
        return made[-1]

    world = make_environment(HUNDREDS, seed=2)
    fast = run_trial(world, make, 300, seed=4, trial=1)
    monkeypatch.setattr(type(made[0]), "compiled_trial", lambda _: None)
    slow = run_trial(world, make, 300, seed=4, trial=1)
    np.testing.assert_array_equal(fast.arms, slow.arms)
    assert len(made[0].visits) > 100 and made[0].visits == made[1].visits
    assert len(made[1]._all_contexts([(6, 6, 6)], 64)) <= 65


@pytest.mark.parametrize("text", ["C -> Y; X -> Y", "C -> Y; Z -> X -> Y; Z ?-> Y"])
def test_where_there_is_no_room_fewer_lanes_do(text, monkeypatch):
    problem = Problem(CausalGraph.parse(text), "Y", "C", domains={"C": tuple("012345")})
    policy = played(problem, 3, 40)
    whole = policy.decide({"C": "1"}, 0)
    monkeypatch.setattr(commit_lanes, "MAX_NUMBERS", 1)
    alone = policy.decide({"C": "1"}, 0)
    assert alone.arm in problem.arms and whole.arm in problem.arms
    assert commit_lanes.max_lanes(trace_of(problem)) == 1
    monkeypatch.setattr(commit_lanes, "MAX_NUMBERS", 2**22)
    assert policy.decide({"C": "1"}, 0).as_dict() == whole.as_dict()


def test_best_is_ids_where_commit_kg_can_not_be():
    class Own:
        problem = load_problem("task1")
        learn = retract = draw = mean_distributions = None

    problem = Own.problem
    assert best_name(problem) == "commit-kg" and best_name(load_problem("child")) == "ids"
    made = make_policy("best", problem, belief=Belief(problem))
    assert type(made) is policy_factory("commit-kg")
    assert type(make_policy("best", load_problem("child"))) is policy_factory("ids")
    with raises_code("invalid-type", "belief must be a Belief", "Own"):
        make_policy("best", problem, belief=Own())
