"""Δ, g and p* from draws, against Lemma 2 with plain loops and known cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code

from dowise.information import estimate, estimate_from_draws


def slow_estimate(distributions, worth):
    """Return Δ, g and p* of Lemma 2 from draws (arms, values, samples)."""
    arms, values, samples = distributions.shape
    means = np.einsum("avs,v->as", distributions, worth)
    best = [int(np.flatnonzero(means[:, i] == means[:, i].max())[0]) for i in range(samples)]
    p_best = [best.count(a) / samples for a in range(arms)]
    delta, gain = [], []
    for a in range(arms):
        delta.append(sum(means[best[i], i] - means[a, i] for i in range(samples)) / samples)
        total = 0.0
        for b in range(arms):
            for y in range(values):
                p_y = distributions[a, y].sum() / samples
                joint = (
                    sum(distributions[a, y, i] for i in range(samples) if best[i] == b) / samples
                )
                if joint > 0:
                    total += joint * np.log(joint / (p_best[b] * p_y))
        gain.append(total)
    return np.array(delta), np.array(gain), np.array(p_best)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(2, 4), st.integers(1, 12))
def test_estimates_equal_lemma_2(seed, arms, values, samples):
    rng = np.random.default_rng(seed)
    drawn = rng.dirichlet(np.ones(values), size=(arms, samples)).transpose(0, 2, 1)
    worth = np.sort(rng.random(values))
    estimated = estimate(drawn, values=worth)
    for ours, theirs in zip(
        (estimated.delta, estimated.gain, estimated.best), slow_estimate(drawn, worth), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 12))
def test_both_forms_of_two_valued_rewards_agree(seed, arms, samples):
    rewards = np.random.default_rng(seed).random((arms, samples))
    short = estimate(rewards)
    full = estimate(np.stack([1 - rewards, rewards], axis=1), values=[0, 1])
    for name in ("delta", "gain", "best", "means", "joint", "outcomes"):
        np.testing.assert_allclose(getattr(short, name), getattr(full, name), atol=1e-12)
    assert (short.gain >= 0).all() and (short.delta >= 0).all()
    assert short.best.sum() == pytest.approx(1)
    assert (short.gain <= np.log(2) + 1e-12).all()


def test_gains_are_0_if_all_draws_agree():
    rng = np.random.default_rng(0)
    low, high = rng.random((2, 1000)) * 0.4
    estimated = estimate(np.stack([low, high + 0.5]).astype(np.float32))
    assert estimated.gain.tolist() == [0.0, 0.0]
    assert estimated.best.tolist() == [0.0, 1.0]


def test_ties_go_to_the_first_arm():
    assert estimate(np.full((3, 10), 0.5)).best.tolist() == [1, 0, 0]


def test_ratio_of_thompson_sampling_is_at_most_half_the_arms():
    """Ψ ≤ K/2, as in the proof of Corollary 1, with any number of draws."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        arms, samples = rng.integers(2, 8), rng.integers(2, 60)
        estimated = estimate(rng.beta(0.5, 0.5, size=(arms, samples)))
        regret, gain = estimated.best @ estimated.delta, estimated.best @ estimated.gain
        assert regret**2 <= arms / 2 * gain + 1e-12


@pytest.mark.parametrize(
    ("rewards", "values", "code", "mentioned"),
    [
        (np.zeros((2, 2, 3)), None, "invalid-shape", "(arms, samples)"),
        (np.zeros((2, 3)), [0, 1], "invalid-shape", "(arms, samples)"),
        (np.zeros((0, 3)), None, "invalid-shape", "(arms, samples)"),
        ([[0.5, np.nan]], None, "invalid-number", "NaN"),
        (np.full((1, 2, 3), 0.5), [0, 2], "invalid-number", "2 numbers between 0 and 1"),
        (np.full((1, 2, 3), 0.7), [0, 1], "invalid-number", "sum to 1"),
        (np.full((1, 2, 3), 0.5), [0, 0.5, 1], "invalid-number", "2 numbers between 0 and 1"),
    ],
)
def test_invalid_rewards_or_values_are_refused(rewards, values, code, mentioned):
    with raises_code(code, mentioned):
        estimate(rewards, values)


def slow_joint(drawn, winners):
    """Return the winning arms and p_a(a* = b, Y_a = y) for these b."""
    winning = sorted(set(winners))
    joint = np.zeros((len(drawn), len(winning), drawn.shape[1]))
    for a, arm in enumerate(drawn):
        for i, winner in enumerate(winners):
            joint[a, winning.index(winner)] += arm[:, i] / len(winners)
    return winning, joint


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(2, 3), st.integers(1, 12))
def test_joint_equals_plain_loops(seed, arms, values, samples):
    rng = np.random.default_rng(seed)
    drawn = rng.dirichlet(np.ones(values), size=(arms, samples)).transpose(0, 2, 1)
    scaled = np.arange(values) / (values - 1)
    estimated = estimate(drawn, values=scaled)
    winning, joint = slow_joint(drawn, estimated.winners.tolist())
    assert (
        estimated.winners.tolist() == np.einsum("avs,v->as", drawn, scaled).argmax(axis=0).tolist()
    )
    assert estimated.winning.tolist() == winning
    np.testing.assert_allclose(estimated.joint, joint, atol=1e-12)
    np.testing.assert_allclose(
        estimated.joint.sum(axis=2), [estimated.best[winning]] * arms, atol=1e-12
    )
    np.testing.assert_allclose(estimated.outcomes, drawn.mean(axis=2), atol=1e-12)


def test_winners_that_are_passed_are_used():
    rng = np.random.default_rng(0)
    drawn, scaled = rng.random((5, 1, 50)).astype(np.float32), np.array([0.0, 1.0])
    estimated = estimate_from_draws(drawn, scaled)
    peak = float(drawn.astype(np.float64).max(axis=0).sum())
    again = estimate_from_draws(drawn, scaled, (estimated.winners, peak))
    assert again.winners is estimated.winners
    np.testing.assert_array_equal(again.joint, estimated.joint)
    np.testing.assert_array_equal(again.gain, estimated.gain)
    np.testing.assert_allclose(again.delta, estimated.delta, atol=1e-14)
    winners = np.full(50, 3), float(drawn[3].astype(float).sum())
    third = estimate_from_draws(drawn, scaled, winners)
    assert third.best.tolist() == [0, 0, 0, 1, 0] and third.winning.tolist() == [3]
    assert third.delta[3] == 0 and not third.gain.any()


def test_thousands_of_arms_are_estimated():
    """Two of 5,000 arms win, so that the joint is small."""
    rng = np.random.default_rng(0)
    rewards = rng.random((5_000, 200)) * 0.5
    rewards[[17, 4_000]] += 0.5
    estimated = estimate(rewards.astype(np.float32))
    assert estimated.winning.tolist() == [17, 4_000] and estimated.joint.shape == (5_000, 2, 2)
    assert estimated.best.sum() == 1 and estimated.best[[17, 4_000]].sum() == 1
    small = estimate(rewards[[17, 4_000, 5]].astype(np.float32))
    assert estimated.delta[[17, 4_000, 5]].tolist() == small.delta.tolist()
    assert estimated.gain[[17, 4_000, 5]].tolist() == small.gain.tolist()


def test_too_large_joints_are_refused(monkeypatch):
    monkeypatch.setattr("dowise.information.estimates._MAX_BYTES", 10**6)
    rewards = np.eye(400)
    with raises_code("too-large", "400 arms", "400 best arms", "0.0 GB"):
        estimate(rewards)
    estimate(rewards[:, :50])
