"""What a policy knows is a function of its records, to the last bit, whatever their order."""

import copy
import json
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from support.errors import raises_code

from dowise import Belief, CausalGraph, DowiseError, Problem, load_problem, make_environment
from dowise import make_policy as make
from dowise.environments import front_door_world
from dowise.policies import policy_names
from dowise.policies.z2 import settled_size
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
        assert policy.compiled_trial() is not None
        rng = np.random.default_rng(0)
        for _ in range(5):
            context = world.draw_context(rng)
            arm = policy.decide(context, rng).arm
            policy.observe(arm, world.play(arm, context, rng))
    compiled, stepped = policies
    stepped.compiled_trial = lambda: None
    trials = [run_trial(world, lambda _p, p=p: p, 60, seed=0, trial=0) for p in policies]
    np.testing.assert_array_equal(trials[0].arms, trials[1].arms)
    assert json.dumps(compiled.state()) == json.dumps(stepped.state())
    assert compiled.next_number == stepped.next_number == 65
    assert len(set(trials[0].arms.tolist())) > 1


def test_ids_refuses_at_once_what_its_draws_would_not_leave_room_for():
    edges = [(f"X{i:02}", "Y") for i in range(13)]
    worth = {str(i): float(i) for i in range(9)}
    wide = Problem(CausalGraph(edges), "Y", domains={"Y": range(9)}, reward_values=worth)
    with raises_code("too-large", "8,192 arms and 8,192 best arms", "4.8 GB"):
        make("ids", wide, samples=10**5)


@pytest.mark.parametrize("name", NAMES)
def test_a_record_of_another_problem_is_refused_and_changes_nothing(name):
    """Positions mean nothing there: a count would be written somewhere else, or nowhere."""
    policy = fresh(name)
    state = json.dumps(policy.state())
    other = load_problem("task3")
    seen = dict.fromkeys(other.graph, "1") | dict(other.arms[-1])
    turned = Problem(policy.problem.graph, "Y", domains={"X": ["1", "0"]})
    strangers = [
        other.record(other.arms[-1], seen, 0),
        turned.record("do(X=1)", dict.fromkeys(turned.graph, "1"), 0),
    ]
    for record in strangers:
        for learn in (policy.learn, policy.retract):
            with pytest.raises(DowiseError, match="another problem"):
                learn(record)
    with pytest.raises(DowiseError, match="is not a record: make one with problem.record"):
        policy.learn({"Y": 1})
    assert json.dumps(policy.state()) == state
    equal = copy.deepcopy(policy.problem)
    policy.learn(records_of(equal, 1)[0])  # another object, the same problem


@pytest.mark.parametrize("name", ["z2-ts", "z2-kl-ucb", "bernoulli-ts"])
def test_policies_that_go_by_numbers_want_them(name):
    """Without a number all coins would fall alike."""
    policy = fresh(name)
    seen = {"C": "1", "Z": "0", "X": "1", "Y": "fair"}
    arm = next(arm for arm in THREE_VALUES.arms if arm.get("X") == "1")
    with pytest.raises(DowiseError, match="has no decision number"):
        policy.learn(THREE_VALUES.record(arm, seen))
    if name != "bernoulli-ts":
        policy.learn(THREE_VALUES.record(arm, seen, 4))
        with pytest.raises(DowiseError, match="record with number 4 .* was learned already"):
            policy.learn(THREE_VALUES.record(arm, seen, 4))


def test_two_threads_may_ask_a_z2_policy():
    policies = [fresh("z2-kl-ucb") for _ in range(40)]
    records = records_of(THREE_VALUES, 60)
    for policy in policies:
        for record in records:
            policy.learn(record)
    truth = [policies[0].pooled({"C": c}).means for c in "01"]
    with ThreadPoolExecutor(2) as pool:
        for policy in policies[1:]:
            found = list(pool.map(lambda c, p=policy: p.pooled({"C": c}).means, "01"))
            np.testing.assert_array_equal(found, truth)


@pytest.mark.parametrize("prior", [0.02, 0.05])
def test_beta_priors_that_saturate_single_precision_do_not_tie(prior):
    """In single precision .568 at .02; five standard errors are a false alarm of 6e-7."""
    policy = make("bernoulli-ts", TWO_ARMS, prior=(prior, prior), propensity_samples=100_000)
    assert abs(policy.decide(rng=0).probabilities[0] - 0.5) < 5 * 0.5 / np.sqrt(100_000) + 1e-5
    assert policy.compiled_trial() is None


def test_ties_of_beta_draws_are_broken_anew_in_every_decision():
    """At .001 one draw in eight is a tie even in a double; five standard errors as above."""
    policy = make("bernoulli-ts", TWO_ARMS, prior=(0.001, 0.001))
    first = [str(policy.decide(rng=seed).arm) == "do(X=0)" for seed in range(10_000)]
    assert abs(np.mean(first) - 0.5) < 5 * 0.5 / np.sqrt(10_000)


def test_observing_takes_few_steps():
    """Ten changes of file at most from one call to the next, as many as can be followed."""
    policy = make("ids", load_problem("task2"), samples=10)
    arm, outcome = policy.problem.arms[0], {"C": "1", "X2": "0", "Z": "1", "Y": "0"}
    policy.observe(arm, outcome)
    files = []

    def note(frame, event, _argument):
        if event == "call" and "dowise" in Path(frame.f_code.co_filename).parts:
            files.append(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        policy.observe(arm, outcome)
    finally:
        sys.setprofile(None)
    assert 3 < len(files) < 20
    assert sum(one != other for one, other in pairwise(files)) <= 10


def test_small_parameters_are_stepped_because_single_precision_would_tie():
    assert make("ts", TWO_ARMS, prior=0.02).compiled_trial() is None


@pytest.mark.parametrize("name", NAMES)
def test_decide_without_a_source_of_randomness_is_refused(name):
    policy = fresh(name)
    with pytest.raises(DowiseError, match="rng=None must be a seed"):
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
