"""Pooled rows against their definition, and what the prior is for."""

import itertools
import json
from math import lgamma

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import ks_2samp

from dowise import Belief, CausalGraph, DowiseError, Problem, load_problem, make_policy
from dowise.belief.pooling import MAX_ROWS, SHAPES
from dowise.belief.posterior import Posterior
from dowise.belief.predictive import draw_prior_worlds
from dowise.environments.cpts import _pooled_rows
from dowise.simulation.bounds import bounds
from tests.support.policies import random_records


def chain(rows=4, values=2, prior="pooled"):
    """Y has one parent X, with these many rows and values."""
    domains = {"X": tuple(map(str, range(rows))), "Y": tuple(map(str, range(values)))}
    return Problem(CausalGraph.parse("X -> Y"), "Y", domains=domains, prior=prior)


def with_counts(problem, counts):
    """Posterior whose table of Y has these counts: (rows, values)."""
    posterior = Posterior(problem)
    posterior.model.factors.table(posterior.counts, 1)[...] = counts
    posterior.recompute_evidence()
    return posterior


def log_beta(a, b):
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def prior_of_pairs(later, pairs):
    """Prior of (a, b) for a stick with `later` values after it, all of which are as likely."""
    a, b = np.array(pairs).T

    def prior(tilt):
        weights = (a / b) ** tilt / np.minimum(a, b / later)
        return weights / weights.sum()

    def excess(tilt):
        return prior(tilt) @ (a / (a + b)) - 1 / (later + 1)

    return prior(brentq(excess, -5, 5, xtol=1e-14))


def by_definition(counts):
    """P(pooled), first and second moments of every entry, from sums over the grid."""
    rows, values = counts.shape
    flat = sum(
        lgamma(values) - lgamma(values + row.sum()) + sum(lgamma(1 + n) for n in row)
        for row in counts
    )
    pairs = list(itertools.product(SHAPES, SHAPES))
    pooled, sticks = 0.0, []
    for x in range(values - 1):
        later = values - 1 - x
        logs = np.log(prior_of_pairs(later, pairs))
        for r in range(rows):
            hit, miss = counts[r, x], counts[r, x + 1 :].sum()
            logs += [log_beta(a + hit, b + miss) - log_beta(a, b) for a, b in pairs]
        top = logs.max()
        pooled += top + np.log(np.exp(logs - top).sum())
        sticks.append(np.exp(logs - top) / np.exp(logs - top).sum())
    chance = 1 / (1 + np.exp(flat - pooled))
    first, second = np.empty(counts.shape), np.empty(counts.shape)
    for r in range(rows):
        n = counts[r].sum()
        rest = rest2 = 1.0
        for x in range(values):
            own = (1 + counts[r, x]) / (values + n)
            own2 = own * (2 + counts[r, x]) / (values + n + 1)
            m, m2 = 1.0, 1.0
            if x < values - 1:
                hit, left = counts[r, x], counts[r, x:].sum()
                ms = np.array([(a + hit) / (a + b + left) for a, b in pairs])
                ms2 = np.array(
                    [(a + hit) * (a + hit + 1) / (a + b + left) / (a + b + left + 1)
                     for a, b in pairs]
                )  # fmt: skip
                m, m2 = sticks[x] @ ms, sticks[x] @ ms2
            first[r, x] = (1 - chance) * own + chance * rest * m
            second[r, x] = (1 - chance) * own2 + chance * rest2 * m2
            rest, rest2 = rest * (1 - m), rest2 * (1 - 2 * m + m2)
    return chance, first, second


@pytest.mark.parametrize("values", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_probability_means_and_matched_rows_follow_the_definition(values, seed):
    rng = np.random.default_rng([seed, values])
    scale = rng.choice([0, 3, 40], size=(5, 1))
    counts = rng.poisson(scale * rng.dirichlet(np.ones(values), size=5))
    posterior = with_counts(chain(5, values), counts)
    chance, first, second = by_definition(counts)
    alpha = posterior.model.factors.table(posterior.parameters, 1)
    kappa = (first * (1 - first)).sum(1) / (second - first**2).sum(1)
    assert posterior.alike()["Y"].probability == pytest.approx(chance, abs=1e-9)
    np.testing.assert_allclose(alpha, (kappa - 1)[:, None] * first, rtol=1e-8)
    np.testing.assert_allclose(alpha / alpha.sum(1, keepdims=True), first, rtol=1e-10)


@pytest.mark.parametrize("name", ["task1", "task2", "task3"])
def test_learning_and_retracting_in_any_order_leaves_the_same_bits(name):
    problem = load_problem(name)
    records = random_records(problem, 60, seed=1)
    straight, wandering = Posterior(problem, "pooled"), Posterior(problem, "pooled")
    for record in records[:40]:
        straight.learn(record)
    for record in records[::-1]:
        wandering.learn(record)
    for record in records[40:]:
        wandering.retract(record)
    restored = Posterior.from_dict(straight.as_dict(), problem)
    for other in (wandering, restored, straight.copy()):
        assert bits(other) == bits(straight)


def bits(posterior):
    arrays = posterior.counts, posterior._told, posterior._told_flat, posterior.parameters
    return [array.tobytes() for array in arrays]


def test_many_records_are_learned_as_one_by_one():
    problem = load_problem("task3")
    rng = np.random.default_rng(3)
    frame = {
        name: rng.integers(len(domain), size=50).tolist()
        for name, domain in problem.domains.items()
    }
    at_once, singly = Posterior(problem, "pooled"), Posterior(problem, "pooled")
    batch = problem.records(frame)
    at_once.learn_many(batch)
    for record in batch.each():
        singly.learn(record)
    assert bits(at_once) == bits(singly)


def test_a_record_that_was_not_learned_leaves_the_posterior_unchanged():
    text = "Z ?-> Y; X -> Y; Z -> X"
    for problem in (load_problem("task1"), Problem(CausalGraph.parse(text), "Y")):
        posterior = Posterior(problem, "pooled")
        record, other = random_records(problem, 2, seed=5)
        posterior.learn(record)
        before = bits(posterior)
        with pytest.raises(DowiseError, match="not learned"):
            posterior.retract(other)
        assert bits(posterior) == before


@pytest.mark.parametrize("values", [2, 3])
def test_renaming_values_of_a_parent_permutes_rows_and_changes_no_bit(values):
    rng = np.random.default_rng(0)
    counts, order = rng.integers(9, size=(6, values)), rng.permutation(6)
    tables = [
        posterior.model.factors.table(posterior.parameters, 1)
        for posterior in (with_counts(chain(6, values), c) for c in (counts, counts[order]))
    ]
    assert (tables[0][order] == tables[1]).all()


def test_reversing_the_values_of_the_child_hardly_moves_means():
    rng = np.random.default_rng(1)
    for _ in range(20):
        counts = rng.poisson(5 * rng.dirichlet(np.ones(3), size=8))
        forward, backward = (
            posterior.model.factors.table(posterior.mean_entries(), 1)
            for posterior in (with_counts(chain(8, 3), c) for c in (counts, counts[:, ::-1]))
        )
        assert np.abs(forward - backward[:, ::-1]).max() < 0.1


@pytest.mark.parametrize("values", [2, 3, 4, 6])
def test_all_values_are_equally_likely_before_any_data(values):
    """Otherwise the order in which values are listed would favour an arm."""
    means = Posterior(chain(3, values)).mean_entries()
    np.testing.assert_allclose(means[-3 * values :], 1 / values, atol=1e-9)
    assert Belief(chain(3, values)).alike()["Y"].mean == pytest.approx([1 / values] * values)


def test_tables_that_are_alike_are_recognised():
    rng = np.random.default_rng(7)
    alike, different = [], []
    for _ in range(20):
        tight = rng.binomial(16, rng.beta(40, 40, size=32))
        scattered = rng.binomial(16, rng.random(32))
        for hits, chances in ((tight, alike), (scattered, different)):
            counts = np.stack([hits, 16 - hits], axis=1)
            chances.append(with_counts(chain(32), counts).alike()["Y"].probability)
    assert np.mean(np.array(alike) > 0.95) == 1.0
    assert np.mean(np.array(different) < 0.1) >= 0.9


def test_an_unseen_row_is_expected_to_look_like_the_others():
    counts = np.array([[50, 2], [48, 2], [0, 0]])
    pooled, flat = with_counts(chain(3), counts), with_counts(chain(3, prior=1.0), counts)
    assert pooled.model.factors.table(pooled.mean_entries(), 1)[2, 0] > 0.85
    assert flat.model.factors.table(flat.mean_entries(), 1)[2, 0] == 0.5
    row = pooled.alike()["Y"]
    assert row.low[0] < row.mean[0] < row.high[0]
    assert row.mean[0] + row.mean[1] == pytest.approx(1)


@pytest.mark.parametrize(
    ("problem", "codes"),
    [
        pytest.param(load_problem("task2"), (1,), id="context"),
        pytest.param(Problem("C -> X -> Z -> Y; C -> Y; X <-> Y!", "Y", "C"), (0,), id="hidden"),
    ],
)
def test_mean_rewards_are_those_of_exact_draws(problem, codes):
    """Draws of hypothesis, pair and rows of every table, with the posterior weights."""
    posterior = Posterior(problem, "pooled")
    for record in random_records(problem, 40, seed=2):
        posterior.learn(record)
    rng, draws = np.random.default_rng(0), 2000
    entries = np.empty((posterior.layout.entries, draws))
    for t, shape in enumerate(posterior.layout.shapes):
        counts = posterior.layout.table(posterior.counts, t).reshape(-1, shape[-1])
        target = posterior.layout.table(entries.T, t).reshape(draws, -1, shape[-1])
        flat = np.array([rng.dirichlet(1 + row, draws) for row in counts]).swapaxes(0, 1)
        if not posterior.pooling.is_pooled[t]:
            target[...] = flat
            continue
        logs = [
            -np.log(min(a, b)) + sum(log_beta(a + n, b + m) - log_beta(a, b) for n, m in counts)
            for a, b in itertools.product(SHAPES, SHAPES)
        ]
        weights = np.exp(np.array(logs) - max(logs))
        chance = posterior.alike()[posterior.model.factors.names[t]].probability
        a, b = (x.ravel() for x in np.meshgrid(SHAPES, SHAPES, indexing="ij"))
        g = rng.choice(len(a), draws, p=weights / weights.sum())
        hit = rng.beta(a[g, None] + counts[:, 0], b[g, None] + counts[:, 1])
        is_pooled = rng.random(draws) < chance
        target[...] = np.where(is_pooled[:, None, None], np.stack([hit, 1 - hit], axis=-1), flat)
    drawn = np.array([posterior.model.distributions(entries[:, i], codes) for i in range(draws)])
    exact = posterior.mean_distributions(codes)
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(drawn.mean(axis=0) - exact) < 4.5 * error + 1e-12).all()


def test_counts_of_users_keep_their_tables_flat():
    graph = CausalGraph.parse("X -> Z -> Y; X -> Y")
    problem = Problem(graph, "Y", prior={"Y": 2.0})
    posterior = Posterior(problem, "pooled")
    assert list(posterior.alike()) == ["Z"]
    assert (posterior.model.factors.view(posterior.parameters, "Y") == 2.0).all()


def test_flat_rows_are_those_of_the_number_one():
    problem = load_problem("task1")
    flat, pooled = Posterior(problem, "flat"), Posterior(problem, "pooled")
    assert not flat.is_pooled and (flat.parameters == 1).all()
    assert pooled.is_pooled and not Posterior(chain(2, prior=None)).is_pooled


def test_tables_of_too_many_rows_stay_flat():
    values = [str(i) for i in range(MAX_ROWS + 1)]
    domains = {"X": values, "Y": ("0", "1")}
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", domains=domains, context=("X",))
    assert not Posterior(problem, "pooled").is_pooled


def test_versions_keep_flat_evidence():
    problem = Problem(CausalGraph.parse("Z -> X -> Y; Z ?-> Y; X <?> Y"), "Y")
    flat, pooled = Posterior(problem), Posterior(problem, "pooled")
    for record in random_records(problem, 50, seed=4):
        flat.learn(record)
        pooled.learn(record)
    assert flat.edges() == pooled.edges()
    assert (pooled.parameters != flat.parameters).any()
    restored = Posterior.from_dict(json.loads(json.dumps(pooled.as_dict())), problem)
    assert bits(restored) == bits(pooled) and restored.edges() == pooled.edges()


def test_a_saved_belief_keeps_the_prior(tmp_path):
    problem = load_problem("task1")
    belief = Belief(problem, prior="pooled")
    belief.update("do(X=1)", {"Z": 0, "Y": 1})
    belief.save(tmp_path / "belief.json")
    restored = Belief.load(tmp_path / "belief.json", problem)
    assert bits(restored.posterior) == bits(belief.posterior)
    assert Belief(problem).as_dict()["version"] == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda problem: make_policy("bayes-optimal", problem, horizon=2),
        lambda problem: make_policy("certified-ids", problem),
        lambda problem: bounds(problem, horizon=10),
    ],
)
def test_what_needs_independent_rows_refuses_the_pooled_prior(make):
    with pytest.raises(DowiseError) as error:
        make(Problem(CausalGraph.parse("X -> Y"), "Y", prior="pooled"))
    assert error.value.code == "pooled-prior"


def test_an_array_is_not_a_prior():
    counts = np.array([1.0, 2.0])
    for make in (
        lambda: chain(prior=counts),
        lambda: Posterior(chain(), counts),
        lambda: make_policy("best", chain(prior=None), prior=counts),
    ):
        with pytest.raises(DowiseError, match="must be") as caught:
            make()
        assert caught.value.code == "invalid-type"


def test_the_prior_of_a_problem_is_stated_or_not():
    graph = CausalGraph.parse("X -> Y")
    assert not Problem(graph, "Y").states_prior
    for prior, known in (("flat", 1.0), (1, 1.0), ("pooled", "pooled"), (2, 2.0)):
        problem = Problem(graph, "Y", prior=prior)
        assert problem.states_prior and problem.prior == known


@pytest.mark.parametrize("values", [2, 3])
def test_worlds_of_the_prior_are_those_of_the_definition(values):
    # Twelve comparisons, each of two samples of 4,000: one fails by chance in 1e4 runs.
    problem, worlds = chain(4, values), 4000
    drawn = draw_prior_worlds(problem, "pooled", worlds, 5)
    assert drawn.min() >= 0
    rows = Posterior(problem).layout.table(drawn, 1)
    assert np.allclose(rows.sum(axis=-1), 1)
    rng = np.random.default_rng(6)
    twin = np.array([_pooled_rows((4, values), rng) for _ in range(worlds)])
    for summary in (
        lambda rows: rows[:, 0, 0],
        lambda rows: rows[:, 3, -1],
        lambda rows: rows[..., 0].mean(axis=1),
        lambda rows: rows[..., -1].mean(axis=1),
        lambda rows: np.ptp(rows[..., 0], axis=1),
        lambda rows: np.ptp(rows[..., -1], axis=1),
    ):
        assert ks_2samp(summary(rows), summary(twin)).pvalue > 1e-5
