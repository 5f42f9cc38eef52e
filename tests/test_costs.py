"""Arms with costs: whatever compares arms or shows rewards does so net of them, and only once."""

import json
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner
from support.played_experiments import COIN, coin_experiment, create_experiment

from dowise import (
    Belief,
    CausalGraph,
    DowiseError,
    Environment,
    Problem,
    check_environment,
    check_policy,
    make_environment,
    make_policy,
    simulate,
)
from dowise.cli.main import main
from dowise.environments.gym import CausalBanditEnv
from dowise.experiment import Experiment
from dowise.experiment.evaluation import Decide, Learn, LoggedDecision, evaluate
from dowise.experiment.plots import explanation_chart
from dowise.information import delta_interval, estimate_in_blocks, estimate_of
from dowise.policies import policy_names
from dowise.policies.registry import policy_info
from dowise.simulation import On, bounds
from dowise.simulation.trial import run_trial

pytestmark = pytest.mark.slow  # every policy, played

GRAPH = CausalGraph.parse("C -> X; C -> Y; Z -> X; Z -> Y; X -> Y; W -> Y")
TWO = {"0": 0.0, "1": 1.0}
THREE = {"mild": 2.0, "none": -1.0, "grave": 40.0}
COSTS = {"X": 0.125, "W": 0.25, "do(X=1)": 0.5}
DOUBTFUL = CausalGraph.parse("C -> X; C ?-> Y; Z -> X -> Y; X <-> Y")


def made(worth=TWO, minimise=False, costs=COSTS, arms="minimal", graph=GRAPH):
    span = max(worth.values()) - min(worth.values())
    costs = {text: cost * span for text, cost in costs.items() if "W" in graph or text != "W"}
    return Problem(
        graph, "Y", "C", "Z", reward_values=worth, minimise=minimise, costs=costs, arms=arms
    )


def paid(problem):
    """What every arm costs, by hand."""
    return np.array([
        problem.costs.get(str(arm), sum(problem.costs.get(name, 0) for name in arm))
        for arm in problem.arms
    ])  # fmt: skip


def by_hand(problem, distributions):
    """Net rewards in the user's units from P(y): (arms, values of Y, …)."""
    worth = np.array(list(problem.reward_values.values()))
    gross = np.einsum("av...,v->a...", distributions.astype(np.float64), worth)
    sign = 1 if problem.minimise else -1
    return gross + sign * paid(problem).reshape(-1, *[1] * (gross.ndim - 1))


kinds = pytest.mark.parametrize(
    ("worth", "minimise"), [(TWO, False), (TWO, True), (THREE, False), (THREE, True)]
)


# -- beliefs ---------------------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize("prior", [1.0, 0.02])
def test_a_belief_says_what_is_left(worth, minimise, prior):
    problem = made(worth, minimise)
    belief, asked = Belief(problem, prior), {"C": 1}
    for label in (*worth, [*worth][-1]):
        belief.update("do(X=1)", {"C": 1, "Z": 0, "W": 1, "Y": label})
    mean = by_hand(problem, belief.mean_distributions(asked))
    np.testing.assert_allclose(belief.mean_rewards(asked), mean, rtol=1e-12)
    drawn = by_hand(problem, belief.draw_distributions(asked, 2000, 5))
    found = belief.draw_rewards(asked, 2000, 5)
    np.testing.assert_allclose(found, drawn, atol=1e-5 * problem.payoff.span)
    best = drawn.argmin(axis=0) if minimise else drawn.argmax(axis=0)
    shares = np.bincount(best, minlength=len(problem.arms)) / 2000
    # With a small prior many draws are the same to the last digit, and a coin decides.
    assert np.abs(belief.probability_best(asked, 2000, 5) - shares).max() <= (
        0.002 if prior == 1 else 0.2
    )
    ends = np.quantile(drawn, [0.05, 0.95], axis=1).T
    intervals = belief.reward_intervals(asked, 0.9, 2000, 5)
    np.testing.assert_allclose(intervals, ends, atol=1e-5 * problem.payoff.span)


def test_with_a_small_prior_the_best_of_each_draw_is_the_best_net_of_cost():
    """In exact arithmetic, where nearly all rewards are 0 or 1 to the last digit."""
    problem = made(costs={"X": 1.0, "W": 0.25, "do(X=1)": 1e-9})
    belief = Belief(problem, 0.02)
    draws = belief.draw(problem.context_codes({"C": 0}), 400, 3)
    winners, peak = draws.winners(problem.payoff)
    costs = [Fraction(float(cost)) for cost in paid(problem)]
    total = 0.0
    for i, winner in enumerate(winners):
        whole = [[Fraction(float(p)) for p in arm] for arm in draws.whole[:, :, i]]
        net = [good / (bad + good) - cost for (bad, good), cost in zip(whole, costs, strict=True)]
        assert net[winner] >= max(net) - Fraction(1, 10**14)
        if net[winner] < max(net):  # by less than a double has of a net reward
            assert costs[winner] <= costs[net.index(max(net))]
        total += float(net[winner])
    assert peak == pytest.approx(total, abs=1e-9) and len(set(winners.tolist())) > 3


def test_of_arms_that_are_alike_the_cheapest_is_the_best():
    """do(X=1, Z=…) does what do(X=1) does; here it costs less, by its own cost."""
    costs = {"X": 0.5, "do(X=1, Z=1)": 0.1, "do(X=0, Z=1)": 0.1}
    problem = Problem("Z -> X -> Y", "Y", costs=costs, arms="all")
    for prior in (1.0, 0.02):
        best = Belief(problem, prior).probability_best(None, 1000, 0)
        played = {str(arm) for arm, share in zip(problem.arms, best, strict=True) if share}
        assert {"do(X=0, Z=1)", "do(X=1, Z=1)"} <= played
        assert not played & {"do(X=0)", "do(X=1)", "do(X=0, Z=0)", "do(X=1, Z=0)"}


# -- information -----------------------------------------------------------------------------------


def estimated_by_hand(problem, distributions, arms):
    """p*, Δ on the scale and g by their definitions."""
    span, worth = problem.payoff.span, by_hand(problem, distributions) / problem.payoff.span
    net = (-worth if problem.minimise else worth)[arms]
    best, samples = net.argmax(axis=0), net.shape[1]
    share = np.bincount(best, minlength=len(arms)) / samples
    regret = (net.max(axis=0) - net).mean(axis=1)
    gain = np.zeros(len(arms))
    for a, arm in enumerate(arms):
        p = distributions[arm].astype(np.float64)
        for b in np.unique(best):
            joint = p[:, best == b].sum(axis=1) / samples
            apart = share[b] * p.mean(axis=1)
            gain[a] += (joint * np.log(joint / apart)).sum()
    assert span > 0
    return share, regret, gain


@kinds
@pytest.mark.parametrize("some", [False, True])
def test_estimates_are_those_of_the_definition(worth, minimise, some):
    problem = made(worth, minimise)
    belief, codes = Belief(problem), problem.context_codes({"C": 1})
    draws = belief.draw(codes, 500, 7)
    arms = np.array([1, 2, 4, 7, 8]) if some else np.arange(len(problem.arms))
    share, regret, gain = estimated_by_hand(problem, draws.distributions(), arms)
    among = draws.among(arms) if some else draws
    found = estimate_of(among, problem.payoff)
    assert np.abs(found.best - share).max() <= 0.004  # what rounding may turn
    np.testing.assert_allclose(found.delta, regret, atol=1e-5)
    np.testing.assert_allclose(found.gain, gain, atol=1e-3)
    own = paid(problem)[arms] / problem.payoff.span
    np.testing.assert_allclose(found.extra, own - own.min(), atol=1e-15)
    both = among.among(np.arange(len(arms) - 1))
    assert len(estimate_of(both, problem.payoff).delta) == len(arms) - 1
    whole = belief.draw(codes, 500, 7)
    parts = [type(draws)(whole.others[:, :, i : i + 100], first=i) for i in range(0, 500, 100)]
    if not some:
        blocks = estimate_in_blocks(parts, problem.payoff, 500)
        np.testing.assert_allclose(blocks.delta, found.delta, atol=1e-12)
        np.testing.assert_allclose(blocks.gain, found.gain, atol=1e-12)
        np.testing.assert_allclose(blocks.means, found.means, atol=1e-12)
        assert np.array_equal(blocks.extra, found.extra)


def test_the_interval_of_a_regret_takes_the_larger_range():
    """Lemma 3 by Hoeffding for numbers in [max(0, d − 1), 1 + d]; every draw lies in there."""
    problem = made(costs={"X": 0.4, "W": 1.75}, arms="all")
    draws = Belief(problem).draw(problem.context_codes({"C": 0}), 4000, 1)
    net = by_hand(problem, draws.distributions())
    extra = paid(problem) - paid(problem).min()
    regrets, least, most = net.max(axis=0) - net, np.maximum(extra - 1, 0), 1 + extra
    assert (regrets.min(axis=1) >= least - 1e-6).all() and (regrets.max(axis=1) <= most).all()
    assert (regrets.max(axis=1) > 1.2).any()  # so [0, 1] would be wrong
    found = estimate_of(draws, problem.payoff)
    interval = delta_interval(found, 0.01, printed=False)
    radius = (most - least) * np.sqrt(np.log(2 / 0.01) / (2 * 4000))
    np.testing.assert_allclose(interval.low, np.maximum(found.delta - radius, least))
    np.testing.assert_allclose(interval.high, np.minimum(found.delta + radius, most))


def test_the_ratio_of_thompson_sampling_stays_below_k_over_2():
    """Costs cancel under probability matching (docs/bounds.md): Δ(π)² ≤ K/2 · g(π) for π = p*."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        costs = {text: float(rng.random() * 2) for text in COSTS}
        problem = made(costs=costs, minimise=bool(seed % 2))
        belief = Belief(problem, float(rng.choice([0.1, 1.0, 3.0])))
        found = estimate_of(belief.draw(problem.context_codes({"C": 1}), 2000, rng), problem.payoff)
        assert (found.best @ found.delta) ** 2 <= len(problem.arms) / 2 * (found.best @ found.gain)


def test_bounds_know_of_costs():
    options = {"horizon": 10, "samples": 500, "policy_samples": 200}
    free, dear = (bounds(made(costs=c), **options) for c in ({"X": 1e-9, "W": 1e-9}, COSTS))
    assert dear.arms == free.arms and dear.entropy < free.entropy
    never = bounds(made(costs={"X": 3, "W": 3}), **options)  # do() is the best for certain
    assert never.entropy == 0 and never.values()["theorem_1"] == 0


# -- policies --------------------------------------------------------------------------------------

OPTIONS = {"ids": {"samples": 100}, "z2-ts": {"resamples": 30}, "z2-kl-ucb": {"resamples": 30}}
LEARNING = [n for n in policy_names() if n not in ("random", "bayes-optimal")]
MORE = [
    ("ts", {"propensity_samples": 20}),
    ("ts", {"prior": 0.02}),
    ("ids", {"samples": 50, "interval": "optimistic"}),
    ("ids", {"samples": 50, "prior": 0.02}),
    ("bernoulli-ts", {"prior": (0.05, 0.05), "propensity_samples": 20}),
    ("z2-ts", {"propensity_samples": 20}),
]


def trial(name, options, costs, minimise=False):
    """How often each of two arms is played, one of which brings .9 and the other .5."""
    problem = Problem(COIN.graph, "Y", arms=COIN.arms, costs=costs, minimise=minimise)
    good = [0.1, 0.9] if not minimise else [0.9, 0.1]
    world = Environment(problem, {"X": [0.5, 0.5], "Y": [[0.5, 0.5], good]})
    found = run_trial(world, lambda p: make_policy(name, p, **options), 300, 3, 0)
    assert (found.regrets >= 0).all()
    return np.bincount(found.arms, minlength=2) / 300


@pytest.mark.parametrize(
    ("name", "options"), [*((name, OPTIONS.get(name, {})) for name in LEARNING), *MORE]
)
@pytest.mark.parametrize("minimise", [False, True])
def test_every_policy_learns_to_avoid_an_arm_that_is_not_worth_its_cost(name, options, minimise):
    assert trial(name, options, None, minimise)[1] > 0.6
    assert trial(name, options, {"do(X=1)": 0.8}, minimise)[0] > 0.6


@pytest.mark.parametrize(
    ("name", "options"), [*((name, OPTIONS.get(name, {})) for name in LEARNING), *MORE]
)
def test_a_cost_that_all_arms_have_changes_no_decision(name, options):
    """A half is taken off a float without rounding, so that not even ties change."""
    if options.get("interval") == "optimistic":
        pytest.skip("where Δ may be more than 1 its interval is another one")
    found = []
    for cost in (0.0, 0.5):
        problem = made(costs={"X": cost}, arms=["do(X=0)", "do(X=1)"])
        world, policy = make_environment(problem, 3), make_policy(name, problem, **options)
        rng, arms = np.random.default_rng(0), []
        for t in range(60):
            context = world.draw_context(rng)
            decision = policy.decide(context, t)
            policy.observe(decision.arm, world.play(decision.arm, context, rng))
            chances = [] if decision.probabilities is None else decision.probabilities.round(9)
            arms.append((str(decision.arm), *chances))
        found.append(arms)
    assert found[0] == found[1]


BY_THE_GRAPH = [name for name in LEARNING if policy_info(name).learns_from == "everything"]


@pytest.mark.parametrize(
    ("name", "graph"),
    [*((name, GRAPH) for name in LEARNING), *((name, DOUBTFUL) for name in BY_THE_GRAPH)],
)
@pytest.mark.parametrize("minimise", [False, True])
def test_a_compiled_trial_with_costs_is_a_stepped_one(name, graph, minimise):
    problem = made(minimise=minimise, graph=graph)
    world = make_environment(problem, 5)
    options = OPTIONS.get(name, {})
    compiled, stepped = (make_policy(name, problem, **options) for _ in range(2))
    if compiled.compiled_trial() is None:
        pytest.skip(f"{name} has no compiled loop")
    stepped.compiled_trial = lambda: None
    one, other = (run_trial(world, lambda _, p=p: p, 80, 1, 2) for p in (compiled, stepped))
    np.testing.assert_array_equal(one.arms, other.arms)
    np.testing.assert_array_equal(one.regrets, other.regrets)
    assert json.dumps(compiled.state()) == json.dumps(stepped.state())
    free = make_policy(name, made(minimise=minimise, costs={"X": 0}, graph=graph), **options)
    without = run_trial(make_environment(free.problem, 5), lambda _: free, 80, 1, 2)
    assert without.arms.tolist() != one.arms.tolist()  # so costs make a difference


@pytest.mark.parametrize("name", ["ids", "ts", "ucb", "bernoulli-ts", "kl-ucb", "z2-ts"])
def test_the_contract(name):
    check_policy(name, rounds=40, problems=[made(THREE)], **OPTIONS.get(name, {}))


@pytest.mark.parametrize("name", ["ucb", "kl-ucb", "bernoulli-ts"])
def test_figures_and_reasons_are_net(name):
    problem = Problem(COIN.graph, "Y", reward_values={"0": 10, "1": 30}, costs={"do(X=1)": 5})
    policy = make_policy(name, problem)
    for arm in problem.arms:
        for reward in (0, 1, 1, 1):
            policy.observe(arm, {"X": arm.get("X", 0), "Y": reward})
    figures = policy.decide(None, 0, allowed=["do(X=1)"]).figures
    means, index = figures["means"], figures["index"]
    assert means[1] - means[2] == pytest.approx(0.25)
    if name != "bernoulli-ts":
        assert index[1] - index[2] == pytest.approx(0.25)
        assert means[1:].tolist() == [0.75, 0.5]
        said = policy.decide(None, 0, allowed=["do(X=1)"]).reason
        assert "its mean reward was 20 in 4 plays" in said


def test_regrets_of_a_race_are_net_and_never_negative():
    for minimise in (False, True):
        problem = made(THREE, minimise)
        frame = simulate([("p", problem)], ["ts", "ids", "ucb", "bernoulli-ts", "kl-ucb"], 40, 3)
        steps = frame.frame().groupby(["policy", "trial"], observed=True)["regret"].diff().dropna()
        assert (steps >= 0).all() and (steps > 1).any()


def test_a_policy_with_other_costs_in_mind_is_refused():
    world, other = made(), made(costs={"X": 0.25})
    with pytest.raises(DowiseError, match="in its own problem and 0.* in the world's"):
        simulate([("p", world)], [On(other, "ts")], 5, 1)


# -- worlds ----------------------------------------------------------------------------------------


@kinds
def test_worlds_are_net(worth, minimise):
    problem = made(worth, minimise)
    free = made(worth, minimise, costs={})
    world, gross = make_environment(problem, 5), make_environment(free, 5)
    check_environment(world, plays=200)
    for c in "01":
        means = world.means({"C": c})
        np.testing.assert_allclose(
            means, gross.means({"C": c}) + (1 if minimise else -1) * paid(problem), rtol=1e-12
        )
        best = means.argmin() if minimise else means.argmax()
        assert world.best_arm({"C": c}) == problem.arms[best]
        regrets = [world.regret(arm, {"C": c}) for arm in problem.arms]
        np.testing.assert_allclose(regrets, np.abs(means - means[best]))
        codes = problem.context_codes({"C": c})
        assert world.means_in([codes]).tolist() == [means.tolist()]


def test_a_world_that_forgets_costs_is_found_out():
    class Forgetful(Environment):
        def means(self, context=None):
            return super().means(context) + self.problem.payoff.costs

    problem = made()
    with pytest.raises(DowiseError, match=r"the mean of do\(.* must be between .* net of cost"):
        check_environment(Forgetful(problem, make_environment(problem, 0).cpts), plays=2000)


def test_gymnasium_rewards_are_net():
    pytest.importorskip("gymnasium")
    for minimise in (False, True):
        problem = made(THREE, minimise)
        env = CausalBanditEnv(make_environment(problem, 1), horizon=40)
        env.reset(seed=0)
        for t in range(40):
            action = t % len(problem.arms)
            _, reward, _, _, info = env.step(action)
            seen, cost = problem.reward_values[info["outcome"]["Y"]], paid(problem)[action]
            assert reward == pytest.approx(-(seen + cost) if minimise else seen - cost)
            assert isinstance(reward, float)


# -- live experiments ------------------------------------------------------------------------------


def logged(problem, number, arm, reward, chances):
    outcome = {"Y": reward, **problem.intervention(arm)}
    record = problem.record(arm, outcome, number)
    return LoggedDecision(number, {}, np.array(chances), np.full(len(chances), True), record)


@pytest.mark.parametrize("minimise", [False, True])
def test_an_evaluation_takes_known_costs_off_estimates_and_intervals(minimise):
    """What was seen is gross; costs are known, so that intervals are as wide as without."""
    worth = {"0": 10.0, "1": 30.0}
    found = []
    for costs in (None, {"do(X=1)": 4}):
        problem = Problem(
            COIN.graph, "Y", arms=COIN.arms, reward_values=worth, costs=costs, minimise=minimise
        )
        steps = []
        for i in range(1, 41):
            row = logged(problem, i, f"do(X={i % 2})", int(i % 3 == 0), (0.75, 0.25))
            steps += [Decide(row), Learn(row.record)]
        found.append(evaluate(problem, steps, "do(X=1)"))
    free, dear = found
    sign = 1 if minimise else -1
    for name, cost in (("dr", 4), ("ips", 4), ("logged", 1), ("difference", 3)):
        one, other = getattr(free, name), getattr(dear, name)
        assert other.value == pytest.approx(one.value + sign * cost)
        np.testing.assert_allclose(other.interval, np.array(one.interval) + sign * cost)
        np.testing.assert_allclose(other.normal, np.array(one.normal) + sign * cost)
    assert dear.self_normalised == pytest.approx(free.self_normalised + sign * 4)
    assert dear.earned == pytest.approx(free.earned + sign * 2)  # every other one was do(X=1)
    assert "a mean Y, net of cost, of" in str(dear) and "net of" not in str(free)


def test_a_live_experiment_keeps_costs_and_shows_net_means(tmp_path):
    costs = {"X": 0.1, "do(X=1)": 0.4}
    problem = Problem(COIN.graph, "Y", costs=costs)
    store = f"sqlite:///{tmp_path}/ward.db"
    experiment = Experiment.create(store, "ward", problem, policy="ts", seed=1)
    for reward in (1, 0, 1, 1):
        decision = experiment.ask(allowed=["do(X=1)"])
        experiment.tell(decision.id, {"Y": reward})
    again = Experiment.open(store)
    assert again.problem == problem and dict(again.problem.costs) == costs
    for one in (experiment, again):
        status = one.status()
        table = {row["arm"]: row for row in status.rows()}
        assert table["do(X=1)"]["mean"] == pytest.approx(4 / 6 - 0.4)
        assert table["do(X=0)"]["mean"] == pytest.approx(1 / 2 - 0.1)
        assert table["do(X=1)"]["low"] < 4 / 6 - 0.4 < table["do(X=1)"]["high"] < 0.6
        assert "(net of cost)" in str(status)
    rows = again.explain(1).rows()
    assert rows[2]["mean"] == pytest.approx(0.5 - 0.4)
    again.export(tmp_path / "ward.csv")  # what was told is what was seen
    rows = [line.split(",")[-1] for line in (tmp_path / "ward.csv").read_text().splitlines()]
    assert rows == ["Y", "1", "0", "1", "1"]
    assert again.audit().ok


def test_costs_can_be_revised():
    """What was told before counts as it was seen, less what arms cost from now on."""
    experiment = coin_experiment({"0": [1, 0], "1": [1, 1]}, policy="ids")
    before = experiment.status().contexts[0].mean
    dear = Problem(COIN.graph, "Y", arms=COIN.arms, costs={"do(X=1)": 0.5})
    experiment.revise(problem=dear, reason="the drug has a price now")
    after = experiment.status().contexts[0]
    np.testing.assert_allclose(after.mean, before - [0, 0.5])
    assert str(after.arms[after.leader]) == "do(X=0)" and experiment.audit().ok
    assert experiment.explain(1).rows()[1]["mean"] == 0.5  # as it was then


def test_figures_say_that_means_are_net():
    experiment = create_experiment(Problem(COIN.graph, "Y", costs={"X": 0.1}))
    experiment.ask()
    assert explanation_chart(experiment.explain(1)).axis_label == "▸ chosen; mean Y, net of cost"


# -- the command line ------------------------------------------------------------------------------


def test_dowise_arms_shows_costs(tmp_path):
    made(THREE).save(tmp_path / "p.toml")
    shown = CliRunner().invoke(main, ["arms", str(tmp_path / "p.toml")]).output
    assert "costs" in shown and "W 10.25, X 5.125, do(X=1) 20.5" in shown
    assert "do(W=0, X=0)" in shown and "15.375" in shown
    page = json.loads(CliRunner().invoke(main, ["arms", str(tmp_path / "p.toml"), "--json"]).output)
    assert page["costs"] == {"W": 10.25, "X": 5.125, "do(X=1)": 20.5}
    assert page["arm_costs"] == paid(made(THREE)).tolist() and page["kind"] == "minimal"
    plain = CliRunner().invoke(main, ["arms", "task2"]).output
    assert "cost" not in plain


def test_dowise_new_shows_costs(tmp_path):
    made(THREE).save(tmp_path / "p.toml")
    store = str(tmp_path / "ward.db")
    shown = CliRunner().invoke(main, ["new", store, str(tmp_path / "p.toml")]).output
    assert "W 10.25, X 5.125, do(X=1) 20.5" in shown
