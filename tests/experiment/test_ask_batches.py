"""Batches: imagined outcomes, and the audit of them."""

import pytest
from support.errors import raises_code
from support.experiments import (
    WARD,
    new_experiment,
    play_experiment,
    rehash,
    stored_events,
    with_payload,
)

from dowise._core.rng import stream
from dowise.policies.bayesian import BayesianPolicy

CONTEXTS = [{"C": 0}, {"C": 1}, {"C": 0}, {"C": 0}, {"C": 1}]


def asked_events(experiment):
    return [event for event in experiment.events() if event.kind == "asked"]


def test_later_decisions_imagine_the_outcomes_of_earlier_ones():
    experiment = play_experiment(6)
    asked = experiment.ask_many(CONTEXTS)
    assert [decision.imagined for decision in asked] == [0, 1, 2, 3, 4]
    policy = experiment._journal.read().config.make_policy()
    policy.knowledge.belief = experiment.belief
    fantasy, decided = None, []
    for decision in asked:
        rng = stream(7, decision.id)
        decided.append((policy if fantasy is None else fantasy).decide(decision.context, rng))
        fantasy = fantasy or policy.copy()
        fantasy.fantasize(decided[-1].arm, decision.context, stream(7, decision.id, 2**32))
    for live, decision in zip(asked, decided, strict=True):
        assert live.arm == decision.arm and live.reason == decision.reason
        assert (live.probabilities == decision.probabilities).all()
    alone = [policy.decide(decision.context, stream(7, decision.id)).reason for decision in asked]
    assert alone[0] == asked[0].reason and alone[1:] != [decision.reason for decision in asked[1:]]
    assert experiment.audit().ok


def test_imagined_outcomes_are_not_learned():
    experiment = play_experiment(6)
    before = experiment.belief.as_dict()
    experiment.ask_many(CONTEXTS)
    assert experiment.belief.as_dict() == before
    assert experiment.ask({"C": 0}).imagined == 0  # of the same batch only
    experiment.tell(7, {"X": 1, "Z": 1, "Y": 1, "W": 0} | dict(experiment.case(7).arm))
    experiment.ask_many(CONTEXTS)
    audit = experiment.audit()
    assert audit.ok and not audit.not_derivable and not audit.made_elsewhere


@pytest.mark.parametrize("policy", ["ts", "ucb", "bernoulli-ts"])
def test_other_policies_imagine_nothing(policy):
    experiment = play_experiment(4, policy=policy, options={})
    experiment.ask_many(CONTEXTS)
    assert all("imagined" not in event.payload for event in asked_events(experiment))
    assert experiment.audit().ok


def test_batches_without_imagined_outcomes_are_audited(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("dowise.experiment.replay.uses_fantasies", lambda _: False)
        experiment = play_experiment(4)
        asked = experiment.ask_many(CONTEXTS)
    assert all("imagined" not in event.payload for event in asked_events(experiment))
    assert experiment.audit().ok
    assert [decision.reason for decision in experiment.ask_many(CONTEXTS)] != [
        decision.reason for decision in asked
    ]
    assert experiment.audit().ok


@pytest.mark.parametrize("number", [0, 1, 3, 99, -1, "2", True])
def test_an_audit_finds_a_wrong_number_of_imagined_outcomes(number):
    experiment = play_experiment(4)
    experiment.ask_many(CONTEXTS)
    events = stored_events(experiment)
    place = len(events) - 3  # the third of the batch
    events[place] = with_payload(events[place], imagined=number)
    rehash(events, place)
    finding = experiment.audit().finding
    assert finding is not None and finding.event == place + 1


def test_decisions_after_an_erased_one_of_a_batch_are_not_derivable():
    experiment = play_experiment(4)
    first, *later = experiment.ask_many(CONTEXTS)
    experiment.erase(first.id, "a right")
    audit = experiment.audit()
    assert audit.ok and {*audit.not_derivable} <= {decision.id for decision in later}
    assert later[-1].id in audit.not_derivable


def test_outcomes_that_are_not_learned_are_not_imagined():
    experiment = play_experiment(4, learn_restricted=False)
    asked = experiment.ask_many([{"C": 0}] * 3, allowed=["do(X=1)", "do(X=0)"])
    policy = experiment._journal.read().config.make_policy()
    policy.knowledge.belief = experiment.belief
    arms = [WARD.arms[i] for i in experiment.events()[-1].payload["allowed"]]
    alone = [policy.decide({"C": 0}, stream(7, decision.id), arms).reason for decision in asked]
    assert [decision.reason for decision in asked] == alone
    assert experiment.audit().ok


def test_an_explanation_names_the_imagined_outcomes():
    experiment = play_experiment(4)
    asked = experiment.ask_many(CONTEXTS)
    explanation = experiment.explain(asked[2].id)
    assert "the policy imagined outcomes of 2 decisions before it in the batch" in str(explanation)
    assert explanation.as_dict()["known"]["imagined"] == 2
    assert "imagined" not in str(experiment.explain(asked[0].id))


def test_the_policy_is_copied_once_per_batch(monkeypatch):
    copies, copy = [], BayesianPolicy.copy

    def counting(policy):
        copies.append(policy)
        return copy(policy)

    monkeypatch.setattr(BayesianPolicy, "copy", counting)
    experiment = play_experiment(4)
    experiment.ask_many(CONTEXTS)
    assert len(copies) == 1
    experiment.ask_many(CONTEXTS)
    assert len(copies) == 2
    assert experiment.audit().ok and len(copies) == 4


def test_a_batch_beyond_the_horizon_is_refused():
    from dowise import CausalGraph, Problem

    problem = Problem(CausalGraph.parse("X -> Y"), "Y")
    experiment = new_experiment(problem, "bayes-optimal", {"horizon": 3})
    with raises_code("horizon-over"):
        experiment.ask_many([None] * 4)
    assert not experiment.records()
    asked = experiment.ask_many([None] * 3)
    assert [decision.figures["rounds_left"] for decision in asked] == [3, 2, 1]
    assert experiment.audit().ok
