"""Beliefs about problems with costs, or with rewards to minimise."""

from fractions import Fraction

import numpy as np
import pytest
from support.payoff_problems import (
    THREE,
    TWO,
    costly_problem,
    costs_of_arms,
    mirrored_problems,
    net_rewards,
)

from dowise import Belief, Problem


@pytest.mark.parametrize("prior", [1.0, 0.02])
@pytest.mark.parametrize(("worth", "minimise"), [(TWO, False), (THREE, True)])
def test_rewards_of_a_belief_are_net(worth, minimise, prior):
    problem = costly_problem(worth, minimise)
    belief, context = Belief(problem, prior), {"C": 1}
    for label in (*worth, [*worth][-1]):
        belief.update("do(X=1)", {"C": 1, "Z": 0, "W": 1, "Y": label})
    means = net_rewards(problem, belief.mean_distributions(context))
    np.testing.assert_allclose(belief.mean_rewards(context), means, rtol=1e-12)
    drawn = net_rewards(problem, belief.draw_distributions(context, 2000, 5))
    tolerance = 1e-5 * problem.payoff.span
    np.testing.assert_allclose(belief.draw_rewards(context, 2000, 5), drawn, atol=tolerance)
    best = drawn.argmin(axis=0) if minimise else drawn.argmax(axis=0)
    shares = np.bincount(best, minlength=len(problem.arms)) / 2000
    # With a small prior many draws tie to the last digit, and a coin decides.
    error = np.abs(belief.probability_best(context, 2000, 5) - shares).max()
    assert error <= (0.002 if prior == 1 else 0.2)
    ends = np.quantile(drawn, [0.05, 0.95], axis=1).T
    intervals = belief.reward_intervals(context, 0.9, 2000, 5)
    np.testing.assert_allclose(intervals, ends, atol=tolerance)


def test_winners_with_a_small_prior_are_the_best_net_of_cost():
    """In exact arithmetic, since nearly all rewards are 0 or 1 to the last digit."""
    problem = costly_problem(costs={"X": 1.0, "W": 0.25, "do(X=1)": 1e-9})
    draws = Belief(problem, 0.02).draw(problem.context_codes({"C": 0}), 400, 3)
    winners, peak = draws.winners(problem.payoff)
    costs = [Fraction(float(cost)) for cost in costs_of_arms(problem)]
    total = 0.0
    for i, winner in enumerate(winners):
        whole = [[Fraction(float(p)) for p in arm] for arm in draws.whole[:, :, i]]
        net = [good / (bad + good) - cost for (bad, good), cost in zip(whole, costs, strict=True)]
        assert net[winner] >= max(net) - Fraction(1, 10**6)
        if net[winner] < max(net):  # by less than the precision of a net reward
            assert costs[winner] <= costs[net.index(max(net))]
        total += float(net[winner])
    assert peak == pytest.approx(total, abs=2.5e-5) and len(set(winners.tolist())) > 3


def test_the_cheapest_of_equivalent_arms_is_the_best():
    """do(X=1, Z=…) has the effect of do(X=1); here it costs less, by its own cost."""
    costs = {"X": 0.5, "do(X=1, Z=1)": 0.1, "do(X=0, Z=1)": 0.1}
    problem = Problem("Z -> X -> Y", "Y", costs=costs, arms="all")
    for prior in (1.0, 0.02):
        best = Belief(problem, prior).probability_best(None, 1000, 0)
        winners = {str(arm) for arm, share in zip(problem.arms, best, strict=True) if share}
        assert {"do(X=0, Z=1)", "do(X=1, Z=1)"} <= winners
        assert not winners & {"do(X=0)", "do(X=1)", "do(X=0, Z=0)", "do(X=1, Z=0)"}


@pytest.mark.parametrize("prior", [1.0, 0.02])
def test_minimising_mirrors_maximising(prior):
    down, up = (Belief(problem, prior) for problem in mirrored_problems(THREE))
    for belief in (down, up):
        belief.update("do(X=1)", {"C": 0, "Z": 0, "Y": "grave"})
    context = {"C": 0}
    assert np.array_equal(down.mean_rewards(context), -up.mean_rewards(context))
    draws = [belief.draw_rewards(context, 100, 0) for belief in (down, up)]
    assert np.array_equal(draws[0], -draws[1])
    mirrored = -up.reward_intervals(context)[:, ::-1]
    assert np.allclose(down.reward_intervals(context), mirrored)
    best = down.probability_best(context, 2000, 1)
    assert np.array_equal(best, up.probability_best(context, 2000, 1))
    assert best[down.problem.arm_index("do(X=0)")] > best[down.problem.arm_index("do(X=1)")]
