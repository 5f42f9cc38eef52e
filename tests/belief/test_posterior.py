"""Posterior: draws against the circuit, worlds shared by contexts, double precision, ties."""

import json

import numpy as np
import pytest
from support.beliefs import trained_belief
from support.errors import raises_code

from dowise import Belief, CausalGraph, Problem, load_problem, make_policy
from dowise.belief import Posterior


def contexts(problem):
    return [problem.context_codes(dict.fromkeys(problem.context, i)) for i in (0, 1)]


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare"])
@pytest.mark.parametrize("prior", [0.6, 1.0])
@pytest.mark.parametrize("samples", [1, 300, 1001])
def test_draws_equal_the_circuit_at_drawn_entries(name, prior, samples):
    posterior = trained_belief(name, 30, prior).posterior
    entries = posterior.draw_entries(samples, rng=5)
    for codes in contexts(posterior.problem):
        evaluated = posterior.model.evaluated(entries, codes)
        draws = posterior.draw(codes, samples, rng=5)
        np.testing.assert_array_equal(np.minimum(evaluated, 1), draws.after_first)


def test_rows_shared_by_contexts_have_equal_draws():
    """Rows of Y differ by context, those of Z do not."""
    graph = CausalGraph.parse("C -> Y; Z -> Y; X -> Z")
    problem = Problem(graph, "Y", "C", arms=["do(X=0)", "do(X=1)"])
    prior = np.full((2, 2, 2), 1e9)
    prior[:, 0, 1] = prior[:, 1, 0] = 1e-6  # Y = Z in both contexts
    belief = Belief(problem, {"Y": prior})
    first, second = (belief.draw_rewards({"C": c}, 200, rng=3) for c in "01")
    np.testing.assert_allclose(first, second, atol=1e-4)
    assert np.abs(first - belief.draw_rewards({"C": "0"}, 200, rng=4)).max() > 0.1


def test_records_of_another_problem_are_refused():
    posterior, other = Posterior(load_problem("task1")), load_problem("task3")
    with raises_code("wrong-problem", "RecordBatch of 2 records"):
        posterior.learn_many(other.records({"Y": [0, 1]}))
    assert not posterior.counts.any()


def test_a_posterior_round_trips_through_json():
    posterior = trained_belief("task2", 50, prior=1 / 3).posterior
    again = Posterior.from_dict(json.loads(json.dumps(posterior.as_dict())), posterior.problem)
    np.testing.assert_array_equal(again.prior, posterior.prior)
    np.testing.assert_array_equal(again.counts, posterior.counts)
    record = posterior.problem.record("do(X1=0)", {"C": 1, "Z": 0, "X2": 1, "Y": 1})
    again.learn(record)
    posterior.learn(record)
    np.testing.assert_array_equal(again.parameters, posterior.parameters)


# -- policies that start from a belief -------------------------------------------------------------


@pytest.mark.parametrize("name", ["ids", "ts"])
def test_policies_continue_from_a_belief(name):
    problem = load_problem("task1")
    belief = Belief(problem)
    for _ in range(200):
        belief.update("do(X=1)", {"Z": 0, "Y": 1})
        belief.update("do(X=0)", {"Z": 0, "Y": 0})
    policy = make_policy(name, problem, belief=belief)
    assert str(policy.decide(rng=0).arm) == "do(X=1)"
    policy.observe("do(X=1)", {"Z": 1, "Y": 1})
    assert belief.parameters.sum() == policy.belief.parameters.sum()
    for wrong, code in (
        ({"belief": Belief(load_problem("task2"))}, "wrong-problem"),
        ({"belief": belief, "prior": 2.0}, "invalid-option"),
        ({"belief": 3}, "invalid-type"),
        ({"belief": belief.posterior}, "invalid-type"),
    ):
        with raises_code(code):
            make_policy(name, problem, **wrong)


# -- ties -----------------------------------------------------------------------------------------

X_TO_Y = Problem(CausalGraph.parse("X -> Y"), "Y")
DRAWS = 200_000


def radius(p):
    """Return five standard errors of a share: a false alarm has probability 6e-7."""
    return 5 * np.sqrt(p * (1 - p) / DRAWS)


@pytest.mark.parametrize("prior", [0.02, 0.05, 0.2, 1.0])
@pytest.mark.parametrize("values", [{"0": 0.0, "1": 1.0}, {"0": 5.0, "1": -5.0}])
def test_equal_arms_are_best_equally_often(prior, values):
    """Without the first value both are often exactly 1, and the first would win: .524 at .05."""
    problem = Problem(X_TO_Y.graph, "Y", reward_values=values)
    best = Belief(problem, prior).probability_best(None, DRAWS, rng=0)
    assert abs(best[0] - 0.5) < radius(0.5)


@pytest.mark.parametrize(
    ("one", "other", "error"),
    [
        ((0.05, 0.05), (1.05, 0.05), 0.0),
        ((0.05, 0.05), (0.05, 2.05), 0.0),
        ((0.05, 0.05), (0.08, 0.02), 0.0),
        ((0.05, 1.05), (0.05, 3.05), 0.0),
        ((0.02, 0.02), (0.03, 0.01), 0.01),
    ],
)
def test_probability_best_of_unequal_arms_with_small_priors(one, other, error):
    """Against a million draws of NumPy on the logit scale, where neither arm saturates.

    At a prior of 0.02 some rewards underflow together, and a coin decides.
    """
    belief = Belief(X_TO_Y, {"Y": [one, other]})
    rng, size = np.random.default_rng(1), 1_000_000

    def log_gamma(shape):
        return np.log(rng.standard_gamma(shape + 1, size)) + np.log(rng.random(size)) / shape

    # The logit of Beta(a, b) is the difference of two log-gammas; a is that of Y = 0.
    first, second = (log_gamma(b) - log_gamma(a) for a, b in (one, other))
    truth = float((first > second).mean())
    best = belief.probability_best(None, DRAWS, rng=0)
    assert abs(best[0] - truth) < radius(truth) * np.sqrt(1 + DRAWS / size) + error


def test_ids_and_ts_break_ties_evenly():
    """At .02 the first of two equal arms would have a p* of .54 without the first value."""
    policy = make_policy("ids", X_TO_Y, prior=0.02, samples=DRAWS)
    best = policy.decide(rng=0).figures["best"]
    assert abs(best[0] - 0.5) < radius(0.5)
    thompson = make_policy("ts", X_TO_Y, prior=0.02, propensity_samples=DRAWS)
    assert abs(thompson.decide(rng=0).probabilities[0] - 0.5) < radius(0.5) + 1 / DRAWS
    rng = np.random.default_rng(0)
    without = make_policy("ts", X_TO_Y, prior=0.02)
    first = np.mean([str(without.decide(rng=rng).arm) == "do(X=0)" for _ in range(4000)])
    assert abs(first - 0.5) < 5 * 0.5 / np.sqrt(4000)
    assert policy.decide(rng=0, allowed=["do(X=1)"]).probabilities.tolist() == [0, 1]


def test_draws_of_all_values_equal_draws_without_the_first():
    for name in ("task1", "task3", "healthcare"):
        posterior = trained_belief(name, 5, prior=0.3).posterior
        codes = contexts(posterior.problem)[1]
        draws = posterior.draw(codes, 500, rng=1)
        assert draws.whole is not None
        np.testing.assert_allclose(draws.whole.sum(axis=1), 1, atol=1e-6)
        posterior.may_be_small = False
        without = posterior.draw(codes, 500, rng=1)
        assert without.whole is None
        np.testing.assert_allclose(draws.after_first, without.after_first, atol=1e-6)


def test_the_first_value_is_left_out_when_all_counts_are_large():
    posterior = Posterior(X_TO_Y, prior=0.3)
    for number, (x, y) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        assert posterior.draw((), 3, rng=0).whole is not None
        posterior.learn(X_TO_Y.record(f"do(X={x})", {"Y": y}, number))
    assert posterior.draw((), 3, rng=0).whole is None
