"""Factors of variables, against counts by hand and the belief; formulas of arms."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.errors import raises_code
from support.experiments import new_experiment
from support.strategies import cases, examples

from dowise import Belief, CausalGraph, Problem, load_problem
from dowise.experiment.factor_tables import (
    MAX_REGIMES,
    MAX_ROWS,
    MAX_VERSIONS,
    formula_view,
    variable_view,
)
from dowise.problem.formulas import formulas

PLAIN = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y; Y -> After"),
    "Y",
    context="C",
    domains={"X": ("none", "low", "high")},
)
BOW = Problem(CausalGraph.parse("X -> Y; Z -> X; X <-> Y!"), "Y", arms="all")
DOUBTFUL = Problem(CausalGraph.parse("X -> Y; W ?-> Y; X <-> Y"), "Y", arms="all")


def random_records(problem, number, seed=0):
    """Yield arms of the problem with random outcomes of all variables."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        arm = problem.arms[rng.integers(len(problem.arms))]
        outcome = {name: str(rng.choice(labels)) for name, labels in problem.domains.items()}
        yield arm, outcome | dict(arm)


def trained(problem, number=60, seed=0, **options):
    belief = Belief(problem, **options)
    for arm, outcome in random_records(problem, number, seed):
        belief.update(arm, outcome)
    return belief


def only_table(belief, name):
    (version,) = variable_view(belief, name).versions
    (table,) = version.tables
    return table


# -- a plain graph ------------------------------------------------------------------------------


def test_counts_are_those_of_the_records_and_means_include_the_prior():
    table = only_table(trained(PLAIN, prior=2.0), "Y")
    assert (table.text, table.observed, table.intervened) == ("P(Y | C, X)", ("C", "X"), ())
    assert table.scope == ("C", "X")
    assert [row.given for row in table.rows] == [
        {"C": c, "X": x} for c in "01" for x in ("none", "low", "high")
    ]
    outcomes = [outcome for _, outcome in random_records(PLAIN, 60)]
    for row in table.rows:
        matching = [outcome for outcome in outcomes if row.given.items() <= outcome.items()]
        assert row.records == len(matching)
        for cell in row.cells:
            times = sum(outcome["Y"] == cell.label for outcome in matching)
            assert (cell.count, cell.prior) == (times, 2.0)
            a, b = times + 2.0, len(matching) - times + 2.0
            assert cell.mean == pytest.approx(a / (a + b))
            ends = stats.beta.ppf([0.05, 0.95], a, b)
            assert (cell.low, cell.high) == pytest.approx(ends, abs=1e-5)
    assert table.records == 60 and table.rows_left_out == table.records_left_out == 0


def test_records_do_not_count_for_what_they_set():
    belief = Belief(PLAIN)
    belief.update("do(X=low)", {"C": 0, "Y": 1})
    assert only_table(belief, "X").records == 0
    assert only_table(belief, "Y").records == only_table(belief, "C").records == 1


def test_variable_without_causes_has_one_row():
    table = only_table(trained(PLAIN), "C")
    assert table.text == "P(C)" and [row.given for row in table.rows] == [{}]


def test_roles_domains_and_notes():
    belief = Belief(PLAIN)
    view = variable_view(belief, "X")
    assert (view.name, view.role, view.domain) == ("X", "manipulable", ("none", "low", "high"))
    assert view.level == 0.9 and view.notes == ()
    assert variable_view(belief, "C").role == "context"
    assert "no arm's reward depends on how often" in variable_view(belief, "C").notes[0]
    assert variable_view(belief, "After").notes == ("No arm's reward depends on it.",)
    belief.update("do()", {"C": 0, "Y": 1})
    assert variable_view(belief, "Y").notes == (
        "1 further record does not count here: X was not seen.",
    )


def test_an_unknown_variable_is_refused():
    with raises_code("unknown-variable", "'Afte'", "'After'"):
        variable_view(Belief(PLAIN), "Afte")


def test_names_are_quoted_if_needed():
    graph = CausalGraph([("body mass", "<b>")])
    assert only_table(Belief(Problem(graph, "<b>")), "<b>").text == 'P("<b>" | "body mass")'


# -- large tables -------------------------------------------------------------------------------


def test_large_table_shows_the_rows_with_most_records():
    wide = Problem(CausalGraph([(f"V{i}", "Y") for i in range(8)]), "Y", arms=["do()"])
    belief = Belief(wide)
    for times, labels in ((3, "10000000"), (5, "00000001"), (1, "11111111")):
        for _ in range(times):
            belief.update("do()", {f"V{i}": label for i, label in enumerate(labels)} | {"Y": 1})
    (version,) = variable_view(belief, "Y", max_rows=2).versions
    (table,) = version.tables
    assert [row.records for row in table.rows] == [5, 3]
    assert table.rows[0].given == {f"V{i}": label for i, label in enumerate("00000001")}
    assert (table.records, table.rows_left_out, table.records_left_out) == (9, 254, 1)
    assert len(variable_view(belief, "Y").versions[0].tables[0].rows) == MAX_ROWS


def test_variable_with_many_values_has_fewer_rows():
    domains = {"Y": [str(i) for i in range(200)], "X": [str(i) for i in range(9)]}
    table = only_table(Belief(Problem(CausalGraph.parse("X -> Y"), "Y", domains=domains)), "Y")
    assert len(table.rows) == 2 and table.rows_left_out == 7 and len(table.rows[0].cells) == 200


# -- hidden causes ------------------------------------------------------------------------------


def test_hidden_cause_gives_a_factor_for_observing_and_one_for_setting():
    (version,) = variable_view(trained(BOW), "Y").versions
    observed, intervened = version.tables
    assert (observed.text, observed.under) == ("P(Y | X, Z)", ("do()", "do(Z)"))
    assert (intervened.text, intervened.under) == ("P(Y | do(X))", ("do(X)", "do(X, Z)"))
    assert (intervened.observed, intervened.intervened) == ((), ("X",))
    assert version.text == "P(Y | X, Z) and P(Y | do(X))"
    arms = [arm for arm, _ in random_records(BOW, 60)]
    assert intervened.records == sum("X" in arm for arm in arms)
    assert observed.records == sum("X" not in arm for arm in arms)
    # X has one factor, under all interventions.
    (table,) = variable_view(trained(BOW), "X").versions[0].tables
    assert (table.text, table.under) == ("P(X | Z)", ())


def test_factors_are_named_as_in_the_formulas():
    assert formula_view(BOW, "do(Z=1)").text == (
        "P(Y=1 | do(Z=1)) = Σ_{x} P(Y=1 | X=x, Z=1) P(X=x | Z=1)"
    )
    assert not formula_view(BOW, "do(X=1)").has_formula


def test_only_some_interventions_are_named():
    graph = CausalGraph.parse("X -> Y; X <-> Y!; A -> Y; B -> Y; D -> Y; E -> Y")
    tables = variable_view(Belief(Problem(graph, "Y", arms="all")), "Y").versions[0].tables
    assert [len(table.under) for table in tables] == [MAX_REGIMES] * 2
    assert [table.under_left_out for table in tables] == [2**4 - MAX_REGIMES] * 2


# -- doubtful edges -----------------------------------------------------------------------------


def test_doubtful_edges_give_versions_with_their_probabilities():
    belief = trained(DOUBTFUL, 200)
    view = variable_view(belief, "Y")
    chances = {version.text: version.probability for version in view.versions}
    assert {*chances} == {
        "P(Y | X)",
        "P(Y | W, X)",
        "P(Y | X) and P(Y | do(X))",
        "P(Y | W, X) and P(Y | do(W, X))",
    }
    assert list(chances.values()) == sorted(chances.values(), reverse=True)
    assert sum(chances.values()) + view.probability_left_out == pytest.approx(1)
    with_w = sum(chance for text, chance in chances.items() if "W" in text)
    assert with_w == pytest.approx(belief.edges()["W -> Y"])
    confounded = sum(chance for text, chance in chances.items() if "and" in text)
    assert confounded == pytest.approx(belief.edges()["X <-> Y"])
    # Every version counts the same records.
    assert {sum(t.records for t in version.tables) for version in view.versions} == {200}


def test_unlikely_versions_are_left_out():
    belief = Belief(DOUBTFUL)
    rng = np.random.default_rng(1)
    for _ in range(400):  # Y follows W
        w, x = rng.integers(2, size=2).tolist()
        belief.update(f"do(X={x})", {"W": w, "Y": w})
    view = variable_view(belief, "Y")
    assert all("W" in version.text for version in view.versions)
    assert view.versions_left_out == 4 - len(view.versions) == 2
    assert 0 <= view.probability_left_out < 0.01


def test_only_the_likeliest_versions_are_shown():
    graph = CausalGraph.parse("; ".join(f"{name} ?-> Y" for name in "ABDE"))
    view = variable_view(Belief(Problem(graph, "Y")), "Y")
    assert len(view.versions) == MAX_VERSIONS and view.versions_left_out == 12
    assert view.probability_left_out == pytest.approx(12 / 16)
    assert all(version.tables for version in view.versions)


@examples(30)
@given(cases(min_size=2, max_size=4, marked=True), st.integers(0, 9))
def test_means_of_the_versions_average_to_those_of_the_belief(case, seed):
    graph, reward, context, fixed = case
    problem = Problem(graph, reward, context, fixed, arms="all")
    belief = trained(problem, 20, seed)
    means, factors = belief.mean_cpts(), belief.posterior.model.factors
    for name in graph.variables:
        view = variable_view(belief, name, max_rows=10**6)
        if view.versions_left_out:
            continue
        # The factor of do() is the first table of every version.
        factor = factors.numbers[factors.order.key(problem.positions[name], 0)]
        axes = [graph.variables[u] for u in factors.families[factor]]
        expected = means[factors.names[factor]]
        for codes in np.ndindex(expected.shape):
            labels = {u: problem.domains[u][code] for u, code in zip(axes, codes, strict=True)}
            mean = 0.0
            for version in view.versions:
                rows = version.tables[0].rows
                (row,) = [row for row in rows if row.given.items() <= labels.items()]
                (cell,) = [cell for cell in row.cells if cell.label == labels[name]]
                mean += version.probability * cell.mean
            assert mean == pytest.approx(expected[codes], abs=1e-9)


# -- an experiment, JSON, and formulas ------------------------------------------------------------


def test_graph_that_is_too_large_has_no_factors():
    names = [f"V{i}" for i in range(30)]
    large = Problem(CausalGraph([(name, "Y") for name in names]), "Y", non_manipulable=names[1:])
    view = variable_view(new_experiment(large, policy="ucb").belief, "Y")
    assert view.versions == () and view.role == "reward"
    assert view.notes[0].startswith("The graph is too large for a posterior of its factors: ")


def test_tables_of_an_experiment_count_its_outcomes():
    experiment = new_experiment(PLAIN)
    experiment.tell(experiment.ask({"C": 1}, allowed=["do(X=low)"]).id, {"Y": 1})
    (row,) = [row for row in only_table(experiment.belief, "Y").rows if row.records]
    assert row.given == {"C": "1", "X": "low"} and [cell.count for cell in row.cells] == [0, 1]


def test_views_are_json_documents():
    data = variable_view(trained(DOUBTFUL), "Y").as_dict()
    assert json.loads(json.dumps(data)) == data
    table = data["versions"][0]["tables"][0]
    assert {"text", "seen", "done", "under", "records", "rows"} <= table.keys()
    assert {*table["rows"][0]["cells"][0]} == {"label", "count", "prior", "mean", "low", "high"}
    assert formula_view(PLAIN, "do(X=low)").as_dict()["arm"] == "do(X=low)"


def test_formulas_are_those_of_the_problem():
    for problem in (PLAIN, BOW, load_problem("task3")):
        for arm, formula in zip(problem.arms, formulas(problem), strict=True):
            view = formula_view(problem, arm)
            assert (view.text, view.latex) == (str(formula), formula.latex())
            assert view.has_formula is not formula.is_trivial


def test_formulas_note_doubtful_edges_and_costs():
    assert formula_view(PLAIN, "do(X=low)").notes == ()
    assert formula_view(DOUBTFUL, "do(X=1)").notes == (
        "The formula is for the graph with all doubtful edges.",
    )
    costly = Problem(CausalGraph.parse("X -> Y"), "Y", costs={"X": 0.25})
    assert formula_view(costly, "do(X=1)").notes == (
        "The arm costs 0.25, so its net reward is lower by that amount.",
    )
    assert formula_view(costly, "do()").notes == ()


def test_unknown_arm_has_no_formula():
    with raises_code("unknown-arm"):
        formula_view(Problem(CausalGraph.parse("Z -> X -> Y"), "Y"), "do(Z=1)")
