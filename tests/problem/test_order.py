"""Order of variables: stated, or such that names decide little."""

import pickle
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.errors import raises_code
from support.strategies import cases

from dowise import CausalGraph, Problem, load_problem
from dowise.model.model import model_of
from dowise.problem.order import ranks_of
from dowise.problem.problem_file import parse_problem, problem_text

CHAIN = "C -> X -> Z -> Y; W -> Y"


def test_settable_variables_come_first_and_names_last():
    assert Problem("A -> Y; B -> Y", "Y", manipulable="B", soft=0.1).order == ("B", "A", "Y")
    assert Problem("A -> Y; B -> Y", "Y", manipulable="A", soft=0.1).order == ("A", "B", "Y")
    problem = Problem("A -> B; A -> Y; B -> Y; C -> Y; Y -> D", "Y", "C", "A", soft=0.1)
    assert problem.order == ("C", "A", "B", "Y", "D")  # B with its ancestors, then the reward


@given(cases(max_size=6, marked=True), st.integers(0, 2**32 - 1), st.booleans())
def test_the_order_does_not_depend_on_names_if_keys_differ(case, seed, is_soft):
    graph, reward, context, fixed = case
    soft = 0.1 if is_soft else None
    problem = Problem(graph, reward, context, fixed, soft=soft)
    assume(problem.edge_priors)
    ranks = ranks_of(graph, reward, problem.settable)
    assume(len({*ranks}) == len(ranks))
    others = np.random.default_rng(seed).permutation([f"W{i}" for i in range(len(graph))])
    names = dict(zip(graph.variables, map(str, others), strict=True))
    mapped = CausalGraph(
        [(names[a], names[b]) for a, b in graph.directed_edges],
        [(names[a], names[b]) for a, b in graph.bidirected_edges],
        variables=[*names.values()],
    )
    marks = {rename(edge, names): mark for edge, mark in graph.marks.items()}
    mapped = CausalGraph.from_adjacency(mapped.variables, mapped.adjacency, marks)
    renamed = Problem(
        mapped,
        names[reward],
        [names[v] for v in context],
        [names[v] for v in fixed],
        soft=soft,
    )
    assert renamed.order == tuple(names[v] for v in problem.order)


def rename(edge, names):
    left, kind, right = edge.split()
    left, right = names[left], names[right]
    return f"{min(left, right)} <-> {max(left, right)}" if kind == "<->" else f"{left} -> {right}"


@given(cases(max_size=6, marked=True), st.sampled_from([None, 0.1]), st.sampled_from([1, 2]))
def test_factors_are_written_along_the_order(case, soft, rules):
    graph, reward, context, fixed = case
    problem = Problem(graph, reward, context, fixed, soft=soft, edge_rules=rules)
    order = problem.order
    assert sorted(order) == [*graph.variables] and {*order[: len(context)]} == {*context}
    factors = model_of(problem).factors
    assert tuple(graph.variables[v] for v in factors.order.variables) == order
    for u, v in combinations(order, 2):
        assert u not in problem.possible.children(v)
    stated = Problem(graph, reward, context, fixed, soft=soft, edge_rules=rules, order=order)
    assert stated.order == order and stated.possible == problem.possible


def test_a_stated_order_decides_which_arrows_are_soft():
    problem = Problem("A -> Y; B -> Y", "Y", soft=0.1, order=["B", "A", "Y"])
    assert "B -> A" in problem.edge_priors and "A -> B" not in problem.possible.edge_texts
    assert problem.order == problem.stated_order == ("B", "A", "Y")
    assert "A -> B" in Problem("A -> Y; B -> Y", "Y", soft=0.1).edge_priors
    late = Problem("A -> Y; B", "Y", soft=0.1, order=["A", "Y", "B"])
    assert not [edge for edge in late.possible.edge_texts if "B" in edge]


def test_a_stated_order_is_saved_and_loaded(tmp_path):
    problem = Problem(CHAIN, "Y", "C", order=["C", "W", "X", "Z", "Y"])
    assert problem.order == ("C", "W", "X", "Z", "Y")
    assert problem != Problem(CHAIN, "Y", "C")
    problem.save(tmp_path / "problem.toml")
    loaded = load_problem(tmp_path / "problem.toml")
    assert loaded.order == problem.order
    assert parse_problem(problem_text(problem)) == pickle.loads(pickle.dumps(problem)) == problem


@pytest.mark.parametrize(
    ("order", "code", "mentioned"),
    [
        (["C", "W", "X", "Q", "Z", "Y"], "unknown-variable", "Q"),
        (["C", "W", "X", "W", "Z", "Y"], "duplicate-name", "W"),
        (["C", "X", "Z", "Y"], "missing-value", "W"),
        (["W", "C", "X", "Z", "Y"], "contradictory-order", "C is context"),
        (["C", "W", "Z", "X", "Y"], "contradictory-order", "X -> Z"),
        (3, "invalid-type", "order=3"),
    ],
)
def test_invalid_orders_are_refused(order, code, mentioned):
    with raises_code(code, mentioned):
        Problem(CHAIN, "Y", "C", order=order)


def test_hidden_variables_have_no_place_in_the_order():
    with raises_code("hidden-variable", "U"):
        Problem("U -> X; U -> Y; X -> Y", "Y", hidden="U", order=["U", "X", "Y"])
    problem = Problem("X -> U -> Z; Z -> Y", "Y", hidden="U", order=["X", "Z", "Y"])
    assert problem.order == ("X", "Z", "Y")
    with raises_code("contradictory-order", "X -> Z"):
        Problem("X -> U -> Z; Z -> Y", "Y", hidden="U", order=["Z", "X", "Y"])


def test_texts_without_rules_for_edges_keep_the_first_ones():
    """Journals of versions that had only one: the order is by names, as it was."""
    text = problem_text(Problem("Treatment -> Y; Health -> Y", "Y", (), "Health", soft=0.1))
    assert "edge_rules = 2\n" in text
    older = parse_problem(text.replace("edge_rules = 2\n", ""), edge_rules=1)
    assert older.order == ("Health", "Treatment", "Y") and older.edge_rules == 1
    assert parse_problem(problem_text(older)) == older != parse_problem(text)
    settled = Problem("X -> Y", "Y", edge_rules=1)
    assert settled == Problem("X -> Y", "Y") and "edge_rules" not in problem_text(settled)
    with raises_code("invalid-number", "edge_rules"):
        Problem("X -> Y", "Y", edge_rules=3)
