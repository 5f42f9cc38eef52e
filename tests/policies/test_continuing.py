"""What playing on is worth: against a loop in plain Python, the best possible play, and by hand."""

from importlib import import_module

import numpy as np
import pytest
from support.parametrize import one_in

from dowise import (
    Belief,
    CausalGraph,
    DowiseError,
    Environment,
    Problem,
    load_problem,
    make_policy,
    value_of_continuing,
)
from dowise.belief.predictive import draw_worlds
from dowise.experiment.read_model import IndependentArmsBelief
from dowise.policies.thompson import ThompsonSampling

continuing = import_module("dowise.policies.value_of_continuing")  # not the function
TWO_ARMS = Problem(CausalGraph.parse("X -> Y"), "Y")
IN_CONTEXT = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y"), "Y", context="C",
    reward_values={"bad": -1, "fair": 0.5, "good": 3},
)  # fmt: skip


def belief_of(problem, seed=2, records=6, **more):
    """A belief that knows a little."""
    belief, rng = Belief(problem, **more), np.random.default_rng(seed)
    for number in range(records):
        arm = problem.arms[number % len(problem.arms)]
        seen = {v: rng.choice(problem.domains[v]) for v in problem.graph}
        belief.update(arm, seen | dict(arm))
    return belief


def by_hand(belief, rounds, explore, worlds, seed):
    """The same with numpy's draws, a world's own plays and a policy that is stepped."""
    problem, rng = belief.problem, np.random.default_rng(seed)
    turned, factors, gains = problem.payoff.oriented, belief.posterior.model.factors, []
    for _ in range(worlds):
        flat = rng.gamma(belief.parameters)
        cpts = {v: factors.view(flat, v) for v in problem.graph}
        cpts = {v: table / table.sum(axis=-1, keepdims=True) for v, table in cpts.items()}
        world = Environment(problem, cpts)
        policy, gain = make_policy("ts", problem, belief=belief.copy()), 0.0
        for t in range(rounds):
            context = world.draw_context(rng)
            staying = turned(belief.mean_rewards(context)).argmax()
            means = turned(world.means(context))
            if t < explore:
                arm = policy.decide(context, rng).arm
                policy.observe(arm, world.play(arm, context, rng))
                chosen = problem.arm_index(arm)
            else:
                chosen = turned(policy.belief.mean_rewards(context)).argmax()
            gain += means[chosen] - means[staying]
        gains.append(gain)
    return np.mean(gains), np.std(gains) / np.sqrt(worlds)


@pytest.mark.slow
@pytest.mark.parametrize("problem", one_in(2, [IN_CONTEXT, TWO_ARMS]), ids=["context", "two arms"])
def test_a_loop_in_plain_python_finds_the_same(problem, monkeypatch):
    """For some and for all rounds, within 4 standard errors of the difference: 1 in 16,000."""
    belief, rounds = belief_of(problem), 24
    stops = {24: (0, 24), 12: (0, 12, 24)}
    for explore, own in stops.items():
        monkeypatch.setattr(continuing, "_stops", lambda _, own=own: own)
        play = continuing._Play(belief.posterior, rounds)
        source = np.random.default_rng(1)
        worlds = draw_worlds(belief.posterior, 2000, source)
        gains = np.array([play.compare(entries, source) for entries in worlds])
        found = gains[:, 1 + own.index(explore)]
        mean, error = by_hand(belief, rounds, explore, 250, 2)
        assert abs(found.mean() - mean) < 4 * np.hypot(found.std() / np.sqrt(2000), error)
        assert (gains[:, 1] == 0).all() and (gains[:, :1] >= gains[:, 1:]).all()


@pytest.mark.slow
@pytest.mark.parametrize("problem", one_in(2, [IN_CONTEXT, TWO_ARMS]), ids=["context", "two arms"])
def test_the_best_possible_play_gains_more_and_at_most_the_limit(problem):
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
    found = value_of_continuing(belief, rounds, worlds=4000, rng=1)
    assert found.value < best + 4 * found.error
    regret, slack = plan.expected_regret(20_000, 3)
    limit_error = 4 * np.hypot(slack, found.limit / np.sqrt(4000))
    assert abs(found.limit - (best + regret)) < limit_error  # a positive number's mean
    assert 0 < best < found.limit + limit_error
    if problem is TWO_ARMS:
        assert found.explore > 0 and found.value > 4 * found.error  # playing on pays


def test_smaller_may_be_better_and_units_are_the_users():
    plain = Problem(CausalGraph.parse("X -> Y"), "Y", reward_values={"0": 0, "1": 10})
    turned = Problem(
        CausalGraph.parse("X -> Y"), "Y", reward_values={"0": 0, "1": -10}, minimise=True
    )
    ones = [value_of_continuing(belief_of(p), 100, worlds=200) for p in (plain, turned)]
    assert ones[0] == ones[1] and ones[0].value > 0
    unit = value_of_continuing(belief_of(TWO_ARMS), 100, worlds=200)
    assert ones[0].value == pytest.approx(10 * unit.value)


def test_nothing_is_gained_where_there_is_nothing_to_choose():
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", arms=["do(X=1)"])
    found = value_of_continuing(Belief(problem), 20, worlds=50)
    assert (found.value, found.error, found.limit, found.explore) == (0, 0, 0, 0)


def test_no_exploring_where_a_single_round_is_left():
    found = value_of_continuing(belief_of(TWO_ARMS), 1, worlds=400)
    assert (found.value, found.error, found.explore) == (0, 0, 0) and found.limit > 0
    assert continuing._stops(1) == (0, 1)
    assert continuing._stops(200) == (0, 7, 13, 25, 50, 100, 200)


def test_the_belief_stays_and_the_same_seed_gives_the_same():
    belief = belief_of(load_problem("task1"))
    before = belief.as_dict()
    first = value_of_continuing(belief, 40, worlds=60, rng=5)
    assert first == value_of_continuing(belief, 40, worlds=60, rng=5)
    assert first != value_of_continuing(belief, 40, worlds=60, rng=6)
    assert belief.as_dict() == before and first.value <= first.limit
    page = first.as_dict()
    assert page["value_a_round"] == first.value / 40 and page["policy"] == "ts"
    assert list(page) == [
        "rounds", "value", "error", "limit", "explore", "worlds", "policy", "value_a_round",
        "limit_a_round",
    ]  # fmt: skip


@pytest.mark.slow
def test_worlds_that_are_drawn_some_at_a_time_are_as_good(monkeypatch):
    """Other random numbers, the same mean: 4 standard errors, 1 in 16,000. Either all rounds are
    played or none, and all pay by more than ten standard errors: luck has no part in the choice."""
    monkeypatch.setattr(continuing, "_stops", lambda rounds: (0, rounds))
    belief = Belief(TWO_ARMS)
    whole = value_of_continuing(belief, 20, worlds=2000)
    monkeypatch.setattr(continuing, "_ROOM", 100)
    parts = value_of_continuing(belief, 20, worlds=2000)
    assert parts != whole and parts.worlds == 2000 and parts.explore == whole.explore == 20
    assert whole.value > 10 * whole.error
    assert abs(parts.value - whole.value) < 4 * np.hypot(parts.error, whole.error)


HIDDEN = {
    "hidden cause": Problem(
        CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y; Z -> X"), "Y", context="C", edge_prior=1
    ),
    "doubtful edges": Problem(CausalGraph.parse("Z -> X -> Y; Z ?-> Y; X <?> Y"), "Y"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HIDDEN)
def test_stepped_rounds_gain_what_compiled_ones_do(name, monkeypatch):
    """Limit and gain within 4 standard errors: 1 in 16,000 each."""
    belief = belief_of(HIDDEN[name])
    monkeypatch.setattr(continuing, "_stops", lambda rounds: (0, rounds))

    def gains(worlds):
        source = np.random.default_rng(worlds)
        drawn = draw_worlds(belief.posterior, worlds, source)
        play = continuing._Play(belief.posterior, 20)
        return np.array([play.compare(entries, source) for entries in drawn])

    fast = gains(2000)
    monkeypatch.setattr(ThompsonSampling, "compiled_trial", lambda _: None)
    slow = gains(150)
    error = np.hypot(fast.std(axis=0) / np.sqrt(2000), slow.std(axis=0) / np.sqrt(150))
    assert (abs(fast.mean(axis=0) - slow.mean(axis=0)) <= 4 * error).all()
    assert fast[:, 0].mean() > 0


@pytest.mark.slow
def test_small_priors_have_worlds_too():
    found = value_of_continuing(Belief(TWO_ARMS, prior=0.1), 20, worlds=100)
    assert 0 < found.value < found.limit and found.explore > 0


def test_how_many_worlds_there_are():
    posterior = Belief(TWO_ARMS).posterior
    assert continuing._worlds_for(posterior, 10, None) == 1000
    assert continuing._worlds_for(posterior, 30_000, None) < 100
    assert continuing._worlds_for(posterior, 1_000_000, None) == 20


def test_refusals():
    belief = Belief(TWO_ARMS)
    for call, words in [
        (lambda: value_of_continuing(belief, 0), "rounds=0 must be a whole number, 1 or more"),
        (lambda: value_of_continuing(belief, 2.5), "rounds=2.5 must be a whole number"),
        (lambda: value_of_continuing(belief, 10**9), "rounds=1000000000 must be at most 1,000,000"),
        (lambda: value_of_continuing(belief, 5, 3), "worlds=3 must be a whole number, 4 or more"),
        (lambda: value_of_continuing(belief, 10**6, 10**6), "the limit is 20,000,000: use fewer"),
        (lambda: value_of_continuing(belief, 5, rng=None), "rng=None must be a seed"),
        (lambda: value_of_continuing(TWO_ARMS, 5), "belief must be a Belief, not "),
        (
            lambda: value_of_continuing(IndependentArmsBelief(TWO_ARMS), 5),
            "knows rewards of arms only",
        ),
    ]:
        with pytest.raises(DowiseError, match=words):
            call()
