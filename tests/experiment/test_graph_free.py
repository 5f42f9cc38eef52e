"""The graph-free hypothesis in live experiments: order of arrival, status, older journals."""

from math import log

import numpy as np
import pytest

from dowise import Belief, Experiment, Problem, load_problem, make_environment
from dowise.experiment import Explanation, Status
from dowise.experiment.config import ExperimentConfig
from dowise.experiment.storage import MemoryStorage

PROBLEM = load_problem("task2")


def predicted_ratio(told):
    """Σ log P_arm(y | past) / P_graph(y | past) by the definition; `told` has each tell in order.

    The past of a reward is everything told before it, but the other values of its own decision.
    """
    known, counts, total = {}, {}, 0.0
    for number, arm, context, values in told:
        before = known.pop(number, {})
        if "Y" in values:
            belief = Belief(PROBLEM, "pooled")
            for other_arm, outcome in known.values():
                belief.update(other_arm, outcome)
            y = int(values["Y"])
            by_graph = belief.mean_distributions(context)[PROBLEM.arm_index(arm), y]
            seen = counts.setdefault((str(arm), context["C"]), [1, 1])
            total += log(seen[y] / sum(seen)) - log(by_graph)
            seen[y] += 1
        outcome = before[1] | values if before else context | values
        known[number] = arm, outcome
    return total


@pytest.fixture(scope="module")
def played():
    """An experiment with outcomes in pieces and out of order, and its tells in order."""
    storage = MemoryStorage()
    experiment = Experiment.create(storage, "ward", PROBLEM, seed=3)
    world, rng, told, waiting = make_environment(PROBLEM, seed=1), np.random.default_rng(0), [], []
    for t in range(24):
        context = world.draw_context(rng)
        decision = experiment.ask(context)
        outcome = world.play(decision.arm, context, rng)
        values = {k: str(v) for k, v in outcome.items() if k not in {"C", *decision.arm}}
        waiting.append((decision.id, decision.arm, context, values))
        if t % 3 == 2:  # the oldest one, in two pieces
            number, arm, context, values = waiting.pop(0)
            first = {"Y": values["Y"]} if t % 2 else {"Z": values["Z"]}
            rest = {k: v for k, v in values.items() if k not in first}
            for piece in (first, rest):
                experiment.tell(number, piece)
                told.append((number, arm, context, piece))
        elif t > 3:
            number, arm, context, values = waiting.pop()
            experiment.tell(number, values)
            told.append((number, arm, context, values))
    return storage, experiment, told


def test_the_ratio_follows_from_the_order_in_which_data_arrived(played):
    _, experiment, told = played
    ratio = experiment.status(evidence=False).graph_free_log_ratio
    assert ratio == pytest.approx(predicted_ratio(told), abs=1e-8)
    assert abs(ratio) > 0.1


def test_every_process_has_the_same_bits(played):
    storage, experiment, _ = played
    again = Experiment.open(storage, "ward").status(evidence=False)
    assert again.graph_free_log_ratio == experiment.status(evidence=False).graph_free_log_ratio
    assert experiment.audit().ok


def test_a_correction_is_scored_in_its_old_place():
    """As if the corrected value had been told in the first place."""
    experiments = []
    for corrects in (False, True):
        experiment = Experiment.create(
            MemoryStorage(), "ward", PROBLEM, options={"try_all": False}, seed=3
        )
        for t in range(12):
            decision = experiment.ask({"C": str(t % 2)})
            values = {v: str((t // 2) % 2) for v in ("X1", "X2", "Z", "Y") if v not in decision.arm}
            if t == 4 and corrects:
                experiment.tell(decision.id, values | {"Y": "1" if values["Y"] == "0" else "0"})
                experiment.amend(decision.id, {"Y": values["Y"]}, reason="typing error")
            else:
                experiment.tell(decision.id, values)
        experiments.append(experiment)
    first, second = (x.status(evidence=False) for x in experiments)
    assert first.graph_free_log_ratio == second.graph_free_log_ratio != 0


def test_status_and_explanation_state_the_ratio(played):
    _, experiment, _ = played
    status = experiment.status(evidence=False)
    assert status.prediction in str(status) and status.prediction.startswith("Y is predicted")
    assert Status.from_dict(status.as_dict(), PROBLEM).prediction == status.prediction
    explanation = experiment.explain(20)
    assert any(line.startswith("Y is predicted") for line in explanation.sentences())
    copied = Explanation.from_dict(explanation.as_dict(), PROBLEM)
    assert copied.graph_free_log_ratio == explanation.graph_free_log_ratio


def test_figures_come_from_the_mixture_and_the_belief_from_the_graph(played):
    _, experiment, _ = played
    (summary,) = experiment.status({"C": "1"}, evidence=False).contexts
    by_graph = experiment.belief.mean_rewards({"C": "1"})
    assert np.abs(summary.mean - by_graph).max() > 1e-4
    assert type(experiment.belief) is Belief


def test_named_policies_have_no_graph_free_hypothesis():
    experiment = Experiment.create(MemoryStorage(), "ward", PROBLEM, "ids", seed=1)
    status = experiment.status()
    assert status.graph_free_log_ratio is None and status.prediction == ""
    assert "graph_free_log_ratio" not in status.as_dict()


def test_journals_of_before_do_not_count_pending_plays():
    data = ExperimentConfig.from_user(PROBLEM, "commit-kg").to_json()
    del data["options"]["count_pending"], data["options"]["graph_free_prior"]
    policy = ExperimentConfig.from_json(data).make_policy()
    assert not policy.count_pending and policy.mixture is None


def test_best_with_flat_rows_and_the_graph_alone_begins_as_before():
    options = {"prior": "flat", "graph_free_prior": 0}
    config = ExperimentConfig.from_user(PROBLEM, "best", options)
    assert config.options["try_all"] is config.options["count_pending"] is False


def partly_told(decisions):
    """An experiment with that many decisions of which everything but the reward was told."""
    experiment = Experiment.create(MemoryStorage(), "ward", PROBLEM, "commit-kg", seed=1)
    for decision in experiment.ask_many([{"C": 0}] * decisions):
        experiment.tell(decision.id, {"X2": 1} if "X2" not in decision.arm else {"X1": 1})
    return experiment


def pending_plays(experiment):
    with experiment._journal.replayed() as (_, replay):
        return int(replay.policy.pending.in_context((0,)).sum())


@pytest.mark.parametrize("decisions", [1, 100])
def test_a_play_is_pending_until_its_reward_is_told(decisions):
    experiment = partly_told(decisions)
    reopened = Experiment.open(experiment._journal.storage)  # it learns many cases together
    assert pending_plays(experiment) == pending_plays(reopened) == decisions
    experiment.tell(1, {"Y": 1})
    reopened = Experiment.open(experiment._journal.storage)
    assert pending_plays(experiment) == pending_plays(reopened) == decisions - 1
    assert experiment.audit().ok


def test_a_withdrawn_play_is_not_pending_although_a_part_of_it_was_told():
    experiment = partly_told(1)
    assert pending_plays(experiment) == 1
    experiment.withdraw(1, "left")
    assert pending_plays(experiment) == 0


def test_an_exploring_play_is_not_repeated_although_a_part_of_it_was_told():
    problem = Problem("X -> Z -> Y; W -> Y", "Y", arms="all")
    experiment = Experiment.create(MemoryStorage(), "ward", problem, "commit-kg", seed=1)
    arms = set()
    for _ in range(4):
        decision = experiment.ask()
        told = {name: 0 for name in ("X", "Z", "W") if name not in decision.arm}
        experiment.tell(decision.id, told)
        arms.add(decision.arm)
    assert len(arms) == 4


def without_mediators(arm):
    """Thirty records that lack what the graph needs to learn from their reward."""
    rewards = [str(i % 2) for i in range(30)]
    return {"arm": [arm] * 30, "C": ["1"] * 30, "Y": rewards}


def test_rewards_that_the_graph_cannot_use_count_for_each_arm():
    experiment = Experiment.create(MemoryStorage(), "ward", PROBLEM, seed=1)
    experiment.import_records(without_mediators("do(X1=1)"))
    usage, status = experiment.counted(), experiment.status(evidence=False)
    assert usage.has_no_usable_reward and usage.arm_rewards == 30
    text = str(usage)
    assert "Y is NOT USED by the graph in any of 30 records" in text
    assert "30 rewards count for each arm by itself" in text and "nothing is known" not in text
    assert "Y was not used by the graph in 30 records" in str(status)
    assert status.graph_free_rewards == {"seen": 30, "unlearned": 30, "of_arms": 30}
    assert "the graph could not learn from 30 of 30 rewards" in status.prediction
    decision = experiment.ask({"C": "1"})
    explanation = experiment.explain(decision.id)
    assert status.prediction in explanation.sentences()
    again = Explanation.from_dict(explanation.as_dict(), PROBLEM)
    assert again.sentences() == explanation.sentences()
    assert Status.from_dict(status.as_dict(), PROBLEM).prediction == status.prediction
    experiment.tell(decision.id, {"Y": 1})
    (line,) = experiment.idle(decision.id)
    assert line.startswith("Y does not count yet for the graph: ")


@pytest.mark.parametrize(("policy", "arm"), [("ids", "do(X1=1)"), ("best", "do(X1=1, X2=0)")])
def test_rewards_that_nothing_can_use_teach_nothing(policy, arm):
    """The graph alone decides, or the intervention is not an arm."""
    experiment = Experiment.create(MemoryStorage(), "ward", PROBLEM, policy, seed=1)
    experiment.import_records(without_mediators(arm))
    usage = experiment.counted()
    assert usage.arm_rewards == 0
    assert "Y is NOT USED in any of 30 records" in str(usage)
    assert "so nothing is known of the arms" in str(usage)


def test_the_value_of_more_rounds_agrees_with_the_loss_of_stopping():
    """It comes from the graph alone, which may be wrong or have learned nothing."""
    experiment = Experiment.create(MemoryStorage(), "ward", PROBLEM, seed=1)
    status = experiment.status(evidence=False, rounds=5)
    assert status.graph_free_weight == pytest.approx(0.05)
    assert "worked out from the graph alone, whose probability is 0.95" in str(status)
    assert "No further experiment" not in str(status)
    records = without_mediators("do(X1=1)")
    experiment.import_records(records | {"Y": ["1"] * 30})
    status = experiment.status(evidence=False, rounds=5)
    assert status.graph_free_weight > 0.99
    assert "What 5 more rounds would gain is not shown" in str(status)
    assert "No further experiment can gain more than that" in str(status)
    assert "are expected to gain" not in str(status) and "At most" not in str(status)
