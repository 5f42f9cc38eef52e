"""Run directories: whatever happens to the files, no other numbers come out."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from dowise import DowiseError, simulate
from dowise.errors import DowiseWarning
from dowise.simulation import Result
from dowise.simulation import spec as specs
from dowise.simulation.run_directory import (
    CodedStrings,
    DamagedError,
    Job,
    JobResult,
    from_parquet,
    to_parquet,
    verify,
    write_checked_json,
)

FIRST = {"problems": ["task1"], "policies": ["ucb", "ts"], "horizon": 30, "trials": 23, "seed": 3}
DIGEST = "ab" * 32


def run_in(out, **changes):
    return simulate(**{**FIRST, "out": out, **changes})


def files_of(run):
    return sorted((run / "results").glob("*.parquet"))


def stamps_of(run):
    return {file.name: file.stat().st_mtime_ns for file in files_of(run)}


def flip(path, places=range(60, 68)):
    content = bytearray(path.read_bytes())
    for place in places:
        content[place] ^= 1
    path.write_bytes(content)


@pytest.fixture(autouse=True)
def small_jobs(monkeypatch):
    """Several jobs even for quick policies."""
    monkeypatch.setattr(specs, "QUICK_TRIALS_PER_JOB", 10)


@pytest.fixture
def run(tmp_path):
    run_in(tmp_path / "run")
    return tmp_path / "run"


def test_a_changed_byte_anywhere_is_noticed():
    rounds = np.array([1, 2, 3], np.int32)
    arms = CodedStrings.from_positions(["do()", "do(X=1)"], np.array([[0, 1, 0]], np.int32))
    result = JobResult([0], rounds, np.array([[0.0, 0.5, 0.5]]), arms)
    content = to_parquet(result.to_table(Job("a", "b", 0, 0, 3, DIGEST)), DIGEST)
    verify(content, DIGEST)
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        with pytest.raises(DamagedError, match="is damaged"):
            verify(bytes(changed), DIGEST)
    with pytest.raises(DamagedError, match="belongs to another job"):
        verify(content, "cd" * 32)
    for odd in (b"", content[:-1], content[1:], content + b" "):
        with pytest.raises(DamagedError, match="is damaged"):
            verify(odd, DIGEST)


@pytest.mark.parametrize("has_expected", [True, False])
@pytest.mark.parametrize("rows", [3, 400_000])  # one row group, and two
def test_results_are_read_back_bit_by_bit(has_expected, rows):
    rng, shape = np.random.default_rng(rows), (3, rows)
    arms = CodedStrings.from_positions(["b", "a", "c"], rng.integers(0, 3, shape, np.int32))
    expected = rng.random(shape) if has_expected else None
    rounds = np.arange(1, rows + 1, dtype=np.int32)
    result = JobResult([4, 5, 6], rounds, rng.random(shape), arms, expected)
    table = result.to_table(Job("a", "b", 4, 6, rows, DIGEST))
    read = from_parquet(to_parquet(table, DIGEST))
    assert read.to_pandas().equals(table.to_pandas())
    assert not any(column.nullable for column in read.schema)


def test_damaged_results_are_never_shown(run):
    flip(files_of(run)[1])
    for ask in (Result.open(run).frame, Result.open(run).final, Result.open(run).as_dict):
        with pytest.raises(DowiseError, match=r"\.parquet is damaged .* runs its trials again"):
            ask()


def test_damaged_jobs_are_run_again_with_a_warning(run):
    expected, stamps = Result.open(run).frame(), stamps_of(run)
    flip(files_of(run)[1])
    files_of(run)[2].write_bytes(b"")
    counted = []
    with pytest.warns(DowiseWarning, match=r"is damaged .*: its trials are run again \(and 1 more"):
        again = run_in(run, progress=lambda done, total: counted.append((done, total)))
    assert counted[0] == (4, 6) and counted[-1] == (6, 6)
    assert again.frame().equals(expected)
    kept = [stamps_of(run)[name] == stamp for name, stamp in stamps.items()]
    assert kept == [True, False, False, True, True, True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_in(run)


def test_a_file_of_another_job_is_noticed(run):
    expected = Result.open(run).frame()
    first, second = files_of(run)[:2]
    first.write_bytes(second.read_bytes())
    with pytest.raises(DowiseError, match="belongs to another job"):
        Result.open(run).final()
    with pytest.warns(DowiseWarning, match="belongs to another job.* its trials are run again"):
        assert run_in(run).frame().equals(expected)


def test_an_unreadable_file_is_not_a_missing_one(run, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied", str(path))

    name, usual = files_of(run)[0].name, Path.read_bytes
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda p: refused(p) if p.name == name else usual(p))
        for ask in (Result.open(run).frame, lambda: run_in(run)):
            with pytest.raises(DowiseError, match=r"\.parquet: can't be read \(Permission denied"):
                ask()
    file = files_of(run)[0]
    file.unlink()
    file.mkdir()
    with pytest.raises(DowiseError, match=r"can't be read \(Is a directory\)"):
        run_in(run)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"seed": 3', '"seed": 4'),
        lambda text: text[: len(text) // 2],
        lambda _text: "",
        lambda _text: "[1]",
        lambda _text: '{"spec": {"seed": 3}}',
    ],
)
def test_a_damaged_list_of_jobs_is_refused_and_repaired_by_the_same_call(run, change):
    expected = Result.open(run).frame()
    (file,) = (run / "calls").iterdir()
    file.write_text(change(file.read_text("utf-8")), "utf-8")
    with pytest.raises(DowiseError, match=r"\.json is damaged"):
        Result.open(run)
    run_in(run)
    assert Result.open(run).frame().equals(expected)


@pytest.mark.parametrize("content", [{}, {"spec": {}, "jobs": [{}]}, {"jobs": 7}])
def test_a_list_of_jobs_with_another_layout_is_refused(run, content):
    (file,) = (run / "calls").iterdir()
    write_checked_json(file, content)
    with pytest.raises(DowiseError, match="unknown layout"):
        Result.open(run)


def test_directories_of_earlier_versions_are_refused(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "results").mkdir()
    for ask in (lambda: run_in(tmp_path), lambda: Result.open(tmp_path)):
        with pytest.raises(DowiseError, match="written by an earlier version of dowise"):
            ask()
    assert {path.name for path in tmp_path.iterdir()} == {"manifest.json", "results"}


def test_a_file_in_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(DowiseError, match="run is a file, or is inside one"):
        run_in(tmp_path / "run")


def test_nothing_is_created_if_an_extra_is_missing(tmp_path, monkeypatch):
    for library, how in (("cloudpickle", {"workers": 2}), ("distributed", {"cluster": "tcp://x"})):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(DowiseError, match=f"needs {library}, which is not installed"):
            run_in(tmp_path / "run", **how)
    assert not (tmp_path / "run").exists()


def test_the_list_of_jobs_describes_the_call(run):
    (file,) = (run / "calls").iterdir()
    call = json.loads(file.read_text("utf-8"))
    assert call["spec"]["seed"] == 3 and call["spec"]["dowise"]
    assert 'reward = "Y"' in call["spec"]["problems"]["task1"]["problem"]
    assert (call["horizon"], call["trials"], len(call["jobs"])) == (30, 23, 6)
    assert {"machine", "started"} <= {*call}


@pytest.mark.parametrize("where", [".", "results", "calls"])
def test_drafts_of_killed_calls_are_no_obstacle_and_removed_once_old(run, where):
    old, young, own = (run / where / f".{name}.draft" for name in ("0" * 12, "1" * 12, "notes"))
    for draft in (old, young, own):
        draft.touch()
    hours_ago = time.time() - 2 * 3600
    for draft in (old, own):
        os.utime(draft, (hours_ago, hours_ago))
    run_in(run)
    assert old.exists() == (where == ".") and young.exists() and own.exists()


def test_concurrent_calls_in_one_directory_are_all_listed(tmp_path):
    run_in(None, policies=["ucb", "kl-ucb"])  # compiles
    out = tmp_path / "run"
    threads = [
        threading.Thread(target=run_in, args=(out,), kwargs={"policies": [policy]})
        for policy in ("ucb", "kl-ucb")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {*Result.open(out).final().columns} == {"ucb", "kl-ucb"}


@pytest.mark.parametrize(
    ("change", "new"),
    [
        ({"trials": 31}, 4),  # trials 20 to 29, and 30
        ({"policies": ["ucb", "ts", "bernoulli-ts"]}, 3),
        ({"policies": ["kl-ucb", "ucb", "ts"]}, 3),
        ({"problems": ["task1", "task2"]}, 6),
        ({"horizon": 50}, 6),
        ({"trials": 15}, 2),
    ],
)
def test_an_extended_run_equals_a_new_one_and_computes_only_what_is_missing(run, change, new):
    before, counted = stamps_of(run), []
    more = run_in(run, **change, progress=lambda done, total: counted.append((done, total)))
    fresh = run_in(None, **change)
    assert more.frame().equals(fresh.frame()) and more.final().equals(fresh.final())
    assert counted[-1][1] - counted[0][0] == new
    after = stamps_of(run)
    assert {name: after[name] for name in before} == before
    assert len(after) - len(before) == new
    assert run_in(run).frame().equals(run_in(None).frame())
    assert stamps_of(run) == after


def test_equal_options_have_the_same_files(tmp_path):
    own = {"policies": ["ucb"], "options": {"ucb": {"exploration": 2}}}
    run_in(tmp_path / "run", **own)
    before = stamps_of(tmp_path / "run")
    own["options"]["ucb"]["exploration"] = 2.0
    run_in(tmp_path / "run", **own)
    assert stamps_of(tmp_path / "run") == before


def test_open_shows_all_calls_with_the_same_settings(run):
    run_in(run, policies=["bernoulli-ts"], trials=4)
    run_in(run, policies=["ts"], trials=31)
    final = Result.open(run).final()
    assert {*final.columns} == {"ucb", "ts", "bernoulli-ts"}
    assert final[["ucb", "ts", "bernoulli-ts"]].notna().sum().tolist() == [23, 31, 4]
    run_in(run, horizon=40)
    assert set(Result.open(run, horizon=40).frame()["round"]) == {*range(1, 41)}
    with pytest.raises(DowiseError, match="no simulation with horizon 45: it has 30 and 40"):
        Result.open(run, horizon=45)


def test_open_shows_the_newest_policy_of_a_label(run):
    run_in(run, options={"ucb": {"exploration": 0.5}})
    changed = run_in(None, options={"ucb": {"exploration": 0.5}})
    assert Result.open(run).frame().equals(changed.frame())


def stop_after(jobs):
    def progress(done, _total):
        if done >= jobs:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize(
    "change", [{"horizon": 50}, {"trials": 60}, {"policies": ["ucb", "kl-ucb"]}]
)
def test_a_stopped_extension_leaves_a_readable_run_and_resumes(run, change):
    expected = Result.open(run).frame()
    begun = {"horizon": 2, "trials": 6, "policies": 4}[next(iter(change))]
    with pytest.raises(KeyboardInterrupt):
        run_in(run, **change, progress=stop_after(begun))
    shown = Result.open(run).frame()
    shown = shown[(shown["trial"] < 23) & shown["policy"].isin(["ucb", "ts"])]
    np.testing.assert_array_equal(shown["regret"], expected["regret"])
    counted = []
    more = run_in(run, **change, progress=lambda done, _total: counted.append(done))
    assert counted[0] == begun
    assert more.frame().equals(run_in(None, **change).frame())


KILLED = """
import sys
from dowise import simulate
simulate(["task3"], ["ids"], horizon=500, trials=60, seed=1, workers=2,
         out=sys.argv[1], options={"ids": {"samples": 100}})
"""


@pytest.mark.slow
def test_a_killed_extension_resumes(tmp_path):
    """Killed hard during longer trials; the shorter simulation stays whole."""
    out, options = tmp_path / "run", {"ids": {"samples": 100}}
    spec = {"trials": 60, "seed": 1, "options": options, "workers": 2}
    first = simulate(["task3"], ["ids"], horizon=20, out=out, **spec).frame()
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    process = subprocess.Popen([sys.executable, script, out], start_new_session=True)
    deadline = time.monotonic() + 120
    while len(files_of(out)) < 7 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert 7 <= len(files_of(out)) < 12
    assert Result.open(out).frame().equals(first)
    more = simulate(["task3"], ["ids"], horizon=500, out=out, **spec).frame()
    assert more.equals(simulate(["task3"], ["ids"], horizon=500, **spec).frame())
