"""Sums that are kept as decisions change are those of all decisions gone through."""

import random

import pytest
from support.experiments import WARD, new

from dowise import CausalGraph, Problem
from dowise.experiment.counters import PlayCounts, UnusedValues
from dowise.experiment.experiment import Experiment
from dowise.experiment.status import contexts_to_show

OTHER = Problem(CausalGraph.parse("C -> X -> Z -> Y; C -> Y; W -> Y; C -> W"), "Y", ("C", "W"), "Z")


def at_random(experiment, rng):
    """One thing that may happen to an experiment."""
    ids = [case.id for case in experiment.records()]
    verb = rng.choice(["ask", "ask", "tell", "tell", "tell", "amend", "withdraw", "erase"])
    if verb == "ask" or not ids:
        context = {name: rng.choice("01") for name in experiment.problem.context}
        allowed = rng.choice([None, [experiment.problem.arms[0]]])
        return experiment.ask(context, allowed=allowed)
    case = experiment.case(rng.choice(ids))
    if case.status in ("withdrawn", "erased"):
        return None
    if verb == "tell":
        names = rng.sample("XWZY", 2)
        seen = {name: case.known.get(name, rng.choice(["0", "1", None])) for name in names}
        if case.played is None and not case.values and rng.random() < 0.2:
            return experiment.tell(case.id, {"Z": 1}, played=rng.choice(experiment.problem.arms))
        return experiment.tell(case.id, seen)
    if verb == "amend":
        changed = [name for name in ("C", "Y") if name in case.known and name not in case.arm]
        return experiment.amend(case.id, {rng.choice(changed): rng.choice("01")}, "typo")
    if verb == "withdraw" and case.status == "pending":
        return experiment.withdraw(case.id, "left")
    return experiment.erase(case.id, "asked for") if rng.random() < 0.2 else None


def check(experiment):
    status, cases = experiment.status(evidence=False), experiment.records()
    there = [case for case in cases if case.status != "erased"]
    assert status.counts == {
        "asked": len(cases),
        **{
            kind: sum(case.status == kind for case in cases)
            for kind in ("pending", "done", "withdrawn", "erased")
        },
        "restricted": sum(case.is_restricted for case in there),
        "played_otherwise": sum(case.played is not None for case in there),
    }
    assert status.pending == experiment.pending()
    assert status.pending == tuple(case for case in cases if case.status == "pending")
    idle = UnusedValues(experiment.problem)
    assert status.incomplete == tuple(case for case in cases if idle.may_still_count(case))
    came = PlayCounts(experiment.problem, cases)
    shares = came.shares([one.context for one in status.contexts])
    assert [one.weight for one in status.contexts] == shares
    assert status.has_contexts == bool(came.times)
    for one in status.contexts:
        assert one.plays.tolist() == came.plays(one.context).tolist()
    ended = [case for case in cases if case.status in ("done", "withdrawn") and case.values]
    assert experiment.counted().decisions == len(ended)
    fresh = Experiment.open(experiment._journal.storage).status(evidence=False)
    one, other = status.as_dict(), fresh.as_dict()
    for page in (one, other):
        for case in page["pending"]:
            del case["waiting_seconds"]
    assert one == other


@pytest.mark.parametrize("seed", range(6))
def test_sums_are_those_of_all_decisions(seed):
    rng, experiment = random.Random(seed), new(policy="random")
    for number in range(60):
        at_random(experiment, rng)
        if number % 6 == 0:
            check(experiment)
        if number == 40:
            experiment.revise(OTHER if seed % 2 else WARD, "random", reason="another context")
    check(experiment)


def test_a_context_that_was_a_mistake_never_came():
    experiment = new()
    experiment.ask({"C": 0})
    assert experiment.status().has_contexts
    assert [one.weight for one in experiment.status().contexts] == [1.0, 0.0]
    experiment.amend(1, {"C": 1}, "typo")
    assert [one.weight for one in experiment.status().contexts] == [0.0, 1.0]
    experiment.erase(1, "asked for")
    assert not experiment.status().has_contexts


def test_of_contexts_that_came_as_often_the_first_by_name_is_shown():
    experiments = [new(OTHER, policy="random"), new(OTHER, policy="random")]
    contexts = [
        {"C": "1", "W": "1"},
        {"C": "0", "W": "1"},
        {"C": "1", "W": "1"},
        {"C": "0", "W": "0"},
    ]
    for experiment, order in zip(experiments, (contexts, contexts[::-1]), strict=True):
        for context in order:
            experiment.ask(context)
        came = PlayCounts(OTHER, experiment.records())
        assert contexts_to_show(OTHER, came, 2) == [{"C": "1", "W": "1"}, {"C": "0", "W": "0"}]


def test_what_a_look_has_taken_stays_as_it_was():
    experiment = new()
    experiment.ask({"C": 0})
    then = experiment._journal.read()
    case = then.cases[1]
    experiment.tell(1, {"Y": 1})
    experiment.ask({"C": 1})
    assert [*then.cases] == [*then.pending] == [1] and then.cases[1] is case
    assert case.status == "pending" and not case.values
    assert then.head.number == 2 and experiment.case(1).status == "done"
