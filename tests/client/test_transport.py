"""Requests to a server that fails: a socket with prepared responses."""

import importlib
import json
import socket
import threading
import time

import pytest
from support.errors import raises_code
from support.played_experiments import COIN

from dowise import Client, DowiseError
from dowise.client import transport as transport_module
from dowise.client.transport import Transport, parse_address
from dowise.errors import ConflictError, MissingExtraError, NotFoundError, UnavailableError

TOKEN = "dw-secret-0123456789"
EXPERIMENT = {
    "api": 1,
    "name": "ward",
    "problem": 'graph = "X -> Y"\nreward = "Y"\n',
    "problem_id": "p",
    "earlier_problems": {},
    "policy": "ids",
    "options": {},
    "head": f"3:{'0' * 64}",
    "is_one_of_many": False,
}
DECISION = {
    "id": 1,
    "event": 2,
    "asked_at": "2026-01-01T00:00:00Z",
    "context": {},
    "arm": {"X": "1"},
    "probabilities": None,
    "allowed": None,
    "reason": "",
    "figures": {},
    "request_id": "k",
    "imagined": 0,
    "problem_id": "p",
}
NO_RESPONSE = b""


def response(data, status="200 OK", *headers, kind="application/json"):
    """Return the bytes of a response."""
    content = data if isinstance(data, bytes) else json.dumps(data).encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(content)}"]
    return "\r\n".join([*lines, "Connection: close", *headers, "", ""]).encode() + content


def problem(status, detail, *headers):
    """Return the response of an error."""
    data = {"type": "about:blank", "title": "x", "status": int(status[:3]), "detail": detail}
    return response(data, status, *headers, kind="application/problem+json")


class StubServer:
    """Sends the responses one after the other, and repeats the last one."""

    def __init__(self, *responses):
        self.responses, self.requests = list(responses), []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                self.requests.append(self.read(connection))
                is_last = len(self.responses) == 1
                connection.sendall(self.responses[0] if is_last else self.responses.pop(0))

    def read(self, connection):
        content = b""
        while b"\r\n\r\n" not in content:
            content += connection.recv(65536)
        head, _, body = content.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, value in (x.split(": ", 1) for x in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            body += connection.recv(65536)
        return first, headers, body

    def request_ids(self):
        """Return the keys of the requests for a decision."""
        return [headers.get("idempotency-key") for x, headers, _ in self.requests if "/ask" in x]

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(5)


@pytest.fixture
def stub():
    servers = []

    def make(*responses):
        servers.append(StubServer(*responses))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(transport_module, "_PAUSES", (0.0, 0.0))
    monkeypatch.setattr(transport_module, "_LONGEST_PAUSE", 0.0)


def opening_error(server, kind=DowiseError):
    """Return the error of opening an experiment: of this class, one line, without the token."""
    with pytest.raises(kind) as caught:
        Client(server.url, TOKEN, "ward")
    assert type(caught.value) is kind and TOKEN not in repr(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value


# -- responses --------------------------------------------------------------------------------


def test_token_is_sent_in_a_header_only(stub):
    server = stub(response(EXPERIMENT))
    client = Client(server.url, TOKEN, "ward 7/b")
    first, headers, body = server.requests[0]
    assert first == "GET /api/experiments/ward%207%2Fb HTTP/1.1" and body == b""
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert headers["user-agent"].startswith("dowise/")
    assert TOKEN not in repr(client) and client.head.number == 3


def test_other_servers_are_recognized(stub):
    for content in (
        b"<html>hello</html>",
        b'{"api": 1, "na',
        {"hello": "world"},
        b"[1]",
        b"[" * 200_000,
    ):
        assert opening_error(stub(response(content))).code == "unreadable-response"
    page = response(b"<html>", "404 Not Found", kind="text/html")
    assert "404" in str(opening_error(stub(page), NotFoundError))
    assert opening_error(stub(response(EXPERIMENT | {"api": 2}))).code == "newer-version"


def test_unreadable_documents_are_refused(stub):
    server = stub(response(EXPERIMENT), response({"api": 1}))
    client = Client(server.url, TOKEN, "ward")
    for query in (
        lambda: client.policy,
        lambda: client.belief,
        lambda: client.case(1),
        lambda: client.decision(1),
        lambda: client.evaluate("ts"),
        client.ask,
        client.records,
        client.status,
        client.counted,
        client.audit,
        client.table,
        client.events,
    ):
        with pytest.raises(DowiseError) as caught:
            query()
        assert caught.value.code in ("unreadable-response", "not-found")
    server = stub(response(EXPERIMENT), response({"decisions": [], "next": 0}))
    with raises_code("unreadable-response", server.url):  # instead of an endless loop
        Client(server.url, TOKEN, "ward").records()


def test_redirects_are_not_followed(stub):
    other = stub(response(EXPERIMENT))
    server = stub(response(b"", "307 Temporary Redirect", f"Location: {other.url}/api"))
    assert opening_error(server).code == "redirected"
    assert len(server.requests) == 1 and other.requests == []


def test_errors_have_the_message_of_the_server(stub):
    message = "Y was told 1, and now 0"
    assert str(opening_error(stub(problem("422 No", f"{message}\n  twice")))) == f"{message} twice"
    assert str(opening_error(stub(problem("409 Conflict", message)), ConflictError)) == message
    assert str(opening_error(stub(problem("404 Not Found", message)), NotFoundError)) == message
    assert str(opening_error(stub(problem("413 Too Large", message)))) == message
    busy = problem("429 Too Many", "too many requests", "Retry-After: 7")
    assert str(opening_error(stub(busy), UnavailableError)) == "too many requests (in 7 s)"
    refused = opening_error(stub(problem("401 Unauthorized", "no")))
    assert refused.code == "authentication-required" and "does not accept" in str(refused)
    with raises_code("authentication-required", "DOWISE_TOKEN"):
        Client(stub(problem("401 Unauthorized", "no")).url)


# -- repeated requests ------------------------------------------------------------------------


def test_asks_are_repeated_with_the_same_key(stub):
    busy = problem("503 Unavailable", "busy", "Retry-After: 1")
    server = stub(response(EXPERIMENT), NO_RESPONSE, busy, response(DECISION), response(EXPERIMENT))
    assert Client(server.url, TOKEN, "ward").ask().id == 1
    first, second, third = server.request_ids()
    assert first == second == third and len(first) == 32
    batch = response({"decisions": [DECISION]})
    server = stub(response(EXPERIMENT), NO_RESPONSE, batch, response(EXPERIMENT))
    assert Client(server.url, TOKEN, "ward").ask_many([None], "my key")[0].id == 1
    assert server.request_ids() == ["my key"] * 2
    server = stub(response(EXPERIMENT), response(DECISION), response(EXPERIMENT))
    Client(server.url, TOKEN, "ward").ask(request_id="schlüssel\n")
    assert json.loads(server.requests[1][2])["request_id"] == "schlüssel\n"


@pytest.mark.parametrize(
    ("header", "pause"),
    [
        ("Retry-After: 7", 5.0),
        ("X-Other: 7", 0.3),
        ("Retry-After: ²", 0.3),
        ("Retry-After: Wed, 18 Nov 2026 08:00:00 GMT", 0.3),
    ],
)
def test_rate_limits_are_waited_for(stub, monkeypatch, header, pause):
    pauses = []
    monkeypatch.setattr(transport_module.time, "sleep", pauses.append)
    monkeypatch.setattr(transport_module, "_PAUSES", (0.3, 1.5))
    monkeypatch.setattr(transport_module, "_LONGEST_PAUSE", 5.0)
    limited = problem("429 Too Many", "slow down", header)
    server = stub(
        limited,
        response(EXPERIMENT),
        limited,
        response(DECISION),
        response(EXPERIMENT),
        limited,
    )
    client = Client(server.url, TOKEN, "ward")
    assert client.ask().id == 1
    assert len(server.request_ids()) == 2 and len({*server.request_ids()}) == 1
    assert pauses == [pause] * 2
    before = len(server.requests)
    with raises_code("unavailable", "slow down", error=UnavailableError):
        client.erase(1, "x")  # not repeated: it might be done twice
    assert len(server.requests) == before + 1
    with raises_code("unavailable", "slow down", error=UnavailableError):
        client.tell(1, {"Y": 1})
    assert len(server.requests) == before + 4


def test_requests_are_repeated_twice_at_most(stub):
    server = stub(response(EXPERIMENT), NO_RESPONSE)
    client = Client(server.url, TOKEN, "ward")
    for call in (
        client.ask,
        lambda: client.tell(1, {"Y": 1}),
        lambda: client.amend(1, {"Y": 1}, "x"),
        lambda: client.withdraw(1, "x"),
        client.counted,
    ):
        before = len(server.requests)
        with raises_code("unavailable", "broke", error=UnavailableError):
            call()
        assert len(server.requests) == before + 3


def test_requests_that_would_act_twice_are_not_repeated(stub, monkeypatch):
    server = stub(response(EXPERIMENT), NO_RESPONSE)
    client = Client(server.url, TOKEN, "ward")
    monkeypatch.setattr(Client, "problem", property(lambda _: COIN))
    for call in (
        lambda: client.erase(1, "x"),
        lambda: client.revise(policy="ts", reason="x"),
        lambda: Client.create(server.url, "new", "task1", token=TOKEN),
        lambda: client.import_records({"X": [1], "Y": [1]}),
    ):
        before = len(server.requests)
        with raises_code("unavailable", "may have been carried out", error=UnavailableError):
            call()
        assert len(server.requests) == before + 1


def test_a_server_that_does_not_answer_is_named():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with raises_code("unavailable", str(port), error=UnavailableError):
        Client(f"http://127.0.0.1:{port}")


def test_a_timeout_names_the_server_and_the_limit(stub, monkeypatch):
    server = stub(response(EXPERIMENT))
    monkeypatch.setattr(server, "read", lambda _: time.sleep(0.5) or ("", {}, b""))
    with raises_code("timeout", server.url, "0.1 s"):
        Transport(server.url, TOKEN).get("/x", timeout=0.1)


# -- the token and the address ----------------------------------------------------------------


def test_token_is_not_sent_unencrypted(monkeypatch):
    for host in ("ward.example.org", "10.0.0.7", "[2001:db8::1]", "127.0.0.1.example.org"):
        with raises_code("insecure-connection", "https://") as caught:
            Client(f"http://{host}:8000", TOKEN)
        assert TOKEN not in str(caught.value)
    monkeypatch.setenv("DOWISE_TOKEN", TOKEN)
    with raises_code("insecure-connection", "insecure=True"):
        Client("http://ward.example.org")
    for host in ("127.0.0.1", "127.9.9.9", "localhost", "[::1]"):
        Transport(f"http://{host}:1")
    Transport("https://ward.example.org")
    assert TOKEN not in repr(Transport("http://ward.example.org", TOKEN, insecure=True))


def test_plain_http_uses_no_proxy(stub, monkeypatch):
    proxy, server = stub(response(EXPERIMENT)), stub(response(EXPERIMENT))
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    Client(server.url, TOKEN, "ward")
    assert proxy.requests == [] and len(server.requests) == 1


def test_invalid_tokens_are_refused_without_repeating_them():
    for token in ("two words", "new\nline", "schlüssel", 7):
        with raises_code("invalid-token") as caught:
            Transport("http://127.0.0.1:1", token)
        assert str(token) not in str(caught.value)


def test_invalid_addresses_are_refused():
    for url in ("ward.db", "ftp://x", 7):
        with raises_code("invalid-url", repr(url)):
            parse_address(url)
    for url in ("http://", "http://[::1", "http://host:port", "http://a\tb"):
        with raises_code("invalid-url"):
            parse_address(url)
    for url in ("http://ann:s3cret@host", "http://host/enter#s3cret", "http://host?token=s3cret"):
        with raises_code("invalid-url", "DOWISE_TOKEN") as caught:
            parse_address(url)
        assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "base", "names"),
    [
        ("HTTP://Host:8000/", "http://host:8000", ()),
        ("http://host/dowise/experiments", "http://host/dowise", ()),
        ("https://host/a/experiments/b%2Fc", "https://host/a", ("b/c",)),
        ("http://[::1]:8/experiments/w/", "http://[::1]:8", ("w",)),
        ("http://h/experiments/w/now", "http://h", ("w/now", "w")),
        ("http://h/api/experiments/w", "http://h", ("w",)),
    ],
)
def test_addresses_are_split_into_server_and_name(url, base, names):
    address = parse_address(url)
    assert (address.base, address.names) == (base, names)


def test_missing_library_is_named(monkeypatch):
    def import_nothing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", import_nothing)
    with raises_code("missing-extra", "httpx2", "dowise[client]", error=MissingExtraError):
        Transport("http://127.0.0.1:1")


def test_logs_of_the_http_library_have_no_token(stub, caplog):
    with caplog.at_level("DEBUG"):
        Client(stub(response(EXPERIMENT)).url, TOKEN, "ward")
    assert any(record.name.startswith("httpx2") for record in caplog.records)
    assert TOKEN not in caplog.text
