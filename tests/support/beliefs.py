"""Records of worlds in which every variable is uniform, and beliefs that learned some."""

import numpy as np

from dowise import Belief, Problem, load_problem


def random_record(problem, rng, missing=0.0):
    """Draw an arm and an outcome; each value is missing with the given probability."""
    arm = problem.arms[rng.integers(len(problem.arms))]
    outcome = {
        name: str(rng.choice(problem.domains[name]))
        for name in problem.graph
        if name not in arm and rng.random() >= missing
    }
    return arm, outcome


def trained_belief(problem, rounds=100, prior=1.0, seed=0):
    """Return a belief about a problem, or a built-in one by name, after random records."""
    problem = problem if isinstance(problem, Problem) else load_problem(problem)
    belief, rng = Belief(problem, prior), np.random.default_rng(seed)
    for _ in range(rounds):
        belief.update(*random_record(problem, rng))
    return belief
