"""The certificate of a round against a plain twin, exact posteriors, and its failure rate."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from support.strategies import examples

from dowise import CausalGraph, DowiseError, Problem, load_problem
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

pytestmark = pytest.mark.slow  # what only these need takes long to compile

PSEUDO = 2  # as the kernel has it


def payoff(values):
    return Payoff(np.array(values, dtype=float))


def drawn(rng, arms, values, samples, sharpness=1.0):
    """P(Y = y) of arms that differ, some of which never win: all values, and as draws."""
    shapes = rng.random((arms, values)) * 3 * sharpness + 0.2
    p = np.stack([rng.dirichlet(shape, samples).T for shape in shapes])
    return p, Draws(np.ascontiguousarray(p[:, 1:]))


def costs_of(p, worth, winners, means, fit, pi):
    """x, q and L by the definitions in docs/certificate.md."""
    arms, _, samples = p.shape
    r = {}
    for a in range(arms):
        for k in range(arms):
            won = [i for i in range(fit) if winners[i] == k]
            total = sum(p[a, :, i] for i in won) + PSEUDO * means[a]
            r[a, k] = total / (len(won) + PSEUDO)
    logs = {key: np.log(row / means[key[0]]) for key, row in r.items()}
    x, q = np.zeros(samples), np.zeros(samples)
    for i in range(samples):
        k = winners[i]
        x[i] = p[k, :, i] @ worth[k] - sum(pi[a] * (p[a, :, i] @ worth[a]) for a in range(arms))
        q[i] = sum(pi[a] * (p[a, :, i] @ logs[a, k]) for a in range(arms))
    return x, q, r, logs


def slow_certify(p, worth, winners, means, fit, pi, lam, evidence):
    """(the bound at this evidence and at the most that the kernel may use, λ or 0)."""
    arms, values, samples = p.shape
    x, q, _, logs = costs_of(p, worth, winners, means, fit, pi)
    seen, rest = sorted(set(winners[:fit].tolist())), samples - fit
    best = (np.inf,)
    for own in (0.0, lam):
        tops = [pi @ (worth.max() - worth.min(axis=1))]
        for k in seen:
            parts = [
                max((0 if a == k else worth[k].max() - worth[a, y]) - own * logs[a, k][y]
                    for y in range(values))
                for a in range(arms)
            ]  # fmt: skip
            tops.append(pi @ np.array(parts))
        top, h = max(tops), x - own * q
        assert (h <= top + 1e-9).all()
        middle = h[:fit].mean() + own * (len(seen) - 1) * (values - 1) / (2 * fit)
        spread = h[:fit].var() + top**2 / (2 * fit)
        wide = np.sqrt(2 * spread * evidence / rest) + top * evidence / (3 * rest)
        if middle + wide < best[0]:
            beta = 1 / max(np.sqrt(rest * spread / (2 * evidence)), top - middle)
            best = (middle + wide, own, beta, top, h[fit:])
    _, own, beta, top, h = best
    return (
        slow_upper(h, top, beta, evidence),
        slow_upper(h, top, beta, evidence + 2 * _TOLERANCE),
        own,
    )


def slow_upper(values, top, beta, evidence):
    """The least m from top − 1/β on with Σ log(1 + β(m − x)) ≥ evidence, or `top`."""

    def lacking(m):
        return np.log1p(beta * (m - values)).sum() - evidence

    least = top - (1 - 1e-9) / beta
    if lacking(least) >= 0:
        return least
    return top if lacking(top) < 0 else brentq(lacking, least, top, xtol=1e-14)


@examples(60)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(2, 4), st.floats(0.1, 30))
def test_the_kernel_is_the_definition(seed, arms, values, lam):
    rng = np.random.default_rng(seed)
    p, draws = drawn(rng, arms, values, 120, rng.choice([0.3, 3.0]))
    worth = np.tile(rng.permutation(np.linspace(0, 1, values)), (arms, 1))
    worth -= rng.choice([0, 0.3]) * rng.random((arms, 1))  # what arms may cost
    winners = np.einsum("ayi,ay->ia", p, worth).argmax(axis=1)
    means, fit = p.mean(axis=2), 40
    found = estimate_of(draws.head(fit), payoff(np.linspace(0, 1, values)))
    winning = np.unique(winners[:fit])
    joint = np.stack(
        [[(p[a, :, :fit] * (winners[:fit] == k)).mean(axis=1) for k in winning]
         for a in range(arms)]
    )  # fmt: skip
    assert found.joint.shape[2] == joint.shape[2]
    first, second = rng.integers(arms, size=2)
    action = IDSAction(int(first), int(second), float(rng.choice([1.0, rng.random()])))
    evidence = log(1 / 0.001)
    bound, used = certify(
        draws.others, worth, winners, means, joint, winning, action, fit, lam, evidence
    )
    low, high, own = slow_certify(
        p, worth, winners, means, fit, action.distribution(arms), lam, evidence
    )
    assert used == own
    assert low - 1e-9 <= bound <= high + 1e-9


@examples(60)
@given(st.integers(0, 2**32), st.integers(2, 4), st.integers(2, 3))
def test_the_mean_of_h_is_no_less_than_what_it_bounds(seed, arms, values):
    """Where the posterior is 200 equally likely worlds, Δ and g are exact, whoever chose r."""
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
def test_how_often_the_betting_bound_fails(name, beta):
    """At most 5 %; 3.3 standard errors of 3,000 tries above, 1 in 2,000 for each case."""
    rng = np.random.default_rng(5)
    tries = POPULATIONS[name](rng, (3000, 300))
    failed = np.mean([upper_mean(x, 1.0, beta, log(20)) < MEANS[name] for x in tries])
    assert failed <= 0.05 + 3.3 * np.sqrt(0.05 * 0.95 / 3000)


def test_the_betting_bound_is_not_wasteful():
    """Of zeros: (1 + βm)^n = 1/δ. Of uniforms, at the β that suits them, it is that of Chernoff for
    normal ones: it fails with probability Φ(−√(2 log 20)) = .72 %, of 3,000 tries within 3.3
    standard errors of .15 %, a false alarm in 1,000."""
    assert upper_mean(np.zeros(700), 1.0, 1.0, 9.2) == pytest.approx(exp(9.2 / 700) - 1, rel=2e-3)
    rng = np.random.default_rng(6)
    beta = np.sqrt(2 * log(20) / (300 / 12))
    tries = [upper_mean(rng.random(300), 1.0, beta, log(20)) for _ in range(3000)]
    assert np.mean([m < 0.5 for m in tries]) == pytest.approx(0.0072, abs=0.005)
    assert np.mean(tries) < 0.5 + 1.1 * np.sqrt(2 * log(20) / 12 / 300)


def test_where_draws_say_nothing_the_bound_is_the_most_there_is():
    assert upper_mean(np.zeros(1), 1.0, 0.5, 9.2) == 1.0
    assert upper_mean(np.ones(50), 1.0, 0.5, 9.2) == 1.0
    assert upper_mean(np.full(10_000, -5.0), 1.0, 0.5, 1.0) == pytest.approx(-1.0)  # top − 1/β


def test_what_a_certificate_has():
    rng = np.random.default_rng(1)
    _, draws = drawn(rng, 3, 2, 1000)
    own = payoff([0.0, 1.0])
    means = draws.distributions().mean(axis=2)
    found = make_certificate(draws, own, net_values(own, 3), means, 2.0, 1e-3)
    assert found.limit == 3 / 16
    assert found.value == min(found.bound, found.limit)
    assert found.holds == (found.bound <= found.limit)
    assert found.chosen_by.samples == CHOOSING_SHARE * 1000
    rough = make_certificate(draws, own, net_values(own, 3), None, 2.0, 1e-3)
    assert not rough.counts_gain
    assert rough.action == found.action
    assert rough.bound > 0


def test_a_certificate_is_never_below_what_can_be_learned():
    """g ≤ log r: two arms that tell everything, λ so large that only the clip is left."""
    p = np.zeros((2, 1, 1000))
    p[0, 0, ::2] = p[1, 0, 1::2] = 1.0
    own = payoff([0.0, 1.0])
    means = np.full((2, 2), 0.5)
    found = make_certificate(Draws(p), own, net_values(own, 2), means, 50.0, 1e-3)
    assert -50 * log(2) <= found.bound < -40 * log(2)


def test_the_usual_lam():
    """½√(TK / (8|C| log K)): by the problem and the horizon alone."""
    assert default_lam(load_problem("task1"), 500) == pytest.approx(
        0.5 * np.sqrt(500 * 3 / 8 / log(3))
    )
    assert default_lam(load_problem("task2"), 500) == pytest.approx(
        0.5 * np.sqrt(500 * 4 / 8 / (2 * log(4)))
    )
    single = Problem(CausalGraph.parse("X -> Y"), "Y", arms=["do(X=1)"])
    assert default_lam(single, 100) > 0


def test_the_sum_of_all_parts():
    worth = np.tile([0.0, 1.0], (3, 1))
    assert certified_regret(4.0, 0.9, 7.0, 0.05, worth) == pytest.approx(
        4 * 0.9 + 7 + 0.05 * (1 + 4 * log(2))
    )
    with pytest.raises(DowiseError, match=r"lam=0 must be more than 0"):
        certified_regret(0, 0.9, 7.0, 0.05, worth)
