"""`certified-ids`: what it plays and says, and that it falls back on a draw of its own."""

import numpy as np
import pytest

from dowise import Belief, CausalGraph, DowiseError, Problem, check_policy, load_problem
from dowise.belief import Mixture
from dowise.environments import make_environment
from dowise.errors import DowiseWarning
from dowise.information import estimate_of, minimise_ratio
from dowise.policies.certified import CertifiedSampling
from dowise.simulation.trial import make_world, run_trial

DOUBTFUL = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y; Z ?-> Y"), "Y", context="C")
THREE = Problem(
    CausalGraph.parse("X -> Z -> Y; X -> Y"), "Y", domains={"Y": ("low", "middle", "high")}
)
ONE = 1e-9  # so small a λ that all is certified
HUGE = 1e6  # so large a one that nothing is


@pytest.fixture(scope="module")
def task1():
    return load_problem("task1")


def test_it_plays_what_ids_would_by_the_first_draws(task1):
    policy = CertifiedSampling(task1, lam=ONE)
    decision = policy.decide(rng=3)
    draws = policy.belief.posterior.draw((), 1000, np.random.default_rng(3))
    found = estimate_of(draws.first_ones(300), task1.payoff)
    action = minimise_ratio(found.delta, found.gain)
    assert decision.figures["certified"]
    assert decision.probabilities == pytest.approx(action.distribution(3))
    assert decision.figures["q"] == action.probability
    assert decision.figures["pair"] == (task1.arms[action.first], task1.arms[action.second])
    assert decision.figures["delta"] == pytest.approx(found.delta)
    assert decision.figures["gain"] == pytest.approx(found.gain)
    assert decision.figures["best"] == pytest.approx(found.best)
    assert decision.figures["failure"] == 0.05 / 1000
    assert "certified: what is played costs, less λ" in decision.reason


def test_it_falls_back_on_another_draw(task1):
    """Arms as often as they are best: χ² with 2 degrees of freedom, a false alarm in 1,000."""
    policy = CertifiedSampling(task1, samples=100, lam=HUGE)
    rng = np.random.default_rng(0)
    decisions = [policy.decide(rng=rng) for _ in range(3000)]
    assert not any(d.figures["certified"] for d in decisions)
    assert all(d.probabilities is None for d in decisions)
    assert decisions[0].figures["certificate"] == decisions[0].figures["limit"] == 3 / (8 * HUGE)
    assert "the best arm under one draw" in decisions[0].reason
    played = np.array([sum(d.arm == arm for d in decisions) for arm in task1.arms])
    expected = 3000 * Belief(task1).probability_best(None, 1_000_000, 1)
    assert ((played - expected) ** 2 / expected).sum() < 13.8


def test_the_shares_of_other_draws_are_the_probabilities(task1):
    policy = CertifiedSampling(task1, samples=100, lam=HUGE, propensity_samples=400)
    rng = np.random.default_rng(4)
    policy.belief.posterior.draw((), 100, rng)
    winners, _ = policy.belief.posterior.draw((), 400, rng).winners(task1.payoff)
    decision = policy.decide(rng=4)
    assert decision.probabilities.tolist() == (np.bincount(winners, minlength=3) / 400).tolist()
    assert decision.probabilities[task1.arm_index(decision.arm)] > 0


def test_the_draw_it_falls_back_on_is_none_of_the_others(task1):
    """With the same stream: the draws of the certificate first, then one from another key."""
    policy = CertifiedSampling(task1, samples=100, lam=HUGE)
    rng = np.random.default_rng(4)
    policy.belief.posterior.draw((), 100, rng)
    winners, _ = policy.belief.posterior.draw((), 1, rng).winners(task1.payoff)
    assert policy.decide(rng=4).arm == task1.arms[winners[0]]


@pytest.mark.parametrize("lam", [ONE, HUGE, None])
def test_only_what_is_allowed_is_played(lam):
    problem = load_problem("task3")
    policy = CertifiedSampling(problem, samples=50, lam=lam)
    allowed = problem.arms[2:5]
    for seed in range(20):
        decision = policy.decide({"C": "1"}, seed, allowed)
        assert decision.arm in allowed
        assert decision.figures["limit"] == pytest.approx(3 / (8 * policy.lam))
        if decision.probabilities is not None:
            assert decision.probabilities.sum() == pytest.approx(1)
            assert decision.probabilities[[0, 1, 5, 6, 7, 8]].max() == 0
    only = policy.decide({"C": "1"}, 0, [allowed[0]])
    assert only.arm == allowed[0]


@pytest.mark.parametrize("problem", [DOUBTFUL, THREE], ids=["doubtful", "three values"])
def test_the_contract_of_other_problems(problem):
    check_policy("certified-ids", rounds=60, problems=[problem])


def test_doubtful_edges_among_the_figures():
    policy = CertifiedSampling(DOUBTFUL, samples=100)
    assert isinstance(policy.belief.posterior, Mixture)
    assert policy.belief.posterior.has_exact_means
    figures = policy.decide({"C": "0"}, 1).figures
    assert figures["edges"] == policy.belief.edges()


def test_too_many_sets_of_edges_have_no_exact_means():
    pairs = [f"A{i} -> B{i} -> Y; A{i} <-> B{i}" for i in range(4)]
    more = "A0 ?-> B1; A1 ?-> B2; A2 ?-> B3; A0 ?-> B3; A0 <?> B1; A1 <?> B2; A2 <?> B3; A0 <?> B3"
    graph = CausalGraph.parse("; ".join([*pairs, more, "A0 <?> A1; A1 <?> A2"]))
    problem = Problem(graph, "Y", arms=["do()", "do(B0=1)"])
    with pytest.warns(DowiseWarning, match="the 128 likeliest serve"):
        posterior = Belief(problem).posterior
    assert not posterior.has_exact_means


def test_without_exact_means_nothing_is_said_of_gains(monkeypatch):
    monkeypatch.setattr(Mixture, "has_exact_means", False)
    policy = CertifiedSampling(DOUBTFUL, samples=2000, lam=20.0)
    rng = np.random.default_rng(0)
    found = [policy.certified((0,), np.arange(len(DOUBTFUL.arms)), rng) for _ in range(20)]
    assert not any(c.counts_gain for c in found)
    monkeypatch.setattr(Mixture, "has_exact_means", True)
    found = [policy.certified((0,), np.arange(len(DOUBTFUL.arms)), rng) for _ in range(20)]
    assert any(c.counts_gain for c in found)


@pytest.mark.parametrize("name", ["task1", "task2"])
def test_a_trial_is_what_stepping_makes_of_it(name):
    """`_play` against `decide` and `observe`, and its certificates against the figures."""
    trial = run_trial(make_world(name, 0, 0), CertifiedSampling, 60, 0, 0)

    class Stepped(CertifiedSampling):
        def compiled_loop(self):
            return None

        def decide(self, context=None, rng=None, allowed=None):
            decision = super().decide(context, rng, allowed)
            told.append(decision.figures["certificate"])
            return decision

    told = []
    again = run_trial(make_world(name, 0, 0), Stepped, 60, 0, 0)
    assert trial.arms.tolist() == again.arms.tolist()
    assert len(told) == 60


def test_small_priors_take_double_precision():
    problem = Problem(CausalGraph.parse("X -> Y; Z -> Y"), "Y", prior=0.05)
    policy = CertifiedSampling(problem, samples=200)
    world = make_environment(problem, 1)
    rng = np.random.default_rng(1)
    for _ in range(20):
        decision = policy.decide(rng=rng)
        assert np.isfinite(decision.figures["certificate"])
        policy.observe(decision.arm, world.play(decision.arm, None, rng))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"lam": 0}, r"lam=0 must be more than 0: leave it out"),
        ({"lam": -1.0}, r"lam=-1.0 must be a number of at least 0"),
        ({"lam": "much"}, r"lam='much' must be a number"),
        ({"samples": 9}, r"samples=9 must be a whole number, 10 or more"),
        ({"delta": 1.5}, r"delta=1.5 must be between 0 and 1"),
        ({"horizon": 0}, r"horizon=0 must be a whole number, 1 or more"),
    ],
)
def test_bad_options(task1, options, says):
    with pytest.raises(DowiseError, match=says):
        CertifiedSampling(task1, **options)
