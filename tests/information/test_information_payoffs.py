"""Estimates, intervals and bounds of problems with costs, or with rewards to minimise."""

import numpy as np
import pytest
from support.payoff_problems import (
    COSTS,
    THREE,
    TWO,
    costly_problem,
    costs_of_arms,
    mirrored_problems,
    net_rewards,
)

from dowise import Belief
from dowise.information import delta_interval, estimate_in_blocks, estimate_of
from dowise.simulation import bounds


def estimate_by_definition(problem, distributions, arms):
    """Return p*, Δ on the scale and g by their definitions."""
    worth = net_rewards(problem, distributions) / problem.payoff.span
    net = (-worth if problem.minimise else worth)[arms]
    best, samples = net.argmax(axis=0), net.shape[1]
    share = np.bincount(best, minlength=len(arms)) / samples
    regret = (net.max(axis=0) - net).mean(axis=1)
    gain = np.zeros(len(arms))
    for a, arm in enumerate(arms):
        p = distributions[arm].astype(np.float64)
        for b in np.unique(best):
            joint = p[:, best == b].sum(axis=1) / samples
            independent = share[b] * p.mean(axis=1)
            gain[a] += (joint * np.log(joint / independent)).sum()
    return share, regret, gain


@pytest.mark.parametrize(("worth", "minimise"), [(TWO, True), (THREE, False)])
@pytest.mark.parametrize("is_part", [False, True])
def test_estimates_agree_with_their_definition(worth, minimise, is_part):
    problem = costly_problem(worth, minimise)
    draws = Belief(problem).draw(problem.context_codes({"C": 1}), 500, 7)
    arms = np.array([1, 2, 4, 7, 8]) if is_part else np.arange(len(problem.arms))
    share, regret, gain = estimate_by_definition(problem, draws.distributions(), arms)
    among = draws.among(arms) if is_part else draws
    estimate = estimate_of(among, problem.payoff)
    assert np.abs(estimate.best - share).max() <= 0.004  # a few near ties
    np.testing.assert_allclose(estimate.delta, regret, atol=1e-5)
    np.testing.assert_allclose(estimate.gain, gain, atol=1e-3)
    costs = costs_of_arms(problem)[arms] / problem.payoff.span
    np.testing.assert_allclose(estimate.extra, costs - costs.min(), atol=1e-15)
    fewer = among.among(np.arange(len(arms) - 1))
    assert len(estimate_of(fewer, problem.payoff).delta) == len(arms) - 1
    if not is_part:
        parts = [
            type(draws)(draws.after_first[:, :, i : i + 100], first=i) for i in range(0, 500, 100)
        ]
        blocks = estimate_in_blocks(parts, problem.payoff, 500)
        for name in ("delta", "gain", "means", "extra"):
            np.testing.assert_allclose(getattr(blocks, name), getattr(estimate, name), atol=1e-12)


def test_the_interval_of_a_regret_includes_extra_costs():
    """Lemma 3 by Hoeffding for numbers in [max(0, d − 1), 1 + d]."""
    problem = costly_problem(costs={"X": 0.4, "W": 1.75}, arms="all")
    draws = Belief(problem).draw(problem.context_codes({"C": 0}), 4000, 1)
    net = net_rewards(problem, draws.distributions())
    extra = costs_of_arms(problem) - costs_of_arms(problem).min()
    regrets, least, largest = net.max(axis=0) - net, np.maximum(extra - 1, 0), 1 + extra
    assert (regrets.min(axis=1) >= least - 1e-6).all() and (regrets.max(axis=1) <= largest).all()
    assert (regrets.max(axis=1) > 1.2).any()  # so [0, 1] would be wrong
    estimate = estimate_of(draws, problem.payoff)
    interval = delta_interval(estimate, 0.01, printed=False)
    radius = (largest - least) * np.sqrt(np.log(2 / 0.01) / (2 * 4000))
    np.testing.assert_allclose(interval.low, np.maximum(estimate.delta - radius, least))
    np.testing.assert_allclose(interval.high, np.minimum(estimate.delta + radius, largest))


def test_the_ratio_of_thompson_sampling_stays_below_k_over_2():
    """Costs cancel under probability matching (docs/bounds.md): Δ(π)² ≤ K/2 · g(π) for π = p*."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        costs = {text: float(rng.random() * 2) for text in COSTS}
        problem = costly_problem(costs=costs, minimise=bool(seed % 2))
        belief = Belief(problem, float(rng.choice([0.1, 1.0, 3.0])))
        draws = belief.draw(problem.context_codes({"C": 1}), 2000, rng)
        e = estimate_of(draws, problem.payoff)
        assert (e.best @ e.delta) ** 2 <= len(problem.arms) / 2 * (e.best @ e.gain)


OPTIONS = {"horizon": 10, "samples": 500, "policy_samples": 200}


def test_bounds_include_costs():
    free, costly = (
        bounds(costly_problem(costs=c), **OPTIONS) for c in ({"X": 1e-9, "W": 1e-9}, COSTS)
    )
    assert costly.arms == free.arms and costly.entropy < free.entropy
    certain = bounds(costly_problem(costs={"X": 3, "W": 3}), **OPTIONS)  # do() is always the best
    assert certain.entropy == 0 and certain.values()["theorem_1"] == 0


def test_bounds_of_mirrored_problems_are_equal():
    down, up = (bounds(problem, **OPTIONS).as_dict() for problem in mirrored_problems(THREE))
    assert down == up and down["reward_span"] == 41
