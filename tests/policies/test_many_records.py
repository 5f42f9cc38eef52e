"""Many records at once, what they lack, and digests of what was learned."""

import json
from hashlib import sha256

import numpy as np
import pytest

from dowise import Belief, CausalGraph, DowiseError, Problem, check_policy, make_policy
from dowise.policies import Choice, Policy, policy_names
from dowise.policies.base import RecordMask, RecordRequirements, digest_of
from dowise.policies.decision import DecisionTrace
from dowise.problem.domains import MISSING
from dowise.problem.record import RecordBatch, past_record

TWO_ARMS = Problem(CausalGraph.parse("X -> Y"), "Y")
LARGE = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y; Z -> X; Z -> Y; X <-> Y; B -> C"), "Y", ["B", "C"], "Z",
    reward_values={"bad": -1, "fair": 0.5, "good": 3}, domains={"X": list("abc")},
)  # fmt: skip
PROBLEMS = {"bayes-optimal": TWO_ARMS}
OPTIONS = {"bayes-optimal": {"horizon": 30}, "ids": {"samples": 20}, "z2-ts": {"refresh": 0.3}}
NAMES = policy_names()


def fresh(name):
    return make_policy(name, PROBLEMS.get(name, LARGE), **OPTIONS.get(name, {}))


def batch_of(problem, size, seed=0, missing=0.05, odd=0.2):
    """Records of arms and of other interventions, some with values missing."""
    rng, names = np.random.default_rng(seed), problem.graph.variables
    codes = np.array([rng.integers(len(problem.domains[name]), size=size) for name in names])
    codes[rng.random(codes.shape) < missing] = MISSING
    was_set = np.zeros(codes.shape, dtype=bool)
    for i in range(size):
        arm = problem.arms[rng.integers(len(problem.arms))]
        for name in arm:
            codes[names.index(name), i] = problem.domains[name].index(arm[name])
            was_set[names.index(name), i] = True
        if rng.random() < odd:
            v = int(rng.choice([v for v in range(len(names)) if names[v] != problem.reward]))
            codes[v, i], was_set[v, i] = 0, True
    return RecordBatch(problem, codes, was_set)


def one_by_one(policy, batch, numbers):
    """Which records are taken, why others are not, and what is refused in what words."""
    mask, reasons = [], {}
    for record in batch.each(numbers):
        why = policy.rejection_reason(record)
        mask.append(why is None)
        if why is None:
            policy.learn(record)
        else:
            reasons[why] = reasons.get(why, 0) + 1
            with pytest.raises(DowiseError) as error:
                policy.learn(record)
            assert str(error.value) == why
    return mask, reasons


@pytest.mark.parametrize("with_numbers", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_the_mask_agrees_row_by_row_with_the_rejection_reason(name, with_numbers):
    policy, other = fresh(name), fresh(name)
    batch = batch_of(policy.problem, 120)
    numbers = np.random.default_rng(1).integers(90, size=120) if with_numbers else None
    before = policy.fingerprint()
    mask, reasons = policy.usable_mask(batch, numbers)
    assert policy.fingerprint() == before
    expected, counts = one_by_one(other, batch, numbers)
    assert mask.tolist() == expected and reasons == counts
    assert sum(reasons.values()) == np.count_nonzero(~mask)
    if name != "random":
        assert 0 < np.count_nonzero(~mask) <= 120
    kept = None if numbers is None else numbers[mask]
    policy.learn_many(batch.take(mask), kept)
    assert policy.fingerprint() == other.fingerprint()
    assert json.dumps(policy.state()) == json.dumps(other.state())


@pytest.mark.parametrize("name", [name for name in NAMES if name != "random"])
def test_what_can_t_all_be_learned_changes_nothing(name):
    policy = fresh(name)
    batch, numbers = batch_of(policy.problem, 60), np.arange(60)
    before = policy.fingerprint()
    with pytest.raises(DowiseError, match="of 60 records can't be learned|no value|not one of"):
        policy.learn_many(batch, numbers)
    assert policy.fingerprint() == before
    with pytest.raises(DowiseError, match="59 numbers for 60 records"):
        policy.learn_many(batch, numbers[:59])
    with pytest.raises(DowiseError, match="belongs to another problem"):
        policy.usable_mask(batch_of(Problem(CausalGraph.parse("A -> B"), "B"), 3), None)


@pytest.mark.parametrize("name", NAMES)
def test_no_records_are_no_trouble(name):
    policy = fresh(name)
    nothing = batch_of(policy.problem, 3).take(np.zeros(3, dtype=bool))
    before = policy.fingerprint()
    mask, reasons = policy.usable_mask(nothing, np.zeros(0, dtype=np.int64))
    policy.learn_many(nothing, np.zeros(0, dtype=np.int64))
    assert len(mask) == 0 and reasons == {} and policy.fingerprint() == before


@pytest.mark.parametrize("name", NAMES)
def test_a_fingerprint_is_that_of_the_records_in_any_order(name):
    one, other = fresh(name), fresh(name)
    batch = batch_of(one.problem, 40, missing=0, odd=0)
    numbers = np.arange(40)
    mask, _ = one.usable_mask(batch, numbers)
    rows = np.flatnonzero(mask)
    one.learn_many(batch.take(rows), numbers[rows])
    shuffled = np.random.default_rng(3).permutation(rows)
    known = [other.fingerprint()]
    for record in batch.take(shuffled).each(numbers[shuffled]):
        other.learn(record)
        known.append(other.fingerprint())
    assert one.fingerprint() == other.fingerprint() and len(one.fingerprint()) == 32
    different = 1 if name == "random" else len(known)
    assert len(set(known)) == different
    for record in list(batch.take(shuffled).each(numbers[shuffled]))[::-1]:
        assert other.fingerprint() == known.pop()
        other.retract(record)


def test_fingerprints_of_today():
    """Bytes that other machines and later versions must find again: a journal holds them."""
    found = {}
    for name in ("ts", "ucb", "z2-ts"):
        policy = make_policy(name, TWO_ARMS)
        for reward in (1, 0, 1):
            policy.observe("do(X=1)", {"Y": reward})
        found[name] = policy.fingerprint().hex()[:16]
    assert found == {
        "ts": "1bdb84925308df7c", "ucb": "a9907c38ee78d39b", "z2-ts": "46ccd5f7e6def69e",
    }  # fmt: skip
    page = np.array([1, 4, 0, 0, 2, 1], dtype="<i8").tobytes()
    for kind in ("<i8", ">i8", "<i4"):
        assert digest_of(np.array([0, 0, 2, 1], dtype=kind)) == sha256(page).digest()


def test_the_words():
    tabular, z2, ts = fresh("ucb"), fresh("z2-ts"), fresh("ts")
    seen = {"B": 0, "C": 1, "X": "a", "Z": 1, "Y": "good"}
    none = past_record(LARGE, {"X": "a", "Z": 1}, seen, 3)
    assert "do(X=a, Z=1) is not one of the" in tabular.rejection_reason(none)
    assert "do(X=a, Z=1) is not one of the" in z2.rejection_reason(none)
    assert ts.rejection_reason(none) is None
    blind = past_record(LARGE, {"X": "a"}, {"Y": "good", "B": 0}, 3)
    assert ts.rejection_reason(blind) == "the outcome has no value for C: add the context to it"
    assert (
        ts.rejection_reason(past_record(LARGE, {"X": "a", "C": 1}, {"Y": "good", "B": 0}, 3))
        is None
    )
    arm = LARGE.intervention("do(X=a)")
    assert "the record has no decision number" in z2.rejection_reason(past_record(LARGE, arm, seen))
    for policy in (tabular, z2, ts):
        with pytest.raises(DowiseError, match="belongs to another problem"):
            policy.rejection_reason(TWO_ARMS.record("do(X=1)", {"Y": 1}))


def test_bayes_optimal_takes_as_many_as_there_are_rounds_left():
    policy = make_policy("bayes-optimal", TWO_ARMS, horizon=3)
    policy.observe("do(X=1)", {"Y": 0})
    batch = TWO_ARMS.records({"Y": [1, None, 0, 1], "arm": ["do(X=0)"] * 4})
    mask, reasons = policy.usable_mask(batch)
    assert mask.tolist() == [True, False, True, False]
    assert any("horizon of 3 rounds is over" in why for why in reasons) and len(reasons) == 2
    policy.learn_many(batch.take(mask))
    again = TWO_ARMS.record("do(X=0)", {"Y": 1})
    assert "horizon of 3 rounds is over" in policy.rejection_reason(again)


@pytest.mark.parametrize("options", [{"belief": "evidence"}, {}])
def test_beliefs_with_evidence_learn_many_as_well(options):
    problem = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; Z -> Y"), "Y", "C")

    def make():
        own = dict(options)
        if "belief" in own:
            own["belief"] = Belief(problem, evidence=True)
        return make_policy("ts", problem, **own)

    one, other = make(), make()
    batch = batch_of(problem, 150, missing=0.02, odd=0.1)
    batch.codes[problem.positions["Y"]] = batch.codes[problem.positions["X"]]
    batch = batch.take(one.usable_mask(batch).mask)
    one.learn_many(batch)
    for record in batch.each():
        other.learn(record)
    assert one.fingerprint() == other.fingerprint()
    assert one.belief.as_dict() == other.belief.as_dict()
    assert one.belief.problem == other.belief.problem


def test_many_records_that_teach_nothing_are_told_of_once():
    problem = Problem(CausalGraph.parse("X -> M -> Y"), "Y")
    policy = make_policy("ts", problem)
    batch = problem.records({"X": ["0"] * 30, "Y": ["1"] * 30})
    with pytest.warns(Warning, match="30 records taught nothing about M, Y, because M was not"):
        policy.learn_many(batch)
    policy.learn_many(batch)


# -- policies of one's own --------------------------------------------------------------------


class Plain(Policy):
    """Counts rewards; has `requires`, `choose`, `on_learned` and `state`, and nothing else."""

    def __init__(self, problem):
        needed = [problem.reward_position, *problem.context_positions.tolist()]
        super().__init__(problem, requires=RecordRequirements(needed, "alas", arm=True))
        self.won = {}

    def choose(self, codes, arms, rng):
        probabilities = np.zeros(len(self.problem.arms))
        probabilities[arms] = 1 / len(arms)
        reason = f"drawn after {self.won.get(codes, 0)} successes"
        return Choice(int(rng.choice(arms)), probabilities, DecisionTrace(reason))

    def on_learned(self, record, times):
        record.need([self.problem.reward_position, *self.problem.context_positions], "alas")
        self.won[record.context] = self.won.get(record.context, 0) + times * (1 + record.reward)

    def state(self):
        return {str(key): value for key, value in sorted(self.won.items()) if value}


def test_a_policy_with_four_hooks_has_everything_else():
    check_policy(Plain, rounds=10)
    policy = Plain(LARGE)
    batch, numbers = batch_of(LARGE, 50), np.arange(50)
    mask, reasons = policy.usable_mask(batch, numbers)
    assert policy.state() == {} and 0 < np.count_nonzero(mask) < 50
    assert any("alas" in why for why in reasons)
    policy.learn_many(batch.take(mask), numbers[mask])
    assert policy.state() != {} and len(policy.fingerprint()) == 32
    policy.add_pending("do(X=a)", {"B": 0, "C": 0})


class Lying(Plain):
    def rejection_reason(self, _record):
        return None


class Vague(Plain):
    def learn(self, record):
        if self.rejection_reason(record) is not None:
            raise DowiseError("something")
        super().learn(record)


class Hasty(Plain):
    def learn_many(self, records, numbers=None):
        super().learn_many(records.take(np.arange(1)), numbers[:1])


class Blind(Plain):
    def fingerprint(self):
        return b"the same"


class Sorted(Plain):
    def __init__(self, problem):
        super().__init__(problem)
        self.order = []

    def on_learned(self, record, times):
        super().on_learned(record, times)
        self.order.append(record.number)

    def fingerprint(self):
        return json.dumps(self.order).encode()


class Careless(Plain):
    def usable_mask(self, records, _numbers=None):
        return RecordMask.all_usable(len(records))


class Impatient(Plain):
    def add_pending(self, _arm, context=None, times=1):
        codes = self.problem.context_codes(context)
        self.won[codes] = self.won.get(codes, 0) + max(times, 0)


class Forgetting(Plain):
    def __init__(self, problem):
        super().__init__(problem)
        self.expected = 0

    def add_pending(self, _arm, _context=None, times=1):
        self.expected += max(times, 0)

    def choose(self, codes, arms, rng):
        reason = DecisionTrace(f"{self.expected} expected")
        return super().choose(codes, arms, rng)._replace(trace=reason)


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        (Lying, "must be the reason why learn refuses it: None is not"),
        (Vague, "must be the reason why learn refuses it: .* is not 'something'"),
        (Hasty, "learn_many"),
        (Blind, "must change with what was learned"),
        (Sorted, "must be the same for the same records, whatever their order"),
        (Careless, "must agree with rejection_reason"),
        (Impatient, "add_pending must not change what was learned"),
        (Forgetting, "pending and taken back must leave no trace"),
    ],
)
def test_each_broken_promise_is_named(policy, complaint):
    with pytest.raises(DowiseError, match=complaint):
        check_policy(policy, rounds=3)
