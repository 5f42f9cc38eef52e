"""What Hypothesis draws for the tests: graphs with bidirected edges, and roles that fit them."""

from __future__ import annotations

from hypothesis import strategies as st

from dowise import CausalGraph


@st.composite
def graphs(draw, min_size=1, max_size=6, bidirected=True):
    """A random acyclic directed mixed graph; its names are not in topological order."""
    size = draw(st.integers(min_size, max_size))
    names = draw(st.permutations([f"V{i}" for i in range(size)]))
    pairs = [(names[i], names[j]) for i in range(size) for j in range(i + 1, size)]
    directed = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    confounded = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return CausalGraph(directed, confounded if bidirected else [], names)


@st.composite
def roles(draw, graph):
    """(reward, context, non_manipulable) that fit the graph."""
    reward = draw(st.sampled_from(graph.variables))
    seeds = draw(st.sets(st.sampled_from(graph.variables)))
    context = {name for name in seeds if reward not in graph.ancestors(name)}
    context = graph.ancestors(context)
    rest = sorted({*graph.variables} - context - {reward})
    hidden = draw(st.sets(st.sampled_from(rest))) if rest else set()
    return reward, context, hidden


@st.composite
def cases(draw, **options):
    """A graph with roles that fit it."""
    graph = draw(graphs(**options))
    return graph, *draw(roles(graph))
