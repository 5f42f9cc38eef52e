"""What was told and does not count: against the counts of a belief, and in words."""

from itertools import combinations

import pytest
from support.experiments import new

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
def test_what_is_idle_is_what_a_belief_does_not_use(problem):
    """For every arm and every set of values that may be seen."""
    idle = UnusedValues(problem)
    rest = [name for name in problem.graph.variables if name not in problem.context]
    for arm in problem.arms[:: max(len(problem.arms) // 6, 1)]:
        others = [name for name in rest if name not in arm]
        for size in range(1, len(others) + 1):
            for told in combinations(others, size):
                case = Case(1, 2, "", {"C": "0"}, arm, values=dict.fromkeys(told, "1"))
                belief = Belief(problem)
                belief.learn(past_record(problem, arm, case.known, 1))
                lacking = {
                    name: next(iter(found))
                    for name, found in belief.lacking().items()
                    if name in told and "" not in found
                }
                assert {name: found[0] for name, found in idle.of(case).items()} == lacking


def test_it_is_said_when_something_is_told():
    experiment = new(PLAIN)
    number = experiment.ask({"C": 0}, allowed=["do(X=1)"]).id
    experiment.tell(number, {"Y": 1})
    assert experiment.idle(number) == [
        "Y does not count yet: it depends on W and Z, which was not told"
    ]
    experiment.tell(number, {"W": 0, "Z": None})
    assert experiment.idle(number) == ["Y does not count: it depends on Z, which will not be known"]
    experiment.amend(number, {"Z": 1}, "found")
    assert experiment.idle(number) == []


def test_who_looks_at_rewards_only_needs_nothing_else():
    experiment = new(PLAIN, policy="ucb")
    number = experiment.ask({"C": 0}).id
    experiment.tell(number, {"Y": 1})
    assert experiment.idle(number) == []


def test_status_does_not_call_unused_what_may_still_come_to_count():
    experiment = new(PLAIN)
    one, other = (experiment.ask({"C": 0}, allowed=["do(X=1)"]).id for _ in range(2))
    experiment.tell(one, {"Z": 1})
    experiment.tell(other, {"Y": 1, "W": None, "Z": 1})
    experiment.tell(experiment.ask({"C": 0}, allowed=["do(W=1)"]).id, {"Z": 1})  # X may come
    assert experiment.status(evidence=False).unused == {"Y": {"W was not seen": 1}}
