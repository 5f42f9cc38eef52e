"""Modules with custom policies, for tests."""

GREEDY = '''\
"""Custom policies."""

import numpy as np

from dowise import Decision, make_policy, register_policy
from dowise.policies import BayesianPolicy, allowed_arms
from dowise._core.rng import generator

NUMBER = 3


class Greedy(BayesianPolicy):
    """The arm with the best posterior mean."""

    def __init__(self, problem, explore=0.05, prior=1.0):
        super().__init__(problem, prior)
        self.explore = explore

    def decide(self, context=None, rng=None, allowed=None):
        source, arms = generator(rng), allowed_arms(self.problem, allowed)
        means = self.belief.mean_rewards(context)[arms]
        probabilities = np.zeros(len(self.problem.arms))
        probabilities[arms] = self.explore / len(arms)
        probabilities[arms[self.problem.payoff.best_of(means)]] += 1 - self.explore
        chosen = source.choice(len(probabilities), p=probabilities)
        return Decision(self.problem.arms[chosen], probabilities, "")


class Failing(Greedy):
    def decide(self, context=None, rng=None, allowed=None):
        return self.explore / 0


class ReadsMissingFile(Greedy):
    def __init__(self, problem):
        super().__init__(problem)
        open("no such table.csv")


class ExitsInObserve(Greedy):
    def observe(self, arm, outcome):
        raise SystemExit(0)


class ExitsInDecide(Greedy):
    def decide(self, context=None, rng=None, allowed=None):
        raise SystemExit(0)


class ExitsWhenMade(Greedy):
    def __init__(self, problem):
        raise SystemExit(0)


class NoMethods:
    def __init__(self, problem):
        pass


@register_policy("any-custom")
def any_custom(problem, **options):
    return make_policy("random", problem, **options)
'''
FAILING_LINE = 1 + GREEDY.splitlines().index("        return self.explore / 0")
EXIT_LINES = [i for i, x in enumerate(GREEDY.splitlines(), 1) if "raise SystemExit" in x]

BROKEN = {
    "divides_mine": "1 / 0\n",
    "wrong_mine": "def f(:\n",
    "lacks_mine": "import no_such_thing\n",
    "leaves_mine": "import sys\nsys.exit(3)\n",
    "refused_mine": "from dowise import load_problem\nload_problem('tsk1')\n",
}
"""Modules that can't be imported, by name."""
