"""Worlds drawn from a prior of one's own."""

import numpy as np
from support.errors import raises_code

from dowise import (
    Belief,
    CausalGraph,
    Problem,
    load_problem,
    make_environment,
    simulate,
)
from dowise.environments import WorldOptions
from dowise.environments.random_worlds import sample_world
from dowise.experiment.rehearsal import rehearse
from dowise.simulation import bounds

PRIOR = {"X": [8.0, 2.0], "Y": [[[1.0, 3.0], [5.0, 1.0]], [[2.0, 2.0], [0.5, 0.1]]]}
PROBLEM = Problem(CausalGraph.parse("X -> Y; Z -> Y; Z -> X"), reward="Y")


def worlds(problem, prior, number=4000, **options):
    rng = np.random.default_rng(5)
    return [sample_world(problem, rng, WorldOptions(**options), prior) for _ in range(number)]


def test_tables_have_the_means_and_the_spread_that_the_belief_has_at_the_prior():
    drawn = [world.cpts for world in worlds(PROBLEM, PRIOR)]
    expected = Belief(PROBLEM, PRIOR).mean_cpts()
    counts = {"X": np.array([[8.0, 2.0]] * 2), "Y": np.array(PRIOR["Y"]), "Z": np.ones(2)}
    for name, alpha in counts.items():
        tables = np.array([cpts[name] for cpts in drawn])
        mean, total = expected[name], alpha.sum(axis=-1, keepdims=True)
        spread = np.sqrt(mean * (1 - mean) / (total + 1))
        error = 4.5 * spread / np.sqrt(len(drawn))  # a false alarm of some 1e-4 over all entries
        assert (np.abs(tables.mean(axis=0) - mean) < error).all()
        assert np.allclose(tables.std(axis=0), spread, rtol=0.1)


def test_means_of_arms_are_those_that_the_belief_expects():
    problem = load_problem("task2")
    prior = {"Y": [1.0, 4.0], "Z": 0.3}
    found = np.mean([world.means({"C": 1}) for world in worlds(problem, prior, 3000)], axis=0)
    assert np.allclose(found, Belief(problem, prior).mean_rewards({"C": 1}), atol=0.02)


def test_the_smallest_counts_give_rows_of_zeros_and_ones():
    (world,) = worlds(PROBLEM, 1e-6, 1)
    for table in world.cpts.values():
        assert np.allclose(table.sum(axis=-1), 1) and np.allclose(table.max(axis=-1), 1)


def test_counts_for_the_parents_are_repeated_over_hidden_ones():
    problem = Problem(CausalGraph.parse("X -> Y; X <-> Y"), reward="Y")
    tables = [world.cpts["Y"] for world in worlds(problem, {"Y": [[1e9, 1], [1, 1e9]]}, 3)]
    for table in tables:  # axes U(X,Y), X, Y
        assert np.allclose(table, [[[1, 0], [0, 1]]] * 2, atol=1e-6)


def test_doubtful_edges_are_drawn_and_rows_come_from_the_prior_all_the_same():
    problem = Problem(CausalGraph.parse("X -> Y; Z ?-> Y"), reward="Y")
    found = [world.cpts["Y"] for world in worlds(problem, {"Y": [1e8, 1e8]}, 40, edges="prior")]
    assert {table.ndim for table in found} == {2, 3}
    assert all(np.allclose(table, 0.5, atol=1e-3) for table in found)


def test_counts_for_parents_that_a_world_does_not_have_are_refused():
    problem = Problem(CausalGraph.parse("X -> M -> Y"), reward="Y", hidden=("M",))
    assert len(worlds(problem, {"Y": [2.0, 1.0]}, 2)) == 2
    with raises_code("invalid-shape", "the prior of Y", "(M)"):
        worlds(problem, {"Y": [[2.0, 1.0], [1.0, 1.0]]}, 1)


def test_worlds_of_a_problem_with_a_prior_come_from_it():
    own = Problem(PROBLEM.graph, "Y", prior=PRIOR)
    for seed in range(3):
        given = sample_world(PROBLEM, np.random.default_rng(seed), prior=PRIOR).cpts
        drawn = make_environment(own, np.random.default_rng(seed)).cpts
        assert all(np.array_equal(drawn[name], given[name]) for name in given)
    sure = Problem("X -> Y", "Y", prior={"Y": [[1e9, 1], [1, 1e9]]})
    assert np.allclose(make_environment(sure, 1).cpts["Y"], [[1, 0], [0, 1]], atol=1e-6)
    assert np.allclose(make_environment(sure, 1, strong=True).cpts["Y"], np.eye(2), atol=1e-6)


def test_races_bounds_and_rehearsals_go_by_the_problems_prior():
    sure = Problem("X -> Y", "Y", prior={"Y": [[1e6, 1], [1, 1e6]]})
    frame = simulate([sure], ["ts"], horizon=20, trials=3).frame()
    assert frame["regret"].max() == 0  # the policy knows what the worlds are like
    assert bounds(sure, 5, samples=500, policy_samples=200).p_best.tolist() == [[0, 1]]
    rehearsed = rehearse(sure, horizon=10, worlds=5, policy="ids", options={"samples": 50})
    assert rehearsed.regret.max() < 1e-3 and rehearsed.prior == {"Y": [[1e6, 1.0], [1.0, 1e6]]}
    blind = rehearse(sure, horizon=10, worlds=5, policy="ucb")
    assert blind.regret.max() > 0.5
