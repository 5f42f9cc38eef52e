"""Random chordal graphs: the appendix's procedure, and what PAPER-NOTES fixes about roles."""

import re
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code
from support.strategies import examples

from dowise import DowiseError, make_environment
from dowise.environments import random_chordal_graph, random_problem

densities = st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0])
seeds = st.integers(0, 2**32 - 1)


@given(st.integers(1, 20), densities, seeds)
@examples(100)
def test_graphs_are_connected_chordal_and_without_unshielded_colliders(size, density, seed):
    graph = random_chordal_graph(size, density, seed)
    skeleton = nx.Graph(graph.directed_edges)
    skeleton.add_nodes_from(graph)
    assert len(graph) == size and nx.is_connected(skeleton) and nx.is_chordal(skeleton)
    assert all(cause < effect for cause, effect in graph.directed_edges)
    assert not graph.parents(graph.variables[0])
    for name in graph:
        assert all(skeleton.has_edge(*pair) for pair in combinations(graph.parents(name), 2))


def test_the_last_vertex_keeps_the_in_degree_that_was_drawn():
    """max{1, Bin(9, ρ)}: nothing is eliminated after it. Five standard errors: one in 1,700,000."""
    rng = np.random.default_rng(0)
    drawn = [len(random_chordal_graph(10, 0.3, rng).parents("V10")) for _ in range(1000)]
    theory = np.maximum(1, rng.binomial(9, 0.3, size=400_000))
    assert abs(np.mean(drawn) - theory.mean()) < 5 * theory.std() / np.sqrt(1000)
    assert {min(drawn), max(drawn)} <= set(range(1, 10))


@given(st.integers(3, 20), st.sampled_from([0.0, 0.1, 0.2]), seeds)
@examples(60)
def test_roles(size, density, seed):
    problem = random_problem(size, density, seed).problem
    graph, context = problem.graph, problem.context
    assert problem.reward == graph.variables[-1]
    assert len(problem.non_manipulable) == max(1, round(0.15 * size))
    assert graph.ancestors(context) == {*context} and len(context) <= 2
    assert 2 <= len(problem.arms) <= 64
    open_to_it = [
        name
        for name in graph.variables[:-1]
        if name not in problem.non_manipulable and {*graph.parents(name)} <= {*context}
    ]
    assert len(context) == 2 or set(open_to_it) == {*context}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "density", "share"), [(10, 0.1, 0.22), (15, 0.1, 0.12), (15, 0.2, 0.05)]
)
def test_how_many_are_trivial(size, density, share):
    """The prototype's shares, known to two points, and four standard errors of 600 instances."""
    rng = np.random.default_rng(1)
    drawn = [random_problem(size, density, rng) for _ in range(600)]
    instances = 600 + sum(one.redrawn for one in drawn)
    trivial = sum(one.too_few for one in drawn) / instances
    assert abs(trivial - share) < 0.02 + 4 * np.sqrt(share * (1 - share) / instances)
    one_set = np.mean([len(one.problem.intervention_sets) == 1 for one in drawn])
    assert 0.85 < one_set < 0.95  # about 90 % have one intervention set only


def test_it_does_not_try_for_ever(monkeypatch):
    monkeypatch.setattr("dowise.environments.random_worlds._MAX_ATTEMPTS", 20)
    with raises_code("no-arms", "0 have fewer, 20 have more", "a smaller size"):
        random_problem(40, 0.9, 0)


def test_same_seed_same_problem():
    one, other = random_problem(15, 0.2, 7), random_problem(15, 0.2, 7)
    assert one == other and one.redrawn == one.too_few + one.too_many
    assert one.problem.name == "chordal-15-0.2"


def test_a_world_by_name():
    world, again, other = (make_environment("chordal-15-0.2", seed) for seed in (1, 1, 2))
    assert world.problem == again.problem != other.problem
    context = world.draw_context(0)
    np.testing.assert_array_equal(world.means(context), again.means(context))
    assert len(world.problem.graph) == 15


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: random_chordal_graph(0, 0.1, 0), "size=0 must be a whole number, 1 or more"),
        (lambda: random_chordal_graph(True, 0.1, 0), "size=True must be"),
        (lambda: random_problem(2, 0.1, 0), "size=2 must be a whole number, 3 or more"),
        (lambda: random_problem(10, 1.5, 0), "density=1.5 must be a number from 0 to 1"),
        (lambda: random_problem(10, "a", 0), "density='a' must be a number"),
        (lambda: random_problem(10, 0.1, None), "rng=None"),
        (lambda: make_environment("chordal-2-0.1", 0), "size=2 must be"),
        (lambda: make_environment("chordal-10-7", 0), "density=7.0 must be"),
        (lambda: make_environment("chordal-10", 0), "chordal-SIZE-DENSITY"),
        (lambda: make_environment("chordal-a-0.1", 0), "such as chordal-15-0.2"),
    ],
)
def test_what_can_not_be_drawn_is_explained(make, message):
    with pytest.raises(DowiseError, match=re.escape(message)):
        make()
