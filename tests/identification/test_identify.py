"""Estimators from other experiments: known formulas, and exact values in random worlds."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.confounded_worlds import Confounded
from support.strategies import cases, examples

from dowise import CausalGraph, Problem, load_problem
from dowise.identification import estimators, identify
from dowise.identification.circuit import compile_estimators
from dowise.identification.formula import Product, Quotient, Sum, Term, as_latex, as_text
from dowise.identification.pooling import fill_marginals
from dowise.model.kernels import run_circuit

FRONT_DOOR = Problem(CausalGraph.parse("X -> Z -> Y; X <-> Y"), "Y", non_manipulable="Z")
TALK = Problem(
    CausalGraph.parse("A -> C; B -> C; A -> Y; C -> Y; A <-> B; B <-> Y"), "Y", non_manipulable="A"
)
LARGER = Problem(
    CausalGraph.parse("B -> C -> D -> Y; A -> E -> Y; C -> E; A <-> Y; B <-> Y"),
    "Y",
    non_manipulable=["A", "C"],
)


def indirect_formulas(problem):
    return {
        "".join(sorted(names)): [str(e) for e in of_set if not e.is_direct]
        for names, of_set in estimators(problem).items()
    }


def test_the_front_door_formula_is_found():
    assert indirect_formulas(FRONT_DOOR) == {
        "": [],
        "X": ["Σ_{z} P(Z=z | X=x) Σ_{x'} P(X=x') P(Y=y | X=x', Z=z)"],
    }


def test_the_four_formulas_of_the_talk_are_found():
    """As in the authors' talk, except for the order of factors."""
    assert indirect_formulas(TALK) == {
        "": ["Σ_{a,b,c} P_{B=b}(C=c | A=a) P_{C=c}(A=a, B=b, Y=y)"],
        "B": ["Σ_{a,c} P(C=c | A=a, B=b) Σ_{b'} P(A=a, B=b') P(Y=y | A=a, B=b', C=c)"],
        "C": [
            "Σ_{a,b} P(A=a, B=b) P(Y=y | A=a, B=b, C=c)",
            "Σ_{a} P_{B=b}(A=a) P_{B=b}(Y=y | A=a, C=c)  (any b)",
        ],
    }


def test_the_number_of_formulas_of_the_larger_graph():
    counts = {names: len(texts) for names, texts in indirect_formulas(LARGER).items()}
    assert counts == {"": 6, "B": 5, "D": 7, "E": 5, "BD": 4, "DE": 5}


def test_without_hidden_causes_every_factor_is_a_mechanism():
    """Each term is P(v | pa), a product of such terms, or the direct estimator."""
    problem = load_problem("task3")
    graph = problem.graph.condition(problem.context)
    for direct, *indirect in estimators(problem).values():
        assert direct.is_direct
        for estimator in indirect:
            for term in estimator.formula.terms():
                for name in term.variables:
                    parents = {*graph.parents(name)} - term.experiment
                    assert parents <= term.given | term.variables


def test_effects_that_are_not_identifiable_have_no_formula():
    bow = CausalGraph.parse("X -> Y; X <-> Y")
    assert identify(bow, "Y", {"X"}, [frozenset()]) is None
    instrument = CausalGraph.parse("W -> X -> Y; X <-> Y")
    assert identify(instrument, "Y", {"X"}, [frozenset(), frozenset("W")]) is None
    assert identify(instrument, "Y", {"W"}, [frozenset()]) is not None


def test_formulas_are_written_in_latex():
    (only,) = (e for e in estimators(FRONT_DOOR)[frozenset("X")] if not e.is_direct)
    assert only.latex() == (r"\sum_{z} P(Z=z \mid X=x) \sum_{x'} P(X=x') P(Y=y \mid X=x', Z=z)")
    term = Term(frozenset(), frozenset("A"))
    total = Sum(frozenset("A"), term)
    assert as_latex(Quotient(term, total)) == r"\frac{P(A=a)}{\sum_{a'} P(A=a')}"
    assert as_text(Product((total, term))) == "[Σ_{a'} P(A=a')] P(A=a)"


def test_names_that_differ_only_in_case_get_numbered_symbols():
    problem = Problem(
        CausalGraph.parse("X -> z -> Y; X <-> Y; Z -> Y"), "Y", non_manipulable=["z", "Z"]
    )
    (only,) = (e for e in estimators(problem)[frozenset("X")] if not e.is_direct)
    assert str(only) == ("Σ_{z1,z2} P(Z=z1) P(z=z2 | X=x) Σ_{x'} P(X=x') P(Y=y | X=x', Z=z1, z=z2)")


def slow_value(formula, joints, names, values):
    """Evaluate a formula at the joint distributions of all experiments, term by term."""
    if isinstance(formula, Term):
        table = joints[tuple(sorted((name, values[name]) for name in formula.experiment))]

        def probability(event):
            return table[tuple(values[n] if n in event else slice(None) for n in names)].sum()

        return probability(formula.variables | formula.given) / probability(formula.given)
    if isinstance(formula, Product):
        return np.prod([slow_value(factor, joints, names, values) for factor in formula.factors])
    if isinstance(formula, Quotient):
        top, bottom = (
            slow_value(part, joints, names, values) for part in (formula.top, formula.bottom)
        )
        return top / bottom
    bound = sorted(formula.bound)
    return sum(
        slow_value(formula.body, joints, names, values | dict(zip(bound, codes, strict=True)))
        for codes in np.ndindex(*([2] * len(bound)))
    )


# Its formula has a quotient, from Tian's Identify.
NAPKIN = CausalGraph.parse("W -> Z -> X -> Y; W <-> X; W <-> Y")


def test_formula_with_a_quotient():
    formula = identify(NAPKIN, "Y", {"X"}, [frozenset()])
    assert as_text(formula) == (
        "[Σ_{w} P(W=w) P(X=x, Y=y | W=w, Z=z)] / [Σ_{w} P(W=w) P(X=x | W=w, Z=z)]"
    )


@pytest.mark.parametrize("seed", range(20))
def test_formula_with_a_quotient_is_exact(seed):
    problem = Problem(NAPKIN, "Y", arms=["do()", "do(X=0)", "do(X=1)"])
    check_every_estimator(problem, seed)


@pytest.mark.slow
@given(cases(max_size=5, bidirected=True), st.integers(0, 2**32 - 1))
@examples(250)
def test_every_estimator_is_exact(case, seed):
    graph, reward, context, hidden = case
    check_every_estimator(Problem(graph, reward, context, hidden), seed)


def check_every_estimator(problem, seed):
    """Assert that formulas and compiled circuit give the true mean of every arm in a context, from
    the exact joint distributions of all experiments."""
    reward, context, rng = problem.reward, problem.context, np.random.default_rng(seed)
    world = Confounded(problem, rng)
    names = problem.graph.variables
    observed = {name: int(rng.integers(2)) for name in context}
    in_context = tuple(observed.get(name, slice(None)) for name in names)

    def under_context(arm):
        joint = np.zeros([2] * len(names))
        table = world.joint({name: int(label) for name, label in arm.items()})
        joint[in_context] = table[in_context]
        return joint / joint.sum()

    joints = {
        tuple(sorted((name, int(label)) for name, label in arm.items())): under_context(arm)
        for arm in problem.arms
    }
    axis = names.index(reward)
    other_axes = tuple({*range(len(names))} - {axis})
    truth = {key: table.sum(axis=other_axes)[1] for key, table in joints.items()}

    compiled = compile_estimators(problem)
    circuit = compiled.circuit
    values = np.empty((circuit.slots, 2))
    values[: len(circuit.constants)] = circuit.constants[:, None]
    records = np.array(list(np.ndindex(*([2] * len(names)))))[:, compiled.variables]
    for arm, tables in zip(problem.arms, compiled.marginals, strict=True):
        weights = joints[tuple(sorted((n, int(x)) for n, x in arm.items()))].reshape(-1, 1)
        fill_marginals(values, tables, records, weights.copy())
    run_circuit(values, 2, circuit.operations, np.array([0.0, 1.0]))
    for i, arm in enumerate(problem.arms):
        key = tuple(sorted((name, int(label)) for name, label in arm.items()))
        estimates = values[circuit.results[compiled.offsets[i] : compiled.offsets[i + 1]]]
        assert len(estimates) >= 1
        np.testing.assert_array_equal(estimates[:, 0], estimates[:, 1])  # all defined
        np.testing.assert_allclose(estimates[:, 0], truth[key], rtol=0, atol=1e-9)
        for estimator in estimators(problem)[arm.variables]:
            free = {name: int(rng.integers(2)) for name in estimator.any_value}
            codes = {**observed, **dict(key), **free, reward: 1}
            value = slow_value(estimator.formula, joints, names, codes)
            assert value == pytest.approx(truth[key], abs=1e-9)


def test_a_formula_depends_only_on_the_experiments_that_it_uses():
    """Therefore small sets of experiments are tried first."""
    sets = LARGER.intervention_sets
    for names in sets:
        others = [other for other in sets if other != names]
        for size in range(1, len(others) + 1):
            for group in combinations(others, size):
                formula = identify(LARGER.graph, "Y", names, group)
                if formula is not None:
                    used = {term.experiment for term in formula.terms()}
                    assert used <= set(group)
                    again = identify(LARGER.graph, "Y", names, [z for z in group if z in used])
                    assert again == formula
