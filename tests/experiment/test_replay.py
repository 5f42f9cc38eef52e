"""What policies learn from cases, in any order and after interruptions."""

import numpy as np
import pytest
from support.errors import raises_code
from support.experiments import WARD, OrderDependentPolicy, deciding_policy, new_experiment

from dowise import Belief, CausalGraph, Problem, register_policy
from dowise.belief.arrivals import Arrivals
from dowise.experiment import replay as replay_module
from dowise.experiment import snapshots
from dowise.experiment.experiment import Experiment
from dowise.policies import Choice, registry
from dowise.policies.base import one_hot
from dowise.policies.bayesian import BayesianPolicy
from dowise.policies.decision import DecisionTrace
from dowise.policies.registry import policy_names

TINY = Problem(CausalGraph.parse("X -> Y"), "Y")
OUTCOMES = [{"X": i % 2, "W": 0, "Z": (i // 2) % 2, "Y": int(i % 3 == 0)} for i in range(12)]


@pytest.fixture
def custom_policy(monkeypatch):
    monkeypatch.setattr(registry, "_POLICIES", dict(registry._POLICIES))
    register_policy("in-order")(OrderDependentPolicy)


def tell(experiment, number, outcome):
    asked = experiment.records()[number - 1]
    experiment.tell(number, outcome | dict(asked.arm))


def counts(experiment):
    return experiment.belief.parameters


def test_a_factor_counts_once_when_its_last_variable_is_told():
    experiment, empty = new_experiment(), Belief(WARD)
    asked = experiment.ask({"C": 1}, allowed=["do()"])
    experiment.tell(1, {"Y": 1})  # Y needs C, W and Z
    assert np.array_equal(counts(experiment), empty.parameters + counts_of_record(asked, {"Y": 1}))
    experiment.tell(1, {"Z": 0})
    experiment.tell(1, {"W": 1})
    assert np.array_equal(
        counts(experiment), empty.parameters + counts_of_record(asked, {"Y": 1, "Z": 0, "W": 1})
    )
    experiment.tell(1, {"X": 1})
    all_counts = counts_of_record(asked, {"Y": 1, "Z": 0, "W": 1, "X": 1})
    assert (
        np.array_equal(counts(experiment), empty.parameters + all_counts) and all_counts.sum() == 5
    )


def counts_of_record(asked, outcome):
    belief = Belief(WARD)
    belief.update(asked.arm, {"C": 1} | outcome)
    return belief.parameters - Belief(WARD).parameters


@pytest.mark.parametrize("policy", policy_names())
def test_learning_in_one_batch_equals_learning_one_by_one(policy, monkeypatch):
    options = {"horizon": 20} if policy == "bayes-optimal" else None
    problem = TINY if policy == "bayes-optimal" else WARD
    step_by_step = new_experiment(problem, policy, options)
    context = dict.fromkeys(problem.context, 0)
    for number, outcome in enumerate(OUTCOMES, start=1):
        step_by_step.ask(context)
        values = {name: label for name, label in outcome.items() if name in problem.domains}
        if number % 5:
            tell(step_by_step, number, values)
    monkeypatch.setattr(replay_module, "MIN_BATCH", 3)
    at_once = Experiment.open(step_by_step._journal.storage)
    first, second = step_by_step.ask(context), at_once.ask(context)
    recorded = [event.payload["known"] for event in at_once.events()[-2:]]
    assert recorded[0]["counts"] == recorded[1]["counts"]
    assert second.id == first.id + 1 and at_once.audit().ok


@pytest.mark.parametrize("many", [1, 64])
def test_restricted_decisions_are_left_out_on_request(many, monkeypatch):
    monkeypatch.setattr(replay_module, "MIN_BATCH", many)
    experiment = new_experiment(learn_restricted=False)
    experiment.ask_many([{"C": 0}] * 2, allowed=["do(X=1)"])
    for number in (1, 2):
        tell(experiment, number, OUTCOMES[number])
    assert np.array_equal(counts(experiment), Belief(WARD).parameters)
    status = experiment.status({"C": 0}, evidence=False)
    assert status.left_out == {replay_module.RESTRICTED: 2}
    experiment.revise(learn_restricted=True, reason="the restriction was a coin toss")
    assert counts(experiment).sum() > Belief(WARD).parameters.sum()
    assert experiment.status({"C": 0}, evidence=False).left_out == {}


def test_a_closed_decision_without_a_reward_is_left_out_by_index_policies():
    experiment = new_experiment(policy="ucb")
    experiment.ask_many([{"C": 0}] * 2)
    experiment.tell(1, {"Z": 1})
    assert experiment.status({"C": 0}, evidence=False).left_out == {}
    experiment.tell(1, {"Y": None})
    (reason,) = experiment.status({"C": 0}, evidence=False).left_out
    assert "Y" in reason


def test_pending_plays_count_until_they_are_closed():
    experiment = new_experiment(policy="ucb")
    for _ in WARD.arms:
        experiment.ask({"C": 0})
    again = experiment.ask({"C": 0})  # every arm is pending once, so the first one is next
    assert again.arm == WARD.arms[0]
    experiment.withdraw(3, "left")
    experiment.erase(5, "asked to")
    arms = {str(experiment.ask({"C": 0}).arm) for _ in range(2)}
    assert arms == {str(WARD.arms[2]), str(WARD.arms[4])}
    assert experiment.audit().ok


@pytest.mark.usefixtures("custom_policy")
def test_a_policy_with_decide_and_observe_only_is_replayed():
    experiment = new_experiment(policy="in-order")
    for number, outcome in enumerate(OUTCOMES, start=1):
        experiment.ask({"C": 0})
        tell(experiment, number, outcome)
    experiment.amend(3, {"Y": 1}, "typo")
    other = Experiment.open(experiment._journal.storage)
    twin = OrderDependentPolicy(WARD)
    order = [case for case in other.records() if case.id != 3] + [other.records()[2]]
    for case in order:
        twin.observe(case.arm, case.known)
    assert other.ask({"C": 0}).arm == twin.decide().arm
    assert other.audit().ok


@pytest.mark.usefixtures("custom_policy")
def test_a_replayed_policy_does_not_depend_on_the_time_of_opening():
    experiment = new_experiment(policy="in-order")
    experiment.ask_many([{"C": 0}] * 2)
    for number in (1, 2):
        tell(experiment, number, OUTCOMES[number])
    experiment.ask({"C": 0})
    label = experiment.records()[0].values["Y"]
    experiment.amend(1, {"Y": "0" if label == "1" else "1"}, "typo")
    experiment.amend(1, {"Y": label}, "no typo")  # as before, but after decision 2
    Experiment.open(experiment._journal.storage).ask({"C": 0})
    experiment.ask({"C": 0})
    audit = experiment.audit()
    assert audit.ok, audit.finding


@pytest.mark.usefixtures("custom_policy")
def test_a_replayed_policy_observes_imported_rows_once():
    experiment = new_experiment(policy="in-order")
    rows = 400
    columns = {name: ["0", "1"] * (rows // 2) for name in "CWXYZ"} | {"arm": ["do()"] * rows}
    observed = []
    OrderDependentPolicy.observe, before = (
        (lambda *arguments: observed.append(arguments)),
        OrderDependentPolicy.observe,
    )
    try:
        experiment.import_records(columns)
        experiment.ask({"C": 0})
    finally:
        OrderDependentPolicy.observe = before
    assert len(observed) == rows


@pytest.mark.parametrize("policy", ["ids", "ucb", "in-order"])
@pytest.mark.usefixtures("custom_policy")
def test_interrupted_learning_starts_again(policy, monkeypatch):
    experiment = new_experiment(policy=policy)
    for number, outcome in enumerate(OUTCOMES, start=1):
        experiment.ask({"C": 0})
        tell(experiment, number, outcome)
    kind = type(deciding_policy(experiment))
    learn, calls = kind.learn, []

    def interrupted(self, record):
        learn(self, record)
        calls.append(record)
        if len(calls) == 1:
            raise KeyboardInterrupt

    experiment.amend(2, {"Y": None}, "lost")
    experiment.amend(3, {"Z": None}, "lost")
    with monkeypatch.context() as broken:
        broken.setattr(kind, "learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            experiment.ask({"C": 0})
    other = Experiment.open(experiment._journal.storage)
    assert np.array_equal(counts(experiment), counts(other))
    experiment.ask({"C": 0})
    assert experiment.audit().ok


@pytest.mark.usefixtures("custom_policy")
def test_an_unregistered_policy_cannot_decide(monkeypatch):
    experiment = new_experiment(policy="in-order")
    experiment.ask({"C": 0})
    experiment.tell(1, {"Y": 1})
    monkeypatch.setattr(
        registry, "_POLICIES", {x: y for x, y in registry._POLICIES.items() if x != "in-order"}
    )
    opened = Experiment.open(experiment._journal.storage)
    assert len(opened.records()) == 1 and opened.tell(1, {"Z": 1}).values["Z"] == "1"
    with raises_code("unknown-policy", "in-order"):
        opened.ask({"C": 0})
    opened.revise(policy="ids", options={"samples": 10}, reason="go on without it")
    assert opened.ask({"C": 0}).id == 2


class FollowingPolicy(BayesianPolicy):
    """Policy that keeps the order of arrival, and decides at random."""

    def __init__(self, problem):
        super().__init__(problem)
        self.arrivals = Arrivals(problem)

    def choose(self, codes, arms, rng):  # noqa: ARG002
        arm = int(rng.choice(arms))
        return Choice(arm, one_hot(self.problem, arm), DecisionTrace("at random"))


@pytest.fixture
def following_policy(monkeypatch):
    monkeypatch.setattr(registry, "_POLICIES", dict(registry._POLICIES))
    register_policy("following")(FollowingPolicy)


def pieces(experiment):
    experiment.belief  # noqa: B018 - learns what has changed
    variables = experiment.problem.graph.variables
    found = []
    for piece in deciding_policy(experiment).arrivals.pieces():
        known = dict(zip(variables, piece.codes.tolist(), strict=True))
        text = " ".join(f"{name}{code}" for name, code in known.items() if code != -1)
        found.append(("+ " if piece.continues else "") + text)
    return found


@pytest.mark.usefixtures("following_policy")
@pytest.mark.parametrize("batch", [1, 64])
def test_data_arrive_in_the_order_of_the_events_that_told_them(monkeypatch, batch):
    monkeypatch.setattr(replay_module, "MIN_BATCH", batch)
    monkeypatch.setattr(snapshots, "FIRST_SNAPSHOT", 2)
    experiment = new_experiment(policy="following")
    for _ in range(6):
        experiment.ask({"C": 1}, allowed=["do()"])
    whole = {"X": 0, "W": 0, "Z": 0, "Y": 0}
    experiment.tell(3, {"Z": 1})
    experiment.tell(1, whole)
    experiment.import_records({name: ["0", "1"] for name in "CWXYZ"})
    experiment.tell(2, {"Z": 0, "Y": 0})
    experiment.tell(3, {"Y": 1})
    experiment.tell(4, whole)
    expected = [
        "C1 Z1", "C1 W0 X0 Y0 Z0", "C0 W0 X0 Y0 Z0", "C1 W1 X1 Y1 Z1",
        "C1 Y0 Z0", "+ C1 Y1 Z1", "C1 W0 X0 Y0 Z0",
    ]  # fmt: skip
    assert pieces(experiment) == expected
    experiment.amend(1, {"Z": 1}, "typo")  # keeps its place
    experiment.amend(2, {"Z": None}, "not measured")
    experiment.amend(3, {"Z": None}, "not measured")  # its first piece drops out
    experiment.erase(4, "right")
    experiment.tell(5, {"Y": 1})
    experiment.withdraw(6, "left")
    expected = [
        "C1 W0 X0 Y0 Z1", "C0 W0 X0 Y0 Z0", "C1 W1 X1 Y1 Z1", "C1 Y0", "C1 Y1", "C1 Y1",
    ]  # fmt: skip
    assert pieces(experiment) == expected
    storage = experiment._journal.storage
    assert pieces(Experiment.open(storage)) == expected
    experiment.ask({"C": 1})
    assert storage.snapshot("w").number == experiment.head.number - 1
    assert pieces(Experiment.open(storage)) == expected
    experiment.amend(2, {"Z": 1}, "found")  # arrives now
    assert pieces(Experiment.open(storage)) == pieces(experiment) == [*expected, "+ C1 Y0 Z1"]
