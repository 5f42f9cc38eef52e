"""A run on disk: whatever happens to its files, no other numbers come out."""

import json
import os
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from choices import one_in

from dowise import DowiseError, simulate
from dowise.errors import DowiseWarning
from dowise.queue_lock import QueueLock
from dowise.simulation import Result, jobs, store
from dowise.simulation.jobs import Job
from dowise.simulation.results import (
    DamagedError,
    Rounds,
    Texts,
    pack,
    rounds_of,
    table_of,
    verify,
)

RACE = {"horizon": 30, "trials": 12, "seed": 3}


def race(out, policies=("ucb", "bernoulli-ts"), **changes):
    return simulate(["task1"], policies, out=out, **{**RACE, **changes})


def files_of(run):
    return sorted((run / "results").glob("*.parquet"))


def flip(path, places=range(60, 68)):
    content = bytearray(path.read_bytes())
    for place in places:
        content[place] ^= 1
    path.write_bytes(content)


@pytest.fixture(autouse=True)
def small_jobs(monkeypatch):
    """So that a small race of quick policies has several."""
    monkeypatch.setattr(jobs, "QUICK_TRIALS_PER_JOB", 10)


@pytest.fixture
def run(tmp_path):
    race(tmp_path / "run")
    return tmp_path / "run"


def test_a_byte_that_changes_anywhere_is_noticed():
    job = Job("a", "b", 0, 0, 3)
    rounds, owner = np.array([1, 2, 3], np.int32), "ab" * 32
    arms = Texts.of(["do()", "do(X=1)"], np.array([[0, 1, 0]], np.int32))
    content = pack(job, owner, Rounds([0], rounds, np.array([[0.0, 0.5, 0.5]]), arms))
    verify(content, owner)
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        with pytest.raises(DamagedError, match="is damaged"):
            verify(bytes(changed), owner)
    with pytest.raises(DamagedError, match="belongs to another job"):
        verify(content, "cd" * 32)
    for odd in (b"", content[:-1], content[1:], content + b" "):
        with pytest.raises(DamagedError, match="is damaged"):
            verify(odd, owner)


@pytest.mark.parametrize("has_expected", [True, False])
@pytest.mark.parametrize("rows", [3, 400_000])  # one group of rows, and two
def test_what_a_job_found_is_read_back_bit_by_bit(has_expected, rows):
    rng, shape = np.random.default_rng(rows), (3, rows)
    arms = Texts.of(["b", "a", "c"], rng.integers(0, 3, shape, np.int32))
    expected = rng.random(shape) if has_expected else None
    rounds = np.arange(1, rows + 1, dtype=np.int32)
    found = Rounds([4, 5, 6], rounds, rng.random(shape), arms, expected)
    content = pack(Job("a", "b", 4, 6, rows), "ab" * 32, found)
    assert rounds_of(content).digest() == found.digest()
    assert not any(column.nullable for column in table_of(content, None).schema)
    found.regrets[2, 1] = np.nextafter(found.regrets[2, 1], 1)
    assert rounds_of(content).digest() != found.digest()


def test_damaged_results_are_never_shown(run):
    flip(files_of(run)[1])
    for ask in (Result.open(run).frame, Result.open(run).final, Result.open(run).as_dict):
        with pytest.raises(DowiseError, match=r"\.parquet is damaged .* runs its trials again"):
            ask()


def test_a_damaged_job_is_run_again_with_a_word(run):
    expected, stamps = Result.open(run).frame(), [f.stat().st_mtime_ns for f in files_of(run)]
    flip(files_of(run)[1])
    files_of(run)[2].write_bytes(b"")
    counted = []
    with pytest.warns(DowiseWarning, match=r"is damaged .*: its trials are run again \(and 1 more"):
        again = race(run, progress=lambda done, total: counted.append((done, total)))
    assert counted[0] == (2, 4) and counted[-1] == (4, 4)
    assert again.frame().equals(expected)
    kept = [f.stat().st_mtime_ns == stamp for f, stamp in zip(files_of(run), stamps, strict=True)]
    assert kept == [True, False, False, True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        race(run)


@pytest.mark.parametrize("other", ["another job", "another seed", "another policy of that name"])
def test_a_file_that_belongs_elsewhere_is_noticed(run, tmp_path, other):
    expected = Result.open(run).frame()
    first, second = files_of(run)[:2]
    if other == "another seed":
        race(tmp_path / "other", seed=4)
        second = tmp_path / "other" / "results" / first.name
    elif other == "another policy of that name":
        race(tmp_path / "other", [("bernoulli-ts", "ucb")])
        second = tmp_path / "other" / "results" / first.name
    assert first.read_bytes() != second.read_bytes()
    first.write_bytes(second.read_bytes())
    with pytest.raises(DowiseError, match="belongs to another job or another run"):
        Result.open(run).final()
    with pytest.warns(DowiseWarning, match="belongs to another job .* its trials are run again"):
        assert race(run).frame().equals(expected)


def test_what_can_t_be_read_is_neither_missing_nor_called_unwritable(run, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied", str(path))

    name, usual = files_of(run)[0].name, Path.read_bytes
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda p: refused(p) if p.name == name else usual(p))
        for ask in (Result.open(run).frame, lambda: race(run)):
            with pytest.raises(DowiseError, match=r"\.parquet: can't be read \(Permission denied"):
                ask()
    file = files_of(run)[0]
    file.unlink()
    file.mkdir()
    with pytest.raises(DowiseError, match=r"can't be read \(Is a directory\)"):
        race(run)


def test_results_without_their_manifest_are_refused(run):
    before = {file: file.read_bytes() for file in files_of(run)}
    (run / "manifest.json").unlink()
    for seed in (3, 4):
        with pytest.raises(DowiseError, match=r"has results without their manifest\.json"):
            race(run, seed=seed)
    assert {file: file.read_bytes() for file in files_of(run)} == before
    assert not (run / "manifest.json").exists()
    with pytest.raises(DowiseError, match="is no run: it has no manifest"):
        Result.open(run)


@pytest.mark.parametrize("where", [".", "results"])
def test_a_draft_of_a_stop_at_the_start_does_not_block_the_next(tmp_path, where):
    draft = tmp_path / "run" / where / ".0123456789ab.draft"
    draft.parent.mkdir(parents=True)
    draft.write_text('{"spec": {')
    assert len(race(tmp_path / "run").frame()) == 2 * 12 * 30


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda text: text.replace('"seed": 3', '"seed": 4'), "is damaged, its checksum does not"),
        (lambda text: text.replace('"trials": 12', '"trials": 11'), "is damaged"),
        (lambda text: text[: len(text) // 2], "is damaged"),
        (lambda _text: "", "is damaged"),
        (lambda _text: "[1]", "is damaged"),
        (lambda _text: '{"spec": {"seed": 3}}', "has no checksum, so an earlier version"),
    ],
)
def test_a_damaged_manifest_is_refused(run, change, complaint):
    manifest = run / "manifest.json"
    text = change(manifest.read_text("utf-8"))
    manifest.write_text(text, "utf-8")
    for ask in (lambda: race(run), lambda: Result.open(run), lambda: race(run, seed=4)):
        with pytest.raises(DowiseError, match=f"manifest.json {complaint}"):
            ask()
    assert manifest.read_text("utf-8") == text and len(files_of(run)) == 4


@pytest.mark.parametrize(
    "said",
    [
        {"spec": {}, "races": []}, {"spec": [], "races": [{}]}, {"spec": {}, "races": [{}]},
        {"spec": {"problems": {}, "policies": []}, "races": 7},
    ],
)  # fmt: skip
def test_a_whole_manifest_of_another_layout_is_refused(run, said):
    store.write_manifest(run / "manifest.json", said, True)
    for ask in (lambda: race(run), lambda: Result.open(run)):
        with pytest.raises(
            DowiseError, match=r"its manifest\.json is not laid out as this version"
        ):
            ask()


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(DowiseError, match="run is a file, or lies in one: name a new folder"):
        race(tmp_path / "run")


def test_where_an_extra_is_missing_nothing_is_begun(tmp_path, monkeypatch):
    for library, how in (("cloudpickle", {"workers": 2}), ("distributed", {"cluster": "tcp://x"})):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(DowiseError, match=f"needs {library}, which is not installed"):
            race(tmp_path / "run", **how)
    assert not (tmp_path / "run").exists()


def test_the_manifest_says_what_is_there(run):
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    assert manifest["spec"]["seed"] == 3 and manifest["spec"]["dowise"]
    assert 'reward = "Y"' in manifest["spec"]["problems"]["task1"]["problem"]
    (only,) = manifest["races"]
    assert (only["horizon"], only["trials"]) == (30, 12)
    assert (only["problems"], only["policies"]) == (["task1"], ["ucb", "bernoulli-ts"])
    assert {"machine", "started"} <= {*only}


@pytest.mark.parametrize("is_new", one_in(2, [True, False]))
def test_races_that_begin_at_once_in_one_folder_are_all_in_its_manifest(
    tmp_path, monkeypatch, is_new
):
    out, others, write = tmp_path / "run", [], store.write_manifest
    race(None, ["ucb", "kl-ucb"])  # compiled now
    if not is_new:
        race(out, ["bernoulli-ts"])

    def write_late(*given):
        """Between reading and writing another call is made, which has half a second's time."""
        if not others:
            others.append(threading.Thread(target=race, args=(out, ["kl-ucb"]), kwargs=more))
            others[0].start()
            others[0].join(0.5)
        write(*given)

    more = {"trials": 27}
    monkeypatch.setattr(store, "write_manifest", write_late)
    race(out, ["ucb"])
    others[0].join()
    final = Result.open(out).final()
    assert {*final.columns} == {"ucb", "kl-ucb"} | ({"bernoulli-ts"} if not is_new else set())
    assert final["kl-ucb"].count() == 27 and final["ucb"].count() == 12
    assert {path.name for path in out.iterdir()} == {"manifest.json", "results"}


def test_the_lock_of_a_killed_call_is_no_foreign_file_and_another_s_file_is(tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    QueueLock(out / "manifest.json").path.touch()
    race(out)
    assert {path.name for path in out.iterdir()} == {"manifest.json", "results"}
    (other := tmp_path / "other").mkdir()
    (other / "door-lock").touch()
    with pytest.raises(DowiseError, match="no run of ours"):
        race(other)
    assert [path.name for path in other.iterdir()] == ["door-lock"]


def test_who_reads_waits_for_nobody_and_who_waits_too_long_is_told(run, monkeypatch):
    monkeypatch.setattr(store, "PATIENCE", 0.1)
    before = (run / "manifest.json").read_bytes()
    with QueueLock(run / "manifest.json").alone(1):
        assert len(Result.open(run).frame()) == 2 * 12 * 30
        with pytest.raises(DowiseError, match=r"manifest\.json: another process .* try again"):
            race(run, trials=20)
    assert (run / "manifest.json").read_bytes() == before
    assert len(race(run, trials=20).frame()) == 2 * 20 * 30


@pytest.mark.parametrize("where", [".", "results"])
def test_drafts_of_killed_calls_are_removed_once_they_are_old(run, where):
    old, young, own = (run / where / f".{name}.draft" for name in ("0" * 12, "1" * 12, "notes"))
    for draft in (old, young, own):
        draft.touch()
    hours_ago = time.time() - 2 * 3600
    for draft in (old, own):
        os.utime(draft, (hours_ago, hours_ago))
    Result.open(run).frame()
    assert old.exists()
    race(run)
    assert not old.exists() and young.exists() and own.exists()
