"""Policies, records and rounds for tests."""

import numpy as np

from dowise import CausalGraph, Problem, make_policy

TWO_ARMS = Problem(CausalGraph.parse("X -> Y"), "Y")
CONFOUNDED = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y"), "Y", context="C")
THREE_VALUES = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y; Z -> X; Z -> Y"),
    "Y",
    "C",
    "Z",
    reward_values={"bad": -1, "fair": 0.5, "good": 3},
)
DOUBTFUL = Problem(
    CausalGraph.parse("C -> X; C ?-> Y; Z -> X -> Y; X <-> Y; Z <?> X"),
    "Y",
    "C",
    domains={"X": range(3)},
)
CERTAIN = Problem(CausalGraph.parse("Z -> X -> Y; X <-> Y!"), "Y")

# Options with which any policy can be made, and learns at least 40 records.
OPTIONS = {
    "bayes-optimal": {"horizon": 41},
    "ids": {"samples": 50},
    "z2-ts": {"refresh": 0.3},
}


def any_policy(name, problem=THREE_VALUES, **options):
    """Make a policy for a problem, or for two arms if it can only plan small ones."""
    problem = TWO_ARMS if name == "bayes-optimal" else problem
    return make_policy(name, problem, **OPTIONS.get(name, {}) | options)


def random_records(problem, count, seed=0):
    """Numbered records of arms in turn with uniformly random outcomes."""
    rng, records = np.random.default_rng(seed), []
    for number in range(count):
        arm = problem.arms[number % len(problem.arms)]
        outcome = {name: str(rng.choice(problem.domains[name])) for name in problem.graph}
        records.append(problem.record(arm, outcome | dict(arm), number))
    return records


def learn_all(policy, records):
    """Let a policy learn records one by one, and return it."""
    for record in records:
        policy.learn(record)
    return policy


def play(policy, world, rounds, rng, choose=None):
    """Play rounds by the policy's decisions, or the arm `choose(t)`; return the total regret."""
    rng, regret = np.random.default_rng(rng), 0.0
    for t in range(rounds):
        context = world.draw_context(rng)
        arm = policy.decide(context, rng).arm if choose is None else world.problem.arms[choose(t)]
        policy.observe(arm, world.play(arm, context, rng))
        regret += world.regret(arm, context)
    return regret


def played(policy, world, rounds, seed=0):
    """Return the policy after rounds with random arms, so that unusual states occur too."""
    arms = np.random.default_rng([seed, 1]).integers(len(world.problem.arms), size=rounds)
    play(policy, world, rounds, seed, lambda t: arms[t])
    return policy
