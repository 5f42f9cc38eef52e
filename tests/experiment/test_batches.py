"""Decisions that are asked for together: what is imagined, and that the audit imagines the same."""

import pytest
from support.experiments import WARD, journal, new, played, rehash, saying

from dowise._core.rng import stream
from dowise.policies.bayesian import BayesianPolicy

CONTEXTS = [{"C": 0}, {"C": 1}, {"C": 0}, {"C": 0}, {"C": 1}]


def asked_events(experiment):
    return [event for event in experiment.events() if event.kind == "asked"]


def test_a_batch_is_decided_as_if_outcomes_were_known():
    experiment = played(6)
    asked = experiment.ask_many(CONTEXTS)
    assert [one.imagined for one in asked] == [0, 1, 2, 3, 4]
    policy = experiment._journal.read().config.make_policy()
    policy.knowledge.belief = experiment.belief
    fantasy, decided = None, []
    for one in asked:
        rng = stream(7, one.id)
        decided.append((policy if fantasy is None else fantasy).decide(one.context, rng))
        fantasy = fantasy or policy.copy()
        fantasy.fantasize(decided[-1].arm, one.context, stream(7, one.id, 2**32))
    for one, decision in zip(asked, decided, strict=True):
        assert one.arm == decision.arm and one.reason == decision.reason
        assert (one.probabilities == decision.probabilities).all()
    alone = [policy.decide(one.context, stream(7, one.id)).reason for one in asked]
    assert alone[0] == asked[0].reason and alone[1:] != [one.reason for one in asked[1:]]
    assert experiment.audit().ok


def test_nothing_imagined_is_learned_or_kept():
    experiment = played(6)
    before = experiment.belief.as_dict()
    experiment.ask_many(CONTEXTS)
    assert experiment.belief.as_dict() == before
    next_one = experiment.ask({"C": 0})
    assert next_one.imagined == 0  # only what was asked for together
    experiment.tell(7, {"X": 1, "Z": 1, "Y": 1, "W": 0} | dict(experiment.case(7).arm))
    experiment.ask_many(CONTEXTS)
    audit = experiment.audit()
    assert audit.ok and not audit.not_derivable and not audit.made_elsewhere


@pytest.mark.parametrize("policy", ["ts", "ucb", "bernoulli-ts"])
def test_other_policies_imagine_nothing(policy):
    experiment = played(4, policy=policy, options={})
    experiment.ask_many(CONTEXTS)
    assert all("imagined" not in event.payload for event in asked_events(experiment))
    assert experiment.audit().ok


def test_batches_of_journals_from_before_are_audited_as_they_were(monkeypatch):
    with monkeypatch.context() as then:
        then.setattr("dowise.experiment.replay.uses_fantasies", lambda _: False)
        experiment = played(4)
        asked = experiment.ask_many(CONTEXTS)
    assert all("imagined" not in event.payload for event in asked_events(experiment))
    assert experiment.audit().ok
    assert [one.reason for one in experiment.ask_many(CONTEXTS)] != [one.reason for one in asked]
    assert experiment.audit().ok


@pytest.mark.parametrize("said", [0, 1, 3, 99, -1, "2", True])
def test_a_batch_that_says_otherwise_is_found(said):
    experiment = played(4)
    experiment.ask_many(CONTEXTS)
    events = journal(experiment)
    place = len(events) - 3  # the third of the batch, before which there are two
    events[place] = saying(events[place], imagined=said)
    rehash(events, place)
    finding = experiment.audit().finding
    assert finding is not None and finding.event == place + 1


def test_an_erased_decision_of_a_batch_makes_the_later_ones_underivable():
    experiment = played(4)
    first, *later = experiment.ask_many(CONTEXTS)
    experiment.erase(first.id, "a right")
    audit = experiment.audit()
    assert audit.ok and {*audit.not_derivable} <= {one.id for one in later}
    assert later[-1].id in audit.not_derivable


def test_what_nothing_is_learned_from_is_not_imagined():
    experiment = played(4, learn_restricted=False)
    asked = experiment.ask_many([{"C": 0}] * 3, allowed=["do(X=1)", "do(X=0)"])
    policy = experiment._journal.read().config.make_policy()
    policy.knowledge.belief = experiment.belief
    arms = [WARD.arms[i] for i in experiment.events()[-1].payload["allowed"]]
    alone = [policy.decide({"C": 0}, stream(7, one.id), arms).reason for one in asked]
    assert [one.reason for one in asked] == alone
    assert experiment.audit().ok


def test_a_request_is_answered_again_with_the_same_batch():
    experiment = played(4)
    first = experiment.ask_many(CONTEXTS, "r")
    again = experiment.ask_many(CONTEXTS, "r")
    assert [(one.id, one.arm, one.imagined) for one in first] == [
        (one.id, one.arm, one.imagined) for one in again
    ]


def test_an_explanation_says_it():
    experiment = played(4)
    asked = experiment.ask_many(CONTEXTS)
    found = experiment.explain(asked[2].id)
    assert "the policy imagined outcomes of 2 decisions before it in the batch" in str(found)
    assert found.as_dict()["known"]["imagined"] == 2
    assert "imagined" not in str(experiment.explain(asked[0].id))


def test_the_policy_is_copied_once_per_batch(monkeypatch):
    made, copy = [], BayesianPolicy.copy

    def counting(policy):
        made.append(policy)
        return copy(policy)

    monkeypatch.setattr(BayesianPolicy, "copy", counting)
    experiment = played(4)
    experiment.ask_many(CONTEXTS)
    assert len(made) == 1
    experiment.ask_many(CONTEXTS)
    assert len(made) == 2
    assert experiment.audit().ok and len(made) == 4


def test_a_plan_that_would_be_over_asks_for_nothing():
    from dowise import CausalGraph, DowiseError, Problem

    problem = Problem(CausalGraph.parse("X -> Y"), "Y")
    experiment = new(problem, "bayes-optimal", {"horizon": 3})
    with pytest.raises(DowiseError, match="the horizon of 3 rounds is over"):
        experiment.ask_many([None] * 4)
    assert not experiment.records()
    assert [one.figures["rounds_left"] for one in experiment.ask_many([None] * 3)] == [3, 2, 1]
    assert experiment.audit().ok
