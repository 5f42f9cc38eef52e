"""Costs in a problem: what is read, what is refused, and that the best of all is an arm."""

import copy
import pickle
import warnings
from itertools import product

import numpy as np
import pytest
from support.doubtful_problems import with_doubtful
from support.random_problems import random_problem

from dowise import DowiseError, Environment, Intervention, Problem, load_problem, make_environment
from dowise.errors import DowiseWarning
from dowise.problem.arms import why_others_are_out
from dowise.problem.payoff import cheaper_equivalent
from dowise.problem.problem_file import parse_problem, problem_text

CHAIN = "Z -> X -> Y"


def priced(problem):
    return dict(zip(map(str, problem.arms), problem.payoff.costs.tolist(), strict=True))


def test_the_cost_of_an_arm_is_the_sum_of_its_variables_or_its_own():
    costs = {"X": 0.5, "Z": 0.25, "do( X = 1 )": 2}
    problem = Problem("X -> Y; Z -> Y", "Y", costs=costs)
    assert problem.arms_kind == "minimal" and problem.payoff.has_costs
    assert priced(problem) == {
        "do()": 0, "do(X=0)": 0.5, "do(X=1)": 2, "do(Z=0)": 0.25, "do(Z=1)": 0.25,
        "do(X=0, Z=0)": 0.75, "do(X=0, Z=1)": 0.75, "do(X=1, Z=0)": 0.75, "do(X=1, Z=1)": 0.75,
    }  # fmt: skip
    assert dict(problem.costs) == {"X": 0.5, "Z": 0.25, "do(X=1)": 2.0}
    one = Problem("X -> Y; Z -> Y", "Y", costs={"X": 0.5, "Z": 0.25, Intervention({"X": 1}): 2})
    assert one == problem and "costs={X: 0.5, Z: 0.25, do(X=1): 2}" in repr(problem)


def test_on_the_scale_a_cost_is_a_share_of_the_span():
    worth = {"a": -10.0, "b": 30.0}
    problem = Problem("X -> Y", "Y", reward_values=worth, costs={"X": 10}, arms="all")
    payoff = problem.payoff
    assert payoff.scaled_costs.tolist() == [0, 0.25, 0.25]
    assert payoff.net(np.array([0.0, 30.0, 30.0])).tolist() == [0, 20, 20]
    assert payoff.net_scaled(np.array([0.25, 1.0, 0.0])).tolist() == [0.25, 0.75, -0.25]
    assert [payoff.unscale(x) for x in (0.25, 0.75, -0.25)] == [0, 20, -20]
    down = Problem("X -> Y", "Y", reward_values=worth, costs={"X": 10}, arms="all", minimise=True)
    assert down.payoff.net(np.array([0.0, 30.0, 30.0])).tolist() == [0, 40, 40]
    assert down.payoff.net_scaled(np.array([0.75, 0.0, 1.0])).tolist() == [0.75, -0.25, 0.75]
    assert [down.payoff.unscale(x) for x in (0.75, -0.25, 0.75)] == [0, 40, 0]
    assert not payoff.costs.flags.writeable and not payoff.scaled_costs.flags.writeable


def test_costs_that_are_all_0_are_none():
    plain = Problem(CHAIN, "Y")
    assert plain.payoff.costs.tolist() == [0, 0] and not plain.payoff.has_costs
    for costs in (None, {}, {"X": 0}, {"X": 0.0, "do(X=1)": -0.0}):
        problem = Problem(CHAIN, "Y", costs=costs)
        assert problem == plain and not problem.costs and problem.arms_kind == "pomis"
        assert problem_text(problem) == problem_text(plain)


def test_an_own_cost_of_0_makes_an_arm_free():
    problem = Problem("X -> Y", "Y", costs={"X": 1, "do(X=1)": 0})
    assert priced(problem) == {"do()": 0, "do(X=0)": 1, "do(X=1)": 0}
    assert parse_problem(problem_text(problem)) == problem


def test_a_problem_with_costs_is_another_one_and_comes_back(tmp_path):
    problem = Problem(
        "Z.1 -> X -> Y", "Y", costs={"Z.1": 0.1, "X": 1, "do(X=1)": 0.7}, arms="minimal"
    )
    assert problem != Problem("Z.1 -> X -> Y", "Y", arms="minimal")
    assert problem != Problem("Z.1 -> X -> Y", "Y", arms="minimal", costs={"Z.1": 0.1, "X": 1})
    problem.save(tmp_path / "p.toml")
    for again in (
        load_problem(tmp_path / "p.toml"), parse_problem(problem_text(problem)),
        pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem),
    ):  # fmt: skip
        assert again == problem and dict(again.costs) == dict(problem.costs)
        assert again.payoff.costs.tolist() == problem.payoff.costs.tolist()
    wide = with_doubtful(problem, ["Z.1 -> Y"])
    assert wide.payoff.costs.tolist() == problem.payoff.costs.tolist()
    text = 'graph = "Z.1 -> X -> Y"\nreward = "Y"\narms = "minimal"\n[costs]\nX = 1\nZ.1 = 0.1\n'
    assert parse_problem(text + '"do(X=1)" = 0.7') == problem


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ({"x": 1}, "unknown variable 'x' \\(did you mean 'X'\\?\\): what can be set is W, X"),
        ({"U": 1}, "costs: U is declared hidden"),
        ({"Y": 1}, "costs: Y can't be set: it is the reward"),
        ({"C": 1}, "costs: C can't be set: it is context"),
        ({"N": 1}, "costs: N can't be set: it is non-manipulable"),
        ({"do(Y=1)": 1}, "costs: Y can't be set: it is the reward"),
        ({"do(x=1)": 1}, "did you mean 'X'"),
        ({"do(X=7)": 1}, "costs: X has no value '7': its values are 0, 1"),
        ({"do(X": 1}, "costs: an intervention reads"),
        (
            {"do(W=1, X=1)": 1},
            "costs: do\\(W=1, X=1\\) is not one of the .* arms = 'all' has every",
        ),
        ({"X": -0.1}, "the cost of X is -0.1: costs are 0 or more"),
        ({"X": float("nan")}, "the cost of X must be a finite number, not 'nan'"),
        ({"X": float("inf")}, "must be a finite number"),
        ({"X": 10**400}, "must be a finite number"),
        ({"X": True}, "must be a finite number, not 'True'"),
        ({"X": "much"}, "must be a finite number, not 'much'"),
        ({"do(X=1)": None}, "the cost of do\\(X=1\\) must be a finite number, not 'None'"),
        ({"X": 2e6}, "do\\(X=0\\) costs 2e\\+06, more than 1e\\+06 times what the best value of Y"),
        ({"do(X=1)": 1, "do( X=1)": 1}, "costs has do\\(X=1\\) more than once"),
        ({3: 1}, "costs: 3 is not an intervention"),
        ([0.1], "must map variables or arms to costs"),
        (0.1, "must map variables or arms to costs"),
    ],
)
def test_what_is_no_cost(costs, said):
    graph = "C -> X; W -> X -> Y; N -> Y; U -> N; U -> Y"
    roles = {"context": "C", "non_manipulable": "N", "hidden": "U"}
    with pytest.raises(DowiseError, match=said):
        Problem(graph, "Y", **roles, costs=costs)


def test_a_forbidden_arm_has_no_cost():
    with pytest.raises(DowiseError, match=r"costs: do\(X=1\) is forbidden; only arms have costs"):
        Problem(CHAIN, "Y", costs={"do(X=1)": 1}, forbidden="do(X=1)")


def test_pomis_alone_are_not_enough_and_it_says_so():
    """Setting X is best, but setting Z is as good here and costs nothing."""
    problem = Problem(CHAIN, "Y", costs={"X": 0.2})
    assert [*priced(problem)] == ["do()", "do(X=0)", "do(X=1)", "do(Z=0)", "do(Z=1)"]
    same = [[0.9, 0.1], [0.1, 0.9]]
    cpts = {"Z": [0.5, 0.5], "X": same, "Y": same}
    assert str(Environment(problem, cpts).best_arm()) == "do(Z=1)"
    with pytest.warns(DowiseWarning, match="^with costs the best arm need not be") as said:
        few = Problem(CHAIN, "Y", costs={"X": 0.2}, arms="pomis")
    assert said[0].filename == __file__
    assert priced(few) == {"do(X=0)": 0.2, "do(X=1)": 0.2}
    assert "could be optimal if nothing had a cost" in why_others_are_out(few)
    with pytest.warns(DowiseWarning, match="^with forbidden assignments and costs the best"):
        Problem(CHAIN, "Y", costs={"X": 0.2}, forbidden="do(X=0)", arms="pomis")
    assert parse_problem(problem_text(few)) == few  # without a warning: it was said before


def test_where_setting_more_would_cost_less_it_says_so():
    with pytest.warns(DowiseWarning, match=r"do\(X=1\) costs 0.3, but do\(X=1, Z=0\), which has"):
        problem = Problem(CHAIN, "Y", costs={"X": 0.1, "Z": 0.1, "do(X=1)": 0.3})
    assert problem.arms_kind == "minimal"
    all_of_them = Problem(CHAIN, "Y", costs=problem.costs, arms="all")
    assert priced(all_of_them)["do(X=1, Z=0)"] == 0.2
    for costs, more in (
        ({"X": 0.1, "Z": 0.1, "do(X=1)": 0.3}, {"arms": "minimal"}),  # who says so means it
        ({"X": 0.1, "Z": 0.2, "do(X=1)": 0.3}, {}),
        ({"do(Z=1)": 0.3}, {"non_manipulable": "X"}),
        ({"do(X=1)": 0.3}, {"forbidden": ["do(Z=0)", "do(Z=1)"]}),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Problem(CHAIN, "Y", costs=costs, **more)


def brute_force(seed, worlds, minimise, by_arm):
    """Whether the best arm is the best of all permitted interventions, net, in random worlds."""
    rng = np.random.default_rng(seed)
    graph, roles, forbidden = random_problem(rng)
    forbidden = forbidden if rng.random() < 0.5 else []
    worth = {label: float(rng.normal()) for label in "abc"}
    roles |= {"reward_values": worth, "minimise": minimise}
    every = Problem(graph, **roles, forbidden=forbidden, arms="all")
    span = every.payoff.span
    costs = {v: float(rng.choice([0, 0.1, 0.3]) * span) for v in every.manipulable}
    small = Problem(graph, **roles, forbidden=forbidden, arms="minimal")
    own = {str(arm): float(rng.random() * 0.5 * span) for arm in small.arms if rng.random() < 0.2}
    costs |= own if by_arm else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DowiseWarning)
        problem = Problem(graph, **roles, forbidden=forbidden, costs=costs)
    paid = [
        own[str(arm)] if by_arm and str(arm) in own else sum(costs[name] for name in arm)
        for arm in every.arms
    ]
    is_best = True
    for _ in range(worlds):
        world = make_environment(every, rng, strong=True)
        mine = Environment(problem, world.cpts, world.graph)
        for labels in product(*(every.domains[name] for name in every.context)):
            context = dict(zip(every.context, labels, strict=True))
            net = world.means(context) + (np.array(paid) if minimise else -np.array(paid))
            best, found = (net.min(), mine.means(context).min()) if minimise else (
                net.max(), mine.means(context).max()
            )  # fmt: skip
            assert mine.regret(mine.best_arm(context), context) == 0
            assert mine.means(context)[problem.arm_index(mine.best_arm(context))] == found
            is_best &= abs(best - found) < 1e-9 * span
    return is_best, problem, len(every.arms)


@pytest.mark.parametrize("minimise", [False, True])
def test_the_best_arm_is_the_best_of_all_interventions_net_of_cost(minimise):
    found = [brute_force(seed, 2, minimise, by_arm=False) for seed in range(40)]
    assert all(is_best for is_best, _, _ in found)
    assert sum(len(problem.arms) < every for _, problem, every in found) > 15


@pytest.mark.slow
def test_with_costs_of_arms_too_unless_there_was_a_warning():
    missed = 0
    for seed in range(80):
        is_best, problem, _ = brute_force(seed, 1, bool(seed % 2), by_arm=True)
        assert is_best or cheaper_equivalent(problem) is not None
        missed += not is_best
    assert missed  # so there is something to warn of


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_the_best_arm_is_the_best_of_all_interventions_more_often(block):
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        assert brute_force(seed, 3, bool(seed % 2), by_arm=False)[0]
        is_best, problem, _ = brute_force(seed, 2, bool(seed % 2), by_arm=True)
        assert is_best or cheaper_equivalent(problem) is not None
