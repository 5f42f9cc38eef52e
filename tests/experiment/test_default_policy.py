"""Whole experiments with the policy that decides unless another is named."""

import pytest
from support.experiments import WARD, deciding_policy

from dowise import CausalGraph, Problem
from dowise.errors import DowiseError
from dowise.experiment.advice import floor_advice, softened
from dowise.experiment.experiment import Experiment
from dowise.experiment.rehearsal import rehearse
from dowise.experiment.storage import MemoryStorage

PAST = {
    "C": ["0", "1", "0", "1"], "X": ["0", "1", "1", "0"], "W": ["0", "0", "1", "1"],
    "Z": ["1", "0", "1", "0"], "Y": ["1", "1", "0", None],
}  # fmt: skip
MANY = Problem(CausalGraph.parse("A -> Y; B -> Y; C -> Y; D -> Y"), "Y", arms="all")
"""With 81 arms."""


def seen(asked, number):
    """All of an outcome, made up."""
    given = dict(asked.context) | dict(asked.arm)
    names = {*asked.problem.domains} - {*given}
    return {name: str((number + ord(name)) % 2) for name in names}


def course(experiment):
    """Everything that may happen to an experiment, nothing erased."""
    for number in range(1, 7):
        asked = experiment.ask({"C": str(number % 2)})
        values = seen(asked, number)
        reward = {"Y": values.pop("Y")}
        experiment.tell(asked.id, values)  # in pieces
        experiment.tell(asked.id, reward)
    experiment.amend(2, {"Y": "1" if experiment.case(2).values["Y"] == "0" else "0"}, "typo")
    experiment.amend(3, {"C": "0"}, "wrong file")
    experiment.ask({"C": "1"})
    experiment.withdraw(7, "left")
    batch = experiment.ask_many([{"C": "0"}, {"C": "1"}, {"C": "0"}, {"C": "0"}])
    assert [event.payload.get("imagined", 0) for event in _asked(experiment)[-4:]] == [0, 1, 2, 3]
    experiment.import_records(PAST)
    for asked in batch[:3]:  # the last stays pending
        experiment.tell(asked.id, seen(asked, asked.id))
    experiment.revise(problem=softened(WARD), reason="is an arrow missing?")
    for _ in range(2):
        asked = experiment.ask({"C": "1"})
        experiment.tell(asked.id, seen(asked, asked.id))
    experiment.ask_many([{"C": "0"}, {"C": "1"}])
    experiment.revise(problem=WARD, reason="none is")
    experiment.ask({"C": "0"}, forbid=["do(X=1)"])


def _asked(experiment):
    return [event for event in experiment.events() if event.kind == "asked"]


@pytest.mark.parametrize("options", [None, {"floor": 0.1}])
def test_a_whole_experiment(options):
    storage = MemoryStorage()
    experiment = Experiment.create(storage, "w", WARD, options=options, seed=5)
    assert experiment.policy == "commit-kg" and "best" not in storage.read("w")[0].body
    course(experiment)
    audit = experiment.audit()
    assert audit.ok, audit.finding
    assert not audit.not_derivable and not audit.made_elsewhere
    again = Experiment.open(storage, "w")
    assert again.head == experiment.head
    own, other = (deciding_policy(one) for one in (experiment, again))
    assert own.fingerprint() == other.fingerprint() and own.state() == other.state()
    assert own.rounds == 11  # those with something told; records that were imported are none
    chances = [event.payload["probabilities"] for event in _asked(experiment)]
    if options is None:
        assert {chance for pi in chances for chance in pi} == {0.0, 1.0}
    else:
        assert all(1 > max(pi) > 0.9 * 0.99 and sum(p > 0 for p in pi) > 1 for pi in chances)
    twin = Experiment.create(MemoryStorage(), "w", WARD, options=options, seed=5)
    course(twin)
    context = {"C": "0"}
    nexts = [one.ask(context) for one in (again, twin)]
    assert nexts[0].arm == nexts[1].arm and nexts[0].reason == nexts[1].reason
    assert again.audit().ok


def test_a_floor_lets_others_be_evaluated():
    plain = Experiment.create(MemoryStorage(), "w", WARD, seed=5)
    chancy = Experiment.create(MemoryStorage(), "w", WARD, options={"floor": 0.3}, seed=5)
    for experiment in (plain, chancy):
        for number in range(1, 9):
            asked = experiment.ask({"C": "1"})
            experiment.tell(asked.id, seen(asked, number))
    assert plain.evaluate("ts").ips is None
    assert chancy.evaluate("ts").unsupported < 0.02  # an arm may win none of 1,000 draws
    found = chancy.evaluate("best")
    assert found.target == "commit-kg" and found.ips is not None and found.unsupported == 0


def test_with_many_arms_it_is_ids():
    experiment = Experiment.create(MemoryStorage(), "w", MANY, seed=5)
    assert experiment.policy == "ids"
    experiment.revise(policy="best", reason="the same")
    assert len(experiment.events()) == 1
    assert rehearse(MANY, 1, 1, looks=1, options={"samples": 20}).policy == "ids"


def test_to_revise_to_it_keeps_its_options():
    experiment = Experiment.create(MemoryStorage(), "w", WARD, options={"floor": 0.1}, seed=5)
    before = experiment.head
    experiment.revise(policy="best", reason="the same")
    assert experiment.head == before
    experiment.revise(policy="best", options={"prior": 0.5}, reason="less sure")
    assert experiment.options == {"prior": 0.5, "floor": 0.1}
    experiment.revise(problem=MANY, policy="best", reason="more to set")
    assert experiment.policy == "ids" and "floor" in experiment.options
    assert experiment.options["floor"] == 0


def test_it_takes_the_prior_of_a_rehearsal():
    prior = {"Y": 3.0}
    found = rehearse(WARD, 2, 1, prior=prior, looks=1)
    assert found.policy == "commit-kg" and found.options["prior"] == prior
    named = rehearse(WARD, 2, 1, "commit-kg", prior=prior, looks=1)
    assert (found.regret == named.regret).all()
    with pytest.raises(DowiseError, match="prior"):
        rehearse(WARD, 2, 1, prior=-1.0, looks=1)


def test_who_leaves_nothing_to_chance():
    assert "floor=0.1" in floor_advice("commit-kg", {"prior": 1.0})
    assert floor_advice("commit-kg", {"floor": 0.1}) is None
    assert floor_advice("ids", {"choice": "mixture"}) is None
    assert floor_advice("ids", {"choice": "deterministic", "floor": 0}) is not None
