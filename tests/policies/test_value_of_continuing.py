"""Value of continuing, against a plain Python loop and the best possible play."""

from importlib import import_module

import numpy as np
import pytest
from support.errors import raises_code
from support.parametrize import one_in
from support.policies import TWO_ARMS, random_records

from dowise import (
    Belief,
    CausalGraph,
    Environment,
    Problem,
    load_problem,
    make_policy,
    value_of_continuing,
)
from dowise.belief.predictive import draw_worlds
from dowise.policies.independent_arms import IndependentArmsBelief
from dowise.policies.thompson import ThompsonSampling

continuing = import_module("dowise.policies.value_of_continuing")  # the module
IN_CONTEXT = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y"),
    "Y",
    context="C",
    reward_values={"bad": -1, "fair": 0.5, "good": 3},
)


def belief_of(problem, seed=2, records=6):
    """Return a belief that has learned a few random records."""
    belief = Belief(problem)
    for record in random_records(problem, records, seed):
        belief.learn(record)
    return belief


def by_loop(belief, rounds, explore, worlds, seed):
    """The same with NumPy's draws, an Environment and a policy that is stepped."""
    problem, rng = belief.problem, np.random.default_rng(seed)
    oriented, factors, gains = problem.payoff.oriented, belief.posterior.model.factors, []
    for _ in range(worlds):
        flat = rng.gamma(belief.parameters)
        cpts = {v: factors.view(flat, v) for v in problem.graph}
        cpts = {v: table / table.sum(axis=-1, keepdims=True) for v, table in cpts.items()}
        world = Environment(problem, cpts)
        policy, gain = make_policy("ts", problem, belief=belief.copy()), 0.0
        for t in range(rounds):
            context = world.draw_context(rng)
            staying = oriented(belief.mean_rewards(context)).argmax()
            means = oriented(world.means(context))
            if t < explore:
                arm = policy.decide(context, rng).arm
                policy.observe(arm, world.play(arm, context, rng))
                chosen = problem.arm_index(arm)
            else:
                chosen = oriented(policy.belief.mean_rewards(context)).argmax()
            gain += means[chosen] - means[staying]
        gains.append(gain)
    return np.mean(gains), np.std(gains) / np.sqrt(worlds)


@pytest.mark.slow
@pytest.mark.parametrize("problem", one_in(2, [IN_CONTEXT, TWO_ARMS]), ids=["context", "two arms"])
def test_the_value_equals_that_of_a_plain_python_loop(problem, monkeypatch):
    """For half and for all rounds, within 4 standard errors of the difference: 1 in 16,000."""
    belief, rounds = belief_of(problem), 24
    stops = {24: (0, 24), 12: (0, 12, 24)}
    for explore, numbers in stops.items():
        monkeypatch.setattr(continuing, "_stops", lambda _, numbers=numbers: numbers)
        continuation = continuing._Continuation(belief.posterior, rounds)
        source = np.random.default_rng(1)
        worlds = draw_worlds(belief.posterior, 2000, source)
        gains = np.array([continuation.compare(entries, source) for entries in worlds])
        result = gains[:, 1 + numbers.index(explore)]
        mean, error = by_loop(belief, rounds, explore, 250, 2)
        assert abs(result.mean() - mean) < 4 * np.hypot(result.std() / np.sqrt(2000), error)
        assert (gains[:, 1] == 0).all() and (gains[:, :1] >= gains[:, 1:]).all()


@pytest.mark.slow
@pytest.mark.parametrize("problem", one_in(2, [IN_CONTEXT, TWO_ARMS]), ids=["context", "two arms"])
def test_the_value_is_below_that_of_the_best_play_and_that_below_the_limit(problem):
    """The plan's value is exact; 4 standard errors, 1 in 32,000 for each of three."""
    belief, rounds = belief_of(problem, records=2), 12 if problem is TWO_ARMS else 3
    plan = make_policy("bayes-optimal", problem, horizon=rounds, belief=belief.copy())
    chances = belief.mean_cpts()["C"] if problem.context else [1.0]
    contexts = [{"C": c} for c in problem.domains["C"]] if problem.context else [None]
    staying = sum(
        chance * belief.mean_rewards(context).max()
        for chance, context in zip(chances, contexts, strict=True)
    )
    best = plan.value - rounds * staying
    result = value_of_continuing(belief, rounds, worlds=4000, rng=1)
    assert result.value < best + 4 * result.error
    regret, slack = plan.expected_regret(20_000, 3)
    limit_error = 4 * np.hypot(slack, result.limit / np.sqrt(4000))
    assert abs(result.limit - (best + regret)) < limit_error  # a positive number's mean
    assert 0 < best < result.limit + limit_error
    if problem is TWO_ARMS:
        assert result.explore > 0 and result.value > 4 * result.error  # continuing pays off


def test_the_value_is_in_the_units_of_the_problem_whatever_the_direction():
    plain = Problem(CausalGraph.parse("X -> Y"), "Y", reward_values={"0": 0, "1": 10})
    minimised = Problem(
        CausalGraph.parse("X -> Y"), "Y", reward_values={"0": 0, "1": -10}, minimise=True
    )
    values = [value_of_continuing(belief_of(p), 100, worlds=200) for p in (plain, minimised)]
    assert values[0] == values[1] and values[0].value > 0
    unit = value_of_continuing(belief_of(TWO_ARMS), 100, worlds=200)
    assert values[0].value == pytest.approx(10 * unit.value)


def test_a_single_arm_gains_nothing():
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", arms=["do(X=1)"])
    result = value_of_continuing(Belief(problem), 20, worlds=50)
    assert (result.value, result.error, result.limit, result.explore) == (0, 0, 0, 0)


def test_a_single_round_is_not_explored():
    result = value_of_continuing(belief_of(TWO_ARMS), 1, worlds=400)
    assert (result.value, result.error, result.explore) == (0, 0, 0) and result.limit > 0
    assert continuing._stops(1) == (0, 1)
    assert continuing._stops(200) == (0, 7, 13, 25, 50, 100, 200)


def test_equal_seeds_give_equal_values_and_leave_the_belief_alone():
    belief = belief_of(load_problem("task1"))
    before = belief.as_dict()
    first = value_of_continuing(belief, 40, worlds=60, rng=5)
    assert first == value_of_continuing(belief, 40, worlds=60, rng=5)
    assert first != value_of_continuing(belief, 40, worlds=60, rng=6)
    assert belief.as_dict() == before and first.value <= first.limit
    data = first.as_dict()
    assert data["value_a_round"] == first.value / 40 and data["policy"] == "ts"
    assert list(data) == [
        "rounds",
        "value",
        "error",
        "limit",
        "explore",
        "worlds",
        "policy",
        "value_a_round",
        "limit_a_round",
    ]


@pytest.mark.slow
def test_worlds_may_be_drawn_in_blocks(monkeypatch):
    """Other random numbers, the same mean: 4 standard errors, 1 in 16,000. Playing all rounds pays
    off by more than ten standard errors, so the choice of m is not a matter of luck."""
    monkeypatch.setattr(continuing, "_stops", lambda rounds: (0, rounds))
    belief = Belief(TWO_ARMS)
    single_block = value_of_continuing(belief, 20, worlds=2000)
    monkeypatch.setattr(continuing, "MAX_ENTRIES", 100)
    blocks = value_of_continuing(belief, 20, worlds=2000)
    assert blocks != single_block and blocks.worlds == 2000
    assert blocks.explore == single_block.explore == 20
    assert single_block.value > 10 * single_block.error
    assert abs(blocks.value - single_block.value) < 4 * np.hypot(blocks.error, single_block.error)


HIDDEN = {
    "hidden cause": Problem(
        CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y; Z -> X"), "Y", context="C", edge_prior=1
    ),
    "doubtful edges": Problem(CausalGraph.parse("Z -> X -> Y; Z ?-> Y; X <?> Y"), "Y"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HIDDEN)
def test_stepped_rounds_gain_as_much_as_compiled_ones(name, monkeypatch):
    """Limit and gain within 4 standard errors: 1 in 16,000 each."""
    belief = belief_of(HIDDEN[name])
    monkeypatch.setattr(continuing, "_stops", lambda rounds: (0, rounds))

    def gains(worlds):
        source = np.random.default_rng(worlds)
        drawn = draw_worlds(belief.posterior, worlds, source)
        continuation = continuing._Continuation(belief.posterior, 20)
        return np.array([continuation.compare(entries, source) for entries in drawn])

    fast = gains(2000)
    monkeypatch.setattr(ThompsonSampling, "compiled_trial", lambda _: None)
    slow = gains(150)
    error = np.hypot(fast.std(axis=0) / np.sqrt(2000), slow.std(axis=0) / np.sqrt(150))
    assert (abs(fast.mean(axis=0) - slow.mean(axis=0)) <= 4 * error).all()
    assert fast[:, 0].mean() > 0


@pytest.mark.slow
def test_small_priors_are_supported():
    result = value_of_continuing(Belief(TWO_ARMS, prior=0.1), 20, worlds=100)
    assert 0 < result.value < result.limit and result.explore > 0


def test_the_default_number_of_worlds_depends_on_the_work():
    posterior = Belief(TWO_ARMS).posterior
    assert continuing._worlds_for(posterior, 10, None) == 1000
    assert continuing._worlds_for(posterior, 30_000, None) < 100
    assert continuing._worlds_for(posterior, 1_000_000, None) == 20


@pytest.mark.parametrize(
    ("arguments", "options", "code", "mentioned"),
    [
        ((Belief(TWO_ARMS), 0), {}, "invalid-number", "rounds=0"),
        ((Belief(TWO_ARMS), 2.5), {}, "invalid-number", "rounds=2.5"),
        ((Belief(TWO_ARMS), 10**9), {}, "invalid-number", "rounds=1000000000"),
        ((Belief(TWO_ARMS), 5, 3), {}, "invalid-number", "worlds=3"),
        ((Belief(TWO_ARMS), 10**6, 10**6), {}, "too-large", "the limit is 20,000,000"),
        ((Belief(TWO_ARMS), 5), {"rng": None}, "invalid-type", "rng=None"),
        ((TWO_ARMS, 5), {}, "invalid-type", "belief must be a Belief"),
        ((IndependentArmsBelief(TWO_ARMS), 5), {}, "unsupported-belief", "rewards of arms only"),
    ],
)
def test_invalid_arguments_are_refused(arguments, options, code, mentioned):
    with raises_code(code, mentioned):
        value_of_continuing(*arguments, **options)
