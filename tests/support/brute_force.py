"""Expected rewards by enumerating the whole joint distribution: slow, and obviously right."""

from __future__ import annotations

from itertools import product

import numpy as np


def random_cpts(problem, rng):
    """Draw CPT rows from Dirichlet(1); axes: parents(v) in name order, then v."""
    sizes = {name: len(labels) for name, labels in problem.domains.items()}
    return {
        name: rng.dirichlet(
            np.ones(sizes[name]), size=tuple(sizes[p] for p in problem.graph.parents(name))
        )
        for name in problem.graph
    }


def mean_reward(problem, cpts, arm, context):
    """Return E[reward | do(arm), context]; `context` maps names to codes."""
    graph, domains = problem.graph, problem.domains
    fixed = {name: domains[name].index(label) for name, label in arm.items()}
    names = graph.variables
    weight = total = 0.0
    for codes in product(*(range(len(domains[name])) for name in names)):
        value = dict(zip(names, codes, strict=True))
        if any(value[name] != code for name, code in (fixed | context).items()):
            continue
        probability = 1.0
        for name in names:
            if name not in fixed:
                row = tuple(value[p] for p in graph.parents(name))
                probability *= cpts[name][(*row, value[name])]
        weight += probability
        label = domains[problem.reward][value[problem.reward]]
        total += probability * problem.reward_values[label]
    return total / weight


def joint(graph, cpts, fixed):
    """Return P(v) of every assignment, one axis per variable; `fixed` are set to these codes."""
    number = {name: i for i, name in enumerate(graph)}
    operands = []
    for name in graph:
        if name in fixed:
            operands += [np.eye(cpts[name].shape[-1])[fixed[name]], [number[name]]]
        else:
            operands += [cpts[name], [number[v] for v in (*graph.parents(name), name)]]
    return np.einsum(*operands, list(number.values()))


def observed_distribution(problem, graph, cpts, arm, context):
    """Return P(C = c), and P(observed | do(arm), C = c) from the joint with hidden variables."""
    fixed = {name: problem.domains[name].index(label) for name, label in arm.items()}
    everything = joint(graph, cpts, fixed)
    hidden = tuple(i for i, name in enumerate(graph) if name not in problem.graph)
    observed = everything.sum(axis=hidden)
    for axis, name in enumerate(problem.graph):
        if name in context:
            is_other = np.arange(observed.shape[axis]) != context[name]
            np.moveaxis(observed, axis, 0)[is_other] = 0
    return observed.sum(), observed / (observed.sum() or 1)
