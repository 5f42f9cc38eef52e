"""Rehearsals: an experiment played beforehand in worlds drawn from the prior."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from support.parametrize import one_in

from dowise import CausalGraph, DowiseError, Problem, load_problem
from dowise._core.document import format_number
from dowise.experiment.plots import draw_rehearsal, rehearsal_figure
from dowise.experiment.rehearsal import Rehearsal, Spread, exact_number, rehearse

ARRAYS = ("regret", "at_random", "stopping", "cost", "sure")
INF = float("inf")


def rows(*worlds):
    return np.array(worlds, dtype=float)


BY_HAND = Rehearsal(
    load_problem("task1"), "ids", {"samples": 1000}, 1.0, 10, 0.05, 0, 7,
    rounds=np.array([0, 5, 10]),
    regret=rows([0, 2, 3], [0, 1, 1], [0, 4, 8], [0, 1, 2]),
    at_random=rows([0, 4, 8], [0, 4, 8], [0, 5, 10], [0, 3, 6]),
    stopping=rows([0.3, 0.05, 0.01], [0.3, 0.2, 0.04], [0.3, 0.2, 0.1], [0.3, 0.04, 0.2]),
    cost=rows([0.2, 0.04, 0], [0, 0, 0], [0.5, 0.5, 0.1], [0, 0.02, 0.03]),
    sure=rows([0.25, 0.5, 0.9], [0.25, 0.6, 0.8], [0.25, 0.4, 0.5], [0.25, 0.6, 0.7]),
)  # fmt: skip


IN_MONEY = replace(
    BY_HAND, tolerance=1_250.5, **{name: 2120 * getattr(BY_HAND, name) for name in ARRAYS[:-1]}
)
ALONE = replace(BY_HAND, **{name: getattr(BY_HAND, name)[:1] for name in ARRAYS})


def arrays(rehearsal):
    return {name: getattr(rehearsal, name).tolist() for name in ARRAYS}


def test_the_first_look_with_the_advice_to_stop_counts_even_if_it_is_taken_back():
    assert BY_HAND.stops.tolist() == [5, 10, INF, 5]
    assert BY_HAND.stopped_cost == pytest.approx((0.04 + 0 + 0.02) / 3)


def test_figures_of_four_worlds_by_hand():
    page = BY_HAND.as_dict()
    assert page["regret"] == {"mean": 3.5, "median": 2, "low": 1, "high": 8}
    assert page["regret_at_random"]["mean"] == 8
    assert page["best_at_end"] == 0.5 and page["nearly_best_at_end"] == 0.75
    assert page["rounds_until_stop"] == {
        "median": 5, "low": 5, "high": "inf", "share_never": 0.25,
        "true_cost_per_round": pytest.approx(0.02),
    }  # fmt: skip
    assert [look["stopped"] for look in page["looks"]] == [0, 0.5, 0.75]
    assert [look["best"] for look in page["looks"]] == [0.5, 0.25, 0.5]
    assert json.loads(json.dumps(page)) == page


def test_the_cost_of_a_round_at_the_end_is_that_of_the_last_tenth():
    rounds = np.array([0, 5, 9, 10])
    regret = rows([0, 5, 6, 6.5], [0, 1, 2, 2])
    late = replace(BY_HAND, rounds=rounds, **dict.fromkeys(ARRAYS, regret))
    assert late.per_round.tolist() == [0.5, 0]
    assert BY_HAND.per_round.tolist() == [0.2, 0, 0.8, 0.2]


def test_words_tell_of_worlds_without_the_advice_and_of_none_with_it():
    said = str(BY_HAND)
    assert "In 4 worlds drawn from the prior, ids over 10 rounds:" in said
    assert "The total regret is 3.5 on average (90 % of worlds: 1 to 8); choosing at random" in said
    assert "believed to be 73 % on average (90 % of worlds: 50 % to 90 %)" in said
    assert "best in 50 % of worlds, and within 0.05 of it in 75 %" in said
    assert "comes in 75 % of worlds within 10 rounds, there after 5 (median" in said
    strict = replace(BY_HAND, tolerance=0.0)
    assert strict.stopped_cost is None
    assert "comes in no world within 10 rounds" in str(strict)
    assert "comes after 0 rounds (median; 90 % of worlds: 0 to 0)" in str(
        replace(BY_HAND, tolerance=0.5)
    )
    assert "outcomes told 3 rounds late" in str(replace(BY_HAND, delay=3))


def test_money_is_written_out():
    numbers = (2119.6, 999.7, 1_234_567, -4321, 99.95, 0.01234, 0.0, INF, 1.234e-5, 1e15)
    assert [format_number(number) for number in numbers] == [
        "2,120", "1,000", "1,230,000", "-4,320", "100", "0.0123", "0", "inf", "1.23e-05", "1e+15",
    ]  # fmt: skip
    assert [exact_number(number) for number in (1250.5, 2e6, 0.1 + 0.2)] == [
        "1,250.5",
        "2,000,000",
        "0.3",
    ]
    said = str(IN_MONEY)
    assert "The total regret is 7,420 on average (90 % of worlds: 2,120 to 17,000)" in said
    assert "choosing at random costs 17,000." in said
    assert "a tolerance of 1,250.5 per round" in said and "e+" not in said


def test_of_one_world_there_is_no_range():
    said = str(ALONE)
    assert "The total regret is 3; choosing at random costs 8." in said
    assert "comes after 5 rounds. What looks best then truly costs 0.04 per round." in said
    assert "90 %" not in said.replace("believed to be 90 %. It", "") and "average" not in said
    once = str(replace(BY_HAND, tolerance=0.01))
    assert "comes in 25 % of worlds within 10 rounds, there after 10. What" in once
    assert once.endswith("costs 0 per round.")
    assert "outcomes told 1 round late" in str(replace(ALONE, delay=1))
    figure = rehearsal_figure(ALONE)
    assert figure.title == "task1: ids in 1 world drawn from the prior"
    assert all(line.low is None for panel in figure.panels for line in panel.lines)


def test_quantiles_are_numbers_that_occurred():
    assert Spread.of(np.array([1.0, INF])) == Spread(INF, 1.0, 1.0, INF)


def test_the_same_seed_gives_the_same_bits_and_each_world_its_own():
    one = rehearse("task1", 12, worlds=3, looks=4, seed=3)
    again = rehearse("task1", 12, worlds=3, looks=4, seed=3)
    first = rehearse("task1", 12, worlds=1, looks=4, seed=3)
    other = rehearse("task1", 12, worlds=3, looks=4, seed=4)
    assert arrays(one) == arrays(again)
    assert arrays(first) == {name: part[:1] for name, part in arrays(one).items()}
    assert arrays(one) != arrays(other)
    assert len(np.unique(one.at_random[:, -1])) == 3
    assert one.rounds.tolist() == [0, 3, 6, 9, 12]


@pytest.mark.slow
def test_other_processes_find_the_same_bits():
    done = []
    two = rehearse("task2", 10, worlds=4, looks=2, workers=2, progress=lambda *at: done.append(at))
    assert arrays(two) == arrays(rehearse("task2", 10, worlds=4, looks=2))
    assert done == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_what_comes_after_the_end_teaches_nothing_and_what_comes_late_teaches_less():
    never = rehearse("task1", 10, worlds=2, looks=5, delay=10)
    assert (never.stopping == never.stopping[:, :1]).all()
    late = rehearse("task1", 10, worlds=2, looks=5, delay=4)
    assert (late.stopping[:, :3] == never.stopping[:, :3]).all()  # rounds 0, 2, 4
    assert (late.stopping[:, 3] != never.stopping[:, 3]).all()


CHAIN = Problem(CausalGraph.parse("X -> Z -> Y"), "Y", non_manipulable="Z")
KNOWN = {"X": 1.0, "Z": [[1e9, 1], [1, 1e9]], "Y": [[1e9, 1], [1, 1e9]]}


def test_a_world_that_is_known_beforehand_costs_nothing():
    known = rehearse(CHAIN, 6, worlds=2, looks=2, prior=KNOWN)
    assert known.regret.max() < 1e-6 and known.cost.max() == 0
    assert known.sure.min() == 1 and known.stops.tolist() == [0, 0]
    assert known.at_random[:, -1].min() > 1
    assert known.options["prior"] == known.prior == KNOWN


def test_worlds_come_from_the_prior_even_where_the_policy_has_none():
    blind = rehearse(CHAIN, 6, worlds=1, looks=1, policy="ucb", prior=KNOWN)
    assert "prior" not in blind.options and blind.prior == KNOWN
    assert blind.at_random[0, -1] == pytest.approx(
        rehearse(CHAIN, 6, worlds=1, looks=1, prior=KNOWN).at_random[0, -1]
    )


@pytest.mark.parametrize(
    "problem",
    [
        Problem(CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y; Z ?-> X"), "Y", context="C"),
        Problem(CausalGraph.parse("X -> Y; M -> X; M -> Y"), "Y", hidden=("M",), minimise=True,
                reward_values={"0": -5.0, "1": 20.0}),
        Problem(CausalGraph.parse("X -> Z -> Y"), "Y", soft=0.1),
    ],
)  # fmt: skip
def test_context_hidden_causes_doubtful_edges_and_costs(problem):
    found = rehearse(problem, 8, worlds=2, looks=2)
    assert (np.diff(found.regret, axis=1) >= 0).all()
    assert (found.regret <= problem.payoff.span * found.rounds).all()
    assert ((found.sure > 0) & (found.sure <= 1)).all()
    assert (found.cost >= 0).all() and (found.cost <= problem.payoff.span).all()


@pytest.mark.slow
def test_what_is_expected_comes_true_on_average():
    # In worlds from the prior E[true cost] = E[expected cost] and P(right) = E[sure], at any look.
    # Differences of means over 200 worlds; 4 standard errors at 3 looks: 4e-4 in all.
    found = rehearse("task2", 30, worlds=200, looks=3, policy="ts", workers=2)
    for truth, belief in ((found.cost, found.stopping), (found.is_best, found.sure)):
        difference = (truth.astype(float) - belief)[:, 1:]
        error = difference.std(axis=0) / np.sqrt(found.worlds)
        assert (np.abs(difference.mean(axis=0)) < 4 * error + 0.01).all()


@pytest.mark.slow
def test_a_policy_that_learns_nothing_has_the_regret_of_choosing_at_random():
    found = rehearse("task1", 60, worlds=60, looks=1, policy="random")
    ratio = found.regret[:, -1].sum() / found.at_random[:, -1].sum()
    assert ratio == pytest.approx(1, abs=0.08)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"horizon": 0}, "horizon=0"),
        ({"worlds": 0}, "worlds=0"),
        ({"delay": -1}, "delay=-1"),
        ({"looks": 0}, "looks=0"),
        ({"seed": -1}, "seed=-1"),
        ({"workers": 0}, "workers=0"),
        ({"tolerance": -0.1}, "tolerance=-0.1"),
        ({"policy": "idz"}, "did you mean 'ids'"),
        ({"options": {"sample": 3}}, "no option 'sample'"),
        ({"prior": {"W": 1.0}}, "names 'W'"),
        ({"prior": {"W": 1.0}, "policy": "ucb"}, "names 'W'"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_played(changes, what):
    with pytest.raises(DowiseError, match=what):
        rehearse("task1", **{"horizon": 5, **changes})


def test_the_figure_has_the_numbers_of_the_looks():
    figure = rehearsal_figure(BY_HAND)
    regret, stopping, sure, stopped = figure.panels
    assert [line.label for line in regret.lines] == ["ids", "at random"]
    assert regret.lines[0].middle.tolist() == [0, 2, 3.5] and "(mean, and the" in figure.title
    assert regret.lines[0].low.tolist() == [0, 1, 1]
    assert regret.lines[1].middle.tolist() == [0, 4, 8]
    assert stopping.lines[1].middle.tolist() == pytest.approx([0.175, 0.14, 0.0325])
    assert sure.lines[2].middle.tolist() == BY_HAND.is_nearly_best.mean(axis=0).tolist()
    assert stopped.lines[0].middle.tolist() == [0, 0.5, 0.75]
    assert "task1: ids in 4 worlds" in figure.title


@pytest.mark.parametrize("ending", one_in(3, ["svg", "png", "pdf"]))
def test_the_figure_is_drawn_the_same_way_each_time(tmp_path, ending):
    first, second = tmp_path / f"one.{ending}", tmp_path / f"two.{ending}"
    for path in (first, second):
        draw_rehearsal(rehearsal_figure(BY_HAND), path)
    assert len(first.read_bytes()) > 5000
    if ending != "svg":  # whose names inside are random
        assert first.read_bytes() == second.read_bytes()


def test_the_figure_writes_money_out(tmp_path):
    draw_rehearsal(rehearsal_figure(IN_MONEY), tmp_path / "money.svg")
    drawn = (tmp_path / "money.svg").read_text()
    assert ">14,000</text>" in drawn and ">tolerance 1,250.5</text>" in drawn
    assert "… within 1,250.5" in drawn


def test_every_part_of_a_rehearsal_is_in_its_page():
    page = BY_HAND.as_dict()
    arrays_in_looks = {*ARRAYS, "rounds"}
    assert {field.name for field in fields(Rehearsal)} - arrays_in_looks <= page.keys()
