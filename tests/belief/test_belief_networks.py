"""Beliefs about five published networks, against the inference of pyAgrum."""

import numpy as np
import pytest
from support.pyagrum_oracle import NETWORKS, agrum_reward

from dowise import Belief, load_problem
from dowise.graph.formats.bif import read_bif
from dowise.problem.problem_file import builtin_path


def trained(name):
    """Return a belief close to the network: its prior has a thousand records per row."""
    problem = load_problem(name)
    network = read_bif(builtin_path(name).with_name("networks") / f"{name}.bif")
    return Belief(problem, {v: 1000 * cpt + 0.5 for v, cpt in network.cpts.items()})


@pytest.mark.parametrize("name", NETWORKS)
def test_mean_rewards_agree_with_pyagrum(name):
    belief = trained(name)
    problem, cpts = belief.problem, belief.mean_cpts()
    rng = np.random.default_rng(0)
    for _ in range(3):
        context = {c: str(rng.choice(problem.domains[c])) for c in problem.context}
        rewards = belief.mean_rewards(context)
        for i in rng.choice(len(problem.arms), size=3, replace=False):
            truth = agrum_reward(problem, cpts, problem.arms[i], context)
            assert rewards[i] == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize("name", NETWORKS)
def test_draws_agree_with_the_mean(name):
    """Within five standard errors; at most 81 z-values: a false alarm in 1 of 20,000 cases."""
    belief = trained(name)
    context = {c: belief.problem.domains[c][-1] for c in belief.problem.context}
    drawn = belief.draw_rewards(context, 1000, rng=0).astype(np.float64)
    assert np.isfinite(drawn).all()
    errors = drawn.mean(axis=1) - belief.mean_rewards(context)
    assert (np.abs(errors) <= 5 * drawn.std(axis=1) / np.sqrt(1000) + 1e-6).all()
