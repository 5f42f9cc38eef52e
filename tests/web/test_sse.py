"""Server-sent events: what others write arrives, and streams end when they should."""

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

pytestmark = pytest.mark.slow  # real processes, and real waits

API = "/api/experiments/ward%207"


class Stream:
    """A stream that is read in a thread of its own; to close it is to be gone at once."""

    def __init__(self, ward, token=None):
        self.came, self.ended = b"", threading.Event()
        port = ward.server.settings.port
        self._line = socket.create_connection(("127.0.0.1", port))
        lines = (f"GET {API}/stream HTTP/1.1", f"Host: 127.0.0.1:{port}",
                 f"Authorization: Bearer {token or ward.token('read')}")  # fmt: skip
        self._line.sendall("\r\n".join((*lines, "", "")).encode())
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        assert wait_until(lambda: self.numbers or b"HTTP/1.1 4" in self.came, 10)

    @property
    def status(self):
        return int(self.came.split(b" ", 2)[1])

    @property
    def numbers(self):
        return [int(number) for number in re.findall(rb'data: {"number": (\d+)}', self.came)]

    def _read(self):
        with contextlib.suppress(OSError):
            while piece := self._line.recv(65536):
                self.came += piece
                if self.came.endswith(b"\r\n0\r\n\r\n"):  # the connection may stay
                    break
        self.ended.set()

    def close(self):
        """As a browser that leaves the page."""
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._line.close()


@pytest.fixture
def opened(ward):
    """Opens streams, and closes them all."""
    found = []

    def open_one(token=None):
        found.append(Stream(ward, token))
        return found[-1]

    yield open_one
    for stream in found:
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
    assert b"content-type: text/event-stream" in stream.came.lower()
    assert stream.numbers == sorted(stream.numbers)


def test_a_closed_stream_is_not_counted(ward, opened):
    """Else whoever opens and leaves pages could open no more."""
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
    assert refused.status == 429 and b"retry-after: " in refused.came.lower()
    refused.close()
    assert opened().status == 200  # others may


def test_streams_are_limited_in_total(ward, opened, monkeypatch):
    monkeypatch.setattr(sse, "MAX_STREAMS", 1)
    assert opened().status == 200
    assert ward.client("read").get(f"{API}/stream").status_code == 429


def test_the_stream_of_a_revoked_token_ends(ward, opened):
    made = tokens.create_token(ward.storage, "read", "somebody")
    stream = opened(made.secret)
    seen = [*stream.numbers]
    tokens.revoke(ward.storage, made.token.id)
    ask(ward)
    assert stream.ended.wait(10) and stream.numbers == seen


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
