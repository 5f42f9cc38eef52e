"""Winners of draws: against plain loops, in exact arithmetic, and with fair ties."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowise.model.kernels import find_winners
from dowise.model.kernels import find_winners_by_odds as find_among

KEY = np.uint64(0xD0)


def find_winners_by_odds(whole, scaled, costs, key, first, winners):
    """Compare all arms."""
    return find_among(whole, scaled, costs, np.arange(len(whole)), key, first, winners)


def plain_winners(drawn, scaled, costs):
    """Return the first arm with the largest net reward in each draw, and the sum of them."""
    winners, peak = [], 0.0
    for i in range(drawn.shape[2]):
        rewards = [
            sum(
                ((scaled[y + 1] - scaled[0]) * p for y, p in enumerate(arm[:, i])), scaled[0] - cost
            )
            for arm, cost in zip(drawn.astype(np.float64), costs, strict=True)
        ]
        winners.append(rewards.index(max(rewards)))
        peak += max(rewards)
    return winners, peak


def exact_odds(arm, scaled):
    """Return the distance of a reward from the least value over that from the greatest."""
    worth, chances = [Fraction(float(x)) for x in scaled], [Fraction(float(p)) for p in arm]
    brings = sum((w - min(worth)) * p for w, p in zip(worth, chances, strict=True))
    lacks = sum((max(worth) - w) * p for w, p in zip(worth, chances, strict=True))
    return brings / lacks if lacks else Fraction(10) ** 400


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 5),
    st.integers(2, 4),
    st.integers(1, 9),
    st.sampled_from([np.float32, np.float64]),
)
def test_winners_agree_with_plain_loops(seed, arms, values, samples, precision):
    rng = np.random.default_rng(seed)
    drawn = rng.dirichlet(np.ones(values), size=(arms, samples)).transpose(0, 2, 1)[:, 1:]
    drawn = np.round(drawn, rng.integers(1, 4)).astype(precision)  # some tie
    scaled, winners = np.sort(rng.random(values)), np.empty(samples, np.int64)
    for costs in (np.zeros(arms), rng.integers(0, 3, arms) / 8):
        peak = find_winners(np.ascontiguousarray(drawn), scaled, costs, winners)
        expected, total = plain_winners(drawn, scaled, costs)
        assert winners.tolist() == expected
        assert peak == pytest.approx(total, rel=1e-12, abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(2, 4), st.integers(1, 9))
def test_winners_by_odds_agree_with_exact_arithmetic(seed, arms, values, samples):
    """Powers of two down to 2^-900: nearly all rewards are 0 or 1 to the last digit."""
    rng = np.random.default_rng(seed)
    whole = 2.0 ** -rng.integers(0, 900, size=(arms, values, samples))
    whole[:, 0] *= rng.random((arms, samples)) < 0.8
    scaled = np.arange(values) / (values - 1)
    winners = np.empty(samples, np.int64)
    peak = find_winners_by_odds(whole, scaled, np.zeros(arms), KEY, 0, winners)
    rewards = np.einsum("avs,v->as", whole, scaled)[winners, np.arange(samples)]
    assert peak == pytest.approx(rewards.sum(), rel=1e-12)
    for i, winner in enumerate(winners):
        odds = [exact_odds(arm, scaled) for arm in whole[:, :, i]]
        least = max(odds) if values == 2 else max(odds) * (1 - Fraction(1, 10**15))
        assert odds[winner] >= least


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 9))
def test_winners_by_odds_with_costs_agree_with_exact_arithmetic(seed, arms, samples):
    """Both ends of the scale, to 2^-900, and costs from 0 over such a number to more than all.

    A reward near 1 less a cost and one near 0 less another are told apart to 16 digits, and where
    these are the same the cheaper arm wins.
    """
    rng = np.random.default_rng(seed)
    small = 2.0 ** -rng.integers(1, 900, size=(arms, samples))
    is_good = rng.random((arms, samples)) < 0.5
    large = 1 - small  # 1.0, most often: then the small one alone tells how far it is from 1
    whole = np.stack([np.where(is_good, small, large), np.where(is_good, large, small)], axis=1)
    costs = rng.choice([0.0, 0.25, 1.0, 1.5, 2.0**-60, 2.0**-300], arms)
    winners, scaled = np.empty(samples, np.int64), np.array([0.0, 1.0])
    peak = find_winners_by_odds(whole, scaled, costs, KEY, 0, winners)
    gross = whole[winners, 1, np.arange(samples)]
    assert peak == pytest.approx((gross - costs[winners]).sum(), rel=1e-12, abs=1e-12)
    exact_costs = [Fraction(float(cost)) for cost in costs]
    for i, winner in enumerate(winners):
        exact = [Fraction(float(x)) for x in small[:, i]]
        net = [(1 - exact[a] if is_good[a, i] else exact[a]) - exact_costs[a] for a in range(arms)]
        for a in range(arms):
            if net[a] > net[winner]:
                assert net[a] - net[winner] < Fraction(1, 2**50)
                assert exact_costs[winner] < exact_costs[a]


def test_an_arm_that_costs_the_span_never_wins():
    """Even if all net rewards tie after rounding."""
    whole = np.array([[[1e-30], [1.0]], [[1.0], [1e-320]], [[1.0], [0.0]]])
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        winners, costs = np.empty(1, np.int64), np.array([1.0, 0.0, 0.5])[order]
        find_winners_by_odds(whole[order], np.array([0.0, 1.0]), costs, KEY, 0, winners)
        assert order[winners[0]] == 1


def test_winners_with_rewards_of_0_or_1_in_single_precision():
    """1 − 1e-30 beats 1 − 1e-20, and 1e-30 beats 1e-40."""
    for lost, won in (([1e-20, 1e-30, 1e-25], [1.0] * 3), ([1.0] * 3, [1e-40, 1e-30, 0.0])):
        whole, winners = np.array([lost, won]).T[:, :, None].copy(), np.empty(1, np.int64)
        find_winners_by_odds(whole, np.array([0.0, 1.0]), np.zeros(3), KEY, 0, winners)
        assert winners[0] == 1


@pytest.mark.parametrize("arms", [2, 3, 7])
@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_arms_that_tie_are_equally_likely(arms, chance):
    samples = 70_000
    whole = np.empty((arms + 1, 2, samples))
    whole[:, 0], whole[:, 1] = 1 - chance, chance
    whole[0] = [[1.0], [0.0]]  # never wins, unless all are as bad
    winners, scaled = np.empty(samples, np.int64), np.array([0.0, 1.0])
    costs = np.zeros(arms + 1)
    peak = find_winners_by_odds(whole, scaled, costs, KEY, 0, winners)
    assert peak == samples * chance
    counts = np.bincount(winners, minlength=arms + 1)
    fair = counts if chance == 0 else counts[1:]
    assert counts.sum() == fair.sum()
    expected = samples / len(fair)
    assert (abs(fair - expected) < 5 * np.sqrt(expected)).all()
    repeated, other_key = np.empty_like(winners), np.empty_like(winners)
    find_winners_by_odds(whole, scaled, costs, KEY, 0, repeated)
    find_winners_by_odds(whole, scaled, costs, np.uint64(7), 0, other_key)
    assert (repeated == winners).all() and (other_key != winners).mean() > 0.3
    find_winners_by_odds(whole[:, :, 999:].copy(), scaled, costs, KEY, 999, repeated[999:])
    assert (repeated == winners).all()


def test_only_some_arms_are_compared():
    whole = np.array([[[0.1], [0.9]], [[0.3], [0.7]], [[0.2], [0.8]]])
    for costs in ([0.0, 0.0, 0.0], [0.0, 0.2, 0.1]):
        winners, compared = np.empty(1, np.int64), np.array([1, 2])
        arguments = np.array([0.0, 1.0]), np.array(costs), compared, KEY, 0, winners
        peak = find_among(whole, *arguments)
        assert winners[0] == 2 and peak == pytest.approx(0.8 - costs[2])


def test_arms_win_equally_often_under_a_tiny_prior():
    """X → Y with prior .02: the arms are alike, so either is best in half of the draws."""
    rng, samples = np.random.default_rng(0), 100_000
    logs = (
        np.log(rng.gamma(1.02, size=(2, 2, samples))) + np.log(rng.random((2, 2, samples))) / 0.02
    )
    whole = np.exp(logs - logs.max(axis=1, keepdims=True))
    whole /= whole.sum(axis=1, keepdims=True)
    winners, scaled = np.empty(samples, np.int64), np.array([0.0, 1.0])
    single = np.ascontiguousarray(whole[:, 1:]).astype(np.float32)
    find_winners(single, scaled, np.zeros(2), winners)
    assert (winners == 0).mean() > 0.55  # what single precision does
    find_winners_by_odds(whole, scaled, np.zeros(2), KEY, 0, winners)
    assert abs((winners == 0).mean() - 0.5) < 4 * 0.5 / np.sqrt(samples)
