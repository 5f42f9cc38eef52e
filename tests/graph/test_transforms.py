"""Conditioning and projection, against definitions by paths and d-separation."""

from itertools import combinations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code
from support.slow_twins import edges, projection, subsets, with_explicit_latents
from support.strategies import cases, graphs

from dowise import CausalGraph, load_problem


@given(st.data())
def test_projection_agrees_with_its_definition(data):
    graph = data.draw(graphs())
    hidden = data.draw(st.sets(st.sampled_from(graph.variables)))
    projected = graph.project(hidden)
    assert edges(projected) == projection(graph, hidden)
    assert set(projected.variables) == set(graph.variables) - hidden


@given(st.data())
def test_projection_does_not_depend_on_the_order(data):
    graph = data.draw(graphs(max_size=8))
    hidden = data.draw(st.lists(st.sampled_from(graph.variables), unique=True))
    projected = graph
    for name in hidden:
        projected = projected.project(name)
    assert projected == graph.project(hidden)


def test_projection_creates_no_bidirected_loop():
    graph = CausalGraph.parse("Z -> W; W <-> Z; W -> Y")
    assert graph.project("Z") == CausalGraph.parse("W -> Y")


def test_figure_1_projections():
    g1, g2 = load_problem("task1"), load_problem("figure1-g2")
    assert g1.projected == CausalGraph.parse("X -> Y; X <-> Y")
    assert g2.projected == CausalGraph.parse("X -> W -> Y; X <-> Y")


def test_conditioning_is_not_projection():
    graph = load_problem("task2").graph
    assert graph.condition("C") == CausalGraph.parse("X1 -> X2 -> Y; Z -> X2; Z -> Y")
    assert ("X1", "X2") in graph.project("C").bidirected_edges


def test_conditioning_opens_colliders_in_the_context():
    graph = CausalGraph.parse("e <-> c1 <-> a <-> c2 <-> d")
    assert graph.condition(["c1", "c2"]) == CausalGraph.parse("e <-> a <-> d")
    chain = CausalGraph.parse("e <-> c1 <-> c2 <-> d")
    assert chain.condition(["c1", "c2"]) == CausalGraph.parse("e <-> d")


def test_a_context_without_its_causes_is_refused():
    graph = CausalGraph.parse("A -> B -> C -> Y")
    with raises_code("invalid-context", "A is a cause of B", "add 'A'"):
        graph.condition(["C", "B"])


def separations(graph, context=frozenset()):
    """Return every (a, b, S) such that S and the context separate a and b."""
    dag = with_explicit_latents(graph)
    free = sorted(set(graph.variables) - context)
    return {
        (a, b, frozenset(between))
        for a, b in combinations(free, 2)
        for between in subsets(set(free) - {a, b})
        if nx.is_d_separator(dag, {a}, {b}, between | context)
    }


@given(cases(max_size=5))
def test_conditioning_keeps_exactly_the_separations_given_the_context(case):
    graph, _reward, context, _hidden = case
    assert separations(graph.condition(context)) == separations(graph, frozenset(context))


@given(cases(max_size=5))
def test_projection_keeps_exactly_the_separations_of_other_variables(case):
    graph, _reward, _context, hidden = case
    within = {s for s in separations(graph) if not ({s[0], s[1]} | s[2]) & hidden}
    assert separations(graph.project(hidden)) == within
