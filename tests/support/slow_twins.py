"""Slow, obvious twins of the graph algorithms, on plain sets of names, from definitions."""

from __future__ import annotations

from itertools import combinations

import networkx as nx


def subsets(names):
    names = sorted(names)
    return [set(c) for size in range(len(names) + 1) for c in combinations(names, size)]


def edges(graph):
    return set(graph.directed_edges), {frozenset(edge) for edge in graph.bidirected_edges}


def with_explicit_latents(graph):
    """A networkx DAG in which each bidirected edge is a hidden node with two children."""
    dag = nx.DiGraph(graph.directed_edges)
    dag.add_nodes_from(graph.variables)
    for edge in graph.bidirected_edges:
        dag.add_edges_from([(edge, edge[0]), (edge, edge[1])])
    return dag


def projection(graph, hidden):
    """Directed: a path through hidden ones. Bidirected: a hidden one with such paths to both."""
    dag = with_explicit_latents(graph)
    unseen = {node for node in dag if node not in graph.variables or node in hidden}
    seen = sorted(set(graph.variables) - set(hidden))

    def reach(start):
        ends, waiting, visited = set(), list(dag.successors(start)), set()
        while waiting:
            node = waiting.pop()
            if node in visited:
                continue
            visited.add(node)
            if node in unseen:
                waiting += dag.successors(node)
            else:
                ends.add(node)
        return ends

    directed = {(a, b) for a in seen for b in reach(a)}
    bidirected = {
        frozenset(pair) for node in unseen for pair in combinations(sorted(reach(node)), 2)
    }
    return directed, bidirected


def territory_and_border(directed, bidirected, variables, reward):
    """MUCT and IB by Definitions 1 and 2: start from {Y}, add c-components and descendants."""
    ancestors = {reward}
    while True:
        more = {a for a, b in directed if b in ancestors} - ancestors
        if not more:
            break
        ancestors |= more
    directed = {(a, b) for a, b in directed if a in ancestors and b in ancestors}
    bidirected = {edge for edge in bidirected if edge <= ancestors}
    territory = {reward}
    while True:
        more = {b for a, b in directed if a in territory}
        more |= {name for edge in bidirected if edge & territory for name in edge}
        if more <= territory:
            break
        territory |= more
    assert territory <= set(variables)
    return territory, {a for a, b in directed if b in territory} - territory


def pomis_by_definition(graph, reward):
    """Lemma 1: the border for every W, one by one."""
    directed, bidirected = edges(graph)
    found = set()
    for cut in subsets(set(graph.variables) - {reward}):
        kept = {(a, b) for a, b in directed if b not in cut}
        tied = {edge for edge in bidirected if not edge & cut}
        found.add(frozenset(territory_and_border(kept, tied, graph.variables, reward)[1]))
    return found
