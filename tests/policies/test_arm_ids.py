"""IDS on the arms' own rewards: its draws and decisions against slow twins."""

import numpy as np
import pytest
from support.policies import TWO_ARMS

from dowise import CausalGraph, Problem, make_policy
from dowise._core.rng import draw_key
from dowise.information import estimate, minimise_ratio

WORTH = {"bad": -10, "fair": 0, "good": 30}
THREE_VALUES = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y; X -> W"), "Y", "C", "W", reward_values=WORTH
)


def observe(policy, arm, **counts):
    for reward, times in counts.items():
        for _ in range(times):
            policy.observe(arm, {"C": "0", **dict(policy.problem.intervention(arm)), "Y": reward})


def trained(**options):
    policy = make_policy("arm-ids", THREE_VALUES, **options)
    observe(policy, "do(X=0)", bad=1, good=3)
    observe(policy, "do(X=1)", bad=5, fair=1, good=20)
    return policy


def test_rewards_are_drawn_from_dirichlets():
    """Means and covariances of 200,000 draws, within five standard errors: false alarm 1e-5."""
    samples, codes = 200_000, (0,)
    draws = trained().knowledge.draw(codes, samples, np.random.default_rng(0)).after_first
    for arm, shapes in enumerate([(2, 1, 4), (6, 2, 21)]):
        shapes = np.array(shapes)
        total = shapes.sum()
        mean = shapes / total
        cov = (np.diag(mean) - np.outer(mean, mean)) / (total + 1)
        errors = np.sqrt(np.diag(cov) / samples)[1:]
        assert (np.abs(draws[arm].mean(axis=1) - mean[1:]) < 5 * errors).all()
        measured = np.cov(draws[arm])
        products = np.outer(np.sqrt(np.diag(cov)), np.sqrt(np.diag(cov)))[1:, 1:]
        assert (np.abs(measured - cov[1:, 1:]) < 5 * 2 * products / np.sqrt(samples)).all()
    between = np.corrcoef(draws[:, 1])[0, 1]
    assert abs(between) < 5 / np.sqrt(samples)
    unseen = trained().knowledge.draw((1,), samples, np.random.default_rng(0)).after_first
    assert np.abs(unseen.mean(axis=2) - 1 / 3).max() < 5 * np.sqrt(1 / 18 / samples)


def test_it_plays_the_pair_of_the_smallest_ratio():
    policy = trained(samples=300)
    decision = policy.decide({"C": 0}, 7)
    rewards = policy.knowledge.draw((0,), 300, np.random.default_rng(7)).distributions()
    by_draws = estimate(rewards, THREE_VALUES.payoff.scaled)
    action = minimise_ratio(by_draws.delta, by_draws.gain)
    np.testing.assert_array_equal(decision.probabilities, action.distribution(2))
    np.testing.assert_allclose(decision.figures["delta"], by_draws.delta, atol=1e-7)
    np.testing.assert_allclose(decision.figures["gain"], by_draws.gain, atol=1e-7)
    np.testing.assert_array_equal(decision.figures["best"], by_draws.best)
    rng = np.random.default_rng(7)
    draw_key(rng)
    pick = action.first if rng.random() < action.probability else action.second
    assert decision.arm == THREE_VALUES.arms[pick]
    assert "best trade-off of cost and information" in decision.reason


def test_regret_and_gain_agree_with_integrals():
    """Two arms, Beta(2, 3) and Beta(5, 3), by a grid; 1e-3 is over five standard errors."""
    policy = make_policy("arm-ids", TWO_ARMS, samples=1_000_000)
    for arm, rewards in (("do(X=0)", [1, 0, 0]), ("do(X=1)", [1, 1, 1, 1, 0, 0])):
        for reward in rewards:
            policy.observe(arm, {"Y": reward})
    grid = (np.arange(2000) + 0.5) / 2000
    first, second = grid * (1 - grid) ** 2, grid**4 * (1 - grid) ** 2
    joint = np.outer(first / first.sum(), second / second.sum())
    x, y = np.meshgrid(grid, grid, indexing="ij")
    regret = [(joint * (np.maximum(x, y) - own)).sum() for own in (x, y)]
    gain = []
    for own in (x, y):
        table = np.array(
            [[(joint * won * p).sum() for p in (1 - own, own)] for won in (x > y, x <= y)]
        )
        independent = np.outer(table.sum(axis=1), table.sum(axis=0))
        gain.append((table * np.log(table / independent)).sum())
    figures = policy.decide(None, 0).figures
    np.testing.assert_allclose(figures["delta"], regret, atol=1e-3)
    np.testing.assert_allclose(figures["gain"], gain, atol=1e-3)


@pytest.mark.parametrize("allowed", [None, ["do(X=1)"]])
def test_the_graph_and_other_variables_do_not_matter(allowed):
    """The same arms and rewards on two graphs, with different values of X in the records."""
    decisions = []
    for graph, seen in (("C -> X -> Y; C -> Y; X -> W", 0), ("C -> Y; X -> Y; Y -> W", 1)):
        problem = Problem(
            CausalGraph.parse(graph), "Y", "C", "W", domains={"Y": ("0", "1", "2")}, arms="all"
        )
        policy = make_policy("arm-ids", problem)
        for t in range(30):
            arm = problem.arms[t % len(problem.arms)]
            policy.observe(arm, {"X": seen, "W": seen, **dict(arm), "C": t % 2, "Y": t % 3})
        decisions.append(policy.decide({"C": 1}, 3, allowed))
    assert decisions[0].arm == decisions[1].arm and decisions[0].reason == decisions[1].reason
    np.testing.assert_array_equal(*(decision.probabilities for decision in decisions))
