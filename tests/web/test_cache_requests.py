"""Result cache over HTTP: one request computes, others wait without a thread."""

import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.processes import wait_until
from support.result_cache import cached_keys, unfinished_keys

from dowise import Experiment
from dowise.errors import DowiseError
from dowise.experiment import StateView

pytestmark = pytest.mark.slow  # real processes, and real waits

API = "/api/experiments/ward%207"
PAGES = "/experiments/ward%207"


@pytest.fixture
def slow(monkeypatch):
    """Let a query wait until the test allows it to continue."""
    may_continue, calls = threading.Event(), []

    def hold(name):
        method = getattr(StateView, name)
        signature = inspect.signature(method)

        def wait(*args, **options):
            calls.append(signature.bind(*args, **options).arguments)
            may_continue.wait(20)
            return method(*args, **options)

        monkeypatch.setattr(StateView, name, wait)
        return calls, may_continue

    yield hold
    may_continue.set()


@pytest.fixture(scope="module", autouse=True)
def decided(ward):
    """A decision to explain."""
    experiment = ward.registry.experiment("ward 7")
    experiment.tell(experiment.ask({"C": 1}).id, {"Y": 1})


def test_readers_of_a_slow_status_leave_threads_for_other_requests(ward, slow):
    calls, may_continue = slow("status")
    readers, admin = [ward.client("read") for _ in range(3)], ward.client()
    with ThreadPoolExecutor(50) as threads:
        try:
            address = f"{API}/status?context=%7B%22C%22:0%7D"
            answers = [threads.submit(readers[n % 3].get, address) for n in range(50)]
            assert wait_until(lambda: calls)
            asked = admin.post(f"{API}/ask", json={"context": {"C": 1}}, timeout=5)
            response = admin.post(f"{API}/tell/{asked.json()['id']}", json={"values": {"Y": 1}})
            assert (asked.status_code, response.status_code) == (200, 200)
            assert admin.get("/health", timeout=5).status_code == 200
        finally:
            may_continue.set()
        pages = [answer.result().json() for answer in answers]
    assert {page["decisions"]["asked"] for page in pages} <= {1, 2}
    assert len(calls) <= 2  # once more for requests after the decision


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("history", f"{API}/history"),
        ("explain", f"{API}/explain/1"),
        ("status", f"{PAGES}/known"),
        ("explain", f"{PAGES}/history/explain/1"),
        ("history", f"{PAGES}/known/past"),
        ("judged", f"{PAGES}/graph"),
    ],
)
def test_concurrent_requests_share_one_computation(ward, slow, name, address):
    ward.client().post(f"{API}/ask", json={"context": {"C": 1}})  # the cached results are outdated
    calls, may_continue = slow(name)
    clients = [ward.client("read") for _ in range(3)]
    with ThreadPoolExecutor(3) as threads:
        answers = [threads.submit(client.get, address) for client in clients]
        assert wait_until(lambda: calls)
        may_continue.set()
        assert [answer.result().status_code for answer in answers] == [200] * 3
    assert len(calls) == 1


@pytest.fixture
def waiting_audits(monkeypatch):
    """Let audits with a head wait until the test allows them to continue."""
    may_continue, heads, method = threading.Event(), [], Experiment.audit

    def audit(experiment, head=None, track=None):
        if head is not None:
            heads.append(head)
            may_continue.wait(20)
        return method(experiment, None, track)

    monkeypatch.setattr(Experiment, "audit", audit)
    yield heads, may_continue
    may_continue.set()


def test_waiting_requests_are_limited_per_token(ward, slow):
    """Also if they come from several sessions of one token."""
    ward.client().post(f"{API}/ask", json={"context": {"C": 1}})  # the cached results are outdated
    calls, may_continue = slow("status")
    secret, other = ward.token("read"), ward.client("read")
    clients = [signed_in(ward, secret), ward.new_client({"Authorization": f"Bearer {secret}"})]
    address, waiting = f"{API}/status", ward.registry.results.waiting
    with ThreadPoolExecutor(30) as threads:
        try:
            answers = [threads.submit(clients[n % 2].get, address) for n in range(25)]
            assert wait_until(lambda: calls and sum(answer.done() for answer in answers) == 4)
            another = threads.submit(other.get, address)
            assert wait_until(lambda: sorted(waiting.values()) == [1, 20])
        finally:
            may_continue.set()
        results = [answer.result() for answer in answers]
        assert another.result().status_code == 200
    refused = [answer for answer in results if answer.status_code != 200]
    assert [answer.status_code for answer in refused] == [429] * 4
    assert refused[0].json()["code"] == "too-many-requests"
    assert refused[0].headers["Retry-After"] and not waiting


@pytest.mark.parametrize("failing", [1, 4])
@pytest.mark.parametrize("name", ["status", "history"])  # a short and a long query
def test_after_a_failure_each_waiting_request_computes_its_own_result(
    ward, monkeypatch, name, failing
):
    ward.client().post(f"{API}/ask", json={"context": {"C": 1}})  # the cached results are outdated
    may_continue, calls, method = threading.Event(), [], getattr(StateView, name)

    def fail(*args, **options):
        calls.append(args)
        number = len(calls)
        assert may_continue.wait(20)
        if number <= failing:
            raise DowiseError(f"failure {number}")
        return method(*args, **options)

    monkeypatch.setattr(StateView, name, fail)
    results, before = ward.registry.results, cached_keys(ward.registry.results)
    clients = [ward.client("read") for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        try:
            answers = [threads.submit(client.get, f"{API}/{name}") for client in clients]
            assert wait_until(lambda: calls and len(results.waiting) == 3)
            (key,) = unfinished_keys(results)
        finally:
            may_continue.set()
        responses = [answer.result() for answer in answers]
    failures = sorted(r.json()["detail"] for r in responses if r.status_code == 422)
    assert failures == [f"failure {n}" for n in range(1, failing + 1)]
    assert sum(r.status_code == 200 for r in responses) == 4 - failing
    if failing == 4:
        assert cached_keys(results) == [other for other in before if other != key]
    assert not unfinished_keys(results)


def signed_in(ward, secret):
    browser = ward.anonymous_browser()
    assert browser.post("/login", data={"secret": secret}).status_code == 303
    return browser


@pytest.mark.parametrize("is_in_browsers", [False, True])
def test_one_principal_leaves_slots_for_others(ward, waiting_audits, is_in_browsers):
    """Also if they come from several sessions of one token."""
    heads, may_continue = waiting_audits
    secret, other = ward.token("read"), ward.client("read")
    bearer = {"Authorization": f"Bearer {secret}"}
    clients = [
        signed_in(ward, secret) if is_in_browsers else ward.new_client(bearer) for _ in range(3)
    ]
    with ThreadPoolExecutor(12) as threads:
        try:
            answers = [
                threads.submit(clients[n % 3].get, f"{API}/audit?head={n}") for n in range(12)
            ]
            assert wait_until(lambda: heads and sum(answer.done() for answer in answers) == 8)
            assert other.get(f"{API}/audit", timeout=5).status_code == 200
        finally:
            may_continue.set()
        codes = sorted(answer.result().status_code for answer in answers)
    assert codes == [200] * 4 + [429] * 8


# -- keys -----------------------------------------------------------------------------------------

EQUAL_CONTEXTS = [
    '{"C": "1"}',
    '{"C":1}',
    ' {"C" : 1.0 }',
    '{"\\u0043": true}',
    '{"C": "0", "C": "1"}',
]


def test_equal_contexts_share_a_result(ward, slow):
    calls, may_continue = slow("status")
    may_continue.set()
    reader = ward.client("read")
    pages = [reader.get(f"{API}/status", params={"context": text}) for text in EQUAL_CONTEXTS]
    page = reader.get(f"{PAGES}/known", params={"context.C": "=1"})
    assert {answer.status_code for answer in (*pages, page)} == {200}
    assert len({str(answer.json()["contexts"]) for answer in pages}) == 1
    assert sum(arguments.get("context") is not None for arguments in calls) == 1


def test_failed_queries_are_not_cached(ward):
    reader, results = ward.client("read"), ward.registry.results
    before = set(cached_keys(results))
    for n in range(5):
        assert reader.get(f"{API}/variable?variable=none{n}").status_code == 404
        assert (
            reader.get(f"{API}/status", params={"context": f'{{"C": {n + 5}}}'}).status_code == 422
        )
        assert reader.get(f"{API}/explain/{n + 900}").status_code == 404
    assert set(cached_keys(results)) == before and not unfinished_keys(results)
