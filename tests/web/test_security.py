"""Security middleware: hosts, origins, sizes, timeouts, rates, headers and the log."""

import contextlib
import logging
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from support.processes import wait_until
from support.servers import running

from dowise_web import security
from dowise_web import server as server_module
from dowise_web.auth import csrf_token
from dowise_web.settings import Settings

pytestmark = pytest.mark.slow  # real connections and waits

API = "/api/experiments/ward%207"


@pytest.fixture(scope="module")
def admin(ward):
    return ward.client()


def send_raw(ward, *parts, pause=0.0):
    """Send bytes, and return what the server sends until it closes the connection, as it must."""
    with socket.create_connection(("127.0.0.1", ward.server.settings.port)) as connection:
        connection.settimeout(30)
        for part in parts:
            connection.sendall(part)
            time.sleep(pause)
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(65536):
                received += piece
        return received


def head_of(ward, admin, method="POST", path=f"{API}/ask", **more):
    """Return the head of a request, with additional headers."""
    headers = {
        "Host": ward.address.removeprefix("http://"),
        "Authorization": admin.headers["Authorization"],
        "Content-Type": "application/json",
        "Connection": "close",
    } | {name.replace("_", "-"): value for name, value in more.items()}
    text = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items())
    return text.encode() + b"\r\n"


def status(response):
    return int(response.split(b" ", 2)[1])


# -- hosts and origins ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "",
        "localhost",
        "0.0.0.0",
        "localhost:1",
        "127.0.0.1@evil.example",
        "[::1]",
        "127.1",
    ],
)
def test_foreign_hosts_are_refused(admin, host):
    """As in DNS rebinding, where a foreign name points to this machine."""
    for path in ("/health", "/login", f"{API}/status", "/static/dowise.css"):
        answer = admin.get(path, headers={"Host": host})
        assert answer.status_code == 421
        assert answer.headers["content-type"] == "application/problem+json"


def test_loopback_names_with_the_own_port_are_accepted(ward, admin):
    port = ward.server.settings.port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        assert admin.get("/api/me", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1:1",
        "http://localhost",
        "",
        "file://",
        "http://127.0.0.1:{port}.evil.example",
        "https://127.0.0.1:{port}",
    ],
)
def test_foreign_origins_are_refused(ward, admin, origin):
    headers = {"Origin": origin.format(port=ward.server.settings.port)}
    browser = ward.browser()
    for client in (admin, browser):
        sent = {**headers, "Sec-Fetch-Site": "cross-site"}
        assert client.post(f"{API}/ask", json={}, headers=sent).status_code == 403
        assert client.get("/api/me", headers=sent).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "whatever"])
def test_cross_site_requests_are_refused(ward, admin, site):
    """Also same-site ones: another port of this machine belongs to someone else."""
    for client in (admin, ward.browser()):
        client.headers.pop("Origin", None)
        answer = client.post(f"{API}/ask", json={}, headers={"Sec-Fetch-Site": site})
        assert answer.status_code == 403
    secret = {"secret": ward.token("admin")}
    answer = httpx2.post(f"{ward.address}/login", data=secret, headers={"Sec-Fetch-Site": site})
    assert answer.status_code == 403  # no login CSRF


def test_own_forms_with_a_null_origin_are_accepted(ward):
    browser = ward.browser()
    csrf = browser.get("/?all").text.partition('name="csrf"')[2].partition('value="')[2]
    headers = {"Origin": "null", "Sec-Fetch-Site": "same-origin"}
    answer = browser.post("/logout", data={"csrf": csrf.partition('"')[0]}, headers=headers)
    assert answer.status_code == 303


# -- sizes ----------------------------------------------------------------------------------------


def test_large_bodies_are_refused(ward, admin):
    limit = ward.server.settings.body_limit
    for size in (limit + 1, 3 * limit):
        answer = admin.post(f"{API}/ask", content=b" " * size)
        assert answer.status_code == 413 and f"{limit:,}" in answer.json()["detail"]
    answer = admin.post(f"{API}/ask", content=b"{" + b" " * (limit - 2) + b"}")
    assert answer.status_code == 422  # read, and incomplete


def test_chunked_bodies_are_limited(ward, admin):
    limit = ward.server.settings.body_limit
    answer = admin.post(f"{API}/ask", content=(b" " * 65536 for _ in range(limit // 65536 + 2)))
    assert answer.status_code == 413
    answer = httpx2.post(
        f"{ward.address}/login",
        content=(b"x" * 65536 for _ in range(40)),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        ("9" * 15, 413),
        ("9" * 30, 400),
        ("2000000", 413),
        ("-1", 400),
        ("1e3", 400),
        ("0x10", 400),
        ("+5", 400),
        ("5, 6", 400),
        ("", 400),
    ],
)
def test_invalid_content_lengths_are_refused(ward, admin, length, expected):
    assert status(send_raw(ward, head_of(ward, admin, Content_Length=length), b"{}")) == expected


def test_no_second_request_is_smuggled_in_a_body(ward, admin):
    """With a length of 2 the rest of the body would be a second request."""
    second = head_of(ward, admin, "GET", "/api/tokens")
    response = send_raw(ward, head_of(ward, admin, Content_Length="2") + b"{}" + second)
    assert response.count(b"HTTP/1.1 ") == 1
    both = head_of(ward, admin, Content_Length="4", Transfer_Encoding="chunked")
    response = send_raw(ward, both + b"2\r\n{}\r\n0\r\n\r\n" + second)
    assert response.count(b"HTTP/1.1 ") == 1


def test_sparse_tables_are_refused_before_they_fill_the_memory(admin):
    rows = [{f"a{i}": 1} for i in range(5_000)]
    answer = admin.post(f"{API}/import", json={"records": rows})
    assert answer.status_code == 422 and "are too many" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/login", "/logout", "/new", f"{API}/ask", f"{API}/import"])
def test_uploads_are_refused_before_they_are_parsed(ward, path, monkeypatch):
    from starlette.formparsers import MultiPartParser

    monkeypatch.setattr(MultiPartParser, "parse", lambda _: 1 / 0)
    files = [("csrf", (f"{n}.txt", b"x")) for n in range(50)]
    browser = ward.browser()
    for kind in ({}, {"Content-Type": "Multipart/Form-Data; boundary=x"}):
        answer = browser.post(path, files=files, headers=kind)
        assert answer.status_code == 415 and "files are not accepted" in answer.text


def test_forms_have_a_maximum_number_of_fields(ward):
    browser, kind = ward.browser(), {"Content-Type": "application/x-www-form-urlencoded"}
    csrf = csrf_token(next(iter(browser.cookies.values())))

    def send(fields):
        return browser.post("/new/preview", content=f"csrf={csrf}{'&a=1' * fields}", headers=kind)

    assert [send(fields).status_code for fields in (4000, 6000)] == [200, 400]


# -- slow clients ---------------------------------------------------------------------------------


def test_silent_connections_do_not_block_others(ward, admin):
    connections = [
        socket.create_connection(("127.0.0.1", ward.server.settings.port)) for _ in range(200)
    ]
    try:
        for connection in connections[:100]:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost:")
        for connection in connections[100:150]:
            connection.sendall(head_of(ward, admin, Content_Length="100") + b"{")
        assert admin.get("/api/me").status_code == 200
    finally:
        for connection in connections:
            connection.close()


def test_idle_connections_are_closed(ward, admin, monkeypatch):
    monkeypatch.setattr(server_module, "REQUEST_TIMEOUT", 0.3)
    assert send_raw(ward) == b""
    assert send_raw(ward, b"GET /health HTTP/1.1\r\n", b"X-A", b": 1\r\n", pause=0.1) == b""
    keep_alive = head_of(ward, admin, "GET", "/api/me", Connection="keep-alive")
    assert send_raw(ward, keep_alive, b"GET /a").count(b"HTTP/1.1") == 1  # then one byte at a time


def test_slow_bodies_time_out(ward, admin, monkeypatch):
    monkeypatch.setattr(security, "BODY_TIMEOUT", 0.3)
    monkeypatch.setattr(server_module, "REQUEST_TIMEOUT", 0.5)
    response = send_raw(
        ward, head_of(ward, admin, Content_Length="1000", Connection="keep-alive"), b"{"
    )
    assert status(response) == 408 and b"too slowly" in response


def test_long_queries_leave_threads_for_other_requests(ward, admin, monkeypatch):
    """There are about 40 threads, and queries that wait must not hold one."""
    may_end = threading.Event()
    monkeypatch.setattr(
        type(ward.registry.experiment("ward 7")), "audit", lambda *_: may_end.wait(60)
    )
    clients = [ward.client("read") for _ in range(50)]
    with ThreadPoolExecutor(50) as threads:
        try:
            answers = [
                threads.submit(client.get, f"{API}/audit?head={number}")
                for number, client in enumerate(clients)
            ]
            time.sleep(0.5)
            assert admin.get(f"{API}/status").status_code == 200  # while the others wait
        finally:
            may_end.set()
        assert [answer.result().status_code for answer in answers].count(503) >= 30


# -- rates ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """A server with low rate limits."""
    with running(tmp_path_factory.mktemp("strict") / "ward.db", rate=1.0, failures=0.1) as server:
        yield server


def test_requests_are_rate_limited_per_principal(strict):
    client, other = strict.client("read"), strict.client("read")
    answers = [client.get("/api/me") for _ in range(6)]
    assert [answer.status_code for answer in answers][:3] == [200] * 3
    last = answers[-1]
    assert last.status_code == 429 and 1 <= int(last.headers["retry-after"]) <= 3
    assert last.headers["content-type"] == "application/problem+json"
    assert other.get("/api/me").status_code == 200


def test_only_invalid_tokens_are_rate_limited_per_address(strict):
    headers = {"Authorization": "Bearer dowise_" + "A" * 43}
    with httpx2.Client(base_url=strict.address, headers=headers) as guesser:
        answers = [guesser.get("/api/me") for _ in range(12)]
    assert [answer.status_code for answer in answers][:9] == [401] * 9
    assert answers[-1].status_code == 429 and int(answers[-1].headers["retry-after"]) >= 1
    assert strict.client("read").get("/api/me").status_code == 200


# -- headers --------------------------------------------------------------------------------------

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def responses_of_every_kind(ward, admin, monkeypatch):
    tag = admin.get(f"{API}/status").headers["etag"]
    monkeypatch.setattr(ward.registry, "names", lambda: 1 / 0)
    yield 500, admin.get("/api/experiments")
    yield 500, ward.browser().get("/?all")
    monkeypatch.undo()
    monkeypatch.setattr("dowise_web.errors._respond", lambda *_, **_more: 1 / 0)
    yield 500, admin.get("/api/experiments/none")  # an error in an error handler
    monkeypatch.undo()
    yield 200, admin.get("/api/me")
    yield 200, admin.get("/login")
    yield 200, admin.get("/static/dowise.css")
    yield 304, admin.get(f"{API}/status", headers={"If-None-Match": tag})
    yield 303, httpx2.get(f"{ward.address}/")
    yield 307, admin.get("/login/")
    yield 401, httpx2.get(f"{ward.address}/api/me")
    yield 403, ward.client("read").get("/api/tokens")
    yield 404, admin.get("/static/none.css?v=1")
    yield 404, admin.get("/nothing")
    yield 404, admin.get("/api/nothing")
    yield 405, admin.put("/api/me")
    yield 405, admin.post("/static/dowise.css")
    yield 413, admin.post(f"{API}/ask", content=b" " * 2_000_000)
    yield 421, admin.get("/", headers={"Host": "evil.example"})
    yield 422, admin.post(f"{API}/ask", json=7)


def test_every_response_has_the_security_headers(ward, admin, monkeypatch):
    for status, answer in responses_of_every_kind(ward, admin, monkeypatch):
        context = answer.request.url, answer.status_code
        assert answer.status_code == status, context
        for name, value in HEADERS.items():
            assert answer.headers[name].startswith(value), (name, *context)
        policy = answer.headers["Content-Security-Policy"]
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy, context
        assert "server" not in answer.headers, context
        assert answer.headers.get_list("Access-Control-Allow-Origin") == [], context
        if status >= 300 or not str(answer.request.url.path).startswith("/static/"):
            assert answer.headers["Cache-Control"] in ("no-store", "private, no-cache"), context
        if status == 500 and "/api" in str(context[0]):
            assert answer.headers["content-type"] == "application/problem+json"
            assert "division" not in answer.text and "log" in answer.json()["detail"]


def test_hsts_is_sent_over_tls_only():
    headers = security.SecurityMiddleware(None, Settings(url="https://ward.example.org"))._headers
    assert headers["Strict-Transport-Security"].startswith("max-age=")
    assert "Strict-Transport-Security" not in security.SecurityMiddleware(None, Settings())._headers


# -- the log --------------------------------------------------------------------------------------


def log_lines(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "dowise_web"]


def test_the_log_contains_no_secrets_and_no_queries(ward, admin, caplog):
    token = admin.headers["Authorization"].removeprefix("Bearer ")
    with caplog.at_level(logging.INFO):
        browser = ward.browser()
        browser.get(f"{API}/status", params={"context": '{"C": "secret-query"}'})
        admin.get(f"{API}/events?search=secret-query")
        admin.post(f"{API}/ask", json={"context": {"C": "secret-query"}})
        admin.post(
            f"{API}/ask", json={"context": {"C": 1}}, headers={"Idempotency-Key": "secret-query"}
        )
        httpx2.post(f"{ward.address}/login", data={"secret": f"{token}secret-query"})
        httpx2.get(f"{ward.address}/api/me", headers={"Authorization": "Bearer secret-query"})
        send_raw(ward, b"secret-query\r\n\r\n")
        assert wait_until(lambda: len(log_lines(caplog)) >= 7)
    lines = [record.getMessage() for record in caplog.records if not record.name.startswith("http")]
    text = "\n".join(lines)
    assert f"GET {API}/status 422" in text
    assert "secret-query" not in text and "dowise_" not in text
    assert browser.cookies and not any(value in text for value in browser.cookies.values())


def test_log_lines_can_not_be_forged(admin, caplog):
    with caplog.at_level(logging.INFO):
        admin.get("/api/experiments/x%0d%0a2026-01-01 GET /forged 200%1b[31m")
        admin.get("/static/%0aforged")
        assert wait_until(lambda: len(log_lines(caplog)) == 2)  # lines follow the responses
    assert all(line.isprintable() for line in log_lines(caplog))


def test_unexpected_errors_are_only_logged(ward, admin, caplog, monkeypatch):
    monkeypatch.setattr(ward.registry, "names", lambda: 1 / 0)
    answer = admin.get("/api/experiments")
    assert answer.status_code == 500 and "ZeroDivisionError" not in answer.text
    assert "ZeroDivisionError" in caplog.text


def test_upgrades_to_other_protocols_are_ignored(ward, admin):
    more = {"Upgrade": "websocket", "Connection": "Upgrade, close", "Sec_WebSocket_Version": "13"}
    key = {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    response = send_raw(ward, head_of(ward, admin, "GET", f"{API}/stream/none", **more, **key))
    assert status(response) == 404
