"""Lemmas 3 and 4: radii and intervals as in the appendix, and their limits."""

import dataclasses
from functools import cache

import numpy as np
import pytest
from support.errors import raises_code

from dowise import Belief, Problem, load_problem
from dowise.information import delta_interval, estimate, gain_interval, minimise_kl, radii

DELTA = 0.05 / (2 * 1000 * 9)


def estimate_at_prior(name, samples, seed=0):
    belief = Belief(load_problem(name))
    context = dict.fromkeys(belief.problem.context, 0)
    return estimate(belief.draw_rewards(context, samples, seed))


def test_radii_of_lemma_4():
    for values, events in ((2, 12), (3, 18)):
        epsilon = radii(samples=1000, arms=9, values=values, delta=0.01)
        assert epsilon.joint == pytest.approx(np.sqrt(np.log(events * 81 / 0.01) / 2000))
        assert epsilon.best == pytest.approx(np.sqrt(np.log(6 * 9 / 0.01) / 2000))
        assert epsilon.outcome == pytest.approx(np.sqrt(np.log(events * 9 / 0.01) / 2000))


def test_lemma_3_as_printed_and_as_proved():
    estimated = estimate_at_prior("task3", 1000)
    printed, proved = (
        delta_interval(estimated, 0.01),
        delta_interval(estimated, 0.01, printed=False),
    )
    radius = np.sqrt(2 / 1000 * np.log(2 / 0.01))
    np.testing.assert_allclose(printed.high, np.minimum(estimated.delta + radius, 1))
    np.testing.assert_allclose(printed.low, np.maximum(estimated.delta - radius, 0))
    np.testing.assert_allclose(proved.high - estimated.delta, (printed.high - estimated.delta) / 2)


@pytest.mark.parametrize("values", [2, 3])
def test_lemma_4_arm_by_arm(values):
    graph = load_problem("task1").graph
    labels = [str(i) for i in range(values)]
    belief = Belief(Problem(graph, "Y", non_manipulable="Z", domains={"Y": labels}))
    worth = np.linspace(0, 1, values)
    estimated = estimate(belief.draw_distributions(None, 50_000, 0), values=worth)
    arms, delta = 3, 0.01
    e = radii(50_000, arms, values, delta)
    interval = gain_interval(estimated, delta)
    for a in range(arms):
        total, p, q = 0.0, [[], []], [[], []]
        for b in range(arms):
            for y in range(values):
                joint, best, out = (
                    estimated.joint[a, b, y],
                    estimated.best[b],
                    estimated.outcomes[a, y],
                )
                low2, low3 = max(0, best - e.best), max(0, out - e.outcome)
                total += min(1, joint + e.joint) ** 2 / (low2 * low3)
                p[0].append(max(0, joint - e.joint))
                p[1].append(min(1, joint + e.joint))
                q[0].append(low2 * low3)
                q[1].append(min(1, best + e.best) * min(1, out + e.outcome))
        assert interval.high[a] == pytest.approx(min(np.log(values), max(0, total - 1)))
        assert interval.low[a] == pytest.approx(minimise_kl(*p, *q), abs=1e-12)


def test_gains_are_at_most_the_logarithm_of_the_number_of_values():
    drawn = np.random.default_rng(0).dirichlet(np.ones(4), size=(3, 50)).transpose(0, 2, 1)
    estimated = estimate(drawn, values=[0, 0.2, 0.5, 1])
    np.testing.assert_allclose(gain_interval(estimated, 0.01).high, np.log(4))


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare"])
@pytest.mark.parametrize("samples", [2, 1000, 10**6, 10**10])
def test_intervals_contain_the_estimate(name, samples):
    estimated = estimate_at_prior(name, 2000)
    for interval, value in (
        (gain_interval(estimated, DELTA, samples), estimated.gain),
        (delta_interval(estimated, DELTA, samples), estimated.delta),
    ):
        assert (interval.low <= value + 1e-9).all() and (value <= interval.high + 1e-9).all()
        assert (interval.low >= 0).all()


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare"])
def test_a_thousand_draws_give_trivial_gain_intervals(name):
    """The paper's N, T = 1000 and δ' = 0.05: [0, log 2] for every arm."""
    estimated = estimate_at_prior(name, 1000)
    interval = gain_interval(estimated, DELTA)
    assert (interval.low == 0).all()
    np.testing.assert_allclose(interval.high, np.log(2))


def test_the_upper_bound_tends_to_chi_squared_not_to_the_gain():
    """The claim after Theorem 2, that the interval converges to g, does not hold."""
    estimated = estimate_at_prior("task1", 200_000)
    product = estimated.best[None, :, None] * estimated.outcomes[:, None, :]
    chi_squared = (estimated.joint**2 / product).sum(axis=(1, 2)) - 1
    limit = gain_interval(estimated, DELTA, samples=10**16)
    np.testing.assert_allclose(limit.high, np.minimum(chi_squared, np.log(2)), rtol=1e-3)
    assert (limit.high > 1.3 * estimated.gain).all()
    np.testing.assert_allclose(limit.low, estimated.gain, rtol=1e-3)


def test_intervals_narrow_with_draws_and_delta():
    estimated = estimate_at_prior("task1", 20_000)
    wide, narrow = (gain_interval(estimated, DELTA, n) for n in (10**5, 10**7))
    assert (narrow.low >= wide.low).all() and (narrow.high <= wide.high + 1e-12).all()
    strict, lax = (gain_interval(estimated, delta, 10**6) for delta in (1e-9, 0.5))
    assert (lax.low >= strict.low).all() and (lax.high <= strict.high + 1e-12).all()


def test_the_upper_bound_is_log_2_if_an_arm_is_never_best():
    estimated = estimate_at_prior("task1", 1000)
    never = dataclasses.replace(estimated, best=np.array([0.0, 0.5, 0.5]))
    np.testing.assert_allclose(gain_interval(never, 0.01, 10**9).high, np.log(2))


@pytest.mark.parametrize(("delta", "samples"), [(0, 10), (1, 10), (-1, 10), (0.1, 0)])
def test_invalid_delta_or_samples_are_refused(delta, samples):
    estimated = estimate_at_prior("task1", 10)
    for interval in (delta_interval, gain_interval):
        with raises_code("invalid-number"):
            interval(estimated, delta, samples)


def unmerged_lower_bounds(estimated, delta, samples):
    """Return the lower bounds of Lemma 4 with a cell for each arm and value."""
    arms, _, values = estimated.joint.shape
    joint = np.zeros((arms, arms, values))
    joint[:, estimated.winning] = estimated.joint
    e = radii(samples, arms, values, delta)
    best, low = estimated.best[:, None], []
    for a in range(arms):
        out = estimated.outcomes[a]
        low.append(
            minimise_kl(
                (joint[a] - e.joint).clip(0),
                (joint[a] + e.joint).clip(max=1),
                (best - e.best).clip(0) * (out - e.outcome).clip(0),
                (best + e.best).clip(max=1) * (out + e.outcome).clip(max=1),
            )
        )
    return np.array(low)


@cache
def estimate_of_many_arms(arms, samples):
    """Return an estimate in which few of many arms win, and its lower bounds by the twin."""
    rng = np.random.default_rng(arms)
    rewards = rng.beta(0.4, 0.4, size=(arms, 400)) * 0.5
    rewards[[3, 7, 30]] *= 2
    estimated = estimate(rewards)
    assert 2 < len(estimated.winning) < arms
    return estimated, unmerged_lower_bounds(estimated, 0.01, samples)


@pytest.mark.slow
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("samples", [1000, 10**5, 10**7, 10**9])
@pytest.mark.parametrize("arms", [40, 300])
def test_merging_arms_that_never_win_keeps_the_bounds(monkeypatch, arms, samples, merged):
    monkeypatch.setattr("dowise.information.bounds.MAX_ALL_PAIRS", 0 if merged else 10**9)
    estimated, low = estimate_of_many_arms(arms, samples)
    interval = gain_interval(estimated, 0.01, samples)
    np.testing.assert_allclose(interval.low, np.minimum(low, np.log(2)), atol=2e-10)
    np.testing.assert_array_equal(interval.high, np.log(2))  # an arm that never wins: q may be 0
    if not merged:
        np.testing.assert_array_equal(interval.low, np.minimum(low, interval.high))
    assert samples < 10**7 or (interval.low > 0).any()


def test_merging_changes_nothing_if_all_arms_win(monkeypatch):
    estimated = estimate_at_prior("task1", 20_000)
    apart = gain_interval(estimated, 0.01, 10**7)
    monkeypatch.setattr("dowise.information.bounds.MAX_ALL_PAIRS", 0)
    merged = gain_interval(estimated, 0.01, 10**7)
    assert (merged.low == apart.low).all() and (merged.high == apart.high).all()
