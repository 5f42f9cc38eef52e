"""Prior check: a warning if the first rewards are outside of the range of the own prior."""

import numpy as np
import pytest
from scipy.stats import betabinom
from support.experiments import WARD
from support.played_experiments import COIN, coin_experiment, create_experiment, play

from dowise import CausalGraph, Problem
from dowise.experiment import prior_check
from dowise.experiment.status import Status

MEDIATED = Problem(CausalGraph.parse("X -> Z -> Y"), "Y", reward_values={"0": -10, "1": 30})


def all_ones(problem=COIN, rounds=60, **options):
    """Return an experiment in which every value is 1."""
    experiment = create_experiment(problem, **{"policy": "best", **options})
    for _ in range(rounds):
        decision = experiment.ask()
        names = {*problem.domains} - {*decision.arm}
        experiment.tell(decision.id, dict.fromkeys(names, 1))
    return experiment


@pytest.mark.parametrize("count", [1.0, 5.0, 40.0])
def test_range_of_one_arm_is_that_of_the_beta_binomial_distribution(count):
    low, high = prior_check._expected_range(COIN, str(count), ((((), 0), 20),))
    exact = [betabinom.ppf(share, 20, count, count) / 20 for share in (0.01, 0.99)]
    assert abs(low - exact[0]) <= 0.051 and abs(high - exact[1]) <= 0.051


def test_rows_of_different_arms_are_independent_under_flat_rows_and_not_under_pooled_rows():
    plays = ((((), 0), 25), (((), 1), 25))
    flat = prior_check._expected_range(COIN, "1.0", plays)
    pooled = prior_check._expected_range(COIN, '"pooled"', plays)
    assert 0.02 < flat[0] < 0.15 and 0.85 < flat[1] < 0.98
    assert pooled == (0, 1)


def test_unexpected_rewards_are_reported_with_advice_if_rows_are_flat():
    experiment = all_ones(MEDIATED, prior="flat")
    status = experiment.status(evidence=False)
    check = status.prior_check
    assert check.records == 50 and check.mean == 30 and -10 < check.low < check.high < 30
    assert check.is_flat and check.sentence().endswith('Write prior = "pooled", or give counts.')
    assert check.sentence() in str(status)
    assert Status.from_dict(status.as_dict(), MEDIATED).prior_check == check


@pytest.mark.parametrize("options", [{}, {"policy": "ids", "samples": 20}])
def test_no_advice_is_given_for_pooled_rows_and_own_counts(options):
    """With "best" the rows of Z would be pooled, had it more than one."""
    counts = {"Y": [[30, 10], [30, 10]]}
    problem = Problem(CausalGraph.parse("Z -> Y"), "Y", prior=counts, arms=["do()", "do(Z=1)"])
    check = all_ones(problem, rounds=20, **options).status(evidence=False).prior_check
    assert check.records == 20 and not check.is_flat
    assert check.sentence().endswith("; the first 20 rewards average 1.")


def test_pooled_rows_expect_extreme_rewards():
    status = all_ones(MEDIATED).status(evidence=False)
    assert status.prior_check is None and "prior_check" not in status.as_dict()


def test_too_few_rewards_are_not_checked():
    assert all_ones(MEDIATED, rounds=19, prior="flat").status(evidence=False).prior_check is None
    check = all_ones(MEDIATED, rounds=20, prior="flat").status(evidence=False).prior_check
    assert check.records == 20


def test_rewards_count_in_the_order_in_which_they_were_told():
    experiment = create_experiment(MEDIATED, policy="best", prior="flat")
    decisions = [experiment.ask() for _ in range(40)]
    for decision in [*decisions[20:], *decisions[:20]]:
        names = {*MEDIATED.domains} - {*decision.arm}
        experiment.tell(decision.id, dict.fromkeys(names, int(decision.id > 20)))
    check = experiment.status(evidence=False).prior_check
    assert (check.records, check.mean) == (20, 30)


def test_expected_rewards_are_not_reported():
    experiment = coin_experiment({"0": [0, 1] * 15, "1": [1, 0] * 15})
    assert experiment.status(evidence=False).prior_check is None


def test_imported_records_turn_the_check_off():
    experiment = create_experiment(MEDIATED, policy="ids", samples=20)
    experiment.import_records({"arm": ["do(X=0)"], "X": [0], "Z": [1], "Y": [1]})
    for _ in range(20):
        decision = experiment.ask()
        experiment.tell(decision.id, dict.fromkeys({"Z", "Y"} - {*decision.arm}, 1))
    assert experiment.status(evidence=False).prior_check is None


def test_a_range_is_computed_once(monkeypatch):
    experiment, calls = all_ones(MEDIATED, rounds=50, prior=1.5), []

    def count(*arguments):
        calls.append(arguments)
        return draw(*arguments)

    draw = prior_check.draw_prior_worlds
    monkeypatch.setattr(prior_check, "draw_prior_worlds", count)
    first = experiment.status(evidence=False).prior_check
    number = len(calls)
    play(experiment, 3)
    assert experiment.status(evidence=False).prior_check == first
    assert 1 <= number <= 2 and len(calls) == number


def test_contexts_and_doubtful_edges_are_handled():
    doubtful = Problem(CausalGraph.parse("C -> X -> Y; C ?-> Y; X <?> Y"), "Y", "C")
    for problem in (WARD, doubtful):
        for prior in ("1.0", '"pooled"'):
            plays = ((((0,), 0), 10), (((1,), 1), 10))
            low, high = prior_check._expected_range(problem, prior, plays)
            assert 0 <= low < 0.35 and 0.65 < high <= 1


@pytest.mark.slow
def test_rate_in_worlds_of_the_flat_prior():
    # Nominally at most 2 %, by 150 worlds: more than 9 have probability .002.
    rng, warned = np.random.default_rng(5), 0
    for _ in range(150):
        means = rng.random(2)
        plays = rng.integers(2, size=20)
        mean = float((rng.random(20) < means[plays]).mean())
        counts = np.bincount(plays, minlength=2)
        pairs = tuple((((), arm), int(times)) for arm, times in enumerate(counts) if times)
        low, high = prior_check._expected_range(COIN, "1.0", pairs)
        warned += not low - 1e-9 <= mean <= high + 1e-9
    assert warned <= 9
