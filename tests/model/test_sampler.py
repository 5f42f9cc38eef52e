"""Sampled outcomes against the circuit, by summing over all outcomes."""

from itertools import product

import numpy as np
import pytest
from support.errors import raises_code

from dowise import Belief, CausalGraph, Problem, load_problem
from dowise.belief.predictive import draw_record, draw_worlds
from dowise.model import model_of, sampler
from dowise.model.kernels import play_round
from dowise.model.sampler import Sampler, TrialScript, sample_outcome, sampler_of

PROBLEMS = {
    "task1": load_problem("task1"),
    "task3": load_problem("task3"),
    "confounded": Problem(
        CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y; Z -> X; Z <-> Y"),
        "Y",
        context="C",
        domains={"X": ("a", "b", "c")},
        edge_prior=1,
    ),
    "two causes of the context": Problem(
        CausalGraph.parse("C <-> D; C -> Y; X -> W -> Y; X <-> Y; D <-> Y"),
        "Y",
        context=("C", "D"),
        edge_prior=1,
    ),
    "doubtful": Problem(CausalGraph.parse("Z -> X -> Y; Z ?-> Y; X <?> Y"), "Y"),
}


def outcomes(world, fixed):
    """Yield (probability, codes) of every outcome with these codes fixed."""
    free = [v for v in world.order.tolist() if fixed[v] < 0]
    for values in product(*(range(world.sizes[v]) for v in free)):
        codes, chance = fixed.copy(), 1.0
        codes[free] = values
        for v in free:
            chance *= world.entries[0][world.starts[v] + world.strides[v] @ codes]
        yield chance, codes


@pytest.mark.parametrize("name", PROBLEMS)
def test_outcomes_have_the_probabilities_of_the_circuit(name):
    problem = PROBLEMS[name]
    model, sampler = model_of(problem), sampler_of(problem)
    (entries,) = draw_worlds(Belief(problem).posterior, 1, 3)
    world = sampler.at(entries)
    sizes = [len(problem.domains[c]) for c in problem.context]
    for codes in product(*map(range, sizes)):
        expected = model.distributions(entries, codes)
        for arm in range(len(problem.arms)):
            fixed = world.fixed[arm].copy()
            fixed[world.context] = codes
            frequencies = np.zeros(len(problem.payoff.values))
            for chance, drawn_codes in outcomes(world, fixed):
                frequencies[drawn_codes[problem.reward_position]] += chance
            assert frequencies == pytest.approx(
                expected[arm], abs=1e-6
            )  # entries in single precision


def test_contexts_have_their_observational_frequencies():
    """Frequencies of 20,000 rounds within 5 standard errors: 1 in 400,000 for each of four."""
    problem = PROBLEMS["two causes of the context"]
    sampler = sampler_of(problem)
    world = sampler.at(draw_worlds(Belief(problem).posterior, 1, 4)[0])
    fixed = np.full(len(world.order), -1)
    expected = np.zeros((2, 2))
    for chance, codes in outcomes(world, fixed):
        expected[tuple(codes[world.context])] += chance
    assert expected.sum() == pytest.approx(1, abs=1e-6)
    contexts = sampler.contexts(world, 20_000, np.random.default_rng(0))
    frequencies = np.zeros((2, 2))
    np.add.at(frequencies, tuple(contexts.T), 1 / 20_000)
    assert (abs(frequencies - expected) < 5 * np.sqrt(expected * (1 - expected) / 20_000)).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["confounded", "doubtful"])
def test_worlds_and_outcomes_follow_the_posterior(name):
    """Means over 4,000 worlds, spread too, and over 4,000 outcomes: 5 standard errors each.

    False alarms: 1 in 1.7 million a number, of which there are less than 40.
    """
    problem = PROBLEMS[name]
    belief, rng, many = Belief(problem), np.random.default_rng(5), 4000
    for arm in [*problem.arms] * 3:
        values = {name: rng.choice(problem.domains[name]) for name in problem.graph}
        belief.update(arm, values | dict(arm))
    posterior, codes = belief.posterior, (0,) * len(problem.context)
    exact = posterior.mean_distributions(codes)[:, 1]
    worlds = draw_worlds(posterior, many, rng)
    values = np.array([posterior.model.distributions(one, codes)[:, 1] for one in worlds])
    error = values.std(axis=0) / np.sqrt(many)
    assert (abs(values.mean(axis=0) - exact) < 5 * error).all()
    other = posterior.draw(codes, 40_000, rng).distributions()[:, 1].astype(float)
    spread = 5 * values.std(axis=0) / np.sqrt(many)  # of a standard deviation, not above that
    assert (abs(values.std(axis=0) - other.std(axis=1)) < spread).all()
    for arm, mean in enumerate(exact):
        rewards = [draw_record(posterior, arm, codes, rng).reward for _ in range(many)]
        slack = 5 * np.sqrt(mean * (1 - mean) / many)
        assert abs(np.mean(rewards) - mean) < slack


@pytest.mark.parametrize("name", ["task3", "confounded", "two causes of the context"])
def test_sample_outcome_agrees_with_the_compiled_loop(name):
    """The same uniforms, after those of the switches, give the same values."""
    problem = PROBLEMS[name]
    (entries,) = draw_worlds(Belief(problem).posterior, 1, 3)
    world, codes = sampler_of(problem).at(entries), (1,) * len(problem.context)
    switches = len(world.order) - len(problem.graph)
    assert (switches > 0) == (name == "confounded")
    for arm in range(len(problem.arms)):
        for seed in range(20):
            uniforms = np.random.default_rng(seed).random(len(problem.graph))
            script = TrialScript(
                world,
                np.zeros(1, dtype=np.int64),
                np.array([codes]).reshape(1, -1),
                np.concatenate([np.zeros(switches), uniforms])[None],
            )
            drawn = np.empty(len(world.order), dtype=np.int64)
            play_round(script, 0, arm, drawn)
            drawn_codes = sample_outcome(problem, entries, arm, codes, np.random.default_rng(seed))
            assert drawn[world.observed].tolist() == drawn_codes.tolist()


@pytest.mark.parametrize("name", ["task1", "confounded"])
def test_learning_a_sampled_outcome_keeps_the_mean_on_average(name):
    problem = PROBLEMS[name]
    belief = Belief(problem)
    belief.update(
        problem.arms[-1], {v: problem.domains[v][0] for v in problem.graph} | dict(problem.arms[-1])
    )
    sampler, codes = sampler_of(problem), (1,) * len(problem.context)
    world = sampler.at(belief.posterior.mean_entries())
    before = belief.posterior.mean_distributions(codes)
    for arm, played in enumerate(problem.arms):
        fixed, after, total = world.fixed[arm].copy(), np.zeros_like(before), 0.0
        fixed[world.context] = codes
        for chance, drawn_codes in outcomes(world, fixed):
            labels = {
                v: problem.domains[v][drawn_codes[i]] for i, v in enumerate(problem.graph.variables)
            }
            twin = belief.copy()
            twin.update(played, labels)
            after += chance * twin.posterior.mean_distributions(codes)
            total += chance
        assert total == pytest.approx(1) and after == pytest.approx(before)


def test_sampled_records_are_complete_and_keep_the_arm():
    problem = PROBLEMS["confounded"]
    posterior = Belief(problem).posterior
    for arm, played in enumerate(problem.arms):
        record = draw_record(posterior, arm, (1,), 2)
        assert not record.missing and record.context == (1,) and record.arm == played
        assert {v: record.labels[v] for v in played} == dict(played)
        assert draw_record(posterior, arm, (1,), 2).labels == record.labels


def test_tables_that_are_too_large_are_refused(monkeypatch):
    monkeypatch.setattr(sampler, "MAX_CELLS", 10)
    problem = PROBLEMS["confounded"]
    with raises_code("too-large", "the factors of Y", "limit for simulated worlds is 10"):
        Sampler(problem, model_of(problem).factors)
    assert not draw_record(Belief(problem).posterior, 0, (1,), 2).missing
