"""Races: the same bits whoever runs them, resumable, and compiled loops that decide as stepping."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter

import numpy as np
import pytest

from dowise import CausalGraph, DowiseError, Problem, make_policy, register_policy, simulate
from dowise.policies import registry
from dowise.policies.baselines import UCB
from dowise.policies.thompson import ThompsonSampling
from dowise.simulation import Result
from dowise.simulation import spec as specs
from dowise.simulation import trial as trials
from dowise.simulation.trial import make_world, run_trial

QUICK = {"horizon": 40, "trials": 23, "seed": 3}


def race(policies=("ts", "ucb"), **options):
    return simulate(["task1", "task2"], policies, **{**QUICK, **options})


def test_the_frame_is_tidy():
    frame = race().frame()
    assert frame.columns.tolist() == ["problem", "policy", "trial", "round", "regret", "arm"]
    assert len(frame) == 2 * 2 * 23 * 40
    assert set(frame["round"]) == set(range(1, 41))
    one = frame[(frame.problem == "task1") & (frame.policy == "ucb") & (frame.trial == 22)]
    assert one["round"].tolist() == list(range(1, 41))
    assert (np.diff(one["regret"]) >= 0).all()
    assert one["arm"].iloc[:3].tolist() == ["do()", "do(X=0)", "do(X=1)"]


def test_the_same_bits_for_any_number_of_workers(tmp_path):
    alone = race().frame()
    assert race(workers=2, out=tmp_path / "two").frame().equals(alone)


def test_a_policy_is_not_changed_by_its_company():
    both = race().frame()
    alone = simulate(["task2"], ["ts"], **QUICK).frame()
    there = both[(both.problem == "task2") & (both.policy == "ts")]
    np.testing.assert_array_equal(there["regret"], alone["regret"])


def test_every_thins_the_rounds_and_keeps_the_last():
    whole, thin = race().frame(), race(every=15).frame()
    assert sorted(set(thin["round"])) == [15, 30, 40]
    kept = whole[whole["round"].isin([15, 30, 40])].reset_index(drop=True)
    np.testing.assert_array_equal(kept["regret"], thin["regret"])


@pytest.mark.slow
def test_jobs_of_quick_policies_are_larger_with_the_same_results(tmp_path, monkeypatch):
    class Mine(UCB):
        pass

    def raced(out):
        return simulate(["task1"], ["ucb", "ts", Mine], 5, 60, out=tmp_path / out).frame()

    large = raced("large")
    names = [job.policy for job in Result.open(tmp_path / "large")._jobs]
    assert Counter(names) == {"ucb": 2, "ts": 6, "Mine": 6}
    monkeypatch.setattr(specs, "QUICK_TRIALS_PER_JOB", 10)
    assert raced("small").equals(large)


def test_final_is_paired():
    final = race().final()
    assert final.columns.tolist() == ["ts", "ucb"]
    assert final.loc["task1"].index.tolist() == list(range(23))


@pytest.mark.parametrize("problem", ["task1", "task2", "task3", "healthcare", "chordal-10-0.1"])
@pytest.mark.parametrize("policy", ["ts", "ucb", "bernoulli-ts", "ids"])
def test_compiled_loops_decide_as_stepping_does(problem, policy, monkeypatch):
    for number in range(3):
        world = make_world(problem, 7, number)
        quick = run_trial(world, lambda p: make_policy(policy, p), 150, 7, number, 4)
        monkeypatch.setattr(trials, "_compiled_loop", lambda _policy, _world: None)
        slow = run_trial(world, lambda p: make_policy(policy, p), 150, 7, number, 4)
        monkeypatch.undo()
        np.testing.assert_array_equal(quick.arms, slow.arms)
        np.testing.assert_array_equal(quick.regrets, slow.regrets)


@pytest.mark.parametrize("policy", ["ucb", "bernoulli-ts"])
def test_compiled_loops_with_hidden_causes(policy, monkeypatch):
    problem = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y; C <-> Y"), "Y", context="C")
    world = make_world(problem, 0, 0)
    quick = run_trial(world, lambda p: make_policy(policy, p), 200, 0, 0)
    monkeypatch.setattr(trials, "_compiled_loop", lambda _policy, _world: None)
    slow = run_trial(world, lambda p: make_policy(policy, p), 200, 0, 0)
    np.testing.assert_array_equal(quick.arms, slow.arms)


def test_three_valued_rewards_are_played_alike(monkeypatch):
    graph = CausalGraph.parse("Z -> X -> Y; Z -> Y")
    worth = {"bad": 2, "fair": 5, "good": 3}
    problem = Problem(graph, "Y", non_manipulable="Z", reward_values=worth)
    world = make_world(problem, 0, 1)
    for policy in ("ts", "ucb", "bernoulli-ts"):
        quick = run_trial(world, lambda p, name=policy: make_policy(name, p), 100, 0, 1)
        monkeypatch.setattr(trials, "_compiled_loop", lambda _policy, _world: None)
        slow = run_trial(world, lambda p, name=policy: make_policy(name, p), 100, 0, 1)
        monkeypatch.undo()
        np.testing.assert_array_equal(quick.arms, slow.arms)


class Watching(ThompsonSampling):
    """Writes down what it is shown."""

    def __init__(self, problem):
        super().__init__(problem)
        self.seen, self.outcomes = [], []

    def observe(self, arm, outcome):
        self.outcomes.append(outcome)
        super().observe(arm, outcome)

    def decide(self, context=None, rng=None, allowed=None):
        self.seen.append(dict(context))
        return super().decide(context, rng, allowed)


class Stubborn(Watching):
    """Always the last arm, whatever it has seen."""

    def decide(self, context=None, rng=None, allowed=None):
        super().decide(context, rng, allowed)
        return super().decide(context, rng, [self.problem.arms[-1]])


def test_policies_of_a_trial_meet_the_same_contexts_and_outcomes():
    """The same arm in the same round has the same outcome; other rounds are other draws."""
    made = []

    def keep(kind):
        def make(problem):
            made.append(kind(problem))
            return made[-1]

        return make

    world = make_world("task2", 1, 5)
    chosen = [run_trial(world, keep(kind), 60, 1, 5).arms for kind in (Watching, Stubborn)]
    assert made[0].seen == made[1].seen[::2]
    assert len({json.dumps(context) for context in made[0].seen}) == 2
    assert (chosen[1] == 3).all() and len(set(chosen[0].tolist())) > 1
    same = np.flatnonzero(chosen[0] == 3)
    assert len(same) > 5
    assert all(made[0].outcomes[t] == made[1].outcomes[t] for t in same)
    assert len({json.dumps(made[1].outcomes[t]) for t in range(60)}) > 5


def test_observational_records_warm_up_who_can_use_them():
    """200 records of what the world does by itself: Thompson Sampling gains, by more than four
    standard errors of the paired difference over 60 trials; UCB on task2, where do() is no arm,
    plays as before."""
    cold = simulate(["task2"], ["ts", "ucb"], horizon=100, trials=60).final()
    warm = simulate(["task2"], ["ts", "ucb"], horizon=100, trials=60, observational=200).final()
    gained = cold["ts"] - warm["ts"]
    assert gained.mean() > 4 * gained.std() / np.sqrt(60)
    np.testing.assert_array_equal(cold["ucb"], warm["ucb"])


def test_a_run_goes_on_where_it_stopped(tmp_path):
    whole = race(out=tmp_path / "run")
    expected = whole.frame()
    files = sorted((tmp_path / "run" / "results").glob("*.parquet"))
    assert len(files) == 8  # three of ts on each problem, and one of ucb, which is quick
    stamps = {file: file.stat().st_mtime_ns for file in files}
    for file in files[::3]:
        file.unlink()
    counted = []
    again = race(out=tmp_path / "run", progress=lambda done, total: counted.append((done, total)))
    assert counted[0] == (5, 8) and counted[-1] == (8, 8)
    assert again.frame().equals(expected)
    kept = [file for i, file in enumerate(files) if i % 3]
    assert all(file.stat().st_mtime_ns == stamps[file] for file in kept)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 4},
        {"options": {"ucb": {"exploration": 1.0}}},
        {"policies": ["ts", ("ucb", "kl-ucb")]},
        {"every": 2},
        {"observational": 5},
    ],
)
def test_other_simulations_in_the_same_directory_have_other_files(tmp_path, change):
    first = race(out=tmp_path / "run").frame()
    other = race(out=tmp_path / "run", **change)
    assert other.frame().equals(race(**change).frame())
    assert race(out=tmp_path / "run").frame().equals(first)


def test_a_directory_with_other_contents_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(DowiseError, match="is not a run directory"):
        race(out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_run_can_be_opened_by_its_folder(tmp_path):
    made = race(out=tmp_path / "run")
    opened = Result.open(tmp_path / "run")
    assert opened.frame().equals(made.frame()) and opened.final().equals(made.final())
    with pytest.raises(DowiseError, match="is not a run directory"):
        Result.open(tmp_path)


def test_a_run_that_was_killed_at_its_very_start_is_no_obstacle(tmp_path):
    (tmp_path / "run" / "results").mkdir(parents=True)
    assert len(race(out=tmp_path / "run").frame()) == 2 * 2 * 23 * 40


def test_numpy_numbers_and_arrays_are_welcome(tmp_path):
    options = {"ts": {"prior": {"Y": np.ones((2, 2, 2))}}}
    spec = {"horizon": np.int64(5), "trials": np.int64(2), "options": options}
    for _ in range(2):
        simulate(["task1"], ["ts"], out=tmp_path / "run", **spec)

    def make(problem, thing=None):
        return make_policy("ts", problem) if thing else None

    with pytest.raises(DowiseError, match="expected numbers, strings, lists"):
        simulate(["task1"], [make], options={"make": {"thing": object()}}, horizon=2, trials=1)


KILLED = """
import sys
import tempfile
from dowise import simulate
simulate(["task3"], ["ids"], horizon=400, trials=60, seed=1, workers=2, out=sys.argv[1],
         options={"ids": {"samples": 100}})
"""


@pytest.mark.slow
def test_a_killed_run_is_resumed(tmp_path):
    """Killed hard with some jobs done and some under way; then run again to the end."""
    out = tmp_path / "run"
    script = tmp_path / "race.py"
    script.write_text(KILLED)
    process = subprocess.Popen([sys.executable, script, out], start_new_session=True)
    deadline = time.monotonic() + 60
    while len(list(out.glob("results/*.parquet"))) < 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = len(list(out.glob("results/*.parquet")))
    assert 1 <= done < 6
    options = {"ids": {"samples": 100}}
    spec = {"horizon": 400, "trials": 60, "seed": 1, "options": options}
    resumed = simulate(["task3"], ["ids"], out=out, **spec).frame()
    assert resumed.equals(simulate(["task3"], ["ids"], workers=2, **spec).frame())


class Seeded(Stubborn):
    """Plays the arm that its seed says."""

    def __init__(self, problem, seed=0):
        super().__init__(problem)
        self.seed = seed

    def decide(self, context=None, rng=None, allowed=None):
        arm = self.problem.arms[self.seed % len(self.problem.arms)]
        return ThompsonSampling.decide(self, context, rng, allowed or [arm])


def test_a_policy_with_a_seed_gets_another_in_every_trial():
    race = {"horizon": 3, "trials": 30}
    varied = simulate(["task1"], [Seeded], **race).frame()
    assert (varied.groupby("trial")["arm"].nunique() == 1).all()
    assert varied["arm"].nunique() == 3
    fixed = simulate(["task1"], [Seeded], options={"Seeded": {"seed": 4}}, **race).frame()
    assert set(fixed["arm"]) == {"do(X=0)"}


def test_a_race_that_is_refused_leaves_no_folder_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def mine(problem, thing=None):  # noqa: ARG001
        return make_policy("random", problem)

    with pytest.raises(DowiseError, match="an option of 'mine'"):
        simulate(["task1"], [("mine", mine)], 2, 1, options={"mine": {"thing": object()}})
    assert not [*tmp_path.iterdir()]


def test_an_error_says_whose_it_is():
    class Bad(Stubborn):
        def decide(self, context=None, rng=None, allowed=None):
            return super().decide(context, rng, allowed).arm  # not a decision

    with pytest.raises(DowiseError, match="Bad on task1, trial 0: decide must return a Dec"):
        simulate(["task1"], [Bad], horizon=5, trials=2)


def test_a_changed_policy_is_not_resumed(tmp_path):
    def make(first):
        if first:
            return lambda problem: make_policy("ts", problem)
        return lambda problem: make_policy("ucb", problem)

    race = {"horizon": 5, "trials": 2, "out": tmp_path / "run"}
    simulate(["task1"], [("mine", make(True))], **race)
    changed = simulate(["task1"], [("mine", make(False))], **race).frame()
    assert changed.equals(simulate(["task1"], [("mine", make(False))], 5, 2).frame())


def test_the_horizon_of_the_race_is_the_policies_own():
    final = simulate(["task1"], ["bayes-optimal", "ts"], horizon=4, trials=3).final()
    assert final.notna().all().all()


def test_a_policy_of_ones_own(monkeypatch):
    monkeypatch.setattr(registry, "_POLICIES", dict(registry._POLICIES))
    register_policy("stubborn")(Stubborn)
    named = simulate(["task1"], ["stubborn"], horizon=5, trials=2).frame()
    assert set(named["arm"]) == {"do(X=1)"}
    given = simulate(["task1"], [Stubborn], horizon=5, trials=2, workers=2).frame()
    assert set(given["policy"]) == {"Stubborn"}
    np.testing.assert_array_equal(named["regret"], given["regret"])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((["task1"], "ids"), "pass lists"),
        ((["task1"], []), "at least one problem and one policy"),
        ((["taks1"], ["ts"]), "task1"),
        ((["task1"], ["tss"]), "unknown policy 'tss'"),
        ((["task1", "task1"], ["ts"]), "two problems are called 'task1'"),
        ((["task1"], ["ts", "ts"]), "two policies are called 'ts'"),
        (([3], ["ts"]), "3 is not a problem"),
        ((["task1"], [3]), "3 is not a policy"),
        ((["task1"], [("a",)]), "is not a policy"),
        ((None, ["ts"]), "pass lists"),
        ((["child"], ["bayes-optimal"]), "states"),
        ((["chordal-2-0.1"], ["ts"]), "size=2"),
    ],
)
def test_bad_races_are_explained(arguments, complaint):
    with pytest.raises(DowiseError, match=complaint):
        simulate(*arguments, horizon=3, trials=1)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"horizon": 0}, "horizon=0"),
        ({"trials": 1.5}, "trials=1.5"),
        ({"workers": 0}, "workers=0"),
        ({"every": 0}, "every=0"),
        ({"observational": -1}, "observational=-1"),
        ({"options": {"ids": {}}}, "options for 'ids'"),
        ({"options": {"ts": {"prior": -1}}}, "prior"),
        ({"options": {"ts": {"priro": 1}}}, "did you mean 'prior'"),
        ({"options": {"ts": 5}}, "expected {policy: {option: value}}"),
    ],
)
def test_bad_options_are_explained(options, complaint):
    with pytest.raises(DowiseError, match=complaint):
        simulate(["task1"], ["ts"], **{"horizon": 3, "trials": 1, **options})
