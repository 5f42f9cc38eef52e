"""Small live experiments in memory, with some rounds played."""

import numpy as np

from dowise.environments import make_environment
from dowise.experiment import Experiment
from dowise.experiment.storage import MemoryStorage
from dowise.graph import CausalGraph
from dowise.problem import Problem, load_problem

COIN = Problem(CausalGraph.parse("X -> Y"), "Y")
"""Two arms, do(X=0) and do(X=1), each with its own reward probability; the prior is Beta(1, 1)."""


def create_experiment(problem=COIN, policy="ids", **options):
    """Return a new experiment."""
    problem = load_problem(problem) if isinstance(problem, str) else problem
    return Experiment.create(MemoryStorage(), "ward", problem, policy, options or None, seed=7)


def play(experiment, rounds, seed=0):
    """Play some rounds in a world drawn from the prior."""
    world = make_environment(experiment.problem, seed=3)
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        context = world.draw_context(rng)
        decision = experiment.ask(context)
        experiment.tell(decision.id, world.play(decision.arm, context, rng))
    return experiment


def played_experiment(problem="task2", rounds=20, policy="ts", **options):
    """Return an experiment after some rounds."""
    return play(create_experiment(problem, policy, **options), rounds)


def coin_experiment(outcomes, problem=COIN, **options):
    """Return an experiment after these rewards by label of X, on COIN or a problem like it."""
    experiment = create_experiment(problem, **options)
    for label, rewards in outcomes.items():
        for reward in rewards:
            decision = experiment.ask(allowed=[f"do(X={label})"])
            experiment.tell(decision.id, {"Y": reward})
    return experiment
