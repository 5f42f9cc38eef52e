"""Arrows against the order of soft edges, and what the order can express."""

import numpy as np
import pytest
from hypothesis import given
from support.strategies import cases, examples

from dowise import Belief, Problem
from dowise.graph.edges import EdgeName
from dowise.model.missing_edges import Reversal, alternatives_of


def reversals(problem):
    """Return the texts of the arrows against the order that the evidence judges."""
    return [x.text for x in alternatives_of(problem) if isinstance(x, Reversal)]


@examples(60)
@given(cases(max_size=6, marked=True))
def test_every_arrow_from_a_settable_variable_is_soft_or_judged(case):
    """If data can tell of it: not into the context, not around a cycle, not below the reward."""
    graph, reward, context, fixed = case
    problem = Problem(graph, reward, context, fixed, soft=0.1)
    possible, judged = problem.possible, [edge.text for edge in alternatives_of(problem)]
    assert not {*judged} & {*possible.edge_texts} and len({*judged}) == len(judged)
    needed = possible.ancestors({reward, *context})
    for u in problem.settable:
        for v in sorted({*needed} - {u, *context}):
            arrow = str(EdgeName.from_ends(u, "->", v))
            covered = arrow in possible.edge_texts or arrow in judged
            assert covered == (u not in graph.descendants(v))


def test_only_soft_edges_make_arrows_against_the_order():
    assert not reversals(Problem("A ?-> B; A -> Y; B -> Y; A <-> B", "Y"))
    assert reversals(Problem("A -> Y; B -> Y", "Y", soft=0.1)) == ["B -> A"]
    stated = Problem("A -> Y; B -> Y", "Y", soft=0.1, order=["B", "A", "Y"])
    assert reversals(stated) == ["A -> B"]


@pytest.mark.parametrize("treatment", ["Treatment", "Drug"])
def test_a_forgotten_arrow_from_the_treatment_is_soft_whatever_its_name(treatment):
    """The drawing lacks treatment -> Health. By names, "Health" came before "Treatment"."""
    text = f"Health -> Recovery; {treatment} -> Recovery"
    problem = Problem(text, "Recovery", non_manipulable="Health", soft=0.1)
    rng = np.random.default_rng(0)
    set_to = rng.integers(2, size=3000)
    health = (rng.random(3000) < np.where(set_to, 0.9, 0.1)).astype(int)
    recovery = (rng.random(3000) < 0.2 + 0.6 * health - 0.1 * set_to).astype(int)
    belief = Belief(problem)
    arms = [f"do({treatment}={value})" for value in set_to]
    belief.update_many({"arm": arms, "Health": health, "Recovery": recovery})
    means = dict(zip(map(str, problem.arms), belief.mean_rewards(), strict=True))
    # Standard errors are .013: 4 of them fail in 1 of 8,000 cases.
    assert means[f"do({treatment}=0)"] == pytest.approx(0.26, abs=0.05)
    assert means[f"do({treatment}=1)"] == pytest.approx(0.64, abs=0.05)
    assert belief.edges()[f"{treatment} -> Health"] > 0.99 and not reversals(problem)


@pytest.mark.parametrize("treatment", ["Treatment", "Drug"])
def test_if_all_can_be_set_means_are_right_or_an_alarm_is_raised(treatment):
    """Names decide then: "Drug" comes before "Health", and "Treatment" after it."""
    problem = Problem(f"Health -> Recovery; {treatment} -> Recovery", "Recovery", soft=0.1)
    rng = np.random.default_rng(0)
    set_to = rng.integers(2, size=3000)
    health = (rng.random(3000) < np.where(set_to, 0.9, 0.1)).astype(int)
    recovery = (rng.random(3000) < 0.2 + 0.6 * health - 0.1 * set_to).astype(int)
    belief = Belief(problem, evidence=True)
    arms = [f"do({treatment}={value})" for value in set_to]
    belief.update_many({"arm": arms, "Health": health, "Recovery": recovery})
    means = dict(zip(map(str, problem.arms), belief.mean_rewards(), strict=True))
    is_right = means[f"do({treatment}=1)"] == pytest.approx(0.64, abs=0.05)
    assert is_right == (treatment == "Drug")
    assert (f"{treatment} -> Health" in belief.evidence().alarms) == (not is_right)


def test_an_arrow_that_the_order_turns_round_appears_as_a_hidden_cause():
    """The truth is B -> A -> Y <- B, drawn A -> Y <- B; A, settable, comes first."""
    problem = Problem("A -> Y; B -> Y", "Y", non_manipulable="B", soft=0.1)
    rng, belief = np.random.default_rng(0), Belief(problem)
    for value, count in ((None, 3000), (0, 100), (1, 100)):
        b = (rng.random(count) < 0.5).astype(int)
        a = (rng.random(count) < np.where(b, 0.9, 0.1)).astype(int)
        a = a if value is None else np.full(count, value)
        y = (rng.random(count) < 0.1 + 0.2 * a + 0.6 * b).astype(int)
        seen = {"B": b, "Y": y} | ({"A": a} if value is None else {})
        belief.update_many(seen, arm="do()" if value is None else f"do(A={value})")
    means = dict(zip(map(str, problem.arms), belief.mean_rewards(), strict=True))
    assert means["do(A=0)"] == pytest.approx(0.4, abs=0.1)  # 2 standard errors of 100 records
    assert means["do(A=1)"] == pytest.approx(0.6, abs=0.1)
    assert belief.edges()["A <-> B"] > 0.99
