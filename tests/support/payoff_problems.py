"""Problems with costs and with rewards to minimise, and net rewards by hand."""

import numpy as np

from dowise import CausalGraph, Problem

GRAPH = CausalGraph.parse("C -> X; C -> Y; Z -> X; Z -> Y; X -> Y; W -> Y")
SMALL_GRAPH = CausalGraph.parse("C -> X; C -> Y; Z -> X; Z -> Y; X -> Y")
DOUBTFUL_GRAPH = CausalGraph.parse("C -> X; C ?-> Y; Z -> X -> Y; X <-> Y")
TWO = {"0": 0.0, "1": 1.0}
THREE = {"mild": 2.0, "none": -1.0, "grave": 40.0}
COSTS = {"X": 0.125, "W": 0.25, "do(X=1)": 0.5}
"""Costs as shares of the span."""


def costly_problem(worth=TWO, minimise=False, costs=COSTS, arms="minimal", graph=GRAPH):
    span = max(worth.values()) - min(worth.values())
    costs = {text: cost * span for text, cost in costs.items() if "W" in graph or text != "W"}
    return Problem(
        graph, "Y", "C", "Z", reward_values=worth, minimise=minimise, costs=costs, arms=arms
    )


def costs_of_arms(problem):
    return np.array(
        [
            problem.costs.get(str(arm), sum(problem.costs.get(name, 0) for name in arm))
            for arm in problem.arms
        ]
    )


def net_rewards(problem, distributions):
    """Return net rewards in the user's units from P(y): (arms, values of Y, …)."""
    worth = np.array(list(problem.reward_values.values()))
    gross = np.einsum("av...,v->a...", distributions.astype(np.float64), worth)
    sign = 1 if problem.minimise else -1
    return gross + sign * costs_of_arms(problem).reshape(-1, *[1] * (gross.ndim - 1))


def mirrored_problems(worth, graph=SMALL_GRAPH, context="C", non_manipulable="Z", costs=None):
    """Return a problem to minimise the reward, and one to maximise its negative."""
    roles = {"context": context, "non_manipulable": non_manipulable, "arms": "all", "costs": costs}
    negated = {label: -value for label, value in worth.items()}
    return (
        Problem(graph, "Y", reward_values=worth, minimise=True, **roles),
        Problem(graph, "Y", reward_values=negated, **roles),
    )


def mirrored_pairs(worth):
    """Return `mirrored_problems` of a graph with two variables."""
    return mirrored_problems(worth, CausalGraph.parse("X -> Y"), (), ())
