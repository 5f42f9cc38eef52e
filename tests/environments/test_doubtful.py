"""Worlds of problems with hidden variables and doubtful edges; strong worlds."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.brute_force import observed_distribution
from support.errors import raises_code
from support.strategies import cases, examples

from dowise import CausalGraph, Environment, Problem, make_environment
from dowise.environments import SampledWorlds, WorldOptions, resolve_worlds
from dowise.testing import check_environment

DOUBTFUL = "C -> X; X -> Y; Z ?-> Y; C ?-> Y; X <-> Y; Z <?> X"


def means_by_brute_force(world, context):
    problem, axis = world.problem, world.problem.graph.variables.index(world.problem.reward)
    worth = np.array(list(problem.reward_values.values()))
    found = []
    for arm in problem.arms:
        seen = observed_distribution(problem, world.graph, world.cpts, arm, context)[1]
        rest = tuple(i for i in range(seen.ndim) if i != axis)
        found.append(seen.sum(axis=rest) @ worth)
    return found


@given(cases(max_size=4), st.integers(0, 2**32 - 1), st.sampled_from([None, 0.3]))
@examples(30)
def test_a_drawn_world_has_its_certain_edges_and_exact_means(case, seed, soft):
    graph, reward, context, fixed = case
    problem = Problem(graph, reward, context, fixed, soft=soft)
    world = make_environment(problem, seed, edges="prior")
    there = {*world.graph.project(world.hidden).edge_texts}
    assert {*problem.possible.edge_texts} - {*problem.edge_priors} <= there
    assert there <= {*problem.possible.edge_texts}
    seen = world.draw_context(seed)
    places = {name: problem.code(name, label) for name, label in seen.items()}
    np.testing.assert_allclose(world.means(seen), means_by_brute_force(world, places), atol=1e-12)


def test_edges_come_with_their_priors_each_by_itself():
    """Frequencies within five standard errors, pairs too; soft edges among them."""
    problem = Problem(CausalGraph.parse(DOUBTFUL), "Y", "C", edge_prior={"X <-> Y": 0.7}, soft=0.2)
    rng, number = np.random.default_rng(3), 400
    worlds = SampledWorlds(problem, WorldOptions(edges="prior"))
    found = Counter()
    for _ in range(number):
        world = worlds.draw(rng)
        there = [
            e for e in world.graph.project(world.hidden).edge_texts if e in problem.edge_priors
        ]
        found.update(there)
        found.update((one, other) for one in there for other in there if one < other)
    priors = problem.edge_priors
    assert set(priors.values()) == {0.7, 0.5, 0.2} and "C -> Z" in priors
    for one, prior in priors.items():
        assert abs(found[one] / number - prior) < 5 * np.sqrt(prior * (1 - prior) / number)
        for other in (x for x in priors if x > one):
            both = prior * priors[other]
            assert abs(found[one, other] / number - both) < 5 * np.sqrt(both * (1 - both) / number)


def test_all_edges_that_are_drawn_unless_told():
    problem = Problem(CausalGraph.parse(DOUBTFUL), "Y", "C", soft=0.1)
    world = make_environment(problem, 1)
    assert world.hidden == ("U(X,Y)", "U(X,Z)") and not world.graph.marks
    assert world.graph.project(world.hidden).edge_texts == problem.graph.edge_texts
    check_environment(world, plays=200)


def test_doubt_does_not_change_the_numbers():
    """Marks, priors and soft edges leave the worlds of a seed as they are."""
    plain = make_environment(Problem(CausalGraph.parse("C -> X -> Y; C -> Y"), "Y", "C"), 5)
    for text, options in (
        ("C -> X -> Y; C ?-> Y", {}),
        ("C -> X -> Y; C -> Y", {"soft": 0.1}),
        ("C -> X -> Y; C -> Y", {"edge_prior": {"X -> Y": 0.5}}),
    ):
        problem = Problem(CausalGraph.parse(text), "Y", "C", arms=plain.problem.arms, **options)
        world = make_environment(problem, 5)
        assert world.graph == plain.graph
        for name, table in plain.cpts.items():
            np.testing.assert_array_equal(world.cpts[name], table)
        for c in "01":
            np.testing.assert_allclose(world.means({"C": c}), plain.means({"C": c}), atol=1e-15)
            assert world.play(world.problem.arms[0], {"C": c}, 3) == plain.play(
                plain.problem.arms[0], {"C": c}, 3
            )


def test_declared_hidden_variables_are_variables_of_the_world():
    graph = CausalGraph.parse("Mood -> X; Mood -> Y; X -> Y; Age -> Mood; Age -> Y; X <-> Y")
    domains = {"Mood": ("low", "fair", "high", "wild")}
    problem = Problem(graph, "Y", hidden=("Mood", "Age"), domains=domains)
    world = make_environment(problem, 2, hidden_values=5)
    assert world.hidden == ("Age", "Mood", "U(X,Y)")
    assert {name: world.cpts[name].shape[-1] for name in world.hidden} == {
        "Age": 2, "Mood": 4, "U(X,Y)": 5,
    }  # fmt: skip
    np.testing.assert_allclose(world.means(), means_by_brute_force(world, {}), atol=1e-12)
    assert [*world.play("do()", None, 0)] == ["X", "Y"]
    own = Problem(graph.without("X <-> Y"), "Y", hidden=("Mood", "Age"))
    cpts = make_environment(own, 0).cpts
    assert Environment(own, cpts).graph == own.drawn  # the graph as drawn, unless given


def test_strong_worlds():
    graph = CausalGraph.parse("U -> X; U -> Y; V -> Y; X -> Y; X <-> Y")
    problem = Problem(graph, "Y", hidden=("U", "V"), domains={"V": ("a", "b")})
    world = make_environment(problem, 0, strong=True)
    assert {name: world.cpts[name].shape[-1] for name in world.hidden} == {
        "U": 3, "U(X,Y)": 3, "V": 2,
    }  # fmt: skip
    rows = np.concatenate(
        [
            make_environment("task2", seed, strong=True).cpts["Y"][..., 0].ravel()
            for seed in range(99)
        ]
    )
    assert abs(np.mean(rows) - 0.5) < 0.1
    assert 0.12 < np.var(rows) < 0.24  # Beta(.2, .2) has 1/4 / 1.4 = .179, Beta(1, 1) has .083
    mild = make_environment("task2", 0).cpts["Y"]
    assert not np.array_equal(mild, make_environment("task2", 0, strong=True).cpts["Y"])


@pytest.mark.parametrize(
    ("world", "complaint"),
    [
        ("X -> Y", None),
        ("X -> Y; Z -> Y", None),
        ("U -> X; U -> Y; X -> Y; Z -> Y", None),
        ("Z -> Y; X", "doubtful edges, but the problem has X -> Y, the world has not"),
        ("X -> Y; Z -> X", "the world has Z -> X, the problem has not"),
    ],
)
def test_a_world_lies_between_what_is_certain_and_what_is_possible(world, complaint):
    problem = Problem(CausalGraph.parse("X -> Y; Z ?-> Y; X <-> Y"), "Y")
    dag = CausalGraph.parse(world)
    dag = dag if "Z" in dag else CausalGraph(dag.directed_edges, variables=[*dag, "Z"])
    cpts = {v: np.full((2,) * (len(dag.parents(v)) + 1), 0.5) for v in dag}
    if complaint is None:
        assert Environment(problem, cpts, dag).means().tolist() == [0.5] * len(problem.arms)
        return
    with raises_code("wrong-problem", complaint):
        Environment(problem, cpts, dag)


def test_invalid_options_are_explained():
    with raises_code("unknown-value", "edges='some'"):
        make_environment("task1", 0, edges="some")
    with raises_code("invalid-type", "strong=1"):
        make_environment("task1", 0, strong=1)
    world = make_environment("task1", 0)
    with raises_code("unused-option", "strong and edges"):
        resolve_worlds(world, WorldOptions(strong=True))
