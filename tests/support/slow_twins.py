"""Slow twins of the graph algorithms: their definitions on sets of names."""

from __future__ import annotations

from itertools import combinations

import networkx as nx


def subsets(names):
    names = sorted(names)
    return [set(c) for size in range(len(names) + 1) for c in combinations(names, size)]


def edges(graph):
    return set(graph.directed_edges), {frozenset(edge) for edge in graph.bidirected_edges}


def with_explicit_latents(graph):
    """Return a networkx DAG in which each bidirected edge is a hidden node with two children."""
    dag = nx.DiGraph(graph.directed_edges)
    dag.add_nodes_from(graph.variables)
    for edge in graph.bidirected_edges:
        dag.add_edges_from([(edge, edge[0]), (edge, edge[1])])
    return dag


def projection(graph, hidden):
    """Return edges for paths through hidden nodes: from a cause, or from a hidden common cause."""
    dag = with_explicit_latents(graph)
    hidden_nodes = {node for node in dag if node not in graph.variables or node in hidden}
    observed = sorted(set(graph.variables) - set(hidden))

    def reach(start):
        ends, waiting, visited = set(), list(dag.successors(start)), set()
        while waiting:
            node = waiting.pop()
            if node in visited:
                continue
            visited.add(node)
            if node in hidden_nodes:
                waiting += dag.successors(node)
            else:
                ends.add(node)
        return ends

    directed = {(a, b) for a in observed for b in reach(a)}
    bidirected = {
        frozenset(pair) for node in hidden_nodes for pair in combinations(sorted(reach(node)), 2)
    }
    return directed, bidirected


def territory_and_border(directed, bidirected, variables, reward):
    """Return MUCT and IB by Definitions 1 and 2: {Y} grown by c-components and descendants."""
    ancestors = {reward}
    while True:
        new = {a for a, b in directed if b in ancestors} - ancestors
        if not new:
            break
        ancestors |= new
    directed = {(a, b) for a, b in directed if a in ancestors and b in ancestors}
    bidirected = {edge for edge in bidirected if edge <= ancestors}
    territory = {reward}
    while True:
        new = {b for a, b in directed if a in territory}
        new |= {name for edge in bidirected if edge & territory for name in edge}
        if new <= territory:
            break
        territory |= new
    assert territory <= set(variables)
    return territory, {a for a, b in directed if b in territory} - territory


def pomis_by_definition(graph, reward):
    """Return the borders of Lemma 1 for all W."""
    directed, bidirected = edges(graph)
    borders = set()
    for cut in subsets(set(graph.variables) - {reward}):
        arrows = {(a, b) for a, b in directed if b not in cut}
        ties = {edge for edge in bidirected if not edge & cut}
        borders.add(frozenset(territory_and_border(arrows, ties, graph.variables, reward)[1]))
    return borders
