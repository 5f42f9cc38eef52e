"""Where an experiment stands: numbers against other ways to work them out, and the words."""

from datetime import timedelta

import numpy as np
import pytest
from scipy import stats
from support.errors import raises_code
from support.played_experiments import COIN, coin_experiment, create_experiment, played_experiment

from dowise.errors import DowiseError
from dowise.experiment import event as event_module
from dowise.experiment import view as seeing
from dowise.experiment.read_model import IndependentArmsBelief
from dowise.experiment.status import duration
from dowise.graph import CausalGraph
from dowise.problem import Problem

HEADS = {"0": [1, 0, 0], "1": [1, 1, 1, 0]}  # Beta(2, 3) and Beta(4, 2)


def stopping_by_draws(first, second, draws=400_000):
    """E[max μ − μ of the better mean] of two arms with Beta posteriors, and P(first is best)."""
    rng = np.random.default_rng(1)
    one, other = rng.beta(*first, draws), rng.beta(*second, draws)
    leader = one if first[0] / sum(first) >= second[0] / sum(second) else other
    return (np.maximum(one, other) - leader).mean(), (one > other).mean()


def test_numbers_of_two_coins_by_other_ways():
    status = coin_experiment(HEADS).status()
    (one,) = status.contexts
    regret, first_best = stopping_by_draws((2, 3), (4, 2))
    assert one.mean == pytest.approx([2 / 5, 4 / 6], abs=1e-12)
    assert one.low == pytest.approx(
        [stats.beta(2, 3).ppf(0.05), stats.beta(4, 2).ppf(0.05)], abs=0.01
    )
    assert one.high == pytest.approx(
        [stats.beta(2, 3).ppf(0.95), stats.beta(4, 2).ppf(0.95)], abs=0.01
    )
    # 10,000 draws: standard errors below .005 and .002
    assert one.best == pytest.approx([first_best, 1 - first_best], abs=0.02)
    assert status.stopping == pytest.approx(regret, abs=0.006)
    assert status.expected_regret_of_stopping == status.stopping > 0
    assert one.leader == 1 and one.plays.tolist() == [3, 4]


def test_the_units_are_the_users_and_smaller_may_be_better():
    values = {"0": 10.0, "1": 60.0}
    costly = Problem(CausalGraph.parse("X -> Y"), "Y", reward_values=values, minimise=True)
    plain, costs = coin_experiment(HEADS).status(), coin_experiment(HEADS, problem=costly).status()
    (one,), (other,) = plain.contexts, costs.contexts
    assert other.mean == pytest.approx(10 + 50 * one.mean)
    assert other.low == pytest.approx(10 + 50 * one.low, abs=1e-3)
    assert other.leader == 0 and other.best == pytest.approx(one.best[::-1])
    by_turned, _ = stopping_by_draws((3, 2), (2, 4))
    assert costs.stopping == pytest.approx(50 * by_turned, abs=0.3)
    assert "smaller is better" in str(costs) and "smaller" not in str(plain)


def test_every_context_has_its_arms():
    status = played_experiment("task2", 60).status()
    assert [one.context for one in status.contexts] == [{"C": "0"}, {"C": "1"}]
    for one in status.contexts:
        assert one.best.sum() == pytest.approx(1)
        assert ((one.low < one.mean) & (one.mean < one.high)).all()
        assert one.regret.min() == one.stopping >= 0
    assert sum(one.plays.sum() for one in status.contexts) == 60
    shares = [one.weight for one in status.contexts]
    assert sum(shares) == pytest.approx(1)
    assert shares[1] == status.contexts[1].plays.sum() / 60
    by_hand = sum(one.weight * one.stopping for one in status.contexts)
    assert status.stopping == pytest.approx(by_hand)


def test_the_table():
    experiment = played_experiment("task2", 5)
    assert [*experiment.status({"C": 1}).frame().columns] == [
        "arm", "mean", "low", "high", "best", "plays",
    ]  # fmt: skip
    whole = experiment.status().frame()
    assert [*whole.columns][:2] == ["C", "arm"] and len(whole) == 2 * len(experiment.problem.arms)
    with pytest.raises(DowiseError, match="C"):
        experiment.status({"C": "7"})


def test_nothing_was_asked_yet():
    status = create_experiment("task2").status()
    assert status.counts["asked"] == 0 and [one.weight for one in status.contexts] == [0.5, 0.5]
    assert status.stopping > 0 and not status.should_stop(0.01)


def test_advice():
    status = coin_experiment({"0": [0] * 40, "1": [1] * 40}).status()
    assert status.should_stop(0.01) and status.advice(0.01).startswith("You can stop: ")
    assert not coin_experiment(HEADS).status().should_stop(0.01)
    assert coin_experiment(HEADS).status().advice(0.01).startswith("Go on: ")
    page = status.as_dict(0.01)
    assert page["stop"] is True and page["expected_regret_of_stopping"] == status.stopping
    assert "stop" not in status.as_dict()
    with pytest.raises(DowiseError, match="tolerance"):
        status.advice(-1)


@pytest.mark.slow
def test_what_more_rounds_are_worth_beside_stopping():
    experiment = coin_experiment(HEADS)
    plain, status = experiment.status(), experiment.status(rounds=300)
    assert plain.continuing is None and "continuing" not in plain.as_dict()
    found = status.continuing
    assert found == experiment.value_of_continuing(300)
    # 1,000 worlds of one gap for all rounds, beside 10,000 draws: 4 standard errors, 1 in 16,000
    assert found.limit / 300 == pytest.approx(status.stopping, abs=4 * 0.1 / np.sqrt(1000))
    assert 0 < found.value < found.limit and 0 < found.explore <= 300
    page = status.as_dict()["continuing"]
    assert page["value"] == found.value and page["rounds"] == 300
    said = str(status.document(0.01)).splitlines()
    (at,) = (i for i, line in enumerate(said) if line.startswith("If you stop now"))
    assert said[at + 1].startswith("300 more rounds are expected to gain ")
    assert f" ± {found.error:.3g} in total, " in said[at + 1]
    assert said[at].endswith(" No further experiment can gain more than that.")
    assert said[at + 2] == (
        "This assumes that ts chooses the arms from now on, because it is quick to simulate; the "
        f"experiment itself continues with {status.policy}."
    )
    assert said[at + 3] == status.advice(0.01)  # as it was, and after what more rounds are worth
    by_ts = create_experiment("task1", policy="ts").status(rounds=5)
    assert "This assumes" not in str(by_ts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("context", "weighed"),
    [(None, "averaged over all contexts equally"), ({"C": 1}, "in this context alone")],
)
def test_one_limit_is_told_and_over_which_contexts(context, weighed):
    experiment = create_experiment("task2")
    status = experiment.status(context, rounds=100)
    limit = status.continuing.limit
    assert (
        f"At most {limit:.3g} could be gained, {limit / 100:.3g} per round. This is averaged over "
        f"the contexts to be expected, but the loss of stopping is {weighed}, so the two may "
        "differ."
    ) in str(status)
    assert "No further experiment" not in str(status)
    assert "No further experiment can gain more" in str(experiment.status(context))


def test_where_no_exploring_pays_it_is_said():
    status = coin_experiment({"0": [0] * 40, "1": [1] * 40}).status(rounds=5)
    assert (status.continuing.value, status.continuing.explore) == (0, 0)
    assert "Experimenting in the next 5 rounds is not expected to gain anything" in str(status)
    for rounds in (0, -3, 2.5, True, 10**9):
        with pytest.raises(DowiseError, match="rounds="):
            create_experiment("task2").status(rounds=rounds)


def test_withdrawn_and_erased_decisions():
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
    # What was told of the withdrawn one still counts; of the erased one nothing does.
    assert experiment.belief.times_learned()["Z"] == 4


def test_what_does_not_count_is_said():
    experiment = create_experiment("task2", policy="ucb")
    experiment.ask({"C": 1}, forbid=["do(X1=1)"])
    experiment.ask({"C": 1})
    experiment.tell(2, {"Y": 1}, played="do(X2=1)")
    experiment.ask({"C": 1})
    experiment.tell(3, {"Z": 1, "Y": None})
    status = experiment.status()
    words = str(status)
    assert "In 1 decision some arms were not allowed" in words and "biased" in words
    assert status.counts["played_otherwise"] == 1 and "another arm was played" in words
    assert sum(status.left_out.values()) == 2
    assert any("reward" in why or "Y" in why for why in status.left_out)
    assert "2 records left out" not in words and words.count("1 record left out") == 2
    page = status.as_dict()
    assert page["left_out"] == status.left_out and page["decisions"] == status.counts


def test_variables_that_could_not_be_used():
    experiment = create_experiment("task2")
    decision = experiment.ask({"C": 1}, allowed=["do(X2=0)"])
    experiment.tell(decision.id, {"Y": 1, "Z": None})
    status = experiment.status()
    assert status.unused["Y"] == {"Z was not seen": 1}
    words = str(status)
    assert "Y was not used in 1 record: Z was not seen." in words
    assert "Z was not used" not in words  # nothing was seen of it


def test_pending_decisions_are_listed_the_oldest_first(monkeypatch):
    experiment = create_experiment("task2")
    for _ in range(12):
        experiment.ask({"C": 0}, allowed=["do(X2=0)"])
    experiment.tell(1, {"Z": 1})
    later = event_module.now() + timedelta(days=3, hours=2)
    monkeypatch.setattr("dowise.experiment.status.now", lambda: later)
    status = experiment.status(evidence=False)
    words = str(status)
    assert "12 decisions pending, the oldest first" in words and "… and 2 more" in words
    assert "decision 1, do(X2=0): for 3 days; not told: X1, Y" in words
    assert "decision 2, do(X2=0): for 3 days; not told: X1, Y, Z" in words
    page = status.as_dict()
    assert len(page["pending"]) == 12 and page["pending"][0]["open"] == ["X1", "Y"]
    assert page["pending"][0]["waiting_seconds"] == pytest.approx(266_400, abs=60)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 seconds"),
        (1, "1 second"),
        (119, "1 minute"),
        (7300, "2 hours"),
        (3 * 86_400, "3 days"),
    ],
)
def test_durations(seconds, words):
    assert duration(seconds) == words


def test_of_many_contexts_those_that_came_most_often_are_shown():
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
    assert [one.context for one in status.contexts] == [last, dict.fromkeys(names, "0")]
    assert [one.weight for one in status.contexts] == pytest.approx([2 / 3, 1 / 3])
    assert "most frequent ones" in status.notes[0]


def test_a_context_that_was_corrected_counts_where_it_belongs():
    experiment = create_experiment("task2")
    experiment.ask({"C": 0}, allowed=["do(X2=0)"])
    experiment.tell(1, {"X1": 0, "Z": 0, "Y": 1})
    experiment.amend(1, {"C": 1}, reason="typo")
    status = experiment.status(evidence=False)
    assert [one.plays.sum() for one in status.contexts] == [0, 1]
    assert [one.weight for one in status.contexts] == [0, 1]


@pytest.mark.parametrize("policy", ["ids", "ucb", "z2-ts"])
def test_each_look_takes_in_what_was_told_since(policy):
    experiment = create_experiment(policy=policy)
    for rewards in ([1], [0, 0, 0, 0]):
        for reward in rewards:
            decision = experiment.ask(allowed=["do(X=1)"])
            experiment.tell(decision.id, {"Y": reward})
            experiment.status()
    (one,) = experiment.status().contexts
    assert one.mean == pytest.approx([0.5, 2 / 7]) and one.plays.tolist() == [0, 5]
    assert experiment.belief.mean_rewards() == pytest.approx(one.mean)
    assert experiment.status(evidence=True).evidence.records == 5


def test_a_graph_that_is_wrong_is_said_and_what_to_do():
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
    words = str(status)
    assert "Alarm at level 0.05" in words and "revise the experiment" in words
    assert {"Z -> Y", "Y <-> Z"} == {*status.as_dict()["suspected"]}
    assert "100 imported records (included in the means, but not in the plays);" in words


def test_evidence_that_would_take_long_is_left_out_unless_asked_for(monkeypatch):
    experiment = played_experiment("task2", 3)
    monkeypatch.setattr(seeing, "EVIDENCE_TIMEOUT", 0.0)
    status = experiment.status()
    assert status.alarms is None and "--evidence" in status.notes[-1]
    assert status.as_dict()["alarms"] is None
    assert experiment.status(evidence=True).alarms == ()
    without = experiment.status(evidence=False)
    assert without.alarms is None and without.notes == ()


def test_doubtful_edges():
    problem = Problem(CausalGraph.parse("Z -> X -> Y; Z ?-> Y"), "Y", non_manipulable="Z")
    status = create_experiment(problem).status()
    assert status.edges == {"Z -> Y": 0.5}
    assert "Z -> Y (0.50)" in str(status)


LARGE = Problem(
    CausalGraph.parse("; ".join(f"Z{i:02d} -> Y" for i in range(24)) + "; C -> Y; X -> Y"),
    "Y", context=("C",), non_manipulable=[f"Z{i:02d}" for i in range(24)],
    reward_values={"0": 0.0, "1": 8.0},
)  # fmt: skip


def test_a_graph_that_is_too_large_is_looked_at_arm_by_arm():
    experiment = create_experiment(LARGE, policy="ucb")
    for label, rewards in HEADS.items():
        for reward in rewards:
            decision = experiment.ask({"C": 1}, allowed=[f"do(X={label})"])
            experiment.tell(decision.id, {"Y": reward})
    experiment.import_records({"C": [1, 1], "Y": [1, 1], "Z00": [0, 1]}, "do(X=1)")
    experiment.import_records({"C": [1, 0], "Y": [None, 1]}, "do(X=0)")
    status = experiment.status()
    assert isinstance(experiment.belief, IndependentArmsBelief)
    empty, one = status.contexts
    assert one.mean == pytest.approx([8 * 2 / 5, 8 * 6 / 8])  # Beta(2, 3), Beta(4 + 2, 2)
    assert empty.mean == pytest.approx([8 * 2 / 3, 4])
    assert one.low[0] == pytest.approx(8 * stats.beta(2, 3).ppf(0.05), abs=0.1)
    regret, first = stopping_by_draws((2, 3), (6, 2))
    assert one.stopping == pytest.approx(8 * regret, abs=0.04)
    assert one.best[0] == pytest.approx(first, abs=0.02)
    assert "too large for a posterior" in status.notes[0] and len(status.notes) == 1
    more = experiment.status(rounds=10)
    assert more.continuing is None and "more rounds are worth is not known" in more.notes[-1]
    with raises_code("unsupported-belief", "needs a posterior of the graph"):
        experiment.value_of_continuing(10)
    experiment.amend(1, {"Y": 0}, reason="typo")
    assert experiment.status().contexts[1].mean[0] == pytest.approx(8 * 1 / 5)
    with pytest.raises(DowiseError, match="limit"):
        experiment.status(evidence=True)
    assert experiment.explain(3).then.plays.tolist() == [2, 0]


def test_the_policy_of_large_graphs_still_has_to_be_able_to_decide():
    with pytest.raises(DowiseError, match="limit"):
        create_experiment(LARGE, policy="ids")


def test_coins_have_one_context():
    status = create_experiment(COIN).status()
    assert status.is_one_context and status.contexts[0].context == {}
    assert [*status.rows()[0]] == ["arm", "mean", "low", "high", "best", "plays"]


def test_advice_names_where_it_does_not_hold():
    problem = Problem(CausalGraph.parse("C -> Y; X -> Y"), "Y", "C")
    experiment = create_experiment(problem, "ts")
    for reward in [0, 1] * 60:
        decision = experiment.ask({"C": 0}, allowed=[f"do(X={reward})"])
        experiment.tell(decision.id, {"Y": reward})
    status = experiment.status()
    assert status.should_stop(0.05)
    assert "Except where C=1 (0% of decisions): there it is 0.1" in status.advice(0.05)
    assert "But" not in experiment.status({"C": 0}).advice(0.05)


def test_equal_means_are_called_equal_and_led_by_the_likeliest():
    (one,) = (
        create_experiment(Problem(CausalGraph.parse("U -> X -> Y; U -> Y"), "Y", arms="all"))
        .status()
        .contexts
    )
    assert one.are_alike
    assert one.best[one.leader] == one.best.max()
    status = create_experiment().status()
    assert "Nothing tells the arms apart yet" in str(status)
    assert "Nothing tells" not in str(coin_experiment(HEADS).status())


@pytest.mark.parametrize(
    ("labels", "said"),
    [("abc", "do(X=b) and do(X=c) tie for the best, each with"), ("abcde", "4 of 5 arms tie for")],
)
def test_arms_with_the_same_mean_are_said_to_tie(labels, said):
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", domains={"X": [*labels]})
    tie = str(coin_experiment({"a": [0]}, problem=problem).status(evidence=False))
    assert said in tie and "looks best" not in tie and "one of them is the best is" in tie


def test_contexts_that_never_came_weigh_alike_and_it_is_said():
    problem = Problem(CausalGraph.parse("C -> Y; X -> Y"), "Y", "C")
    experiment = create_experiment(problem)
    assert not experiment.status().has_contexts
    assert "over all contexts equally" in str(experiment.status())
    experiment.ask({"C": 0})
    assert "over the contexts seen so far" in str(experiment.status())
