"""Running totals against totals over all decisions, and values that do not count."""

import random

import pytest
from support.experiments import WARD, new_experiment

from dowise import CausalGraph, Problem
from dowise.experiment.counters import PlayCounts, UnusedValues
from dowise.experiment.experiment import Experiment
from dowise.experiment.status import contexts_to_show

OTHER = Problem(CausalGraph.parse("C -> X -> Z -> Y; C -> Y; W -> Y; C -> W"), "Y", ("C", "W"), "Z")


def take_random_step(experiment, rng):
    """Change an experiment in one of the ways that are possible."""
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


def check_against_all_decisions(experiment):
    status, cases = experiment.status(evidence=False), experiment.records()
    existing = [case for case in cases if case.status != "erased"]
    assert status.counts == {
        "asked": len(cases),
        **{
            kind: sum(case.status == kind for case in cases)
            for kind in ("pending", "done", "withdrawn", "erased")
        },
        "restricted": sum(case.is_restricted for case in existing),
        "played_otherwise": sum(case.played is not None for case in existing),
    }
    assert status.pending == experiment.pending()
    assert status.pending == tuple(case for case in cases if case.status == "pending")
    unused = UnusedValues(experiment.problem)
    assert status.incomplete == tuple(case for case in cases if unused.may_still_count(case))
    plays = PlayCounts(experiment.problem, cases)
    shares = plays.shares([summary.context for summary in status.contexts])
    assert [summary.weight for summary in status.contexts] == shares
    assert status.has_contexts == bool(plays.times)
    for summary in status.contexts:
        assert summary.plays.tolist() == plays.plays(summary.context).tolist()
    ended = [case for case in cases if case.status in ("done", "withdrawn") and case.values]
    assert experiment.counted().decisions == len(ended)
    fresh = Experiment.open(experiment._journal.storage).status(evidence=False)
    documents = [status.as_dict(), fresh.as_dict()]
    for document in documents:
        for case in document["pending"]:
            del case["waiting_seconds"]
    assert documents[0] == documents[1]


@pytest.mark.parametrize("seed", range(6))
def test_totals_equal_those_over_all_decisions(seed):
    rng, experiment = random.Random(seed), new_experiment(policy="random")
    for number in range(60):
        take_random_step(experiment, rng)
        if number % 6 == 0:
            check_against_all_decisions(experiment)
        if number == 40:
            experiment.revise(OTHER if seed % 2 else WARD, "random", reason="another context")
    check_against_all_decisions(experiment)


def test_an_amended_or_erased_context_no_longer_counts():
    experiment = new_experiment()
    experiment.ask({"C": 0})
    assert experiment.status().has_contexts
    assert [summary.weight for summary in experiment.status().contexts] == [1.0, 0.0]
    experiment.amend(1, {"C": 1}, "typo")
    assert [summary.weight for summary in experiment.status().contexts] == [0.0, 1.0]
    experiment.erase(1, "asked for")
    assert not experiment.status().has_contexts


def test_equally_frequent_contexts_are_sorted_by_their_labels():
    experiments = [new_experiment(OTHER, policy="random"), new_experiment(OTHER, policy="random")]
    contexts = [
        {"C": "1", "W": "1"},
        {"C": "0", "W": "1"},
        {"C": "1", "W": "1"},
        {"C": "0", "W": "0"},
    ]
    for experiment, order in zip(experiments, (contexts, contexts[::-1]), strict=True):
        for context in order:
            experiment.ask(context)
        plays = PlayCounts(OTHER, experiment.records())
        assert contexts_to_show(OTHER, plays, 2) == [{"C": "1", "W": "1"}, {"C": "0", "W": "0"}]


def test_a_copy_of_the_state_does_not_change():
    experiment = new_experiment()
    experiment.ask({"C": 0})
    state = experiment._journal.read()
    case = state.cases[1]
    experiment.tell(1, {"Y": 1})
    experiment.ask({"C": 1})
    assert [*state.cases] == [*state.pending] == [1] and state.cases[1] is case
    assert case.status == "pending" and not case.values
    assert state.head.number == 2 and experiment.case(1).status == "done"
