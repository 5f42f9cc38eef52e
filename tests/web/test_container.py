"""What the container file says, done in a plain process: no engine runs where we test."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

pytestmark = pytest.mark.slow  # it compiles and serves

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Containerfile").read_text("utf-8")


def said(word):
    """What stands behind each use of an instruction."""
    return re.findall(rf"^{word} (.*)$", TEXT, re.MULTILINE)


def environment(folder):
    """That of the image, with places of our own."""
    pairs = (pair.split("=", 1) for line in said("ENV") for pair in shlex.split(line))
    kept = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src")}
    return {**kept, **dict(pairs), "NUMBA_CACHE_DIR": str(folder / "kernels")}


def without_a_name():
    """What makes a process that of a user whom nobody knows, where the system lets us."""
    words = ["unshare", "--user", "--map-user=10001"]
    if shutil.which("unshare") is None or subprocess.run([*words, "true"], check=False).returncode:
        return []
    return words


def test_it_copies_existing_files_and_runs_without_a_user_name():
    for line in said("COPY"):
        *sources, _ = line.split()
        assert all((ROOT / source).exists() for source in sources), line
    (user,) = said("USER")
    assert user.split(":")[0].isdigit() and not user.startswith("0")
    assert not Path(environment(ROOT)["HOME"]).exists()
    kept = (ROOT / ".containerignore").read_text("utf-8")
    assert all(f"!{name.split('/')[0]}" in kept for c in said("COPY") for name in c.split()[:-1])


def test_a_user_without_a_home_compiles_serves_and_stops(tmp_path):
    store, settings = tmp_path / "data", environment(tmp_path)
    store.mkdir(mode=0o700)
    (tmp_path / "kernels").mkdir(mode=0o700)
    ready = [*without_a_name(), sys.executable]
    (warm,) = re.findall(r"^RUN python (.*)$", TEXT, re.MULTILINE)
    subprocess.run([*ready, *warm.split()], env=settings, cwd=store, check=True, timeout=600)
    assert any((tmp_path / "kernels").rglob("*.nbi"))
    settings["DOWISE_URL"] = "https://ward.example.org"
    (command,) = (json.loads(line) for line in said("CMD"))
    (entry,) = (json.loads(line) for line in said("ENTRYPOINT"))
    port = free_port()
    words = [*ready, "-m", *entry, *command, "--port", str(port), "--json"]
    with subprocess.Popen(words, env=settings, cwd=store, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE) as server:  # fmt: skip
        try:
            page = json.loads(read_document(server.stdout))
            assert page["link"].startswith("https://ward.example.org/enter#")
            assert health(port)["status"] == "ready"
        finally:
            server.send_signal(signal.SIGTERM)
            said_last = server.communicate(timeout=60)[1]
    assert "Traceback" not in said_last and "compiling" not in said_last
    assert (store / "store.db").is_file()


def read_document(lines):
    """One JSON document of several lines."""
    text = ""
    for line in lines:
        text += line
        if line == "}\n":
            break
    return text


def health(port):
    """What the server says once its port is open, a moment after it has printed its address."""
    for _ in range(200):
        with suppress(httpx2.TransportError):
            return httpx2.get(f"http://127.0.0.1:{port}/health").json()
        time.sleep(0.05)
    raise AssertionError("it does not answer")


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]
