"""Run directories: resuming, extending, and damaged files, which never change the results."""

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
from support.errors import raises_code

from dowise import simulate
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

SPEC = {"problems": ["task1"], "policies": ["ucb", "ts"], "horizon": 30, "trials": 23, "seed": 3}
DIGEST = "ab" * 32


def run_in(out, **changes):
    return simulate(**{**SPEC, "out": out, **changes})


def count_jobs(counts):
    """Return a progress callback that appends (finished jobs, all jobs) to a list."""
    return lambda finished, total: counts.append((finished, total))


def files_of(run):
    return sorted((run / "results").glob("*.parquet"))


def times_of(run):
    return {file.name: file.stat().st_mtime_ns for file in files_of(run)}


def flip_bits(path, positions=range(60, 68)):
    content = bytearray(path.read_bytes())
    for position in positions:
        content[position] ^= 1
    path.write_bytes(content)


@pytest.fixture(autouse=True)
def small_jobs(monkeypatch):
    """Several jobs even for quick policies."""
    monkeypatch.setattr(specs, "QUICK_TRIALS_PER_JOB", 10)


@pytest.fixture
def run(tmp_path):
    run_in(tmp_path / "run")
    return tmp_path / "run"


# -- files -----------------------------------------------------------------------------------------


def test_strings_are_coded_in_order_of_first_occurrence():
    positions = np.array([3, 1, 3, 0, 1])
    strings = CodedStrings.from_positions("abcd", positions)
    assert strings.distinct == ["d", "b", "a"]
    assert [strings.distinct[i] for i in strings.codes] == ["abcd"[i] for i in positions]
    equal = CodedStrings.from_positions("abca", np.array([[3, 1], [0, 0]]))
    assert (equal.distinct, equal.codes.tolist()) == (["a", "b"], [[0, 1], [0, 0]])


def test_every_changed_byte_is_noticed():
    rounds = np.array([1, 2, 3], np.int32)
    arms = CodedStrings.from_positions(["do()", "do(X=1)"], np.array([[0, 1, 0]]))
    result = JobResult([0], rounds, np.array([[0.0, 0.5, 0.5]]), arms)
    content = to_parquet(result.to_table(Job("a", "b", 0, 0, 3, DIGEST)), DIGEST)
    verify(content, DIGEST)
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 1
        with raises_code("damaged-file", error=DamagedError):
            verify(bytes(changed), DIGEST)
    for other in (b"", content[:-1], content[1:], content + b" "):
        with raises_code("damaged-file", error=DamagedError):
            verify(other, DIGEST)
    with raises_code("damaged-file", "another job"):
        verify(content, "cd" * 32)


@pytest.mark.parametrize("has_expected", [True, False])
@pytest.mark.parametrize("rows", [3, 400_000])  # one row group, and two
def test_results_are_read_back_bit_by_bit(has_expected, rows):
    rng, shape = np.random.default_rng(rows), (3, rows)
    arms = CodedStrings.from_positions(["b", "a", "c"], rng.integers(0, 3, shape))
    expected = rng.random(shape) if has_expected else None
    rounds = np.arange(1, rows + 1, dtype=np.int32)
    result = JobResult([4, 5, 6], rounds, rng.random(shape), arms, expected)
    table = result.to_table(Job("a", "b", 4, 6, rows, DIGEST))
    read = from_parquet(to_parquet(table, DIGEST))
    assert read.to_pandas().equals(table.to_pandas())
    assert not any(column.nullable for column in read.schema)


@pytest.mark.parametrize("has_out", [True, False])
def test_only_durable_results_are_forced_to_the_disk(has_out, tmp_path, monkeypatch):
    forced = []
    monkeypatch.setattr("os.fsync", forced.append)
    run_in(tmp_path / "run" if has_out else None)
    assert bool(forced) is has_out


def test_damaged_results_are_never_shown(run):
    flip_bits(files_of(run)[1])
    for method in (Result.open(run).frame, Result.open(run).final, Result.open(run).as_dict):
        with raises_code("damaged-file", ".parquet"):
            method()


def test_damaged_jobs_are_run_again_with_a_warning(run):
    expected, times, counts = Result.open(run).frame(), times_of(run), []
    flip_bits(files_of(run)[1])
    files_of(run)[2].write_bytes(b"")
    with pytest.warns(DowiseWarning, match=r"is damaged .*: its trials are run again \(and 1 more"):
        result = run_in(run, progress=count_jobs(counts))
    assert counts[0] == (4, 6) and counts[-1] == (6, 6)
    assert result.frame().equals(expected)
    unchanged = [times_of(run)[name] == changed for name, changed in times.items()]
    assert unchanged == [True, False, False, True, True, True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_in(run)


def test_file_of_another_job_is_noticed(run):
    expected = Result.open(run).frame()
    first, second = files_of(run)[:2]
    first.write_bytes(second.read_bytes())
    with raises_code("damaged-file", "belongs to another job"):
        Result.open(run).final()
    with pytest.warns(DowiseWarning, match="belongs to another job"):
        assert run_in(run).frame().equals(expected)


def test_unreadable_file_is_an_error_and_not_a_missing_result(run, monkeypatch):
    file, read_bytes = files_of(run)[0], Path.read_bytes

    def refuse(path):
        if path.name == file.name:
            raise PermissionError(13, "Permission denied", str(path))
        return read_bytes(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse)
        for method in (Result.open(run).frame, lambda: run_in(run)):
            with raises_code("unreadable-file", file.name, "Permission denied"):
                method()
    file.unlink()
    file.mkdir()
    with raises_code("unreadable-file", file.name):
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
def test_damaged_list_of_jobs_is_an_error_and_repaired_by_the_same_call(run, change):
    expected = Result.open(run).frame()
    (file,) = (run / "calls").iterdir()
    file.write_text(change(file.read_text("utf-8")), "utf-8")
    with raises_code("damaged-file", file.name):
        Result.open(run)
    run_in(run)
    assert Result.open(run).frame().equals(expected)


@pytest.mark.parametrize("content", [{}, {"spec": {}, "jobs": [{}]}, {"jobs": 7}])
def test_list_of_jobs_with_another_layout_is_an_error(run, content):
    (file,) = (run / "calls").iterdir()
    write_checked_json(file, content)
    with raises_code("other-version", file.name):
        Result.open(run)


def test_list_of_jobs_describes_the_call(run):
    (file,) = (run / "calls").iterdir()
    call = json.loads(file.read_text("utf-8"))
    assert call["spec"]["seed"] == 3 and call["spec"]["dowise"]
    assert 'reward = "Y"' in call["spec"]["problems"]["task1"]["problem"]
    assert (call["horizon"], call["trials"], len(call["jobs"])) == (30, 23, 6)
    assert {"machine", "started"} <= {*call}


# -- directories -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["letter.txt", "manifest.json"])
def test_directory_with_other_contents_is_left_unchanged(tmp_path, name):
    (tmp_path / name).write_text("{}")
    with raises_code("directory-in-use", str(tmp_path)):
        run_in(tmp_path)
    with raises_code("no-results", str(tmp_path)):
        Result.open(tmp_path)
    with raises_code("directory-in-use", name):
        run_in(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_nothing_is_created_if_an_extra_is_missing(tmp_path, monkeypatch):
    for library, options in (("cloudpickle", {"workers": 2}), ("distributed", {"cluster": "x"})):
        monkeypatch.setitem(sys.modules, library, None)
        with raises_code("missing-extra", library):
            run_in(tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("folder", [".", "results", "calls"])
def test_old_drafts_of_killed_calls_are_removed(run, folder):
    old, new, other = (run / folder / f".{name}.draft" for name in ("0" * 12, "1" * 12, "notes"))
    for draft in (old, new, other):
        draft.touch()
    two_hours_ago = time.time() - 2 * 3600
    for draft in (old, other):
        os.utime(draft, (two_hours_ago, two_hours_ago))
    run_in(run)
    assert old.exists() == (folder == ".") and new.exists() and other.exists()


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


# -- resuming and extending ------------------------------------------------------------------------


def test_only_missing_jobs_are_run(run):
    expected, times, counts = Result.open(run).frame(), times_of(run), []
    files = files_of(run)
    for file in files[::3]:
        file.unlink()
    result = run_in(run, progress=count_jobs(counts))
    assert counts[0] == (4, 6) and counts[-1] == (6, 6)
    assert result.frame().equals(expected)
    remaining = [file.name for i, file in enumerate(files) if i % 3]
    assert all(times_of(run)[name] == times[name] for name in remaining)


def test_run_that_was_killed_before_its_first_file_is_resumed(tmp_path):
    (tmp_path / "run" / "results").mkdir(parents=True)
    assert len(run_in(tmp_path / "run").frame()) == 2 * 23 * 30


@pytest.mark.parametrize(
    ("change", "new"),
    [
        ({"trials": 31}, 4),  # trials 20 to 29, and 30
        ({"policies": ["ucb", "ts", "bernoulli-ts"]}, 3),
        ({"policies": ["kl-ucb", "ucb", "ts"]}, 3),
        ({"problems": ["task1", "task2"]}, 6),
        ({"horizon": 50}, 6),
        ({"trials": 15}, 2),
        ({"seed": 4}, 6),
        ({"options": {"ucb": {"exploration": 1.0}}}, 3),
        ({"policies": ["ts", ("ucb", "kl-ucb")]}, 3),
        ({"every": 2}, 6),
        ({"observational": 5}, 6),
    ],
)
def test_other_run_equals_a_new_one_and_computes_only_what_is_missing(run, change, new):
    before, counts = times_of(run), []
    result = run_in(run, **change, progress=count_jobs(counts))
    fresh = run_in(None, **change)
    assert result.frame().equals(fresh.frame()) and result.final().equals(fresh.final())
    assert counts[-1][1] - counts[0][0] == new
    after = times_of(run)
    assert {name: after[name] for name in before} == before
    assert len(after) - len(before) == new
    assert run_in(run).frame().equals(run_in(None).frame())
    assert times_of(run) == after


def test_equal_options_have_the_same_files(tmp_path):
    spec = {"policies": ["ucb"], "options": {"ucb": {"exploration": 2}}}
    run_in(tmp_path / "run", **spec)
    before = times_of(tmp_path / "run")
    spec["options"]["ucb"]["exploration"] = 2.0
    run_in(tmp_path / "run", **spec)
    assert times_of(tmp_path / "run") == before


def test_open_shows_all_calls_with_the_same_settings(run):
    run_in(run, policies=["bernoulli-ts"], trials=4)
    run_in(run, policies=["ts"], trials=31)
    final = Result.open(run).final()
    assert {*final.columns} == {"ucb", "ts", "bernoulli-ts"}
    assert final[["ucb", "ts", "bernoulli-ts"]].notna().sum().tolist() == [23, 31, 4]
    run_in(run, horizon=40)
    assert set(Result.open(run, horizon=40).frame()["round"]) == {*range(1, 41)}
    with raises_code("no-results", "horizon 45", "30 and 40"):
        Result.open(run, horizon=45)


def test_open_shows_the_newest_policy_of_a_label(run):
    run_in(run, options={"ucb": {"exploration": 0.5}})
    changed = run_in(None, options={"ucb": {"exploration": 0.5}})
    assert Result.open(run).frame().equals(changed.frame())


@pytest.mark.parametrize(
    ("change", "started"),
    [({"horizon": 50}, 2), ({"trials": 60}, 6), ({"policies": ["ucb", "kl-ucb"]}, 4)],
)
def test_interrupted_extension_leaves_a_readable_run_and_resumes(run, change, started):
    def interrupt(finished, _total):
        if finished >= started:
            raise KeyboardInterrupt

    expected = Result.open(run).frame()
    with pytest.raises(KeyboardInterrupt):
        run_in(run, **change, progress=interrupt)
    shown = Result.open(run).frame()
    shown = shown[(shown["trial"] < 23) & shown["policy"].isin(["ucb", "ts"])]
    np.testing.assert_array_equal(shown["regret"], expected["regret"])
    counts = []
    result = run_in(run, **change, progress=count_jobs(counts))
    assert counts[0][0] == started
    assert result.frame().equals(run_in(None, **change).frame())


EXTENSION = """
import sys
from dowise import simulate
simulate(["task3"], ["ids"], horizon=500, trials=60, seed=1, workers=2,
         out=sys.argv[1], options={"ids": {"samples": 100}})
"""


@pytest.mark.slow
def test_killed_extension_resumes(tmp_path):
    """Killed with some of the longer trials finished; the shorter simulation remains readable."""
    out, options = tmp_path / "run", {"ids": {"samples": 100}}
    spec = {"trials": 60, "seed": 1, "options": options, "workers": 2}
    first = simulate(["task3"], ["ids"], horizon=20, out=out, **spec).frame()
    process = subprocess.Popen([sys.executable, "-c", EXTENSION, out], start_new_session=True)
    deadline = time.monotonic() + 120
    while len(files_of(out)) < 7 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert 7 <= len(files_of(out)) < 12
    assert Result.open(out).frame().equals(first)
    resumed = simulate(["task3"], ["ids"], horizon=500, out=out, **spec).frame()
    assert resumed.equals(simulate(["task3"], ["ids"], horizon=500, **spec).frame())
