"""Environments with costs, or with rewards to minimise."""

import numpy as np
import pytest
from support.errors import raises_code
from support.payoff_problems import (
    THREE,
    TWO,
    costly_problem,
    costs_of_arms,
    mirrored_pairs,
    mirrored_problems,
)

from dowise import Environment, check_environment, make_environment
from dowise.environments.gym import CausalBanditEnv


@pytest.mark.parametrize("worth", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("minimise", [False, True])
def test_means_and_regrets_are_net(worth, minimise):
    problem = costly_problem(worth, minimise)
    world = make_environment(problem, 5)
    gross = make_environment(costly_problem(worth, minimise, costs={}), 5)
    check_environment(world, plays=200)
    sign = 1 if minimise else -1
    for context in ({"C": "0"}, {"C": "1"}):
        means = world.means(context)
        expected = gross.means(context) + sign * costs_of_arms(problem)
        np.testing.assert_allclose(means, expected, rtol=1e-12)
        best = means.argmin() if minimise else means.argmax()
        assert world.best_arm(context) == problem.arms[best]
        regrets = [world.regret(arm, context) for arm in problem.arms]
        np.testing.assert_allclose(regrets, np.abs(means - means[best]))
        assert world.means_in([problem.context_codes(context)]).tolist() == [means.tolist()]


@pytest.mark.parametrize("worth", [TWO, THREE], ids=["two", "three"])
def test_minimising_mirrors_maximising(worth):
    down, up = (make_environment(problem, 5) for problem in mirrored_problems(worth))
    for context in ({"C": "0"}, {"C": "1"}):
        assert down.means(context).tolist() == (-up.means(context)).tolist()
        assert down.best_arm(context) == up.best_arm(context)
        regrets = [down.regret(arm, context) for arm in down.problem.arms]
        assert regrets == [up.regret(arm, context) for arm in up.problem.arms]
        assert min(regrets) == 0 < max(regrets)
    assert dict(down.optimal_map()) == dict(up.optimal_map())


def test_the_first_of_equal_arms_is_the_best():
    cpts = {"X": [0.5, 0.5], "Y": [[0.3, 0.7], [0.3, 0.7]]}
    world = Environment(mirrored_pairs(TWO)[0], cpts)
    assert str(world.best_arm()) == "do()" and world.regret("do(X=1)") == 0


def test_check_environment_detects_wrong_payoffs():
    class Maximising(Environment):
        def best_arm(self, context=None):
            return self.problem.arms[int(self.means(context).argmax())]

    class IgnoringCosts(Environment):
        def means(self, context=None):
            return super().means(context) + self.problem.payoff.costs

    down = mirrored_pairs(TWO)[0]
    with raises_code("broken-contract", "smallest mean"):
        check_environment(Maximising(down, make_environment(down, 0).cpts))
    costly = costly_problem()
    with raises_code("broken-contract", "net of cost"):
        check_environment(IgnoringCosts(costly, make_environment(costly, 0).cpts), plays=2000)


def test_networks_may_be_minimised():
    down, up = Environment.from_bif("asia", minimise=True), Environment.from_bif("asia")
    assert down.problem.minimise and not up.problem.minimise
    context = {"asia": "no"}
    assert np.array_equal(down.means(context), up.means(context))
    assert down.best_arm(context) == up.problem.arms[int(up.means(context).argmin())]


@pytest.mark.parametrize("minimise", [False, True])
def test_gymnasium_rewards_are_net_and_maximised(minimise):
    problem = costly_problem(THREE, minimise)
    env = CausalBanditEnv(make_environment(problem, 1), horizon=40)
    env.reset(seed=0)
    for t in range(40):
        action = t % len(problem.arms)
        _, reward, _, _, info = env.step(action)
        gross = problem.reward_values[info["outcome"]["Y"]]
        cost = costs_of_arms(problem)[action]
        assert reward == pytest.approx(-(gross + cost) if minimise else gross - cost)
        assert isinstance(reward, float)
