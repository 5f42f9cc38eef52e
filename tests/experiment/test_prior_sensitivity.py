"""Sensitivity to the prior: against beliefs, and what it says."""

import json

import numpy as np
import pytest
from support.errors import raises_code

from dowise import Belief, CausalGraph, Problem, load_problem
from dowise.experiment import sensitivity

RECORDS = {
    "arm": ["do(X1=1)", "do(X1=1)", "do(X2=0)", "do()"],
    "C": [1, 0, 1, 1], "Z": [0, 1, 1, 1], "X1": [1, 1, 1, 1], "X2": [1, 1, 0, 0],
    "Y": [1, 1, 0, None],
}  # fmt: skip


def by_prior(summaries):
    return {summary.name: summary.contexts for summary in summaries}


def test_means_and_chances_are_those_of_beliefs():
    problem = load_problem("task2")
    result = sensitivity(problem, RECORDS)
    assert result.records == 4
    for name, prior in {"flat": 1.0, "0.5": 0.5, "pooled": "pooled"}.items():
        belief = Belief(problem, prior)
        for summaries in (result.before, result.after):
            contexts = by_prior(summaries)[name]
            assert [arms.context for arms in contexts] == [{"C": "0"}, {"C": "1"}]
            for arms in contexts:
                assert arms.mean == pytest.approx(belief.mean_rewards(arms.context), abs=1e-12)
                best = belief.probability_best(arms.context, 40_000, 1)
                assert arms.best == pytest.approx(best, abs=0.03)
                drawn = belief.draw_rewards(arms.context, 40_000, 2)
                low, high = np.quantile(drawn, [0.05, 0.95], axis=1)
                assert arms.low == pytest.approx(low, abs=0.03)
                assert arms.high == pytest.approx(high, abs=0.03)
            belief.update_many(RECORDS)


def test_plays_are_those_of_the_records():
    result = sensitivity("task2", RECORDS)
    arms = result.after[0].contexts[1]
    plays = dict(zip(map(str, arms.arms), arms.plays.tolist(), strict=True))
    assert plays == {"do(X1=0)": 0, "do(X1=1)": 1, "do(X2=0)": 1, "do(X2=1)": 0}
    assert arms.is_assumption.tolist() == [True, False, False, True]
    assert result.before[0].contexts[1].is_assumption.all()


def test_before_any_data_arms_tie():
    result = sensitivity("task1", {"arm": ["do(X=1)"], "X": [1], "Z": [0], "Y": [1]})
    before, after = result.recommendations(after=False), result.recommendations()
    assert {len(arms) for arms in before.values()} == {3}
    assert {str(arm) for (arm,) in after.values()} == {"do(X=1)"}
    text = str(result)
    assert "Before any data no prior tells the arms apart." in text
    assert "After 1 record every prior recommends do(X=1)." in text


def test_the_text_names_the_priors_that_disagree():
    # An unseen arm is mediocre under flat rows, and like the others under pooled ones.
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", domains={"X": [*range(8)]})
    arms, rewards = [], []
    for x, good in enumerate((4, 5, 4, 5, 4, 5, 12)):
        arms += [f"do(X={x})"] * 40
        rewards += [1] * good + [0] * (40 - good)
    result = sensitivity(problem, {"arm": arms, "Y": rewards}, priors=["flat", "pooled"])
    leaders = {name: str(arms) for name, (arms,) in result.recommendations().items()}
    assert leaders == {"flat": "do(X=7)", "pooled": "do(X=6)"}
    text = str(result)
    assert "After 280 records the recommendation depends on the prior: " in text
    assert "do(X=7) (flat); do(X=6) (pooled)." in text
    assert result.as_dict()["agree"] == [False]


def test_a_prior_that_the_problem_states_is_added():
    graph = CausalGraph.parse("X -> Y")
    names = [summary.name for summary in sensitivity(Problem(graph, "Y", prior=3)).before]
    assert names == ["flat", "0.5", "pooled", "the problem's"]
    for prior in (None, "flat", 1, 0.5, "pooled"):
        assert len(sensitivity(Problem(graph, "Y", prior=prior)).before) == 3
    counts = sensitivity(Problem(graph, "Y", prior={"Y": [3, 1]}), priors=["flat"])
    assert counts.before[1].contexts[0].mean == pytest.approx([0.25, 0.25])


def test_each_of_several_priors_with_counts_is_compared():
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", prior={"Y": [3, 1]})
    priors = [{"Y": [1, 3]}, 1, "flat", 2, {"Y": [1, 9]}]
    before = by_prior(sensitivity(problem, priors=priors).before)
    means = {name: contexts[0].mean.tolist() for name, contexts in before.items()}
    expected = {"counts": 0.75, "flat": 0.5, "2.0": 0.5, "counts 2": 0.9, "the problem's": 0.25}
    assert means == {name: pytest.approx([mean] * 2) for name, mean in expected.items()}


def test_of_many_contexts_the_most_frequent_in_the_data_are_shown():
    names = [f"C{i}" for i in range(4)]
    graph = CausalGraph.parse("; ".join([*(f"{name} -> Y" for name in names), "X -> Y"]))
    problem = Problem(graph, "Y", names)
    first = sensitivity(problem)
    assert len(first.before[0].contexts) == 8 and "8 first ones" in first.notes[0]
    rows = [(1, 1, 1, 1)] * 3 + [(1, 0, 0, 0)] * 2
    data = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    result = sensitivity(problem, data | {"X": [0] * 5, "Y": [1] * 5})
    shown = [[*arms.context.values()] for arms in result.after[0].contexts]
    assert shown == [["1"] * 4, ["1", "0", "0", "0"]] and "most frequent" in result.notes[0]
    chosen = sensitivity(problem, context=dict.fromkeys(names, 0))
    assert len(chosen.before[0].contexts) == 1 and not chosen.notes


def test_of_many_arms_the_likeliest_are_shown():
    problem = Problem(CausalGraph.parse("A -> Y; B -> Y; C -> Y"), "Y", arms="all")
    assert "15 arms less likely to be the best not shown." in str(sensitivity(problem))


def test_the_json_document(tmp_path):
    data = sensitivity("task1", {"arm": ["do(X=1)"], "X": [1], "Z": [0], "Y": [1]}).as_dict()
    again = json.loads(json.dumps(data))
    assert [stage["prior"] for stage in again["after"]] == ["flat", "0.5", "pooled"]
    (context,) = again["before"][0]["contexts"]
    assert {"mean", "low", "high", "best"} <= context["arms"][0].keys()
    assert sensitivity("task1").as_dict()["after"] is None
    path = tmp_path / "records.csv"
    path.write_text("arm,X,Z,Y\ndo(X=1),1,0,1\n")
    assert sensitivity("task1", path).as_dict() == data


def test_records_without_a_reward_are_noted():
    result = sensitivity("task1", {"X": [1], "Z": [0]})
    assert "none with a value of the reward" in result.notes[0]


def test_it_is_deterministic():
    one, other = (sensitivity("task2", RECORDS).as_dict() for _ in range(2))
    assert one == other
    assert np.isfinite([row["best"] for row in one["after"][0]["contexts"][0]["arms"]]).all()


def test_invalid_arguments_are_refused(tmp_path):
    with raises_code("invalid-type", "problem"):
        sensitivity(3)
    for priors in ("flat", [], {"X": 1}):
        with raises_code("invalid-type", "priors"):
            sensitivity("task1", priors=priors)
    with raises_code("invalid-number", "prior"):
        sensitivity("task1", priors=[-1.0])
    with raises_code("unknown-value", "C"):
        sensitivity("task2", context={"C": 7})
    with raises_code("file-not-found", "none.csv"):
        sensitivity("task1", tmp_path / "none.csv")
    with raises_code("unknown-variable", "Q"):
        sensitivity("task1", {"Q": [1]})


def test_the_heading_of_a_problem_without_a_name():
    text = str(sensitivity(Problem("X -> Y", "Y")))
    assert text.startswith("The arms under several priors\n")
