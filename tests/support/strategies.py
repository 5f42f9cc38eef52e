"""Hypothesis strategies: mixed graphs, roles that fit them, and worlds with hidden variables."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from dowise import CausalGraph, Problem


def examples(number):
    """Set the number of examples in `make check`; `make test` runs a quarter of them."""
    return settings(max_examples=number * settings.default.max_examples // 100)


@st.composite
def graphs(draw, min_size=1, max_size=6, bidirected=True, marked=False):
    """Draw an acyclic directed mixed graph whose names are not in topological order.

    If `marked`, some edges are doubtful, and some bidirected ones are certain.
    """
    size = draw(st.integers(min_size, max_size))
    names = draw(st.permutations([f"V{i}" for i in range(size)]))
    pairs = [(names[i], names[j]) for i in range(size) for j in range(i + 1, size)]
    directed = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    confounded = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    graph = CausalGraph(directed, confounded if bidirected else [], names)
    if not marked:
        return graph
    marks = {edge: draw(st.sampled_from(["", "?", "!"])) for edge in graph.edge_texts}
    doubtful, certain = ([edge for edge in marks if marks[edge] == mark] for mark in "?!")
    return CausalGraph(graph.directed_edges, graph.bidirected_edges, names, doubtful, certain)


@st.composite
def roles(draw, graph):
    """Draw (reward, context, non_manipulable) that fit the graph."""
    reward = draw(st.sampled_from(graph.variables))
    seeds = draw(st.sets(st.sampled_from(graph.variables)))
    context = {name for name in seeds if reward not in graph.ancestors(name)}
    context = graph.ancestors(context)
    others = sorted({*graph.variables} - context - {reward})
    hidden = draw(st.sets(st.sampled_from(others))) if others else set()
    return reward, context, hidden


@st.composite
def cases(draw, **options):
    """Draw a graph and roles that fit it: (graph, reward, context, non_manipulable)."""
    graph = draw(graphs(**options))
    return graph, *draw(roles(graph))


@st.composite
def hidden_worlds(draw, max_size=6):
    """Draw (problem, DAG, CPTs): some variables of the DAG are hidden, and some rows are certain.

    One seed is drawn and determines everything, because graphs that are drawn edge by edge hardly
    ever have hidden causes of the context.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    names = [f"V{i}" for i in rng.permutation(rng.integers(4, max_size + 1))]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    dag = CausalGraph([pair for pair in pairs if rng.random() < 0.5], variables=names)
    reward = names[-1]
    hidden = {name for i, name in enumerate(names[:-1]) if rng.random() < (0.8 if i < 2 else 0.3)}
    graph = dag.project(hidden)
    candidates = [name for name in graph if rng.random() < 0.5]
    context = graph.ancestors(x for x in candidates if reward not in graph.ancestors(x))
    fixed = {name for name in graph if rng.random() < 0.2} - context - {reward}
    arms = str(rng.choice(["pomis", "all"]))
    problem = Problem(graph, reward, context, fixed, {reward: ["a", "b", "c"]}, arms=arms)
    sizes = {name: int(rng.integers(2, 4)) for name in hidden}
    sizes |= {name: len(labels) for name, labels in problem.domains.items()}
    certain = rng.choice([0.0, 0.3])
    cpts = {}
    for name in dag:
        shape = tuple(sizes[parent] for parent in dag.parents(name))
        rows = rng.dirichlet(np.ones(sizes[name]), size=shape)
        ones = np.eye(sizes[name])[rng.integers(sizes[name], size=shape)]
        cpts[name] = np.where(rng.random((*shape, 1)) < certain, ones, rows)
    return problem, dag, cpts
