"""Random worlds: chordal graphs and their roles, doubtful edges, hidden causes, priors."""

from collections import Counter
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.brute_force import observed_distribution
from support.errors import raises_code
from support.strategies import cases, examples

from dowise import (
    Belief,
    CausalGraph,
    Environment,
    Problem,
    load_problem,
    make_environment,
    simulate,
)
from dowise.environments import (
    SampledWorlds,
    WorldOptions,
    random_chordal_graph,
    random_problem,
    resolve_worlds,
)
from dowise.environments.random_worlds import sample_world
from dowise.experiment.rehearsal import rehearse
from dowise.simulation import bounds
from dowise.testing import check_environment

# -- chordal graphs ---------------------------------------------------------------------------

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
def test_roles_follow_the_paper(size, density, seed):
    problem = random_problem(size, density, seed).problem
    graph, context = problem.graph, problem.context
    assert problem.reward == graph.variables[-1]
    assert len(problem.non_manipulable) == max(1, round(0.15 * size))
    assert graph.ancestors(context) == {*context} and len(context) <= 2
    assert 2 <= len(problem.arms) <= 64
    candidates = [
        name
        for name in graph.variables[:-1]
        if name not in problem.non_manipulable and {*graph.parents(name)} <= {*context}
    ]
    assert len(context) == 2 or set(candidates) == {*context}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "density", "share"), [(10, 0.1, 0.22), (15, 0.1, 0.12), (15, 0.2, 0.05)]
)
def test_the_share_of_rejected_problems_equals_that_of_the_prototype(size, density, share):
    """Within two points, to which the shares are known, and four standard errors."""
    rng = np.random.default_rng(1)
    drawn = [random_problem(size, density, rng) for _ in range(600)]
    instances = 600 + sum(problem.redrawn for problem in drawn)
    trivial = sum(problem.too_few for problem in drawn) / instances
    assert abs(trivial - share) < 0.02 + 4 * np.sqrt(share * (1 - share) / instances)
    single = np.mean([len(x.problem.intervention_sets) == 1 for x in drawn])
    assert 0.85 < single < 0.95  # about 90 % have one intervention set only


def test_the_number_of_attempts_is_limited(monkeypatch):
    monkeypatch.setattr("dowise.environments.random_worlds._MAX_ATTEMPTS", 20)
    with raises_code("no-arms", "0 have fewer, 20 have more", "a smaller size"):
        random_problem(40, 0.9, 0)


def test_equal_seeds_give_equal_problems():
    first, second = random_problem(15, 0.2, 7), random_problem(15, 0.2, 7)
    assert first == second and first.redrawn == first.too_few + first.too_many
    assert first.problem.name == "chordal-15-0.2"


def test_a_chordal_world_is_made_by_name():
    world, equal, other = (make_environment("chordal-15-0.2", seed) for seed in (1, 1, 2))
    assert world.problem == equal.problem != other.problem
    context = world.draw_context(0)
    np.testing.assert_array_equal(world.means(context), equal.means(context))
    assert len(world.problem.graph) == 15


@pytest.mark.parametrize(
    ("make", "code", "mentioned"),
    [
        (lambda: random_chordal_graph(0, 0.1, 0), "invalid-number", "size=0"),
        (lambda: random_chordal_graph(True, 0.1, 0), "invalid-number", "size=True"),
        (lambda: random_problem(2, 0.1, 0), "invalid-number", "size=2"),
        (lambda: random_problem(10, 1.5, 0), "invalid-number", "density=1.5"),
        (lambda: random_problem(10, "a", 0), "invalid-number", "density='a'"),
        (lambda: random_problem(10, 0.1, None), "invalid-type", "rng=None"),
        (lambda: make_environment("chordal-2-0.1", 0), "invalid-number", "size=2"),
        (lambda: make_environment("chordal-10-7", 0), "invalid-number", "density=7.0"),
        (lambda: make_environment("chordal-10", 0), "unknown-problem", "chordal-SIZE-DENSITY"),
        (lambda: make_environment("chordal-a-0.1", 0), "unknown-problem", "chordal-a-0.1"),
    ],
)
def test_invalid_arguments_are_refused(make, code, mentioned):
    with raises_code(code, mentioned):
        make()


# -- doubtful edges and hidden causes ---------------------------------------------------------

DOUBTFUL = "C -> X; X -> Y; Z ?-> Y; C ?-> Y; X <-> Y; Z <?> X"


def means_by_brute_force(world, context):
    problem, axis = world.problem, world.problem.graph.variables.index(world.problem.reward)
    values = np.array(list(problem.reward_values.values()))
    means = []
    for arm in problem.arms:
        distribution = observed_distribution(problem, world.graph, world.cpts, arm, context)[1]
        others = tuple(i for i in range(distribution.ndim) if i != axis)
        means.append(distribution.sum(axis=others) @ values)
    return means


@given(cases(max_size=4), st.integers(0, 2**32 - 1), st.sampled_from([None, 0.3]))
@examples(30)
def test_a_world_has_its_certain_edges_and_exact_means(case, seed, soft):
    graph, reward, context, fixed = case
    problem = Problem(graph, reward, context, fixed, soft=soft)
    world = make_environment(problem, seed, edges="prior")
    edges = {*world.graph.project(world.hidden).edge_texts}
    assert {*problem.possible.edge_texts} - {*problem.edge_priors} <= edges
    assert edges <= {*problem.possible.edge_texts}
    context = world.draw_context(seed)
    codes = {name: problem.code(name, label) for name, label in context.items()}
    np.testing.assert_allclose(world.means(context), means_by_brute_force(world, codes), atol=1e-12)


def test_doubtful_edges_are_drawn_independently_with_their_priors():
    """Frequencies within five standard errors, pairs too; soft edges among them."""
    problem = Problem(CausalGraph.parse(DOUBTFUL), "Y", "C", edge_prior={"X <-> Y": 0.7}, soft=0.2)
    rng, number = np.random.default_rng(3), 400
    worlds = SampledWorlds(problem, WorldOptions(edges="prior"))
    counts = Counter()
    for _ in range(number):
        world = worlds.draw(rng)
        edges = [
            e for e in world.graph.project(world.hidden).edge_texts if e in problem.edge_priors
        ]
        counts.update(edges)
        counts.update(combinations(sorted(edges), 2))
    priors = problem.edge_priors
    assert set(priors.values()) == {0.7, 0.5, 0.2} and "C -> Z" in priors
    expected = priors | {(a, b): priors[a] * priors[b] for a, b in combinations(sorted(priors), 2)}
    for edges, p in expected.items():
        assert abs(counts[edges] / number - p) < 5 * np.sqrt(p * (1 - p) / number)


def test_all_edges_of_the_graph_are_present_by_default():
    problem = Problem(CausalGraph.parse(DOUBTFUL), "Y", "C", soft=0.1)
    world = make_environment(problem, 1)
    assert world.hidden == ("U(X,Y)", "U(X,Z)") and not world.graph.marks
    assert world.graph.project(world.hidden).edge_texts == problem.graph.edge_texts
    check_environment(world, plays=200)


def test_edge_priors_do_not_change_sampled_worlds():
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


def test_hidden_variables_of_a_problem_are_variables_of_the_world():
    graph = CausalGraph.parse("Mood -> X; Mood -> Y; X -> Y; Age -> Mood; Age -> Y; X <-> Y")
    domains = {"Mood": ("low", "fair", "high", "wild")}
    problem = Problem(graph, "Y", hidden=("Mood", "Age"), domains=domains)
    world = make_environment(problem, 2, hidden_values=5)
    assert world.hidden == ("Age", "Mood", "U(X,Y)")
    assert {name: world.cpts[name].shape[-1] for name in world.hidden} == {
        "Age": 2,
        "Mood": 4,
        "U(X,Y)": 5,
    }
    np.testing.assert_allclose(world.means(), means_by_brute_force(world, {}), atol=1e-12)
    assert [*world.play("do()", None, 0)] == ["X", "Y"]
    problem = Problem(graph.without("X <-> Y"), "Y", hidden=("Mood", "Age"))
    cpts = make_environment(problem, 0).cpts
    assert Environment(problem, cpts).graph == problem.drawn


def test_strong_worlds_have_more_values_and_extreme_rows():
    graph = CausalGraph.parse("U -> X; U -> Y; V -> Y; X -> Y; X <-> Y")
    problem = Problem(graph, "Y", hidden=("U", "V"), domains={"V": ("a", "b")})
    world = make_environment(problem, 0, strong=True)
    assert {name: world.cpts[name].shape[-1] for name in world.hidden} == {
        "U": 3,
        "U(X,Y)": 3,
        "V": 2,
    }
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
def test_a_world_has_all_certain_edges_and_no_impossible_ones(world, complaint):
    problem = Problem(CausalGraph.parse("X -> Y; Z ?-> Y; X <-> Y"), "Y")
    dag = CausalGraph.parse(world)
    dag = dag if "Z" in dag else CausalGraph(dag.directed_edges, variables=[*dag, "Z"])
    cpts = {v: np.full((2,) * (len(dag.parents(v)) + 1), 0.5) for v in dag}
    if complaint is None:
        assert Environment(problem, cpts, dag).means().tolist() == [0.5] * len(problem.arms)
        return
    with raises_code("wrong-problem", complaint):
        Environment(problem, cpts, dag)


def test_invalid_options_are_refused():
    with raises_code("unknown-value", "edges='some'"):
        make_environment("task1", 0, edges="some")
    with raises_code("invalid-type", "strong=1"):
        make_environment("task1", 0, strong=1)
    world = make_environment("task1", 0)
    with raises_code("unused-option", "strong and edges"):
        resolve_worlds(world, WorldOptions(strong=True))


# -- priors -----------------------------------------------------------------------------------

PRIOR = {"X": [8.0, 2.0], "Y": [[[1.0, 3.0], [5.0, 1.0]], [[2.0, 2.0], [0.5, 0.1]]]}
PROBLEM = Problem(CausalGraph.parse("X -> Y; Z -> Y; Z -> X"), reward="Y")


def worlds(problem, prior, number=4000, **options):
    rng = np.random.default_rng(5)
    return [sample_world(problem, rng, WorldOptions(**options), prior) for _ in range(number)]


def test_cpts_have_the_means_and_variances_of_the_prior():
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


def test_means_of_arms_average_to_those_of_the_belief():
    problem = load_problem("task2")
    prior = {"Y": [1.0, 4.0], "Z": 0.3}
    means = np.mean([world.means({"C": 1}) for world in worlds(problem, prior, 3000)], axis=0)
    assert np.allclose(means, Belief(problem, prior).mean_rewards({"C": 1}), atol=0.02)


def test_tiny_counts_give_rows_of_zeros_and_ones():
    (world,) = worlds(PROBLEM, 1e-6, 1)
    for table in world.cpts.values():
        assert np.allclose(table.sum(axis=-1), 1) and np.allclose(table.max(axis=-1), 1)


def test_counts_are_repeated_over_hidden_parents():
    problem = Problem(CausalGraph.parse("X -> Y; X <-> Y"), reward="Y")
    tables = [world.cpts["Y"] for world in worlds(problem, {"Y": [[1e9, 1], [1, 1e9]]}, 3)]
    for table in tables:  # axes U(X,Y), X, Y
        assert np.allclose(table, [[[1, 0], [0, 1]]] * 2, atol=1e-6)


def test_rows_come_from_the_prior_with_doubtful_edges():
    problem = Problem(CausalGraph.parse("X -> Y; Z ?-> Y"), reward="Y")
    tables = [world.cpts["Y"] for world in worlds(problem, {"Y": [1e8, 1e8]}, 40, edges="prior")]
    assert {table.ndim for table in tables} == {2, 3}
    assert all(np.allclose(table, 0.5, atol=1e-3) for table in tables)


def test_counts_for_other_parents_are_refused():
    problem = Problem(CausalGraph.parse("X -> M -> Y"), reward="Y", hidden=("M",))
    assert len(worlds(problem, {"Y": [2.0, 1.0]}, 2)) == 2
    with raises_code("invalid-shape", "the prior of Y", "(M)"):
        worlds(problem, {"Y": [[2.0, 1.0], [1.0, 1.0]]}, 1)


def test_the_prior_of_a_problem_is_the_default():
    problem = Problem(PROBLEM.graph, "Y", prior=PRIOR)
    for seed in range(3):
        expected = sample_world(PROBLEM, np.random.default_rng(seed), prior=PRIOR).cpts
        drawn = make_environment(problem, np.random.default_rng(seed)).cpts
        assert all(np.array_equal(drawn[name], expected[name]) for name in expected)
    certain = Problem("X -> Y", "Y", prior={"Y": [[1e9, 1], [1, 1e9]]})
    assert np.allclose(make_environment(certain, 1).cpts["Y"], [[1, 0], [0, 1]], atol=1e-6)
    assert np.allclose(make_environment(certain, 1, strong=True).cpts["Y"], np.eye(2), atol=1e-6)


def test_simulations_bounds_and_rehearsals_use_the_prior_of_the_problem():
    certain = Problem("X -> Y", "Y", prior={"Y": [[1e6, 1], [1, 1e6]]})
    frame = simulate([certain], ["ts"], horizon=20, trials=3).frame()
    assert frame["regret"].max() == 0  # the policy has the same prior
    assert bounds(certain, 5, samples=500, policy_samples=200).p_best.tolist() == [[0, 1]]
    rehearsed = rehearse(certain, horizon=10, worlds=5, policy="ids", options={"samples": 50})
    assert rehearsed.regret.max() < 1e-3 and rehearsed.prior == {"Y": [[1e6, 1.0], [1.0, 1e6]]}
    on_rewards = rehearse(certain, horizon=10, worlds=5, policy="ucb")
    assert on_rewards.regret.max() > 0.5
