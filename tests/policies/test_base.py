"""All policies: learning, retracting, digests, batches of records, decisions as data."""

import copy
import json
import pickle
from hashlib import sha256

import numpy as np
import pytest
from support.errors import raises_code
from support.policies import THREE_VALUES, TWO_ARMS, any_policy, learn_all, random_records

from dowise import CausalGraph, DowiseError, Problem, load_problem, make_policy
from dowise.policies import policy_names
from dowise.policies.base import digest_of
from dowise.problem.domains import MISSING
from dowise.problem.record import RecordBatch, past_record

NAMES = policy_names()
LEARNING = [name for name in NAMES if name != "random"]
LARGE = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y; Z -> X; Z -> Y; X <-> Y; B -> C"),
    "Y",
    ["B", "C"],
    "Z",
    reward_values={"bad": -1, "fair": 0.5, "good": 3},
    domains={"X": list("abc")},
)


def decisions_of(policy):
    """Decisions in each context, with figures; Lemma 4's intervals take long and add nothing."""
    contexts = [{"C": c} for c in "01"] if policy.problem.context else [None]
    decisions = [policy.decide(context, seed) for context in contexts for seed in range(3)]
    return [x.as_dict(*(f for f in x.figures if f != "gain_interval")) for x in decisions]


def knowledge_of(policy):
    """All that can be observed of what a policy has learned, as text."""
    return json.dumps([policy.state(), decisions_of(policy), policy.fingerprint().hex()])


# -- single records ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_learning_does_not_depend_on_the_order_of_records(name):
    direct, indirect = any_policy(name), any_policy(name)
    unlearned = knowledge_of(direct)
    records = random_records(direct.problem, 40)
    learn_all(direct, records[:25])
    rng = np.random.default_rng(3)
    fingerprints = [indirect.fingerprint()]
    order = rng.permutation(40)
    for i in order:
        indirect.learn(records[i])
        fingerprints.append(indirect.fingerprint())
        if i % 3 == 0:  # a decision in between leaves no trace
            indirect.decide({"C": "1"} if indirect.problem.context else None, 0)
    assert len(set(fingerprints)) == (1 if name == "random" else 41)
    for i in order[::-1]:
        assert indirect.fingerprint() == fingerprints.pop()
        indirect.retract(records[i])
    assert knowledge_of(indirect) == unlearned
    learn_all(indirect, records[24::-1] if direct.arrivals is None else records[:25])
    assert knowledge_of(indirect) == knowledge_of(direct)


@pytest.mark.parametrize("floor", [0, 0.1])
@pytest.mark.parametrize("name", NAMES)
def test_a_copy_learns_independently(name, floor):
    policy, fresh = any_policy(name, floor=floor), any_policy(name, floor=floor)
    records = random_records(policy.problem, 12)
    learn_all(policy, records[:6])
    before = knowledge_of(policy)
    copied = policy.copy()
    assert knowledge_of(copied) == before
    context = {"C": "1"} if policy.problem.context else None
    copied.add_pending(policy.problem.arms[0], context)
    assert knowledge_of(policy) == before
    copied.add_pending(policy.problem.arms[0], context, -1)
    learn_all(copied, records[6:])
    assert knowledge_of(policy) == before
    assert knowledge_of(copied) == knowledge_of(learn_all(fresh, records))


@pytest.mark.parametrize("name", LEARNING)
def test_a_record_that_was_not_learned_can_not_be_retracted(name):
    policy = any_policy(name)
    first, second = random_records(policy.problem, 2)
    policy.learn(first)
    before = policy.fingerprint()
    with raises_code("not-learned"):
        policy.retract(second)
    assert policy.fingerprint() == before


def test_a_completed_record_replaces_its_earlier_version():
    problem = load_problem("task1")
    stepwise, direct = make_policy("ts", problem), make_policy("ts", problem)
    incomplete = problem.record("do(X=1)", {"Z": 0}, number=7)
    complete = problem.record("do(X=1)", {"Z": 0, "Y": 1}, number=7)
    stepwise.learn(incomplete)
    stepwise.retract(incomplete)
    stepwise.learn(complete)
    direct.learn(complete)
    assert stepwise.fingerprint() == direct.fingerprint()
    assert incomplete.missing == ("Y",) and complete.missing == ()


@pytest.mark.parametrize("name", NAMES)
def test_a_record_of_another_problem_is_refused(name):
    """Its indices mean nothing here: it would be counted somewhere else, or nowhere."""
    policy = any_policy(name)
    before = policy.fingerprint()
    other, reordered = (
        load_problem("task3"),
        Problem(policy.problem.graph, "Y", domains={"X": ["1", "0"]}),
    )
    records = [
        other.record(other.arms[-1], dict.fromkeys(other.graph, "1") | dict(other.arms[-1]), 0),
        reordered.record("do(X=1)", dict.fromkeys(reordered.graph, "1"), 0),
    ]
    for record in records:
        for method in (policy.learn, policy.retract, policy.rejection_reason):
            with raises_code("wrong-problem"):
                method(record)
    with raises_code("invalid-type", "is not a record"):
        policy.learn({"Y": 1})
    assert policy.fingerprint() == before
    policy.learn(random_records(copy.deepcopy(policy.problem), 1)[0])  # an equal problem is fine


@pytest.mark.parametrize("name", ["z2-ts", "z2-kl-ucb", "bernoulli-ts"])
def test_policies_that_need_numbers_refuse_records_without_them(name):
    policy = any_policy(name)
    outcome = {"C": "1", "Z": "0", "X": "1", "Y": "fair"}
    arm = next(arm for arm in THREE_VALUES.arms if arm.get("X") == "1")
    with raises_code("unusable-record", "has no decision number"):
        policy.learn(THREE_VALUES.record(arm, outcome))
    policy.learn(THREE_VALUES.record(arm, outcome, 4))
    if name != "bernoulli-ts":
        with raises_code("unusable-record", "number 4", "learned already"):
            policy.learn(THREE_VALUES.record(arm, outcome, 4))


def test_reasons_for_rejection_name_what_is_missing():
    rewards, z2, bayesian = (any_policy(name, LARGE) for name in ("ucb", "z2-ts", "ts"))
    outcome = {"B": 0, "C": 1, "X": "a", "Z": 1, "Y": "good"}
    no_arm = past_record(LARGE, {"X": "a", "Z": 1}, outcome, 3)
    for policy in (rewards, z2):
        assert "do(X=a, Z=1) is not one of the" in policy.rejection_reason(no_arm)
    assert bayesian.rejection_reason(no_arm) is None
    no_context = past_record(LARGE, {"X": "a"}, {"Y": "good", "B": 0}, 3)
    assert "no value for C" in bayesian.rejection_reason(no_context)
    set_context = past_record(LARGE, {"X": "a", "C": 1}, {"Y": "good", "B": 0}, 3)
    assert bayesian.rejection_reason(set_context) is None
    no_number = past_record(LARGE, LARGE.intervention("do(X=a)"), outcome)
    assert "no decision number" in z2.rejection_reason(no_number)


def test_fingerprints_are_those_that_journals_hold():
    """Other machines and later versions must compute the same bytes."""
    fingerprints = {}
    for name in ("ts", "ucb", "z2-ts"):
        policy = make_policy(name, TWO_ARMS)
        for reward in (1, 0, 1):
            policy.observe("do(X=1)", {"Y": reward})
        fingerprints[name] = policy.fingerprint().hex()[:16]
    assert fingerprints == {
        "ts": "1bdb84925308df7c",
        "ucb": "a9907c38ee78d39b",
        "z2-ts": "46ccd5f7e6def69e",
    }
    data = np.array([1, 4, 0, 0, 2, 1], dtype="<i8").tobytes()
    for dtype in ("<i8", ">i8", "<i4"):
        assert digest_of(np.array([0, 0, 2, 1], dtype=dtype)) == sha256(data).digest()


# -- batches of records -----------------------------------------------------------------------


def random_batch(problem, size, seed=0, missing=0.05, no_arm=0.2):
    """Records of arms and of other interventions, some with missing values."""
    rng, names = np.random.default_rng(seed), problem.graph.variables
    codes = np.array([rng.integers(len(problem.domains[name]), size=size) for name in names])
    codes[rng.random(codes.shape) < missing] = MISSING
    was_set = np.zeros(codes.shape, dtype=bool)
    for i in range(size):
        for name, label in problem.arms[rng.integers(len(problem.arms))].items():
            codes[names.index(name), i] = problem.domains[name].index(label)
            was_set[names.index(name), i] = True
        if rng.random() < no_arm:
            v = int(rng.choice([v for v in range(len(names)) if names[v] != problem.reward]))
            codes[v, i], was_set[v, i] = 0, True
    return RecordBatch(problem, codes, was_set)


@pytest.mark.parametrize("with_numbers", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_learning_many_records_is_learning_one_by_one(name, with_numbers):
    together, singly = any_policy(name, LARGE), any_policy(name, LARGE)
    batch = random_batch(together.problem, 120)
    numbers = np.random.default_rng(1).integers(90, size=120) if with_numbers else None
    before = together.fingerprint()
    mask, reasons = together.usable_mask(batch, numbers)
    assert together.fingerprint() == before
    expected_mask, expected_reasons = [], {}
    for record in batch.each(numbers):
        reason = singly.rejection_reason(record)
        expected_mask.append(reason is None)
        if reason is None:
            singly.learn(record)
        else:
            expected_reasons[reason] = expected_reasons.get(reason, 0) + 1
            with pytest.raises(DowiseError) as error:
                singly.learn(record)
            assert str(error.value) == reason
    assert mask.tolist() == expected_mask and reasons == expected_reasons
    assert name == "random" or 0 < np.count_nonzero(~mask) <= 120
    together.learn_many(batch.take(mask), None if numbers is None else numbers[mask])
    assert together.fingerprint() == singly.fingerprint()
    assert json.dumps(together.state()) == json.dumps(singly.state())


@pytest.mark.parametrize("name", LEARNING)
def test_a_batch_with_an_unusable_record_changes_nothing(name):
    policy = any_policy(name, LARGE)
    batch, numbers = random_batch(policy.problem, 60), np.arange(60)
    before = policy.fingerprint()
    with raises_code("unusable-record", "of 60 records"):
        policy.learn_many(batch, numbers)
    with raises_code("invalid-number", "59 numbers for 60 records"):
        policy.learn_many(batch, numbers[:59])
    with raises_code("wrong-problem"):
        policy.usable_mask(random_batch(Problem(CausalGraph.parse("A -> B"), "B"), 3), None)
    nothing = batch.take(np.zeros(60, dtype=bool))
    mask, reasons = policy.usable_mask(nothing, numbers[:0])
    policy.learn_many(nothing, numbers[:0])
    assert len(mask) == 0 and reasons == {} and policy.fingerprint() == before


# -- decisions --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_decision_needs_a_source_of_randomness(name):
    policy = any_policy(name)
    with raises_code("invalid-type", "rng=None"):
        policy.decide({"C": "1"} if policy.problem.context else None)


@pytest.mark.parametrize("name", NAMES)
def test_a_decision_can_be_saved_as_json_and_pickled(name):
    policy = any_policy(name)
    learn_all(policy, random_records(policy.problem, 20))
    context = {"C": 1} if policy.problem.context else None
    decision = policy.decide(context, 0)
    data = decision.as_dict(*decision.figures)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["context"] == ({"C": "1"} if context else {})
    assert policy.problem.intervention(data["arm"]) == decision.arm
    assert data["text"] == str(decision.arm)
    assert str(decision) == f"{data['text']}: {data['reason']}"
    assert list(data["figures"]) == list(decision.figures)
    assert decision.as_dict()["figures"] == {}
    pickled = pickle.loads(pickle.dumps(decision))
    assert pickled.as_dict(*pickled.figures) == data
    with raises_code("unknown-figure", "'nonsense'"):
        decision.as_dict("nonsense")


@pytest.mark.parametrize(
    ("allowed", "code", "mentioned"),
    [
        ([], "missing-value", "allowed is empty"),
        ("do()", "invalid-type", "allowed='do()'"),
        (["do(X3=1)"], "unknown-arm", "do(X3=1)"),
    ],
)
def test_invalid_allowed_arms_are_refused(allowed, code, mentioned):
    policy, context = make_policy("random", load_problem("task3")), {"C": 0}
    with raises_code(code, mentioned):
        policy.decide(context, 3, allowed)
    with raises_code(code, mentioned):
        policy.decide_many([context], 3, allowed)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "bayes-optimal"])
def test_invalid_contexts_of_a_batch_are_refused_before_anything_is_decided(name):
    problem = load_problem("task3")
    policy, valid = any_policy(name, problem), dict.fromkeys(problem.context, "0")
    rng = np.random.default_rng(0)
    before = str(rng.bit_generator.state)
    for contexts, code, *mentioned in [
        (3, "invalid-context", "contexts=3", *valid),
        (True, "invalid-number", "contexts=True"),
        (2.5, "invalid-number", "contexts=2.5"),
        (valid, "invalid-context", "must be a list"),
        ("C1", "invalid-context", "must be a list"),
        ([], "invalid-context", "contexts is empty"),
        ([valid, {}], "missing-value", next(iter(valid))),
        ([valid, {**valid, "U": 1}], "unknown-variable", "'U'"),
    ]:
        with raises_code(code, *mentioned):
            policy.decide_many(contexts, rng)
    assert str(rng.bit_generator.state) == before
    with raises_code("invalid-number", "contexts=0"):
        any_policy(name, load_problem("task1")).decide_many(0, rng)


@pytest.mark.parametrize("name", ["ts", "random", "bernoulli-ts"])
def test_policies_that_sample_decide_independently_in_a_batch(name):
    problem = load_problem("task3")
    policy = learn_all(any_policy(name, problem), random_records(problem, 12))
    rng = np.random.default_rng(1)
    contexts = [{"C": c} for c in (0, 1, 0)]
    singly = [policy.decide(context, rng).as_dict() for context in contexts]
    assert [x.as_dict() for x in policy.decide_many(contexts, 1)] == singly
