"""A run on disk: whatever happens to its files, no other numbers come out."""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from dowise import DowiseError, simulate
from dowise.errors import DowiseWarning
from dowise.simulation import Result
from dowise.simulation.jobs import Job
from dowise.simulation.results import DamagedError, Rounds, Texts, pack, verify

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


@pytest.fixture
def run(tmp_path):
    race(tmp_path / "run")
    return tmp_path / "run"


def test_a_byte_that_changes_anywhere_is_noticed():
    job = Job("a", "b", 0, 0, 3)
    rounds, owner = np.array([1, 2, 3], np.int32), "ab" * 32
    found = Rounds(
        [0],
        rounds,
        [np.array([0.0, 0.5, 0.5])],
        [Texts.of(["do()", "do(X=1)"], np.array([0, 1, 0]))],
    )
    content = pack(job, owner, found)
    assert verify(content, owner) == found.digest()
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
