"""What policies learn of cases: each once, whatever came first, and nothing half."""

import numpy as np
import pytest
from support.experiments import WARD, InOrder, deciding_policy, new

from dowise import Belief, CausalGraph, DowiseError, Problem, register_policy
from dowise.experiment import replay as learning
from dowise.experiment.experiment import Experiment
from dowise.policies import registry
from dowise.policies.registry import policy_names

TINY = Problem(CausalGraph.parse("X -> Y"), "Y")
OUTCOMES = [{"X": i % 2, "W": 0, "Z": (i // 2) % 2, "Y": int(i % 3 == 0)} for i in range(12)]


@pytest.fixture
def own_policies(monkeypatch):
    monkeypatch.setattr(registry, "_POLICIES", dict(registry._POLICIES))
    register_policy("in-order")(InOrder)


def tell(experiment, number, outcome):
    asked = experiment.records()[number - 1]
    experiment.tell(number, outcome | dict(asked.arm))


def counts(experiment):
    return experiment.belief.parameters


def test_a_factor_counts_when_its_last_variable_arrives_once():
    experiment, nothing = new(), Belief(WARD)
    asked = experiment.ask({"C": 1}, allowed=["do()"])
    experiment.tell(1, {"Y": 1})  # Y needs C, W and Z
    assert np.array_equal(counts(experiment), nothing.parameters + counted(asked, {"Y": 1}))
    experiment.tell(1, {"Z": 0})
    experiment.tell(1, {"W": 1})
    assert np.array_equal(
        counts(experiment), nothing.parameters + counted(asked, {"Y": 1, "Z": 0, "W": 1})
    )
    experiment.tell(1, {"X": 1})
    whole = counted(asked, {"Y": 1, "Z": 0, "W": 1, "X": 1})
    assert np.array_equal(counts(experiment), nothing.parameters + whole) and whole.sum() == 5


def counted(asked, outcome):
    belief = Belief(WARD)
    belief.update(asked.arm, {"C": 1} | outcome)
    return belief.parameters - Belief(WARD).parameters


@pytest.mark.parametrize("policy", policy_names())
def test_learning_all_at_once_on_opening_gives_what_was_learned_one_by_one(policy, monkeypatch):
    options = {"horizon": 20} if policy == "bayes-optimal" else None
    problem = TINY if policy == "bayes-optimal" else WARD
    step_by_step = new(problem, policy, options)
    context = dict.fromkeys(problem.context, 0)
    for number, outcome in enumerate(OUTCOMES, start=1):
        step_by_step.ask(context)
        seen = {name: label for name, label in outcome.items() if name in problem.domains}
        if number % 5:
            tell(step_by_step, number, seen)
    monkeypatch.setattr(learning, "MIN_BATCH", 3)
    at_once = Experiment.open(step_by_step._journal.storage)
    one, other = step_by_step.ask(context), at_once.ask(context)
    says = [event.payload["known"] for event in at_once.events()[-2:]]
    assert says[0]["counts"] == says[1]["counts"]
    assert other.id == one.id + 1 and at_once.audit().ok


@pytest.mark.parametrize("many", [1, 64])
def test_decisions_among_fewer_arms_are_left_out_where_that_is_wanted(many, monkeypatch):
    monkeypatch.setattr(learning, "MIN_BATCH", many)
    experiment = new(learn_restricted=False)
    experiment.ask_many([{"C": 0}] * 2, allowed=["do(X=1)"])
    for number in (1, 2):
        tell(experiment, number, OUTCOMES[number])
    assert np.array_equal(counts(experiment), Belief(WARD).parameters)
    status = experiment.status({"C": 0}, evidence=False)
    assert status.left_out == {learning.RESTRICTED: 2}
    experiment.revise(learn_restricted=True, reason="the restriction was a coin toss")
    assert counts(experiment).sum() > Belief(WARD).parameters.sum()
    assert experiment.status({"C": 0}, evidence=False).left_out == {}


def test_what_an_index_policy_can_not_use_is_told_once_nothing_is_to_come():
    experiment = new(policy="ucb")
    experiment.ask_many([{"C": 0}] * 2)
    experiment.tell(1, {"Z": 1})
    assert experiment.status({"C": 0}, evidence=False).left_out == {}
    experiment.tell(1, {"Y": None})
    (why,) = experiment.status({"C": 0}, evidence=False).left_out
    assert "Y" in why


def test_plays_under_way_count_until_they_are_told_withdrawn_or_erased():
    experiment = new(policy="ucb")
    for _ in WARD.arms:
        experiment.ask({"C": 0})
    again = experiment.ask({"C": 0})  # each arm is under way once: the first has its turn again
    assert again.arm == WARD.arms[0]
    experiment.withdraw(3, "left")
    experiment.erase(5, "asked to")
    arms = {str(experiment.ask({"C": 0}).arm) for _ in range(2)}
    assert arms == {str(WARD.arms[2]), str(WARD.arms[4])}
    assert experiment.audit().ok


@pytest.mark.usefixtures("own_policies")
def test_a_policy_that_only_decides_and_observes():
    experiment = new(policy="in-order")
    for number, outcome in enumerate(OUTCOMES, start=1):
        experiment.ask({"C": 0})
        tell(experiment, number, outcome)
    experiment.amend(3, {"Y": 1}, "typo")
    other = Experiment.open(experiment._journal.storage)
    twin = InOrder(WARD)
    order = [case for case in other.records() if case.id != 3] + [other.records()[2]]
    for case in order:
        twin.observe(case.arm, case.known)
    assert other.ask({"C": 0}).arm == twin.decide().arm
    assert other.audit().ok


@pytest.mark.usefixtures("own_policies")
def test_what_such_a_policy_knows_does_not_depend_on_when_it_was_opened():
    experiment = new(policy="in-order")
    experiment.ask_many([{"C": 0}] * 2)
    for number in (1, 2):
        tell(experiment, number, OUTCOMES[number])
    experiment.ask({"C": 0})
    told = experiment.records()[0].values["Y"]
    experiment.amend(1, {"Y": "0" if told == "1" else "1"}, "typo")
    experiment.amend(1, {"Y": told}, "no typo")  # as before, but said later than the second
    Experiment.open(experiment._journal.storage).ask({"C": 0})
    experiment.ask({"C": 0})
    audit = experiment.audit()
    assert audit.ok, audit.finding


@pytest.mark.usefixtures("own_policies")
def test_imported_rows_are_shown_once_to_such_a_policy():
    experiment = new(policy="in-order")
    rows = 400
    columns = {name: ["0", "1"] * (rows // 2) for name in "CWXYZ"} | {"arm": ["do()"] * rows}
    shown = []
    InOrder.observe, before = (lambda *what: shown.append(what)), InOrder.observe
    try:
        experiment.import_records(columns)
        experiment.ask({"C": 0})
    finally:
        InOrder.observe = before
    assert len(shown) == rows


@pytest.mark.parametrize("policy", ["ids", "ucb", "in-order"])
@pytest.mark.usefixtures("own_policies")
def test_learning_that_was_stopped_half_way_is_done_again_from_the_start(policy, monkeypatch):
    experiment = new(policy=policy)
    for number, outcome in enumerate(OUTCOMES, start=1):
        experiment.ask({"C": 0})
        tell(experiment, number, outcome)
    kind = type(deciding_policy(experiment))
    learn, calls = kind.learn, []

    def stops(self, record):
        learn(self, record)
        calls.append(record)
        if len(calls) == 1:
            raise KeyboardInterrupt

    experiment.amend(2, {"Y": None}, "lost")
    experiment.amend(3, {"Z": None}, "lost")
    with monkeypatch.context() as broken:
        broken.setattr(kind, "learn", stops)
        with pytest.raises(KeyboardInterrupt):
            experiment.ask({"C": 0})
    other = Experiment.open(experiment._journal.storage)
    assert np.array_equal(counts(experiment), counts(other))
    experiment.ask({"C": 0})
    assert experiment.audit().ok


@pytest.mark.usefixtures("own_policies")
def test_a_policy_that_nobody_registered_here_says_so(monkeypatch):
    experiment = new(policy="in-order")
    experiment.ask({"C": 0})
    experiment.tell(1, {"Y": 1})
    monkeypatch.setattr(
        registry, "_POLICIES", {x: y for x, y in registry._POLICIES.items() if x != "in-order"}
    )
    opened = Experiment.open(experiment._journal.storage)
    assert len(opened.records()) == 1 and opened.tell(1, {"Z": 1}).values["Z"] == "1"
    with pytest.raises(DowiseError, match="in-order"):
        opened.ask({"C": 0})
    opened.revise(policy="ids", options={"samples": 10}, reason="go on without it")
    assert opened.ask({"C": 0}).id == 2
