"""Worlds with hidden variables, against the joint distribution of all variables."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.brute_force import joint, observed_distribution
from support.errors import raises_code
from support.strategies import cases, examples, hidden_worlds

from dowise import CausalGraph, Environment, Problem, make_environment
from dowise.environments import front_door_world


def contexts_of(problem):
    for codes in product(*(range(len(problem.domains[name])) for name in problem.context)):
        yield dict(zip(problem.context, codes, strict=True))


def mean_reward(problem, distribution):
    """Mean reward under a distribution of all observed variables."""
    axis = problem.graph.variables.index(problem.reward)
    others = tuple(i for i in range(distribution.ndim) if i != axis)
    return distribution.sum(axis=others) @ np.array(list(problem.reward_values.values()))


@given(hidden_worlds())
@examples(120)
def test_means_regrets_and_optimal_map_equal_brute_force(world_of):
    problem, dag, cpts = world_of
    world = Environment(problem, cpts, dag)
    for context in contexts_of(problem):
        results = [observed_distribution(problem, dag, cpts, arm, context) for arm in problem.arms]
        labels = tuple(problem.domains[name][code] for name, code in context.items())
        labelled = dict(zip(problem.context, labels, strict=True))
        if results[0][0] == 0:
            if not world.can_occur(labelled):
                assert labels not in world.optimal_map()
                with raises_code("invalid-context", "probability 0"):
                    world.means(labelled)
            continue
        truth = np.array([mean_reward(problem, context_labels) for _, context_labels in results])
        np.testing.assert_allclose(world.means(labelled), truth, rtol=0, atol=1e-12)
        best = world.optimal_map()[labels]
        assert truth[problem.arms.index(best)] == pytest.approx(truth.max(), abs=1e-12)
        assert world.regret(best, labelled) == 0


@given(hidden_worlds())
@examples(120)
def test_arc_reversal_keeps_the_distribution(world_of):
    """P(all variables | do(a), c), from which `play` draws, hidden variables included."""
    problem, dag, cpts = world_of
    world = Environment(problem, cpts, dag)
    model, arm = world._reversal.model, problem.arms[-1]
    fixed = {name: problem.domains[name].index(label) for name, label in arm.items()}
    for context in contexts_of(problem):
        flat = world._posterior(tuple(context.values()))
        if flat is None:
            continue
        graph = model.problem.graph
        tables = {name: model.factors.view(flat, name) for name in graph}
        before = joint(dag, cpts, fixed)
        others = [
            np.arange(before.shape[dag.variables.index(name)]) != code
            for name, code in context.items()
        ]
        for name, other in zip(context, others, strict=True):
            np.moveaxis(before, dag.variables.index(name), 0)[other] = 0
        if before.sum() > 0:
            after = joint(graph, tables, fixed | context)
            np.testing.assert_allclose(after, before / before.sum(), rtol=0, atol=1e-12)


CONFOUNDED = "C1 -> C2; C1 -> X -> Y; C1 <-> C2; C2 <-> X; C2 <-> Y; X <-> Y; Z -> Y"


@pytest.mark.parametrize("context", [("C1",), ("C1", "C2"), ()])
def test_plays_and_contexts_have_the_distribution_of_the_world(context):
    """Chi-squared over all outcomes and over contexts; a dozen p-values above 1e-4."""
    problem = Problem(CausalGraph.parse(CONFOUNDED), "Y", context, "Z")
    world = make_environment(problem, seed=5, hidden_values=3)
    rng = np.random.default_rng(2)
    shape = [len(problem.domains[name]) for name in problem.graph]

    def p_value(codes, expected):
        counts = np.bincount(
            [np.ravel_multi_index(c, expected.shape) for c in codes], minlength=expected.size
        )
        likely = expected.ravel() * len(codes) > 5
        counts = [*counts[likely], counts[~likely].sum()]
        expected = [*expected.ravel()[likely], expected.ravel()[~likely].sum()]
        keep = np.array(expected) > 0
        return stats.chisquare(np.array(counts)[keep], len(codes) * np.array(expected)[keep]).pvalue

    drawn = [world.draw_context(rng) for _ in range(4000)]
    if context:
        distribution = joint(world.graph, world.cpts, {})
        others = tuple(i for i, name in enumerate(world.graph) if name not in context)
        codes = [[int(d[name]) for name in context] for d in drawn]
        assert p_value(codes, distribution.sum(axis=others)) > 1e-4
    for arm in problem.arms[:3]:
        first = {name: int(label) for name, label in drawn[0].items()}
        expected = observed_distribution(problem, world.graph, world.cpts, arm, first)[1]
        assert expected.shape == tuple(shape)
        plays = [world.play(arm, drawn[0], rng).values() for _ in range(4000)]
        assert p_value([[int(x) for x in play] for play in plays], expected) > 1e-4


@given(cases(max_size=5), st.integers(0, 2**32 - 1))
@examples(40)
def test_each_bidirected_edge_becomes_a_hidden_cause(case, seed):
    graph, reward, context, fixed = case
    problem = Problem(graph, reward, context, fixed)
    world = make_environment(problem, seed, hidden_values=3)
    assert world.hidden == tuple(sorted(f"U({a},{b})" for a, b in graph.bidirected_edges))
    assert all(world.cpts[name].shape == (3,) for name in world.hidden)
    assert world.graph.project(world.hidden) == graph


def test_hidden_causes_get_unused_names():
    problem = Problem(CausalGraph([("X", "Y"), ("U(X,Y)", "X")], [("X", "Y")]), "Y")
    assert make_environment(problem, 0).hidden == ("U(X,Y)'",)


def test_the_context_is_evidence_about_its_hidden_cause():
    """U is a fair coin that influences C; Y is X if U is 1, else 1 − X."""
    problem = Problem(CausalGraph.parse("X -> Y; C <-> Y"), "Y", context="C")
    dag = CausalGraph.parse("U -> C; U -> Y; X -> Y")
    same, opposite = [[1, 0], [0, 1]], [[0, 1], [1, 0]]
    cpts = {"U": [0.5, 0.5], "C": [[0.9, 0.1], [0.1, 0.9]], "X": [0.5, 0.5]}
    world = Environment(problem, {**cpts, "Y": [opposite, same]}, dag)
    np.testing.assert_allclose(world.means({"C": 0}), [0.9, 0.1], atol=1e-15)
    assert {key: str(arm) for key, arm in world.optimal_map().items()} == {
        ("0",): "do(X=0)",
        ("1",): "do(X=1)",
    }
    certain = Environment(problem, {**cpts, "Y": [opposite, same], "C": [[1, 0], [1, 0]]}, dag)
    assert list(certain.optimal_map()) == [("0",)]
    assert ("1",) not in certain.optimal_map()
    for ask in (certain.means, certain.best_arm, lambda c: certain.play("do(X=1)", c, 0)):
        with raises_code("invalid-context", "C=1"):
            ask({"C": 1})


def test_the_cache_of_contexts_is_limited(monkeypatch):
    monkeypatch.setattr("dowise.environments.environment._MAX_CACHED_CONTEXTS", 3)
    problem = Problem(
        CausalGraph.parse("A; B -> C; X -> Y; A <-> Y; C <-> Y"), "Y", ["A", "B", "C"]
    )
    world = make_environment(problem, 0)
    first = [world.means(c) for c in contexts_of(problem)]
    assert len(world._entries_by_context) <= 3
    plays = [world.play("do(X=0)", c, 0) for c in contexts_of(problem)]
    assert len(first) == len(plays) == 8


def test_a_long_chain_of_hidden_causes_is_feasible():
    """61 variables, more than einsum has letters; 2^29 assignments of hidden causes."""
    edges = [(f"H{i:02}", f"H{i + 1:02}") for i in range(29)]
    edges += [(f"H{i:02}", f"C{i:02}") for i in range(28)]
    dag = CausalGraph([*edges, ("H28", "C28"), ("H29", "Y"), ("X", "Y")])
    hidden = [name for name in dag if name.startswith("H")]
    context = [name for name in dag if name.startswith("C")]
    problem = Problem(dag.project(hidden), "Y", context)
    rng = np.random.default_rng(0)
    cpts = {v: rng.dirichlet([1, 1], size=(2,) * len(dag.parents(v))) for v in dag}
    world = Environment(problem, cpts, dag)
    context_labels = world.draw_context(rng)
    forward = cpts["H00"]
    for i in range(29):  # the forward algorithm of a hidden Markov model
        forward = forward * cpts[f"C{i:02}"][:, int(context_labels[f"C{i:02}"])]
        forward = forward / forward.sum() @ cpts[f"H{i + 1:02}"]
    truth = [forward @ cpts["Y"][:, x, 1] for x in (0, 1)]
    np.testing.assert_allclose(world.means(context_labels), truth, atol=1e-12)


def test_the_front_door_world_has_its_known_means():
    world = front_door_world()
    assert [str(arm) for arm in world.problem.arms] == ["do()", "do(X=0)", "do(X=1)"]
    assert world.problem.graph == CausalGraph.parse("X -> Z -> Y; X <-> Y")
    assert world.hidden == ("U_X", "U_XY", "U_Y", "U_Z")
    np.testing.assert_allclose(world.means(), [0.5, 0.44, 0.56], rtol=0, atol=1e-15)
    assert all(set(table.ravel()) == {0, 1} for v, table in world.cpts.items() if v in "XYZ")


def mechanisms(text):
    dag = CausalGraph.parse(text)
    return {v: np.full((2,) * (len(dag.parents(v)) + 1), 0.5) for v in dag}


@pytest.mark.parametrize(
    ("observed", "whole", "code", "mentioned"),
    [
        ("X -> Y; X <-> Y", None, "bidirected-edge", "X <-> Y"),
        ("X -> Y; X <-> Y!", "U -> X; X -> Y", "wrong-problem", "the problem has X <-> Y"),
        ("X -> Y", "U -> X -> Y; U -> Y", "wrong-problem", "the world has X <-> Y"),
        ("X -> Y", "X -> U -> Y; X -> V -> W", None, None),
        ("X -> Y", "Y -> U -> X", "wrong-problem", "the world has Y -> X, the problem has not"),
        ("X -> Y", "U -> Y; U <-> Y", "bidirected-edge", "U <-> Y"),
        ("X -> Y", "U -> Y", "unknown-variable", "lacks X"),
    ],
)
def test_the_graph_must_project_to_the_graph_of_the_problem(observed, whole, code, mentioned):
    problem = Problem(CausalGraph.parse(observed), "Y")
    dag = CausalGraph.parse(whole) if whole else None
    if code is None:
        assert Environment(problem, mechanisms(whole), dag).means().tolist() == [0.5, 0.5]
        return
    with raises_code(code, mentioned):
        Environment(problem, mechanisms(whole or observed), dag)


@pytest.mark.parametrize(
    ("table", "code", "mentioned"),
    [
        (0.5, "invalid-shape", "the CPT of U has the length 0"),
        ([1.0], "invalid-shape", "the CPT of U has the length 1"),
        ([0.5, 0.2, 0.3], "invalid-shape", "the CPT of X has the shape (2, 2), not (3, 2)"),
        ([0.5, 0.6], "invalid-number", "the CPT of U"),
    ],
)
def test_invalid_tables_of_hidden_variables_are_refused(table, code, mentioned):
    problem = Problem(CausalGraph.parse("X -> Y; X <-> Y"), "Y")
    text = "U -> X -> Y; U -> Y"
    with raises_code(code, mentioned):
        Environment(problem, {**mechanisms(text), "U": table}, CausalGraph.parse(text))


def test_a_graph_must_be_a_causal_graph():
    problem = Problem(CausalGraph.parse("X -> Y"), "Y")
    with raises_code("invalid-type", "a CausalGraph, not a str"):
        Environment(problem, mechanisms("X -> Y"), "X -> Y")


def test_too_large_tables_are_refused_with_the_hidden_variables():
    names = [f"X{i:02}" for i in range(30)]
    problem = Problem(CausalGraph([(x, "Y") for x in names], [("X00", "Y")]), "Y", arms=["do()"])
    with raises_code("too-large", "the world with U(X00,Y) hidden"):
        make_environment(problem, 0)
