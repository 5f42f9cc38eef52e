"""A belief on disk: read back to the last bit, refused where it is damaged, never half written."""

import json

import numpy as np
import pytest

from dowise import Belief, CausalGraph, DowiseError, Problem, load_problem


def trained(name, prior):
    """After a hundred rounds of fair coins."""
    problem, rng = load_problem(name), np.random.default_rng(0)
    belief = Belief(problem, prior)
    for _ in range(100):
        arm = problem.arms[rng.integers(len(problem.arms))]
        belief.update(arm, {v: int(rng.integers(2)) for v in problem.graph if v not in arm})
    return belief


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare"])
def test_round_trip_to_the_last_bit(name, tmp_path):
    belief = trained(name, 1 / 3)
    belief.save(tmp_path / "belief.json")
    again = Belief.load(tmp_path / "belief.json", belief.problem)
    np.testing.assert_array_equal(again.parameters, belief.parameters)


def test_a_file_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "belief.json"
    belief = trained("task1", 1.0)
    belief.save(path)
    with pytest.raises(DowiseError, match="another problem"):
        Belief.load(path, load_problem("task2"))
    relabelled = Problem(belief.problem.graph, "Y", domains={"X": ["lo", "hi"]})
    with pytest.raises(DowiseError, match="its CPT of X has the labels"):
        Belief.load(path, relabelled)
    text = path.read_text()

    def edited(change):
        page = json.loads(text)
        change(page)
        return json.dumps(page)

    for broken, message in (
        (text.replace('"version": 3', '"version": 4'), "format version 4"),
        (text.replace("dowise-belief", "something"), "not a saved belief"),
        (text[:50], "not valid JSON"),
        ("[]", "not a saved belief"),
        ("[" * 100_000, "not valid JSON"),
        (text.replace('"version": 3', '"version": true'), "format version True"),
        (edited(lambda page: page.update(unused={"X": {"Q": 1}})), "unused has X"),
        (edited(lambda page: page.update(unused={"X": {"Z": -1}})), "unused has X"),
        (edited(lambda page: page.update(unused=[1])), "unused must have counts"),
        (edited(lambda page: page.update(tables={})), "it has doubtful edges"),
        (edited(lambda page: page.update(factors=[])), "the belief is damaged"),
        (edited(lambda page: page["factors"].update(X=[])), "the belief is damaged"),
        (edited(lambda page: page["factors"]["X"].update(counts=[3, 4])), "have the shape"),
        (edited(lambda page: page["factors"]["X"].update(counts=[["1", "2"]] * 2)), "be numbers"),
        (edited(lambda page: page["factors"]["X"].update(counts=[[1, 2], [3]])), "be numbers"),
        (edited(lambda page: page["factors"]["X"].update(prior=[[1, 0], [3, 4]])), "above 0"),
        (edited(lambda page: page["factors"]["X"].update(counts=[[1, -1], [3, 4]])), "0 or more"),
        (edited(lambda page: page["factors"]["X"].update(counts=[[1, 0.5], [3, 4]])), "whole"),
        (edited(lambda page: page["factors"]["X"].pop("counts")), "be numbers"),
        (edited(lambda page: page["factors"]["X"].pop("prior")), "be numbers"),
    ):
        path.write_text(broken)
        with pytest.raises(DowiseError, match=message):
            Belief.load(path, belief.problem)


def test_a_belief_of_the_first_version_is_read_as_a_prior(tmp_path):
    """Written by dowise before counts and prior were kept apart."""
    problem = Problem(CausalGraph.parse("X -> Y"), "Y")
    axes = {"X": ["X"], "Y": ["X", "Y"]}
    counts = {"X": [2.5, 1.5], "Y": [[1.5, 0.5], [0.5, 3.5]]}
    page = {
        name: {"axes": axes[name], "labels": [["0", "1"]] * len(axes[name]), "counts": counts[name]}
        for name in axes
    }
    old = {"format": "dowise-belief", "version": 1, "counts": page}
    (tmp_path / "old.json").write_text(json.dumps(old))
    belief = Belief.load(tmp_path / "old.json", problem)
    np.testing.assert_array_equal(belief.parameters, [2.5, 1.5, 1.5, 0.5, 0.5, 3.5])
    with pytest.raises(DowiseError, match="can't be retracted: it was not learned"):
        belief.retract(problem.record("do(X=1)", {"Y": 1}))


def test_a_belief_of_the_second_version_is_read(tmp_path):
    """Written by dowise before it counted what it could not use."""
    belief = trained("task1", 0.5)
    page = belief.posterior.as_dict()
    old = {key: page[key] for key in ("format", "factors")} | {"version": 2}
    (tmp_path / "old.json").write_text(json.dumps(old))
    again = Belief.load(tmp_path / "old.json", belief.problem)
    np.testing.assert_array_equal(again.parameters, belief.parameters)
    assert again.unused == {}


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
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
