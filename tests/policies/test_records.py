"""What a policy knows is a function of its records, to the last bit, whatever their order."""

import json
import pickle

import numpy as np
import pytest

from dowise import Belief, CausalGraph, DowiseError, Problem, load_problem, make_environment
from dowise import make_policy as make
from dowise.environments import front_door_world
from dowise.policies import policy_names
from dowise.policies.arm_data import settled_size
from dowise.policies.registry import policy_info
from dowise.simulation.trial import run_trial

THREE_VALUES = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y; Z -> X; Z -> Y"), "Y", "C", "Z",
    reward_values={"bad": -1, "fair": 0.5, "good": 3},
)  # fmt: skip
TWO_ARMS = Problem(CausalGraph.parse("X -> Y"), "Y")
PROBLEMS = {"bayes-optimal": TWO_ARMS}
OPTIONS = {"bayes-optimal": {"horizon": 41}, "ids": {"samples": 50}, "z2-ts": {"refresh": 0.3}}
NAMES = policy_names()
TURNED = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y"), "Y", "C", reward_values={"0": 1.0, "1": 0.0}
)
COMPILED = [
    (name, world)
    for name in ("ids", "ts", "ucb", "bernoulli-ts")
    for world in ("task1", "task2", TURNED, "front-door")
    if world != "front-door" or not policy_info(name).needs_posterior
]


def fresh(name):
    return make(name, PROBLEMS.get(name, THREE_VALUES), **OPTIONS.get(name, {}))


def records_of(problem, count):
    """Numbered records of a random world, some of them equal."""
    world, rng = make_environment(problem, seed=1), np.random.default_rng(2)
    found = []
    for number in range(count):
        context = world.draw_context(rng)
        arm = problem.arms[rng.integers(len(problem.arms))]
        found.append(problem.record(arm, world.play(arm, context, rng), number))
    return found


def fingerprint(policy):
    """All that can be asked of a policy: its state, and what it decides with what figures."""
    contexts = [{"C": c} for c in "01"] if policy.problem.context else [None]
    decisions = [policy.decide(context, seed) for context in contexts for seed in range(3)]
    pages = [x.as_dict(*(f for f in x.figures if f != "gain_interval")) for x in decisions]
    return json.dumps([policy.state(), pages])


@pytest.mark.parametrize("name", NAMES)
def test_learning_retracting_and_learning_again_in_any_order_gives_identical_bits(name):
    straight, crooked = fresh(name), fresh(name)
    records = records_of(straight.problem, 40)
    kept = records[:25]
    for record in kept:
        straight.learn(record)
    rng = np.random.default_rng(3)
    for i in rng.permutation(40):
        crooked.learn(records[i])
        if i % 3 == 0:  # what is decided in between leaves no trace
            crooked.decide({"C": "1"} if crooked.problem.context else None, 0)
    for i in rng.permutation(np.arange(15)):
        crooked.retract(records[25 + i])
    for record in kept[:5]:
        crooked.retract(record)
        crooked.learn(record)
    assert fingerprint(crooked) == fingerprint(straight)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_all_retracted_was_never_learned(name):
    policy = fresh(name)
    before = fingerprint(policy)
    records = records_of(policy.problem, 12)
    for record in records:
        policy.learn(record)
    for record in records[::-1]:
        policy.retract(record)
    assert fingerprint(policy) == before


@pytest.mark.parametrize("name", [x for x in NAMES if x != "random"])
def test_what_was_not_learned_can_t_be_retracted(name):
    policy = fresh(name)
    first, second, *_ = records_of(policy.problem, 2)
    policy.learn(first)
    state = json.dumps(policy.state())
    with pytest.raises(DowiseError, match="can't be retracted: it was not learned"):
        policy.retract(second)
    assert json.dumps(policy.state()) == state


def test_a_completed_record_replaces_its_earlier_self_exactly():
    problem = load_problem("task1")
    partly, at_once = make("ts", problem), make("ts", problem)
    early = problem.record("do(X=1)", {"Z": 0}, number=7)
    partly.learn(early)
    partly.retract(early)
    whole = problem.record("do(X=1)", {"Z": 0, "Y": 1}, number=7)
    partly.learn(whole)
    at_once.learn(whole)
    np.testing.assert_array_equal(partly.belief.posterior.counts, at_once.belief.posterior.counts)
    assert early.missing == ("Y",) and whole.missing == ()
    assert whole.as_dict() == {
        "number": 7, "arm": {"X": "1"}, "values": {"X": "1", "Y": "1", "Z": "0"},
    }  # fmt: skip


def test_a_prior_that_no_float_adds_up_to_exactly_leaves_no_rounding():
    problem = load_problem("task1")
    belief = Belief(problem, prior=0.1)
    record = problem.record("do()", {"Z": 0, "X": 1, "Y": 1})
    for _ in range(1000):
        belief.learn(record)
    for _ in range(1000):
        belief.retract(record)
    assert (belief.parameters == 0.1).all()


@pytest.mark.parametrize(("name", "where"), COMPILED)
def test_after_a_compiled_trial_the_state_is_what_stepping_would_have_left(name, where):
    """States, not only arms; in contexts that were seen before, too."""
    world = front_door_world() if where == "front-door" else make_environment(where, seed=4)
    policies = [make(name, world.problem) for _ in range(2)]
    for policy in policies:
        assert policy.compiled_loop() is not None
        rng = np.random.default_rng(0)
        for _ in range(5):
            context = world.draw_context(rng)
            arm = policy.decide(context, rng).arm
            policy.observe(arm, world.play(arm, context, rng))
    compiled, stepped = policies
    stepped.compiled_loop = lambda: None
    trials = [run_trial(world, lambda _p, p=p: p, 60, seed=0, trial=0) for p in policies]
    np.testing.assert_array_equal(trials[0].arms, trials[1].arms)
    assert json.dumps(compiled.state()) == json.dumps(stepped.state())
    assert compiled.next_number == stepped.next_number == 65
    assert len(set(trials[0].arms.tolist())) > 1


def test_small_parameters_are_stepped_because_single_precision_would_tie():
    assert make("ts", TWO_ARMS, prior=0.02).compiled_loop() is None


@pytest.mark.parametrize("name", NAMES)
def test_decide_without_a_source_of_randomness_is_refused(name):
    policy = fresh(name)
    with pytest.raises(DowiseError, match="rng=None: give a seed"):
        policy.decide({"C": "1"} if policy.problem.context else None)


@pytest.mark.parametrize("name", NAMES)
def test_a_decision_is_data(name):
    policy = fresh(name)
    for record in records_of(policy.problem, 20):
        policy.learn(record)
    context = {"C": 1} if policy.problem.context else None
    decision = policy.decide(context, 0)
    page = decision.as_dict(*decision.figures)
    again = json.loads(json.dumps(page, allow_nan=False))
    assert again == page
    assert page["context"] == ({"C": "1"} if context else {})
    assert policy.problem.intervention(page["arm"]) == decision.arm
    assert (
        page["text"] == str(decision.arm) and str(decision) == f"{page['text']}: {page['reason']}"
    )
    assert list(page["figures"]) == list(decision.figures)
    assert decision.as_dict()["figures"] == {}
    copy = pickle.loads(pickle.dumps(decision))
    assert copy.as_dict(*copy.figures) == page
    with pytest.raises(DowiseError, match="no figure 'nonsense'"):
        decision.as_dict("nonsense")


def test_the_records_that_estimates_are_due_from():
    """1, 2, 3, … and, once a share is more than one record, a share more than the last time."""
    assert [settled_size(n, 0.0) for n in (0, 1, 17)] == [0, 1, 17]
    sizes = sorted({settled_size(n, 0.5) for n in range(30)})
    assert sizes == [0, 1, 2, 3, 5, 8, 12, 18, 27]
