"""What every surface of an experiment does alike: requests, pieces, conflicts, corrections.

`surface` is one of the drivers in `support/surfaces.py`. What only one surface has (output, roles,
headers, Python types) is tested beside that surface.
"""

from itertools import count

import pytest
from support.errors import raises_code
from support.experiments import WARD
from support.servers import running
from support.surfaces import local_surface, served_surface

numbers = count()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A server for all tests of this session."""
    store = tmp_path_factory.mktemp("surfaces") / "ward.db"
    with running(store, rate=10_000.0, failures=1_000.0) as server:
        server.http, server.admin_token = server.client("admin"), server.token("admin")
        yield server


@pytest.fixture(params=["memory", "sqlite", "cli", "client", "http"])
def surface(request, tmp_path):
    """A new experiment behind one of the surfaces."""
    if request.param in ("client", "http"):
        server = request.getfixturevalue("server")
        return served_surface(request.param, WARD, server, next(numbers))
    return local_surface(request.param, WARD, tmp_path)


@pytest.fixture
def asked(surface):
    """A surface with decision 1, which is do(W=0, X=1) in the context C=1."""
    assert surface.ask({"C": 1}, allowed=["do(W=0, X=1)"])["text"] == "do(W=0, X=1)"
    return surface


def events(surface):
    """Return the number of events of the journal."""
    return surface.stored.head.number


def last_payload(surface):
    return surface.stored.events()[-1].payload


# -- asking ---------------------------------------------------------------------------------------


def test_ask_returns_an_arm_with_its_probability_and_reason(surface):
    decision = surface.ask({"C": 1})
    assert (decision["id"], decision["context"], decision["allowed"]) == (1, {"C": "1"}, None)
    assert decision["arms"] == [str(arm) for arm in WARD.arms]
    assert decision["text"] in decision["arms"] and decision["reason"]
    assert sum(decision["probabilities"]) == pytest.approx(1)
    assert [case.id for case in surface.stored.pending()] == [1]


def test_the_same_request_returns_the_same_decision(surface):
    first = surface.ask({"C": 1}, "visit 1", forbid=["do(W=1)"])
    allowed = [str(arm) for arm in WARD.arms if arm.get("W") != "1"]
    assert surface.ask({"C": "1"}, "visit 1", forbid=["do(W=1)"]) == first
    assert surface.ask({"C": 1}, "visit 1", allowed=allowed) == first
    assert events(surface) == 2


@pytest.mark.parametrize(
    ("context", "restriction"),
    [({"C": 0}, {"forbid": ["do(W=1)"]}), ({"C": 1}, {}), ({"C": 1}, {"allowed": ["do(X=1)"]})],
)
def test_the_same_request_with_another_question_is_a_conflict(surface, context, restriction):
    surface.ask({"C": 1}, "visit 1", forbid=["do(W=1)"])
    with raises_code("request-conflict", "'visit 1'"):
        surface.ask(context, "visit 1", **restriction)
    assert events(surface) == 2


def test_a_batch_is_one_request(surface):
    batch = [{"C": 1}] * 3
    decisions = surface.ask_many(batch, "batch")
    assert [decision["id"] for decision in decisions] == [1, 2, 3]
    assert surface.ask_many(batch, "batch") == decisions and events(surface) == 4
    with raises_code("request-conflict", "for 3 at once, now for 2"):
        surface.ask_many(batch[:2], "batch")
    surface.erase(2, "consent withdrawn")
    with raises_code("decision-erased", "'batch'"):
        surface.ask_many(batch, "batch")


def test_a_restriction_excludes_arms(surface):
    decision = surface.ask({"C": 0}, forbid=["do(W=1)"])
    assert "W=1" not in decision["text"]
    assert decision["allowed"] == [str(arm) for arm in WARD.arms if arm.get("W") != "1"]
    for arm, probability in zip(decision["arms"], decision["probabilities"], strict=True):
        assert (probability > 0) == (arm in decision["allowed"])
    decision = surface.ask({"C": 0}, forbid=["do(W=1, X=0)"])  # only both settings together
    assert {*decision["arms"]} - {*decision["allowed"]} == {"do(W=1, X=0)"}
    decision = surface.ask({"C": 0}, allowed=["do()", "do(W=1)"], forbid=["do()"])
    assert decision["text"] == "do(W=1)"
    assert surface.ask({"C": 0}, allowed=[str(arm) for arm in WARD.arms])["allowed"] is None
    restricted = [case.is_restricted for case in surface.stored.records()]
    assert restricted == [True, True, True, False]


@pytest.mark.parametrize(
    ("context", "restriction", "code"),
    [
        ({}, {}, "missing-value"),
        ({"C": 7}, {}, "unknown-value"),
        ({"C": 1, "Q": 1}, {}, "unknown-variable"),
        ({"C": 1}, {"allowed": ["do(X=2)"]}, "unknown-value"),
        ({"C": 1}, {"allowed": ["do(X=1"]}, "syntax-error"),
        ({"C": 1}, {"forbid": ["do(Z=1)"]}, "not-manipulable"),
        ({"C": 1}, {"allowed": ["do(W=1, X=1)"], "forbid": ["do(X=1)"]}, "no-arms"),
    ],
)
def test_invalid_questions_are_refused(surface, context, restriction, code):
    with raises_code(code):
        surface.ask(context, **restriction)
    assert events(surface) == 1


# -- telling --------------------------------------------------------------------------------------


def test_values_may_be_told_in_pieces(asked):
    case = asked.tell(1, {"Z": 0})
    assert (case["status"], case["open"], case["changed"]) == ("pending", ["Y"], True)
    case = asked.tell(1, {"Y": 1})
    assert (case["status"], case["open"]) == ("done", [])
    assert case["values"] == {"Z": "0", "Y": "1"}


def test_a_missing_reward_ends_a_decision(asked):
    case = asked.tell(1, {"Y": None})
    assert (case["status"], case["values"]) == ("done", {"Y": None})


def test_tell_twice_is_a_no_op(asked):
    asked.tell(1, {"Y": 1})
    for values in ({"Y": 1}, {"C": 1, "X": 1, "Y": "1"}):
        assert not asked.tell(1, values)["changed"]
    assert events(asked) == 3


@pytest.mark.parametrize("values", [{"Y": 0}, {"Y": None}, {"C": 0}, {"X": 0, "Z": 1}])
def test_a_value_that_contradicts_another_is_a_conflict(asked, values):
    asked.tell(1, {"Y": 1})
    with raises_code("conflict", "decision 1"):
        asked.tell(1, values)
    assert events(asked) == 3


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({}, "missing-value"),
        ({"Q": 1}, "unknown-variable"),
        ({"Z": "high"}, "unknown-value"),
    ],
)
def test_invalid_values_are_refused(asked, values, code):
    with raises_code(code):
        asked.tell(1, values)
    assert events(asked) == 2


@pytest.mark.parametrize("verb", ["tell", "amend", "withdraw", "erase"])
def test_an_unknown_decision_is_refused(asked, verb):
    arguments = {"tell": ({"Y": 1},), "amend": ({"Y": 1}, "typo")}.get(verb, ("left",))
    with raises_code("unknown-decision", "2"):
        getattr(asked, verb)(2, *arguments)


def test_another_arm_may_be_told(asked):
    case = asked.tell(1, {"Y": 1}, played="do(W=1, X=0)")
    assert (case["text"], case["unrelated"]) == ("do(W=1, X=0)", False)
    assert not asked.tell(1, {"Y": 1}, played="do(W=1, X=0)")["changed"]
    with raises_code("conflict", "do(W=1, X=0)"):
        asked.tell(1, played="do(W=1, X=0)", unrelated=True)
    case = asked.amend(1, None, "misheard", played="do(W=1, X=0)", unrelated=True)
    assert case["unrelated"] and case["changed"]
    case = asked.amend(1, None, "misheard", played="do(W=0, X=1)")
    assert (case["text"], case["played"]) == ("do(W=0, X=1)", None)
    with raises_code("missing-value"):
        asked.tell(1, {"Z": 1}, unrelated=True)


# -- correcting -----------------------------------------------------------------------------------


def test_an_amendment_keeps_the_earlier_values(asked):
    asked.tell(1, {"Y": 1, "Z": 0})
    case = asked.amend(1, {"Y": 0, "Z": 0, "C": 0}, "two typos")
    assert (case["values"], case["context"]) == ({"Y": "0", "Z": "0"}, {"C": "0"})
    payload = last_payload(asked)
    assert payload["values"] == {"Y": "0", "C": "0"} and payload["before"] == {"Y": "1", "C": "1"}
    assert payload["reason"] == "two typos"
    assert not asked.amend(1, {"Y": 0}, "again")["changed"]


def test_an_earlier_tell_may_be_repeated_after_an_amendment(asked):
    asked.tell(1, {"Y": 1})
    asked.amend(1, {"Y": 0}, "typo")
    case = asked.tell(1, {"Y": 1})
    assert case["values"] == {"Y": "0"} and not case["changed"]
    with raises_code("conflict", "amended"):
        asked.tell(1, {"Y": 1, "Z": 1})


@pytest.mark.parametrize(
    ("values", "reason", "code"),
    [
        ({"Z": 1}, "typo", "conflict"),  # not told yet
        ({"C": None}, "typo", "missing-value"),
        ({"X": 0}, "typo", "conflict"),  # set by the arm
        ({}, "typo", "missing-value"),
        ({"Q": 1}, "typo", "unknown-variable"),
        ({"Y": 5}, "typo", "unknown-value"),
        ({"Y": 0}, " ", "missing-value"),
    ],
)
def test_invalid_amendments_are_refused(asked, values, reason, code):
    asked.tell(1, {"Y": 1})
    with raises_code(code):
        asked.amend(1, values, reason)
    assert events(asked) == 3


def test_withdraw_closes_a_pending_decision(asked):
    with raises_code("missing-value"):
        asked.withdraw(1, " ")
    assert asked.withdraw(1, "moved away")["status"] == "withdrawn"
    assert not asked.withdraw(1, "moved away")["changed"]
    with raises_code("decision-withdrawn"):
        asked.tell(1, {"Y": 1})
    with raises_code("decision-withdrawn"):
        asked.amend(1, {"C": 0}, "typo")
    assert asked.stored.pending() == ()


def test_a_decision_with_an_outcome_cannot_be_withdrawn(asked):
    asked.tell(1, {"Y": 1})
    with raises_code("conflict", "decision 1"):
        asked.withdraw(1, "too late")


def test_erase_removes_all_values(asked):
    asked.tell(1, {"Y": 1})
    with raises_code("missing-value"):
        asked.erase(1, " ")
    assert asked.erase(1, "consent withdrawn") and not asked.erase(1, "again")
    for verb, arguments in (
        ("tell", ({"Y": 1},)),
        ("amend", ({"Y": 1}, "x")),
        ("withdraw", ("x",)),
    ):
        with raises_code("decision-erased"):
            getattr(asked, verb)(1, *arguments)
    assert [event.is_erased for event in asked.stored.events()] == [False, True, True, False]
    assert asked.stored.audit().ok


# -- the experiment itself ------------------------------------------------------------------------


@pytest.mark.slow  # over HTTP a process tries the new policy
def test_revise_changes_the_policy(asked):
    with raises_code("missing-value"):
        asked.revise("ucb", " ")
    assert asked.revise("ucb", "faster") and not asked.revise("ucb", "again")
    assert asked.stored.policy == "ucb" and last_payload(asked)["reason"] == "faster"


def test_the_same_records_are_imported_once(asked):
    rows = [{"C": 0, "X": 1, "Y": 1}, {"C": 1, "X": 0, "Y": 0}]
    assert asked.import_records(rows) == 2
    with raises_code("conflict", "event 3"):
        asked.import_records(rows)
    assert asked.import_records(rows, again=True) == 2
    with raises_code("bad-rows"):
        asked.import_records([{"C": 0, "X": 1, "Y": 9}])
