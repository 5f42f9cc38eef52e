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
from support.cli_runner import one_line

from dowise.cli.main import main
from dowise.experiment.storage import open_storage
from dowise_web.tokens import authenticate, create_session

SECRET = re.compile(r"dowise_[\w-]{43}", re.ASCII)


@pytest.fixture
def ward(desk):
    """A store without an experiment in it, which is enough."""
    open_storage("ward.db", create=True).close()
    return desk


def whose(secret):
    with closing(open_storage("ward.db")) as storage:
        return authenticate(storage, secret)


def test_a_token_is_made_and_shown_once(ward):
    shown = ward.well("token", "ward.db", "--role", "ask", "--name", "Dr. Zoë", "--days", "3")
    secret, _, rest = shown.partition("\n")
    assert SECRET.fullmatch(secret) and not SECRET.search(rest)
    token = whose(secret)
    assert (token.role, token.name, token.kind) == ("ask", "Dr. Zoë", "token")
    for part in (
        "This is token 1 of Dr. Zoë, who may read, tell, amend, withdraw and ask.",
        "It is shown once.",
        "put it into DOWISE_TOKEN", "login page of `dowise serve`",
        f"until {token.ends_at[:10]}", "dowise token ward.db --revoke 1",
    ):  # fmt: skip
        assert part in one_line(rest), part
    listed = ward.well("token", "ward.db") + json.dumps(ward.json("token", "ward.db"))
    assert "Dr. Zoë" in listed and secret not in listed and token.hash not in listed


def test_every_role_is_explained_and_a_token_may_last(ward):
    for role in ("read", "tell", "ask", "admin"):
        assert "valid until revoked" in one_line(ward.well("token", "ward.db", "--role", role))
    assert [one["role"] for one in ward.json("token", "ward.db")["tokens"]] == [
        "read", "tell", "ask", "admin",
    ]  # fmt: skip


def test_a_link_opens_a_browser_once(ward):
    shown = ward.well("token", "ward.db", "--role", "admin", "--link")
    first, _, rest = shown.partition("\n")
    address, _, secret = first.partition("#")
    assert address == "http://127.0.0.1:8000/enter" and SECRET.fullmatch(secret)
    assert "It works once, within 15 minutes." in one_line(rest)
    with closing(open_storage("ward.db")) as storage:
        assert create_session(storage, secret) and not create_session(storage, secret)
    states = {one["kind"]: one["state"] for one in ward.json("token", "ward.db")["tokens"]}
    assert states == {"link": "used", "session": "valid"}


def test_for_programs(ward):
    made = ward.json("token", "ward.db", "--role", "tell", "--name", "ann")
    secret = made.pop("secret")
    assert whose(secret).id == made["id"] == 1
    assert {*made} == {
        "id", "kind", "role", "name", "parent", "made_at", "ends_at", "ended_at", "state",
    }  # fmt: skip
    assert ward.json("token", "ward.db") == {"tokens": [made]}
    assert ward.json("token", "ward.db", "--revoke", "1") == {"revoked": 1}
    assert ward.json("token", "ward.db")["tokens"][0]["state"] == "ended"
    assert whose(secret) is None


def test_revoking_ends_sessions_and_can_be_repeated(ward):
    secret = ward.json("token", "ward.db", "--role", "tell")["secret"]
    with closing(open_storage("ward.db")) as storage:
        session = create_session(storage, secret).secret
    for _ in range(2):
        assert "Token 1 and its sessions are revoked" in ward.well(
            "token", "ward.db", "--revoke", "1"
        )
    assert whose(secret) is None and whose(session) is None


def test_what_is_good_is_listed_first(ward):
    assert "ward.db has no tokens" in ward.well("token", "ward.db")
    for name in ("ann", "bob", "[bold]eve[/]"):
        ward.json("token", "ward.db", "--role", "read", "--name", name)
    ward.well("token", "ward.db", "--revoke", "3")
    header, *rows = ward.well("token", "ward.db").splitlines()
    assert header.split()[:4] == ["id", "kind", "role", "name"]
    assert [row.split()[0] for row in rows] == ["2", "1", "3"]
    assert [row.split()[-1] for row in rows] == ["valid", "valid", "ended"]
    assert "[bold]eve[/]" in rows[2]


def test_nothing_is_made_where_there_is_no_store(desk):
    for more in ((), ("--role", "read"), ("--revoke", "1")):
        assert "there is no store away.db: make it (dowise new" in desk.fails(
            "token", "away.db", *more
        )
    assert sorted(path.name for path in desk.folder.iterdir()) == ["ward.toml"]


def test_a_secret_in_the_wrong_place_is_not_repeated(ward):
    secret = ward.json("token", "ward.db", "--role", "read")["secret"]
    said = ward.fails("token", "ward.db", "--revoke", secret)
    assert secret[7:] not in said and "not its secret: dowise token ward.db lists them" in said
    said = ward.fails("token", f"http://127.0.0.1:8000/enter#{secret}")
    assert secret[7:] not in said


def test_the_password_of_a_store_is_not_shown(desk):
    said = desk.fails("token", "postgresql://ann:sEcr3t@127.0.0.1:1/trials", "--role", "read")
    assert "sEcr3t" not in said


@pytest.mark.slow
@pytest.mark.usefixtures("ward")
def test_a_secret_goes_to_stdout_and_nowhere_else():
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-m", "dowise", "token", "ward.db", "--role", "read"],
        capture_output=True, text=True, check=True, env={**os.environ, "DOWISE_TRACEBACK": "1"},
    )  # fmt: skip
    secret = SECRET.search(done.stdout)[0]
    assert secret[7:] not in done.stderr
    assert not [path for path in Path().iterdir() if secret[7:].encode() in path.read_bytes()]
    with closing(sqlite3.connect("ward.db")) as raw:
        assert raw.execute("SELECT count(*) FROM events").fetchone() == (0,)


def test_it_stands_last_among_the_commands_on_live_experiments(desk):
    shown = desk.well("--help")
    assert shown.index("\n  audit ") < shown.index("\n  token ") < shown.index("\nResearch:")
    help_ = desk.well("token", "--help")
    assert "dowise token ward.db --role ask --name ward-7" in help_
    assert all(option in help_ for option in ("--role", "--name", "--days", "--link", "--revoke"))
    assert "token" in main.commands


@pytest.mark.slow
def test_the_web_is_not_needed_for_it(ward):
    code = (
        "import sys; from dowise.cli.main import main\n"
        "try: main(['token', 'ward.db', '--role', 'read'])\n"
        "except SystemExit: pass\n"
        "web = {'fastapi', 'starlette', 'uvicorn', 'jinja2', 'httpx2', 'numba'}\n"
        "sys.exit(', '.join(web & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ward.json("token", "ward.db")["tokens"]
