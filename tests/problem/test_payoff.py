"""Values of rewards and costs of arms: the scale, costs from users, and net best arms."""

import pickle
import warnings
from itertools import product

import numpy as np
import pytest
from support.doubtful_problems import with_doubtful
from support.errors import raises_code
from support.random_problems import random_problem

from dowise import Environment, Intervention, Problem, load_problem, make_environment
from dowise.errors import DowiseWarning
from dowise.problem import Payoff
from dowise.problem.arms import explain_excluded_arms
from dowise.problem.payoff import cheaper_equivalent
from dowise.problem.problem_file import parse_problem, problem_text

CHAIN = "Z -> X -> Y"


def costs_by_arm(problem):
    return dict(zip(map(str, problem.arms), problem.payoff.costs.tolist(), strict=True))


# -- values -------------------------------------------------------------------------------------


def test_values_are_scaled_to_their_span():
    payoff = Payoff.from_user("Y", ("bad", "fair", "good"), {"bad": -10, "fair": 0, "good": 30})
    assert payoff.values.tolist() == [-10, 0, 30] and payoff.scaled.tolist() == [0, 0.25, 1]
    assert payoff.worst == -10 and payoff.span == 40 and payoff.unscale(0.25) == 0
    assert not payoff.is_plain and load_problem("task1").payoff.is_plain
    with pytest.raises(ValueError, match="read-only"):
        payoff.scaled[0] = 1


def test_minimised_values_are_reflected():
    payoff = Payoff.from_user("Y", ("a", "b", "c"), {"a": 3, "b": -1, "c": 1}, minimise=True)
    assert payoff.values.tolist() == [3, -1, 1]
    assert payoff.scaled.tolist() == [0, 1, 0.5] and (payoff.worst, payoff.span) == (3, 4)
    assert [payoff.unscale(x) for x in payoff.scaled] == [3, -1, 1]
    assert Payoff.from_user("Y", ("0", "1"), None, minimise=True).is_plain
    means = np.array([[2.0, 1.0, 1.0], [0.0, 0.5, -1.0]])
    assert payoff.best_of(means[0]) == 1  # ties go to the first
    assert payoff.regrets(means).tolist() == [[1, 0, 0], [1, 1.5, 0]]
    assert str(payoff.oriented(0.0)) == "0.0"  # not -0.0


@pytest.mark.parametrize("minimise", [False, True])
def test_costs_are_subtracted_as_shares_of_the_span(minimise):
    worth = {"a": -10.0, "b": 30.0}
    problem = Problem(
        "X -> Y", "Y", reward_values=worth, costs={"X": 10}, arms="all", minimise=minimise
    )
    payoff = problem.payoff
    sign = 1 if minimise else -1
    assert payoff.scaled_costs.tolist() == [0, 0.25, 0.25]
    assert payoff.net(np.array([0.0, 30.0, 30.0])).tolist() == [0, 30 + 10 * sign, 30 + 10 * sign]
    net = payoff.net_scaled(np.array([0.25, 1.0, 0.0])).tolist()
    assert net == [0.25, 0.75, -0.25]
    expected = [20, 0, 40] if minimise else [0, 20, -20]
    assert [payoff.unscale(x) for x in net] == expected
    assert not payoff.costs.flags.writeable and not payoff.scaled_costs.flags.writeable


# -- costs from users ---------------------------------------------------------------------------


def test_an_arm_costs_the_sum_of_its_variables_or_its_own_cost():
    costs = {"X": 0.5, "Z": 0.25, "do( X = 1 )": 2}
    problem = Problem("X -> Y; Z -> Y", "Y", costs=costs)
    assert problem.arms_kind == "minimal" and problem.payoff.has_costs
    assert costs_by_arm(problem) == {
        "do()": 0,
        "do(X=0)": 0.5,
        "do(X=1)": 2,
        "do(Z=0)": 0.25,
        "do(Z=1)": 0.25,
        "do(X=0, Z=0)": 0.75,
        "do(X=0, Z=1)": 0.75,
        "do(X=1, Z=0)": 0.75,
        "do(X=1, Z=1)": 0.75,
    }
    assert dict(problem.costs) == {"X": 0.5, "Z": 0.25, "do(X=1)": 2.0}
    same = Problem("X -> Y; Z -> Y", "Y", costs={"X": 0.5, "Z": 0.25, Intervention({"X": 1}): 2})
    assert same == problem and "costs={X: 0.5, Z: 0.25, do(X=1): 2}" in repr(problem)


def test_costs_of_0_are_no_costs_unless_they_replace_others():
    plain = Problem(CHAIN, "Y")
    assert plain.payoff.costs.tolist() == [0, 0] and not plain.payoff.has_costs
    for costs in (None, {}, {"X": 0}, {"X": 0.0, "do(X=1)": -0.0}):
        problem = Problem(CHAIN, "Y", costs=costs)
        assert problem == plain and not problem.costs and problem.arms_kind == "pomis"
        assert problem_text(problem) == problem_text(plain)
    problem = Problem("X -> Y", "Y", costs={"X": 1, "do(X=1)": 0})
    assert costs_by_arm(problem) == {"do()": 0, "do(X=0)": 1, "do(X=1)": 0}
    assert parse_problem(problem_text(problem)) == problem


def test_costs_survive_files_and_copies(tmp_path):
    costs = {"Z.1": 0.1, "X": 1, "do(X=1)": 0.7}
    problem = Problem("Z.1 -> X -> Y", "Y", costs=costs, arms="minimal")
    assert problem != Problem("Z.1 -> X -> Y", "Y", arms="minimal")
    assert problem != Problem("Z.1 -> X -> Y", "Y", arms="minimal", costs={"Z.1": 0.1, "X": 1})
    problem.save(tmp_path / "p.toml")
    text = 'graph = "Z.1 -> X -> Y"\nreward = "Y"\narms = "minimal"\n[costs]\nX = 1\nZ.1 = 0.1\n'
    for copied in (
        load_problem(tmp_path / "p.toml"),
        pickle.loads(pickle.dumps(problem)),
        parse_problem(text + '"do(X=1)" = 0.7'),
    ):
        assert copied == problem and dict(copied.costs) == dict(problem.costs)
        assert copied.payoff.costs.tolist() == problem.payoff.costs.tolist()
    wide = with_doubtful(problem, ["Z.1 -> Y"])
    assert wide.payoff.costs.tolist() == problem.payoff.costs.tolist()


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), 10**400, True, "much", None, -0.1])
def test_costs_must_be_finite_numbers_of_at_least_0(cost):
    with raises_code("invalid-number", "the cost of X"):
        Problem(CHAIN, "Y", costs={"X": cost})


def test_a_forbidden_arm_has_no_cost():
    with raises_code("unknown-arm", "costs: do(X=1) is forbidden"):
        Problem(CHAIN, "Y", costs={"do(X=1)": 1}, forbidden="do(X=1)")


# -- the best arm net of costs ------------------------------------------------------------------


def test_pomis_arms_with_costs_get_a_warning():
    """Setting X is best, but setting Z is as good here and costs nothing."""
    problem = Problem(CHAIN, "Y", costs={"X": 0.2})
    assert [*costs_by_arm(problem)] == ["do()", "do(X=0)", "do(X=1)", "do(Z=0)", "do(Z=1)"]
    same = [[0.9, 0.1], [0.1, 0.9]]
    cpts = {"Z": [0.5, 0.5], "X": same, "Y": same}
    assert str(Environment(problem, cpts).best_arm()) == "do(Z=1)"
    with pytest.warns(DowiseWarning, match="^with costs the best arm need not be") as caught:
        few = Problem(CHAIN, "Y", costs={"X": 0.2}, arms="pomis")
    assert caught[0].filename == __file__
    assert costs_by_arm(few) == {"do(X=0)": 0.2, "do(X=1)": 0.2}
    assert "could be optimal if nothing had a cost" in explain_excluded_arms(few)
    with pytest.warns(DowiseWarning, match="^with forbidden assignments and costs the best"):
        Problem(CHAIN, "Y", costs={"X": 0.2}, forbidden="do(X=0)", arms="pomis")


def test_warnings_are_not_repeated_for_copies(tmp_path):
    with pytest.warns(DowiseWarning):
        problem = Problem(CHAIN, "Y", forbidden="do(X=1)", arms="pomis")
    assert pickle.loads(pickle.dumps(problem)) == problem == parse_problem(problem_text(problem))
    problem.save(tmp_path / "p.toml")
    with pytest.warns(DowiseWarning):
        assert load_problem(tmp_path / "p.toml").arms_kind == "pomis"


def test_a_cheaper_equivalent_of_an_arm_gets_a_warning():
    with pytest.warns(DowiseWarning, match=r"do\(X=1\) costs 0.3, but do\(X=1, Z=0\), which has"):
        problem = Problem(CHAIN, "Y", costs={"X": 0.1, "Z": 0.1, "do(X=1)": 0.3})
    assert problem.arms_kind == "minimal"
    every = Problem(CHAIN, "Y", costs=problem.costs, arms="all")
    assert costs_by_arm(every)["do(X=1, Z=0)"] == 0.2
    for costs, options in (
        ({"X": 0.1, "Z": 0.1, "do(X=1)": 0.3}, {"arms": "minimal"}),  # an explicit choice
        ({"X": 0.1, "Z": 0.2, "do(X=1)": 0.3}, {}),
        ({"do(Z=1)": 0.3}, {"non_manipulable": "X"}),
        ({"do(X=1)": 0.3}, {"forbidden": ["do(Z=0)", "do(Z=1)"]}),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Problem(CHAIN, "Y", costs=costs, **options)


def compare_with_all_interventions(seed, minimise, by_arm):
    """Return True if the best arm is the best permitted intervention, net, in random worlds."""
    rng = np.random.default_rng(seed)
    graph, roles, forbidden = random_problem(rng)
    forbidden = forbidden if rng.random() < 0.5 else []
    worth = {label: float(rng.normal()) for label in "abc"}
    roles |= {"reward_values": worth, "minimise": minimise}
    every = Problem(graph, **roles, forbidden=forbidden, arms="all")
    span = every.payoff.span
    costs = {v: float(rng.choice([0, 0.1, 0.3]) * span) for v in every.manipulable}
    small = Problem(graph, **roles, forbidden=forbidden, arms="minimal")
    arm_costs = {
        str(arm): float(rng.random() * 0.5 * span)
        for arm in small.arms
        if rng.random() < 0.2 and by_arm
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DowiseWarning)
        problem = Problem(graph, **roles, forbidden=forbidden, costs=costs | arm_costs)
    paid = np.array(
        [arm_costs.get(str(arm), sum(costs[name] for name in arm)) for arm in every.arms]
    )
    is_best = True
    for _ in range(2):
        world = make_environment(every, rng, strong=True)
        own_world = Environment(problem, world.cpts, world.graph)
        for labels in product(*(every.domains[name] for name in every.context)):
            context = dict(zip(every.context, labels, strict=True))
            sign = -1 if minimise else 1  # larger is better below
            net = sign * world.means(context) - paid
            means = sign * own_world.means(context)
            best_arm = own_world.best_arm(context)
            assert own_world.regret(best_arm, context) == 0
            assert means[problem.arm_index(best_arm)] == means.max()
            is_best &= abs(net.max() - means.max()) < 1e-9 * span
    return is_best, problem, len(every.arms)


@pytest.mark.parametrize("minimise", [False, True])
def test_the_best_arm_is_the_best_intervention_net_of_cost(minimise):
    results = [compare_with_all_interventions(seed, minimise, by_arm=False) for seed in range(40)]
    assert all(is_best for is_best, _, _ in results)
    assert sum(len(problem.arms) < every for _, problem, every in results) > 15


def test_the_best_arm_may_be_missed_only_after_a_warning():
    missed = 0
    for seed in range(60):
        is_best, problem, _ = compare_with_all_interventions(seed, bool(seed % 2), by_arm=True)
        assert is_best or cheaper_equivalent(problem) is not None
        missed += not is_best
    assert missed
