"""What goes wrong between a client and a server: a socket that answers as it is told."""

import json
import socket
import threading
import time

import httpx2
import pytest
from support.errors import raises_code
from support.played_experiments import COIN

from dowise import Client, DowiseError
from dowise.client import transport as line_module
from dowise.client.transport import Transport, parse_address
from dowise.errors import ConflictError, MissingExtraError, NotFoundError, UnavailableError

TOKEN = "dw-secret-0123456789"
OUTLINE = {
    "api": 1, "name": "ward", "problem": 'graph = "X -> Y"\nreward = "Y"\n', "problem_id": "p",
    "earlier_problems": {}, "policy": "ids", "options": {}, "head": f"3:{'0' * 64}",
    "is_one_of_many": False,
}  # fmt: skip


def answer(page, status="200 OK", *headers, kind="application/json"):
    """The bytes of an answer."""
    content = page if isinstance(page, bytes) else json.dumps(page).encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(content)}"]
    return "\r\n".join([*lines, "Connection: close", *headers, "", ""]).encode() + content


def problem(status, detail, *headers):
    page = {"type": "about:blank", "title": "x", "status": int(status[:3]), "detail": detail}
    return answer(page, status, *headers, kind="application/problem+json")


class Stub:
    """Gives the answers one after the other, the last one for ever; b"" closes without any."""

    def __init__(self, *answers):
        self.answers, self.requests = list(answers), []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                line, _ = self.socket.accept()
            except OSError:
                return
            with line:
                self.requests.append(self.read(line))
                line.sendall(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])

    def read(self, line):
        content = b""
        while b"\r\n\r\n" not in content:
            content += line.recv(65536)
        head, _, body = content.partition(b"\r\n\r\n")
        first, *rest = head.decode().split("\r\n")
        headers = {k.lower(): v for k, v in (one.split(": ", 1) for one in rest)}
        while len(body) < int(headers.get("content-length", 0)):
            body += line.recv(65536)
        return first, headers, body

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(5)


@pytest.fixture
def stub():
    stubs = []

    def make(*answers):
        stubs.append(Stub(*answers))
        return stubs[-1]

    yield make
    for one in stubs:
        one.close()


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    monkeypatch.setattr(line_module, "_PAUSES", (0.0, 0.0))
    monkeypatch.setattr(line_module, "_LONGEST_PAUSE", 0.0)


def failure(server, kind=DowiseError):
    """Return the error of opening an experiment: of this class, one line, without the token."""
    with pytest.raises(kind) as caught:
        Client(server.url, TOKEN, "ward")
    assert type(caught.value) is kind and TOKEN not in repr(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value


# -- who answers ------------------------------------------------------------------------------


def test_the_token_goes_in_a_header_and_nowhere_else(stub):
    server = stub(answer(OUTLINE))
    client = Client(server.url, TOKEN, "ward 7/b")
    first, headers, body = server.requests[0]
    assert first == "GET /api/experiments/ward%207%2Fb HTTP/1.1" and body == b""
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert headers["user-agent"].startswith("dowise/")
    assert TOKEN not in repr(client) and client.head.number == 3


def test_a_server_that_is_none_of_ours(stub):
    for content in (b"<html>hello</html>", b'{"api": 1, "na', {"hello": "world"}, b"[1]",
                    b"[" * 200_000):  # fmt: skip
        assert failure(stub(answer(content))).code == "unreadable-response"
    page = answer(b"<html>", "404 Not Found", kind="text/html")
    assert "404" in str(failure(stub(page), NotFoundError))
    assert failure(stub(answer(OUTLINE | {"api": 2}))).code == "newer-version"


def test_documents_that_say_it_otherwise(stub):
    server = stub(answer(OUTLINE), answer({"api": 1}))
    client = Client(server.url, TOKEN, "ward")
    for look in (
        lambda: client.policy, client.records, client.status, client.counted, client.audit,
        client.table, client.events, lambda: client.case(1), lambda: client.belief,
        lambda: client.ask(), lambda: client.evaluate("ts"), lambda: client.decision(1),
    ):  # fmt: skip
        with pytest.raises(DowiseError) as caught:
            look()
        assert caught.value.code in ("unreadable-response", "not-found")
    endless = {"decisions": [], "next": 0}
    server = stub(answer(OUTLINE), answer(endless))
    with raises_code("unreadable-response", server.url):
        Client(server.url, TOKEN, "ward").records()


def test_redirects_are_not_followed(stub):
    other = stub(answer(OUTLINE))
    server = stub(answer(b"", "307 Temporary Redirect", f"Location: {other.url}/api"))
    assert failure(server).code == "redirected"
    assert len(server.requests) == 1 and other.requests == []


# -- errors in the server's words -------------------------------------------------------------


def test_every_refusal_is_said_in_words(stub):
    said = "Y was told 1, and now 0"
    assert str(failure(stub(problem("422 No", f"{said}\n  twice")))) == f"{said} twice"
    assert str(failure(stub(problem("409 Conflict", said)), ConflictError)) == said
    assert str(failure(stub(problem("404 Not Found", said)), NotFoundError)) == said
    assert str(failure(stub(problem("413 Too Large", said)))) == said
    slow = problem("429 Too Many", "too many requests", "Retry-After: 7")
    assert str(failure(stub(slow), UnavailableError)) == "too many requests (in 7 s)"
    refused = failure(stub(problem("401 Unauthorized", "no")))
    assert refused.code == "authentication-required" and "does not accept" in str(refused)
    with raises_code("authentication-required", "DOWISE_TOKEN"):
        Client(stub(problem("401 Unauthorized", "no")).url)


# -- what is tried again ----------------------------------------------------------------------


def asked(server):
    return [headers.get("idempotency-key") for first, headers, _ in server.requests
            if "/ask" in first]  # fmt: skip


DECISION = {
    "id": 1, "event": 2, "asked_at": "2026-01-01T00:00:00Z", "context": {}, "arm": {"X": "1"},
    "probabilities": None, "allowed": None, "reason": "", "figures": {}, "request_id": "k",
    "imagined": 0, "problem_id": "p",
}  # fmt: skip


def test_a_question_is_repeated_with_the_same_key(stub):
    busy = problem("503 Unavailable", "busy", "Retry-After: 1")
    server = stub(answer(OUTLINE), b"", busy, answer(DECISION), answer(OUTLINE))
    client = Client(server.url, TOKEN, "ward")
    assert client.ask().id == 1
    first, second, third = asked(server)
    assert first == second == third and len(first) == 32
    server = stub(answer(OUTLINE), b"", answer({"decisions": [DECISION]}), answer(OUTLINE))
    assert Client(server.url, TOKEN, "ward").ask_many([None], "my key")[0].id == 1
    assert asked(server) == ["my key"] * 2
    server = stub(answer(OUTLINE), answer(DECISION), answer(OUTLINE))
    Client(server.url, TOKEN, "ward").ask(request_id="schlüssel\n")
    assert json.loads(server.requests[1][2])["request_id"] == "schlüssel\n"


@pytest.mark.parametrize("after", ["Retry-After: 7", "X-Other: 7", "Retry-After: ²",
                                   "Retry-After: Wed, 18 Nov 2026 08:00:00 GMT"])  # fmt: skip
def test_who_came_too_often_comes_again_later(stub, monkeypatch, after):
    paused = []
    monkeypatch.setattr(line_module.time, "sleep", paused.append)
    monkeypatch.setattr(line_module, "_PAUSES", (0.3, 1.5))
    monkeypatch.setattr(line_module, "_LONGEST_PAUSE", 5.0)
    often = problem("429 Too Many", "slow down", after)
    server = stub(often, answer(OUTLINE), often, answer(DECISION), answer(OUTLINE), often)
    client = Client(server.url, TOKEN, "ward")
    assert client.ask().id == 1 and len({*asked(server)}) == 1 and len(asked(server)) == 2
    assert paused == [5.0 if after.endswith("7") and "Retry" in after else 0.3] * 2
    before = len(server.requests)
    with pytest.raises(UnavailableError, match="slow down"):
        client.erase(1, "x")  # which might be done twice
    assert len(server.requests) == before + 1
    with pytest.raises(UnavailableError, match="slow down"):
        client.tell(1, {"Y": 1})
    assert len(server.requests) == before + 4


def test_it_gives_up_after_two_more(stub):
    server = stub(answer(OUTLINE), b"")
    client = Client(server.url, TOKEN, "ward")
    with pytest.raises(UnavailableError, match="the connection to .* broke"):
        client.ask()
    assert len(asked(server)) == 3
    before = len(server.requests)
    for look in (lambda: client.tell(1, {"Y": 1}), lambda: client.amend(1, {"Y": 1}, "x"),
                 lambda: client.withdraw(1, "x"), client.counted):  # fmt: skip
        with pytest.raises(UnavailableError):
            look()
    assert len(server.requests) == before + 12


def test_what_would_be_done_twice_is_not_repeated(stub, monkeypatch):
    server = stub(answer(OUTLINE), b"")
    client = Client(server.url, TOKEN, "ward")
    for act in (
        lambda: client.erase(1, "x"),
        lambda: client.revise(policy="ts", reason="x"),
        lambda: Client.create(server.url, "new", "task1", token=TOKEN),
    ):
        before = len(server.requests)
        with pytest.raises(UnavailableError, match="may have been carried out"):
            act()
        assert len(server.requests) == before + 1
    before = len(server.requests)
    monkeypatch.setattr(Client, "problem", property(lambda _: COIN))
    with pytest.raises(UnavailableError):
        client.import_records({"X": [1], "Y": [1]})
    assert len(server.requests) == before + 1


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    with pytest.raises(UnavailableError, match=f"can't connect to .*{port}"):
        Client(f"http://127.0.0.1:{port}")


def test_a_server_that_does_not_answer(stub, monkeypatch):
    server = stub(answer(OUTLINE))
    monkeypatch.setattr(server, "read", lambda _: time.sleep(0.5) or ("", {}, b""))
    with raises_code("timeout", server.url, "0.1 s"):
        Transport(server.url, TOKEN).get("/x", timeout=0.1)


# -- keeping the token ------------------------------------------------------------------------


def test_a_token_crosses_no_network_unencrypted(monkeypatch):
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


def test_a_proxy_sees_nothing_that_is_not_encrypted(stub, monkeypatch):
    proxy, server = stub(answer(OUTLINE)), stub(answer(OUTLINE))
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    Client(server.url, TOKEN, "ward")
    assert proxy.requests == [] and len(server.requests) == 1


def test_what_is_no_token():
    for token in ("two words", "new\nline", "schlüssel", 7):
        with raises_code("invalid-token") as caught:
            Transport("http://127.0.0.1:1", token)
        assert str(token) not in str(caught.value)


def test_what_is_no_address():
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
def test_addresses(url, base, names):
    found = parse_address(url)
    assert (found.base, found.names) == (base, names)


def test_a_missing_library_is_one_line(monkeypatch):
    import importlib

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"needs httpx2.*pip install 'dowise\[client\]'"):
        Transport("http://127.0.0.1:1")


def test_httpx_logs_no_token(stub, caplog):
    with caplog.at_level("DEBUG"):
        Client(stub(answer(OUTLINE)).url, TOKEN, "ward")
    assert caplog.records and TOKEN not in caplog.text
    assert httpx2.__name__ in {record.name.partition(".")[0] for record in caplog.records}
