"""Looks that many share: one computes, nobody else holds a thread, equal ones are one."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.processes import until

from dowise import Experiment, load_problem
from dowise.errors import DowiseError, UnavailableError
from dowise_web import cache as looks
from dowise_web.cache import ResultCache, UnderwayError
from dowise_web.limits import FairLimiter

pytestmark = pytest.mark.slow  # real processes, and real waits

AT = "/api/experiments/ward%207"
PAGES = "/experiments/ward%207"


@pytest.fixture
def slow(monkeypatch):
    """A method of experiments that begins and does not end before the test says so."""
    go, calls = threading.Event(), []

    def hold(name):
        usual = getattr(Experiment, name)

        def held(*given, **more):
            calls.append(given[1:])
            go.wait(20)
            return usual(*given, **more)

        monkeypatch.setattr(Experiment, name, held)
        return calls, go

    yield hold
    go.set()


@pytest.fixture(scope="module", autouse=True)
def decided(ward):
    """A decision to explain."""
    one = ward.house.experiment("ward 7")
    one.tell(one.ask({"C": 1}).id, {"Y": 1})


def test_viewers_of_one_slow_status_leave_threads_for_those_who_ask(ward, slow):
    calls, go = slow("status")
    readers, admin = [ward.client("read") for _ in range(3)], ward.client()
    with ThreadPoolExecutor(50) as threads:
        try:
            address = f"{AT}/status?context=%7B%22C%22:0%7D"
            answers = [threads.submit(readers[n % 3].get, address) for n in range(50)]
            assert until(lambda: calls)
            asked = admin.post(f"{AT}/ask", json={"context": {"C": 1}}, timeout=5)
            told = admin.post(f"{AT}/tell/{asked.json()['id']}", json={"values": {"Y": 1}})
            assert (asked.status_code, told.status_code) == (200, 200)
            assert admin.get("/health", timeout=5).status_code == 200
        finally:
            go.set()
        pages = [answer.result().json() for answer in answers]
    assert {page["decisions"]["asked"] for page in pages} <= {1, 2}
    assert len(calls) <= 2  # and once more for those who came after the decision


@pytest.mark.parametrize(
    ("name", "address"),
    [("history", f"{AT}/history"), ("explain", f"{AT}/explain/1"), ("status", f"{PAGES}/known"),
     ("explain", f"{PAGES}/history/explain/1"), ("history", f"{PAGES}/known/past"),
     ("judged", f"{PAGES}/graph")],
)  # fmt: skip
def test_every_look_is_computed_once_for_all(ward, slow, name, address):
    ward.client().post(f"{AT}/ask", json={"context": {"C": 1}})  # nothing is remembered any more
    calls, go = slow(name)
    clients = [ward.client("read") for _ in range(3)]
    with ThreadPoolExecutor(3) as threads:
        answers = [threads.submit(one.get, address) for one in clients]
        assert until(lambda: calls)
        go.set()
        assert [answer.result().status_code for answer in answers] == [200] * 3
    assert len(calls) == 1


@pytest.fixture
def held_audits(monkeypatch):
    """Audits with a head last until the test says so."""
    go, held, usual = threading.Event(), [], Experiment.audit

    def audit(experiment, head=None, track=None):
        if head is not None:
            held.append(head)
            go.wait(20)
        return usual(experiment, None, track)

    monkeypatch.setattr(Experiment, "audit", audit)
    yield held, go
    go.set()


def test_one_reader_waits_with_few_requests_and_others_still_wait(ward, slow):
    """However many sessions come from the one token."""
    ward.client().post(f"{AT}/ask", json={"context": {"C": 1}})  # nothing is remembered any more
    calls, go = slow("status")
    secret, other = ward.token("read"), ward.client("read")
    theirs = [signed_in(ward, secret), ward._client({"Authorization": f"Bearer {secret}"})]
    address, waiting = f"{AT}/status", ward.house.waiters._waiting
    with ThreadPoolExecutor(30) as threads:
        try:
            answers = [threads.submit(theirs[n % 2].get, address) for n in range(25)]
            assert until(lambda: calls and sum(answer.done() for answer in answers) == 4)
            another = threads.submit(other.get, address)
            assert until(lambda: sorted(waiting.values()) == [1, 20])
        finally:
            go.set()
        found = [answer.result() for answer in answers]
        assert another.result().status_code == 200
    refused = [answer for answer in found if answer.status_code != 200]
    assert [answer.status_code for answer in refused] == [429] * 4
    assert "20 requests of yours wait" in refused[0].json()["detail"]
    assert refused[0].headers["Retry-After"] and not waiting


@pytest.mark.parametrize("failing", [1, 4])
@pytest.mark.parametrize("name", ["status", "history"])  # without a turn and with one
def test_where_a_look_fails_those_who_wait_have_answers_of_their_own(
    ward, monkeypatch, name, failing
):
    ward.client().post(f"{AT}/ask", json={"context": {"C": 1}})  # nothing is remembered any more
    go, calls, usual = threading.Event(), [], getattr(Experiment, name)

    def fails(*given, **more):
        calls.append(given)
        number = len(calls)
        assert go.wait(20)
        if number <= failing:
            raise DowiseError(f"failure {number}")
        return usual(*given, **more)

    monkeypatch.setattr(Experiment, name, fails)
    shared, before = ward.house._looks, dict(ward.house._looks._kept)
    clients = [ward.client("read") for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        try:
            answers = [threads.submit(one.get, f"{AT}/{name}") for one in clients]
            assert until(lambda: calls and len(ward.house.waiters._waiting) == 3)
        finally:
            go.set()
        found = [answer.result() for answer in answers]
    wrong = sorted(one.json()["detail"] for one in found if one.status_code == 422)
    assert wrong == [f"failure {n}" for n in range(1, failing + 1)]
    assert sum(one.status_code == 200 for one in found) == 4 - failing
    if failing == 4:
        assert shared._kept == before
    assert not shared._work and not shared._lines


def signed_in(ward, secret):
    browser = ward._client({"Sec-Fetch-Site": "same-origin", "Origin": ward.address})
    assert browser.post("/login", data={"secret": secret}).status_code == 303
    return browser


@pytest.mark.parametrize("is_in_browsers", [False, True])
def test_one_reader_leaves_long_looks_to_others(ward, held_audits, is_in_browsers):
    """However many sessions come from the one token."""
    held, go = held_audits
    secret, other = ward.token("read"), ward.client("read")
    bearer = {"Authorization": f"Bearer {secret}"}
    theirs = [signed_in(ward, secret) if is_in_browsers else ward._client(bearer)
              for _ in range(3)]  # fmt: skip
    with ThreadPoolExecutor(12) as threads:
        try:
            answers = [threads.submit(theirs[n % 3].get, f"{AT}/audit?head={n}") for n in range(12)]
            assert until(lambda: held and sum(answer.done() for answer in answers) == 8)
            assert other.get(f"{AT}/audit", timeout=5).status_code == 200
        finally:
            go.set()
        codes = sorted(answer.result().status_code for answer in answers)
    assert codes == [200] * 4 + [429] * 8


# -- keys -----------------------------------------------------------------------------------------

SAME = ['{"C": "1"}', '{"C":1}', ' {"C" : 1.0 }', '{"\\u0043": true}', '{"C": "0", "C": "1"}']


def test_equal_contexts_are_computed_once_however_they_are_written(ward, slow):
    calls, go = slow("status")
    go.set()
    reader = ward.client("read")
    pages = [reader.get(f"{AT}/status", params={"context": text}) for text in SAME]
    page = reader.get(f"{PAGES}/known", params={"context.C": "=1"})
    assert {answer.status_code for answer in (*pages, page)} == {200}
    assert len({str(answer.json()["contexts"]) for answer in pages}) == 1
    assert sum(given[0] is not None for given in calls) == 1


def test_what_can_not_be_looked_at_is_not_kept(ward):
    reader, kept = ward.client("read"), ward.house._looks._kept
    before = set(kept)
    for n in range(5):
        assert reader.get(f"{AT}/variable?variable=none{n}").status_code == 404
        assert (
            reader.get(f"{AT}/status", params={"context": f'{{"C": {n + 5}}}'}).status_code == 422
        )
        assert reader.get(f"{AT}/explain/{n + 900}").status_code == 404
    assert set(kept) == before and not ward.house._looks._work


# -- by itself ------------------------------------------------------------------------------------


@pytest.fixture
def one(tmp_path):
    with Experiment.create(tmp_path / "a.db", "a", load_problem("task1"), "ucb", seed=1) as made:
        yield made


def test_who_asks_meanwhile_is_told_to_wait(one):
    shared, waiting = ResultCache(FairLimiter()), []

    def compute():
        with pytest.raises(UnderwayError) as caught:
            shared.look(one, "x", lambda: 2)
        waiting.append(caught.value.done)
        return 1

    assert shared.look(one, "x", compute)[1] == 1 and waiting[0].done()
    assert shared.look(one, "x", lambda: 2)[1] == 1
    one.ask()
    assert shared.look(one, "x", lambda: 2)[1] == 2


def test_what_fails_is_tried_again(one):
    shared = ResultCache(FairLimiter())
    with pytest.raises(ZeroDivisionError):
        shared.look(one, "x", lambda: 1 / 0)
    assert shared.look(one, "x", lambda: 1)[1] == 1


def test_few_are_computed_at_once_and_few_are_kept(one, monkeypatch):
    shared = ResultCache(FairLimiter())
    monkeypatch.setattr(looks, "_WITHOUT_TURN", 1)
    monkeypatch.setattr(looks, "_KEPT", 2)

    def compute():
        with pytest.raises(UnderwayError):
            shared.look(one, "another", lambda: 2)

    shared.look(one, "x", compute)
    for key in "abc":
        shared.look(one, key, lambda: 1)
    assert [key for _, key in shared._kept] == ["b", "c"]


def test_what_began_after_one_came_is_new_enough(one):
    shared = ResultCache(FairLimiter())
    shared.look(one, "x", lambda: 1)
    one.ask()
    token = looks._arrived.set(0.0)
    try:
        assert shared.look(one, "x", lambda: 2)[1] == 1
    finally:
        looks._arrived.reset(token)
    assert shared.look(one, "x", lambda: 2)[1] == 2


# -- in line --------------------------------------------------------------------------------------


@pytest.fixture
def line(one):
    """Visitor 1 is at work on A and in line with B; looks at B, and what lets A end."""
    turns, go, found = FairLimiter(), threading.Event(), []
    shared = ResultCache(turns)

    def look_at_b(visitor):
        return shared.look(one, "B", lambda: found.append(visitor) or visitor, visitor)[1]

    with ThreadPoolExecutor(3) as threads:
        try:
            threads.submit(shared.look, one, "A", lambda: go.wait(20), 1)
            assert until(lambda: turns._at_work)
            first = threads.submit(look_at_b, 1)
            assert until(lambda: turns._waiting)
            yield shared, turns, look_at_b, first, go, threads, found
        finally:
            go.set()


def test_who_has_a_turn_does_not_wait_for_who_has_none(line):
    shared, _, look_at_b, first, go, _, found = line
    assert look_at_b(2) == 2
    assert not first.done()
    go.set()
    assert first.result(5) == 2 and found == [2]  # which was found while it stood in line
    assert not shared._lines and not shared._work


def test_as_many_stand_in_line_for_one_look_as_there_are_turns(line):
    _, turns, look_at_b, first, go, threads, found = line
    with pytest.raises(UnderwayError) as again:  # one visitor stands there once
        look_at_b(1)
    with turns.take(3):
        second = threads.submit(look_at_b, 2)
        assert until(lambda: len(turns._waiting) == 2)
        with pytest.raises(UnderwayError) as third:
            look_at_b(4)
    assert second.result(5) == 2 and not first.done()
    assert until(again.value.done.done) and until(third.value.done.done)
    assert look_at_b(4) == look_at_b(1) == 2
    go.set()
    assert first.result(5) == 2 and found == [2]


def test_who_gives_up_in_line_lets_those_who_wait_try(line, monkeypatch):
    shared, turns, look_at_b, _, _, _, _ = line
    monkeypatch.setattr("dowise_web.limits._PATIENCE", 0.01)
    with turns.take(3), pytest.raises(UnavailableError):
        look_at_b(2)
    assert shared._lines["a", "B"].visitors == {1}
    assert look_at_b(2) == 2
