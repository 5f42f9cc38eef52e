"""Experiments with the default policy."""

import numpy as np
import pytest
from support.errors import raises_code
from support.experiments import WARD, deciding_policy

from dowise import CausalGraph, Problem
from dowise.experiment.advice import floor_advice, softened
from dowise.experiment.experiment import Experiment
from dowise.experiment.rehearsal import rehearse
from dowise.experiment.storage import MemoryStorage
from dowise.experiment.wire import options_to_json

PAST = {
    "C": ["0", "1", "0", "1"], "X": ["0", "1", "1", "0"], "W": ["0", "0", "1", "1"],
    "Z": ["1", "0", "1", "0"], "Y": ["1", "1", "0", None],
}  # fmt: skip
MANY = Problem(CausalGraph.parse("A -> Y; B -> Y; C -> Y; D -> Y"), "Y", arms="all")
"""A problem with 81 arms."""


def outcome_of(asked, number):
    """Return values for all variables that are neither context nor set by the arm."""
    names = {*asked.problem.domains} - {*asked.context} - {*asked.arm}
    return {name: str((number + ord(name)) % 2) for name in names}


def run_course(experiment):
    """Call all verbs except `erase`."""
    for number in range(1, 7):
        asked = experiment.ask({"C": str(number % 2)})
        values = outcome_of(asked, number)
        reward = {"Y": values.pop("Y")}
        experiment.tell(asked.id, values)
        experiment.tell(asked.id, reward)
    experiment.amend(2, {"Y": "1" if experiment.case(2).values["Y"] == "0" else "0"}, "typo")
    experiment.amend(3, {"C": "0"}, "wrong file")
    experiment.ask({"C": "1"})
    experiment.withdraw(7, "left")
    batch = experiment.ask_many([{"C": "0"}, {"C": "1"}, {"C": "0"}, {"C": "0"}])
    assert [event.payload.get("imagined", 0) for event in _asked(experiment)[-4:]] == [0] * 4
    experiment.import_records(PAST)
    for asked in batch[:3]:  # the last stays pending
        experiment.tell(asked.id, outcome_of(asked, asked.id))
    experiment.revise(problem=softened(WARD), reason="is an arrow missing?")
    for _ in range(2):
        asked = experiment.ask({"C": "1"})
        experiment.tell(asked.id, outcome_of(asked, asked.id))
    experiment.ask_many([{"C": "0"}, {"C": "1"}])
    experiment.revise(problem=WARD, reason="none is")
    experiment.ask({"C": "0"}, forbid=["do(X=1)"])


def _asked(experiment):
    return [event for event in experiment.events() if event.kind == "asked"]


@pytest.mark.parametrize("options", [{}, {"floor": 0.1}])
def test_an_experiment_with_the_default_policy(options):
    storage, plan = MemoryStorage(), {**options, "try_all": False}
    experiment = Experiment.create(storage, "w", WARD, options=plan, seed=5)
    assert experiment.policy == "commit-kg" and "best" not in storage.read("w")[0].body
    run_course(experiment)
    audit = experiment.audit()
    assert audit.ok, audit.finding
    assert not audit.not_derivable and not audit.made_elsewhere
    again = Experiment.open(storage, "w")
    assert again.head == experiment.head
    policy, other = (deciding_policy(x) for x in (experiment, again))
    assert policy.fingerprint() == other.fingerprint() and policy.state() == other.state()
    assert policy.rounds == 11  # decisions with values; imported records do not count
    probabilities = [event.payload["probabilities"] for event in _asked(experiment)]
    if not options:
        assert {share for pi in probabilities for share in pi} == {0.0, 1.0}
    else:
        assert all(1 > max(pi) > 0.9 * 0.99 and sum(p > 0 for p in pi) > 1 for pi in probabilities)
    twin = Experiment.create(MemoryStorage(), "w", WARD, options=plan, seed=5)
    run_course(twin)
    context = {"C": "0"}
    first, second = again.ask(context), twin.ask(context)
    assert first.arm == second.arm and first.reason == second.reason
    assert again.audit().ok


def test_a_floor_makes_other_policies_evaluable():
    plain, with_floor = (
        Experiment.create(MemoryStorage(), "w", WARD, options=options | {"try_all": False}, seed=5)
        for options in ({}, {"floor": 0.3})
    )
    for experiment in (plain, with_floor):
        for number in range(1, 9):
            asked = experiment.ask({"C": "1"})
            experiment.tell(asked.id, outcome_of(asked, number))
    assert plain.evaluate("ts").ips is None
    assert with_floor.evaluate("ts").unsupported < 0.02  # an arm may win none of 1,000 draws
    evaluation = with_floor.evaluate("best")
    assert evaluation.target == "commit-kg"
    assert evaluation.ips is not None and evaluation.unsupported == 0


def test_the_default_policy_for_many_arms_is_ids():
    experiment = Experiment.create(MemoryStorage(), "w", MANY, seed=5)
    assert experiment.policy == "ids"
    experiment.revise(policy="best", reason="the same")
    assert len(experiment.events()) == 1
    assert rehearse(MANY, 1, 1, looks=1, options={"samples": 20}).policy == "ids"


def test_revising_to_best_keeps_the_options():
    experiment = Experiment.create(MemoryStorage(), "w", WARD, options={"floor": 0.1}, seed=5)
    before = experiment.head
    experiment.revise(policy="best", reason="the same")
    assert experiment.head == before
    experiment.revise(policy="best", options={"prior": 0.5}, reason="less sure")
    given = {"prior": 0.5, "floor": 0.1, "try_all": True}
    assert experiment.options == {**given, "graph_free_prior": 0.05, "count_pending": True}
    experiment.revise(problem=MANY, policy="best", reason="more to set")
    assert experiment.policy == "ids" and "floor" in experiment.options
    assert experiment.options["floor"] == 0


def test_rehearsals_pass_the_prior_to_the_default_policy():
    prior = {"Y": 3.0}
    default = rehearse(WARD, 2, 1, options={"try_all": False}, prior=prior, looks=1)
    assert default.policy == "commit-kg" and default.options["prior"] == prior
    named = rehearse(WARD, 2, 1, "commit-kg", prior=prior, looks=1)
    assert (default.regret == named.regret).all()
    with raises_code("invalid-number", "prior"):
        rehearse(WARD, 2, 1, prior=-1.0, looks=1)


def test_advice_for_deterministic_policies():
    assert "floor=0.1" in floor_advice("commit-kg", {"prior": 1.0})
    assert floor_advice("commit-kg", {"floor": 0.1}) is None
    assert floor_advice("ids", {"choice": "mixture"}) is None
    assert floor_advice("ids", {"choice": "deterministic", "floor": 0}) is not None


@pytest.mark.parametrize("name", ["graph_free_prior", "floor", "prior"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float32("nan")])
def test_numbers_that_json_does_not_have_are_refused(name, value):
    """Not stored as null: NaN, and infinity, which has no number in JSON either."""
    message = f"{name}={value!r} must be a finite number"
    with raises_code("invalid-number", message):
        Experiment.create(MemoryStorage(), "w", WARD, options={name: value})
    with raises_code("invalid-number", message):
        options_to_json({name: value})  # what a client sends


def test_counts_of_a_prior_are_finite_numbers():
    with raises_code("invalid-number", "prior"):
        Experiment.create(MemoryStorage(), "w", WARD, options={"prior": {"Y": [1.0, float("nan")]}})
