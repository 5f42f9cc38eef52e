"""Why the other interventions are out."""

from hypothesis import given
from hypothesis import strategies as st
from support.strategies import cases

from dowise import CausalGraph, Problem, load_problem
from dowise.problem.arms import why_others_are_out


def why(text, **options):
    return why_others_are_out(Problem(CausalGraph.parse(text), "Y", **options))


def test_each_kind_of_reason():
    assert "setting X3 never beats the best way of setting X2." in why_others_are_out(
        load_problem("task3")
    )
    assert "in every context" in why_others_are_out(load_problem("task2"))
    assert (
        why("Y -> W") == "No variable that you can set has an effect on Y, so do() is the only arm."
    )
    assert why("X -> Y; X <-> Y") == "No set of variables is left out: each of them can be optimal."
    assert "chosen by hand" in why("X -> Y", arms=["do()"])
    assert "all interventions" in why("X -> Y", arms="all")
    assert why("X -> Y").startswith("The other set is out")
    assert "with this graph and any of the soft edges some arm" in why("X -> Y -> W", soft=0.1)


@given(cases(max_size=7), st.sampled_from([None, 0.1]))
def test_the_example_is_a_set_that_is_left_out_and_one_that_is_kept(case, soft):
    graph, reward, context, hidden = case
    problem = Problem(graph, reward, context, hidden, soft=soft)
    told = why_others_are_out(problem)
    if "For example" not in told:
        return

    def names(phrase):
        words = phrase.removeprefix("the best way of ").removeprefix("setting ")
        return (
            frozenset()
            if "nothing" in words
            else frozenset(words.replace(" and ", ", ").split(", "))
        )

    lost, kept = told.partition("For example, ")[2].rstrip(".").split(" never beats ")
    assert names(lost) not in problem.intervention_sets
    assert names(kept) in problem.intervention_sets
