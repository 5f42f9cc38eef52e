"""JSON documents: results that were sent and read back are the same, to the last bit."""

import json
from dataclasses import fields, replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from support.sample_experiments import SAMPLES, WARD, frozen_clock, make_sample

from dowise._core.codec import array_from_json, float_from_json, to_json
from dowise.belief import Belief
from dowise.errors import DowiseError
from dowise.experiment import wire
from dowise.experiment.ask import LiveDecision
from dowise.experiment.audit import Audit
from dowise.experiment.case import Case
from dowise.experiment.evaluation import Evaluation
from dowise.experiment.event import WITHHELD, Event
from dowise.experiment.explanation import Explanation
from dowise.experiment.history import History
from dowise.experiment.record_usage import RecordUsage
from dowise.experiment.status import ArmSummary, Status
from dowise.policies.independent_arms import FORMAT, IndependentArmsBelief
from dowise.problem import Intervention

pytestmark = pytest.mark.slow  # every kind of experiment


def sent(data):
    """Return a document after it was sent: JSON has neither NaN nor infinity."""
    return json.loads(json.dumps(data, allow_nan=False))


@pytest.fixture(scope="module", params=SAMPLES)
def experiment(request):
    return make_sample(request.param)


def are_equal(one, other):
    """Return True if two objects have the same parts that count, to the last bit."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype == float)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(are_equal, one, other))
    if hasattr(one, "__dataclass_fields__") and not isinstance(one, type):
        names = [x.name for x in fields(one) if x.compare]
        return all(are_equal(getattr(one, name), getattr(other, name)) for name in names)
    return type(one) is type(other) and (one == other or (one != one and other != other))


# -- results --------------------------------------------------------------------------------------


def test_a_status_survives_the_wire(experiment, monkeypatch):
    rounds = None if experiment.name in ("large", "doubtful") else 5
    status = experiment.status(rounds=rounds)
    decoded = Status.from_dict(sent(wire.status_to_json(status, tolerance=0.1)), status.problem)
    with frozen_clock(monkeypatch):
        assert decoded.document(0.2) == status.document(0.2)
        assert decoded.as_dict(0.3) == status.as_dict(0.3)
    assert decoded.frame().equals(status.frame())
    without_evidence = {"evidence": None}  # whose edges are in another order
    assert are_equal(replace(decoded, **without_evidence), replace(status, **without_evidence))
    if status.evidence is not None:
        assert decoded.evidence.as_dict() == status.evidence.as_dict()
        assert decoded.evidence.rows() == status.evidence.rows()
        assert decoded.evidence.frame().equals(status.evidence.frame())


def test_explanations_survive_the_wire(experiment):
    for case in experiment.records():
        if case.status == "erased":
            continue
        explanation = experiment.explain(case.id)
        data = sent(wire.explanation_to_json(explanation))
        decoded = Explanation.from_dict(data, explanation.decision.problem)
        assert decoded.document() == explanation.document()
        assert decoded.as_dict() == explanation.as_dict()
        assert are_equal(decoded.then, explanation.then)
        assert decoded.decision.allowed == explanation.decision.allowed


def test_decisions_and_cases_survive_the_wire(experiment):
    for case in experiment.records():
        data = sent(wire.case_to_json(experiment, case))
        assert Case.from_dict(data) == case
        assert [line[:-1] for line in data["notes"]] == experiment.idle(case.id)
        assert not Case.from_dict(data).changed
        if case.status != "erased":  # a server may say only that it changed
            assert Case.from_dict(data | {"changed": True}).changed
    decision = experiment.ask(dict.fromkeys(experiment.problem.context, 1), "once")
    decoded = LiveDecision.from_dict(sent(wire.decision_to_json(decision)), decision.problem)
    parts = {"probabilities": None, "problem": None}
    assert vars(decoded) | parts == vars(decision) | parts
    assert are_equal(decoded.probabilities, decision.probabilities)
    assert repr(decoded) == repr(decision)


def test_an_evaluation_survives_the_wire(experiment):
    if experiment.name == "fresh":
        return  # there is nothing to evaluate
    evaluation = experiment.evaluate(str(experiment.problem.arms[0]))
    decoded = Evaluation.from_dict(sent(wire.evaluation_to_json(evaluation)), evaluation.problem)
    assert decoded.frame().equals(evaluation.frame())
    assert decoded.document() == evaluation.document()
    assert are_equal(replace(decoded, replay=None), replace(evaluation, replay=None))
    assert decoded.as_dict() == evaluation.as_dict() and len(decoded.replay) == 0


def test_history_audit_and_usage_survive_the_wire(experiment):
    history = experiment.history(points=5)
    decoded = History.from_dict(sent(history.as_dict()))
    assert are_equal(decoded, history) and decoded.frame().equals(history.frame())
    audit = experiment.audit(experiment.head)
    assert Audit.from_dict(sent(audit.as_dict())) == audit
    usage = experiment.counted()
    assert RecordUsage.from_dict(sent(usage.as_dict())) == usage


def test_a_belief_survives_the_wire(experiment):
    belief = experiment.belief
    data = sent(wire.belief_to_json(belief))["belief"]
    kind = IndependentArmsBelief if data["format"] == FORMAT else Belief
    decoded = kind.from_dict(data, belief.problem)
    context = dict.fromkeys(experiment.problem.context, 1)
    assert decoded.as_dict() == belief.as_dict()
    assert np.array_equal(decoded.mean_rewards(context), belief.mean_rewards(context))
    assert np.array_equal(*(x.draw_rewards(context, 5, 1) for x in (decoded, belief)))


def test_results_name_the_problem_of_their_time():
    experiment = make_sample("revised")
    data = sent(wire.experiment_to_json(experiment))
    assert data["problem_id"] == wire.problem_id(experiment.problem)
    assert data["api"] == wire.API
    before = wire.explanation_to_json(experiment.explain(1))
    assert before["problem_id"] in data["earlier_problems"]
    after = wire.explanation_to_json(experiment.explain(7))
    assert after["problem_id"] == data["problem_id"]
    arms = sent(experiment.explain(1).then.as_dict())
    with pytest.raises(ValueError, match="not those of the problem"):
        ArmSummary.from_dict(arms, experiment.problem)


def test_an_audit_without_a_head_survives_the_wire():
    audit = replace(make_sample("fresh").audit(), finding=None, known_upto=3, head=None)
    data = sent(audit.as_dict())
    assert Audit.from_dict(data) == audit
    data["finding"] = {"event": 2, "why": "it is missing"}
    assert str(Audit.from_dict(data).finding) == "event 2: it is missing"


@given(st.lists(st.floats(), min_size=1))
def test_floats_survive_json(numbers):
    data = sent(to_json(np.array(numbers)))
    assert are_equal(array_from_json(data), np.array(numbers))
    assert all(are_equal(float_from_json(x), y) for x, y in zip(data, numbers, strict=True))


LABELS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
ARMS = st.dictionaries(LABELS, LABELS, max_size=3).map(Intervention)
VALUES = st.dictionaries(LABELS, st.none() | LABELS, max_size=3)


@given(
    arm=ARMS,
    played=st.none() | ARMS,
    values=VALUES,
    earlier_values=st.dictionaries(LABELS, st.lists(st.none() | LABELS)),
    flag=st.booleans(),
    request=st.none() | LABELS,
    status=st.sampled_from(["pending", "done", "withdrawn", "erased"]),
)
def test_any_case_survives_the_wire(arm, played, values, earlier_values, flag, request, status):
    case = Case(
        3, 7, "2026-01-01T00:00:00Z", {"C": "1"}, arm, flag, request, values, {},
        earlier_values, played, not flag, status, 9,
    )  # fmt: skip
    if status == "erased":
        case = Case(3, 7, "", {}, Intervention(), status="erased", last_event=9)
    assert Case.from_dict(sent(case.as_dict(WARD))) == case


@pytest.mark.parametrize("is_whole", [True, False])
def test_events_survive_the_wire(is_whole):
    events = make_sample("eventful").events()
    rows = [sent(event.row() | {"body": json.loads(event.body)}) for event in events]
    if not is_whole:
        rows = [row | {"salt": None, "is_whole": False} for row in rows]
    decoded = [Event.from_row(row) for row in rows]
    assert [event.payload for event in decoded] == [event.payload for event in events]
    assert [event.is_erased for event in decoded] == [event.is_erased for event in events]
    if is_whole:
        assert decoded == events
    else:
        assert {event.salt for event in decoded} == {WITHHELD, ""}


# -- requests -------------------------------------------------------------------------------------


def test_records_survive_the_wire():
    problem = make_sample("imported").problem
    table = {
        "Z": [0, None, 1, 1],
        "X": [1, 0, None, None],
        "Y": [1, "bad", None, 0],
        "arm": ["do()", "do()", "do(X=1)", "do(X=0)"],
    }
    checked = problem.checked_records(table)
    data = sent(wire.records_to_json(checked))
    rows = data.pop("records")
    assert rows[1] == {"arm": "do(X=1)", "Z": "1"}
    decoded = wire.records_from_json(rows, problem, **data)
    assert np.array_equal(decoded.batch.codes, checked.batch.codes)
    assert np.array_equal(decoded.batch.was_set, checked.batch.was_set)
    assert decoded.bad_count == checked.bad_count == 1


def test_options_and_targets_are_plain_data(tmp_path):
    prior = tmp_path / "prior.toml"
    prior.write_text("Z = [2, 3]\n")
    options = wire.options_to_json({"prior": prior, "samples": 7})
    assert options == {"prior": {"Z": [2, 3]}, "samples": 7}
    for name in ("flat", "pooled"):  # not a file
        assert wire.options_to_json({"prior": name}) == {"prior": name}
    for name in ("flat", "pooled"):  # not a file
        assert wire.options_to_json({"prior": name}) == {"prior": name}
    for target in ("ts", "do(X=1)", {"X": "1"}, {("1", "0"): "do(X=1)", ("0", "0"): "do()"}):
        assert wire.target_from_json(sent(wire.target_to_json(target))) == target
    with pytest.raises(DowiseError, match="can't be sent"):
        wire.target_to_json(object())
