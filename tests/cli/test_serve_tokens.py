"""`dowise token`: create, list and revoke tokens."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from support.cli_runner import loaded_modules

from dowise.experiment.storage import open_storage
from dowise_web.tokens import authenticate, create_session

SECRET = re.compile(r"dowise_[\w-]{43}", re.ASCII)


@pytest.fixture
def ward(cli):
    """Return a command line with a store without experiments."""
    open_storage("ward.db", create=True).close()
    return cli


def owner(secret):
    with closing(open_storage("ward.db")) as storage:
        return authenticate(storage, secret)


def test_a_token_is_shown_once(ward):
    output = ward.run_ok("token", "ward.db", "--role", "ask", "--name", "Dr. Zoë", "--days", "3")
    secret, _, instructions = output.partition("\n")
    assert SECRET.fullmatch(secret) and not SECRET.search(instructions)
    token = owner(secret)
    assert (token.role, token.name, token.kind) == ("ask", "Dr. Zoë", "token")
    instructions = " ".join(instructions.split())
    for part in (
        "This is token 1 of Dr. Zoë, who may read, tell, amend, withdraw and ask.",
        "DOWISE_TOKEN",
        f"until {token.ends_at[:10]}",
        "dowise token ward.db --revoke 1",
    ):
        assert part in instructions, part
    listed = ward.run_ok("token", "ward.db") + json.dumps(ward.run_json("token", "ward.db"))
    assert "Dr. Zoë" in listed and secret not in listed and token.hash not in listed


def test_tokens_of_every_role_are_valid_until_revoked(ward):
    for role in ("read", "tell", "ask", "admin"):
        assert "valid until revoked" in ward.run_text("token", "ward.db", "--role", role)
    tokens = ward.run_json("token", "ward.db")["tokens"]
    assert [token["role"] for token in tokens] == ["read", "tell", "ask", "admin"]


def test_a_link_logs_in_once(ward):
    output = ward.run_ok("token", "ward.db", "--role", "admin", "--link")
    first_line, _, instructions = output.partition("\n")
    address, _, secret = first_line.partition("#")
    assert address == "http://127.0.0.1:8000/enter" and SECRET.fullmatch(secret)
    assert "It works once, within 15 minutes." in " ".join(instructions.split())
    with closing(open_storage("ward.db")) as storage:
        assert create_session(storage, secret) and not create_session(storage, secret)
    tokens = ward.run_json("token", "ward.db")["tokens"]
    assert {token["kind"]: token["state"] for token in tokens} == {
        "link": "used",
        "session": "valid",
    }


def test_tokens_print_json(ward):
    token = ward.run_json("token", "ward.db", "--role", "tell", "--name", "ann")
    secret = token.pop("secret")
    assert owner(secret).id == token["id"] == 1
    keys = {"id", "kind", "role", "name", "parent", "made_at", "ends_at", "ended_at", "state"}
    assert {*token} == keys
    assert ward.run_json("token", "ward.db") == {"tokens": [token]}
    assert ward.run_json("token", "ward.db", "--revoke", "1") == {"revoked": 1}
    assert ward.run_json("token", "ward.db")["tokens"][0]["state"] == "ended"
    assert owner(secret) is None


def test_revoking_ends_sessions_and_can_be_repeated(ward):
    secret = ward.run_json("token", "ward.db", "--role", "tell")["secret"]
    with closing(open_storage("ward.db")) as storage:
        session = create_session(storage, secret).secret
    for _ in range(2):
        output = ward.run_ok("token", "ward.db", "--revoke", "1")
        assert "Token 1 and its sessions are revoked" in output
    assert owner(secret) is None and owner(session) is None


def test_valid_tokens_are_listed_first_and_the_newest_before_others(ward):
    assert "ward.db has no tokens" in ward.run_ok("token", "ward.db")
    for name in ("ann", "bob", "[bold]eve[/]"):
        ward.run_json("token", "ward.db", "--role", "read", "--name", name)
    ward.run_ok("token", "ward.db", "--revoke", "3")
    header, *rows = ward.run_ok("token", "ward.db").splitlines()
    assert header.split()[:4] == ["id", "kind", "role", "name"]
    assert [row.split()[0] for row in rows] == ["2", "1", "3"]
    assert [row.split()[-1] for row in rows] == ["valid", "valid", "ended"]
    assert "[bold]eve[/]" in rows[2]


def test_secrets_in_arguments_are_not_repeated_in_errors(ward):
    secret = ward.run_json("token", "ward.db", "--role", "read")["secret"]
    assert secret[7:] not in ward.error("token", "ward.db", "--revoke", secret)
    assert secret[7:] not in ward.error("token", f"http://127.0.0.1:8000/enter#{secret}")
    database = "postgresql://ann:sEcr3t@127.0.0.1:1/trials"
    assert "sEcr3t" not in ward.error("token", database, "--role", "read")


@pytest.mark.slow
@pytest.mark.usefixtures("ward")
def test_a_secret_is_written_to_stdout_only():
    command = [sys.executable, "-X", "dev", "-m", "dowise", "token", "ward.db", "--role", "read"]
    environment = {**os.environ, "DOWISE_TRACEBACK": "1"}
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    secret = SECRET.search(result.stdout)[0]
    assert secret[7:] not in result.stderr
    assert not [path for path in Path().iterdir() if secret[7:].encode() in path.read_bytes()]
    with closing(sqlite3.connect("ward.db")) as connection:
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (0,)


@pytest.mark.slow
def test_tokens_need_neither_web_libraries_nor_numba(ward):
    libraries = {"fastapi", "starlette", "uvicorn", "jinja2", "httpx2", "numba"}
    assert loaded_modules(["token", "ward.db", "--role", "read"], libraries) == []
    assert ward.run_json("token", "ward.db")["tokens"]
