"""To and from the real pgmpy: run by `make check-interop`, in an environment of its own."""

import importlib.util

import numpy as np
import pytest
from pgmpy.base import ADMG, DAG, PDAG
from pgmpy.factors.discrete import TabularCPD
from pgmpy.inference import CausalInference
from pgmpy.models import DiscreteBayesianNetwork, LinearGaussianBayesianNetwork
from pgmpy.readwrite import BIFReader, BIFWriter
from support.errors import raises_code

from dowise import CausalGraph, Environment, Problem, make_environment
from dowise.interop import (
    environment_from_pgmpy,
    environment_to_pgmpy,
    graph_from_pgmpy,
    graph_to_pgmpy,
    problem_from_pgmpy,
)


def test_the_environment_is_without_torch():
    assert importlib.util.find_spec("torch") is None


@pytest.mark.parametrize(
    "text",
    ["X -> Y", "A; X ?-> Y; X <-> Y; X <-> Z!; A <?> Z", "Z -> X -> Y; Z -> Y; U_X_Y; X <-> Y"],
)
def test_graphs_round_trip(text):
    graph = CausalGraph.parse(text)
    dag = graph_to_pgmpy(graph)
    assert isinstance(dag, DAG)
    assert len(dag.latents) == len(graph.bidirected_edges)
    assert graph_from_pgmpy(dag) == graph


def test_latents_are_projected_out_and_hidden_causes_become_latents():
    dag = DAG([("U", "X"), ("U", "Y"), ("X", "M"), ("M", "Y")], latents={"U"})
    graph = graph_from_pgmpy(dag)
    assert graph == CausalGraph.parse("X -> M -> Y; X <-> Y")
    ours = graph_to_pgmpy(graph)
    theirs = CausalInference(ours).get_all_frontdoor_adjustment_sets("X", "Y")
    assert frozenset({frozenset({"M"})}) <= theirs
    assert graph_from_pgmpy(graph_to_pgmpy(graph, hidden="M")) == CausalGraph.parse("X -> Y <-> X")


def test_an_admg_has_its_bidirected_edges():
    admg = ADMG(directed_ebunch=[("X", "Y")], bidirected_ebunch=[("Y", "X"), ("X", "Z")])
    assert graph_from_pgmpy(admg) == CausalGraph.parse("X -> Y; X <-> Y; X <-> Z")


def test_graphs_that_are_not_causal_are_refused():
    with raises_code("undirected-edge", "A -- B"):
        graph_from_pgmpy(PDAG(undirected_ebunch=[("A", "B")]))
    with raises_code("invalid-type", "pgmpy"):
        graph_from_pgmpy("X -> Y")


def test_roles_become_those_of_a_problem():
    dag = DAG(
        [("Age", "Drug"), ("Age", "Cure"), ("Drug", "Cure"), ("U", "Drug"), ("U", "Cure")],
        latents={"U"},
        exposures={"Drug"},
        outcomes={"Cure"},
    )
    problem = problem_from_pgmpy(dag)
    assert problem.reward == "Cure" and problem.manipulable == ("Drug",)
    assert problem.hidden == ("U",) and problem.non_manipulable == ("Age",)
    assert problem_from_pgmpy(dag, context=["Age"]).context == ("Age",)


@pytest.mark.parametrize("name", ["asia", "alarm", "insurance"])
def test_networks_round_trip_bit_for_bit(name):
    world = Environment.from_bif(name)
    model = environment_to_pgmpy(world)
    assert model.check_model()
    back = environment_from_pgmpy(model, reward=world.problem.reward)
    assert back.network.domains == world.network.domains
    assert back.graph == world.graph
    for variable, cpt in world.cpts.items():
        np.testing.assert_array_equal(back.cpts[variable], cpt)


def test_hidden_variables_become_latents_with_the_same_cpts():
    problem = Problem(CausalGraph.parse("C -> X -> Y; X <-> Y!; C -> Y"), "Y", context=["C"])
    world = make_environment(problem, seed=3)
    model = environment_to_pgmpy(world)
    assert world.hidden and model.latents == set(world.hidden)
    back = environment_from_pgmpy(
        model,
        reward=problem.reward,
        context=problem.context,
        non_manipulable=problem.non_manipulable,
    )
    assert back.problem.arms == problem.arms
    context = world.draw_context(1)
    np.testing.assert_allclose(back.means(context), world.means(context), rtol=1e-12)


def test_means_agree_with_interventions_in_pgmpy():
    world = Environment.from_bif("asia", reward="dysp", context=(), non_manipulable=())
    inference = CausalInference(environment_to_pgmpy(world))
    for arm in world.problem.arms[:4]:
        query = inference.query(["dysp"], do=dict(arm), show_progress=False)
        labels = world.problem.domains["dysp"]
        shares = [query.get_value(dysp=label) for label in labels]
        worth = [world.problem.reward_values[label] for label in labels]
        mean = world.means()[world.problem.arms.index(arm)]
        assert mean == pytest.approx(np.dot(shares, worth), abs=1e-9)


def test_states_may_be_reordered_and_need_not_be_text():
    model = DiscreteBayesianNetwork([("b", "y"), ("a", "y")])
    model.add_cpds(
        TabularCPD("a", 2, [[0.2], [0.8]], state_names={"a": [0, 1]}),
        TabularCPD("b", 3, [[0.1], [0.2], [0.7]], state_names={"b": ["x", "y", "z"]}),
        TabularCPD(
            "y",
            2,
            [[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]],
            evidence=["b", "a"],
            evidence_card=[3, 2],
            state_names={"y": [True, False], "b": ["z", "y", "x"], "a": [1, 0]},
        ),
    )
    network = environment_from_pgmpy(model, reward="y").network
    assert network.domains == {"a": ("0", "1"), "b": ("x", "y", "z"), "y": ("True", "False")}
    assert network.cpts["y"][0, 0].tolist() == [0.6, 0.4]  # a=0, b=x
    assert network.cpts["y"][1, 2].tolist() == [0.1, 0.9]  # a=1, b=z


def test_invalid_networks_are_refused():
    bare = DiscreteBayesianNetwork([("x", "y")])
    with raises_code("missing-value", "x ", "TabularCPD"):
        environment_from_pgmpy(bare, reward="y")
    with raises_code("missing-value", "x ", "TabularCPD"):
        environment_from_pgmpy(LinearGaussianBayesianNetwork([("x", "y")]), reward="y")
    with raises_code("missing-value", "reward"):
        problem_from_pgmpy(bare)


def test_pgmpy_reads_our_bif_files(tmp_path):
    world = Environment.from_bif("asia")
    world.to_bif(tmp_path / "asia.bif")
    model = BIFReader(str(tmp_path / "asia.bif")).get_model()
    back = environment_from_pgmpy(model, reward=world.problem.reward)
    for variable, cpt in world.cpts.items():
        np.testing.assert_allclose(back.cpts[variable], cpt, rtol=0, atol=1e-15)


def test_bif_files_of_pgmpy_are_read(tmp_path):
    world = Environment.from_bif("asia")
    BIFWriter(environment_to_pgmpy(world)).write(str(tmp_path / "asia.bif"))
    back = Environment.from_bif(tmp_path / "asia.bif", reward=world.problem.reward)
    assert back.graph == world.graph
    places = {
        name: [back.problem.domains[name].index(label) for label in labels]
        for name, labels in world.problem.domains.items()
    }
    for variable, cpt in world.cpts.items():
        axes = (*world.graph.parents(variable), variable)
        theirs = back.cpts[variable][np.ix_(*(places[axis] for axis in axes))]
        np.testing.assert_allclose(theirs, cpt, rtol=0, atol=1e-12)
