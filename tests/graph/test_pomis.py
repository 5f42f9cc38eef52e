"""MUCT, IB and POMIS against the definition in Lemma 1 and published examples."""

import inspect
import itertools
import random

import pytest
from causalrl import CausalGraph as PeerGraph
from causalrl import pomis as peer_pomis
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code
from support.slow_twins import edges, pomis_by_definition, territory_and_border
from support.strategies import cases, examples, graphs

from dowise import CausalGraph


@given(st.data())
def test_territory_and_border_by_definition(data):
    graph = data.draw(graphs(max_size=8))
    reward = data.draw(st.sampled_from(graph.variables))
    territory, border = territory_and_border(*edges(graph), graph.variables, reward)
    assert graph.muct(reward) == territory
    assert graph.interventional_border(reward) == border


@given(cases(max_size=9))
@examples(300)
def test_every_pomis_by_definition(case):
    graph, reward, context, hidden = case
    projected = graph.condition(context).project(hidden)
    sets = list(projected.iter_pomis(reward))
    assert len(sets) == len(set(sets))
    assert set(sets) == pomis_by_definition(projected, reward)


@given(graphs(max_size=8))
def test_a_pomis_is_a_fixed_point(graph):
    reward = graph.variables[0]
    for names in graph.pomis(reward):
        assert graph.cut(names).interventional_border(reward) == names


@given(graphs(max_size=8, bidirected=False))
def test_without_confounding_the_parents_are_the_only_pomis(graph):
    for reward in graph:
        assert graph.muct(reward) == {reward}
        assert graph.pomis(reward) == (frozenset(graph.parents(reward)),)


@given(graphs(max_size=8))
def test_sets_are_in_canonical_order(graph):
    sets = graph.pomis(graph.variables[0])
    assert list(sets) == sorted(sets, key=lambda names: (len(names), sorted(names)))


def sets_of(text, reward="Y", hidden=()):
    return [sorted(names) for names in CausalGraph.parse(text).project(hidden).pomis(reward)]


def test_front_door_with_a_non_manipulable_mediator():
    # Filtering the sets of the whole graph, {} and {Z}, by what can be set would lose {X}.
    text = "X -> Z -> Y; X <-> Y"
    assert sets_of(text) == [[], ["Z"]]
    assert sets_of(text, hidden="Z") == [[], ["X"]]


def test_pomis_of_the_graphs_of_the_2019_talk():
    """Lee & Bareinboim's examples of graphs with non-manipulable variables (AAAI 2019)."""
    assert sets_of("A -> C; B -> C; A -> Y; C -> Y; A <-> B; B <-> Y", hidden="A") == [
        [],
        ["B"],
        ["C"],
    ]
    second = "B -> C -> D -> Y; A -> E -> Y; C -> E; A <-> Y; B <-> Y"
    assert sets_of(second, hidden=["A", "C"]) == [
        [],
        ["B"],
        ["D"],
        ["E"],
        ["B", "D"],
        ["D", "E"],
    ]


def random_graph(size, seed, in_degree=2.0, confounded=0.1):
    """Return a graph with in-degree 2 on average and bidirected edges with probability 0.1."""
    draw = random.Random(seed)
    names = [f"V{i:02}" for i in range(size)]
    pairs = list(itertools.combinations(names, 2))
    chance = 2 * in_degree / (size - 1)
    return CausalGraph(
        [pair for pair in pairs if draw.random() < chance],
        [pair for pair in pairs if draw.random() < confounded],
        names,
    )


@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_causalrl_on_larger_graphs(seed):
    graph = random_graph(14, seed)
    peer = PeerGraph(
        list(graph.directed_edges), list(graph.bidirected_edges), list(graph.variables)
    )
    assert list(graph.pomis("V13")) == peer_pomis(peer, "V13")


def test_large_graphs_stop_at_the_limit():
    graph = random_graph(60, seed=6)
    with raises_code("too-large", "after 2,000", "max_sets"):
        graph.pomis("V59", max_sets=2_000)
    assert inspect.signature(graph.pomis).parameters["max_sets"].default == 100_000


def test_iteration_is_lazy():
    sets = list(itertools.islice(random_graph(60, seed=6).iter_pomis("V59"), 50))
    assert len(set(sets)) == 50


def test_the_limit_is_inclusive():
    graph = CausalGraph.parse("X -> W -> Y; X <-> Y")
    assert len(graph.pomis("Y", max_sets=2)) == 2
    assert graph.pomis("Y", max_sets=None) == graph.pomis("Y")
    with raises_code("too-large", "after 1 "):
        graph.pomis("Y", max_sets=1)
    with raises_code("invalid-number", "max_sets=0"):
        graph.pomis("Y", max_sets=0)


def test_an_unknown_reward_is_an_error():
    with raises_code("unknown-variable", "did you mean 'Y'"):
        CausalGraph.parse("X -> Y").pomis("y")
