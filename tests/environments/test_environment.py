"""Worlds: plays have the distribution of the CPTs; means and regrets are exact."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.brute_force import mean_reward, random_cpts
from support.errors import raises_code
from support.strategies import cases, examples

from dowise import CausalGraph, Environment, Problem, load_problem, make_environment


@given(cases(max_size=5, bidirected=False), st.integers(0, 2**32 - 1))
@examples(30)
def test_means_and_regrets_equal_brute_force(case, seed):
    graph, reward, context, hidden = case
    problem = Problem(graph, reward, context, hidden, {reward: ["a", "b", "c"]})
    rng = np.random.default_rng(seed)
    world = Environment(problem, random_cpts(problem, rng))
    context_codes = {name: int(rng.integers(2)) for name in context}
    truth = np.array([mean_reward(problem, world.cpts, arm, context_codes) for arm in problem.arms])
    np.testing.assert_allclose(world.means(context_codes), truth, rtol=0, atol=1e-12)
    for i, arm in enumerate(problem.arms):
        assert world.regret(arm, context_codes) == pytest.approx(truth.max() - truth[i], abs=1e-12)
    assert world.best_arm(context_codes) == problem.arms[int(truth.argmax())]


@given(cases(max_size=5, bidirected=False), st.integers(0, 2**32 - 1))
@examples(30)
def test_a_play_equals_its_slow_twin(case, seed):
    """The same uniforms, causes first, compared with the cumulative sums of each row."""
    graph, reward, context, hidden = case
    problem = Problem(graph, reward, context, hidden, {reward: ["a", "b", "c"]})
    rng = np.random.default_rng(seed)
    world = Environment(problem, random_cpts(problem, rng))
    context_codes = {name: int(rng.integers(2)) for name in context}
    arm = problem.arms[rng.integers(len(problem.arms))]
    fixed = {name: problem.code(name, x) for name, x in {**context_codes, **arm}.items()}
    order = graph.topological_order()
    codes = {}
    for name, u in zip(order, np.random.default_rng(seed).random(len(order)), strict=True):
        row = world.cpts[name][tuple(codes[parent] for parent in graph.parents(name))]
        codes[name] = fixed.get(name, int((row.cumsum()[:-1] <= u).sum()))
    played = world.play(arm, context_codes, seed)
    assert played == {name: problem.domains[name][codes[name]] for name in graph}


def test_conditional_distributions_of_plays_are_the_cpts():
    """Chi-squared for each row of each CPT under do(); about 40 p-values above 1e-4."""
    world = make_environment("task3", seed=5)
    rng = np.random.default_rng(1)
    plays = [world.play("do()", world.draw_context(rng), rng) for _ in range(8000)]
    graph = world.problem.graph
    for name in graph:
        parents, cpt = graph.parents(name), world.cpts[name]
        for row in np.ndindex(cpt.shape[:-1]):
            same = [p for p in plays if tuple(int(p[x]) for x in parents) == row]
            counts = np.bincount([int(p[name]) for p in same], minlength=2)
            if (len(same) * cpt[row]).min() > 5:
                assert stats.chisquare(counts, len(same) * cpt[row]).pvalue > 1e-4


def test_equal_seeds_give_equal_worlds():
    first, second, third = (make_environment("task1", seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.means(), second.means())
    assert not np.array_equal(first.means(), third.means())
    assert first.draw_context(0) == {}


@pytest.mark.parametrize(
    ("change", "code", "mentioned"),
    [
        ({"Z": [0.5, 0.6]}, "invalid-number", "the CPT of Z"),
        ({"Z": [1.5, -0.5]}, "invalid-number", "the CPT of Z"),
        ({"X": [0.5, 0.5]}, "invalid-shape", "the CPT of X has the shape (2,), not (2, 2)"),
        ({"Q": [0.5, 0.5]}, "unknown-variable", "'Q'"),
        ({"Z": None}, "missing-value", "Z"),
        ({"X": [[0.5, 0.5], [1.0]]}, "invalid-type", "the CPT of X"),
        ({"Z": ["a", "b"]}, "invalid-type", "the CPT of Z"),
    ],
)
def test_invalid_tables_are_refused(change, code, mentioned):
    problem = load_problem("task1")
    cpts = {**random_cpts(problem, np.random.default_rng(0)), **change}
    cpts = {name: table for name, table in cpts.items() if table is not None}
    with raises_code(code, mentioned):
        Environment(problem, cpts)


def test_the_optimal_map_has_the_best_arm_of_every_context():
    world = make_environment("task2", seed=3)
    best = world.optimal_map()
    assert dict(best) == {(c,): world.best_arm({"C": c}) for c in "01"}
    assert len(best) == 2 and ("2",) not in best and "C" not in best and None not in best
    assert make_environment("task1", seed=3).optimal_map() == {
        (): make_environment("task1", seed=3).best_arm()
    }


def test_the_optimal_map_is_lazy():
    names = [f"C{i:02}" for i in range(40)]
    problem = Problem(
        CausalGraph(
            [(name, "Y") for name in names[:3]] + [("X", "Y")], variables=[*names, "X", "Y"]
        ),
        "Y",
        context=names,
    )
    world = make_environment(problem, seed=0)
    labels = next(iter(world.optimal_map()))
    assert world.optimal_map()[labels] == world.best_arm(dict.fromkeys(names, 0))
    assert repr(world.optimal_map()).startswith("<OptimalMap of C00, C01")


def test_a_world_copies_its_tables():
    problem = load_problem("task1")
    cpts = random_cpts(problem, np.random.default_rng(0))
    world = Environment(problem, cpts)
    cpts["Y"][:] = world.cpts["Y"][:] = 0.5
    assert not (world.cpts["Y"] == 0.5).any()


def test_a_world_is_picklable():
    world = make_environment("task3", seed=1)
    copy = pickle.loads(pickle.dumps(world))
    np.testing.assert_array_equal(copy.means({"C": 0}), world.means({"C": 0}))
    assert copy.play("do(X2=0)", {"C": 0}, 5) == world.play("do(X2=0)", {"C": 0}, 5)


@pytest.mark.parametrize(
    ("make", "code", "mentioned"),
    [
        (lambda: Environment("task1", {}), "invalid-type", "a Problem"),
        (lambda: Environment(load_problem("task1"), [1]), "invalid-type", "cpts"),
        (lambda: make_environment(3, 0), "invalid-type", "not 3"),
        (lambda: make_environment("task1", None), "invalid-type", "rng=None"),
        (lambda: make_environment("task1", 0, hidden_values=1), "invalid-number", "hidden_values"),
        (lambda: make_environment("taks1", 0), "unknown-problem", "did you mean 'task1'?"),
    ],
)
def test_invalid_arguments_are_refused(make, code, mentioned):
    with raises_code(code, mentioned):
        make()
