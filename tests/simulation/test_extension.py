"""A run that is extended: more trials, rounds, policies or problems, in the same folder."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dowise import DowiseError, load_problem, make_policy, simulate
from dowise.errors import DowiseWarning
from dowise.policies.bernoulli import BernoulliThompsonSampling
from dowise.simulation import Result, jobs

FIRST = {"problems": ["task1"], "policies": ["ucb", "ts"], "horizon": 40, "trials": 23}


def race(out, **changes):
    return simulate(**{"seed": 3, "out": out, **FIRST, **changes})


def stamps_of(run):
    return {file.name: file.stat().st_mtime_ns for file in (run / "results").iterdir()}


@pytest.fixture(autouse=True)
def small_jobs(monkeypatch):
    """So that a small race of quick policies has several."""
    monkeypatch.setattr(jobs, "QUICK_TRIALS_PER_JOB", 10)


@pytest.fixture
def run(tmp_path):
    race(tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("change", "new"),
    [
        ({"trials": 31}, 4),  # trials 23 to 29, and 30
        ({"policies": ["ucb", "ts", "bernoulli-ts"]}, 3),
        ({"policies": ["ids", "ucb", "ts"]}, 3),
        ({"problems": ["task1", "task2"]}, 6),
        ({"horizon": 100}, 6),
        ({"horizon": 70, "trials": 30, "policies": ["ts", "kl-ucb"]}, 7),
    ],
)
def test_the_extended_run_is_the_one_that_would_have_been(run, change, new):
    before, counted = stamps_of(run), []
    more = race(run, **change, progress=lambda done, total: counted.append((done, total)))
    fresh = race(None, **change)
    assert more.frame().equals(fresh.frame())
    assert more.final().equals(fresh.final())
    assert counted[-1][1] - counted[0][0] == new
    after = stamps_of(run)
    assert {name: after[name] for name in before} == before
    assert len(after) - len(before) == new
    again = race(run)
    assert again.frame().equals(race(None).frame())
    assert stamps_of(run) == after


def test_thinned_rounds_are_extended_too(tmp_path):
    race(tmp_path / "run", every=15)
    more = race(tmp_path / "run", every=15, horizon=100)
    assert more.frame().equals(race(None, every=15, horizon=100).frame())
    assert set(race(tmp_path / "run", every=15).frame()["round"]) == {15, 30, 40}


def test_less_than_there_is_shows_what_was_asked_for(run):
    race(run, horizon=60)
    before, manifest = stamps_of(run), (run / "manifest.json").read_bytes()
    less = {"policies": ["ts"], "trials": 15, "horizon": 40}
    assert race(run, **less).frame().equals(race(None, **less).frame())
    assert race(run, **less).final().shape == (15, 1)
    assert stamps_of(run) == before and (run / "manifest.json").read_bytes() == manifest
    shorter = race(run, horizon=20)  # taken from what is longer
    assert shorter.frame().equals(race(None, horizon=20).frame())
    assert shorter.final().equals(race(None, horizon=20).final())
    assert stamps_of(run) == before and (run / "manifest.json").read_bytes() == manifest
    file = sorted((run / "results").glob("*+ts+*+60.parquet"))[0]
    file.unlink()  # now there is something to do, and the manifest says so
    sorted((run / "results").glob("*+ts+*+40.parquet"))[0].unlink()
    assert race(run, horizon=20).frame().equals(shorter.frame())
    assert len([*(run / "results").glob("*+20.parquet")]) == 1
    assert len(json.loads((run / "manifest.json").read_text("utf-8"))["races"]) == 3


def test_options_that_are_equal_are_the_same(tmp_path):
    own = {"policies": ["ucb"], "options": {"ucb": {"exploration": 2}}}
    race(tmp_path / "run", **own)
    before = stamps_of(tmp_path / "run")
    own["options"]["ucb"]["exploration"] = 2.0
    more = race(tmp_path / "run", **own, trials=25)
    assert before.items() <= stamps_of(tmp_path / "run").items()
    assert more.frame().equals(race(None, **own, trials=25).frame())


def test_the_folder_shows_all_that_it_has(run):
    race(run, policies=["bernoulli-ts"], trials=4)
    final = Result.open(run).final()
    assert final.columns.tolist() == ["ucb", "ts", "bernoulli-ts"]
    assert final.notna().sum().tolist() == [23, 23, 4]
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    assert [(each["policies"], each["trials"]) for each in manifest["races"]] == [
        (["ucb", "ts"], 23), (["bernoulli-ts"], 4),
    ]  # fmt: skip
    race(run, horizon=50)
    assert set(Result.open(run, horizon=50).frame()["round"]) == {*range(1, 51)}
    with pytest.raises(DowiseError, match="has no race of 45 rounds: it has 40 and 50"):
        Result.open(run, horizon=45)


def stop_after(jobs):
    def progress(done, _total):
        if done >= jobs:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("change", [{"horizon": 100}, {"trials": 60}, {"policies": ["ucb", "ids"]}])
def test_a_stopped_extension_leaves_a_readable_run_and_goes_on(run, change):
    expected = Result.open(run).frame()
    begun = 8 if "trials" in change else 2 if "horizon" in change else 4
    with pytest.raises(KeyboardInterrupt):
        race(run, **change, progress=stop_after(begun))
    there = Result.open(run).frame()
    there = there[(there["trial"] < 23) & there["policy"].isin(["ucb", "ts"])]
    np.testing.assert_array_equal(there["regret"], expected["regret"])
    counted = []
    more = race(run, **change, progress=lambda done, _total: counted.append(done))
    assert counted[0] == begun
    assert more.frame().equals(race(None, **change).frame())
    if "horizon" in change:
        assert Result.open(run).frame().equals(more.frame())


def test_a_policy_that_decides_by_the_horizon_is_not_extended(tmp_path):
    few = {"trials": 2, "horizon": 3, "policies": ["bayes-optimal", "ts"]}
    race(tmp_path / "run", **few)
    before = stamps_of(tmp_path / "run"), (tmp_path / "run" / "manifest.json").read_bytes()
    complaint = "bayes-optimal decides by the horizon of the race, so its 3 rounds .* a race of 4"
    for horizon in (4, 2):
        with pytest.raises(DowiseError, match=complaint.replace("4", str(horizon))):
            race(tmp_path / "run", **{**few, "horizon": horizon})
    assert (stamps_of(tmp_path / "run"), (tmp_path / "run/manifest.json").read_bytes()) == before
    race(tmp_path / "run", **{**few, "horizon": 4, "policies": ["ts"]})  # the other one can be
    race(tmp_path / "run", **{**few, "trials": 3})  # and this one has more trials


def test_ids_is_extended_unless_intervals_drive_it(tmp_path):
    few = {"trials": 2, "policies": ["ids"], "options": {"ids": {"samples": 50}}}
    race(tmp_path / "run", **few, horizon=5)
    more = race(tmp_path / "run", **few, horizon=8)
    assert more.frame().equals(race(None, **few, horizon=8).frame())
    assert make_policy("ids", load_problem("task1"), interval="optimistic").heeds_horizon


def test_horizon_that_was_given_is_the_policies_own(tmp_path):
    few = {"trials": 2, "policies": ["bayes-optimal"], "options": {"bayes-optimal": {"horizon": 5}}}
    race(tmp_path / "run", **few, horizon=3)
    more = race(tmp_path / "run", **few, horizon=5)
    assert more.frame().equals(race(None, **few, horizon=5).frame())


class Fickle(BernoulliThompsonSampling):
    """Plays by something that no manifest can know of."""

    FIRST_ARM = 0

    def decide(self, context=None, rng=None, allowed=None):
        return super().decide(context, rng, allowed or [self.problem.arms[self.FIRST_ARM]])


def test_rounds_that_come_out_otherwise_are_noticed(tmp_path, monkeypatch):
    first = race(tmp_path / "run", policies=[Fickle], every=15).frame()
    monkeypatch.setattr(Fickle, "FIRST_ARM", 1)
    with pytest.raises(DowiseError, match="Fickle on task1, trials 0 to 9: the first 40 rounds"):
        race(tmp_path / "run", policies=[Fickle], every=15, horizon=60)
    assert Result.open(tmp_path / "run").frame().equals(first)


def test_what_is_damaged_is_not_compared_with(run):
    file = sorted((run / "results").glob("*+ts+*"))[0]
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.warns(DowiseWarning, match="is damaged .* longer trials can't be compared with it"):
        more = race(run, horizon=50)
    assert more.frame().equals(race(None, horizon=50).frame())


KILLED = """
import sys
from dowise import simulate
simulate(["task3"], ["ids"], horizon=int(sys.argv[2]), trials=60, seed=1, workers=2,
         out=sys.argv[1], options={"ids": {"samples": 100}})
"""


@pytest.mark.slow
def test_a_killed_extension_goes_on(tmp_path):
    """Killed hard while it plays longer trials; the shorter race stays whole."""
    out, options = tmp_path / "run", {"ids": {"samples": 100}}
    spec = {"trials": 60, "seed": 1, "options": options, "workers": 2}
    first = simulate(["task3"], ["ids"], horizon=20, out=out, **spec).frame()
    script = tmp_path / "race.py"
    script.write_text(KILLED)
    process = subprocess.Popen([sys.executable, script, out, "500"], start_new_session=True)
    deadline = time.monotonic() + 120
    while len(list(out.glob("results/*+500.parquet"))) < 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert 1 <= len(list(out.glob("results/*+500.parquet"))) < 6
    assert Result.open(out).frame().equals(first)
    more = simulate(["task3"], ["ids"], horizon=500, out=out, **spec).frame()
    assert more.equals(simulate(["task3"], ["ids"], horizon=500, **spec).frame())
