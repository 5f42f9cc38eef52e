"""Documents and the way back: what was read says the same as what was written, to the last bit."""

import json
from dataclasses import fields, replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from support.sample_experiments import KINDS, WARD, one_of, still

from dowise._core.codec import array_from_json, float_from_json, to_json
from dowise.belief import Belief
from dowise.errors import DowiseError
from dowise.experiment import wire as documents
from dowise.experiment.advice import RecordUsage
from dowise.experiment.ask import LiveDecision
from dowise.experiment.audit import Audit
from dowise.experiment.case import Case
from dowise.experiment.evaluation import Evaluation
from dowise.experiment.event import WITHHELD, Event
from dowise.experiment.explanation import Explanation
from dowise.experiment.history import History
from dowise.experiment.read_model import FORMAT, IndependentArmsBelief
from dowise.experiment.status import ArmSummary, Status
from dowise.experiment.wire import (
    options_to_json,
    records_from_json,
    records_to_json,
    target_from_json,
    target_to_json,
)
from dowise.problem import Intervention

pytestmark = pytest.mark.slow  # every kind of experiment


def over_the_wire(page):
    """A document after it was sent: JSON has neither NaN nor infinity."""
    return json.loads(json.dumps(page, allow_nan=False))


@pytest.fixture(scope="module", params=KINDS)
def experiment(request):
    return one_of(request.param)


def same(one, other):
    """Whether two objects are made of the same parts, to the last bit."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype == float)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "__dataclass_fields__") and not isinstance(one, type):
        return all(same(getattr(one, x.name), getattr(other, x.name)) for x in fields(one))
    return type(one) is type(other) and (one == other or (one != one and other != other))


def test_where_it_stands(experiment, monkeypatch):
    rounds = None if experiment.name in ("large", "doubtful") else 5
    found = experiment.status(rounds=rounds)
    page = over_the_wire(documents.status_to_json(found, tolerance=0.1))
    again = Status.from_dict(page, found.problem)
    with still(monkeypatch):
        assert str(again) == str(found) and again.document(0.2) == found.document(0.2)
        assert again.as_dict(0.3) == found.as_dict(0.3)
    assert again.frame().equals(found.frame())
    evidence = {"evidence": None}  # whose edges are in another order
    assert same(replace(again, **evidence), replace(found, **evidence))
    if found.evidence is not None:
        assert again.evidence.as_dict() == found.evidence.as_dict()
        assert again.evidence.rows() == found.evidence.rows()
        assert again.evidence.frame().equals(found.evidence.frame())


def test_why_a_decision_came_out_so(experiment):
    for case in experiment.records():
        if case.status == "erased":
            continue
        found = experiment.explain(case.id)
        page = over_the_wire(documents.explanation_to_json(found))
        again = Explanation.from_dict(page, found.decision.problem)
        assert str(again) == str(found) and again.rows() == found.rows()
        assert again.as_dict() == found.as_dict() and same(again.then, found.then)
        assert again.document() == found.document()
        asked, before = again.decision, found.decision
        assert (asked.probability, asked.allowed) == (before.probability, before.allowed)


def test_a_decision_and_what_was_told_of_it(experiment):
    for case in experiment.records():
        page = over_the_wire(documents.case_to_json(experiment, case))
        assert Case.from_dict(page) == case
        assert [line[:-1] for line in page["notes"]] == experiment.idle(case.id)
        assert not Case.from_dict(page).changed
        if case.status != "erased":  # as a server says it that does not tell what it was before
            assert Case.from_dict(page | {"changed": True}).changed
    context = dict.fromkeys(experiment.problem.context, 1)
    asked = experiment.ask(context, "once")
    page = over_the_wire(documents.decision_to_json(asked))
    again = LiveDecision.from_dict(page, asked.problem)
    parts = {**vars(asked), "probabilities": None, "problem": None}
    assert {**vars(again), "probabilities": None, "problem": None} == parts
    assert same(again.probabilities, asked.probabilities) and repr(again) == repr(asked)


def test_what_another_policy_would_have_earned(experiment):
    arm = str(experiment.problem.arms[0])
    if experiment.name == "fresh":
        with pytest.raises(DowiseError, match="no decision to evaluate"):
            experiment.evaluate(arm)
        return
    found = experiment.evaluate(arm)
    page = over_the_wire(documents.evaluation_to_json(found))
    again = Evaluation.from_dict(page, found.problem)
    assert str(again) == str(found) and again.frame().equals(found.frame())
    assert again.document() == found.document()
    assert same(replace(again, replay=None), replace(found, replay=None))
    assert again.as_dict() == found.as_dict() and len(again.replay) == 0


def test_how_it_came_there(experiment):
    found = experiment.history(points=5)
    again = History.from_dict(over_the_wire(found.as_dict()))
    assert same(again, found) and again.frame().equals(found.frame())
    audit = experiment.audit(experiment.head)
    assert Audit.from_dict(over_the_wire(audit.as_dict())) == audit
    assert Audit.from_dict(over_the_wire(audit.as_dict())).document() == audit.document()
    counted = experiment.counted()
    assert RecordUsage.from_dict(over_the_wire(counted.as_dict())) == counted


def test_what_is_known(experiment):
    belief = experiment.belief
    page = over_the_wire(documents.belief_to_json(belief))["belief"]
    kind = IndependentArmsBelief if page["format"] == FORMAT else Belief
    again = kind.from_dict(page, belief.problem)
    context = dict.fromkeys(experiment.problem.context, 1)
    assert again.as_dict() == belief.as_dict()
    assert np.array_equal(again.mean_rewards(context), belief.mean_rewards(context))
    drawn = [one.draw_rewards(context, 5, 1) for one in (again, belief)]
    assert np.array_equal(*drawn)


def test_the_problem_of_an_earlier_decision_is_found_by_its_id():
    experiment = one_of("revised")
    page = over_the_wire(documents.experiment_to_json(experiment))
    assert page["problem_id"] == documents.problem_id(experiment.problem)
    assert page["api"] == documents.API and [*page["earlier_problems"]]
    asked = documents.explanation_to_json(experiment.explain(1))
    assert asked["problem_id"] in page["earlier_problems"]
    last = documents.explanation_to_json(experiment.explain(7))
    assert last["problem_id"] == page["problem_id"]


def test_arms_of_another_problem_are_no_arms_of_this_one():
    experiment = one_of("revised")
    then = experiment.explain(1).then
    page = over_the_wire(then.as_dict())
    with pytest.raises(ValueError, match="not those of the problem"):
        ArmSummary.from_dict(page, experiment.problem)


def test_what_a_finding_says():
    audit = replace(one_of("fresh").audit(), finding=None, known_upto=3)
    damaged = over_the_wire(replace(audit, head=None).as_dict())
    assert Audit.from_dict(damaged).notes() == replace(audit, head=None).notes()
    damaged["finding"] = {"event": 2, "why": "it is missing"}
    assert str(Audit.from_dict(damaged).finding) == "event 2: it is missing"


@given(st.lists(st.floats(), min_size=1))
def test_numbers_survive_exactly(numbers):
    page = over_the_wire(to_json(np.array(numbers)))
    assert same(array_from_json(page), np.array(numbers))
    assert all(same(float_from_json(x), y) for x, y in zip(page, numbers, strict=True))


LABELS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
ARMS = st.dictionaries(LABELS, LABELS, max_size=3).map(Intervention)
VALUES = st.dictionaries(LABELS, st.none() | LABELS, max_size=3)


@given(
    ARMS, st.none() | ARMS, VALUES, st.dictionaries(LABELS, st.lists(st.none() | LABELS)),
    st.booleans(), st.none() | LABELS, st.sampled_from(["pending", "done", "withdrawn", "erased"]),
)  # fmt: skip
def test_any_case(asked, played, values, before, flag, request, status):
    case = Case(
        3, 7, "2026-01-01T00:00:00Z", {"C": "1"}, asked, flag, request, values, before, played,
        not flag, status, 9,
    )  # fmt: skip
    if status == "erased":
        case = Case(3, 7, "", {}, Intervention(), status="erased", last_event=9)
    assert Case.from_dict(over_the_wire(case.as_dict(WARD))) == case


def test_events_are_read_back_and_those_that_are_not_whole_are_not_verified():
    events = one_of("eventful").events()
    for whole in (False, True):
        rows = [over_the_wire(row | {"body": json.loads(row["body"])})
                for row in (event.row() for event in events)]  # fmt: skip
        if not whole:
            rows = [row | {"salt": None, "is_whole": False} for row in rows]
        again = [Event.from_row(row) for row in rows]
        assert [one.payload for one in again] == [one.payload for one in events]
        assert [one.is_erased for one in again] == [one.is_erased for one in events]
        if whole:
            assert again == events
        else:
            assert {one.salt for one in again} == {WITHHELD, ""}


def test_what_is_sent_comes_to_the_same(tmp_path):
    experiment = one_of("imported")
    problem = experiment.problem
    table = {"Z": [0, None, 1, 1], "X": [1, 0, None, None], "Y": [1, "bad", None, 0],
             "arm": ["do()", "do()", "do(X=1)", "do(X=0)"]}  # fmt: skip
    found = problem.checked_records(table)
    page = over_the_wire(records_to_json(found))
    rows = page.pop("records")
    assert rows[1] == {"arm": "do(X=1)", "Z": "1"}
    again = records_from_json(rows, problem, **page)
    assert np.array_equal(again.batch.codes, found.batch.codes)
    assert np.array_equal(again.batch.was_set, found.batch.was_set)
    assert again.bad_count == found.bad_count == 1
    prior = tmp_path / "prior.toml"
    prior.write_text("Z = [2, 3]\n")
    assert options_to_json({"prior": prior, "samples": 7}) == {"prior": {"Z": [2, 3]}, "samples": 7}
    for target in ("ts", "do(X=1)", {"X": "1"}, {("1", "0"): "do(X=1)", ("0", "0"): "do()"}):
        assert target_from_json(over_the_wire(target_to_json(target))) == target
    with pytest.raises(DowiseError, match="can't be sent: give the name"):
        target_to_json(object())
