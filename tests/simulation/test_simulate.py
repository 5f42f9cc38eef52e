"""`simulate`: its table, paired trials, compiled loops, custom policies and invalid arguments."""

import json
import tempfile
from collections import Counter

import numpy as np
import pytest
from support.errors import raises_code

from dowise import CausalGraph, Problem, make_policy, register_policy, simulate
from dowise.policies import registry
from dowise.policies.baselines import UCB
from dowise.policies.thompson import ThompsonSampling
from dowise.simulation import Result
from dowise.simulation import spec as specs
from dowise.simulation import trial as trials
from dowise.simulation.trial import make_world, run_trial

QUICK = {"horizon": 40, "trials": 23, "seed": 3}
HIDDEN = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y; C <-> Y"), "Y", context="C")
THREE_VALUES = Problem(
    CausalGraph.parse("Z -> X -> Y; Z -> Y"),
    "Y",
    non_manipulable="Z",
    reward_values={"bad": 2, "fair": 5, "good": 3},
)


def run(policies=("ts", "ucb"), **options):
    return simulate(["task1", "task2"], policies, **{**QUICK, **options})


def test_frame_has_a_row_per_round():
    frame = run().frame()
    assert frame.columns.tolist() == ["problem", "policy", "trial", "round", "regret", "arm"]
    assert len(frame) == 2 * 2 * 23 * 40
    trial = frame[(frame.problem == "task1") & (frame.policy == "ucb") & (frame.trial == 22)]
    assert trial["round"].tolist() == list(range(1, 41))
    assert (np.diff(trial["regret"]) >= 0).all()
    assert trial["arm"].iloc[:3].tolist() == ["do()", "do(X=0)", "do(X=1)"]


def test_final_has_a_column_per_policy():
    final = run().final()
    assert final.columns.tolist() == ["ts", "ucb"]
    assert final.loc["task1"].index.tolist() == list(range(23))


def test_bits_do_not_depend_on_workers_or_other_policies(tmp_path):
    frame = run().frame()
    assert run(workers=2, out=tmp_path / "two").frame().equals(frame)
    assert Result.open(tmp_path / "two").frame().equals(frame)
    single = simulate(["task2"], ["ts"], **QUICK).frame()
    rows = frame[(frame.problem == "task2") & (frame.policy == "ts")]
    np.testing.assert_array_equal(rows["regret"], single["regret"])


def test_every_keeps_multiples_and_the_last_round():
    frame, thinned = run().frame(), run(every=15).frame()
    assert sorted(set(thinned["round"])) == [15, 30, 40]
    selected = frame[frame["round"].isin([15, 30, 40])]
    np.testing.assert_array_equal(selected["regret"], thinned["regret"])


@pytest.mark.slow
def test_jobs_of_quick_policies_are_larger_with_the_same_results(tmp_path, monkeypatch):
    class Custom(UCB):
        pass

    def frame_in(out):
        return simulate(["task1"], ["ucb", "ts", Custom], 5, 60, out=tmp_path / out).frame()

    large = frame_in("large")
    jobs = Result.open(tmp_path / "large")._jobs
    assert Counter(job.policy for job in jobs) == {"ucb": 2, "ts": 6, "Custom": 6}
    monkeypatch.setattr(specs, "QUICK_TRIALS_PER_JOB", 10)
    assert frame_in("small").equals(large)


# -- trials ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "problem",
    ["task1", "task2", "task3", "healthcare", "chordal-10-0.1", HIDDEN, THREE_VALUES],
    ids=lambda problem: problem if isinstance(problem, str) else "",
)
@pytest.mark.parametrize("policy", ["ts", "ucb", "bernoulli-ts", "ids"])
def test_compiled_loops_decide_like_single_decisions(problem, policy, monkeypatch):
    for number in range(2):
        world = make_world(problem, 7, number)
        fast = run_trial(world, lambda p: make_policy(policy, p), 150, 7, number, 4)
        monkeypatch.setattr(trials, "_compiled_loop", lambda _policy, _world: None)
        slow = run_trial(world, lambda p: make_policy(policy, p), 150, 7, number, 4)
        monkeypatch.undo()
        np.testing.assert_array_equal(fast.arms, slow.arms)
        np.testing.assert_array_equal(fast.regrets, slow.regrets)


class RecordingSampling(ThompsonSampling):
    """Thompson Sampling that records its contexts and outcomes."""

    def __init__(self, problem):
        super().__init__(problem)
        self.contexts, self.outcomes = [], []

    def observe(self, arm, outcome):
        self.outcomes.append(outcome)
        super().observe(arm, outcome)

    def decide(self, context=None, rng=None, allowed=None):
        self.contexts.append(dict(context))
        return super().decide(context, rng, allowed)


class LastArm(RecordingSampling):
    def decide(self, context=None, rng=None, allowed=None):  # noqa: ARG002
        return super().decide(context, rng, [self.problem.arms[-1]])


def test_policies_of_a_trial_face_the_same_contexts_and_outcomes():
    policies = []

    def recorded(kind):
        def make(problem):
            policies.append(kind(problem))
            return policies[-1]

        return make

    world = make_world("task2", 1, 5)
    kinds = (RecordingSampling, LastArm)
    thompson, last = (run_trial(world, recorded(kind), 60, 1, 5).arms for kind in kinds)
    assert policies[0].contexts == policies[1].contexts
    assert len({json.dumps(context) for context in policies[0].contexts}) == 2
    assert (last == 3).all() and len(set(thompson.tolist())) > 1
    equal = np.flatnonzero(thompson == 3)
    assert len(equal) > 5
    assert all(policies[0].outcomes[t] == policies[1].outcomes[t] for t in equal)
    assert len({json.dumps(outcome) for outcome in policies[1].outcomes}) > 5


def test_observational_records_are_shown_to_policies_that_can_use_them():
    """Thompson Sampling gains by more than four standard errors of the paired difference; for UCB
    do() is not an arm of task2."""
    cold = simulate(["task2"], ["ts", "ucb"], horizon=100, trials=60).final()
    warm = simulate(["task2"], ["ts", "ucb"], horizon=100, trials=60, observational=200).final()
    gain = cold["ts"] - warm["ts"]
    assert gain.mean() > 4 * gain.std() / np.sqrt(60)
    np.testing.assert_array_equal(cold["ucb"], warm["ucb"])


# -- custom policies -------------------------------------------------------------------------------


class Seeded(ThompsonSampling):
    """Plays the arm with the index of its seed."""

    def __init__(self, problem, seed=0):
        super().__init__(problem)
        self.seed = seed

    def decide(self, context=None, rng=None, allowed=None):  # noqa: ARG002
        arm = self.problem.arms[self.seed % len(self.problem.arms)]
        return super().decide(context, rng, [arm])


def test_policy_with_a_seed_gets_another_one_in_every_trial():
    spec = {"horizon": 3, "trials": 30}
    varied = simulate(["task1"], [Seeded], **spec).frame()
    assert (varied.groupby("trial")["arm"].nunique() == 1).all()
    assert varied["arm"].nunique() == 3
    fixed = simulate(["task1"], [Seeded], options={"Seeded": {"seed": 4}}, **spec).frame()
    assert set(fixed["arm"]) == {"do(X=0)"}


def test_policy_with_a_horizon_gets_that_of_the_simulation():
    final = simulate(["task1"], ["bayes-optimal", "ts"], horizon=4, trials=3).final()
    assert final.notna().all().all()


def test_registered_policy_equals_its_class(monkeypatch):
    monkeypatch.setattr(registry, "_POLICIES", dict(registry._POLICIES))
    register_policy("last-arm")(LastArm)
    by_name = simulate(["task1"], ["last-arm"], horizon=5, trials=2).frame()
    assert set(by_name["arm"]) == {"do(X=1)"}
    by_class = simulate(["task1"], [LastArm], horizon=5, trials=2, workers=2).frame()
    assert set(by_class["policy"]) == {"LastArm"}
    np.testing.assert_array_equal(by_name["regret"], by_class["regret"])


def test_changed_policy_is_run_again(tmp_path):
    def make(is_thompson):
        if is_thompson:
            return lambda problem: make_policy("ts", problem)
        return lambda problem: make_policy("ucb", problem)

    spec = {"horizon": 5, "trials": 2}
    simulate(["task1"], [("custom", make(True))], **spec, out=tmp_path / "run")
    changed = simulate(["task1"], [("custom", make(False))], **spec, out=tmp_path / "run").frame()
    assert changed.equals(simulate(["task1"], [("custom", make(False))], **spec).frame())


def test_error_of_a_policy_has_its_label_problem_and_trial():
    class Invalid(RecordingSampling):
        def decide(self, context=None, rng=None, allowed=None):
            return super().decide(context, rng, allowed).arm  # not a decision

    with raises_code("invalid-type", "Invalid on task1, trial 0: decide must return a Decision"):
        simulate(["task1"], [Invalid], horizon=5, trials=2)


# -- arguments -------------------------------------------------------------------------------------


def test_numpy_numbers_and_arrays_are_valid(tmp_path):
    options = {"ts": {"prior": {"Y": np.ones((2, 2, 2))}}}
    spec = {"horizon": np.int64(5), "trials": np.int64(2), "options": options}
    for _ in range(2):
        simulate(["task1"], ["ts"], out=tmp_path / "run", **spec)


def test_option_that_can_not_be_digested_leaves_no_files(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def make(problem, thing=None):  # noqa: ARG001
        return make_policy("random", problem)

    with raises_code("invalid-type", "'custom'"):
        simulate(["task1"], [("custom", make)], 2, 1, options={"custom": {"thing": object()}})
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("problems", "policies", "code", "name"),
    [
        (["task1"], "ids", "invalid-type", "pass lists"),
        (None, ["ts"], "invalid-type", "pass lists"),
        (["task1"], [], "missing-value", "policy"),
        (["taks1"], ["ts"], "unknown-problem", "task1"),
        (["task1"], ["tss"], "unknown-policy", "'tss'"),
        (["task1", "task1"], ["ts"], "duplicate-name", "'task1'"),
        (["task1"], ["ts", "ts"], "duplicate-name", "'ts'"),
        ([3], ["ts"], "invalid-type", "3"),
        ([("a", "task1", 3)], ["ts"], "invalid-type", "task1"),
        (["task1"], [3], "invalid-type", "3"),
        (["task1"], [("a",)], "invalid-type", "policy"),
        (["child"], ["bayes-optimal"], "too-large", "states"),
        (["chordal-2-0.1"], ["ts"], "invalid-number", "size=2"),
    ],
)
def test_invalid_problems_and_policies_are_rejected(problems, policies, code, name):
    with raises_code(code, name):
        simulate(problems, policies, horizon=3, trials=1)


@pytest.mark.parametrize(
    ("options", "code", "name"),
    [
        ({"horizon": 0}, "invalid-number", "horizon=0"),
        ({"trials": 1.5}, "invalid-number", "trials=1.5"),
        ({"workers": 0}, "invalid-number", "workers=0"),
        ({"every": 0}, "invalid-number", "every=0"),
        ({"observational": -1}, "invalid-number", "observational=-1"),
        ({"expected": 2}, "invalid-type", "expected=2"),
        ({"options": {"ids": {}}}, "unknown-policy", "'ids'"),
        ({"options": {"ts": {"prior": -1}}}, "invalid-number", "prior"),
        ({"options": {"ts": {"priro": 1}}}, "unknown-option", "'prior'"),
        ({"options": {"ts": 5}}, "invalid-type", "{policy: {option: value}}"),
    ],
)
def test_invalid_options_are_rejected(options, code, name):
    with raises_code(code, name):
        simulate(["task1"], ["ts"], **{"horizon": 3, "trials": 1, **options})
