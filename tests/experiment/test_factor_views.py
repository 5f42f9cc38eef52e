"""What a click on a variable or an arm shows: against records counted by hand, and the belief."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.experiments import new
from support.strategies import cases, examples

from dowise import Belief, CausalGraph, Problem, load_problem
from dowise.errors import DowiseError
from dowise.experiment.factor_tables import (
    MAX_ROWS,
    MOST_SETS,
    MOST_VERSIONS,
    formula_view,
    variable_view,
)

PLAIN = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y; Y -> After"),
    "Y",
    context="C",
    domains={"X": ("none", "low", "high")},
)
BOW = Problem(CausalGraph.parse("X -> Y; Z -> X; X <-> Y!"), "Y", arms="all")
DOUBTFUL = Problem(CausalGraph.parse("X -> Y; W ?-> Y; X <-> Y"), "Y", arms="all")


def random_records(problem, number, seed=0):
    """Arms of the problem with an outcome of all variables each, values at random."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        arm = problem.arms[rng.integers(len(problem.arms))]
        seen = {name: str(rng.choice(labels)) for name, labels in problem.domains.items()}
        yield arm, seen | dict(arm)


def taught(problem, number=60, seed=0, **options):
    belief = Belief(problem, **options)
    for arm, seen in random_records(problem, number, seed):
        belief.update(arm, seen)
    return belief


def only_table(belief, name):
    (version,) = variable_view(belief, name).versions
    (table,) = version.tables
    return table


# -- a plain graph ------------------------------------------------------------------------------


def test_counts_are_those_of_the_records_without_the_prior():
    belief, table = taught(PLAIN, prior=2.0), None
    table = only_table(belief, "Y")
    assert (table.text, table.seen, table.done, table.scope) == (
        "P(Y | C, X)", ("C", "X"), (), ("C", "X"),
    )  # fmt: skip
    assert [row.given for row in table.rows] == [
        {"C": c, "X": x} for c in "01" for x in ("none", "low", "high")
    ]
    outcomes = [seen for _, seen in random_records(PLAIN, 60)]
    for row in table.rows:
        own = [seen for seen in outcomes if row.given.items() <= seen.items()]
        assert row.records == len(own)
        for cell in row.cells:
            times = sum(seen["Y"] == cell.label for seen in own)
            assert (cell.count, cell.prior) == (times, 2.0)
            a, b = times + 2.0, len(own) - times + 2.0
            assert cell.mean == pytest.approx(a / (a + b))
            ends = stats.beta.ppf([0.05, 0.95], a, b)
            assert (cell.low, cell.high) == pytest.approx(ends, abs=1e-5)
    assert table.records == 60 and table.rows_left_out == table.records_left_out == 0


def test_a_record_does_not_count_for_what_it_set():
    belief = Belief(PLAIN)
    belief.update("do(X=low)", {"C": 0, "Y": 1})
    assert only_table(belief, "X").records == 0
    assert only_table(belief, "Y").records == only_table(belief, "C").records == 1


def test_a_variable_without_causes_has_one_row():
    table = only_table(taught(PLAIN), "C")
    assert table.text == "P(C)" and [row.given for row in table.rows] == [{}]


def test_roles_domains_and_what_to_know():
    belief = taught(PLAIN)
    view = variable_view(belief, "X")
    assert (view.name, view.role, view.domain) == ("X", "manipulable", ("none", "low", "high"))
    assert view.level == 0.9 and view.notes == ()
    assert variable_view(belief, "C").role == "context"
    assert "no arm's reward depends on how often" in variable_view(belief, "C").notes[0]
    assert variable_view(belief, "After").notes == ("No arm's reward depends on it.",)


def test_what_was_seen_and_does_not_count_is_said():
    belief = Belief(PLAIN)
    belief.update("do()", {"C": 0, "Y": 1})
    assert variable_view(belief, "Y").notes == (
        "1 record more does not count here: X was not seen.",
    )


def test_an_unknown_variable_is_an_error_with_a_suggestion():
    with pytest.raises(DowiseError, match=r"unknown variable 'Afte' \(did you mean 'After'\?\)"):
        variable_view(Belief(PLAIN), "Afte")


def test_names_that_need_quotes_have_them():
    graph = CausalGraph([("body mass", "<b>")])
    assert only_table(Belief(Problem(graph, "<b>")), "<b>").text == 'P("<b>" | "body mass")'


# -- large tables -------------------------------------------------------------------------------


def test_of_a_large_table_the_rows_with_most_records_are_shown_first():
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


def test_a_variable_with_many_values_gets_fewer_rows():
    domains = {"Y": [str(i) for i in range(200)], "X": [str(i) for i in range(9)]}
    table = only_table(Belief(Problem(CausalGraph.parse("X -> Y"), "Y", domains=domains)), "Y")
    assert len(table.rows) == 2 and table.rows_left_out == 7 and len(table.rows[0].cells) == 200


# -- hidden causes ------------------------------------------------------------------------------


def test_a_hidden_cause_gives_a_factor_for_seeing_and_one_for_setting():
    (version,) = variable_view(taught(BOW), "Y").versions
    seen, done = version.tables
    assert (seen.text, seen.under) == ("P(Y | X, Z)", ("do()", "do(Z)"))
    assert (done.text, done.seen, done.done) == ("P(Y | do(X))", (), ("X",))
    assert done.under == ("do(X)", "do(X, Z)")
    assert version.text == "P(Y | X, Z) and P(Y | do(X))"
    arms = [arm for arm, _ in random_records(BOW, 60)]
    assert done.records == sum("X" in arm for arm in arms)
    assert seen.records == sum("X" not in arm for arm in arms)
    # Of X there is one factor, which holds whatever else is set.
    (table,) = variable_view(taught(BOW), "X").versions[0].tables
    assert (table.text, table.under) == ("P(X | Z)", ())


def test_what_is_written_agrees_with_the_formulas():
    """A term of an arm's formula is a factor, under the names that the table has."""
    text = formula_view(BOW, "do(Z=1)").text
    assert text == "P(Y=1 | do(Z=1)) = Σ_{x} P(Y=1 | X=x, Z=1) P(X=x | Z=1)"
    assert formula_view(BOW, "do(X=1)").text.endswith("a factor of its own: seeing alone does not "
                                                      "tell it")  # fmt: skip


def test_many_sets_are_not_all_named():
    graph = CausalGraph.parse("X -> Y; X <-> Y!; A -> Y; B -> Y; D -> Y; E -> Y")
    belief = Belief(Problem(graph, "Y", arms="all"))
    seen, done = variable_view(belief, "Y").versions[0].tables
    assert len(seen.under) == len(done.under) == MOST_SETS
    assert seen.under_left_out == done.under_left_out == 2**4 - MOST_SETS


# -- doubtful edges -----------------------------------------------------------------------------


def test_doubtful_edges_give_versions_with_their_chances():
    belief = taught(DOUBTFUL, 200)
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
    tied = sum(chance for text, chance in chances.items() if "and" in text)
    assert tied == pytest.approx(belief.edges()["X <-> Y"])
    # Every version counts the same records.
    assert {sum(t.records for t in version.tables) for version in view.versions} == {200}


def test_versions_that_are_unlikely_are_left_out_and_that_is_said():
    belief = Belief(DOUBTFUL)
    rng = np.random.default_rng(1)
    for _ in range(400):  # Y follows W, whatever else
        w, x = rng.integers(2, size=2).tolist()
        belief.update(f"do(X={x})", {"W": w, "Y": w})
    view = variable_view(belief, "Y")
    assert all("W" in version.text for version in view.versions)
    assert view.versions_left_out == 4 - len(view.versions) == 2
    assert 0 <= view.probability_left_out < 0.01


def test_many_versions_are_not_all_shown():
    graph = CausalGraph.parse("; ".join(f"{name} ?-> Y" for name in "ABDE"))
    view = variable_view(Belief(Problem(graph, "Y")), "Y")
    assert len(view.versions) == MOST_VERSIONS and view.versions_left_out == 12
    assert view.probability_left_out == pytest.approx(12 / 16)
    assert all(version.tables for version in view.versions)


@examples(30)
@given(cases(min_size=2, max_size=4, marked=True), st.integers(0, 9))
def test_averaged_over_versions_the_means_are_those_of_the_belief(case, seed):
    graph, reward, context, fixed = case
    problem = Problem(graph, reward, context, fixed, arms="all")
    belief = taught(problem, 20, seed)
    means, model = belief.mean_cpts(), belief.posterior.model
    for name in graph.variables:
        view = variable_view(belief, name, max_rows=10**6)
        if view.versions_left_out:
            continue
        # The factor where nothing is set is the first table of every version.
        factor = model.factors.numbers[model.factors.order.key(problem.positions[name], 0)]
        axes = [graph.variables[u] for u in model.factors.families[factor]]
        right = means[model.factors.names[factor]]
        for place in np.ndindex(right.shape):
            at = {u: problem.domains[u][code] for u, code in zip(axes, place, strict=True)}
            found = 0.0
            for version in view.versions:
                table = version.tables[0]
                (row,) = [r for r in table.rows if r.given.items() <= at.items()]
                (cell,) = [c for c in row.cells if c.label == at[name]]
                found += version.probability * cell.mean
            assert found == pytest.approx(right[place], abs=1e-9)


# -- where there is nothing ---------------------------------------------------------------------


def test_a_graph_that_is_too_large_is_said_to_be():
    names = [f"V{i}" for i in range(30)]
    graph = CausalGraph([(name, "Y") for name in names])
    large = Problem(graph, "Y", non_manipulable=names[1:])
    experiment = new(large, policy="ucb")
    view = variable_view(experiment.belief, "Y")
    assert view.versions == () and view.role == "reward"
    assert view.notes[0].startswith("The graph is too large for a posterior of its factors: ")


# -- of an experiment, as JSON ------------------------------------------------------------------


def test_it_reads_what_an_experiment_knows():
    experiment = new(PLAIN)
    experiment.tell(experiment.ask({"C": 1}, allowed=["do(X=low)"]).id, {"Y": 1})
    table = only_table(experiment.belief, "Y")
    (row,) = [row for row in table.rows if row.records]
    assert row.given == {"C": "1", "X": "low"} and [c.count for c in row.cells] == [0, 1]


def test_as_json():
    page = variable_view(taught(DOUBTFUL), "Y").as_dict()
    assert json.loads(json.dumps(page)) == page
    first = page["versions"][0]["tables"][0]
    assert {*first["rows"][0]["cells"][0]} == {"label", "count", "prior", "mean", "low", "high"}
    formula = formula_view(PLAIN, "do(X=low)").as_dict()
    assert formula["arm"] == "do(X=low)" and formula["has_formula"] is True


# -- arms ---------------------------------------------------------------------------------------


def test_formulas_are_those_of_the_command():
    from dowise.problem.formulas import formulas

    for problem in (PLAIN, BOW, load_problem("task3")):
        for arm, formula in zip(problem.arms, formulas(problem), strict=True):
            view = formula_view(problem, arm)
            assert (view.text, view.latex) == (str(formula), formula.latex())
            assert view.has_formula is not formula.is_itself


def test_what_to_know_about_a_formula():
    assert formula_view(PLAIN, "do(X=low)").notes == ()
    assert formula_view(DOUBTFUL, "do(X=1)").notes == (
        "It is that of the graph with all doubtful edges.",
    )
    dear = Problem(CausalGraph.parse("X -> Y"), "Y", costs={"X": 0.25})
    assert formula_view(dear, "do(X=1)").notes == (
        "The arm costs 0.25: its net reward is so much less.",
    )
    assert formula_view(dear, "do()").notes == ()


def test_what_is_no_arm_has_no_formula():
    with pytest.raises(DowiseError, match="is not one of the"):
        formula_view(Problem(CausalGraph.parse("Z -> X -> Y"), "Y"), "do(Z=1)")
