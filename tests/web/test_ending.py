"""How `dowise serve` ends: what is under way is finished first."""

import contextlib
import json
import signal
import socket
import time

import pytest
from support import processes as programs

from dowise import Experiment, load_problem
from dowise_web import tokens

pytestmark = pytest.mark.slow  # each starts a process


@pytest.fixture
def ward(tmp_path):
    """A store, and a token for it."""
    store = tmp_path / "ward.db"
    with Experiment.create(store, "ward", load_problem("task1"), "ucb", seed=7) as made:
        return store, tokens.create_token(made._journal.storage, "ask", "till").secret


def first_document(process):
    """What the program prints when it is ready."""
    lines = iter(process.stdout.readline, "")
    printed = next(lines)
    while printed.count("{") != printed.count("}"):
        printed += next(lines)
    return json.loads(printed)


def connected(port):
    """A line to the server, once it listens."""
    with contextlib.suppress(ConnectionRefusedError):
        return socket.create_connection(("127.0.0.1", port), timeout=20)
    return None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_under_way_is_answered(ward, number):
    store, secret = ward
    process = programs.start_python("-m", "dowise", "serve", store, "--port", 0, "--json")
    try:
        port = int(first_document(process)["url"].rpartition(":")[2])
        line = programs.wait_until(lambda: connected(port), 20)
        body = b'{"context": {}}'
        head = (
            f"POST /api/experiments/ward/ask HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Authorization: Bearer {secret}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        line.sendall(head.encode() + body[:3])
        time.sleep(0.5)
        process.send_signal(number)
        time.sleep(1.5)
        line.sendall(body[3:])
        assert line.recv(4096).startswith(b"HTTP/1.1 200")
        line.close()
        assert process.wait(20) == 128 + number
    finally:
        programs.kill_session(process)
    assert Experiment.open(store).counts()["asked"] == 1
