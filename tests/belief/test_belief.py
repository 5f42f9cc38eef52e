"""Belief: counting records, exact means, draws and intervals."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.beliefs import random_record, trained_belief
from support.brute_force import mean_reward, random_cpts
from support.errors import raises_code
from support.strategies import cases, examples

from dowise import Belief, CausalGraph, DowiseError, Problem, load_problem
from dowise.errors import DowiseWarning

TASKS = ["task1", "task2", "task3", "healthcare"]


def cpt_parameters(belief, name):
    return belief.posterior.model.factors.view(belief.parameters, name)


def first_context(problem):
    return dict.fromkeys(problem.context, 1)


# -- learning -------------------------------------------------------------------------------------


def counts_by_definition(problem, records, prior):
    """N_ijk of equation (3), one record at a time."""
    families = {name: (*problem.graph.parents(name), name) for name in problem.graph}
    counts = {
        (name, labels): prior
        for name, family in families.items()
        for labels in product(*(problem.domains[member] for member in family))
    }
    for arm, outcome in records:
        values = {**outcome, **arm}
        for name, family in families.items():
            if name not in arm and all(member in values for member in family):
                counts[name, tuple(values[member] for member in family)] += 1
    return counts


def parameters_by_labels(belief):
    parameters = {}
    for name in belief.problem.graph:
        table = cpt_parameters(belief, name)
        family = (*belief.problem.graph.parents(name), name)
        domains = [belief.problem.domains[member] for member in family]
        for labels, number in zip(product(*domains), table.ravel(), strict=True):
            parameters[name, labels] = number
    return parameters


@given(cases(max_size=5, bidirected=False), st.integers(0, 2**32 - 1), st.sampled_from([0, 0.3]))
@examples(40)
def test_counts_equal_the_definition_one_by_one_and_in_tables(case, seed, missing):
    graph, reward, context, hidden = case
    rng = np.random.default_rng(seed)
    domains = {name: ["a", "b", "c"][: rng.integers(2, 4)] for name in graph}
    problem = Problem(graph, reward, context, hidden, domains)
    records = [random_record(problem, rng, missing) for _ in range(15)]
    belief = Belief(problem, prior=0.5)
    for arm, outcome in records:
        belief.update(arm, outcome)
    assert parameters_by_labels(belief) == counts_by_definition(problem, records, 0.5)

    frame = pd.DataFrame([{"arm": str(arm), **outcome} for arm, outcome in records])
    for table in (frame, pa.Table.from_pandas(frame), frame.to_dict("list")):
        many = Belief(problem, prior=0.5)
        many.update_many(table)
        np.testing.assert_array_equal(many.parameters, belief.parameters)


def test_a_table_without_arms_is_observational_unless_an_arm_is_passed():
    problem = load_problem("task1")
    frame = pd.DataFrame({"Z": [0, 1, 1], "X": [1, 0, 1], "Y": [1, 1, 0]})
    observed, one_by_one = Belief(problem), Belief(problem)
    observed.update_many(frame)
    for row in frame.to_dict("records"):
        one_by_one.update("do()", row)
    np.testing.assert_array_equal(observed.parameters, one_by_one.parameters)
    experimental = Belief(problem)
    experimental.update_many(frame[["Z", "Y"]], arm={"X": 1})
    assert cpt_parameters(experimental, "X").tolist() == [[1, 1], [1, 1]]
    assert cpt_parameters(experimental, "Z").tolist() == [2, 3]


def test_missing_values_in_records_and_tables_are_skipped():
    problem = load_problem("task1")
    for frame in (
        pd.DataFrame({"Z": [0, None], "X": [1, 1], "Y": [None, 1]}),
        pa.table({"Z": [0, None], "X": [1, 1], "Y": [None, 1]}),
        {"Z": [0, None], "X": [1, 1], "Y": [float("nan"), 1]},
    ):
        belief = Belief(problem)
        belief.update_many(frame)
        assert cpt_parameters(belief, "Z").tolist() == [2, 1]
        assert cpt_parameters(belief, "X").tolist() == [[1, 2], [1, 1]]
        assert cpt_parameters(belief, "Y").sum() == 8
    for missing in (pd.NA, pd.NaT, None, np.nan):
        belief = Belief(problem)
        belief.update("do(X=0)", {"Z": missing, "Y": missing})
        assert (belief.parameters == 1).all()


def test_a_row_of_a_frame_is_an_outcome():
    row = pd.Series({"C": 1, "Z": 0, "X2": 1, "Y": 1})
    beliefs = [Belief(load_problem("task2")) for _ in range(2)]
    for belief, outcome in zip(beliefs, (row, dict(row)), strict=True):
        belief.update("do(X1=0)", outcome)
    np.testing.assert_array_equal(beliefs[0].parameters, beliefs[1].parameters)
    np.testing.assert_array_equal(
        beliefs[0].mean_rewards(pd.Series({"C": 1})), beliefs[0].mean_rewards({"C": 1})
    )


def test_a_variable_may_be_called_arm():
    belief = Belief(Problem(CausalGraph.parse("arm -> Y"), "Y"))
    assert belief.update_many({"arm": [0, 1, 1], "Y": [1, 1, 0]}) == 3
    assert cpt_parameters(belief, "arm").tolist() == [2, 3]


def test_invalid_records_change_nothing():
    belief = trained_belief("task1", 5)
    before = belief.parameters.copy()
    with raises_code("unknown-value", "Z", "'7'"):
        belief.update("do(X=1)", {"Z": 7})
    with raises_code("bad-rows", "row 2"):
        belief.update_many({"Z": [0, 1], "X": [0, 9], "Y": [1, 1]})
    np.testing.assert_array_equal(belief.parameters, before)


def test_a_table_without_rewards_warns():
    belief = Belief(load_problem("task1"))
    with pytest.warns(DowiseWarning, match="2 records, none with a value of the reward Y"):
        assert belief.update_many({"X": [0, 1], "Z": [1, 1]}) == 2
    with pytest.warns(DowiseWarning, match="1 record, none"):
        belief.update_many({"arm": ["do(X=1)"], "Y": [None]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert belief.update_many({"X": [0, 1], "Z": [1, 1], "Y": [None, 1]}) == 2
        assert belief.update_many({"X": [], "Z": []}) == 0


def test_copies_are_independent():
    belief = trained_belief("task1")
    copied = belief.copy()
    copied.update("do()", {"Z": 0, "X": 0, "Y": 1})
    assert copied.parameters.sum() == belief.parameters.sum() + 3


def test_incomplete_families_are_valid_if_missing_by_the_parent_but_not_by_the_child():
    """20,000 records of Z -> X. If Z is missing by its own value, P(X | Z) is right within five
    standard errors (0.02); if it is missing by the value of X, it is not."""
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=20_000)
    x = (rng.random(20_000) < np.where(z == 1, 0.8, 0.2)).astype(int)
    problem = Problem(CausalGraph.parse("Z -> X -> Y"), "Y", non_manipulable="Z")
    for cause, is_valid in ((z, True), (x, False)):
        missing = rng.random(20_000) < np.where(cause == 1, 0.1, 0.9)
        belief = Belief(problem)
        with pytest.warns(DowiseWarning, match="none with a value of the reward"):
            belief.update_many({"Z": np.where(missing, np.nan, z), "X": x})
        estimates = belief.mean_cpts()["X"][:, 1]
        assert (np.abs(estimates - [0.2, 0.8]) < 0.02).all() == is_valid


# -- means ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TASKS)
def test_mean_rewards_equal_brute_force_at_the_mean_cpts(name):
    """The means of draws agree within five standard errors."""
    belief = trained_belief(name)
    problem = belief.problem
    for value in (0, 1):
        context = dict.fromkeys(problem.context, value)
        exact, cpts = belief.mean_rewards(context), belief.mean_cpts()
        truth = [mean_reward(problem, cpts, arm, context) for arm in problem.arms]
        np.testing.assert_allclose(exact, truth, rtol=0, atol=1e-12)
        drawn = belief.draw_rewards(context, 100_000, rng=1).astype(np.float64)
        errors = np.abs(drawn.mean(axis=1) - exact) / (drawn.std(axis=1) / np.sqrt(100_000))
        assert errors.max() < 5  # some 40 z-values: a false alarm in 1 of 40,000 cases


@pytest.mark.parametrize("name", ["task1", "task3", "healthcare"])
def test_the_kernel_of_means_equals_the_circuit_at_the_mean_entries(name):
    problem = load_problem(name)
    posterior = Belief(problem).posterior
    posterior.counts[:] = np.random.default_rng(2).integers(0, 9, len(posterior.counts))
    for codes in product(*(range(len(problem.domains[c])) for c in problem.context)):
        slow = posterior.model.distributions(posterior.mean_entries(), codes)
        np.testing.assert_allclose(posterior.mean_distributions(codes), slow, rtol=1e-14)


def test_cpts_of_context_variables_do_not_matter():
    """Conditioning on the current context changes only its own rows, which no reward reads."""
    belief = trained_belief("task3")
    context = {"C": 1}
    conditioned = belief.copy()
    posterior = conditioned.posterior
    posterior.model.factors.view(posterior.counts, "C")[1] += 1
    np.testing.assert_array_equal(conditioned.mean_rewards(context), belief.mean_rewards(context))
    np.testing.assert_array_equal(
        conditioned.draw_rewards(context, 500, rng=0), belief.draw_rewards(context, 500, rng=0)
    )
    cpts = random_cpts(belief.problem, np.random.default_rng(0))
    changed = {**cpts, "C": np.array([0.999, 0.001])}
    for arm in belief.problem.arms:
        rewards = [mean_reward(belief.problem, world, arm, context) for world in (cpts, changed)]
        assert rewards[0] == pytest.approx(rewards[1], abs=1e-12)
    for name in ("task2", "task3"):
        model = Belief(load_problem(name)).posterior.model
        drawn = model.factors.targets[model.factors.row_tables[model.circuit.blocks]]
        assert not {model.factors.variables[v] for v in drawn} & {*model.problem.context}


# -- draws ----------------------------------------------------------------------------------------


def numpy_rewards(belief, context, samples, rng):
    """Slow twin: Dirichlet draws of NumPy and brute force, one world at a time."""
    problem = belief.problem
    rewards = np.empty((len(problem.arms), samples))
    for i in range(samples):
        cpts = {}
        for name in problem.graph:
            gammas = rng.standard_gamma(cpt_parameters(belief, name))
            cpts[name] = gammas / gammas.sum(axis=-1, keepdims=True)
        rewards[:, i] = [mean_reward(problem, cpts, arm, context) for arm in problem.arms]
    return rewards


@pytest.mark.parametrize(("name", "prior"), [("task1", 1.0), ("task2", 0.3), ("healthcare", 0.05)])
def test_draws_have_the_distribution_of_their_slow_twin(name, prior):
    """Two-sample Kolmogorov-Smirnov tests of arms and differences; 20 p-values above 1e-4."""
    belief = trained_belief(name, 8, prior)
    context = first_context(belief.problem)
    draws = belief.draw_rewards(context, 20_000, rng=2).astype(np.float64)
    twin = numpy_rewards(belief, context, 1_000, np.random.default_rng(3))
    assert np.isfinite(draws).all()
    for i in range(len(draws)):
        assert stats.ks_2samp(draws[i], twin[i]).pvalue > 1e-4
        j = (i + 1) % len(draws)
        assert stats.ks_2samp(draws[i] - draws[j], twin[i] - twin[j]).pvalue > 1e-4


@pytest.mark.parametrize("name", [*TASKS, "asia", "alarm"])
@pytest.mark.parametrize("prior", [0.05, 1.0])
def test_drawn_probabilities_are_probabilities(name, prior):
    belief = Belief(load_problem(name), prior)
    context = {c: belief.problem.domains[c][0] for c in belief.problem.context}
    drawn = belief.draw_distributions(context, 5_000, rng=0)
    assert drawn.min() >= 0 and drawn.max() <= 1


def test_tiny_priors_give_distributions():
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", domains={"Y": ["a", "b", "c"]})
    drawn = Belief(problem, prior=0.001).draw_distributions(None, 10_000, rng=0)
    assert np.isfinite(drawn).all() and (drawn >= 0).all()
    np.testing.assert_allclose(drawn.sum(axis=1), 1, atol=1e-6)
    assert (drawn.max(axis=1) > 0.999).mean() > 0.98  # nearly all mass is on one value


def test_rewards_are_distributions_times_worth():
    worth = {"bad": -2, "fair": 1.5, "good": 40}
    graph = CausalGraph.parse("Z -> X -> Y; Z -> Y")
    belief = Belief(Problem(graph, "Y", non_manipulable="Z", reward_values=worth))
    belief.update("do(X=1)", {"Z": 0, "Y": "good"})
    distributions = belief.draw_distributions(None, 1000, rng=5)
    assert distributions.shape == (3, 3, 1000)
    rewards, values = belief.draw_rewards(None, 1000, rng=5), np.array(list(worth.values()))
    np.testing.assert_allclose(rewards, np.einsum("avs,v->as", distributions, values), atol=1e-4)
    np.testing.assert_allclose(belief.mean_distributions() @ values, belief.mean_rewards())
    assert rewards.min() >= -2 - 1e-4 and rewards.max() <= 40 + 1e-4


def test_mean_rewards_are_affine_in_the_reward_values():
    graph = CausalGraph.parse("X -> Y")
    plain, falling, shifted = (
        Belief(Problem(graph, "Y", reward_values=values))
        for values in ({"0": 0, "1": 1}, {"0": 10, "1": 4}, {"0": 10**8, "1": 10**8 + 1})
    )
    for belief in (plain, falling, shifted):
        belief.update("do(X=0)", {"Y": 1})
    np.testing.assert_allclose(falling.mean_rewards(), 10 - 6 * plain.mean_rewards())
    np.testing.assert_allclose(
        falling.draw_rewards(None, 50, 1), 10 - 6 * plain.draw_rewards(None, 50, 1), rtol=1e-5
    )
    best = plain.probability_best(None, 10_000, rng=0)
    np.testing.assert_allclose(shifted.probability_best(None, 10_000, rng=0), best, atol=0.002)
    widths = np.diff(shifted.reward_intervals(), axis=1)
    np.testing.assert_allclose(widths, np.diff(plain.reward_intervals(), axis=1), atol=1e-6)


def test_probability_best_of_the_paper_at_the_prior():
    """An independent prototype has .07719, .46142, .46139 from 2e8 draws. Within five standard
    errors of 400,000 draws: a false alarm in fewer than one of 500,000 cases."""
    best = Belief(load_problem("task1")).probability_best(None, 400_000, rng=0)
    expected = np.array([0.07719, 0.46142, 0.46139])
    assert best.sum() == pytest.approx(1)
    assert (np.abs(best - expected) < 5 * np.sqrt(expected * (1 - expected) / 400_000)).all()


def test_draws_differ_from_call_to_call_and_repeat_with_the_seed():
    belief = trained_belief("task2")
    rng = np.random.default_rng(7)
    first, second = (belief.draw_rewards({"C": 0}, 300, rng) for _ in range(2))
    assert not np.isclose(first, second).any()
    again = belief.draw_rewards({"C": 0}, 300, np.random.default_rng(7))
    np.testing.assert_array_equal(first, again)


def test_reward_intervals_are_quantiles_of_draws():
    belief = trained_belief("healthcare")
    drawn = belief.draw_rewards(None, 200_000, rng=9)
    intervals = belief.reward_intervals(level=0.9, samples=200_000)
    np.testing.assert_allclose(intervals, np.quantile(drawn, [0.05, 0.95], axis=1).T, atol=0.004)
    wider = belief.reward_intervals(level=0.99)
    assert (wider[:, 0] < intervals[:, 0]).all() and (wider[:, 1] > intervals[:, 1]).all()


# -- refusals: the corpus in tests/bad_inputs has more --------------------------------------------


@pytest.mark.parametrize("samples", [0, -1, 1e3, "10", None, True, 10**13])
def test_an_invalid_number_of_samples_is_refused(samples):
    with raises_code("too-large" if samples == 10**13 else "invalid-number"):
        Belief(load_problem("task1")).draw_rewards(None, samples, 0)


@pytest.mark.parametrize("rng", [None, -1, 1.5, "a", True, np.random])
def test_an_invalid_seed_is_refused(rng):
    with raises_code("invalid-type", "seed"):
        Belief(load_problem("task1")).draw_rewards(None, 10, rng)


def test_an_invalid_context_is_refused():
    belief = Belief(load_problem("task2"))
    for context in (None, {}, {"C": None}, {"C": 5}, {"c": 1}, {"C": 1, "Z": 0}):
        with pytest.raises(DowiseError, match="C|Z"):
            belief.mean_rewards(context)
        with pytest.raises(DowiseError, match="C|Z"):
            belief.draw_rewards(context, 10, 0)


def test_a_belief_needs_a_problem_and_a_path():
    with raises_code("invalid-type", "a str"):
        Belief("healthcare")
    with raises_code("invalid-type", "a str"):
        Belief.load("belief.json", "task1")
    with raises_code("invalid-type", "None"):
        Belief(load_problem("task1")).save(None)
