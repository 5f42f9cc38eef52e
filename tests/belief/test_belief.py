"""The posterior: counts, exact means, draws, intervals, and everything that it refuses."""

import re
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.brute_force import mean_reward, random_cpts
from support.errors import raises_code
from support.strategies import cases, examples

from dowise import Belief, CausalGraph, DowiseError, Problem, load_problem
from dowise.errors import DowiseWarning

TASKS = ["task1", "task2", "task3", "healthcare"]


def random_record(problem, rng, missing=0.0):
    """An arm and an outcome, as if from a world in which everything is a fair coin."""
    arm = problem.arms[rng.integers(len(problem.arms))]
    outcome = {
        name: str(rng.choice(problem.domains[name]))
        for name in problem.graph
        if name not in arm and rng.random() >= missing
    }
    return arm, outcome


def trained(name, rounds=100, seed=0, prior=1.0):
    problem = load_problem(name)
    belief = Belief(problem, prior)
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        belief.update(*random_record(problem, rng))
    return belief


def view(belief, name):
    """The Dirichlet parameters of one CPT."""
    return belief.posterior.model.factors.view(belief.parameters, name)


def first_context(problem):
    return dict.fromkeys(problem.context, 1)


def counts_by_definition(problem, records, prior=1.0):
    """N_ijk of equation (3): one dictionary an entry, one record at a time."""
    counts = {}
    for name in problem.graph:
        family = (*problem.graph.parents(name), name)
        for labels in product(*(problem.domains[member] for member in family)):
            counts[name, labels] = prior
    for arm, outcome in records:
        seen = {**outcome, **arm}
        for name in problem.graph:
            family = (*problem.graph.parents(name), name)
            if name not in arm and all(member in seen for member in family):
                counts[name, tuple(seen[member] for member in family)] += 1
    return counts


def as_dictionary(belief):
    found = {}
    for name in belief.problem.graph:
        family = (*belief.problem.graph.parents(name), name)
        table = view(belief, name)
        domains = [belief.problem.domains[member] for member in family]
        for places in np.ndindex(table.shape):
            labels = tuple(domain[i] for domain, i in zip(domains, places, strict=True))
            found[name, labels] = table[places]
    return found


@given(cases(max_size=5, bidirected=False), st.integers(0, 2**32 - 1), st.sampled_from([0, 0.3]))
@examples(40)
def test_counts_by_definition_one_by_one_and_many_at_once(case, seed, missing):
    graph, reward, context, hidden = case
    rng = np.random.default_rng(seed)
    domains = {name: ["a", "b", "c"][: rng.integers(2, 4)] for name in graph}
    problem = Problem(graph, reward, context, hidden, domains)
    records = [random_record(problem, rng, missing) for _ in range(15)]
    belief = Belief(problem, prior=0.5)
    for arm, outcome in records:
        belief.update(arm, outcome)
    assert as_dictionary(belief) == counts_by_definition(problem, records, 0.5)

    frame = pd.DataFrame([{"arm": str(arm), **outcome} for arm, outcome in records])
    for table in (frame, pa.Table.from_pandas(frame), frame.to_dict("list")):
        many = Belief(problem, prior=0.5)
        many.update_many(table)
        np.testing.assert_array_equal(many.parameters, belief.parameters)


def test_a_table_without_arms_is_observational_or_of_the_arm_given():
    problem = load_problem("task1")
    frame = pd.DataFrame({"Z": [0, 1, 1], "X": [1, 0, 1], "Y": [1, 1, 0]})
    observed, one_by_one = Belief(problem), Belief(problem)
    observed.update_many(frame)
    for row in frame.to_dict("records"):
        one_by_one.update("do()", row)
    np.testing.assert_array_equal(observed.parameters, one_by_one.parameters)
    set_to_one = Belief(problem)
    set_to_one.update_many(frame[["Z", "Y"]], arm={"X": 1})
    assert view(set_to_one, "X").tolist() == [[1, 1], [1, 1]]
    assert view(set_to_one, "Z").tolist() == [2, 3]


def test_values_in_a_table_may_be_of_any_kind():
    problem = load_problem("task1")
    expected = Belief(problem)
    expected.update_many({"Z": ["0", "1"], "X": ["1", "1"], "Y": ["1", "0"]})
    for frame in (
        pd.DataFrame({"Z": [0.0, 1.0], "X": [True, True], "Y": [1, 0]}),
        pd.DataFrame({"Z": pd.Categorical(["0", "1"]), "X": [1, 1], "Y": ["1", "0"]}),
        pa.table({"Z": [0, 1], "X": [True, True], "Y": [1.0, 0.0]}),
    ):
        belief = Belief(problem)
        belief.update_many(frame)
        np.testing.assert_array_equal(belief.parameters, expected.parameters)


def test_missing_values_in_a_table():
    problem = load_problem("task1")
    for frame in (
        pd.DataFrame({"Z": [0, None], "X": [1, 1], "Y": [None, 1]}),
        pa.table({"Z": [0, None], "X": [1, 1], "Y": [None, 1]}),
        {"Z": [0, None], "X": [1, 1], "Y": [float("nan"), 1]},
    ):
        belief = Belief(problem)
        belief.update_many(frame)
        assert view(belief, "Z").tolist() == [2, 1]
        assert view(belief, "X").tolist() == [[1, 2], [1, 1]]
        assert view(belief, "Y").sum() == 8


@pytest.mark.parametrize(
    ("arm", "outcome", "message"),
    [
        ("do(X=1)", {"Z": 7}, "Z has no value '7'"),
        ("do(X=1)", {"X": 0}, "do(X=1) set X=1, but the outcome has X=0"),
        ("do(X=1)", {"Zed": 0}, "the outcome names 'Zed'"),
        ("do(Z=1)", {"Y": 0}, "Z can't be set: it is non-manipulable"),
        ("do(X=3)", {"Y": 0}, "X has no value '3'"),
        ("do(W=3)", {"Y": 0}, "unknown variable 'W'"),
        ("X=1", {"Y": 0}, "reads do(X=1"),
        ("do()", "Y=0", "an outcome must map variables to values"),
        ("do()", {"Y": [0]}, "is not a value"),
    ],
)
def test_a_bad_outcome_is_named_and_changes_nothing(arm, outcome, message):
    belief = trained("task1", 5)
    before = belief.parameters.copy()
    with pytest.raises(DowiseError, match=re.escape(message)):
        belief.update(arm, outcome)
    np.testing.assert_array_equal(belief.parameters, before)


@pytest.mark.parametrize(
    ("frame", "arm", "message"),
    [
        ({"Z": [0, 1], "X": [0, 9], "Y": [1, 1]}, None, "row 2 of 2: X has no value '9'"),
        ({"Z": [0], "Why": [0]}, None, "column 'Why'"),
        ({"arm": ["do(X=1)"], "X": [0]}, None, "row 1 of 1: do(X=1) set X=1"),
        ({"arm": ["do(X=1)", None], "Z": [0, 0]}, None, "row 2 of 2 has no arm"),
        ({"arm": ["do(Q=1)"], "Z": [0]}, None, "row 1 of 1: unknown variable 'Q'"),
        ({"Z": [[0]]}, None, "column 'Z' has values that can't be labels"),
        ({"Z": 1}, None, "column 'Z' must be a list of values, not 1"),
        (
            {"Arm": ["do()"]},
            None,
            "column 'Arm', which is not a variable of the problem (did you mean 'arm'?)",
        ),
        (pa.table({"Z": [{"a": 1}]}), None, "column 'Z' has values that can't be labels"),
        (pd.DataFrame([[0, 1]], columns=["Z", "Z"]), None, "the column 'Z' 2 times"),
        ({"arm": ["do()"], "Z": [0]}, "do(X=1)", "leave out the argument arm"),
        ({"Z": [0, 1], "X": [0]}, None, "columns of different lengths"),
        ([1, 2], None, "a list is not a table"),
    ],
)
def test_a_bad_table_is_explained_and_changes_nothing(frame, arm, message):
    belief = trained("task1", 5)
    before = belief.parameters.copy()
    with pytest.raises(DowiseError, match=re.escape(message)):
        belief.update_many(frame, arm)
    np.testing.assert_array_equal(belief.parameters, before)


@pytest.mark.parametrize("name", TASKS)
def test_the_mean_of_the_rewards_is_the_reward_at_the_mean_cpts(name):
    """By brute force; and the draws agree within five standard errors."""
    belief = trained(name)
    problem = belief.problem
    for value in (0, 1):
        context = dict.fromkeys(problem.context, value)
        exact = belief.mean_rewards(context)
        cpts = belief.mean_cpts()
        truth = [mean_reward(problem, cpts, arm, context) for arm in problem.arms]
        np.testing.assert_allclose(exact, truth, rtol=0, atol=1e-12)
        drawn = belief.draw_rewards(context, 100_000, rng=1).astype(np.float64)
        errors = np.abs(drawn.mean(axis=1) - exact) / (drawn.std(axis=1) / np.sqrt(100_000))
        assert errors.max() < 5  # some 40 z-values: a false alarm in 1 of 40,000 cases


def numpy_rewards(belief, context, samples, rng):
    """The slow twin: NumPy's Dirichlet draws, one world at a time, and brute force."""
    problem = belief.problem
    rewards = np.empty((len(problem.arms), samples))
    for i in range(samples):
        cpts = {}
        for name in problem.graph:
            alphas = view(belief, name)
            gammas = rng.standard_gamma(alphas)
            cpts[name] = gammas / gammas.sum(axis=-1, keepdims=True)
        rewards[:, i] = [mean_reward(problem, cpts, arm, context) for arm in problem.arms]
    return rewards


@pytest.mark.parametrize(("name", "prior"), [("task1", 1.0), ("task2", 0.3), ("healthcare", 0.05)])
def test_draws_have_the_distribution_of_their_slow_twin(name, prior):
    """Two-sample Kolmogorov-Smirnov on each arm and on differences; 20 p-values above 1e-4."""
    belief = trained(name, rounds=8, prior=prior)
    context = first_context(belief.problem)
    ours = belief.draw_rewards(context, 20_000, rng=2).astype(np.float64)
    twin = numpy_rewards(belief, context, 1_000, np.random.default_rng(3))
    assert np.isfinite(ours).all()
    for i in range(len(ours)):
        assert stats.ks_2samp(ours[i], twin[i]).pvalue > 1e-4
        j = (i + 1) % len(ours)
        assert stats.ks_2samp(ours[i] - ours[j], twin[i] - twin[j]).pvalue > 1e-4


@pytest.mark.parametrize("name", [*TASKS, "asia", "alarm"])
@pytest.mark.parametrize("prior", [0.05, 1.0])
def test_drawn_probabilities_are_probabilities(name, prior):
    belief = Belief(load_problem(name), prior)
    context = {c: belief.problem.domains[c][0] for c in belief.problem.context}
    drawn = belief.draw_distributions(context, 5_000, rng=0)
    assert drawn.min() >= 0 and drawn.max() <= 1


def test_a_large_offset_of_the_reward_does_no_harm():
    graph = CausalGraph.parse("X -> Y")
    plain, shifted = (
        Belief(Problem(graph, "Y", reward_values={"0": base, "1": base + 1})) for base in (0, 10**8)
    )
    for belief in (plain, shifted):
        belief.update("do(X=1)", {"Y": 1})
    best = plain.probability_best(None, 10_000, rng=0)
    np.testing.assert_allclose(shifted.probability_best(None, 10_000, rng=0), best, atol=0.002)
    widths = np.diff(shifted.reward_intervals(), axis=1)
    np.testing.assert_allclose(widths, np.diff(plain.reward_intervals(), axis=1), atol=1e-6)


def test_when_leaving_incomplete_families_out_is_valid_and_when_it_is_not():
    """20,000 records of Z -> X. Z unseen by the value of Z itself: P(X | Z) comes out right, within
    five standard errors (0.02). Z unseen by the value of X: it does not, as the docstring says."""
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=20_000)
    x = (rng.random(20_000) < np.where(z == 1, 0.8, 0.2)).astype(int)
    problem = Problem(CausalGraph.parse("Z -> X -> Y"), "Y", non_manipulable="Z")
    for hides, valid in ((z, True), (x, False)):
        unseen = rng.random(20_000) < np.where(hides == 1, 0.1, 0.9)
        belief = Belief(problem)
        with pytest.warns(DowiseWarning, match="none with a value of the reward"):
            belief.update_many({"Z": np.where(unseen, np.nan, z), "X": x})
        found = belief.mean_cpts()["X"][:, 1]
        assert (np.abs(found - [0.2, 0.8]) < 0.02).all() == valid


def test_tiny_prior_counts_give_distributions_not_nan():
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", domains={"Y": ["a", "b", "c"]})
    drawn = Belief(problem, prior=0.001).draw_distributions(None, 10_000, rng=0)
    assert np.isfinite(drawn).all() and (drawn >= 0).all()
    np.testing.assert_allclose(drawn.sum(axis=1), 1, atol=1e-6)
    # With so little known, a draw puts almost everything on one value.
    assert (drawn.max(axis=1) > 0.999).mean() > 0.98


def test_the_context_rows_themselves_do_not_matter():
    """Conditioning on the current context changes only its own rows, and no reward sees them."""
    belief = trained("task3")
    context = {"C": 1}
    conditioned = belief.copy()
    posterior = conditioned.posterior
    posterior.model.factors.view(posterior.counts, "C")[1] += 1  # the context is an observation
    np.testing.assert_array_equal(conditioned.mean_rewards(context), belief.mean_rewards(context))
    np.testing.assert_array_equal(
        conditioned.draw_rewards(context, 500, rng=0), belief.draw_rewards(context, 500, rng=0)
    )
    # By brute force, with the context variable's own CPT set to something else entirely.
    cpts = random_cpts(belief.problem, np.random.default_rng(0))
    other = {**cpts, "C": np.array([0.999, 0.001])}
    for arm in belief.problem.arms:
        one, two = (mean_reward(belief.problem, world, arm, {"C": 1}) for world in (cpts, other))
        assert one == pytest.approx(two, abs=1e-12)


def test_no_row_of_a_context_variable_is_ever_drawn():
    for name in ("task2", "task3"):
        belief = Belief(load_problem(name))
        model = belief.posterior.model
        rows = model.factors.row_tables[model.circuit.blocks]
        drawn = {model.factors.variables[v] for v in rows}
        assert not drawn & set(belief.problem.context)


def test_distributions_and_rewards_agree():
    graph = CausalGraph.parse("Z -> X -> Y; Z -> Y")
    problem = Problem(
        graph, "Y", non_manipulable="Z", reward_values={"bad": -2, "fair": 1.5, "good": 40}
    )
    belief = Belief(problem)
    belief.update("do(X=1)", {"Z": 0, "Y": "good"})
    distributions = belief.draw_distributions(None, 1000, rng=5)
    assert distributions.shape == (3, 3, 1000)
    rewards = belief.draw_rewards(None, 1000, rng=5)
    worth = np.array([-2, 1.5, 40])
    np.testing.assert_allclose(rewards, np.einsum("avs,v->as", distributions, worth), atol=1e-4)
    np.testing.assert_allclose(belief.mean_distributions() @ worth, belief.mean_rewards())
    assert rewards.min() >= -2 - 1e-4 and rewards.max() <= 40 + 1e-4


def test_the_sides_of_a_two_valued_reward_may_be_swapped():
    graph = CausalGraph.parse("X -> Y")
    up = Belief(Problem(graph, "Y"))
    down = Belief(Problem(graph, "Y", reward_values={"0": 10, "1": 4}))
    for belief in (up, down):
        belief.update("do(X=0)", {"Y": 1})
    np.testing.assert_allclose(down.mean_rewards(), 10 - 6 * up.mean_rewards())
    np.testing.assert_allclose(
        down.draw_rewards(None, 50, 1), 10 - 6 * up.draw_rewards(None, 50, 1), rtol=1e-5
    )


def test_probability_best_is_that_of_the_paper_at_the_prior():
    """An independent prototype found .07719, .46142, .46139 with 2e8 draws. Within five
    standard errors of 400,000 draws: a false alarm in fewer than one of 500,000 cases."""
    best = Belief(load_problem("task1")).probability_best(None, 400_000, rng=0)
    expected = np.array([0.07719, 0.46142, 0.46139])
    assert best.sum() == pytest.approx(1)
    assert (np.abs(best - expected) < 5 * np.sqrt(expected * (1 - expected) / 400_000)).all()


def test_draws_differ_from_call_to_call_and_repeat_with_the_seed():
    belief = trained("task2")
    rng = np.random.default_rng(7)
    first, second = (belief.draw_rewards({"C": 0}, 300, rng) for _ in range(2))
    assert not np.isclose(first, second).any()
    again = belief.draw_rewards({"C": 0}, 300, np.random.default_rng(7))
    np.testing.assert_array_equal(first, again)


def test_intervals():
    belief = trained("healthcare")
    drawn = belief.draw_rewards(None, 200_000, rng=9)
    intervals = belief.reward_intervals(level=0.9, samples=200_000)
    np.testing.assert_allclose(intervals, np.quantile(drawn, [0.05, 0.95], axis=1).T, atol=0.004)
    wider = belief.reward_intervals(level=0.99)
    assert (wider[:, 0] < intervals[:, 0]).all() and (wider[:, 1] > intervals[:, 1]).all()
    with pytest.raises(DowiseError, match="level=1.5 must be between 0 and 1"):
        belief.reward_intervals(level=1.5)


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (None, "the context has no value for C"),
        ({}, "the context has no value for C"),
        ({"C": None}, "the context has no value for C"),
        ({"C": 5}, "C has no value '5'"),
        ({"c": 1}, "'c' is not a context variable (did you mean 'C'?)"),
        ({"C": 1, "Z": 0}, "'Z' is not a context variable"),
    ],
)
def test_a_bad_context_is_explained(context, message):
    belief = Belief(load_problem("task2"))
    for ask in (
        lambda: belief.mean_rewards(context),
        lambda: belief.draw_rewards(context, 10, 0),
    ):
        with pytest.raises(DowiseError, match=re.escape(message)):
            ask()


@pytest.mark.parametrize("samples", [0, -1, 1e3, "10", None, True, 10**13])
def test_a_bad_number_of_samples_is_explained(samples):
    with pytest.raises(DowiseError, match="must be a whole number, 1 or more|draw fewer"):
        Belief(load_problem("task1")).draw_rewards(None, samples, 0)


@pytest.mark.parametrize("rng", [None, -1, 1.5, "a", True, np.random])
def test_a_bad_generator_is_explained(rng):
    with pytest.raises(DowiseError, match="must be a seed such as 0"):
        Belief(load_problem("task1")).draw_rewards(None, 10, rng)


def test_a_belief_is_about_a_problem():
    with raises_code("invalid-type", "a str"):
        Belief("healthcare")
    with raises_code("invalid-type", "a str"):
        Belief.load("belief.json", "task1")
    with pytest.raises(DowiseError, match="None is not a path"):
        Belief(load_problem("task1")).save(None)


def test_rows_of_a_table_and_pandas_missing_values():
    problem = load_problem("task2")
    belief, twin = Belief(problem), Belief(problem)
    row = pd.Series({"C": 1, "Z": 0, "X2": 1, "Y": 1})
    belief.update("do(X1=0)", row)
    twin.update("do(X1=0)", dict(row))
    np.testing.assert_array_equal(belief.parameters, twin.parameters)
    np.testing.assert_array_equal(
        belief.mean_rewards(pd.Series({"C": 1})), belief.mean_rewards({"C": 1})
    )
    for missing in (pd.NA, pd.NaT, None, np.nan):
        nothing = Belief(problem)
        nothing.update("do(X1=0)", {"C": missing, "Y": missing})
        assert (nothing.parameters == 1).all()
        with pytest.warns(DowiseWarning, match="none with a value of the reward"):
            assert nothing.update_many({"C": [missing], "Y": [missing]}) == 1
        assert (nothing.parameters == 1).all()


def test_a_variable_may_be_called_arm():
    problem = Problem(CausalGraph.parse("arm -> Y"), "Y")
    belief = Belief(problem)
    assert belief.update_many({"arm": [0, 1, 1], "Y": [1, 1, 0]}) == 3
    assert view(belief, "arm").tolist() == [2, 3]


def test_copies_learn_on_their_own():
    belief = trained("task1")
    twin = belief.copy()
    twin.update("do()", {"Z": 0, "X": 0, "Y": 1})
    assert twin.parameters.sum() == belief.parameters.sum() + 3


def test_a_table_without_any_reward_is_warned_of():
    belief = Belief(load_problem("task1"))
    with pytest.warns(DowiseWarning, match="2 records, none with a value of the reward Y"):
        assert belief.update_many({"X": [0, 1], "Z": [1, 1]}) == 2
    with pytest.warns(DowiseWarning, match="1 record, none"):
        belief.update_many({"arm": ["do(X=1)"], "Y": [None]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert belief.update_many({"X": [0, 1], "Z": [1, 1], "Y": [None, 1]}) == 2
        assert belief.update_many({"X": [], "Z": []}) == 0


@pytest.mark.parametrize("name", ["task1", "task3", "healthcare"])
def test_means_in_one_kernel_are_the_circuit_at_the_mean_entries(name):
    problem = load_problem(name)
    posterior = Belief(problem).posterior
    posterior.counts[:] = np.random.default_rng(2).integers(0, 9, len(posterior.counts))
    for codes in product(*(range(len(problem.domains[c])) for c in problem.context)):
        slow = posterior.model.distributions(posterior.mean_entries(), codes)
        np.testing.assert_allclose(posterior.mean_distributions(codes), slow, rtol=1e-14)
