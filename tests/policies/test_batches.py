"""Several decisions before the first outcome."""

import warnings

import numpy as np
import pytest
from support.doubtful_problems import with_doubtful
from support.errors import raises_code

from dowise import (
    Belief,
    CausalGraph,
    DowiseError,
    Problem,
    check_policy,
    load_problem,
    make_policy,
)
from dowise.belief.predictive import draw_record
from dowise.policies import policy_names
from dowise.policies.base import Policy

TASK1 = load_problem("task1")
TASK3 = load_problem("task3")
TWO_ARMS = Problem(CausalGraph.parse("X -> Y"), "Y")
CONFOUNDED = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y"), "Y", context="C")


def pages(decisions):
    return [decision.as_dict() for decision in decisions]


def after(name, problem, records=12, **options):
    """A policy that has learned something."""
    policy, rng = make_policy(name, problem, **options), np.random.default_rng(3)
    for number in range(records):
        arm = problem.arms[number % len(problem.arms)]
        seen = {v: rng.choice(problem.domains[v]) for v in problem.graph}
        policy.observe(arm, seen | dict(arm))
    return policy


@pytest.mark.parametrize("name", ["ts", "random", "bernoulli-ts"])
def test_policies_that_draw_draw_for_each(name):
    policy, rng = after(name, TASK3), np.random.default_rng(1)
    contexts = [{"C1": 0, "C2": 1}, {"C1": 1, "C2": 1}, {"C1": 0, "C2": 1}]
    contexts = [dict(zip(TASK3.context, c.values(), strict=False)) for c in contexts]
    alone = [policy.decide(context, rng) for context in contexts]
    assert pages(policy.decide_many(contexts, 1)) == pages(alone)


@pytest.mark.parametrize("name", ["ucb", "kl-ucb", "z2-kl-ucb"])
def test_policies_with_an_index_count_what_they_asked_for(name):
    policy = after(name, TASK1)
    found, alone = policy.decide_many(8, 0), []
    for _ in range(8):
        alone.append(policy.decide(None, 0))
        policy.add_pending(alone[-1].arm, None)
    assert pages(found) == pages(alone)
    assert len({one.arm for one in found}) > 1
    for one in alone:
        policy.add_pending(one.arm, None, -1)
    assert pages(policy.decide_many(8, 0)) == pages(found)  # nothing was left under way


@pytest.mark.parametrize("problem", [TASK3, CONFOUNDED], ids=["task3", "doubtful cause"])
def test_ids_decides_as_if_imagined_outcomes_were_real(problem):
    policy = after("ids", problem, samples=200)
    contexts = [{c: problem.domains[c][i % 2] for c in problem.context} for i in (0, 1, 1, 0, 0)]
    known, rng, twin, expected = policy.fingerprint(), np.random.default_rng(5), None, []
    for context in contexts:
        expected.append((twin or policy).decide(context, rng))
        if len(expected) < len(contexts):
            twin = twin or make_policy("ids", problem, samples=200, belief=policy.belief.copy())
            codes = problem.context_codes(context)
            arm = problem.arm_index(expected[-1].arm)
            twin.learn(draw_record(twin.belief.posterior, arm, codes, rng))
    assert pages(policy.decide_many(contexts, 5)) == pages(expected)
    assert policy.fingerprint() == known
    assert pages(policy.decide_many(contexts[:1], 5)) == pages(expected[:1])
    without = Policy.decide_many(policy, contexts, 5)
    assert pages(without) != pages(expected)


def test_batches_of_ids_have_fewer_needless_repeats():
    """Arms of 10 decisions on what 12 records taught, over 60 seeds: means 3 standard errors apart.

    Seeded: it always passes or never. That a difference of 0 looks so large is 1 in 740.
    """
    policy = after("ids", TASK3, samples=100)
    context = dict.fromkeys(TASK3.context, "0")

    def kinds(decide_many):
        found = [decide_many([context] * 10, seed) for seed in range(60)]
        return np.array([len({one.arm for one in batch}) for batch in found])

    more = kinds(policy.decide_many) - kinds(lambda *a: Policy.decide_many(policy, *a))
    assert more.mean() > 3 * more.std() / np.sqrt(60)


def test_a_plan_counts_imagined_outcomes_as_rounds():
    policy = make_policy("bayes-optimal", TWO_ARMS, horizon=6)
    policy.observe("do(X=0)", {"Y": 1})
    found = policy.decide_many(5, 2)
    assert [one.figures["rounds_left"] for one in found] == [5, 4, 3, 2, 1]
    assert policy.decide(None, 0).figures["rounds_left"] == 5
    with pytest.raises(DowiseError, match="5 of 6 rounds are left, too few for 6 decisions"):
        policy.decide_many(6, 2)


def test_a_belief_on_a_wider_graph_imagines_outcomes_on_that_graph():
    policy = after("ids", TASK3, samples=50)
    policy.knowledge.belief = Belief(with_doubtful(TASK3, ("Z2 -> Y",)))
    before = policy.belief.as_dict()
    found = policy.decide_many([dict.fromkeys(TASK3.context, "0")] * 20, 1)
    assert all(one.arm in TASK3.arms and "edges" in one.figures for one in found)
    assert len({one.figures["edges"]["Z2 -> Y"] for one in found}) > 1  # imagined outcomes tell
    assert policy.belief.as_dict() == before


@pytest.mark.parametrize("name", [name for name in policy_names() if name != "bayes-optimal"])
def test_bad_batches_are_refused_before_anything_is_decided(name):
    policy, good = make_policy(name, TASK3), dict.fromkeys(TASK3.context, "0")
    rng = np.random.default_rng(0)
    before = str(rng.bit_generator.state)
    for contexts, code, *mentioned in [
        (3, "invalid-context", "contexts=3", "list", "this problem has a context (", *good),
        (True, "invalid-number", "contexts=True must be a whole number"),
        (2.5, "invalid-number", "contexts=2.5 must be a whole number"),
        (good, "invalid-context", "contexts must be a list"),
        ("C1", "invalid-context", "contexts must be a list"),
        ([], "invalid-context", "contexts is empty", "at least one"),
        ([good, {}], "missing-value", "the context has no value for", next(iter(good))),
        ([good, {**good, "U": 1}], "unknown-variable", "'U' is not a context variable"),
    ]:
        with raises_code(code, *mentioned):
            policy.decide_many(contexts, rng)
    assert str(rng.bit_generator.state) == before
    with raises_code("invalid-number", "contexts=0 must be a whole number, 1 or more"):
        make_policy(name, TASK1).decide_many(0, rng)
    with raises_code("missing-value", "allowed is empty"):
        policy.decide_many([good], rng, [])
    with raises_code("invalid-type", "allowed='do()'", "list of arms"):
        policy.decide_many([good], rng, "do()")


class Forgetful(Policy):
    """Keeps the contract but for the batch."""

    def __init__(self, problem, fault):
        super().__init__(problem)
        self.inner, self.fault = make_policy("ucb", problem), fault
        self.requires = self.inner.requires
        for name in (
            "decide",
            "learn",
            "learn_many",
            "retract",
            "state",
            "fingerprint",
            "add_pending",
        ):
            setattr(self, name, getattr(self.inner, name))

    def decide_many(self, contexts, rng=None, allowed=None):
        if self.fault == "anything goes":
            contexts = [self.problem.context_labels((0,) * len(self.problem.context))] * 4
        found = self.inner.decide_many(contexts, rng, allowed)
        if self.fault == "short":
            return found[1:]
        if self.fault == "trace":
            self.inner.add_pending(found[0].arm, found[0].context)
        if self.fault == "restless" and isinstance(rng, int):
            self.fault = "restless again"
        elif self.fault == "restless again":
            return found[::-1]
        if self.fault == "not allowed" and allowed is not None:
            return self.inner.decide_many(contexts, rng)
        return found


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("short", "a decision for each of 4 contexts, not 3"),
        ("trace", "must not change its state|same seed"),
        ("restless", "decide_many: same seed, same decisions"),
        ("not allowed", "was not allowed"),
        ("anything goes", "must be a DowiseError"),
    ],
)
def test_the_contract_finds_batches_that_break_it(fault, words):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_policy(lambda problem: Forgetful(problem, None), rounds=20, problems=[TASK1])
        with pytest.raises(DowiseError, match=words):
            check_policy(lambda problem: Forgetful(problem, fault), rounds=20, problems=[TASK1])


def test_beliefs_that_are_given_are_not_touched():
    belief = Belief(TASK1)
    policy = make_policy("ids", TASK1, samples=50, belief=belief)
    before = belief.as_dict()
    policy.decide_many(6, 0)
    assert belief.as_dict() == before and policy.belief is belief
