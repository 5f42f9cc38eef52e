"""Slow, obvious twin of `commit-kg`: it enumerates every outcome and writes out every formula."""

from __future__ import annotations

from itertools import product
from math import erfc, exp, log, pi, sqrt

import numpy as np
from scipy.special import polygamma


class Enumerated:
    """Mean, gradient and visits of an arm in a context at these parameters, by enumeration."""

    def __init__(self, problem, factors, parameters, arm, codes):
        entries = factors.normalised(parameters)
        context = dict(zip(problem.context_positions.tolist(), codes, strict=True))
        fixed = {v: c for v, c in enumerate(problem.fixed(arm).tolist()) if c >= 0}
        under = factors.under(problem.graph.mask(arm.variables))
        useful = factors.graph.names(factors.order.useful)
        free = [
            v
            for v, name in enumerate(problem.graph)
            if v not in context and v not in fixed and name in useful
        ]
        self.mean, self.gradient = 0.0, np.zeros(len(entries))
        self.visits = np.zeros(len(entries))
        """For each entry, the probability that its row is visited."""
        for values in product(
            *(range(len(problem.domains[problem.graph.variables[v]])) for v in free)
        ):
            value = {**context, **fixed, **dict(zip(free, values, strict=True))}
            used = [
                factors.starts[under[v]]
                + sum(
                    int(factors.strides[under[v], u]) * value[u] for u in factors.families[under[v]]
                )
                for v in free
            ]
            chance = float(np.prod(entries[used]))
            reward = problem.payoff.scaled[value[problem.reward_position]]
            self.mean += chance * reward
            for v, e in zip(free, used, strict=True):
                self.gradient[e] += chance / entries[e] * reward
                size = int(factors.sizes[v])
                row = e - value[v]
                self.visits[row : row + size] += chance


def overtaking(gap, s):
    z = gap / s
    return 0.0 if z >= 8 else s * (exp(-z * z / 2) / sqrt(2 * pi) - z * erfc(z / sqrt(2)) / 2)


class World:
    """Enumerated arms of a graph in all contexts."""

    def __init__(self, problem, factors, parameters, contexts):
        self.factors, self.parameters = factors, parameters
        self.arms_in = {
            c: [Enumerated(problem, factors, parameters, arm, c) for arm in problem.arms]
            for c in contexts
        }


def value(world, context, now, arm, plays, costs):
    """Value per round, in a context, of what `plays` of an arm in context `now` would teach."""
    low, high = -max(costs), 1 - min(costs)
    arms = world.arms_in[context]
    means = [arm.mean - cost for arm, cost in zip(arms, costs, strict=True)]
    best = next(a for a, mean in enumerate(means) if mean >= max(means) - 1e-12)
    slope = [(mean - low) * (high - mean) / (high - low) for mean in means]
    score = [log((mean - low) / (high - mean)) for mean in means]
    visits = world.arms_in[now][arm].visits
    gains = [0.0]
    for b in range(len(arms)):
        if b == best:
            continue
        explained, total, own, incumbent = 0.0, 0.0, 0.0, 0.0
        for start, size in zip(world.factors.row_starts, world.factors.row_sizes, strict=True):
            row = slice(start, start + size)
            # The present context teaches nothing about rows that only this one reads.
            if not any(a.visits[start] > 0 for a in world.arms_in[now]):
                continue
            alpha = world.parameters[row]
            p, spread = alpha / alpha.sum(), polygamma(1, alpha)
            parts = [arms[a].gradient[row] / slope[a] for a in (b, best)]
            centred = [part - p @ part for part in parts]
            w = spread * p**2 @ (centred[0] - centred[1]) ** 2
            own += spread * p**2 @ centred[0] ** 2
            incumbent += spread * p**2 @ centred[1] ** 2
            times = plays * visits[start]
            total, explained = total + w, explained + w * times / (alpha.sum() + times)
        if explained > 1e-24 and score[best] - score[b] < 8 * sqrt(total):
            s = (own * slope[best] + incumbent * slope[b]) / (own + incumbent)
            gain = s * overtaking(score[best] - score[b], sqrt(explained))
            gains.append(min(gain, means[b] - low, high - means[best]))
    return max(gains)


def plan(worlds, weights, now, rounds, costs, allowed=None):
    """Return (arm, plays, gain); `worlds` are pairs of a probability and a `World`."""
    arms = range(len(costs))
    allowed = arms if allowed is None else allowed
    mean = [sum(p * w.arms_in[now][a].mean for p, w in worlds) - costs[a] for a in arms]
    top = max(mean[a] for a in allowed)
    best = next(a for a in allowed if mean[a] >= top - 1e-12)
    total = sum(weights.values())
    chance = weights[now] / total
    chosen, plays = (best, 0, 0.0), 1
    while plays / chance < rounds:
        values = {
            a: sum(
                p * weight / total * value(w, c, now, a, plays, costs)
                for p, w in worlds
                for c, weight in weights.items()
            )
            for a in allowed
        }
        for a in allowed:
            paid = 1 + 0.7 * (plays - 1)
            benefit = (rounds - plays / chance) * (values[a] - values[best])
            gain = benefit - paid * (mean[best] - mean[a])
            if a != best and gain > chosen[2]:
                chosen = a, plays, gain
        plays *= 2
    return chosen
