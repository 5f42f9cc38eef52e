"""Shared query results: one request computes, others wait without a thread, equal ones share."""

import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.processes import wait_until

from dowise import Experiment
from dowise.errors import DowiseError
from dowise.experiment import StateView

pytestmark = pytest.mark.slow  # real processes, and real waits

AT = "/api/experiments/ward%207"
PAGES = "/experiments/ward%207"


@pytest.fixture
def slow(monkeypatch):
    """A method of experiments that begins and does not end before the test says so."""
    go, calls = threading.Event(), []

    def hold(name):
        usual = getattr(StateView, name)
        signature = inspect.signature(usual)

        def held(*given, **more):
            calls.append(signature.bind(*given, **more).arguments)
            go.wait(20)
            return usual(*given, **more)

        monkeypatch.setattr(StateView, name, held)
        return calls, go

    yield hold
    go.set()


@pytest.fixture(scope="module", autouse=True)
def decided(ward):
    """A decision to explain."""
    one = ward.registry.experiment("ward 7")
    one.tell(one.ask({"C": 1}).id, {"Y": 1})


def test_readers_of_a_slow_status_leave_threads_for_other_requests(ward, slow):
    calls, go = slow("status")
    readers, admin = [ward.client("read") for _ in range(3)], ward.client()
    with ThreadPoolExecutor(50) as threads:
        try:
            address = f"{AT}/status?context=%7B%22C%22:0%7D"
            answers = [threads.submit(readers[n % 3].get, address) for n in range(50)]
            assert wait_until(lambda: calls)
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
def test_concurrent_requests_share_one_computation(ward, slow, name, address):
    ward.client().post(f"{AT}/ask", json={"context": {"C": 1}})  # the cached results are outdated
    calls, go = slow(name)
    clients = [ward.client("read") for _ in range(3)]
    with ThreadPoolExecutor(3) as threads:
        answers = [threads.submit(one.get, address) for one in clients]
        assert wait_until(lambda: calls)
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
    ward.client().post(f"{AT}/ask", json={"context": {"C": 1}})  # the cached results are outdated
    calls, go = slow("status")
    secret, other = ward.token("read"), ward.client("read")
    theirs = [signed_in(ward, secret), ward.new_client({"Authorization": f"Bearer {secret}"})]
    address, waiting = f"{AT}/status", ward.registry.results.waiting
    with ThreadPoolExecutor(30) as threads:
        try:
            answers = [threads.submit(theirs[n % 2].get, address) for n in range(25)]
            assert wait_until(lambda: calls and sum(answer.done() for answer in answers) == 4)
            another = threads.submit(other.get, address)
            assert wait_until(lambda: sorted(waiting.values()) == [1, 20])
        finally:
            go.set()
        found = [answer.result() for answer in answers]
        assert another.result().status_code == 200
    refused = [answer for answer in found if answer.status_code != 200]
    assert [answer.status_code for answer in refused] == [429] * 4
    assert refused[0].json()["code"] == "too-many-requests"
    assert refused[0].headers["Retry-After"] and not waiting


@pytest.mark.parametrize("failing", [1, 4])
@pytest.mark.parametrize("name", ["status", "history"])  # without a turn and with one
def test_after_a_failure_each_waiting_request_computes_its_own_result(
    ward, monkeypatch, name, failing
):
    ward.client().post(f"{AT}/ask", json={"context": {"C": 1}})  # the cached results are outdated
    go, calls, usual = threading.Event(), [], getattr(StateView, name)

    def fails(*given, **more):
        calls.append(given)
        number = len(calls)
        assert go.wait(20)
        if number <= failing:
            raise DowiseError(f"failure {number}")
        return usual(*given, **more)

    monkeypatch.setattr(StateView, name, fails)
    shared, before = ward.registry.results, ward.registry.results.keys()
    clients = [ward.client("read") for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        try:
            answers = [threads.submit(one.get, f"{AT}/{name}") for one in clients]
            assert wait_until(lambda: calls and len(shared.waiting) == 3)
            (key,) = shared.unfinished()
        finally:
            go.set()
        found = [answer.result() for answer in answers]
    wrong = sorted(one.json()["detail"] for one in found if one.status_code == 422)
    assert wrong == [f"failure {n}" for n in range(1, failing + 1)]
    assert sum(one.status_code == 200 for one in found) == 4 - failing
    if failing == 4:
        assert shared.keys() == [other for other in before if other != key]
    assert not shared.unfinished()


def signed_in(ward, secret):
    browser = ward.anonymous_browser()
    assert browser.post("/login", data={"secret": secret}).status_code == 303
    return browser


@pytest.mark.parametrize("is_in_browsers", [False, True])
def test_one_principal_leaves_slots_for_others(ward, held_audits, is_in_browsers):
    """However many sessions come from the one token."""
    held, go = held_audits
    secret, other = ward.token("read"), ward.client("read")
    bearer = {"Authorization": f"Bearer {secret}"}
    theirs = [signed_in(ward, secret) if is_in_browsers else ward.new_client(bearer)
              for _ in range(3)]  # fmt: skip
    with ThreadPoolExecutor(12) as threads:
        try:
            answers = [threads.submit(theirs[n % 3].get, f"{AT}/audit?head={n}") for n in range(12)]
            assert wait_until(lambda: held and sum(answer.done() for answer in answers) == 8)
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
    assert sum(given.get("context") is not None for given in calls) == 1


def test_failed_queries_are_not_cached(ward):
    reader, results = ward.client("read"), ward.registry.results
    before = set(results.keys())
    for n in range(5):
        assert reader.get(f"{AT}/variable?variable=none{n}").status_code == 404
        assert (
            reader.get(f"{AT}/status", params={"context": f'{{"C": {n + 5}}}'}).status_code == 422
        )
        assert reader.get(f"{AT}/explain/{n + 900}").status_code == 404
    assert set(results.keys()) == before and not results.unfinished()
