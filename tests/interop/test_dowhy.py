"""To and from the real DoWhy: run by `make check-interop`, in an environment of its own."""

import networkx
import numpy as np
import pandas as pd
import pytest
from dowhy import CausalModel, gcm
from dowhy.causal_graph import CausalGraph as DoWhyGraph
from support.errors import raises_code

from dowise import Belief, CausalGraph, make_environment
from dowise.interop import graph_from_dowhy, graph_to_dowhy, problem_from_dowhy


def table(rows=200, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.choice(["old", "young"], rows)
    drug = rng.integers(0, 2, rows)
    cure = rng.random(rows) < 0.3 + 0.4 * drug
    return pd.DataFrame({"Age": age, "Drug": drug, "Cure": cure})


GRAPH = networkx.DiGraph(
    [("Age", "Drug"), ("Age", "Cure"), ("Drug", "Cure"), ("Mood", "Drug"), ("Mood", "Cure")]
)


@pytest.fixture
def model():
    return CausalModel(table(), treatment="Drug", outcome="Cure", graph=GRAPH)


def test_variables_without_data_are_projected_out(model):
    expected = CausalGraph.parse("Age -> Drug; Age -> Cure; Drug -> Cure; Cure <-> Drug")
    assert graph_from_dowhy(model) == expected
    assert graph_from_dowhy(model._graph) == expected


def test_a_model_makes_a_problem_with_the_labels_of_its_data(model):
    problem = problem_from_dowhy(model)
    assert problem.reward == "Cure" and problem.hidden == ("Mood",)
    assert problem.manipulable == ("Drug",) and problem.non_manipulable == ("Age",)
    assert dict(problem.domains) == {
        "Age": ("old", "young"),
        "Cure": ("False", "True"),
        "Drug": ("0", "1"),
    }
    belief = Belief(problem_from_dowhy(model, context=["Age"]))
    belief.update_many(model._data)
    assert belief.mean_rewards({"Age": "old"}).shape == (len(belief.problem.arms),)


def test_categories_keep_their_order_and_mixed_values_are_texts():
    data = table()
    data["Age"] = pd.Categorical(data["Age"], categories=["young", "old"])
    data["Drug"] = ["none", 7] * 100
    problem = problem_from_dowhy(CausalModel(data, treatment="Drug", outcome="Cure", graph=GRAPH))
    assert problem.domains["Age"] == ("young", "old") and problem.domains["Drug"] == ("7", "none")


def test_continuous_columns_need_domains():
    data = table()
    data["Cure"] = np.linspace(0, 1, len(data))
    measured = CausalModel(data, treatment="Drug", outcome="Cure", graph=GRAPH)
    with raises_code("too-large", "Cure", "200", "pandas.cut"):
        problem_from_dowhy(measured)
    problem = problem_from_dowhy(measured, domains={"Cure": ["bad", "good"]})
    assert problem.domains["Cure"] == ("bad", "good")


@pytest.mark.parametrize("text", ["X -> Y; X <-> Y", "Z ?-> X -> Y; Z <-> Y!; X <?> Y; W"])
def test_graphs_round_trip_and_dowhy_reads_them(text):
    graph = CausalGraph.parse(text)
    drawn = graph_to_dowhy(graph)
    assert graph_from_dowhy(drawn) == graph
    data = pd.DataFrame({name: [0, 1] for name in graph})
    model = CausalModel(data, treatment="X", outcome="Y", graph=drawn)
    assert graph_from_dowhy(model) == graph
    estimand = model.identify_effect(proceed_when_unidentifiable=False)
    assert estimand.get_backdoor_variables() in (None, [])  # confounded: nothing to adjust for


def test_hidden_variables_stay_unobserved():
    graph = CausalGraph.parse("U -> X; U -> Y; X -> Y")
    assert graph_from_dowhy(graph_to_dowhy(graph, hidden="U")) == CausalGraph.parse(
        "X -> Y; X <-> Y"
    )


def test_effects_in_a_simulated_world_agree_with_dowhy():
    world = make_environment("task2", seed=5)
    problem = world.problem
    rng = np.random.default_rng(0)
    context = world.draw_context(rng)
    rows = [world.play({}, context, rng) for _ in range(50)]
    data = pd.DataFrame(rows)
    model = CausalModel(
        data,
        treatment="X2",
        outcome=problem.reward,
        graph=graph_to_dowhy(problem.drawn, problem.hidden),
    )
    again = problem_from_dowhy(model, domains=problem.domains)
    assert again.graph == problem.graph and again.reward == problem.reward


def test_graphical_causal_models_and_graphs_are_accepted():
    scm = gcm.StructuralCausalModel(networkx.DiGraph([("X", "Y"), ("Y", "Z")]))
    assert graph_from_dowhy(scm) == CausalGraph.parse("X -> Y -> Z")
    drawn = DoWhyGraph(
        "X",
        "Y",
        networkx.DiGraph([("X", "Y"), ("U", "X"), ("U", "Y")]),
        observed_node_names=["X", "Y"],
    )
    assert graph_from_dowhy(drawn) == CausalGraph.parse("X -> Y; X <-> Y")
    with raises_code("invalid-type", "DoWhy"):
        graph_from_dowhy(7)
