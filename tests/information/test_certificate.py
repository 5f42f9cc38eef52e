"""Certificates of rounds: against a slow twin and exact posteriors, and their failure rate."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from support.errors import raises_code
from support.strategies import examples

from dowise import CausalGraph, Problem, load_problem
from dowise.information import estimate_of
from dowise.information.certificate import (
    _TOLERANCE,
    CHOOSING_SHARE,
    certified_regret,
    certify,
    default_lam,
    make_certificate,
    net_values,
    upper_mean,
)
from dowise.information.ratio import IDSAction
from dowise.model.draws import Draws
from dowise.problem import Payoff

pytestmark = pytest.mark.slow  # kernels that only these tests use take long to compile

PSEUDO_DRAWS = 2  # of the kernel


def payoff(values):
    return Payoff(np.array(values, dtype=float))


def drawn(rng, arms, values, samples, sharpness=1.0):
    """Draw P(Y = y) of different arms, some of which never win; return all values, and `Draws`."""
    shapes = rng.random((arms, values)) * 3 * sharpness + 0.2
    p = np.stack([rng.dirichlet(shape, samples).T for shape in shapes])
    return p, Draws(np.ascontiguousarray(p[:, 1:]))


def costs_of(p, worth, winners, means, fit, pi):
    """Return x, q, r and L by the definitions in docs/certificate.md."""
    arms, _, samples = p.shape
    r = {}
    for a in range(arms):
        for k in range(arms):
            won = [i for i in range(fit) if winners[i] == k]
            total = sum(p[a, :, i] for i in won) + PSEUDO_DRAWS * means[a]
            r[a, k] = total / (len(won) + PSEUDO_DRAWS)
    logs = {key: np.log(row / means[key[0]]) for key, row in r.items()}
    x, q = np.zeros(samples), np.zeros(samples)
    for i in range(samples):
        k = winners[i]
        x[i] = p[k, :, i] @ worth[k] - sum(pi[a] * (p[a, :, i] @ worth[a]) for a in range(arms))
        q[i] = sum(pi[a] * (p[a, :, i] @ logs[a, k]) for a in range(arms))
    return x, q, r, logs


def slow_certify(p, worth, winners, means, fit, pi, lam, evidence):
    """Return the bounds at this evidence and at the largest the kernel may use, and λ or 0."""
    arms, values, samples = p.shape
    x, q, _, logs = costs_of(p, worth, winners, means, fit, pi)
    winning, bounding = sorted(set(winners[:fit].tolist())), samples - fit
    best = (np.inf,)
    for candidate in (0.0, lam):
        tops = [pi @ (worth.max() - worth.min(axis=1))]
        for k in winning:
            parts = [
                max(
                    (0 if a == k else worth[k].max() - worth[a, y]) - candidate * logs[a, k][y]
                    for y in range(values)
                )
                for a in range(arms)
            ]
            tops.append(pi @ np.array(parts))
        top, h = max(tops), x - candidate * q
        assert (h <= top + 1e-9).all()
        middle = h[:fit].mean() + candidate * (len(winning) - 1) * (values - 1) / (2 * fit)
        spread = h[:fit].var() + top**2 / (2 * fit)
        width = np.sqrt(2 * spread * evidence / bounding) + top * evidence / (3 * bounding)
        if middle + width < best[0]:
            beta = 1 / max(np.sqrt(bounding * spread / (2 * evidence)), top - middle)
            best = (middle + width, candidate, beta, top, h[fit:])
    _, candidate, beta, top, h = best
    return (
        slow_upper(h, top, beta, evidence),
        slow_upper(h, top, beta, evidence + 2 * _TOLERANCE),
        candidate,
    )


def slow_upper(values, top, beta, evidence):
    """Return the smallest m ≥ top − 1/β with Σ log(1 + β(m − x)) ≥ evidence, or `top`."""

    def excess(m):
        return np.log1p(beta * (m - values)).sum() - evidence

    least = top - (1 - 1e-9) / beta
    if excess(least) >= 0:
        return least
    return top if excess(top) < 0 else brentq(excess, least, top, xtol=1e-14)


@examples(60)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(2, 4), st.floats(0.1, 30))
def test_certificate_equals_its_slow_twin(seed, arms, values, lam):
    rng = np.random.default_rng(seed)
    p, draws = drawn(rng, arms, values, 120, rng.choice([0.3, 3.0]))
    worth = np.tile(rng.permutation(np.linspace(0, 1, values)), (arms, 1))
    worth -= rng.choice([0, 0.3]) * rng.random((arms, 1))  # costs of arms
    winners = np.einsum("ayi,ay->ia", p, worth).argmax(axis=1)
    means, fit = p.mean(axis=2), 40
    chosen_by = estimate_of(draws.head(fit), payoff(np.linspace(0, 1, values)))
    winning = np.unique(winners[:fit])
    joint = np.stack(
        [
            [(p[a, :, :fit] * (winners[:fit] == k)).mean(axis=1) for k in winning]
            for a in range(arms)
        ]
    )
    assert chosen_by.joint.shape[2] == joint.shape[2]
    first, second = rng.integers(arms, size=2)
    action = IDSAction(int(first), int(second), float(rng.choice([1.0, rng.random()])))
    evidence = log(1 / 0.001)
    bound, used = certify(
        draws.after_first, worth, winners, means, joint, winning, action, fit, lam, evidence
    )
    low, high, expected = slow_certify(
        p, worth, winners, means, fit, action.distribution(arms), lam, evidence
    )
    assert used == expected
    assert low - 1e-9 <= bound <= high + 1e-9


@examples(60)
@given(st.integers(0, 2**32), st.integers(2, 4), st.integers(2, 3))
def test_the_mean_of_h_is_at_least_what_it_bounds(seed, arms, values):
    """If the posterior is 200 equally likely worlds, Δ and g are exact, for any r."""
    rng = np.random.default_rng(seed)
    p, draws = drawn(rng, arms, values, 200, 0.5)
    worth = net_values(payoff(np.linspace(0, 1, values)), arms)
    exact = estimate_of(draws, payoff(np.linspace(0, 1, values)))
    pi = rng.dirichlet(np.ones(arms))
    x, q, r, _ = costs_of(p, worth, exact.winners, exact.outcomes, 60, pi)
    assert all(row.sum() == pytest.approx(1) for row in r.values())
    assert x.mean() == pytest.approx(pi @ exact.delta)
    assert q.mean() <= pi @ exact.gain + 1e-12


POPULATIONS = {
    "rare": lambda rng, shape: (rng.random(shape) < 0.003) * 1.0,
    "rare and small": lambda rng, shape: (rng.random(shape) < 0.02) * rng.random(shape) * 0.2,
    "even": lambda rng, shape: rng.random(shape),
    "far below": lambda rng, shape: -3 * rng.exponential(1, shape),
}
MEANS = {"rare": 0.003, "rare and small": 0.002, "even": 0.5, "far below": -3.0}


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("beta", [0.1, 0.9])
def test_failure_rate_of_the_betting_bound(name, beta):
    """At most 5 %, plus 3.3 standard errors of 3,000 tries: 1 in 2,000 for each case."""
    rng = np.random.default_rng(5)
    tries = POPULATIONS[name](rng, (3000, 300))
    failed = np.mean([upper_mean(x, 1.0, beta, log(20)) < MEANS[name] for x in tries])
    assert failed <= 0.05 + 3.3 * np.sqrt(0.05 * 0.95 / 3000)


def test_the_betting_bound_is_tight():
    """For zeros (1 + βm)^n = 1/δ. For uniforms, at their best β, it is Chernoff's bound for
    normals, which fails with probability Φ(−√(2 log 20)) = .72 %, up to .5 % by chance."""
    assert upper_mean(np.zeros(700), 1.0, 1.0, 9.2) == pytest.approx(exp(9.2 / 700) - 1, rel=2e-3)
    rng = np.random.default_rng(6)
    beta = np.sqrt(2 * log(20) / (300 / 12))
    tries = [upper_mean(rng.random(300), 1.0, beta, log(20)) for _ in range(3000)]
    assert np.mean([m < 0.5 for m in tries]) == pytest.approx(0.0072, abs=0.005)
    assert np.mean(tries) < 0.5 + 1.1 * np.sqrt(2 * log(20) / 12 / 300)


def test_the_betting_bound_of_uninformative_values_is_top():
    assert upper_mean(np.zeros(1), 1.0, 0.5, 9.2) == 1.0
    assert upper_mean(np.ones(50), 1.0, 0.5, 9.2) == 1.0
    assert upper_mean(np.full(10_000, -5.0), 1.0, 0.5, 1.0) == pytest.approx(-1.0)  # top − 1/β


def test_a_certificate_has_consistent_fields():
    rng = np.random.default_rng(1)
    _, draws = drawn(rng, 3, 2, 1000)
    rewards = payoff([0.0, 1.0])
    means = draws.distributions().mean(axis=2)
    certificate = make_certificate(draws, rewards, net_values(rewards, 3), means, 2.0, 1e-3)
    assert certificate.limit == 3 / 16
    assert certificate.value == min(certificate.bound, certificate.limit)
    assert certificate.holds == (certificate.bound <= certificate.limit)
    assert certificate.chosen_by.samples == CHOOSING_SHARE * 1000
    rough = make_certificate(draws, rewards, net_values(rewards, 3), None, 2.0, 1e-3)
    assert not rough.counts_gain
    assert rough.action == certificate.action
    assert rough.bound > 0


def test_a_certificate_is_at_least_minus_lambda_log_r():
    """Two fully informative arms, with a λ so large that the limit applies."""
    p = np.zeros((2, 1, 1000))
    p[0, 0, ::2] = p[1, 0, 1::2] = 1.0
    rewards = payoff([0.0, 1.0])
    means = np.full((2, 2), 0.5)
    certificate = make_certificate(Draws(p), rewards, net_values(rewards, 2), means, 50.0, 1e-3)
    assert -50 * log(2) <= certificate.bound < -40 * log(2)


def test_default_lam_depends_on_problem_and_horizon():
    """½√(TK / (8|C| log K)): by the problem and the horizon alone."""
    assert default_lam(load_problem("task1"), 500) == pytest.approx(
        0.5 * np.sqrt(500 * 3 / 8 / log(3))
    )
    assert default_lam(load_problem("task2"), 500) == pytest.approx(
        0.5 * np.sqrt(500 * 4 / 8 / (2 * log(4)))
    )
    single = Problem(CausalGraph.parse("X -> Y"), "Y", arms=["do(X=1)"])
    assert default_lam(single, 100) > 0


def test_certified_regret_follows_its_formula():
    worth = np.tile([0.0, 1.0], (3, 1))
    assert certified_regret(4.0, 0.9, 7.0, 0.05, worth) == pytest.approx(
        4 * 0.9 + 7 + 0.05 * (1 + 4 * log(2))
    )
    with raises_code("invalid-number", "lam=0"):
        certified_regret(0, 0.9, 7.0, 0.05, worth)
