"""Lemmas 3 and 4: radii as printed, both bounds as written, and what the paper gets loose."""

import dataclasses
from functools import cache

import numpy as np
import pytest
from support.errors import raises_code

from dowise import Belief, Problem, load_problem
from dowise.information import delta_interval, estimate, gain_interval, minimise_kl, radii

DELTA = 0.05 / (2 * 1000 * 9)


def at_the_prior(name, samples, seed=0):
    belief = Belief(load_problem(name))
    context = dict.fromkeys(belief.problem.context, 0)
    return estimate(belief.draw_rewards(context, samples, seed))


def test_radii_are_those_of_the_appendix_for_two_values():
    found = radii(samples=1000, arms=9, values=2, delta=0.01)
    assert found.joint == pytest.approx(np.sqrt(np.log(12 * 81 / 0.01) / 2000))
    assert found.best == pytest.approx(np.sqrt(np.log(6 * 9 / 0.01) / 2000))
    assert found.outcome == pytest.approx(np.sqrt(np.log(12 * 9 / 0.01) / 2000))
    three = radii(samples=1000, arms=9, values=3, delta=0.01)
    assert three.joint == pytest.approx(np.sqrt(np.log(18 * 81 / 0.01) / 2000))
    assert three.best == pytest.approx(found.best)
    assert three.outcome == pytest.approx(np.sqrt(np.log(18 * 9 / 0.01) / 2000))


def test_lemma_3_as_printed_and_as_proved():
    found = at_the_prior("task3", 1000)
    printed, proved = delta_interval(found, 0.01), delta_interval(found, 0.01, printed=False)
    radius = np.sqrt(2 / 1000 * np.log(2 / 0.01))
    np.testing.assert_allclose(printed.high, np.minimum(found.delta + radius, 1))
    np.testing.assert_allclose(printed.low, np.maximum(found.delta - radius, 0))
    np.testing.assert_allclose(proved.high - found.delta, (printed.high - found.delta) / 2)


@pytest.mark.parametrize("values", [2, 3])
def test_lemma_4_as_written_arm_by_arm(values):
    graph = load_problem("task1").graph
    labels = [str(i) for i in range(values)]
    belief = Belief(Problem(graph, "Y", non_manipulable="Z", domains={"Y": labels}))
    worth = np.linspace(0, 1, values)
    found = estimate(belief.draw_distributions(None, 50_000, 0), values=worth)
    arms, delta = 3, 0.01
    e = radii(50_000, arms, values, delta)
    interval = gain_interval(found, delta)
    for a in range(arms):
        total, p, q = 0.0, [[], []], [[], []]
        for b in range(arms):
            for y in range(values):
                joint, best, out = found.joint[a, b, y], found.best[b], found.outcomes[a, y]
                low2, low3 = max(0, best - e.best), max(0, out - e.outcome)
                total += min(1, joint + e.joint) ** 2 / (low2 * low3)
                p[0].append(max(0, joint - e.joint))
                p[1].append(min(1, joint + e.joint))
                q[0].append(low2 * low3)
                q[1].append(min(1, best + e.best) * min(1, out + e.outcome))
        assert interval.high[a] == pytest.approx(min(np.log(values), max(0, total - 1)))
        assert interval.low[a] == pytest.approx(minimise_kl(*p, *q), abs=1e-12)


def test_the_cap_is_the_logarithm_of_the_number_of_values():
    drawn = np.random.default_rng(0).dirichlet(np.ones(4), size=(3, 50)).transpose(0, 2, 1)
    found = estimate(drawn, values=[0, 0.2, 0.5, 1])
    np.testing.assert_allclose(gain_interval(found, 0.01).high, np.log(4))


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare"])
@pytest.mark.parametrize("samples", [2, 1000, 10**6, 10**10])
def test_the_estimate_lies_inside(name, samples):
    found = at_the_prior(name, 2000)
    for interval, value in (
        (gain_interval(found, DELTA, samples), found.gain),
        (delta_interval(found, DELTA, samples), found.delta),
    ):
        assert (interval.low <= value + 1e-9).all() and (value <= interval.high + 1e-9).all()
        assert (interval.low >= 0).all()


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare"])
def test_at_a_thousand_draws_the_intervals_say_nothing(name):
    """The paper's N, T = 1000 and δ' = 0.05: [0, log 2] for every arm."""
    found = at_the_prior(name, 1000)
    interval = gain_interval(found, DELTA)
    assert (interval.low == 0).all()
    np.testing.assert_allclose(interval.high, np.log(2))


def test_the_upper_bound_tends_to_chi_squared_not_to_the_gain():
    """Refutes the claim after Theorem 2 that the interval closes in on g."""
    found = at_the_prior("task1", 200_000)
    product = found.best[None, :, None] * found.outcomes[:, None, :]
    chi_squared = (found.joint**2 / product).sum(axis=(1, 2)) - 1
    limit = gain_interval(found, DELTA, samples=10**16)
    np.testing.assert_allclose(limit.high, np.minimum(chi_squared, np.log(2)), rtol=1e-3)
    assert (limit.high > 1.3 * found.gain).all()
    np.testing.assert_allclose(limit.low, found.gain, rtol=1e-3)


def test_more_draws_and_a_larger_delta_give_narrower_intervals():
    found = at_the_prior("task1", 20_000)
    wide, narrow = (gain_interval(found, DELTA, n) for n in (10**5, 10**7))
    assert (narrow.low >= wide.low).all() and (narrow.high <= wide.high + 1e-12).all()
    strict, lax = (gain_interval(found, delta, 10**6) for delta in (1e-9, 0.5))
    assert (lax.low >= strict.low).all() and (lax.high <= strict.high + 1e-12).all()


def test_an_arm_that_is_never_best_leaves_the_upper_bound_at_its_cap():
    found = at_the_prior("task1", 1000)
    never = dataclasses.replace(found, best=np.array([0.0, 0.5, 0.5]))
    np.testing.assert_allclose(gain_interval(never, 0.01, 10**9).high, np.log(2))


@pytest.mark.parametrize(("delta", "samples"), [(0, 10), (1, 10), (-1, 10), (0.1, 0)])
def test_bad_input_is_explained(delta, samples):
    found = at_the_prior("task1", 10)
    for interval in (delta_interval, gain_interval):
        with raises_code("invalid-number"):
            interval(found, delta, samples)


def every_arm_by_itself(found, delta, samples):
    """Lemma 4 with a cell for each arm and value, those of arms that never win included."""
    arms, _, values = found.joint.shape
    joint = np.zeros((arms, arms, values))
    joint[:, found.winning] = found.joint
    e = radii(samples, arms, values, delta)
    best, low = found.best[:, None], []
    for a in range(arms):
        out = found.outcomes[a]
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
def few_of_many_win(arms, samples):
    """What was found of many arms of which three win often, and its slow twin, made once."""
    rng = np.random.default_rng(arms)
    rewards = rng.beta(0.4, 0.4, size=(arms, 400)) * 0.5
    rewards[[3, 7, 30]] *= 2
    found = estimate(rewards)
    assert 2 < len(found.winning) < arms
    return found, every_arm_by_itself(found, 0.01, samples)


@pytest.mark.slow
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("samples", [1000, 10**5, 10**7, 10**9])
@pytest.mark.parametrize("arms", [40, 300])
def test_arms_that_never_win_are_taken_together(monkeypatch, arms, samples, merged):
    monkeypatch.setattr("dowise.information.bounds.MAX_ALL_PAIRS", 0 if merged else 10**9)
    found, low = few_of_many_win(arms, samples)
    interval = gain_interval(found, 0.01, samples)
    np.testing.assert_allclose(interval.low, np.minimum(low, np.log(2)), atol=2e-10)
    np.testing.assert_array_equal(interval.high, np.log(2))  # an arm that never wins: q may be 0
    if not merged:
        np.testing.assert_array_equal(interval.low, np.minimum(low, interval.high))
    assert samples < 10**7 or (interval.low > 0).any()


def test_where_all_arms_win_there_is_no_rest(monkeypatch):
    found = at_the_prior("task1", 20_000)
    apart = gain_interval(found, 0.01, 10**7)
    monkeypatch.setattr("dowise.information.bounds.MAX_ALL_PAIRS", 0)
    together = gain_interval(found, 0.01, 10**7)
    assert (together.low == apart.low).all() and (together.high == apart.high).all()
