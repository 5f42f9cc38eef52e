"""A reward to minimise: everything is as for its negative to maximise, in the user's own sign."""

import numpy as np
import pytest

from dowise import (
    Belief,
    CausalGraph,
    DowiseError,
    Environment,
    Problem,
    check_environment,
    make_environment,
    make_policy,
    simulate,
)
from dowise.environments.gym import CausalBanditEnv
from dowise.policies import policy_names
from dowise.problem import Payoff
from dowise.simulation import bounds

GRAPH = CausalGraph.parse("C -> X; C -> Y; Z -> X; Z -> Y; X -> Y")
TWO = {"0": 0.0, "1": 1.0}
THREE = {"mild": 2.0, "none": -1.0, "grave": 40.0}


def both(worth, graph=GRAPH, context="C", non_manipulable="Z", arms="all"):
    """Two ways to say the same: smaller is better, and what is negated is."""
    roles = {"context": context, "non_manipulable": non_manipulable, "arms": arms}
    down = Problem(graph, "Y", reward_values=worth, minimise=True, **roles)
    return down, Problem(graph, "Y", reward_values={y: -x for y, x in worth.items()}, **roles)


def tiny(worth):
    return both(worth, CausalGraph.parse("X -> Y"), (), ())


def decisions(name, problem, options, rounds):
    """What a policy does in a world that is the same for both problems."""
    policy, world = make_policy(name, problem, **options), make_environment(problem, 3)
    rng, found = np.random.default_rng(0), []
    for t in range(rounds):
        context = world.draw_context(rng)
        decision = policy.decide(context, t)
        policy.observe(decision.arm, world.play(decision.arm, context, rng))
        chances = [] if decision.probabilities is None else decision.probabilities.tolist()
        found.append((decision.arm, chances))
    return found


WITH_OPTIONS = [
    ("ts", {"propensity_samples": 20}),
    ("ts", {"prior": 0.02, "propensity_samples": 20}),  # draws in double precision
    ("ids", {"samples": 50, "interval": "optimistic"}),
    ("bernoulli-ts", {"prior": (0.1, 0.1), "propensity_samples": 20}),
    ("z2-ts", {"propensity_samples": 20}),
]


@pytest.mark.parametrize("worth", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize(
    ("name", "options"), [*((name, {}) for name in policy_names()), *WITH_OPTIONS]
)
def test_every_policy_decides_as_on_the_mirror_image(name, options, worth):
    is_planned = name == "bayes-optimal"
    down, up = tiny(worth) if is_planned else both(worth)
    options = {"horizon": 9} if is_planned else options
    rounds = 9 if is_planned else 60
    found = decisions(name, down, options, rounds)
    assert found == decisions(name, up, options, rounds)
    ignored = Problem(  # else nothing would be shown
        down.graph, "Y", down.context, down.non_manipulable, reward_values=worth, arms="all"
    )
    assert name == "random" or found != decisions(name, ignored, options, rounds)


@pytest.mark.parametrize("worth", [TWO, THREE], ids=["two", "three"])
def test_worlds_have_the_same_regret_and_the_user_s_means(worth):
    down, up = (make_environment(problem, 5) for problem in both(worth))
    for c in "01":
        context = {"C": c}
        assert down.means(context).tolist() == (-up.means(context)).tolist()
        best = down.best_arm(context)
        assert best == up.best_arm(context) == down.problem.arms[down.means(context).argmin()]
        regrets = [down.regret(arm, context) for arm in down.problem.arms]
        assert regrets == [up.regret(arm, context) for arm in up.problem.arms]
        assert regrets == (down.means(context) - down.means(context).min()).tolist()
        assert min(regrets) == down.regret(best, context) == 0 < max(regrets)
    assert dict(down.optimal_map()) == dict(up.optimal_map())
    check_environment(down, plays=100)


def test_the_first_of_equals_is_the_best():
    same = Environment(tiny(TWO)[0], {"X": [0.5, 0.5], "Y": [[0.3, 0.7], [0.3, 0.7]]})
    assert str(same.best_arm()) == "do()" and same.regret("do(X=1)") == 0


def test_a_world_that_looks_for_the_largest_mean_is_found_out():
    class Upside(Environment):
        def best_arm(self, context=None):
            return self.problem.arms[int(self.means(context).argmax())]

    down = tiny(TWO)[0]
    with pytest.raises(DowiseError, match="the first arm with the smallest mean"):
        check_environment(Upside(down, make_environment(down, 0).cpts))


@pytest.mark.parametrize("prior", [1.0, 0.02])
def test_beliefs_are_in_the_user_s_sign(prior):
    down, up = (Belief(problem, prior) for problem in both(THREE))
    for belief in (down, up):
        belief.update("do(X=1)", {"C": 0, "Z": 0, "Y": "grave"})
    asked = {"C": 0}
    assert np.array_equal(down.mean_rewards(asked), -up.mean_rewards(asked))
    draws = [belief.draw_rewards(asked, 100, 0) for belief in (down, up)]
    assert np.array_equal(draws[0], -draws[1])
    assert np.allclose(down.reward_intervals(asked), -up.reward_intervals(asked)[:, ::-1])
    best = down.probability_best(asked, 2000, 1)
    assert np.array_equal(best, up.probability_best(asked, 2000, 1))
    assert best[down.problem.arm_index("do(X=0)")] > best[down.problem.arm_index("do(X=1)")]


@pytest.mark.parametrize("worth", [TWO, THREE], ids=["two", "three"])
def test_races_are_the_same(worth):
    races = [
        simulate([("p", problem)], ["ts", "ids", "ucb", "bernoulli-ts", "kl-ucb"], 40, 3).frame()
        for problem in both(worth)
    ]
    assert races[0].equals(races[1])
    assert (
        races[0].groupby(["policy", "trial"], observed=True)["regret"].diff().dropna() >= 0
    ).all()


def test_bounds_are_the_same():
    options = {"horizon": 10, "samples": 500, "policy_samples": 200}
    down, up = (bounds(problem, **options).as_dict() for problem in both(THREE))
    assert down == up and down["reward_span"] == 41


@pytest.mark.parametrize("worth", [TWO, THREE], ids=["two", "three"])
def test_the_best_plan_is_that_of_the_mirror_image(worth):
    down, up = (make_policy("bayes-optimal", problem, horizon=4) for problem in tiny(worth))
    assert down.value == -up.value < 4 * np.mean(list(worth.values()))
    assert down.expected_regret(2000, 0) == pytest.approx(up.expected_regret(2000, 0))
    assert down.expected_regret(2000, 0)[0] > 0
    decisions = [policy.decide(rng=0) for policy in (down, up)]
    values = [decision.figures["values"] for decision in decisions]
    assert np.array_equal(values[0], -values[1])
    assert f"expected to bring {values[0].min():.4g} in total" in decisions[0].reason


def test_reasons_are_in_the_user_s_units():
    down = tiny({"0": 10.0, "1": 50.0})[0]
    policy = make_policy("kl-ucb", down)
    for arm, y in zip(down.arms, "110", strict=True):
        policy.observe(arm, {"X": 1, "Y": y} | dict(arm))
    reason = policy.decide(rng=0).reason
    assert reason == (
        "its mean reward was 10 in 1 play, and allowing for chance it has the highest plausible "
        "mean of all arms"
    )
    # Nothing is known at the prior but that every arm costs 30 on average.
    ids = make_policy("ids", down).decide(rng=0)
    assert 0 < float(ids.reason.split("expected to lose ")[1].split()[0]) < 20


def test_agents_of_gymnasium_maximise():
    down, up = (CausalBanditEnv(make_environment(p, 1), horizon=20) for p in both(THREE))
    for env in (down, up):
        env.reset(seed=2)
    for t in range(20):
        one, other = down.step(t % 3), up.step(t % 3)
        assert one[1] == other[1] == -THREE[one[4]["outcome"]["Y"]]
        assert one[4] == other[4]


def test_networks_take_it_too():
    down = Environment.from_bif("asia", minimise=True)
    up = Environment.from_bif("asia")
    assert not up.problem.minimise and down.problem.minimise
    context = {"asia": "no"}
    assert np.array_equal(down.means(context), up.means(context))
    assert down.best_arm(context) == up.problem.arms[int(up.means(context).argmin())]


def test_a_payoff_knows_the_direction():
    payoff = Payoff.from_user("Y", ("a", "b", "c"), {"a": 3, "b": -1, "c": 1}, minimise=True)
    assert payoff.values.tolist() == [3, -1, 1]
    assert payoff.scaled.tolist() == [0, 1, 0.5] and (payoff.worst, payoff.span) == (3, 4)
    assert [payoff.unscale(x) for x in payoff.scaled] == [3, -1, 1]
    assert Payoff.from_user(
        "Y", ("0", "1"), None, minimise=True
    ).is_plain  # a mean is a probability
    means = np.array([[2.0, 1.0, 1.0], [0.0, 0.5, -1.0]])
    assert payoff.best_of(means[0]) == 1
    assert payoff.regrets(means).tolist() == [[1, 0, 0], [1, 1.5, 0]]
    assert str(payoff.oriented(0.0)) == "0.0"
