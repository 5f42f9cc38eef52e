"""Experiments with the policy "best" play every arm once first, from a pooled prior."""

from collections import Counter

import numpy as np
import pytest
from support.errors import raises_code
from support.experiments import WARD

from dowise import CausalGraph, Experiment, Problem, make_policy
from dowise.environments import make_environment
from dowise.experiment.config import ExperimentConfig
from dowise.experiment.rehearsal import rehearse
from dowise.experiment.storage import MemoryStorage

CHAIN = Problem(CausalGraph.parse("X -> Y; Z -> Y; C -> Y"), "Y", "C", arms="all")
"""A problem with nine arms and a context."""
MANY = Problem(CausalGraph.parse("A -> Y; B -> Y; C -> Y"), "Y", arms="all")
"""A problem with 27 arms."""


def create(problem=CHAIN, policy="best", options=None, seed=3, **more):
    return Experiment.create(MemoryStorage(), "w", problem, policy, options, seed, **more)


def play(experiment, rounds, **request):
    """Ask and tell; return the decisions."""
    decisions = []
    for number in range(rounds):
        decision = experiment.ask({"C": number % 2}, **request)
        values = {"X": 0, "Z": 1, "Y": number % 2} | dict(decision.arm)
        experiment.tell(decision.id, values)
        decisions.append(decision)
    return decisions


def is_trial(decision):
    return "untried" in decision.figures


def test_every_arm_is_played_once_first():
    experiment, arms = create(), len(CHAIN.arms)
    decisions = play(experiment, arms + 2)
    assert {decision.arm for decision in decisions[:arms]} == {*CHAIN.arms}
    assert [is_trial(decision) for decision in decisions] == [True] * arms + [False] * 2
    tried = set()
    for decision in decisions[:arms]:
        left = [arm not in tried for arm in CHAIN.arms]
        assert decision.probabilities.tolist() == (np.array(left) / sum(left)).tolist()
        assert decision.reason.startswith("not played yet")
        tried.add(decision.arm)
    assert experiment.audit().ok and not experiment.audit().made_elsewhere


def test_the_order_follows_the_seed():
    orders = {tuple(map(str, (d.arm for d in play(create(seed=seed), 9)))) for seed in range(5)}
    assert len(orders) == 5
    same = [str(decision.arm) for decision in play(create(seed=2), 9)]
    assert tuple(same) in orders


def test_the_first_arm_is_drawn_evenly():
    seeds = 450
    firsts = Counter(str(create(seed=seed).ask({"C": 0}).arm) for seed in range(seeds))
    expected = seeds / len(CHAIN.arms)
    chi2 = sum((firsts[str(arm)] - expected) ** 2 / expected for arm in CHAIN.arms)
    assert chi2 < 26.1  # exceeded with probability .001 if arms are even


def test_pending_decisions_count_and_a_batch_plays_different_arms():
    experiment = create()
    first = experiment.ask({"C": 0})
    batch = experiment.ask_many([{"C": 0}] * 11)
    arms = [first.arm, *(decision.arm for decision in batch)]
    assert {*arms[:9]} == {*CHAIN.arms}
    assert [is_trial(decision) for decision in batch] == [True] * 8 + [False] * 3
    assert experiment.audit().ok


def test_a_batch_goes_on_with_imagined_outcomes():
    experiment = create(MANY, "ids", {"samples": 20, "try_all": True})
    batch = experiment.ask_many([None] * 30)
    assert {*(decision.arm for decision in batch[:27])} == {*MANY.arms}
    assert [decision.imagined for decision in batch] == [0] * 27 + [27, 28, 29]
    audit = experiment.audit()
    assert audit.ok and not audit.made_elsewhere


def test_a_withdrawn_decision_does_not_count():
    experiment = create()
    first = experiment.ask({"C": 0})
    experiment.withdraw(first.id, "left")
    assert {decision.arm for decision in play(experiment, 9)} == {*CHAIN.arms}
    assert experiment.audit().ok


def test_the_arm_that_was_played_counts():
    experiment = create()
    first = experiment.ask({"C": 0})
    other = next(arm for arm in CHAIN.arms if arm != first.arm)
    experiment.tell(first.id, {"Y": 1}, played=other)
    later = [decision.arm for decision in play(experiment, 8)]
    assert first.arm in later and other not in later


def test_imported_records_with_a_reward_count():
    past = {"arm": ["do(X=0)", "do(X=1)", "do()"], "C": [0, 1, 0], "X": [0, 1, 0], "Z": [0] * 3,
            "Y": [1, None, 0]}  # fmt: skip
    experiment = create(records=past)
    left = {arm for arm in CHAIN.arms if str(arm) not in ("do(X=0)", "do()")}
    decisions = play(experiment, len(left) + 1)
    assert {decision.arm for decision in decisions[:-1]} == left
    assert not is_trial(decisions[-1]) and experiment.audit().ok


def test_restrictions_are_respected():
    experiment = create()
    decisions = play(experiment, 5, allowed=["do(X=0)", "do(X=1)", "do(Z=1)"])
    assert [is_trial(decision) for decision in decisions] == [True] * 3 + [False] * 2
    decisions = play(experiment, 3, forbid=["do(X=0)", "do(X=1)", "do()"])
    assert [is_trial(decision) for decision in decisions] == [True, False, False]
    assert str(decisions[0].arm) == "do(Z=0)" and len(decisions[0].allowed) == 2
    assert experiment.audit().ok


def test_erasing_a_trial_leaves_later_decisions_valid():
    experiment = create()
    play(experiment, 4)
    experiment.erase(2, "asked to")
    play(experiment, 8)
    assert experiment.audit().ok


def test_explanation_history_and_evaluation_of_trials():
    experiment = create(options={"floor": 0.2})
    decisions = play(experiment, 14)
    explanation = experiment.explain(decisions[0].id)
    assert "not played yet" in str(explanation)
    assert [row["probability"] for row in explanation.rows()] == [1 / 9] * 9
    assert len(experiment.history().outcomes)
    for target in ("ts", "best", "do(X=1)"):
        assert experiment.evaluate(target).as_dict()["target"]


def test_it_is_on_for_few_arms_and_can_be_turned_off():
    options = create().options
    assert options["prior"] == "pooled" and options["try_all"] is True
    off = create(options={"try_all": False})
    assert not is_trial(off.ask({"C": 0})) and off.options["try_all"] is False
    assert create(MANY).options["try_all"] is False
    on = create(MANY, options={"try_all": True})
    assert is_trial(on.ask())


@pytest.mark.parametrize("policy", ["ids", "ts", "commit-kg", "ucb", "random"])
def test_it_never_applies_to_named_policies(policy):
    experiment = create(policy=policy)
    assert "try_all" not in experiment.options and not is_trial(experiment.ask({"C": 0}))
    assert experiment.options.get("prior", 1.0) == 1.0


def test_invalid_values_are_refused():
    with raises_code("invalid-type", "try_all"):
        create(options={"try_all": "no"})
    with raises_code("unknown-option", "try_all"):
        create(policy="ts", options={"try_all": True})
    with raises_code("invalid-type", "try_all='False'", "true or false"):
        create(options={"try_all": "False"})  # as of a command


@pytest.mark.parametrize("policy", ["best", "commit-kg"])
@pytest.mark.parametrize("option", ["try_al", "tryall"])
def test_a_misspelt_option_is_corrected(policy, option):
    with raises_code("unknown-option", repr(policy), "did you mean 'try_all'?", ", try_all)"):
        create(policy=policy, options={option: False})


def test_the_default_policy_with_flat_rows_and_no_trials_is_commit_kg():
    flat = create(options={"prior": "flat", "graph_free_prior": 0, "try_all": False})
    named = create(policy="commit-kg", options={"count_pending": False})
    for one, other in zip(play(flat, 12), play(named, 12), strict=True):
        assert one.arm == other.arm and one.reason == other.reason
        assert one.probabilities.tolist() == other.probabilities.tolist()
        assert one.figures == other.figures


def test_a_stated_prior_is_kept():
    graph = CHAIN.graph
    assert create(Problem(graph, "Y", "C", prior=2)).options["prior"] == 2.0
    assert create(Problem(graph, "Y", "C", prior="flat")).options["prior"] == 1.0
    assert create(Problem(graph, "Y", "C", prior="pooled")).options["prior"] == "pooled"
    named = create(Problem(graph, "Y", "C", prior={"X": [3, 1]}))
    assert named.options["prior"] == "pooled"
    assert named.view().belief.posterior.is_pooled
    assert create(options={"prior": 0.5}).options["prior"] == 0.5


def test_revisions_keep_the_plan():
    experiment = create()
    play(experiment, 2)
    experiment.revise(options={"floor": 0.1}, reason="to evaluate")
    options = experiment.options
    assert (options["prior"], options["try_all"], options["floor"]) == ("pooled", True, 0.1)
    experiment.revise(problem=Problem(CHAIN.graph, "Y", "C", arms="all", prior=2), reason="known")
    assert experiment.options["prior"] == 2.0
    experiment.revise(problem=CHAIN, reason="not known")
    assert experiment.options["prior"] == "pooled"
    experiment.revise(policy="ts", reason="simpler")
    assert "try_all" not in experiment.options and experiment.options["prior"] == 1.0
    experiment.revise(policy="best", reason="again")
    tried = {decision.arm for decision in play(experiment, 7)} | {
        case.arm for case in experiment.records()[:2]
    }
    assert tried == {*CHAIN.arms} and experiment.audit().ok


def test_a_copy_of_the_settings_makes_the_same_experiment():
    first = create()
    second = create(policy=first.policy, options=first.options)
    assert second.options == first.options
    assert second.ask({"C": 0}).arm == first.ask({"C": 0}).arm
    first.warm_up()


def test_journals_without_the_option_go_on_as_they_began():
    data = create(policy="commit-kg").view().config.to_json()
    config = ExperimentConfig.from_json(data)
    assert not config.tries_all and config.options["prior"] == 1.0
    config = config.with_changes(options={"floor": 0.1})
    assert not config.tries_all and config.options["prior"] == 1.0


def test_a_policy_named_with_the_option_belongs_to_whoever_has_it():
    with raises_code("unknown-option", "try_all"):
        make_policy("commit-kg", CHAIN, try_all=True)


def test_rehearsals_try_all_and_draw_worlds_from_the_pooled_prior():
    rehearsal = rehearse(WARD, 3, 1, looks=1)
    assert rehearsal.prior == "pooled" and rehearsal.options["try_all"] is True
    named = rehearse(WARD, 3, 1, "ts", looks=1)
    assert named.prior == 1.0 and "try_all" not in named.options


def test_a_live_experiment_in_a_world():
    world = make_environment(CHAIN, 5)
    experiment, rng = create(), np.random.default_rng(1)
    for _ in range(12):
        context = world.draw_context(rng)
        decision = experiment.ask(context)
        experiment.tell(decision.id, world.play(decision.arm, context, rng))
    assert {case.arm for case in experiment.records()[:9]} == {*CHAIN.arms}
    assert experiment.audit().ok
