"""Formulas as text and LaTeX, and their values against brute force."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.mathtext import MathTextParser
from support.brute_force import mean_reward, random_cpts
from support.confounded_worlds import Confounded
from support.strategies import cases, examples

from dowise import CausalGraph, Problem, load_problem
from dowise.identification.identify import estimators
from dowise.problem.formulas import formulas, latex_label, latex_name


def test_formulas_of_section_3():
    task1 = formulas(load_problem("task1"))
    assert [str(formula) for formula in task1] == [
        "P(Y=1 | do()) = Σ_{x,z} P(Y=1 | X=x, Z=z) P(X=x | Z=z) P(Z=z)",
        "P(Y=1 | do(X=0)) = Σ_{z} P(Y=1 | X=0, Z=z) P(Z=z)",
        "P(Y=1 | do(X=1)) = Σ_{z} P(Y=1 | X=1, Z=z) P(Z=z)",
    ]
    assert task1[1].latex() == (
        r"P(Y=1 \mid \mathrm{do}(X=0)) = \sum_{z} P(Y=1 \mid X=0, Z=z) P(Z=z)"
    )


def test_context_is_fixed_and_irrelevant_variables_are_left_out():
    texts = [str(formula) for formula in formulas(load_problem("task2"))]
    assert texts[0] == (
        "P(Y=1 | do(X1=0), C=c) = Σ_{x2,z} P(Y=1 | X2=x2, Z=z) P(X2=x2 | C=c, X1=0, Z=z) P(Z=z)"
    )
    assert texts[2] == "P(Y=1 | do(X2=0), C=c) = Σ_{z} P(Y=1 | X2=0, Z=z) P(Z=z)"


def test_latex_of_longer_names_and_indices():
    latex = formulas(load_problem("healthcare"))[0].latex()
    assert latex.startswith(r"P(\mathrm{Recovery}=1 \mid \mathrm{do}(\mathrm{Diet}=0")
    graph = CausalGraph.parse("X_1 -> blood_sugar")
    latex = formulas(Problem(graph, "blood_sugar"))[0].latex()
    reward = r"P(\mathrm{blood\_sugar}=1 \mid "
    assert latex == reward + r"\mathrm{do}(X_{1}=0)) = " + reward + "X_{1}=0)"


def test_a_reward_of_several_values_is_weighted_by_its_worth():
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", domains={"Y": ["a", "b", "c"]})
    assert str(formulas(problem)[0]) == "E[worth(Y) | do(X=0)] = Σ_{y} worth(y) P(Y=y | X=0)"


def test_symbols_of_values_differ_from_all_names():
    graph = CausalGraph.parse("Age -> Alcohol; Alcohol -> Y; alcohol -> Y; alcohol -> Alcohol")
    problem = Problem(graph, "Y", non_manipulable=["alcohol", "Age"])
    assert str(formulas(problem)[1]) == (
        "P(Y=1 | do(Alcohol=0)) = Σ_{a3} P(Y=1 | Alcohol=0, alcohol=a3) P(alcohol=a3)"
    )
    problem = Problem(CausalGraph.parse("x -> Y; X -> Y; x -> X"), "Y", non_manipulable="x")
    assert str(formulas(problem)[0]) == (
        "P(Y=1 | do()) = Σ_{x1,x2} P(Y=1 | X=x1, x=x2) P(X=x1 | x=x2) P(x=x2)"
    )
    problem = Problem(CausalGraph.parse("X1 -> Y; X_1 -> Y; X_1 -> X1"), "Y", arms=["do()"])
    assert formulas(problem)[0].latex() == (
        r"P(Y=1 \mid \mathrm{do}()) = \sum_{x_{1},x_{2}} "
        r"P(Y=1 \mid \mathrm{X1}=x_{1}, \mathrm{X\_1}=x_{2}) "
        r"P(\mathrm{X1}=x_{1} \mid \mathrm{X\_1}=x_{2}) P(\mathrm{X\_1}=x_{2})"
    )
    problem = Problem(CausalGraph.parse("z_1 -> Y"), "Y", arms=["do()"])
    assert formulas(problem)[0].latex() == (  # not z_{1}=z_{1}
        r"P(Y=1 \mid \mathrm{do}()) = \sum_{z_{2}} P(Y=1 \mid z_{1}=z_{2}) P(z_{1}=z_{2})"
    )


def test_symbols_of_values_differ_from_labels():
    graph = CausalGraph.parse("A -> B -> Y; A -> Y")
    domains = {"A": ["a", "b"], "B": ["a", "b1"]}
    problem = Problem(graph, "Y", non_manipulable="A", domains=domains)
    assert str(formulas(problem)[1]) == ("P(Y=1 | do(B=a)) = Σ_{a1} P(Y=1 | A=a1, B=a) P(A=a1)")
    assert problem.arms[2]["B"] == "b1" and formulas(problem)[0].notation.symbols["B"] == "b2"


def formulas_by_arm(graph, **options):
    problem = Problem(CausalGraph.parse(graph), "Y", **options)
    return {str(formula.arm): formula for formula in formulas(problem)}


def test_factors_with_hidden_causes():
    by_arm = formulas_by_arm("X -> Z -> Y; X <-> Y", arms="all")
    assert [str(by_arm[arm]) for arm in ("do()", "do(X=0)", "do(Z=0)", "do(X=0, Z=1)")] == [
        "P(Y=1 | do()) = Σ_{x,z} P(Y=1 | X=x, Z=z) P(Z=z | X=x) P(X=x)",
        "P(Y=1 | do(X=0)) = Σ_{z} P(Y=1 | do(Z=z)) P(Z=z | X=0)",
        "P(Y=1 | do(Z=0)) = Σ_{x} P(Y=1 | X=x, Z=0) P(X=x)",
        "P(Y=1 | do(X=0, Z=1)) = P(Y=1 | do(Z=1))",
    ]
    assert by_arm["do(X=0)"].latex().endswith(r"P(Y=1 \mid \mathrm{do}(Z=z)) P(Z=z \mid X=0)")
    assert [by_arm[arm].is_observational for arm in ("do()", "do(X=0)", "do(Z=0)")] == [
        True,
        False,
        True,
    ]
    # Y does not depend on X1 under do(X1=0), and the context is observed.
    task2 = "C -> X1; C -> X2; C -> Y; X1 -> X2; Z -> X2; Z -> Y; X2 -> Y; X1 <-> Y"
    assert str(formulas_by_arm(task2, context="C", non_manipulable="Z")["do(X1=0)"]) == (
        "P(Y=1 | do(X1=0), C=c) = "
        "Σ_{x2,z} P(Y=1 | do(X2=x2, Z=z), C=c) P(X2=x2 | C=c, X1=0, Z=z) P(Z=z)"
    )


def test_a_trivial_formula_is_explained():
    by_arm = formulas_by_arm("C -> Y; X -> Y; X <-> Y", context="C")
    assert str(by_arm["do()"]) == "P(Y=1 | do(), C=c) = Σ_{x} P(Y=1 | C=c, X=x) P(X=x)"
    assert str(by_arm["do(X=1)"]) == (
        "P(Y=1 | do(X=1), C=c) is a factor that observing alone does not determine"
    )
    assert by_arm["do(X=1)"].latex() == (
        r"P(Y=1 \mid \mathrm{do}(X=1), C=c) \quad\text{(a factor)}"
    )
    assert str(formulas_by_arm("X -> Y; X <-> Y", domains={"Y": [0, 1, 2]})["do(X=0)"]) == (
        "E[worth(Y) | do(X=0)] = Σ_{y} worth(y) P(Y=y | do(X=0))"
    )


def test_an_irrelevant_hidden_cause_changes_nothing():
    harmless = formulas_by_arm("X -> Y -> W; Y <-> W")
    assert [str(formula) for formula in harmless.values()] == [
        f"P(Y=1 | do(X={x})) = P(Y=1 | X={x})" for x in (0, 1)
    ]


def evaluate(formula, problem, probability, context):
    """Sum the products, one assignment at a time; `probability(factor, codes)` is a factor."""
    domains = problem.domains
    total = 0.0
    for codes in np.ndindex(*(len(domains[name]) for name in formula.summed)):
        value = dict(zip(formula.summed, codes, strict=True)) | context
        value |= {name: domains[name].index(label) for name, label in formula.arm.items()}
        if formula.good is not None:
            value[formula.reward] = domains[formula.reward].index(formula.good)
        label = domains[formula.reward][value[formula.reward]]
        term = 1.0 if formula.good is not None else problem.reward_values[label]
        for factor in formula.factors:
            term *= probability(factor, value)
        total += term
    return total


@given(cases(max_size=5, bidirected=False), st.integers(0, 2**32 - 1), st.integers(2, 3))
@examples(40)
def test_formulas_equal_brute_force(case, seed, values):
    graph, reward, context, hidden = case
    domains = {reward: [str(i) for i in range(values)]}
    problem = Problem(graph, reward, context, hidden, domains)
    rng = np.random.default_rng(seed)
    cpts = random_cpts(problem, rng)

    def entry(factor, value):
        assert not factor.intervened and factor.observed == graph.parents(factor.variable)
        return cpts[factor.variable][tuple(value[x] for x in (*factor.observed, factor.variable))]

    observed = {name: int(rng.integers(len(problem.domains[name]))) for name in context}
    for formula in formulas(problem):
        truth = mean_reward(problem, cpts, formula.arm, observed)
        assert evaluate(formula, problem, entry, observed) == pytest.approx(truth, abs=1e-12)


def confounded_problem(rng):
    """Draw a problem; graphs drawn edge by edge rarely have relevant hidden causes."""
    names = [f"V{i}" for i in rng.permutation(rng.integers(2, 5))]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    arrows, arcs = ([pair for pair in pairs if rng.random() < p] for p in (0.7, 0.5))
    graph, reward = CausalGraph(arrows, arcs, names), names[-1]
    before = {name for name in names if reward not in graph.ancestors(name) and rng.random() < 0.3}
    context = graph.ancestors(before)
    fixed = {name for name in names[:-1] if rng.random() < 0.2} - context
    domains = {reward: range(rng.integers(2, 4))}
    return Problem(graph, reward, context, fixed, domains, arms="all")


@given(st.integers(0, 2**32 - 1))
@examples(60)
def test_formulas_with_hidden_causes_equal_brute_force(seed):
    """Each factor is a conditional distribution under its do()."""
    rng = np.random.default_rng(seed)
    problem = confounded_problem(rng)
    world, reward = Confounded(problem, rng), problem.reward
    observed = {name: int(rng.integers(2)) for name in problem.context}

    @cache
    def joint(settings):
        return world.joint(dict(settings))

    def chance(values, settings):
        axes = tuple(values.get(name, slice(None)) for name in world.names)
        return joint(tuple(sorted(settings.items())))[axes].sum()

    def conditional(factor, value):
        settings = {name: value[name] for name in factor.intervened}
        conditions = {name: value[name] for name in factor.observed}
        joint_values = conditions | {factor.variable: value[factor.variable]}
        return chance(joint_values, settings) / chance(conditions, settings)

    for formula in formulas(problem):
        arm = {name: problem.domains[name].index(label) for name, label in formula.arm.items()}
        truth = sum(
            worth * chance(observed | {reward: y}, arm)
            for y, worth in enumerate(problem.reward_values.values())
        )
        truth /= chance(observed, arm)
        assert evaluate(formula, problem, conditional, observed) == pytest.approx(truth, abs=1e-12)


# -- LaTeX --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("X", "X"),
        ("x12", "x_{12}"),
        ("Σ_3", r"\Sigma_{3}"),
        ("é", r"\mathrm{\text{é}}"),
        ("X1a", r"\mathrm{X1a}"),
        ("body mass", r"\mathrm{body\ mass}"),
        ("a_b%c&d#e$f{g}", r"\mathrm{a\_b\%c\&d\#e\$f\{g\}}"),
        (
            "a\\b^c~d",
            r"\mathrm{a\text{\textbackslash{}}b\text{\textasciicircum{}}c"
            r"\text{\textasciitilde{}}d}",
        ),
        ("a--b", r"\mathrm{a\text{-{}-{}}b}"),
        ("αβ cells", r"\mathrm{{\alpha}{\beta}\ cells}"),
        ("年齢", r"\mathrm{\text{年齢}}"),
        ("two\nlines\x07", r"\mathrm{two\ lines\ }"),
    ],
)
def test_latex_names_have_indices_and_escapes(name, written):
    assert latex_name(name) == written


def test_latex_labels_are_numbers_or_upright_text():
    assert [latex_label(label) for label in ("0", "-1.5", "low", "1e5", "x")] == [
        "0",
        "-1.5",
        r"\mathrm{low}",
        r"\mathrm{1e5}",
        r"\mathrm{x}",
    ]


@pytest.mark.parametrize("name", ["task3", "healthcare", "asia"])
def test_matplotlib_draws_the_formulas(name):
    parser, problem = MathTextParser("path"), load_problem(name)
    expressions = [formula for group in estimators(problem).values() for formula in group]
    for formula in (*formulas(problem), *expressions):
        width, height, *_ = parser.parse(f"${formula.latex()}$")
        assert width > 0 and height > 0
