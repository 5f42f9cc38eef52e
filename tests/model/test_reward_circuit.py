"""Reward circuits: results against brute force, size, and limits."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.brute_force import mean_reward, random_cpts
from support.errors import raises_code
from support.strategies import cases, examples

from dowise import CausalGraph, Problem, load_problem, simulate
from dowise.belief import Belief
from dowise.model import model_of
from dowise.model.elimination import Plans, elimination
from dowise.model.factors import FactorLayout
from dowise.model.reward_circuit import reward_distributions


def rewards(problem, cpts, context, dtype=np.float64):
    """Return the mean rewards of all arms by the circuit."""
    model = model_of(problem)
    flat = np.concatenate([cpts[name].ravel() for name in problem.graph]).astype(dtype)
    result = model.evaluated(flat[:, None], problem.context_codes(context))[..., 0]
    worth = problem.payoff.values
    return worth[0] + result @ (worth[1:] - worth[0])


def rewards_by_numbers(problem, cpts, context):
    """Return the mean rewards of all arms by elimination on numbers, without a circuit."""
    flat = np.concatenate([cpts[name].ravel() for name in problem.graph])
    plans = Plans(problem, FactorLayout(problem), whole=True)
    result = reward_distributions(plans, flat, problem.context_codes(context))
    return result @ problem.payoff.values


def circuit_of(problem):
    return model_of(problem).circuit


@given(cases(max_size=6, bidirected=False), st.data())
@examples(80)
def test_rewards_equal_brute_force(case, data):
    graph, reward, context, hidden = case
    sizes = {name: data.draw(st.integers(2, 3)) for name in graph}
    domains = {name: [str(i) for i in range(size)] for name, size in sizes.items()}
    worth = {label: data.draw(st.integers(-3, 9)) for label in domains[reward]}
    if len(set(worth.values())) == 1:
        worth["0"] = 10
    kind = data.draw(st.sampled_from(["pomis", "all", "some"]))
    every = Problem(graph, reward, context, hidden, domains, worth, arms="all").arms
    some = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True))
    arms = some if kind == "some" else kind
    problem = Problem(graph, reward, context, hidden, domains, worth, arms=arms)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    cpts = random_cpts(problem, rng)
    prior = {name: rng.gamma(2.0, size=table.shape) + 0.1 for name, table in cpts.items()}
    belief = Belief(problem, prior)
    observed = {name: int(rng.integers(sizes[name])) for name in context}
    truth = [mean_reward(problem, cpts, arm, observed) for arm in problem.arms]
    np.testing.assert_allclose(rewards(problem, cpts, observed), truth, rtol=0, atol=1e-12)
    at_once = rewards_by_numbers(problem, cpts, observed)
    np.testing.assert_allclose(at_once, truth, rtol=0, atol=1e-12)
    means = belief.mean_cpts()
    truth_of_means = [mean_reward(problem, means, arm, observed) for arm in problem.arms]
    np.testing.assert_allclose(belief.mean_rewards(observed), truth_of_means, rtol=0, atol=1e-12)
    single = rewards(problem, cpts, observed, np.float32)
    np.testing.assert_allclose(single, truth, rtol=0, atol=1e-5)


def test_custom_arms_need_only_their_rows():
    graph = CausalGraph.parse("Z -> X -> Y; Z -> Y")
    everything = circuit_of(Problem(graph, "Y", non_manipulable="Z"))
    one_arm = circuit_of(Problem(graph, "Y", non_manipulable="Z", arms=["do(X=1)"]))
    assert len(everything.blocks) == 7
    assert len(one_arm.blocks) == 3  # P(z) and P(Y | X=1, z)


@pytest.mark.parametrize(
    ("name", "rows"),
    # Counted by hand from the graphs: task2 never draws X1's rows, and half of X2's and Y's
    # belong to the other context; task3 draws 1 + 1 + 2 + 2 + 2 + 16.
    [("task1", 1 + 2 + 4), ("task2", 1 + 4 + 4), ("task3", 24), ("healthcare", 1 + 8 + 8)],
)
def test_only_reachable_rows_are_inputs(name, rows):
    assert len(circuit_of(load_problem(name)).blocks) == rows


def test_intervention_sets_share_operations():
    # 12 sums of two products for do(X1, X2), and do(X2) starts from the eight inner ones.
    together = circuit_of(load_problem("task3"))
    alone = sum(
        circuit_of(
            Problem(
                load_problem("task3").graph,
                "Y",
                "C",
                ["Z1", "Z2"],
                arms=[arm for arm in load_problem("task3").arms if arm.variables == names],
            )
        ).multiplications
        for names in load_problem("task3").intervention_sets
    )
    assert together.multiplications < alone


def test_few_arms_on_many_variables_have_a_small_circuit():
    levers = [f"X{i:02}" for i in range(40)]
    chain = [f"H{i:02}" for i in range(40)]
    edges = [*zip(levers, chain, strict=True), *pairwise(chain), (chain[-1], "Y")]
    arms = [dict.fromkeys(levers, 0), dict.fromkeys(levers, 1)]
    problem = Problem(CausalGraph(edges), "Y", non_manipulable=chain, arms=arms)
    assert circuit_of(problem).multiplications < 1000
    assert Belief(problem).mean_rewards().tolist() == [0.5, 0.5]


def test_slots_are_reused():
    chain = CausalGraph([(f"V{i:02}", f"V{i + 1:02}") for i in range(30)])
    problem = Problem(chain, "V30", non_manipulable=[f"V{i:02}" for i in range(1, 30)])
    circuit = circuit_of(problem)
    inputs = int(circuit.block_sizes.sum())
    operations = len(circuit.operations.outputs)
    assert circuit.slots - len(circuit.constants) - inputs < operations / 4


def test_a_cpt_that_is_too_large_is_refused():
    wide = CausalGraph([*((f"P{i:02}", "W") for i in range(40)), ("X", "Y")])
    with raises_code("too-large", "W with its 40 parents alone has 2.2e+12"):
        Belief(Problem(wide, "Y", non_manipulable=[v for v in wide if v not in ("X", "Y")]))


@pytest.fixture(scope="module")
def entangled():
    """Layers of variables, each with four causes in the layer before: a wide elimination."""
    rung, rungs = 26, 3
    edges = [
        (f"R{r}-{i:02}", f"R{r + 1}-{(i + k * k) % rung:02}")
        for r in range(rungs - 1)
        for i in range(rung)
        for k in range(4)
    ]
    last = [f"R{rungs - 1}-{i:02}" for i in range(rung)]
    edges += [(a, b) for a, b in pairwise(last)] + [(last[-1], "Y"), ("X", "Y")]
    graph = CausalGraph(edges)
    return Problem(graph, "Y", manipulable="X")


def test_a_circuit_that_is_too_large_is_refused_before_it_is_built(entangled):
    with raises_code("too-large", "max_program"):
        Belief(entangled)


def test_means_that_take_too_long_are_refused_before_a_simulation(entangled):
    with raises_code("too-large", "in each world", "the largest table has"):
        simulate([entangled], ["ucb"], horizon=5, trials=1)


def test_elimination_order_prefers_variables_with_least_fill():
    # A star: the leaves come first.
    star = [frozenset({0, leaf}) for leaf in range(1, 6)]
    result = elimination(star, [0, 1, 2, 3, 4, 5], [2] * 6)
    assert result.order[:4] == (1, 2, 3, 4)
    assert result.multiplications([2] * 6) < 2**6
