"""Live experiments in memory to look at, and problems to make them of."""

import numpy as np

from dowise.environments import make_environment
from dowise.experiment import Experiment
from dowise.experiment.storage import MemoryStorage
from dowise.graph import CausalGraph
from dowise.problem import Problem, load_problem

COIN = Problem(CausalGraph.parse("X -> Y"), "Y")
"""Two arms, do(X=0) and do(X=1), each with a reward probability of its own, Beta(1, 1) before."""


def begun(problem=COIN, policy="ids", **options):
    """A new experiment."""
    chosen = load_problem(problem) if isinstance(problem, str) else problem
    return Experiment.create(MemoryStorage(), "ward", chosen, policy, options or None, seed=7)


def played(problem="task2", rounds=20, policy="ts", world_seed=3, **options):
    """An experiment after so many rounds in a world drawn from the prior."""
    experiment = begun(problem, policy, **options)
    world, rng = make_environment(experiment.problem, seed=world_seed), np.random.default_rng(0)
    for _ in range(rounds):
        context = world.draw_context(rng)
        decision = experiment.ask(context)
        experiment.tell(decision.id, world.play(decision.arm, context, rng))
    return experiment


def tossed(outcomes, **options):
    """COIN (or the problem among the options) after these rewards, by the label of X."""
    experiment = begun(**options)
    for label, rewards in outcomes.items():
        for reward in rewards:
            decision = experiment.ask(allowed=[f"do(X={label})"])
            experiment.tell(decision.id, {"Y": reward})
    return experiment
