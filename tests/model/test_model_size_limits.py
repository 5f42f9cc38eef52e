"""Problems whose circuit exceeds `max_program`: the error, and what works without a circuit."""

import re

import numpy as np
import pytest
from support.errors import raises_code

from dowise import (
    Belief,
    Problem,
    load_problem,
    make_environment,
    make_policy,
    simulate,
)
from dowise.model.elimination import Plans
from dowise.model.factors import FactorLayout


def limited(problem, limit):
    _, (options,) = problem.__reduce__()
    return Problem(**{**options, "max_program": limit})


@pytest.fixture(scope="module")
def tight():
    """`insurance` with a limit just below its estimated 412,300 multiplications per draw."""
    return limited(load_problem("insurance"), 400_000)


@pytest.fixture(scope="module")
def message(tight):
    with raises_code("too-large") as caught:
        Belief(tight)
    return str(caught.value)


def test_the_limit_in_the_message_is_enough(tight, message):
    assert "more than max_program = 400,000; " in message
    raised = limited(tight, int(re.search(r"set max_program = ([\d_]+)", message)[1]))
    assert raised != tight and raised.max_program < 430_000
    Belief(raised)


def test_the_message_names_the_largest_table(tight, message):
    plans = Plans(tight, FactorLayout(tight))
    largest = max((plan.largest for plan in plans.of.values()), key=plans.cells)
    assert f"the largest table has {plans.cells(largest):.2g} entries" in message
    for v in largest:
        assert plans.factors.variables[v] in message


@pytest.mark.parametrize("name", ["ucb", "kl-ucb", "bernoulli-ts", "random", "z2-ts", "z2-kl-ucb"])
def test_policies_that_need_no_circuit_decide(name):
    problem = limited(load_problem("task2"), 1)
    policy = make_policy(name, problem)
    decision = policy.decide({"C": 0}, rng=0)
    policy.observe(decision.arm, {"C": 0, "X1": 0, "X2": 0, "Z": 0, "Y": 1} | dict(decision.arm))
    assert make_policy(name, load_problem("task2")).decide({"C": 0}, rng=0).arm == decision.arm


@pytest.mark.parametrize("name", ["ids", "ts"])
def test_policies_that_need_a_circuit_are_refused(name):
    with raises_code("too-large", "max_program = 1;", "set max_program = "):
        make_policy(name, limited(load_problem("task2"), 1))


def test_worlds_have_exact_means_without_a_circuit():
    for name in ("task3", "healthcare", "child", "figure1-g2"):
        problem = load_problem(name)
        world, other = (make_environment(x, seed=1) for x in (problem, limited(problem, 1)))
        assert not other._reversal.model.has_circuit
        context = world.draw_context(0)
        assert other.means(context) == pytest.approx(world.means(context), abs=1e-14)


def test_policies_that_need_no_circuit_are_simulated():
    problem = load_problem("task2")
    expected, limited_run = (
        simulate([x], ["ucb"], horizon=20, trials=1, seed=2).frame()
        for x in (problem, limited(problem, 1))
    )
    assert limited_run["arm"].tolist() == expected["arm"].tolist()
    regrets = expected["regret"].to_numpy()
    assert limited_run["regret"].to_numpy() == pytest.approx(regrets, abs=1e-12)
    with raises_code("too-large", "max_program = 1;"):
        simulate([limited(problem, 1)], ["ucb", "ts"], horizon=5, trials=1)


def test_the_estimated_number_of_multiplications_is_realistic(tight):
    plans = Plans(tight, FactorLayout(tight))
    built = Belief(load_problem("insurance")).posterior.model.circuit.multiplications
    assert np.log2(plans.multiplications / built) == pytest.approx(0, abs=2)
