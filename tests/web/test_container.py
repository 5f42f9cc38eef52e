"""The container file, followed in plain processes: tests have no container engine."""

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

from dowise._core.kernels import cache_directory

pytestmark = pytest.mark.slow  # it serves

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Containerfile").read_text("utf-8")
PRINT_CACHE = "from dowise._core.kernels import cache_directory; print(cache_directory())"


def arguments_of(instruction):
    """Return the arguments of each use of an instruction."""
    return re.findall(rf"^{instruction} (.*)$", TEXT, re.MULTILINE)


def image_environment(folder):
    """Return the environment of the image, with kernels in a folder of the test."""
    pairs = (pair.split("=", 1) for line in arguments_of("ENV") for pair in shlex.split(line))
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src")}
    return {**environment, **dict(pairs), "NUMBA_CACHE_DIR": str(folder / "kernels")}


def unnamed_user():
    """Return the command that runs another one as a user without a name, if the system may."""
    command = ["unshare", "--user", "--map-user=10001"]
    if shutil.which("unshare") is None:
        return []
    return command if subprocess.run([*command, "true"], check=False).returncode == 0 else []


def copy_kernels(folder):
    """Copy the kernels that tests have compiled, because to compile all takes minutes."""
    ignored = shutil.ignore_patterns("*.tmp.*")  # other tests are writing them
    shutil.copytree(cache_directory(), folder, ignore=ignored, dirs_exist_ok=True)


def test_it_copies_existing_files_and_runs_without_a_user_name():
    for line in arguments_of("COPY"):
        *sources, _ = line.split()
        assert all((ROOT / source).exists() for source in sources), line
    (user,) = arguments_of("USER")
    assert user.split(":")[0].isdigit() and not user.startswith("0")
    assert not Path(image_environment(ROOT)["HOME"]).exists()
    patterns = (ROOT / ".containerignore").read_text("utf-8")
    for line in arguments_of("COPY"):
        assert all(f"!{source.split('/')[0]}" in patterns for source in line.split()[:-1])


def test_a_user_without_a_home_saves_kernels_serves_and_stops(tmp_path):
    store, environment = tmp_path / "data", image_environment(tmp_path)
    store.mkdir(mode=0o700)
    (tmp_path / "kernels").mkdir(mode=0o700)
    python = [*unnamed_user(), sys.executable]

    def run(*arguments):
        return subprocess.run(
            [*python, *arguments],
            env=environment,
            cwd=store,
            check=True,
            timeout=600,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout

    kernels = Path(run("-c", PRINT_CACHE).strip())  # created, private and writable
    assert kernels.is_relative_to(tmp_path / "kernels") and not any(kernels.iterdir())
    copy_kernels(kernels)
    (compilation,) = re.findall(r"^RUN python (.*)$", TEXT, re.MULTILINE)
    run(*compilation.split())
    assert any(kernels.rglob("*.nbi"))
    environment["DOWISE_URL"] = "https://ward.example.org"
    (command,) = (json.loads(line) for line in arguments_of("CMD"))
    (entry,) = (json.loads(line) for line in arguments_of("ENTRYPOINT"))
    port = free_port()
    with subprocess.Popen(
        [*python, "-m", *entry, *command, "--port", str(port), "--json"],
        env=environment,
        cwd=store,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            page = json.loads(read_document(server.stdout))
            assert page["link"].startswith("https://ward.example.org/enter#")
            assert health(port)["status"] == "ready"
        finally:
            server.send_signal(signal.SIGTERM)
            log = server.communicate(timeout=60)[1]
    assert "Traceback" not in log and "compiling" not in log
    assert (store / "store.db").is_file()


def read_document(lines):
    """Return the first JSON document, which has several lines."""
    text = ""
    for line in lines:
        text += line
        if line == "}\n":
            break
    return text


def health(port):
    """Return the health of a server, whose port opens a moment after it printed its address."""
    for _ in range(200):
        with suppress(httpx2.TransportError):
            return httpx2.get(f"http://127.0.0.1:{port}/health").json()
        time.sleep(0.05)
    raise AssertionError("no response")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
