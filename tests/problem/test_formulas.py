"""Formulas: as section 3 prints them, and equal to the brute-force truth."""

import numpy as np
import pytest
from brute_force import mean_reward, random_cpts
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import cases

from dowise import CausalGraph, Problem, load_problem
from dowise.problem.formulas import formulas


def test_section_3_prints_these_for_g1():
    task1 = formulas(load_problem("task1"))
    assert [str(formula) for formula in task1] == [
        "P(Y=1 | do()) = Σ_{x,z} P(Y=1 | x, z) P(x | z) P(z)",
        "P(Y=1 | do(X=0)) = Σ_{z} P(Y=1 | X=0, z) P(z)",
        "P(Y=1 | do(X=1)) = Σ_{z} P(Y=1 | X=1, z) P(z)",
    ]
    assert task1[1].latex() == (r"P(Y=1 \mid \mathrm{do}(X=0)) = \sum_{z} P(Y=1 \mid X=0, z) P(z)")


def test_context_is_held_and_what_does_not_matter_is_left_out():
    found = [str(formula) for formula in formulas(load_problem("task2"))]
    assert found[0] == ("P(Y=1 | do(X1=0), c) = Σ_{x2,z} P(Y=1 | x2, z) P(x2 | c, X1=0, z) P(z)")
    assert found[2] == "P(Y=1 | do(X2=0), c) = Σ_{z} P(Y=1 | X2=0, z) P(z)"


def test_latex_of_longer_names_and_indices():
    latex = formulas(load_problem("healthcare"))[0].latex()
    assert latex.startswith(r"P(\mathrm{Recovery}=1 \mid \mathrm{do}(\mathrm{Diet}=0")
    graph = CausalGraph.parse("X_1 -> blood_sugar")
    latex = formulas(Problem(graph, "blood_sugar"))[0].latex()
    reward = r"P(\mathrm{blood\_sugar}=1 \mid "
    assert latex == reward + r"\mathrm{do}(X_{1}=0)) = " + reward + "X_{1}=0)"


def test_a_reward_of_several_values_is_weighted_by_its_worth():
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", domains={"Y": ["a", "b", "c"]})
    assert str(formulas(problem)[0]) == "E[r(Y) | do(X=0)] = Σ_{y} r(y) P(y | X=0)"


def test_names_that_differ_only_in_case_stay_apart():
    problem = Problem(CausalGraph.parse("x -> Y; X -> Y; x -> X"), "Y", non_manipulable="x")
    assert str(formulas(problem)[0]) == "P(Y=1 | do()) = Σ_{X,x} P(Y=1 | X, x) P(X | x) P(x)"
    problem = Problem(CausalGraph.parse("X1 -> Y; X_1 -> Y; X_1 -> X1"), "Y", arms=["do()"])
    assert formulas(problem)[0].latex() == (
        r"P(\mathrm{Y}=1 \mid \mathrm{do}()) = \sum_{\mathrm{X1},\mathrm{X\_1}} "
        r"P(\mathrm{Y}=1 \mid \mathrm{X1}, \mathrm{X\_1}) "
        r"P(\mathrm{X1} \mid \mathrm{X\_1}) P(\mathrm{X\_1})"
    )


def test_a_hidden_common_cause_rules_the_factorisation_out_where_it_matters():
    problem = Problem(CausalGraph.parse("X -> Z -> Y; X <-> Y"), "Y", arms="all")
    told = {str(formula.arm): formula for formula in formulas(problem)}
    assert told["do(X=0)"].obstacle == ("X", "Y")
    assert str(told["do(X=0)"]).endswith(
        "is no truncated factorisation: X <-> Y share a hidden cause"
    )
    assert told["do(X=0)"].latex().endswith(r"\text{(no truncated factorisation)}")
    # What comes when nothing is set needs no formula.
    assert str(told["do()"]) == "P(Y=1 | do()) = P(Y=1)"
    # A child of the reward that shares a hidden cause with it can't disturb anything.
    harmless = Problem(CausalGraph.parse("X -> Y -> W; Y <-> W"), "Y")
    assert [formula.obstacle for formula in formulas(harmless)] == [None, None]


def evaluate(formula, problem, cpts, context):
    """Sum the products, one assignment at a time."""
    graph, domains = problem.graph, problem.domains
    total = 0.0
    for places in np.ndindex(*(len(domains[name]) for name in formula.summed)):
        value = dict(zip(formula.summed, places, strict=True)) | context
        value |= {name: domains[name].index(label) for name, label in formula.arm.items()}
        if formula.good is not None:
            value[formula.reward] = domains[formula.reward].index(formula.good)
        label = domains[formula.reward][value[formula.reward]]
        term = 1.0 if formula.good is not None else problem.reward_values[label]
        for factor in formula.factors:
            assert factor.parents == graph.parents(factor.variable)
            row = tuple(value[name] for name in (*factor.parents, factor.variable))
            term *= cpts[factor.variable][row]
        total += term
    return total


@given(cases(max_size=5, bidirected=False), st.integers(0, 2**32 - 1), st.integers(2, 3))
@settings(deadline=None, max_examples=40)
def test_formulas_equal_brute_force(case, seed, values):
    graph, reward, context, hidden = case
    domains = {reward: [str(i) for i in range(values)]}
    problem = Problem(graph, reward, context, hidden, domains)
    rng = np.random.default_rng(seed)
    cpts = random_cpts(problem, rng)
    seen = {name: int(rng.integers(len(problem.domains[name]))) for name in context}
    for formula in formulas(problem):
        truth = mean_reward(problem, cpts, formula.arm, seen)
        assert evaluate(formula, problem, cpts, seen) == pytest.approx(truth, abs=1e-12)
