"""Every registered policy keeps the contract, and a policy of one's own can be added."""

import inspect
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from dowise import (
    CausalGraph,
    DowiseError,
    Problem,
    check_policy,
    load_problem,
    make_policy,
    register_policy,
)
from dowise._core.rng import generator
from dowise.policies import BayesianPolicy, Decision, allowed_arms, policy_names, registry
from dowise.policies.base import one_hot
from dowise.policies.registry import policy_info

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "own-policy.md").read_text("utf-8")
POLICIES = (DOCS / "policies.md").read_text("utf-8")


# What fits a policy that can't play a thousand rounds of the tasks: a plan of eleven rounds, ten of
# them played, of two arms without and with a context.
SMALL = {
    "bayes-optimal": {
        "problems": [
            Problem(CausalGraph.parse("X -> Y"), "Y"),
            Problem(CausalGraph.parse("C -> X -> Y; C -> Y"), "Y", context="C"),
        ],
        "rounds": 10,
        "horizon": 11,
    }
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("commit-kg", "ids", "ts") else pytest.mark.slow)
        for name in policy_names()
    ],
)
def test_the_contract(name):
    check_policy(name, **SMALL.get(name, {}))


CONFOUNDED = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y"), "Y", context="C")


@pytest.mark.parametrize(
    "name",
    ["ids", "ts", "ucb", "kl-ucb", "bernoulli-ts", "random", "z2-ts", "z2-kl-ucb", "certified-ids"],
)
def test_the_contract_with_a_hidden_common_cause(name):
    check_policy(name, rounds=100, problems=[CONFOUNDED])


def test_a_plan_needs_every_common_cause():
    with pytest.raises(DowiseError, match=r"can't plan .*X <-> Y.*apply: ids, ts, z2-ts"):
        make_policy("bayes-optimal", CONFOUNDED, horizon=3)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ts", {"propensity_samples": 50}),
        ("bernoulli-ts", {"propensity_samples": 50}),
        ("ucb", {"exploration": 0}),
        ("kl-ucb", {"c": 0}),
        ("ids", {"samples": 20, "interval": "optimistic"}),
        ("ids", {"samples": 20, "interval": "pessimistic"}),
    ],
)
def test_the_contract_with_options(name, options):
    check_policy(name, rounds=20, **options)


def test_the_page_of_policies_has_them_all_with_their_options():
    rows = {x[1]: x[0] for x in re.finditer(r"^\| `([\w-]+)` .*$", POLICIES, re.MULTILINE)}
    assert list(rows) == list(policy_names())
    for name in rows:
        for option in list(inspect.signature(policy_info(name).load()).parameters)[1:]:
            assert re.search(rf"`{option}[=`]", rows[name]), (name, option)


@pytest.fixture
def clean_registry(monkeypatch):
    monkeypatch.setattr(registry, "_POLICIES", dict(registry._POLICIES))


@pytest.mark.usefixtures("clean_registry")
def test_the_example_of_the_docs_runs():
    code = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    assert len(code.strip().splitlines()) <= 36
    exec(compile(code, "own-policy.md", "exec"), {"__name__": "example"})
    assert "greedy" in policy_names()


COUNTER = itertools.count()


class Broken:
    """A policy with one fault at a time."""

    def __init__(self, problem, fault):
        self.problem, self.fault, self.count = problem, fault, 0

    def decide(self, context=None, rng=None, allowed=None):
        assert rng is not None
        self.count += 1
        arms = self.problem.arms
        if allowed is not None:
            arms = [self.problem.intervention(arm) for arm in allowed]
        arm = arms[0]
        probabilities = np.zeros(len(self.problem.arms))
        probabilities[self.problem.arm_index(arm)] = 1.0
        if self.fault == "crash" and context and "no such variable" in context:
            raise KeyError("no such variable")
        if self.fault == "leave":
            raise SystemExit(0)
        if self.fault != "context":
            self.problem.context_codes(context)
        if self.fault == "state":
            arm = arms[self.count % len(arms)]
            probabilities = None
        if self.fault == "allowed":
            arm = self.problem.arms[0]
        if self.fault == "seed":
            arm = arms[next(COUNTER) // 7 % len(arms)]
            probabilities = None
        if self.fault == "zero":
            probabilities = np.roll(probabilities, 1)
        if self.fault == "spread":
            probabilities[:] = 1 / len(probabilities)
        if self.fault == "sum":
            probabilities *= 0.9
        if self.fault == "warning":
            np.log(np.zeros(1))
        return Decision(arm, probabilities, "because")

    def observe(self, arm, outcome):
        pass


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("state", "decide must not change its state"),
        ("allowed", "was allowed|was not allowed"),
        ("sum", "sum to 1"),
        ("seed", "same seed, same decisions"),
        ("spread", "not allowed must have probability 0"),
        ("zero", "with probability 0"),
        ("context", "the context {'no such variable': '1'} must be a DowiseError"),
        ("crash", "must be a DowiseError, not KeyError"),
        ("leave", "it raises SystemExit: 0"),
    ],
)
def test_each_broken_promise_is_named(fault, complaint):
    with pytest.raises(DowiseError, match=complaint):
        check_policy(Broken, rounds=5, fault=fault)


def test_a_warning_breaks_the_contract():
    with pytest.raises(DowiseError, match="it warns, divide by zero"):
        check_policy(Broken, rounds=5, fault="warning")


def test_a_policy_without_faults_passes():
    check_policy(Broken, rounds=5, fault=None)


@pytest.mark.usefixtures("clean_registry")
def test_names_and_options():
    problem = load_problem("task1")
    with pytest.raises(DowiseError, match=r"unknown policy 'idz' \(did you mean 'ids'\?\)"):
        make_policy("idz", problem)
    with pytest.raises(DowiseError, match="has no option 'sample' .did you mean 'samples'"):
        make_policy("ids", problem, sample=3)
    with pytest.raises(DowiseError, match="needs the option 'horizon'"):
        make_policy("bayes-optimal", problem)
    with pytest.raises(DowiseError, match=r"'random' has no option 'seed' \(available: floor\)"):
        make_policy("random", problem, seed=1)
    with pytest.raises(DowiseError, match="must be a Problem, not"):
        make_policy("ids", "task1")
    with pytest.raises(DowiseError, match="'ids' is registered already"):
        register_policy("ids")(Broken)
    for bad in (3, "", None):
        with pytest.raises(DowiseError, match="is not a name: use @register_policy"):
            register_policy(bad)


class Forgetful(BayesianPolicy):
    """Learns, and forgets to forget."""

    def decide(self, context=None, rng=None, allowed=None):
        generator(rng)
        codes, arms = self.problem.context_codes(context), allowed_arms(self.problem, allowed)
        means = self.belief.posterior.mean_distributions(codes)[arms] @ self.problem.payoff.values
        chosen = int(arms[means.argmax()])
        return Decision(self.problem.arms[chosen], one_hot(self.problem, chosen), f"{means}")

    def retract(self, _record):
        pass


def test_a_policy_that_does_not_retract_is_found_out():
    with pytest.raises(DowiseError, match="must be a function of its records"):
        check_policy(Forgetful, rounds=5)
