"""Rehearsals: experiments played in worlds drawn from the prior."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from support.errors import raises_code
from support.rehearsals import ARRAYS, BY_HAND, IN_MONEY, INF, ONE_WORLD

from dowise import CausalGraph, Problem
from dowise._core.document import format_number
from dowise.experiment.rehearsal import Rehearsal, WorldSummary, exact_number, rehearse


def arrays(rehearsal):
    return {name: getattr(rehearsal, name).tolist() for name in ARRAYS}


# -- a result by hand -----------------------------------------------------------------------------


def test_first_advice_to_stop_counts_even_if_withdrawn_later():
    assert BY_HAND.stops.tolist() == [5, 10, INF, 5]
    assert BY_HAND.stopped_cost == pytest.approx((0.04 + 0 + 0.02) / 3)
    assert replace(BY_HAND, tolerance=0.0).stopped_cost is None


def test_json_document_summarizes_the_worlds():
    data = BY_HAND.as_dict()
    assert data["regret"] == {"mean": 3.5, "median": 2, "low": 1, "high": 8}
    assert data["regret_at_random"]["mean"] == 8
    assert data["best_at_end"] == 0.5 and data["nearly_best_at_end"] == 0.75
    assert data["rounds_until_stop"] == {
        "median": 5,
        "low": 5,
        "high": "inf",
        "share_never": 0.25,
        "true_cost_per_round": pytest.approx(0.02),
    }
    assert [look["stopped"] for look in data["looks"]] == [0, 0.5, 0.75]
    assert [look["best"] for look in data["looks"]] == [0.5, 0.25, 0.5]
    assert json.loads(json.dumps(data)) == data
    assert {field.name for field in fields(Rehearsal)} - {*ARRAYS, "rounds"} <= data.keys()


def test_regret_per_round_is_over_the_last_tenth():
    regret = np.array([[0, 5, 6, 6.5], [0, 1, 2, 2]])
    late = replace(BY_HAND, rounds=np.array([0, 5, 9, 10]), **dict.fromkeys(ARRAYS, regret))
    assert late.per_round.tolist() == [0.5, 0]
    assert BY_HAND.per_round.tolist() == [0.2, 0, 0.8, 0.2]


def test_quantiles_are_numbers_that_occurred():
    assert WorldSummary.from_worlds(np.array([1.0, INF])) == WorldSummary(INF, 1.0, 1.0, INF)


@pytest.mark.parametrize(
    ("rehearsal", "texts"),
    [
        (
            BY_HAND,
            [
                "In 4 worlds drawn from the prior, ids over 10 rounds:",
                "regret is 3.5 on average (90 % of worlds: 1 to 8); choosing at random costs 8.",
                "73 % on average (90 % of worlds: 50 % to 90 %)",
                "best in 50 % of worlds, and within 0.05 of it in 75 %",
                "comes after 5 rounds (median; 90 % range: 5 to 10) in 75 % of worlds, and not "
                "within 10 rounds in the others.",
            ],
        ),
        (replace(BY_HAND, tolerance=0.0), ["comes in no world within 10 rounds: plan more"]),
        (replace(BY_HAND, tolerance=0.5), ["after 0 rounds (median; 90 % range: 0 to 0). What"]),
        (replace(BY_HAND, tolerance=0.01), ["comes after 10 rounds in 25 % of worlds, and not"]),
        (replace(BY_HAND, delay=3), ["outcomes told 3 rounds late"]),
        (
            IN_MONEY,
            [
                "regret is 7,420 on average (90 % of worlds: 2,120 to 17,000)",
                "choosing at random costs 17,000.",
                "With a tolerance of 1,250.5 per round",
            ],
        ),
        (
            ONE_WORLD,
            [
                "The total regret is 3; choosing at random costs 8.",
                "with probability 90 %. It is",
                "comes after 5 rounds. What looks best then truly costs 0.04 per round.",
            ],
        ),
    ],
)
def test_sentences_state_the_results(rehearsal, texts):
    words = "\n".join(rehearsal.sentences())
    for text in texts:
        assert text in words
    assert ("average" in words) == (rehearsal is not ONE_WORLD) and "e+" not in words


def test_numbers_are_written_out():
    numbers = (2119.6, 999.7, 1_234_567, -4321, 99.95, 0.01234, 0.0, INF, 1.234e-5, 1e15)
    assert " ".join(map(format_number, numbers)) == (
        "2,120 1,000 1,230,000 -4,320 100 0.0123 0 inf 1.23e-05 1e+15"
    )
    assert [*map(exact_number, (1250.5, 2e6, 0.1 + 0.2))] == ["1,250.5", "2,000,000", "0.3"]


# -- rehearse -------------------------------------------------------------------------------------


def test_seed_decides_every_bit_and_worlds_do_not_depend_on_their_number():
    result = rehearse("task1", 12, worlds=3, looks=4, seed=3, policy="ts")
    again = rehearse("task1", 12, worlds=3, looks=4, seed=3, policy="ts")
    first = rehearse("task1", 12, worlds=1, looks=4, seed=3, policy="ts")
    other = rehearse("task1", 12, worlds=1, looks=4, seed=4, policy="ts")
    assert arrays(result) == arrays(again)
    assert arrays(first) == {name: column[:1] for name, column in arrays(result).items()}
    assert arrays(first) != arrays(other)
    assert len(np.unique(result.at_random[:, -1])) == 3
    assert result.rounds.tolist() == [0, 3, 6, 9, 12]


@pytest.mark.slow
def test_workers_give_the_same_bits():
    progress = []
    settings = {"worlds": 4, "looks": 2, "policy": "ts"}
    result = rehearse("task2", 10, workers=2, progress=lambda *at: progress.append(at), **settings)
    assert arrays(result) == arrays(rehearse("task2", 10, **settings))
    assert progress == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_delayed_outcomes_are_learned_late():
    never = rehearse("task1", 10, worlds=2, looks=5, delay=10)
    assert (never.stopping == never.stopping[:, :1]).all()
    late = rehearse("task1", 10, worlds=2, looks=5, delay=4)
    assert (late.stopping[:, :3] == never.stopping[:, :3]).all()  # rounds 0, 2, 4
    assert (late.stopping[:, 3] != never.stopping[:, 3]).all()


CHAIN = Problem(CausalGraph.parse("X -> Z -> Y"), "Y", non_manipulable="Z")
KNOWN = {"X": 1.0, "Z": [[1e9, 1], [1, 1e9]], "Y": [[1e9, 1], [1, 1e9]]}


def test_worlds_and_policy_start_from_the_prior():
    alone = {"try_all": False, "graph_free_prior": 0}
    known = rehearse(CHAIN, 6, worlds=2, looks=2, prior=KNOWN, options=alone)
    assert known.regret.max() < 1e-6 and known.cost.max() == 0
    assert known.sure.min() == 1 and known.stops.tolist() == [0, 0]
    assert known.at_random[:, -1].min() > 1
    assert known.options["prior"] == known.prior == KNOWN
    without = rehearse(CHAIN, 6, worlds=2, looks=2, policy="ucb", prior=KNOWN)
    assert "prior" not in without.options and without.prior == KNOWN
    assert without.at_random[:, -1] == pytest.approx(known.at_random[:, -1])


def test_a_flat_prior_with_the_graph_alone_rehearses_best_of_before():
    options = {"graph_free_prior": 0}
    result = rehearse(CHAIN, 1, worlds=1, looks=1, prior="flat", options=options)
    assert result.options["try_all"] is result.options["count_pending"] is False
    assert result.options["prior"] == result.prior == "flat"
    same = rehearse(CHAIN, 1, worlds=1, looks=1, prior=1.0, options=options)
    assert arrays(result) == arrays(same)


@pytest.mark.parametrize(
    "problem",
    [
        Problem(CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y; Z ?-> X"), "Y", context="C"),
        Problem(
            CausalGraph.parse("X -> Y; M -> X; M -> Y"),
            "Y",
            hidden=("M",),
            minimise=True,
            reward_values={"0": -5.0, "1": 20.0},
        ),
        Problem(CausalGraph.parse("X -> Z -> Y"), "Y", soft=0.1),
    ],
)
def test_curves_of_any_kind_of_problem_are_within_bounds(problem):
    result = rehearse(problem, 8, worlds=2, looks=2)
    assert (np.diff(result.regret, axis=1) >= 0).all()
    assert (result.regret <= problem.payoff.span * result.rounds).all()
    assert ((result.sure > 0) & (result.sure <= 1)).all()
    assert (result.cost >= 0).all() and (result.cost <= problem.payoff.span).all()


@pytest.mark.slow
def test_expectations_are_calibrated():
    # In worlds from the prior E[true cost] = E[expected cost] and P(right) = E[sure], at any look.
    # Differences of means over 200 worlds; 4 standard errors at 3 looks: 4e-4 in all.
    result = rehearse("task2", 30, worlds=200, looks=3, policy="ts", workers=2)
    for truth, belief in ((result.cost, result.stopping), (result.is_best, result.sure)):
        difference = (truth.astype(float) - belief)[:, 1:]
        error = difference.std(axis=0) / np.sqrt(result.worlds)
        assert (np.abs(difference.mean(axis=0)) < 4 * error + 0.01).all()


@pytest.mark.slow
def test_random_policy_has_the_regret_of_random_choices():
    result = rehearse("task1", 60, worlds=60, looks=1, policy="random")
    ratio = result.regret[:, -1].sum() / result.at_random[:, -1].sum()
    assert ratio == pytest.approx(1, abs=0.08)


@pytest.mark.parametrize(
    ("changes", "code", "mentioned"),
    [
        ({"horizon": 0}, "invalid-number", "horizon=0"),
        ({"worlds": 0}, "invalid-number", "worlds=0"),
        ({"delay": -1}, "invalid-number", "delay=-1"),
        ({"looks": 0}, "invalid-number", "looks=0"),
        ({"seed": -1}, "invalid-number", "seed=-1"),
        ({"workers": 0}, "invalid-number", "workers=0"),
        ({"tolerance": -0.1}, "invalid-number", "tolerance=-0.1"),
        ({"policy": "idz"}, "unknown-policy", "'ids'"),
        ({"options": {"sample": 3}}, "unknown-option", "'sample'"),
        ({"prior": {"W": 1.0}}, "unknown-variable", "'W'"),
        ({"prior": {"W": 1.0}, "policy": "ucb"}, "unknown-variable", "'W'"),
    ],
)
def test_invalid_arguments_are_refused(changes, code, mentioned):
    with raises_code(code, mentioned):
        rehearse("task1", **{"horizon": 5, **changes})
