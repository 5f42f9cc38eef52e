"""Beliefs on disk: exact round trips, damaged files, older versions, atomic writes."""

import json
from functools import reduce
from operator import getitem

import numpy as np
import pytest
from support.beliefs import trained_belief
from support.errors import raises_code
from support.evidence_twin import CHAIN

from dowise import Belief, CausalGraph, Problem, load_problem


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare"])
def test_round_trip_is_exact(name, tmp_path):
    belief = trained_belief(name, prior=1 / 3)
    belief.save(tmp_path / "belief.json")
    again = Belief.load(tmp_path / "belief.json", belief.problem)
    np.testing.assert_array_equal(again.parameters, belief.parameters)


def test_files_of_other_problems_and_formats_are_refused(tmp_path):
    path, belief = tmp_path / "belief.json", trained_belief("task1")
    belief.save(path)
    relabelled = Problem(belief.problem.graph, "Y", domains={"X": ["lo", "hi"]})
    for problem in (load_problem("task2"), relabelled):
        with raises_code("wrong-problem"):
            Belief.load(path, problem)
    text = path.read_text()
    for broken, code in (
        (text.replace('"version": 3', '"version": 5'), "other-version"),
        (text.replace('"version": 3', '"version": true'), "other-version"),
        (text.replace('"unused"', '"tables": {}, "unused"'), "wrong-problem"),
        (text.replace("dowise-belief", "something"), "unsupported-format"),
        ("[]", "unsupported-format"),
        (text[:50], "syntax-error"),
        ("[" * 100_000, "syntax-error"),
    ):
        path.write_text(broken)
        with raises_code(code):
            Belief.load(path, belief.problem)


DAMAGES = {
    "factors": [[]],
    "factors/X": [[]],
    "factors/X/prior": [None, [1, 0]],
    "factors/X/counts": [None, [3], [["1", "2"]] * 2, [[1, 2], [3]], [1, -1], [1, 0.5], [19, 21]],
    "factors/Z/counts": [[10**9 + 1, 0]],
    "unused": [[1], {"X": {"Q": 1}}, {"X": {"Z": -1}}, {"Z": {"X": 10**30}}],
    "records": [None, 3, []],
    "records/0": [None],
    "records/0/count": [0, 2, 10**8 - 20, 10**9 + 1, 10**30],
    "records/0/values": [None, {"X": "7", "Y": "0", "Z": "0"}],
    "evidence": [None],
    "evidence/order": [3, "", "AAAA", "no base64"],
    "evidence/recomputed": [None, 1],
    "evidence/withdrawn": [None, 7, [[0.05]], [[2, 1]], [["x", 1]]],
}
"""Damaged values of a belief with evidence, by path; None: the key is missing."""


@pytest.mark.parametrize("path", DAMAGES)
def test_damaged_files_are_refused(tmp_path, path):
    belief = Belief(CHAIN, evidence=True)
    belief.update_many({"X": [0, 1] * 20, "Z": [0, 1] * 20, "Y": [0, 1] * 20})
    *parents, key = [int(part) if part.isdigit() else part for part in path.split("/")]
    for value in DAMAGES[path]:
        data = json.loads(json.dumps(belief.as_dict()))
        parent = reduce(getitem, parents, data)
        if value is None:
            del parent[key]
        else:
            parent[key] = value
        (tmp_path / "belief.json").write_text(json.dumps(data))
        with raises_code("damaged-file", "the belief is damaged: "):
            Belief.load(tmp_path / "belief.json", CHAIN)


def test_version_1_is_read_as_a_prior(tmp_path):
    """It did not separate counts and prior."""
    problem = Problem(CausalGraph.parse("X -> Y"), "Y")
    axes = {"X": ["X"], "Y": ["X", "Y"]}
    counts = {"X": [2.5, 1.5], "Y": [[1.5, 0.5], [0.5, 3.5]]}
    tables = {
        name: {"axes": axes[name], "labels": [["0", "1"]] * len(axes[name]), "counts": counts[name]}
        for name in axes
    }
    old = {"format": "dowise-belief", "version": 1, "counts": tables}
    (tmp_path / "old.json").write_text(json.dumps(old))
    belief = Belief.load(tmp_path / "old.json", problem)
    np.testing.assert_array_equal(belief.parameters, [2.5, 1.5, 1.5, 0.5, 0.5, 3.5])
    with raises_code("not-learned"):
        belief.retract(problem.record("do(X=1)", {"Y": 1}))


def test_version_2_is_read(tmp_path):
    """It did not count unused values."""
    belief = trained_belief("task1", prior=0.5)
    data = belief.posterior.as_dict()
    old = {key: data[key] for key in ("format", "factors")} | {"version": 2}
    (tmp_path / "old.json").write_text(json.dumps(old))
    again = Belief.load(tmp_path / "old.json", belief.problem)
    np.testing.assert_array_equal(again.parameters, belief.parameters)
    assert again.unused == {}


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "belief.json"
    belief = Belief(load_problem("task1"))
    belief.save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dowise._core.files.os.fsync", full)
    belief.update("do()", {"Z": 0, "X": 1, "Y": 1})
    with raises_code("unwritable-file", path.name):
        belief.save(path)
    assert path.read_bytes() == before
