"""`alarm` with two manipulable variables, beside a loop of pyAgrum's exact inference over draws.

    make bench

For each posterior draw the loop writes the CPTs into one network for each arm, edges into the arm's
variables removed beforehand, and asks for the posterior of the reward. It runs over a few draws and
is scaled up. `test_ratio_to_pyagrum` asserts that both give the same rewards, and no time.
"""

from __future__ import annotations

import warnings
from time import perf_counter

import numpy as np

from dowise import Belief, Problem, load_problem

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pyagrum as gum

SAMPLES, LOOPED = 1000, 20


def two_levers():
    alarm = load_problem("alarm")
    levers = {"INTUBATION", "TPR"}
    others = [name for name in alarm.graph if name not in levers and name != alarm.reward]
    return Problem(
        alarm.graph, alarm.reward, (), others, alarm.domains, alarm.reward_values, name="alarm"
    )


class PyAgrum:
    def __init__(self, problem):
        self.problem = problem
        self.worth = np.array(list(problem.reward_values.values()))
        self.networks = [self._network(arm) for arm in problem.arms]

    def _network(self, arm):
        net = gum.BayesNet()
        for name in self.problem.graph:
            net.add(gum.LabelizedVariable(name, "", list(self.problem.domains[name])))
        for cause, effect in self.problem.graph.directed_edges:
            if effect not in arm:
                net.addArc(cause, effect)
        for name, label in arm.items():
            net.cpt(name).fillWith([float(label == x) for x in self.problem.domains[name]])
        return net

    def rewards(self, cpts):
        """One draw: the mean reward of every arm."""
        means = []
        for arm, net in zip(self.problem.arms, self.networks, strict=True):
            for name, values in cpts.items():
                if name not in arm:
                    # pyAgrum's array has the parents' axes in reverse of the order they were added.
                    parents = list(reversed(net.cpt(name).names[1:]))
                    axes = [self.problem.graph.parents(name).index(p) for p in parents]
                    net.cpt(name)[:] = np.ascontiguousarray(values.transpose(*axes, len(axes)))
            inference = gum.LazyPropagation(net)
            inference.addTarget(self.problem.reward)
            means.append(inference.posterior(self.problem.reward).toarray() @ self.worth)
        return means


def test_ratio_to_pyagrum(benchmark):
    problem = two_levers()
    belief, loop = Belief(problem), PyAgrum(problem)
    np.testing.assert_allclose(loop.rewards(belief.mean_cpts()), belief.mean_rewards(), atol=1e-9)
    rng, factors = np.random.default_rng(0), belief.posterior.model.factors

    def both():
        start = perf_counter()
        for _ in range(LOOPED):
            cpts = {}
            for name in problem.graph:
                gammas = rng.standard_gamma(factors.view(belief.parameters, name))
                cpts[name] = gammas / gammas.sum(axis=-1, keepdims=True)
            loop.rewards(cpts)
        theirs = (perf_counter() - start) * SAMPLES / LOOPED
        ours = float("inf")
        for _ in range(100):
            start = perf_counter()
            belief.draw_rewards(None, SAMPLES, rng)
            ours = min(ours, perf_counter() - start)
        return ours, theirs

    ours, theirs = benchmark.pedantic(both, rounds=1)
    benchmark.extra_info["ratio"] = theirs / ours
    print(
        f"\nalarm, {len(problem.arms)} arms, {SAMPLES} draws: dowise {1e3 * ours:.2f} ms, "
        f"pyAgrum in a loop {theirs:.1f} s: {theirs / ours:.0f} times faster"
    )


def test_a_million_records(benchmark):
    import pandas as pd

    problem = load_problem("task3")
    rng = np.random.default_rng(0)
    size = 1_000_000
    frame = pd.DataFrame({name: rng.integers(2, size=size) for name in problem.graph})
    frame["arm"] = "do()"
    frame.loc[::3, "arm"] = "do(X1=1)"
    frame.loc[::3, "X1"] = 1
    belief = Belief(problem)
    benchmark.pedantic(belief.update_many, (frame,), rounds=3)
