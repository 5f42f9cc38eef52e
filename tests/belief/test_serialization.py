"""Beliefs on disk: exact round trips, damaged files, older versions, atomic writes."""

import json

import numpy as np
import pytest
from support.beliefs import trained_belief
from support.errors import raises_code

from dowise import Belief, CausalGraph, DowiseError, Problem, load_problem


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare"])
def test_round_trip_is_exact(name, tmp_path):
    belief = trained_belief(name, prior=1 / 3)
    belief.save(tmp_path / "belief.json")
    again = Belief.load(tmp_path / "belief.json", belief.problem)
    np.testing.assert_array_equal(again.parameters, belief.parameters)


def test_files_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "belief.json"
    belief = trained_belief("task1")
    belief.save(path)
    with raises_code("wrong-problem"):
        Belief.load(path, load_problem("task2"))
    relabelled = Problem(belief.problem.graph, "Y", domains={"X": ["lo", "hi"]})
    with raises_code("wrong-problem", "X", "labels"):
        Belief.load(path, relabelled)
    text = path.read_text()

    def edited(change):
        data = json.loads(text)
        change(data)
        return json.dumps(data)

    for broken, message in (
        (text.replace('"version": 3', '"version": 4'), "format version 4"),
        (text.replace("dowise-belief", "something"), "not a saved belief"),
        (text[:50], "not valid JSON"),
        ("[]", "not a saved belief"),
        ("[" * 100_000, "not valid JSON"),
        (text.replace('"version": 3', '"version": true'), "format version True"),
        (edited(lambda data: data.update(unused={"X": {"Q": 1}})), "unused has X"),
        (edited(lambda data: data.update(unused={"X": {"Z": -1}})), "unused has X"),
        (edited(lambda data: data.update(unused=[1])), "unused must have counts"),
        (edited(lambda data: data.update(tables={})), "it has doubtful edges"),
        (edited(lambda data: data.update(factors=[])), "the belief is damaged"),
        (edited(lambda data: data["factors"].update(X=[])), "the belief is damaged"),
        (edited(lambda data: data["factors"]["X"].update(counts=[3, 4])), "have the shape"),
        (edited(lambda data: data["factors"]["X"].update(counts=[["1", "2"]] * 2)), "be numbers"),
        (edited(lambda data: data["factors"]["X"].update(counts=[[1, 2], [3]])), "be numbers"),
        (edited(lambda data: data["factors"]["X"].update(prior=[[1, 0], [3, 4]])), "above 0"),
        (edited(lambda data: data["factors"]["X"].update(counts=[[1, -1], [3, 4]])), "0 or more"),
        (edited(lambda data: data["factors"]["X"].update(counts=[[1, 0.5], [3, 4]])), "whole"),
        (edited(lambda data: data["factors"]["X"].pop("counts")), "be numbers"),
        (edited(lambda data: data["factors"]["X"].pop("prior")), "be numbers"),
    ):
        path.write_text(broken)
        with pytest.raises(DowiseError, match=message):
            Belief.load(path, belief.problem)


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
    with pytest.raises(DowiseError, match="No space left"):
        belief.save(path)
    assert path.read_bytes() == before
