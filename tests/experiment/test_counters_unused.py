"""Recorded values that do not count because another value is missing."""

from itertools import combinations

import pytest
from support.experiments import new_experiment

from dowise import Belief, CausalGraph, Problem
from dowise.experiment.case import Case
from dowise.experiment.counters import UnusedValues
from dowise.problem.record import past_record

PLAIN = Problem(CausalGraph.parse("C -> X -> Z -> Y; C -> Y; W -> Y; Y -> A"), "Y", "C", arms="all")
HIDDEN = Problem(
    CausalGraph.parse("C -> X -> Z -> Y; X <-> Y!; W -> Z; Z <-> W!"), "Y", "C", arms="all"
)
DOUBTFUL = Problem(CausalGraph.parse("C -> X -> Z -> Y; X <-> Y; W ?-> Y"), "Y", "C", arms="all")


@pytest.mark.parametrize("problem", [PLAIN, HIDDEN, DOUBTFUL])
def test_unused_values_are_those_that_a_belief_does_not_use(problem):
    """For several arms, and all sets of values that may be told."""
    unused = UnusedValues(problem)
    names = [name for name in problem.graph.variables if name not in problem.context]
    for arm in problem.arms[:: max(len(problem.arms) // 6, 1)]:
        free = [name for name in names if name not in arm]
        for size in range(1, len(free) + 1):
            for told in combinations(free, size):
                case = Case(1, 2, "", {"C": "0"}, arm, values=dict.fromkeys(told, "1"))
                belief = Belief(problem)
                belief.learn(past_record(problem, arm, case.known, 1))
                lacking = {
                    name: next(iter(missing))
                    for name, missing in belief.lacking().items()
                    if name in told and "" not in missing
                }
                assert {name: missing[0] for name, missing in unused.of(case).items()} == lacking


def test_unused_values_are_described():
    experiment = new_experiment(PLAIN)
    number = experiment.ask({"C": 0}, allowed=["do(X=1)"]).id
    experiment.tell(number, {"Y": 1})
    assert experiment.idle(number) == [
        "Y does not count yet: it depends on W and Z, which was not told"
    ]
    experiment.tell(number, {"W": 0, "Z": None})
    assert experiment.idle(number) == ["Y does not count: it depends on Z, which will not be known"]
    experiment.amend(number, {"Z": 1}, "found")
    assert experiment.idle(number) == []


def test_policies_that_use_rewards_only_have_no_unused_values():
    experiment = new_experiment(PLAIN, policy="ucb")
    number = experiment.ask({"C": 0}).id
    experiment.tell(number, {"Y": 1})
    assert experiment.idle(number) == []


def test_status_omits_values_that_may_still_count():
    experiment = new_experiment(PLAIN)
    first, second = (experiment.ask({"C": 0}, allowed=["do(X=1)"]).id for _ in range(2))
    experiment.tell(first, {"Z": 1})
    experiment.tell(second, {"Y": 1, "W": None, "Z": 1})
    experiment.tell(experiment.ask({"C": 0}, allowed=["do(W=1)"]).id, {"Z": 1})  # X may come
    assert experiment.status(evidence=False).unused == {"Y": {"W was not seen": 1}}
