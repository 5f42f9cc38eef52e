"""`dowise serve` as a program: how it begins, how it ends, and what it refuses to begin with."""

import contextlib
import json
import shutil
import signal
import socket
import ssl
import subprocess
import sys

import httpx2
import pytest
from click.testing import CliRunner
from support import processes as programs

from dowise import Experiment, load_problem
from dowise.cli.main import main

pytestmark = pytest.mark.slow  # each starts a process

SECONDS = 90  # to begin, on a busy machine that has to compile


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    found = tmp_path_factory.mktemp("stores") / "ward.db"
    with Experiment.create(found, "ward 7", load_problem("task2"), "ucb", seed=7):
        pass
    return found


@contextlib.contextmanager
def serving(*arguments):
    """The process, and what it printed as JSON."""
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


def is_up(page, **more):
    def answers():
        with contextlib.suppress(httpx2.TransportError):
            return httpx2.get(f"{page['url']}/health", **more).status_code == 200
        return False

    return programs.wait_until(answers, SECONDS)


def stream_of(page):
    """A line over which a stream comes, signed in by the link."""
    address = page["url"]
    secret = page["link"].partition("#")[2]
    entered = httpx2.post(f"{address}/enter", data={"secret": secret}, headers={"Origin": address})
    cookie = entered.headers["set-cookie"].partition(";")[0]
    host, _, port = address.removeprefix("http://").partition(":")
    line = socket.create_connection((host, int(port)))
    lines = ("GET /api/experiments/ward%207/stream HTTP/1.1", f"Host: {host}:{port}",
             f"Cookie: {cookie}", "", "")  # fmt: skip
    line.sendall("\r\n".join(lines).encode())
    line.settimeout(20)
    came = b""
    while b"event: head" not in came:
        came += line.recv(4096)
    return line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_server_despite_open_streams(store, number):
    with serving(store, "--port", 0) as (process, page):
        assert is_up(page)
        assert page["url"].startswith("http://127.0.0.1:") and not page["url"].endswith(":0")
        line = stream_of(page)
        process.send_signal(number)
        assert process.wait(20) == 128 + number  # a stream by itself would go on for ever
        assert programs.wait_until(lambda: not programs.living_processes(process), 5), (
            "a child is left"
        )
        line.close()
        said = process.stderr.read()
        assert "Traceback" not in said and page["link"].partition("#")[2] not in said
        assert process.stdout.read().strip() == ""  # one document, and nothing after it


def test_a_port_in_use_is_refused(store):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["serve", str(store), "--port", str(port)])
    assert result.exit_code == 2 and "is used by another program" in result.stderr


def test_a_store_is_created_only_with_create(tmp_path):
    missing = tmp_path / "none.db"
    result = CliRunner().invoke(main, ["serve", str(missing), "--port", "0"])
    assert result.exit_code == 2 and "there is no store" in result.stderr and not missing.exists()
    with serving(missing, "--port", 0, "--create") as (_, page):
        assert is_up(page) and missing.exists()


def test_a_missing_extra_is_named():
    code = ("import sys; sys.modules['uvicorn'] = None; sys.argv = ['dowise', 'serve', 'x.db'];"
            "from dowise.cli.main import main; main()")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "pip install 'dowise[web]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_log_contains_no_query_and_no_secret(store):
    with serving(store, "--port", 0, "--log") as (process, page):
        assert is_up(page)
        httpx2.get(f"{page['url']}/login?asked-for=1")
        httpx2.get(f"{page['url']}/api/me", headers={"Authorization": "Bearer asked-for"})
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=15)[1]
    assert "GET /login 200" in said and "GET /api/me 401" in said
    assert "asked-for" not in said and "dowise_" not in said


def certificate(folder):
    if shutil.which("openssl") is None:
        pytest.skip("openssl IS MISSING: TLS was not tested")
    files = folder / "ward.pem", folder / "ward.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-out", files[0], "-keyout", files[1]],
        check=True, capture_output=True,
    )  # fmt: skip
    return files


def test_tls_with_a_certificate(store, tmp_path):
    chain, key = certificate(tmp_path)
    context = ssl.create_default_context(cafile=str(chain))
    with serving(store, "--port", 0, "--certificate", chain, "--key", key) as (_, page):
        assert page["url"].startswith("https://127.0.0.1:")
        assert is_up(page, verify=context)
        secret = page["link"].partition("#")[2]
        answer = httpx2.post(f"{page['url']}/enter", data={"secret": secret}, verify=context,
                             headers={"Origin": page["url"]})  # fmt: skip
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
    for given in ((tmp_path / "no.pem", key), (chain, tmp_path / "no.pem"), (chain, other)):
        files = ["--certificate", str(given[0]), "--key", str(given[1])]
        result = CliRunner().invoke(main, ["serve", str(store), "--port", "0", *files])
        assert result.exit_code == 2 and "can't be used for TLS" in result.stderr
        assert result.stdout == ""


@pytest.mark.parametrize(
    ("given", "says"),
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
def test_unsafe_and_invalid_options_are_refused(store, given, says, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["serve", str(store), "--port", "0", *given])
    assert result.exit_code == 2 and says in result.stderr, result.output
    assert result.stdout == "" and not [*tmp_path.iterdir()]


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "HTTPS://ward.example.org"])
def test_urls_of_servers_are_refused_as_stores(url):
    result = CliRunner().invoke(main, ["serve", url])
    assert result.exit_code == 2 and "is already served" in result.stderr
