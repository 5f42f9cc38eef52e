"""The graph-free hypothesis: its weight, the mixture, and pending plays of `commit-kg`."""

import json
from math import exp, log

import numpy as np
import pytest
from support.errors import raises_code
from support.policies import CERTAIN, DOUBTFUL, THREE_VALUES, learn_all, random_records

from dowise import CausalGraph, Problem, load_problem, make_environment, make_policy, simulate
from dowise.belief import Belief
from dowise.policies.commit_kg_kernels import OwnRewards, RewardScale, _own_lane, _own_value
from dowise.policies.graph_free import MIN_COMPILED, MixtureBelief, prediction_sentence
from dowise.problem.record import past_record

COSTS = Problem(CausalGraph.parse("Z -> X -> Y; Z -> Y"), "Y", costs={"X": 0.2}, minimise=True)
PROBLEMS = {
    "contexts, three values": THREE_VALUES,
    "hidden cause": CERTAIN,
    "doubtful edges": DOUBTFUL,
    "costs": COSTS,
}
ARMS_ALONE = {
    values: Problem(
        CausalGraph.parse("A -> Y; C -> Y"),
        "Y",
        context="C",
        domains={"A": range(5), "C": range(3), "Y": list(values)},
        reward_values=dict(zip(values, worth, strict=True)),
    )
    for values, worth in (("01", (0, 1)), ("012", (0, 0.3, 1)))
}
"""The graph says no more than that every arm has rewards of its own in each context."""


@pytest.fixture(params=PROBLEMS)
def problem(request):
    return PROBLEMS[request.param]


def mixture_of(problem, records=(), prior="pooled", share=0.25):
    mixture = MixtureBelief(Belief(problem, prior), share)
    for record in records:
        mixture.learn(record)
    return mixture


def slow_log_ratio(problem, records, prior="pooled"):
    """Σ log P_arm(y | past) / P_graph(y | past), by the definition."""
    belief, seen, total = Belief(problem, prior), {}, 0.0
    values = len(problem.payoff.values)
    for record in records:
        if record.arm in problem.arms and record.reward >= 0 and -1 not in record.context:
            context = {
                name: problem.domains[name][code]
                for name, code in zip(problem.context, record.context, strict=True)
            }
            arm = problem.arm_index(record.arm)
            by_graph = belief.mean_distributions(context)[arm, record.reward]
            counts = seen.setdefault((arm, record.context), [0] * values)
            by_arm = (1 + counts[record.reward]) / (values + sum(counts))
            total += log(by_arm / by_graph)
            counts[record.reward] += 1
        belief.learn(record)
    return total


def some_records(problem, count=60):
    """Records of arms; some lack the reward or another variable, some are of no arm."""
    records = random_records(problem, count)
    for number in range(3, count, 7):
        labels = dict(records[number].labels)
        del labels[problem.reward if number % 2 else next(iter({*labels} - {problem.reward}))]
        settings = {v: x for v, x in records[number].arm.items() if v in labels}
        records[number] = past_record(problem, settings, labels, number)
    return records


# -- weight -----------------------------------------------------------------------------------


def test_the_weight_follows_from_predictions_before_learning(problem):
    records = some_records(problem)
    mixture = mixture_of(problem, records)
    expected = slow_log_ratio(problem, records)
    assert mixture.log_ratio == pytest.approx(expected, abs=1e-8)
    assert mixture.weight == pytest.approx(1 / (1 + 3 * exp(-expected)), abs=1e-9)
    assert abs(expected) > 0.005


@pytest.mark.parametrize("prior", ["flat", "pooled"])
def test_many_records_score_as_one_by_one(problem, prior):
    records = some_records(problem)
    one_by_one, together = mixture_of(problem, records, prior), mixture_of(problem, prior=prior)
    frame = {
        name: [record.labels.get(name) for record in records] for name in problem.graph.variables
    }
    frame["arm"] = [str(record.arm) for record in records]
    assert len(records) > MIN_COMPILED
    together.learn_many(problem.records(frame))
    assert together.gain == one_by_one.gain != 0
    assert json.dumps(together.as_dict()) == json.dumps(one_by_one.as_dict())


def test_a_retracted_record_leaves_no_trace(problem):
    """Of equal records the last one is forgotten."""
    records = some_records(problem)
    one = max(
        i
        for i, record in enumerate(records)
        if record.labels == records[20].labels and record.arm == records[20].arm
    )
    direct = mixture_of(problem, records[:one] + records[one + 1 :])
    indirect = mixture_of(problem, records)
    indirect.retract(records[20])
    assert indirect.gain == direct.gain
    for record in reversed([*records[20:one], *records[one + 1 :]]):
        indirect.retract(record)
    assert json.dumps(indirect.as_dict()) == json.dumps(mixture_of(problem, records[:20]).as_dict())


def test_a_refused_record_leaves_no_trace(problem):
    records = some_records(problem)
    mixture = mixture_of(problem, records[:10])
    before = json.dumps(mixture.as_dict())
    other = Problem("X -> Y", "Y").record("do(X=1)", {"Y": 1})
    for refused, code in ((other, "wrong-problem"), ("a text", "invalid-type")):
        for change in (mixture.learn, mixture.retract):
            with raises_code(code):
                change(refused)
    assert len(mixture.arrivals) == 10 and json.dumps(mixture.as_dict()) == before


def test_a_copy_learns_independently(problem):
    records = some_records(problem)
    mixture = mixture_of(problem, records[:30])
    before, copied = json.dumps(mixture.as_dict()), mixture.copy()
    for record in records[30:]:
        copied.learn(record)
    assert json.dumps(mixture.as_dict()) == before
    assert copied.gain == mixture_of(problem, records).gain != mixture.gain


def test_the_weight_never_leaves_the_unit_interval():
    problem = load_problem("task1")
    records = [problem.record("do(X=1)", {"Z": 1, "Y": 1}, i) for i in range(400)]
    against = [problem.record("do()", {"X": 1, "Z": 1, "Y": 0}, i) for i in range(400, 800)]
    for sequence in (records + against, against + records):
        weight = mixture_of(problem, sequence, prior="flat").weight
        assert 0 <= weight <= 1


@pytest.mark.parametrize("share", [-0.1, 1, 1.5, "much", None, True])
def test_invalid_shares_are_refused(share):
    with raises_code("invalid-number", "graph_free_prior", repr(share)):
        make_policy("ids", THREE_VALUES, graph_free_prior=share)


def test_other_gains_need_the_graph():
    with raises_code("invalid-option", "graph_free_prior"):
        make_policy("ids", THREE_VALUES, gain="rows", graph_free_prior=0.1)


@pytest.mark.parametrize(
    ("log_ratio", "sentence"),
    [
        (-log(40), "Y is predicted better with the graph than without it, 40 to 1"),
        (log(3.14159), "Y is predicted better without the graph than with it, 3.1 to 1"),
        (0.1, "Y is predicted equally well with and without the graph"),
        (-1e3, "Y is predicted better with the graph than without it, more than 1,000,000 to 1"),
    ],
)
def test_the_sentence_states_the_ratio_without_the_prior(log_ratio, sentence):
    assert prediction_sentence(THREE_VALUES, log_ratio) == sentence
    rewards = {"seen": 30, "unlearned": 20, "of_arms": 29}
    more = ", but the graph could not learn from 20 of 30 rewards, because other values are missing"
    assert prediction_sentence(THREE_VALUES, log_ratio, rewards) == sentence + more
    assert prediction_sentence(THREE_VALUES, log_ratio, rewards | {"unlearned": 0}) == sentence


# -- mixture ----------------------------------------------------------------------------------


def test_means_and_draws_are_those_of_the_mixture(problem):
    """Means of 20,000 draws are within 5 standard errors: false alarms below 1e-4 in all."""
    mixture = mixture_of(problem, some_records(problem), share=0.6)
    context = problem.context_labels((1,) * len(problem.context)) if problem.context else None
    codes, weight = problem.context_codes(context), mixture.weight
    parameters = 1 + mixture.rewards.in_context(codes).counts
    own = parameters / parameters.sum(axis=1, keepdims=True)
    by_graph = mixture.graph.mean_distributions(context)
    means = mixture.mean_distributions(context)
    np.testing.assert_allclose(means, by_graph + weight * (own - by_graph), atol=1e-12)
    draws = mixture.draw(codes, 20_000, 1).distributions()
    error = draws.std(axis=2) / 20_000**0.5
    assert (np.abs(draws.mean(axis=2) - means) <= 5 * error + 1e-6).all()
    assert 0.02 < weight < 0.98


def test_blocks_of_draws_are_the_draws():
    mixture = mixture_of(THREE_VALUES, random_records(THREE_VALUES, 60), share=0.6)
    whole = mixture.draw((1,), 700, 5).after_first
    blocks = [draws.after_first for draws in mixture.draw_in_blocks((1,), 700, 5)]
    np.testing.assert_array_equal(np.concatenate(blocks, axis=2), whole)
    assert len(blocks) > 1


@pytest.mark.parametrize("name", ["ids", "ts", "commit-kg"])
def test_the_belief_of_a_policy_stays_that_of_the_graph(name):
    records = random_records(THREE_VALUES, 30)
    mixed = learn_all(make_policy(name, THREE_VALUES, graph_free_prior=0.3), records)
    alone = learn_all(make_policy(name, THREE_VALUES), records)
    assert mixed.belief.as_dict() == alone.belief.as_dict()
    assert alone.mixture is None and mixed.mixture.graph is mixed.belief


@pytest.mark.parametrize("name", ["ids", "ts"])
def test_draws_ignore_the_graph_where_it_predicts_badly(name):
    """X1 and X2 swapped: after 200 records the chosen arm is mostly the one with good rewards."""
    problem = Problem(CausalGraph.parse("X1 -> X2 -> Y"), "Y", arms="all")
    policy = make_policy(name, problem, graph_free_prior=0.25)
    rng = np.random.default_rng(0)
    for number in range(200):
        arm = problem.arms[number % len(problem.arms)]
        x1 = int(arm.get("X1", rng.integers(2)))
        outcome = {"X1": x1, "X2": int(arm.get("X2", rng.integers(2)))}
        outcome["Y"] = int(rng.random() < (0.9 if x1 else 0.1))
        policy.learn(problem.record(arm, outcome, number))
    assert policy.mixture.weight > 0.99
    chosen = [policy.decide(rng=seed).arm for seed in range(20)]
    assert sum(arm.get("X1") == "1" for arm in chosen) >= 18


# -- commit-kg --------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("values", ARMS_ALONE)
def test_both_hypotheses_agree_where_the_graph_says_nothing(values, share):
    problem = ARMS_ALONE[values]
    env = make_environment(problem, seed=3)
    result = simulate(
        [env],
        ["commit-kg", ("mixed", lambda p: make_policy("commit-kg", p, graph_free_prior=share))],
        horizon=300,
        trials=3,
        seed=1,
    ).frame()
    alone, mixed = (result[result.policy == name].arm.to_numpy() for name in ("commit-kg", "mixed"))
    np.testing.assert_array_equal(alone, mixed)
    assert len(np.unique(alone)) > 2


def test_scores_are_exactly_even_where_the_graph_says_nothing():
    problem = ARMS_ALONE["012"]
    mixture = mixture_of(problem, random_records(problem, 60), prior="flat")
    assert abs(mixture.log_ratio) < 1e-9


def test_the_value_of_own_rewards_is_that_of_learning_one_row():
    """Against the normal approximation by the definition, with quadrature."""
    from scipy.integrate import quad
    from scipy.special import polygamma
    from scipy.stats import norm

    counts = np.array([[3.0, 9.0], [2.0, 3.0], [5.0, 1.0]])
    scale = RewardScale(np.array([0.0, 1.0]), np.zeros(3))
    lane = _own_lane(OwnRewards(0.4, counts), scale)
    means = counts[:, 1] / counts.sum(axis=1)
    score, slope = np.log(means / (1 - means)), means * (1 - means)
    variance = polygamma(1, counts).sum(axis=1)
    assert lane.incumbent == 0
    for arm, n in ((1, 1.0), (1, 8.0), (2, 4.0), (0, 4.0)):
        best = 0.0
        for rival in {arm} - {0} or {1, 2}:
            s = (variance[arm] * n / (counts[arm].sum() + n)) ** 0.5
            gap = score[0] - score[rival]
            both = variance[rival] + variance[0]
            mixed = (variance[rival] * slope[0] + variance[0] * slope[rival]) / both
            gain, _ = quad(lambda x, gap=gap, s=s: (x - gap) * norm.pdf(x, 0, s), gap, gap + 12 * s)
            best = max(best, min(mixed * gain, means[rival], 1 - means[0]))
        assert _own_value(lane, arm, n) == pytest.approx(best, rel=1e-6)


def test_pending_plays_count_at_their_mean():
    """One play of do(X=1) adds its mean entries to the rows that it visits, as often as it does."""
    problem = Problem(CausalGraph.parse("Z -> X -> Y; Z -> Y"), "Y", non_manipulable=["Z"])
    policy = learn_all(make_policy("commit-kg", problem), random_records(problem, 20))
    posterior, factors = policy.belief.posterior, policy.belief.posterior.model.factors
    before = policy.belief.mean_cpts()
    policy.add_pending("do(X=1)", None, 2)
    added = policy._state_with_pending().prior - posterior.prior
    table = {name: factors.view(added, name) for name in factors.names}
    np.testing.assert_allclose(table["Z"], 2 * before["Z"])
    np.testing.assert_allclose(table["X"], 0)
    for z in range(2):
        np.testing.assert_allclose(table["Y"][1, z], 2 * before["Z"][z] * before["Y"][1, z])
        np.testing.assert_allclose(table["Y"][0, z], 0)
    policy.add_pending("do(X=1)", None, -2)
    assert policy._state_with_pending().prior is posterior.prior


def test_pending_plays_count_in_every_set_of_edges():
    """Given its set of edges, a pending play adds one record to the rows that it visits."""
    policy = learn_all(make_policy("commit-kg", DOUBTFUL), random_records(DOUBTFUL, 20))
    posterior = policy.belief.posterior
    policy.add_pending("do(X=1)", {"C": "0"}, 3)
    added = policy._state_with_pending().prior - posterior.prior
    assert (added >= 0).all() and added.max() <= 3 + 1e-9
    rows = np.add.reduceat(added, posterior.layout.row_starts)
    assert rows.max() == pytest.approx(3)
    means = posterior.layout.normalised(posterior.parameters)
    np.testing.assert_allclose(posterior.layout.normalised(posterior.parameters + added), means)


def test_decisions_of_a_batch_differ_while_outcomes_are_pending():
    problem = load_problem("task2")
    contexts = [{"C": "0"}] * 6
    counting = make_policy("commit-kg", problem, prior="pooled", graph_free_prior=0.05)
    ignoring = make_policy("commit-kg", problem, count_pending=False)
    assert len({decision.arm for decision in counting.decide_many(contexts, rng=1)}) > 1
    assert not counting.pending
    ignoring.add_pending("do(X2=1)", {"C": "0"}, 5)
    alone = make_policy("commit-kg", problem, count_pending=False)
    assert ignoring.decide({"C": "0"}, 0).as_dict() == alone.decide({"C": "0"}, 0).as_dict()
