"""Gains from all variables and rows, about arms and maps, against twins that enumerate outcomes."""

from itertools import product

import numpy as np
import pytest
from support import gain_twin as twin
from support.beliefs import trained_belief
from support.errors import raises_code
from support.parametrize import one_in

from dowise import Belief, CausalGraph, Problem, load_problem
from dowise._core.rng import draw_key, generator
from dowise.information import gains
from dowise.information.gains import Gains, context_probabilities, likely_contexts, outcome_paths

THREE = {"bad": 0, "fair": 1, "good": 3}
PROBLEMS = {
    "task1": load_problem("task1"),
    "task2": load_problem("task2"),
    "three values": Problem(
        CausalGraph.parse("Z -> X -> Y; Z -> Y"), "Y", non_manipulable="Z", reward_values=THREE
    ),
    # Under do(M=…) the row of W depends on X, but no reward depends on X alone.
    "a chain": Problem(
        CausalGraph.parse("X -> W -> M -> Y; Y -> V"),
        "Y",
        arms=["do(M=0)", "do(M=1)", "do(X=0)", "do(X=1)"],
    ),
    "two contexts": Problem(
        CausalGraph.parse("C -> D; C -> X -> Y; D -> Y; Z -> Y"), "Y", context=["C", "D"]
    ),
    "hidden": Problem(CausalGraph.parse("C -> X -> M -> Y; C -> Y; X <-> Y"), "Y", context="C"),
    "hidden context": Problem(
        CausalGraph.parse("C -> X -> Y; D -> X; C <-> D; D <-> Y"), "Y", context=["C", "D"]
    ),
    "doubtful": Problem(CausalGraph.parse("Z ?-> X -> Y; Z <?> Y; X -> M ?-> Y"), "Y"),
    "doubtful, in context": Problem(
        CausalGraph.parse("C -> X -> Y; C ?-> Y; X <?> Y; Z -> X"), "Y", context="C"
    ),
}
SAMPLES, SEED = 60, 3


def posterior_of(problem, records=12):
    """Return a posterior whose draws have no arms that are equal up to rounding."""
    return trained_belief(problem, records, seed=2).posterior


class Twin:
    """Gains of a posterior in a context, by enumeration."""

    def __init__(self, posterior, codes):
        self.problem = posterior.problem
        self.factors, self.codes = posterior.model.factors, codes
        self.drawn = twin.all_entries(posterior, codes, SAMPLES, SEED)
        self.means = posterior.mean_entries()
        is_open = []
        if self.problem.edge_priors:
            structures = posterior.model.structures
            is_open = [v for v in range(len(self.problem.graph)) if structures.is_open(v)]
        informative = twin.informative_entries(self.problem, self.factors, codes, is_open)
        self.entries = np.where(informative[:, None], self.drawn, self.means[:, None])
        self.posterior = posterior

    def questions(self, about):
        """Return (weight, best arm of every draw) of each question."""
        if about == "arm":
            return [(1.0, self.best(self.codes))]
        sizes = [len(self.problem.domains[name]) for name in sorted(self.problem.context)]
        return [
            (twin.context_chance(self.problem, self.factors, self.means, c), self.best(c))
            for c in product(*map(range, sizes))
        ]

    def best(self, codes):
        entries = twin.all_entries(self.posterior, codes, SAMPLES, SEED)
        return twin.best_arms(self.problem, self.factors, entries, codes)

    def gain(self, seen, about):
        return [
            sum(weight * getattr(self, seen)(arm, best) for weight, best in self.questions(about))
            for arm in self.problem.arms
        ]

    def reward(self, arm, best):
        place = self.problem.arm_index(arm)
        rewards = twin.rewards(self.problem, self.factors, self.drawn, self.codes)[place]
        return twin.mutual_information(twin.grouped(rewards, best))

    def all(self, arm, best):
        rows = [
            self.entries[positions].prod(axis=0)
            for _, positions in twin.outcomes(self.problem, self.factors, arm, self.codes)
        ]
        return twin.mutual_information(twin.grouped(np.array(rows), best))

    def rows(self, arm, best):
        total = 0.0
        for _, positions in twin.outcomes(self.problem, self.factors, arm, self.codes):
            chance = self.means[positions].prod()
            for entry in positions:
                row = np.searchsorted(self.factors.row_starts, entry, side="right") - 1
                start, size = self.factors.row_starts[row], self.factors.row_sizes[row]
                joint = twin.grouped(self.entries[start : start + size], best)
                total += chance * twin.mutual_information(joint)
        return total


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("about", one_in(2, ["arm", "map"]))
def test_gains_equal_their_twins(name, about):
    problem = PROBLEMS[name]
    posterior = posterior_of(problem, 4)  # few records, so that several arms win
    codes = tuple(1 for _ in problem.context)
    slow, arms = Twin(posterior, codes), np.arange(len(problem.arms))
    for seen in ("reward", "all", "rows"):
        estimate = Gains(seen, about).estimate(posterior, codes, SAMPLES, arms, generator(SEED))
        assert len(estimate.winning) > 1
        np.testing.assert_allclose(estimate.gain, slow.gain(seen, about), rtol=1e-4, atol=2e-6)
        np.testing.assert_array_equal(estimate.winners, slow.best(codes))


def test_all_variables_are_at_least_as_informative_as_the_reward():
    problem = load_problem("task3")
    posterior, arms = posterior_of(problem, 40), np.arange(len(problem.arms))
    reward, everything = (
        Gains(seen, "map").estimate(posterior, (0,), 500, arms, generator(0)).gain
        for seen in ("reward", "all")
    )
    assert (everything >= reward - 1e-7).all() and (everything > 1.5 * reward).any()


def test_variables_that_no_reward_depends_on_are_skipped():
    """In the chain V is an effect of the reward, and no reward depends on the CPT of X."""
    model = posterior_of(PROBLEMS["a chain"]).model
    paths = outcome_paths(model).paths
    names = model.factors.variables
    assert [names[v] for v in model.factors.order.variables][-1] == "V"
    assert np.diff(paths.first).tolist() == [3, 3, 3, 3]  # X, W, Y; and W, M, Y


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two contexts", "hidden", "doubtful", "three values"])
def test_sampled_gains_are_unbiased(name, monkeypatch):
    """Means of 400 estimates are within five standard errors; of some forty comparisons one would
    miss in one of 40,000 runs."""
    problem = PROBLEMS[name]
    posterior, codes = posterior_of(problem), tuple(0 for _ in problem.context)
    arms, key = np.arange(len(problem.arms)), draw_key(generator(0))
    winners = posterior.draw_lanes(key, codes, 0, 50).winners(problem.payoff)[0]
    questions = Gains("all", "map").questions(posterior, key, codes, winners)
    paths = outcome_paths(posterior.model)
    values, means = paths.draw(posterior, key, codes, 50), paths.means(posterior, codes)

    def estimate(add, *inputs, seed=0):
        gain = np.zeros(len(arms))
        add(paths, arms, *inputs, questions, generator(seed), gain)
        return gain

    for inputs in ((gains._add_all, values), (gains._add_rows, values, means)):
        exact = estimate(*inputs)
        with monkeypatch.context() as patch:
            patch.setattr(gains, "MAX_OUTCOMES", 0)
            patch.setattr(gains, "MAX_WALKS", 0)
            estimates = np.array([estimate(*inputs, seed=seed) for seed in range(400)])
        errors = estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates))
        assert (estimates >= 0).all()
        assert (np.abs(estimates.mean(axis=0) - exact) <= 5 * errors + 1e-12).all()


def test_draws_of_rows_belong_to_the_worlds_of_the_rewards():
    for name in ("hidden", "doubtful", "doubtful, in context"):
        problem = PROBLEMS[name]
        posterior, codes = posterior_of(problem), tuple(1 for _ in problem.context)
        entries = twin.all_entries(posterior, codes, 300, 5)
        slow = twin.rewards(problem, posterior.model.factors, entries, codes)
        drawn = posterior.draw(codes, 300, 5).distributions()
        np.testing.assert_allclose(drawn, slow, atol=2e-6)


def test_context_probabilities_equal_their_twin():
    for name in ("two contexts", "hidden context"):
        problem = PROBLEMS[name]
        posterior = posterior_of(problem)
        chances = context_probabilities(posterior)
        assert chances.sum() == pytest.approx(1)
        for codes in product(range(2), range(2)):
            slow = twin.context_chance(
                problem, posterior.model.factors, posterior.mean_entries(), codes
            )
            assert chances[codes] == pytest.approx(slow)
    assert likely_contexts(posterior_of(PROBLEMS["task1"]), ())[0] == [()]


def test_a_map_of_many_contexts_has_the_likeliest_and_the_present_one():
    names = [f"C{i}" for i in range(8)]
    text = "; ".join(f"{name} -> Y" for name in names[:2]) + "; X -> Y"
    graph = CausalGraph.parse(text + "; " + "; ".join(f"{name} -> X" for name in names[2:]))
    posterior = Belief(
        Problem(graph, "Y", context=names), {name: [1, 3] for name in names}
    ).posterior
    contexts, chances = likely_contexts(posterior, (0,) * 8)
    assert len(contexts) == 65 and (0,) * 8 in contexts and (1,) * 8 in contexts
    sorted_chances = np.sort(context_probabilities(posterior).ravel())[::-1]
    np.testing.assert_allclose(np.sort(chances)[::-1][:64], sorted_chances[:64])
    estimate = Gains("rows", "map").estimate(posterior, (0,) * 8, 100, np.arange(2), generator(0))
    assert (estimate.gain > 0).all()


def test_too_many_contexts_are_refused():
    names = [f"C{i}" for i in range(17)]
    graph = CausalGraph.parse("C0 -> Y; X -> Y; " + "; ".join(names))
    problem = Problem(graph, "Y", context=names)
    with raises_code("too-large", 'about="map"', "131,072 contexts"):
        Gains("all", "map").check(problem)
