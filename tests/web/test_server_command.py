"""The command `dowise serve`: start, stop, TLS, and options that it refuses."""

import contextlib
import json
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time

import httpx2
import pytest
from click.testing import CliRunner
from support import processes as programs

from dowise import Experiment, load_problem
from dowise.cli.main import main
from dowise_web import tokens

pytestmark = pytest.mark.slow  # each starts a process

START_TIMEOUT = 90  # seconds, on a busy machine that has to compile


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "ward.db"
    with Experiment.create(path, "ward 7", load_problem("task2"), "ucb", seed=7):
        pass
    return path


@contextlib.contextmanager
def serving(*arguments):
    """Start the command; yield the process and the JSON that it prints."""
    process = programs.start_python("-m", "dowise", "serve", *arguments, "--json")
    try:
        printed = ""
        for line in process.stdout:
            printed += line
            with contextlib.suppress(ValueError):
                yield process, json.loads(printed)
                return
        raise AssertionError(process.communicate())
    finally:
        programs.kill_session(process)


def is_up(page, **options):
    def answers():
        with contextlib.suppress(httpx2.TransportError):
            return httpx2.get(f"{page['url']}/health", **options).status_code == 200
        return False

    return programs.wait_until(answers, START_TIMEOUT)


def open_stream(page):
    """Sign in by the link, and return a connection with an open stream."""
    address = page["url"]
    secret = page["link"].partition("#")[2]
    entered = httpx2.post(f"{address}/enter", data={"secret": secret}, headers={"Origin": address})
    cookie = entered.headers["set-cookie"].partition(";")[0]
    host, _, port = address.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)))
    lines = (
        "GET /api/experiments/ward%207/stream HTTP/1.1",
        f"Host: {host}:{port}",
        f"Cookie: {cookie}",
        "",
        "",
    )
    connection.sendall("\r\n".join(lines).encode())
    connection.settimeout(20)
    received = b""
    while b"event: head" not in received:
        received += connection.recv(4096)
    return connection


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_server_despite_open_streams(store, number):
    with serving(store, "--port", 0) as (process, page):
        assert is_up(page)
        assert page["url"].startswith("http://127.0.0.1:") and not page["url"].endswith(":0")
        connection = open_stream(page)
        process.send_signal(number)
        assert process.wait(20) == 128 + number  # a stream alone would never end
        assert programs.wait_until(lambda: not programs.living_processes(process), 5), (
            "a child is left"
        )
        connection.close()
        log = process.stderr.read()
        assert "Traceback" not in log and page["link"].partition("#")[2] not in log
        assert process.stdout.read().strip() == ""  # one document only


def test_a_port_in_use_is_refused(store):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        result = CliRunner().invoke(main, ["serve", str(store), "--port", str(port)])
    assert result.exit_code == 2 and "is used by another program" in result.stderr


def test_a_store_is_created_only_with_create(tmp_path):
    missing = tmp_path / "none.db"
    result = CliRunner().invoke(main, ["serve", str(missing), "--port", "0"])
    assert result.exit_code == 2 and "there is no store" in result.stderr and not missing.exists()
    with serving(missing, "--port", 0, "--create") as (_, page):
        assert is_up(page) and missing.exists()


def test_a_missing_extra_is_named():
    code = (
        "import sys; sys.modules['uvicorn'] = None; sys.argv = ['dowise', 'serve', 'x.db'];"
        "from dowise.cli.main import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 2 and "pip install 'dowise[web]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_log_contains_no_query_and_no_secret(store):
    with serving(store, "--port", 0, "--log") as (process, page):
        assert is_up(page)
        httpx2.get(f"{page['url']}/login?asked-for=1")
        httpx2.get(f"{page['url']}/api/me", headers={"Authorization": "Bearer asked-for"})
        process.send_signal(signal.SIGINT)
        log = process.communicate(timeout=15)[1]
    assert "GET /login 200" in log and "GET /api/me 401" in log
    assert "asked-for" not in log and "dowise_" not in log


def certificate(folder):
    if shutil.which("openssl") is None:
        pytest.skip("openssl IS MISSING: TLS was not tested")
    files = folder / "ward.pem", folder / "ward.key"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-out",
            files[0],
            "-keyout",
            files[1],
        ],
        check=True,
        capture_output=True,
    )
    return files


def test_a_certificate_enables_tls(store, tmp_path):
    chain, key = certificate(tmp_path)
    context = ssl.create_default_context(cafile=str(chain))
    with serving(store, "--port", 0, "--certificate", chain, "--key", key) as (_, page):
        assert page["url"].startswith("https://127.0.0.1:")
        assert is_up(page, verify=context)
        secret = page["link"].partition("#")[2]
        answer = httpx2.post(
            f"{page['url']}/enter",
            data={"secret": secret},
            verify=context,
            headers={"Origin": page["url"]},
        )
        assert answer.status_code == 303
        assert answer.headers["set-cookie"].startswith("__Host-dowise-")
        assert "secure" in answer.headers["set-cookie"].lower()
        assert "strict-transport-security" in answer.headers
        plain = page["url"].replace("https", "http")
        with pytest.raises(httpx2.TransportError):
            httpx2.get(f"{plain}/health")


def test_invalid_certificates_are_refused(store, tmp_path):
    chain, key = certificate(tmp_path)
    (tmp_path / "no.pem").write_text("no certificate")
    (tmp_path / "other").mkdir()
    other = certificate(tmp_path / "other")[1]
    for pair in ((tmp_path / "no.pem", key), (chain, tmp_path / "no.pem"), (chain, other)):
        files = ["--certificate", str(pair[0]), "--key", str(pair[1])]
        result = CliRunner().invoke(main, ["serve", str(store), "--port", "0", *files])
        assert result.exit_code == 2 and "can't be used for TLS" in result.stderr
        assert result.stdout == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "unencrypted"),
        (["--host", "::"], "unencrypted"),
        (["--host", "0.0.0.0", "--plain-http"], "--url"),
        (["--certificate", "none.pem", "--key", "none.key"], "no such file: none.pem"),
        (["--key", "none.key"], "go together"),
        (["--certificate", "none.pem"], "go together"),
        (["--port", "65536"], "0<=x<=65535"),
        (["--port", "-1"], "0"),
        (["--url", "ward.example.org"], "not a URL of a server's root"),
        (["--url", "https://ward.example.org/path"], "not a URL of a server's root"),
        (["--url", "https://user:secret@ward.example.org"], "not a URL of a server's root"),
        (["--url", "javascript:alert(1)"], "not a URL of a server's root"),
        (["--host", "no.such.host.invalid", "--plain-http"], "can't be used"),
        (["--host", "203.0.113.1", "--plain-http"], "can't be used"),
        (["--host", "", "--plain-http"], "the host is empty"),
    ],
)
def test_unsafe_and_invalid_options_are_refused(store, options, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["serve", str(store), "--port", "0", *options])
    assert result.exit_code == 2 and message in result.stderr, result.output
    assert result.stdout == "" and not [*tmp_path.iterdir()]


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "HTTPS://ward.example.org"])
def test_urls_of_servers_are_refused_as_stores(url):
    result = CliRunner().invoke(main, ["serve", url])
    assert result.exit_code == 2 and "is already served" in result.stderr


def connect(port):
    """Return a connection to the server once it accepts them."""
    with contextlib.suppress(ConnectionRefusedError):
        return socket.create_connection(("127.0.0.1", port), timeout=20)
    return None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_requests_in_progress_finish(tmp_path, number):
    store, body = tmp_path / "ward.db", b'{"context": {}}'
    with Experiment.create(store, "ward", load_problem("task1"), "ucb", seed=7) as experiment:
        secret = tokens.create_token(experiment._journal.storage, "ask", "Ann").secret
    with serving(store, "--port", 0) as (process, page):
        port = int(page["url"].rpartition(":")[2])
        connection = programs.wait_until(lambda: connect(port), 20)
        head = (
            f"POST /api/experiments/ward/ask HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Authorization: Bearer {secret}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body[:3])
        time.sleep(0.3)
        process.send_signal(number)
        time.sleep(0.7)
        connection.sendall(body[3:])
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        connection.close()
        assert process.wait(20) == 128 + number
    with Experiment.open(store) as experiment:
        assert experiment.counts()["asked"] == 1
