"""check_policy: built-in policies pass, and each broken promise is named."""

import itertools
import json

import numpy as np
import pytest
from support.errors import raises_code
from support.policies import CERTAIN, CONFOUNDED, DOUBTFUL, THREE_VALUES, TWO_ARMS

from dowise import CausalGraph, DowiseError, Problem, check_policy, load_problem, make_policy
from dowise._core.rng import generator
from dowise.policies import (
    BayesianPolicy,
    Choice,
    Decision,
    Policy,
    allowed_arms,
    policy_names,
)
from dowise.policies.base import one_hot
from dowise.policies.decision import DecisionTrace
from dowise.policies.requirements import RecordMask, RecordRequirements

IN_CONTEXT = Problem(CausalGraph.parse("C -> X -> Y; C -> Y"), "Y", context="C")
TASKS = ("task1", "task2")
QUICK = ("commit-kg", "ids", "ts")  # the others are slow with many rounds


def case(name, problems=TASKS, rounds=1000, is_slow=False, **options):
    if name == "bayes-optimal":  # plans eleven rounds of two arms, and plays ten of them
        problems, rounds, options = [TWO_ARMS, IN_CONTEXT], 10, options | {"horizon": 11}
    marks = [pytest.mark.slow] if is_slow else []
    label = "-".join([name, f"{rounds} rounds", *(f"{k}={v}" for k, v in options.items())])
    return pytest.param(name, problems, rounds, options, marks=marks, id=label)


@pytest.mark.parametrize(
    ("name", "problems", "rounds", "options"),
    [
        *(case(name, is_slow=name not in QUICK) for name in policy_names()),
        *(
            case(name, ["task2", CONFOUNDED], 100)
            for name in policy_names()
            if name not in ("bayes-optimal", "commit-kg", "best")
        ),
        *(
            case(name, [*TASKS, THREE_VALUES], 15, is_slow=True, floor=0.2)
            for name in policy_names()
        ),
        *(case(name, [DOUBTFUL, CERTAIN], 40) for name in ("ids", "ts", "certified-ids")),
        case("ts", rounds=20, propensity_samples=50),
        case("bernoulli-ts", rounds=20, propensity_samples=50),
        case("z2-ts", [CONFOUNDED], rounds=20, propensity_samples=50, refresh=0.3),
        case("ucb", rounds=20, exploration=0),
        case("kl-ucb", rounds=20, c=0),
        case("ids", rounds=20, samples=20, interval="optimistic"),
        case("ids", rounds=20, samples=20, interval="pessimistic"),
        case("ids", [*TASKS, DOUBTFUL], 20, samples=30, gain="all", floor=0.1),
        case("ids", [DOUBTFUL], 20, samples=30, gain="rows", about="map", choice="deterministic"),
    ],
)
def test_built_in_policies_keep_the_contract(name, problems, rounds, options):
    check_policy(name, rounds=rounds, problems=problems, **options)


# -- decisions --------------------------------------------------------------------------------


COUNTER = itertools.count()


class Broken:
    """A custom policy with one fault."""

    def __init__(self, problem, fault):
        self.problem, self.fault, self.count = problem, fault, 0

    def decide(self, context=None, rng=None, allowed=None):
        assert rng is not None
        self.count += 1
        arms = self.problem.arms
        if allowed is not None:
            arms = [self.problem.intervention(arm) for arm in allowed]
        arm = arms[0]
        probabilities = one_hot(self.problem, self.problem.arm_index(arm))
        if self.fault == "crash" and context and "no such variable" in context:
            raise KeyError("no such variable")
        if self.fault == "leave":
            raise SystemExit(0)
        if self.fault != "context":
            self.problem.context_codes(context)
        if self.fault == "state":
            arm, probabilities = arms[self.count % len(arms)], None
        if self.fault == "allowed":
            arm = self.problem.arms[0]
        if self.fault == "seed":
            arm, probabilities = arms[next(COUNTER) // 7 % len(arms)], None
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
    ("fault", "promise"),
    [
        ("state", "decide must not change its state"),
        ("allowed", "allowed, but it chose"),
        ("sum", "sum to 1"),
        ("seed", "same seed, same decisions"),
        ("spread", "not allowed must have probability 0"),
        ("zero", "with probability 0"),
        ("context", "the context {'no such variable': '1'} must be a DowiseError"),
        ("crash", "must be a DowiseError, not KeyError"),
        ("leave", "it raises SystemExit: 0"),
        ("warning", "it warns, divide by zero"),
    ],
)
def test_a_fault_of_a_decision_is_named(fault, promise):
    with raises_code("broken-contract", promise):
        check_policy(Broken, rounds=5, fault=fault)


def test_a_custom_policy_without_faults_passes():
    check_policy(Broken, rounds=5, fault=None)


# -- records ----------------------------------------------------------------------------------


class Minimal(Policy):
    """Counts rewards; implements `choose`, `on_learned` and `state`, and nothing else."""

    def __init__(self, problem):
        needed = [problem.reward_position, *problem.context_positions.tolist()]
        super().__init__(problem, requires=RecordRequirements(needed, "it counts them", arm=True))
        self.successes = {}

    def choose(self, codes, arms, rng):
        probabilities = np.zeros(len(self.problem.arms))
        probabilities[arms] = 1 / len(arms)
        reason = f"drawn after {self.successes.get(codes, 0)} successes"
        return Choice(int(rng.choice(arms)), probabilities, DecisionTrace(reason))

    def on_learned(self, record, times):
        before = self.successes.get(record.context, 0)
        self.successes[record.context] = before + times * (1 + record.reward)

    def state(self):
        return {str(key): value for key, value in sorted(self.successes.items()) if value}


def test_a_policy_with_four_methods_keeps_the_contract():
    check_policy(Minimal, rounds=10)


class NoReasons(Minimal):
    def on_learned(self, record, times):
        if record.reward < 0:
            raise DowiseError("the outcome has no reward")
        super().on_learned(record, times)

    def rejection_reason(self, _record):
        return None


class OtherReasons(Minimal):
    def learn(self, record):
        if self.rejection_reason(record) is not None:
            raise DowiseError("something")
        super().learn(record)


class LearnsOneOfMany(Minimal):
    def learn_many(self, records, numbers=None):
        super().learn_many(records.take(np.arange(1)), numbers[:1])


class SameFingerprint(Minimal):
    def fingerprint(self):
        return b"the same"


class OrderedFingerprint(Minimal):
    def __init__(self, problem):
        super().__init__(problem)
        self.order = []

    def on_learned(self, record, times):
        super().on_learned(record, times)
        self.order.append(record.number)

    def fingerprint(self):
        return json.dumps(self.order).encode()


class AcceptsAllInMask(Minimal):
    def usable_mask(self, records, _numbers=None):
        return RecordMask.all_usable(len(records))


class LearnsPending(Minimal):
    def add_pending(self, _arm, context=None, times=1):
        codes = self.problem.context_codes(context)
        self.successes[codes] = self.successes.get(codes, 0) + max(times, 0)


class KeepsPending(Minimal):
    def __init__(self, problem):
        super().__init__(problem)
        self.pending = 0

    def add_pending(self, _arm, _context=None, times=1):
        self.pending += max(times, 0)

    def choose(self, codes, arms, rng):
        trace = DecisionTrace(f"{self.pending} plays pending")
        return super().choose(codes, arms, rng)._replace(trace=trace)


class NeverRetracts(BayesianPolicy):
    def decide(self, context=None, rng=None, allowed=None):
        generator(rng)
        codes, arms = self.problem.context_codes(context), allowed_arms(self.problem, allowed)
        means = self.belief.posterior.mean_distributions(codes)[arms] @ self.problem.payoff.values
        arm = int(arms[means.argmax()])
        return Decision(self.problem.arms[arm], one_hot(self.problem, arm), f"{means}")

    def retract(self, _record):
        pass


@pytest.mark.parametrize(
    ("policy", "promise"),
    [
        (NoReasons, "must be the reason why learn refuses it: None is not"),
        (OtherReasons, "is not 'something'"),
        (LearnsOneOfMany, "learn_many"),
        (SameFingerprint, "must change with what was learned"),
        (OrderedFingerprint, "must be the same for the same records, whatever their order"),
        (AcceptsAllInMask, "must agree with rejection_reason"),
        (LearnsPending, "add_pending must not change what was learned"),
        (KeepsPending, "pending and taken back must leave no trace"),
        (NeverRetracts, "must be a function of its records"),
    ],
)
def test_a_fault_of_learning_is_named(policy, promise):
    with raises_code("broken-contract", promise):
        check_policy(policy, rounds=3)


# -- batches ----------------------------------------------------------------------------------


class BrokenBatches(Policy):
    """UCB with a fault in `decide_many`."""

    def __init__(self, problem, fault):
        super().__init__(problem)
        self.inner, self.fault, self.calls = make_policy("ucb", problem), fault, 0
        self.requires = self.inner.requires
        for name in ("decide", "learn", "learn_many", "retract", "state", "fingerprint"):
            setattr(self, name, getattr(self.inner, name))
        self.add_pending = self.inner.add_pending

    def decide_many(self, contexts, rng=None, allowed=None):
        self.calls += 1
        if self.fault == "any contexts":
            contexts = [self.problem.context_labels((0,) * len(self.problem.context))] * 4
        if self.fault == "any arm":
            allowed = None
        decisions = self.inner.decide_many(contexts, rng, allowed)
        if self.fault == "pending":
            self.inner.add_pending(decisions[0].arm, decisions[0].context)
        if self.fault == "other order" and self.calls == 2:
            return decisions[::-1]
        return decisions[1:] if self.fault == "too few" else decisions


@pytest.mark.parametrize(
    ("fault", "promise"),
    [
        ("too few", "a decision for each of 4 contexts, not 3"),
        ("pending", "decide_many"),
        ("other order", "decide_many: same seed, same decisions"),
        ("any arm", "was not allowed"),
        ("any contexts", "must be a DowiseError"),
    ],
)
def test_a_fault_of_batches_is_named(fault, promise):
    with raises_code("broken-contract", promise):
        check_policy(BrokenBatches, rounds=20, problems=[load_problem("task1")], fault=fault)


def test_correct_batches_pass():
    check_policy(BrokenBatches, rounds=20, problems=[load_problem("task1")], fault=None)
