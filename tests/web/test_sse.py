"""Server-sent events: streams, their limits and their end."""

import contextlib
import re
import socket
import subprocess
import sys
import threading

import pytest
from support.processes import wait_until
from support.servers import running

from dowise import Experiment, load_problem
from dowise_web import sse, tokens

pytestmark = pytest.mark.slow  # real connections and waits

API = "/api/experiments/ward%207"


class Stream:
    """A stream that is read in a thread."""

    def __init__(self, ward, token=None):
        self.received, self.ended = b"", threading.Event()
        port = ward.server.settings.port
        self._connection = socket.create_connection(("127.0.0.1", port))
        head = (
            f"GET {API}/stream HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            f"Authorization: Bearer {token or ward.token('read')}",
        )
        self._connection.sendall("\r\n".join((*head, "", "")).encode())
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        assert wait_until(lambda: self.numbers or b"HTTP/1.1 4" in self.received, 10)

    @property
    def status(self):
        return int(self.received.split(b" ", 2)[1])

    @property
    def numbers(self):
        return [int(number) for number in re.findall(rb'data: {"number": (\d+)}', self.received)]

    def _read(self):
        with contextlib.suppress(OSError):
            while part := self._connection.recv(65536):
                self.received += part
                if self.received.endswith(b"\r\n0\r\n\r\n"):  # the connection may stay open
                    break
        self.ended.set()

    def close(self):
        """Close the connection, as a browser does."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._connection.close()


@pytest.fixture
def opened(ward):
    """Opens streams, which are closed at the end."""
    streams = []

    def open_one(token=None):
        streams.append(Stream(ward, token))
        return streams[-1]

    yield open_one
    for stream in streams:
        stream.close()
    assert wait_until(lambda: not ward.server.app.state.streams._open, 10)


def ask(ward):
    return ward.client("ask").post(f"{API}/ask", json={"context": {"C": 1}}).json()["id"]


def test_events_of_another_process_arrive(ward, opened):
    number, stream = ask(ward), opened()
    before = stream.numbers[-1]
    code = (
        f"import dowise; dowise.Experiment.open({str(ward.storage)!r}).tell({number}, {{'Y': 1}})"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert wait_until(lambda: stream.numbers[-1] == before + 1, 10)
    assert b"content-type: text/event-stream" in stream.received.lower()
    assert stream.numbers == sorted(stream.numbers)


def test_a_closed_stream_is_not_counted(ward, opened):
    streams = ward.server.app.state.streams
    stream = opened()
    assert sum(streams._open.values()) == 1
    stream.close()
    assert wait_until(lambda: not streams._open, 10)


def test_streams_are_limited_per_principal(ward, opened, monkeypatch):
    monkeypatch.setattr(sse, "MAX_STREAMS_PER_PRINCIPAL", 2)
    token = ward.token("read")
    assert [opened(token).status for _ in range(2)] == [200, 200]
    refused = Stream(ward, token)
    assert refused.status == 429 and b"retry-after: " in refused.received.lower()
    refused.close()
    assert opened().status == 200


def test_streams_are_limited_in_total(ward, opened, monkeypatch):
    monkeypatch.setattr(sse, "MAX_STREAMS", 1)
    assert opened().status == 200
    assert ward.client("read").get(f"{API}/stream").status_code == 429


def test_the_stream_of_a_revoked_token_ends(ward, opened):
    created = tokens.create_token(ward.storage, "read", "somebody")
    stream = opened(created.secret)
    numbers = [*stream.numbers]
    tokens.revoke(ward.storage, created.token.id)
    ask(ward)
    assert stream.ended.wait(10) and stream.numbers == numbers


def test_an_unknown_experiment_has_no_stream(ward):
    assert ward.client("read").get("/api/experiments/none/stream").status_code == 404


def test_streams_end_when_the_server_stops(tmp_path):
    store = tmp_path / "ward.db"
    with Experiment.create(store, "ward 7", load_problem("task2"), "ids", {"samples": 50}, 7):
        pass
    with running(store) as ward:
        streams = [Stream(ward) for _ in range(3)]
        ward.server.stop()
        assert all(stream.ended.wait(20) for stream in streams)
        for stream in streams:
            stream.close()
