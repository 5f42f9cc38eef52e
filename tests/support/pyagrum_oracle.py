"""Rewards under interventions by the inference of pyAgrum."""

from __future__ import annotations

import warnings

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its binding crashes where a warning is an error
    import pyagrum as gum

NETWORKS = ["asia", "sachs", "child", "alarm", "insurance"]


def agrum_network(graph, cpts, arm, domains):
    """Return the network after do(arm): its variables have no causes and a certain value."""
    net = gum.BayesNet()
    for name in graph:
        net.add(gum.LabelizedVariable(name, "", list(domains[name])))
    for cause, effect in graph.directed_edges:
        if effect not in arm:
            net.addArc(cause, effect)
    for name in graph:
        table = net.cpt(name)
        if name in arm:
            table.fillWith([float(label == arm[name]) for label in domains[name]])
            continue
        # A fresh instantiation walks the axes by name, whatever their order in pyAgrum.
        axes = [*graph.parents(name), name]
        for places in np.ndindex(cpts[name].shape):
            table[dict(zip(axes, map(int, places), strict=True))] = cpts[name][places]
    return net


def agrum_reward(problem, cpts, arm, context, graph=None, domains=None):
    """Return E[reward | do(arm), context]; `graph` and `domains` default to the problem's."""
    net = agrum_network(graph or problem.graph, cpts, arm, domains or problem.domains)
    inference = gum.LazyPropagation(net)
    inference.setEvidence(dict(context))
    inference.addTarget(problem.reward)
    posterior = inference.posterior(problem.reward).toarray()
    return posterior @ np.array(list(problem.reward_values.values()))
