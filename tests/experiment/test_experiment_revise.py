"""Revisions: past records are learned again by label, and no label is lost."""

import numpy as np
import pytest
from support.errors import raises_code
from support.experiments import WARD, new_experiment, play_experiment

from dowise import Belief, CausalGraph, Problem
from dowise.errors import DowiseWarning
from dowise.experiment.experiment import Experiment
from dowise.problem.record import past_record

GRAPH = "C -> X -> Z -> Y; C -> Y; W -> Y"


def ward(text=GRAPH, non_manipulable="Z", reward="Y", **more):
    return Problem(CausalGraph.parse(text), reward, "C", non_manipulable, arms="all", **more)


def parameters_of(problem, cases):
    belief = Belief(problem)
    for case in cases:
        values = {name: label for name, label in case.known.items() if name in problem.domains}
        if case.values:
            belief.learn(past_record(problem, case.arm, values))
    return belief.parameters


@pytest.fixture
def run():
    experiment = new_experiment()
    for i in range(8):
        asked = experiment.ask({"C": i % 2}, allowed=["do(X=1)"] if i % 4 == 3 else None)
        seen = {"X": i % 2, "W": i // 2 % 2, "Z": i // 4, "Y": int(i < 3)} | dict(asked.arm)
        experiment.tell(asked.id, seen)
    return experiment


@pytest.mark.parametrize(
    "problem",
    [
        ward(f"{GRAPH}; X -> Y"),
        ward(f"{GRAPH}; V -> Y"),  # V is new, and missing in all records
        ward("C -> X -> Z -> Y; C -> Y; W", non_manipulable=("Z", "X")),  # X was set, and still is
        ward(domains={"Z": ("0", "1", "2")}),
        ward(non_manipulable=()),
    ],
)
def test_past_records_are_learned_under_the_new_problem(run, problem):
    run.revise(problem, reason="new evidence")
    assert run.problem == problem
    assert np.array_equal(run.belief.parameters, parameters_of(problem, run.records()))
    again = Experiment.open(run._journal.storage)
    assert again.problem == problem
    assert np.array_equal(again.belief.parameters, run.belief.parameters)
    again.ask({"C": 1})
    assert again.audit().ok


def test_arms_on_dropped_variables_are_left_out(run):
    smaller = ward("C -> X -> Z -> Y; C -> Y")
    on_w = [case for case in run.records() if "W" in case.asked]
    others = [case for case in run.records() if "W" not in case.asked]
    assert on_w and others
    run.revise(smaller, reason="nobody records W")
    assert np.array_equal(run.belief.parameters, parameters_of(smaller, others))
    left_out = run.status({"C": 0}, evidence=False).left_out
    assert sum(left_out.values()) == len(on_w)
    assert all("set W, which is no longer recorded" in why for why in left_out)
    run.revise(WARD, reason="they do after all")
    assert np.array_equal(run.belief.parameters, parameters_of(WARD, run.records()))


def test_a_label_that_is_lost_is_refused_with_the_decisions_named(run):
    run.tell(run.ask({"C": 0}, allowed=["do()"]).id, {"Z": None})
    head = run.head
    with raises_code("unknown-value", "X=1", "0, high"):
        run.revise(ward(domains={"X": ("0", "high")}), reason="new words")
    with raises_code("unknown-value", "C=1", "(2, 4, 6, 8)"):
        run.revise(ward(domains={"C": ("0", "2")}), reason="new words")
    assert run.head == head and run.problem == WARD


def test_a_missing_label_of_imported_records_is_refused():
    experiment = new_experiment()
    experiment.import_records({"C": ["0"], "X": ["0"], "Z": ["0"], "Y": ["1"], "W": ["0"]})
    with raises_code("unknown-value", "event 2"):
        experiment.revise(ward(domains={"Y": ("0", "2")}), reason="new words")
    assert experiment.head.number == 2
    bigger = ward(f"{GRAPH}; X -> Y")
    experiment.revise(bigger, reason="an arrow more")
    twin = Belief(bigger)
    twin.update("do()", {"C": 0, "X": 0, "Z": 0, "Y": 1, "W": 0})
    assert np.array_equal(experiment.belief.parameters, twin.parameters)


def test_only_the_same_policy_keeps_its_options(run):
    run.revise(options={"delta": 0.1}, reason="wider")
    assert run.events()[-1].payload["options"]["samples"] == 50
    assert run.events()[-1].payload["options"]["delta"] == 0.1
    run.revise(policy="ts", reason="to compare")
    assert run.policy == "ts"
    options = {"prior": 1.0, "propensity_samples": 1000, "graph_free_prior": 0.0}
    assert run.events()[-1].payload["options"] == options
    run.revise(policy="ids", reason="back")
    assert run.events()[-1].payload["options"]["samples"] == 1000


def test_a_new_prior_applies_to_all_records(run):
    run.revise(options={"prior": {"Y": [5.0, 1.0]}}, reason="what the literature says")
    assert np.array_equal(
        run.belief.parameters - Belief(WARD, {"Y": [5.0, 1.0]}).parameters,
        parameters_of(WARD, run.records()) - Belief(WARD).parameters,
    )


def test_a_revision_without_changes_records_nothing(run):
    head = run.head
    run.revise(WARD, "ids", {"samples": 50}, "no change")
    run.revise(reason="none at all")
    assert run.head == head
    for reason in ("", "  ", None):
        with raises_code("missing-value"):
            run.revise(policy="ts", reason=reason)
    with raises_code("unknown-policy", "'idz'"):
        run.revise(policy="idz", reason="typo")
    with raises_code("unknown-option", "'sample'"):
        run.revise(options={"sample": 3}, reason="typo")
    assert run.head == head


def test_earlier_decisions_keep_their_configuration(run):
    first = run.ask({"C": 0}, "r9")
    run.revise(ward("C -> X -> Z -> Y; C -> Y"), "ucb", reason="simpler")
    again = run.ask({"C": 0}, "r9")
    assert again.arm == first.arm and len(again.probabilities) == len(WARD.arms)
    assert run.explain(first.id).policy == "ids"
    run.ask({"C": 1})
    assert run.audit().ok
    with raises_code("request-conflict", "'r9'"):
        run.ask({"C": 1}, "r9")


def test_a_pending_decision_continues_under_the_new_problem():
    experiment = new_experiment()
    experiment.ask({"C": 0}, allowed=["do(X=1)"])
    bigger = ward(f"{GRAPH}; V -> Y")
    experiment.revise(bigger, reason="V matters")
    experiment.tell(1, {"V": 1, "Z": 0, "W": 0, "Y": 1})
    twin = Belief(bigger)
    twin.update("do(X=1)", {"C": 0, "V": 1, "Z": 0, "W": 0, "Y": 1})
    assert np.array_equal(experiment.belief.parameters, twin.parameters)


def test_a_value_of_the_new_reward_closes_a_pending_decision():
    experiment = new_experiment()
    experiment.ask_many([{"C": 0}] * 2, allowed=["do(X=1)"])
    experiment.tell(1, {"Z": 1})
    later = ward("C -> X -> Z; C -> Z; W -> Z; Y", (), "Z")
    experiment.revise(later, reason="Z is what we want")
    assert [case.id for case in experiment.pending()] == [2]
    assert experiment.records() == Experiment.open(experiment._journal.storage).records()
    experiment.ask({"C": 0})
    assert experiment.audit().ok


def test_an_arm_that_set_the_new_reward_is_left_out():
    experiment = new_experiment()
    experiment.ask({"C": 0}, allowed=["do(W=1)"])
    experiment.tell(1, {"X": 0, "Y": 1, "Z": 1})
    experiment.revise(ward("C -> X; C -> W; X -> W; Y; Z", (), "W"), reason="W is what we want")
    (reason,) = experiment.status({"C": 0}, evidence=False).left_out
    assert reason == "do(W=1) set W, which is the reward now"


@pytest.mark.parametrize("policy", ["ucb", "kl-ucb", "bernoulli-ts", "z2-ts", "ids"])
def test_records_without_a_new_context_variable_are_left_out(policy):
    experiment = play_experiment(6, policy=policy)
    graph = CausalGraph.parse(f"{GRAPH}; D -> Y")
    experiment.revise(Problem(graph, "Y", ("C", "D"), "Z", arms="all"), reason="D is seen too")
    status = experiment.status({"C": 1, "D": 0}, evidence=False)
    assert sum(status.left_out.values()) >= 4  # those with an outcome
    asked = experiment.ask({"C": 1, "D": 0})
    experiment.tell(asked.id, {"Y": 1})
    assert experiment.audit().ok


def test_an_import_during_a_revision_is_refused(monkeypatch):
    from dowise.experiment import experiment as experiment_module

    experiment = new_experiment()
    checked = experiment_module.import_payload

    def revise_during(*arguments):
        payload = checked(*arguments)
        Experiment.open(experiment._journal.storage).revise(
            ward(f"{GRAPH}; X -> Y"), reason="meanwhile"
        )
        return payload

    monkeypatch.setattr(experiment_module, "import_payload", revise_during)
    with raises_code("conflict", "revised"):
        experiment.import_records({"C": ["0"], "Y": ["1"]})
    assert experiment.head.number == 2


def test_forbidden_settings_are_not_chosen_and_pending_ones_are_named():
    experiment = new_experiment()
    first = experiment.ask({"C": 0}, allowed=["do(X=1)"])
    second = experiment.ask({"C": 0}, allowed=["do(W=0, X=1)"])
    third = experiment.ask({"C": 0}, allowed=["do(X=0)"])
    stricter = Problem(WARD.graph, "Y", "C", "Z", arms="all", forbidden=["do(X=1)"])
    with pytest.warns(
        DowiseWarning, match=r"2 pending decisions are on arms .* \(1, 2\): withdraw"
    ):
        experiment.revise(stricter, reason="side effects")
    again = Experiment.open(experiment._journal.storage)
    assert again.problem == stricter and again.problem.forbidden == stricter.forbidden
    before = again.belief.parameters.copy()
    again.tell(first.id, {"W": 0, "Z": 1, "Y": 1})  # it was carried out, and is learned from
    assert (again.belief.parameters != before).any()
    again.withdraw(second.id, reason="not any more")
    again.tell(third.id, {"W": 0, "Z": 1, "Y": 1})
    assert again.import_records({"arm": ["do(X=1)"], "C": [0], "W": [0], "Z": [1], "Y": [1]}) == 1
    for _ in range(5):
        assert again.ask({"C": 1}).arm.get("X") != "1"
    with raises_code("unknown-arm", "do(X=1)"):
        again.ask({"C": 1}, allowed=["do(X=1)"])
    assert again.audit().ok


def test_the_last_prior_of_the_problem_or_the_policy_counts():
    known = Problem(WARD.graph, "Y", "C", "Z", arms="all", prior={"W": [3, 1]})
    experiment = new_experiment(known)
    assert experiment.options["prior"] == {"W": [3.0, 1.0]}
    again = Experiment.open(experiment._journal.storage)
    assert again.problem == known
    assert np.array_equal(again.belief.parameters, Belief(known).parameters)
    again.revise(options={"prior": 2.0}, reason="less")  # an option of the policy
    assert (again.belief.parameters == 2).all()
    again.revise(Problem(WARD.graph, "Y", "C", "Z", prior={"W": [3, 1]}), reason="fewer arms")
    assert (again.belief.parameters == 2).all()  # the prior of the problem is the same
    again.revise(Problem(WARD.graph, "Y", "C", "Z", prior=0.5), reason="much less")
    assert (again.belief.parameters == 0.5).all() and again.options["prior"] == 0.5
    again.revise(WARD, options={"prior": 4.0}, reason="both")
    assert (again.belief.parameters == 4).all()
    again.ask({"C": 1})
    assert again.audit().ok


def test_queries_use_the_prior_of_the_problem_if_the_policy_has_no_belief():
    experiment = new_experiment(Problem(WARD.graph, "Y", "C", "Z", prior=0.5), policy="ucb")
    assert (experiment.belief.parameters == 0.5).all() and "prior" not in experiment.options
