"""Δ, g and p* from draws: against the formulas of Lemma 2 written out, and known cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code

from dowise.information import estimate, estimate_from_draws


def by_the_book(distributions, worth):
    """Lemma 2 with plain loops: (arms, values, samples)."""
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
def test_against_the_formulas_written_out(seed, arms, values, samples):
    rng = np.random.default_rng(seed)
    drawn = rng.dirichlet(np.ones(values), size=(arms, samples)).transpose(0, 2, 1)
    worth = np.sort(rng.random(values))
    found = estimate(drawn, values=worth)
    for ours, theirs in zip(
        (found.delta, found.gain, found.best), by_the_book(drawn, worth), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 12))
def test_two_values_are_the_same_in_both_forms(seed, arms, samples):
    rewards = np.random.default_rng(seed).random((arms, samples))
    short = estimate(rewards)
    full = estimate(np.stack([1 - rewards, rewards], axis=1), values=[0, 1])
    for name in ("delta", "gain", "best", "means", "joint", "outcomes"):
        np.testing.assert_allclose(getattr(short, name), getattr(full, name), atol=1e-12)
    assert (short.gain >= 0).all() and (short.delta >= 0).all()
    assert short.best.sum() == pytest.approx(1)
    assert (short.gain <= np.log(2) + 1e-12).all()


def test_where_all_draws_agree_nothing_is_left_to_learn():
    rng = np.random.default_rng(0)
    low, high = rng.random((2, 1000)) * 0.4
    found = estimate(np.stack([low, high + 0.5]).astype(np.float32))
    assert found.gain.tolist() == [0.0, 0.0]
    assert found.best.tolist() == [0.0, 1.0]


def test_ties_go_to_the_first_arm():
    assert estimate(np.full((3, 10), 0.5)).best.tolist() == [1, 0, 0]


def test_thompson_sampling_never_pays_more_than_half_the_arms_per_nat():
    """Corollary 1's proof: Ψ of Thompson Sampling ≤ K/2, always; also with few draws."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        arms, samples = rng.integers(2, 8), rng.integers(2, 60)
        found = estimate(rng.beta(0.5, 0.5, size=(arms, samples)))
        regret, gain = found.best @ found.delta, found.best @ found.gain
        assert regret**2 <= arms / 2 * gain + 1e-12


@pytest.mark.parametrize(
    ("rewards", "values", "code", "mentioned"),
    [
        ([0.5, 0.5], None, "invalid-shape", "(arms, samples)"),
        (np.zeros((2, 2, 3)), None, "invalid-shape", "(arms, samples)"),
        (np.zeros((2, 3)), [0, 1], "invalid-shape", "(arms, samples)"),
        (np.zeros((0, 3)), None, "invalid-shape", "(arms, samples)"),
        ([[0.5, 1.5]], None, "invalid-number", "from 0.5 to 1.5"),
        ([[0.5, np.nan]], None, "invalid-number", "NaN"),
        (np.full((1, 2, 3), 0.5), [0, 2], "invalid-number", "2 numbers between 0 and 1"),
        (np.full((1, 2, 3), 0.7), [0, 1], "invalid-number", "sum to 1"),
        (np.full((1, 2, 3), 0.5), [0, 0.5, 1], "invalid-number", "2 numbers between 0 and 1"),
    ],
)
def test_bad_input_is_explained(rewards, values, code, mentioned):
    with raises_code(code, mentioned):
        estimate(rewards, values)


def book_of_joints(drawn, winners):
    """p_a(a* = b, Y_a = y) for the arms b that win: plain loops over (arms, values, samples)."""
    winning = sorted(set(winners))
    joint = np.zeros((len(drawn), len(winning), drawn.shape[1]))
    for a, arm in enumerate(drawn):
        for i, winner in enumerate(winners):
            joint[a, winning.index(winner)] += arm[:, i] / len(winners)
    return winning, joint


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(2, 3), st.integers(1, 12))
def test_the_joint_is_that_of_winning_arms(seed, arms, values, samples):
    rng = np.random.default_rng(seed)
    drawn = rng.dirichlet(np.ones(values), size=(arms, samples)).transpose(0, 2, 1)
    scaled = np.arange(values) / (values - 1)
    found = estimate(drawn, values=scaled)
    winning, joint = book_of_joints(drawn, found.winners.tolist())
    assert found.winners.tolist() == np.einsum("avs,v->as", drawn, scaled).argmax(axis=0).tolist()
    assert found.winning.tolist() == winning
    np.testing.assert_allclose(found.joint, joint, atol=1e-12)
    np.testing.assert_allclose(found.joint.sum(axis=2), [found.best[winning]] * arms, atol=1e-12)
    np.testing.assert_allclose(found.outcomes, drawn.mean(axis=2), atol=1e-12)


def test_winners_that_are_known_are_not_looked_for():
    rng = np.random.default_rng(0)
    drawn, scaled = rng.random((5, 1, 50)).astype(np.float32), np.array([0.0, 1.0])
    found = estimate_from_draws(drawn, scaled)
    peak = float(drawn.astype(np.float64).max(axis=0).sum())
    again = estimate_from_draws(drawn, scaled, (found.winners, peak))
    assert again.winners is found.winners
    np.testing.assert_array_equal(again.joint, found.joint)
    np.testing.assert_array_equal(again.gain, found.gain)
    np.testing.assert_allclose(again.delta, found.delta, atol=1e-14)
    always = estimate_from_draws(
        drawn, scaled, (np.full(50, 3), float(drawn[3].astype(float).sum()))
    )
    assert always.best.tolist() == [0, 0, 0, 1, 0] and always.winning.tolist() == [3]
    assert always.delta[3] == 0 and not always.gain.any()


def test_thousands_of_arms():
    """Two of 5,000 arms win: the rest needs no room in the joint."""
    rng = np.random.default_rng(0)
    rewards = rng.random((5_000, 200)) * 0.5
    rewards[[17, 4_000]] += 0.5
    found = estimate(rewards.astype(np.float32))
    assert found.winning.tolist() == [17, 4_000] and found.joint.shape == (5_000, 2, 2)
    assert found.best.sum() == 1 and found.best[[17, 4_000]].sum() == 1
    small = estimate(rewards[[17, 4_000, 5]].astype(np.float32))
    assert found.delta[[17, 4_000, 5]].tolist() == small.delta.tolist()
    assert found.gain[[17, 4_000, 5]].tolist() == small.gain.tolist()


def test_too_many_arms_are_refused_with_the_estimate(monkeypatch):
    monkeypatch.setattr("dowise.information.estimates._MAX_BYTES", 10**6)
    rewards = np.eye(400)
    with raises_code("too-large", "400 arms", "400 best arms", "0.0 GB"):
        estimate(rewards)
    estimate(rewards[:, :50])
