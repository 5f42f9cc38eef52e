"""Status of an experiment: numbers, compared with other computations of them, and sentences."""

from datetime import timedelta

import numpy as np
import pytest
from scipy import stats
from support.errors import raises_code
from support.played_experiments import coin_experiment, create_experiment, played_experiment

from dowise.experiment import event as event_module
from dowise.experiment import view as view_module
from dowise.experiment.status import duration
from dowise.graph import CausalGraph
from dowise.policies.independent_arms import IndependentArmsBelief
from dowise.problem import Problem

HEADS = {"0": [1, 0, 0], "1": [1, 1, 1, 0]}  # Beta(2, 3) and Beta(4, 2)


def stopping_by_draws(first, second, draws=400_000):
    """Return E[max μ − μ of the leader] of two arms with Beta posteriors, and P(first is best)."""
    rng = np.random.default_rng(1)
    means = rng.beta(*first, draws), rng.beta(*second, draws)
    leader = means[0] if first[0] / sum(first) >= second[0] / sum(second) else means[1]
    return (np.maximum(*means) - leader).mean(), (means[0] > means[1]).mean()


def test_numbers_of_two_coins_are_those_of_beta_distributions():
    status = coin_experiment(HEADS).status()
    (arms,) = status.contexts
    regret, first_best = stopping_by_draws((2, 3), (4, 2))
    posteriors = stats.beta(2, 3), stats.beta(4, 2)
    assert arms.mean == pytest.approx([2 / 5, 4 / 6], abs=1e-12)
    assert arms.low == pytest.approx([x.ppf(0.05) for x in posteriors], abs=0.01)
    assert arms.high == pytest.approx([x.ppf(0.95) for x in posteriors], abs=0.01)
    # 10,000 draws: standard errors below .005 and .002
    assert arms.best == pytest.approx([first_best, 1 - first_best], abs=0.02)
    assert status.stopping == pytest.approx(regret, abs=0.006)
    assert status.expected_regret_of_stopping == status.stopping > 0
    assert arms.leader == 1 and arms.plays.tolist() == [3, 4]
    assert status.is_one_context and arms.context == {}
    assert [*status.rows()[0]] == ["arm", "mean", "low", "high", "best", "plays", "is_assumption"]


def test_units_of_the_user_and_smaller_is_better():
    values = {"0": 10.0, "1": 60.0}
    costly = Problem(CausalGraph.parse("X -> Y"), "Y", reward_values=values, minimise=True)
    plain, costs = coin_experiment(HEADS).status(), coin_experiment(HEADS, problem=costly).status()
    (arms,), (costly_arms,) = plain.contexts, costs.contexts
    assert costly_arms.mean == pytest.approx(10 + 50 * arms.mean)
    assert costly_arms.low == pytest.approx(10 + 50 * arms.low, abs=1e-3)
    assert costly_arms.leader == 0 and costly_arms.best == pytest.approx(arms.best[::-1])
    regret, _ = stopping_by_draws((3, 2), (2, 4))
    assert costs.stopping == pytest.approx(50 * regret, abs=0.3)
    assert "smaller is better" in str(costs) and "smaller" not in str(plain)


def test_each_context_has_its_own_summary():
    experiment = played_experiment("task2", 60)
    status = experiment.status()
    assert [arms.context for arms in status.contexts] == [{"C": "0"}, {"C": "1"}]
    for arms in status.contexts:
        assert arms.best.sum() == pytest.approx(1)
        assert ((arms.low < arms.mean) & (arms.mean < arms.high)).all()
        assert arms.regret.min() == arms.stopping >= 0
    assert sum(arms.plays.sum() for arms in status.contexts) == 60
    assert sum(arms.weight for arms in status.contexts) == pytest.approx(1)
    average = sum(arms.weight * arms.stopping for arms in status.contexts)
    assert status.stopping == pytest.approx(average)
    table, columns = (
        status.frame(),
        ["arm", "mean", "low", "high", "best", "plays", "is_assumption"],
    )
    assert [*table.columns] == ["C", *columns]
    assert len(table) == 2 * len(experiment.problem.arms)
    assert [*experiment.status({"C": 1}).frame().columns] == columns
    with raises_code("unknown-value", "C"):
        experiment.status({"C": "7"})


def test_new_experiment_weighs_contexts_evenly():
    status = create_experiment("task2").status()
    assert status.counts["asked"] == 0 and [arms.weight for arms in status.contexts] == [0.5, 0.5]
    assert status.stopping > 0 and not status.should_stop(0.01)


def test_advice_is_to_stop_once_the_arms_differ():
    status = coin_experiment({"0": [0] * 40, "1": [1] * 40}).status()
    assert status.should_stop(0.01) and status.advice(0.01).startswith("You can stop: ")
    data = status.as_dict(0.01)
    assert data["stop"] is True and data["expected_regret_of_stopping"] == status.stopping
    assert "stop" not in status.as_dict()
    with raises_code("invalid-number", "tolerance"):
        status.advice(-1)
    status = coin_experiment(HEADS).status()
    assert not status.should_stop(0.01) and status.advice(0.01).startswith("Go on: ")


@pytest.mark.slow
def test_value_of_more_rounds_is_shown_on_request():
    experiment = coin_experiment(HEADS)
    plain, status = experiment.status(), experiment.status(rounds=300)
    assert plain.continuing is None and "continuing" not in plain.as_dict()
    continuing = status.continuing
    assert continuing == experiment.value_of_continuing(300)
    # 1,000 worlds of one gap for all rounds, beside 10,000 draws: 4 standard errors, 1 in 16,000
    assert continuing.limit / 300 == pytest.approx(status.stopping, abs=4 * 0.1 / np.sqrt(1000))
    assert 0 < continuing.value < continuing.limit and 0 < continuing.explore <= 300
    data = status.as_dict()["continuing"]
    assert data["value"] == continuing.value and data["rounds"] == 300
    lines = str(status.document(0.01)).splitlines()
    (first,) = (i for i, line in enumerate(lines) if line.startswith("If you stop now"))
    assert lines[first].endswith(" No further experiment can gain more than that.")
    assert lines[first + 1].startswith("300 more rounds are expected to gain ")
    assert f" ± {continuing.error:.3g} in total, " in lines[first + 1]
    assert lines[first + 2].startswith("This assumes that ts chooses the arms from now on")
    assert lines[first + 3] == status.advice(0.01)
    assert "This assumes" not in str(create_experiment("task1", policy="ts").status(rounds=5))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("context", "average"),
    [(None, "averaged over all contexts equally"), ({"C": 1}, "in this context alone")],
)
def test_limit_of_more_rounds_names_its_contexts(context, average):
    experiment = create_experiment("task2")
    status = experiment.status(context, rounds=100)
    limit = status.continuing.limit
    assert (
        f"At most {limit:.3g} could be gained, {limit / 100:.3g} per round. This is averaged over "
        f"the contexts to be expected, but the loss of stopping is {average}, so the two may "
        "differ."
    ) in str(status)
    assert "No further experiment" not in str(status)
    assert "No further experiment can gain more" in str(experiment.status(context))


def test_more_rounds_without_value_are_reported():
    status = coin_experiment({"0": [0] * 40, "1": [1] * 40}).status(rounds=5)
    assert (status.continuing.value, status.continuing.explore) == (0, 0)
    assert "Experimenting in the next 5 rounds is not expected to gain anything" in str(status)
    for rounds in (0, -3, 2.5, True, 10**9):
        with raises_code("invalid-number", "rounds="):
            create_experiment("task2").status(rounds=rounds)


def test_withdrawn_decisions_count_and_erased_ones_do_not():
    experiment = create_experiment("task2")
    for number in range(1, 6):
        experiment.ask({"C": 1}, allowed=["do(X2=0)"])
        experiment.tell(number, {"Z": 1})
    experiment.tell(1, {"X1": 0, "Y": 1})
    experiment.tell(2, {"X1": 0, "Y": 1})
    before = experiment.status({"C": 1}, evidence=False)
    experiment.withdraw(3, reason="left")
    experiment.erase(1, reason="asked for")
    status = experiment.status({"C": 1}, evidence=False)
    counts = {"asked": 5, "pending": 2, "done": 1, "withdrawn": 1, "erased": 1}
    assert {name: status.counts[name] for name in counts} == counts
    assert status.counts["restricted"] == 4
    assert status.contexts[0].plays.tolist() == [0, 0, 1, 0]
    assert before.contexts[0].plays.tolist() == [0, 0, 2, 0]
    assert [case.id for case in status.pending] == [4, 5]
    assert "(1 with an outcome, 2 pending, 1 withdrawn, 1 erased)" in str(status)
    # Values of the withdrawn decision still count; those of the erased one do not.
    assert experiment.belief.times_learned()["Z"] == 4


def test_records_that_do_not_count_are_reported():
    experiment = create_experiment("task2", policy="ucb")
    experiment.ask({"C": 1}, forbid=["do(X1=1)"])
    experiment.ask({"C": 1})
    experiment.tell(2, {"Y": 1}, played="do(X2=1)")
    experiment.ask({"C": 1})
    experiment.tell(3, {"Z": 1, "Y": None})
    status = experiment.status()
    text = str(status)
    assert "In 1 decision some arms were not allowed" in text and "biased" in text
    assert status.counts["played_otherwise"] == 1 and "another arm was played" in text
    assert sum(status.left_out.values()) == 2
    assert any("reward" in why or "Y" in why for why in status.left_out)
    assert "2 records left out" not in text and text.count("1 record left out") == 2
    data = status.as_dict()
    assert data["left_out"] == status.left_out and data["decisions"] == status.counts


def test_values_that_can_not_be_used():
    experiment = create_experiment("task2")
    decision = experiment.ask({"C": 1}, allowed=["do(X2=0)"])
    experiment.tell(decision.id, {"Y": 1, "Z": None})
    status = experiment.status()
    assert status.unused["Y"] == {"Z was not seen": 1}
    assert "Y was not used in 1 record: Z was not seen." in str(status)
    assert "Z was not used" not in str(status)  # it was not seen


def test_pending_decisions_are_listed_oldest_first(monkeypatch):
    experiment = create_experiment("task2")
    for _ in range(12):
        experiment.ask({"C": 0}, allowed=["do(X2=0)"])
    experiment.tell(1, {"Z": 1})
    later = event_module.now() + timedelta(days=3, hours=2)
    monkeypatch.setattr("dowise.experiment.status.now", lambda: later)
    status = experiment.status(evidence=False)
    text = str(status)
    assert "12 decisions pending, the oldest first" in text and "… and 2 more" in text
    assert "decision 1, do(X2=0): for 3 days; not told: X1, Y" in text
    assert "decision 2, do(X2=0): for 3 days; not told: X1, Y, Z" in text
    pending = status.as_dict()["pending"]
    assert len(pending) == 12 and pending[0]["open"] == ["X1", "Y"]
    assert pending[0]["waiting_seconds"] == pytest.approx(266_400, abs=60)


def test_durations_have_one_unit():
    assert [*map(duration, (0.4, 1, 119, 7300, 3 * 86_400))] == [
        "0 seconds", "1 second", "1 minute", "2 hours", "3 days",
    ]  # fmt: skip


def test_most_frequent_contexts_are_shown():
    names = [f"C{i}" for i in range(7)]
    problem = Problem(
        CausalGraph.parse("; ".join(f"{name} -> Y" for name in names) + "; X -> Y"),
        "Y",
        context=names,
    )
    experiment = create_experiment(problem)
    status = experiment.status(evidence=False)
    assert len(status.contexts) == 64 and status.stopping > 0
    assert "There are 128 contexts" in status.notes[0] and "the 64 first ones" in status.notes[0]
    last = dict.fromkeys(names, "1")
    for context in (last, last, dict.fromkeys(names, "0")):
        experiment.ask(context)
    status = experiment.status(evidence=False)
    assert [arms.context for arms in status.contexts] == [last, dict.fromkeys(names, "0")]
    assert [arms.weight for arms in status.contexts] == pytest.approx([2 / 3, 1 / 3])
    assert "most frequent ones" in status.notes[0]


def test_amended_contexts_count_as_amended():
    experiment = create_experiment("task2")
    experiment.ask({"C": 0}, allowed=["do(X2=0)"])
    experiment.tell(1, {"X1": 0, "Z": 0, "Y": 1})
    experiment.amend(1, {"C": 1}, reason="typo")
    status = experiment.status(evidence=False)
    assert [arms.plays.sum() for arms in status.contexts] == [0, 1]
    assert [arms.weight for arms in status.contexts] == [0, 1]


@pytest.mark.parametrize("policy", ["ids", "ucb", "z2-ts"])
def test_each_status_includes_what_was_told_since(policy):
    experiment = create_experiment(policy=policy)
    for rewards in ([1], [0, 0, 0, 0]):
        for reward in rewards:
            decision = experiment.ask(allowed=["do(X=1)"])
            experiment.tell(decision.id, {"Y": reward})
            experiment.status()
    (arms,) = experiment.status().contexts
    assert arms.mean == pytest.approx([0.5, 2 / 7]) and arms.plays.tolist() == [0, 5]
    assert experiment.belief.mean_rewards() == pytest.approx(arms.mean)
    assert experiment.status(evidence=True).evidence.records == 5


def test_evidence_against_the_graph_raises_an_alarm():
    problem = Problem(CausalGraph.parse("X -> Y; Z"), "Y", non_manipulable="Z")
    experiment, rng = create_experiment(problem), np.random.default_rng(0)
    z = rng.integers(2, size=100)
    experiment.import_records(
        {
            "Z": z,
            "X": rng.integers(2, size=100),
            "Y": (rng.random(100) < 0.2 + 0.6 * z).astype(int),
        },
        "do()",
    )
    status = experiment.status()
    assert status.alarms == ("Z -> Y",) and status.imported == 100
    text = str(status)
    assert "Alarm at level 0.05" in text and "revise the experiment" in text
    assert {"Z -> Y", "Y <-> Z"} == {*status.as_dict()["suspected"]}
    assert "100 imported records (included in the means, but not in the plays);" in text


def test_slow_evidence_is_computed_only_on_request(monkeypatch):
    experiment = played_experiment("task2", 3)
    monkeypatch.setattr(view_module, "EVIDENCE_TIMEOUT", 0.0)
    status = experiment.status()
    assert status.alarms is None and "--evidence" in status.notes[-1]
    assert status.as_dict()["alarms"] is None
    assert experiment.status(evidence=True).alarms == ()
    without = experiment.status(evidence=False)
    assert without.alarms is None and without.notes == ()


def test_doubtful_edges_are_shown_with_their_probability():
    problem = Problem(CausalGraph.parse("Z -> X -> Y; Z ?-> Y"), "Y", non_manipulable="Z")
    status = create_experiment(problem).status()
    assert status.edges == {"Z -> Y": 0.5}
    assert "Z -> Y (0.50)" in str(status)


LARGE = Problem(
    CausalGraph.parse("; ".join(f"Z{i:02d} -> Y" for i in range(24)) + "; C -> Y; X -> Y; W"),
    "Y", context=("C",), non_manipulable=["W", *(f"Z{i:02d}" for i in range(24))],
    reward_values={"0": 0.0, "1": 8.0},
)  # fmt: skip


def test_large_graph_is_judged_arm_by_arm():
    experiment = create_experiment(LARGE, policy="ucb")
    for label, rewards in HEADS.items():
        for reward in rewards:
            decision = experiment.ask({"C": 1}, allowed=[f"do(X={label})"])
            experiment.tell(decision.id, {"Y": reward})
    experiment.import_records({"C": [1, 1], "Y": [1, 1], "Z00": [0, 1]}, "do(X=1)")
    experiment.import_records({"C": [1, 0], "Y": [None, 1]}, "do(X=0)")
    status = experiment.status()
    assert isinstance(experiment.belief, IndependentArmsBelief)
    unplayed, arms = status.contexts
    assert arms.mean == pytest.approx([8 * 2 / 5, 8 * 6 / 8])  # Beta(2, 3), Beta(4 + 2, 2)
    assert unplayed.mean == pytest.approx([8 * 2 / 3, 4])
    assert arms.low[0] == pytest.approx(8 * stats.beta(2, 3).ppf(0.05), abs=0.1)
    regret, first_best = stopping_by_draws((2, 3), (6, 2))
    assert arms.stopping == pytest.approx(8 * regret, abs=0.04)
    assert arms.best[0] == pytest.approx(first_best, abs=0.02)
    assert "too large for a posterior" in status.notes[0] and len(status.notes) == 1
    status = experiment.status(rounds=10)
    assert status.continuing is None and "more rounds are worth is not known" in status.notes[-1]
    with raises_code("unsupported-belief"):
        experiment.value_of_continuing(10)
    experiment.amend(1, {"Y": 0}, reason="typo")
    assert experiment.status().contexts[1].mean[0] == pytest.approx(8 * 1 / 5)
    assert experiment.explain(3).then.plays.tolist() == [2, 0]
    with raises_code("too-large"):
        experiment.status(evidence=True)
    with raises_code("too-large"):
        create_experiment(LARGE, policy="ids")


def test_advice_names_contexts_above_the_tolerance():
    problem = Problem(CausalGraph.parse("C -> Y; X -> Y"), "Y", "C")
    experiment = create_experiment(problem, "ts")
    for reward in [0, 1] * 60:
        decision = experiment.ask({"C": 0}, allowed=[f"do(X={reward})"])
        experiment.tell(decision.id, {"Y": reward})
    status = experiment.status()
    assert status.should_stop(0.05)
    assert "Except where C=1 (0 % of decisions): there it is 0.1" in status.advice(0.05)
    assert "Except" not in experiment.status({"C": 0}).advice(0.05)


def test_arms_with_equal_means_are_all_leaders():
    problem = Problem(CausalGraph.parse("U -> X -> Y; U -> Y"), "Y", arms="all")
    (arms,) = create_experiment(problem).status().contexts
    assert len(arms.leaders) == len(arms.arms)
    assert arms.best[arms.leader] == arms.best.max()
    assert "Nothing tells the arms apart yet" in str(create_experiment().status())
    assert "Nothing tells" not in str(coin_experiment(HEADS).status())


@pytest.mark.parametrize(
    ("labels", "tie"),
    [("abc", "do(X=b) and do(X=c) tie for the best, each with"), ("abcde", "4 of 5 arms tie for")],
)
def test_arms_that_tie_for_the_best(labels, tie):
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", domains={"X": [*labels]})
    text = str(coin_experiment({"a": [0]}, problem=problem).status(evidence=False))
    assert tie in text and "looks best" not in text and "one of them is the best is" in text


def test_weights_of_contexts_are_described():
    experiment = create_experiment(Problem(CausalGraph.parse("C -> Y; X -> Y"), "Y", "C"))
    assert not experiment.status().has_contexts
    assert "over all contexts equally" in str(experiment.status())
    experiment.ask({"C": 0})
    assert "over the contexts seen so far" in str(experiment.status())


def test_arms_that_were_never_tried_are_assumptions():
    experiment = coin_experiment({"1": [1, 0]})
    (arms,) = experiment.status(evidence=False).contexts
    assert arms.is_assumption.tolist() == [True, False]
    rows = arms.as_dict()["arms"]
    assert [row["is_assumption"] for row in rows] == [True, False]
    assert type(arms).from_dict(arms.as_dict(), experiment.problem).is_assumption.tolist() == [
        True,
        False,
    ]
    text = str(experiment.status(evidence=False))
    assert "0  assumption only" in text and "2  assumption only" not in text
    assert "Assumption only: never tried" in text
    experiment.import_records({"arm": ["do(X=0)"], "X": [0], "Y": [1]})
    status = experiment.status(evidence=False)
    assert not status.contexts[0].is_assumption.any() and "ssumption" not in str(status)


def test_an_arm_that_was_tried_in_another_context_is_no_assumption():
    experiment = create_experiment(Problem(CausalGraph.parse("C -> Y; X -> Y"), "Y", "C"))
    decision = experiment.ask({"C": 0})
    experiment.tell(decision.id, {"Y": 1})
    for arms in experiment.status(evidence=False).contexts:
        assert arms.is_assumption.tolist() == [arm != decision.arm for arm in arms.arms]
    experiment.ask({"C": 1})
    explanation = experiment.explain(decision.id)
    assert explanation.then.is_assumption.all()
    assert [row["is_assumption"] for row in explanation.rows()] == [True, True]
