"""Tokens, links and sessions: roles, lifetimes and secrets."""

import re
import string
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code

from dowise import DowiseError
from dowise.experiment.storage import MemoryStorage, open_storage
from dowise_web.auth import Principal
from dowise_web.tokens import (
    LINK_MINUTES,
    ROLES,
    SESSION_HOURS,
    TokenTable,
    authenticate,
    create_link,
    create_session,
    create_token,
    list_tokens,
    revoke,
)


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.time = datetime(2026, 3, 2, 14, 5, tzinfo=UTC)

    def __call__(self):
        return self.time

    def advance(self, **duration):
        self.time += timedelta(**duration)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("dowise_web.tokens.now", clock)
    return clock


@pytest.fixture
def storage(tmp_path):
    storage = open_storage(tmp_path / "ward.db", create=True)
    yield storage
    storage.close()


def states(storage):
    return [token["state"] for token in list_tokens(storage)]


# -- roles ------------------------------------------------------------------------------------


def test_a_role_contains_those_before_it():
    assert ROLES == ("read", "tell", "ask", "admin")
    for i, role in enumerate(ROLES):
        assert [Principal(1, role, "Ann", 1).may(needed) for needed in ROLES] == [
            j <= i for j in range(4)
        ]


def test_an_unknown_role_is_an_error():
    with raises_code("unknown-role", "reed", "read"):
        create_token(MemoryStorage(), "reed")


def test_only_sql_stores_keep_tokens():
    for call in (
        lambda: create_token(MemoryStorage(), "read"),
        lambda: list_tokens(MemoryStorage()),
    ):
        with pytest.raises(DowiseError, match="can't hold tokens, so it can't be served"):
            call()


# -- tokens -----------------------------------------------------------------------------------


def test_a_token_is_valid_until_it_is_revoked(storage, clock):
    created = create_token(storage, "ask", " Dr. Zoë ")
    assert re.fullmatch(r"dowise_[\w-]{43}", created.secret, re.ASCII)
    assert created.token[:6] == (1, created.token.hash, "token", "ask", "Dr. Zoë", None)
    assert created.token.made_at == "2026-03-02T14:05:00.000000Z" and created.token.ends_at is None
    clock.advance(days=10_000)
    assert authenticate(storage, created.secret) == created.token
    other = create_token(storage, "ask", "Dr. Zoë")
    assert other.secret != created.secret and other.token.id == 2
    assert revoke(storage, 1) and revoke(storage, 1)
    assert (
        authenticate(storage, created.secret) is None
        and authenticate(storage, other.secret) == other.token
    )
    assert states(storage) == ["ended", "valid"]


def test_a_token_expires(storage, clock):
    created = create_token(storage, "read", "ann", days=3)
    clock.advance(days=3, microseconds=-1)
    assert authenticate(storage, created.secret) == created.token and states(storage) == ["valid"]
    clock.advance(microseconds=1)
    assert authenticate(storage, created.secret) is None and states(storage) == ["expired"]
    assert create_session(storage, created.secret) is None


@pytest.mark.parametrize("days", [0, -1, 36_501, float("nan"), float("inf")])
def test_invalid_days_are_refused(days):
    with pytest.raises(DowiseError, match="days=.* must be above 0 and at most 36,500"):
        create_token(MemoryStorage(), "read", days=days)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x1b[31m", "x" * 201, "\ud800", 7])
def test_invalid_names_are_refused(storage, name):
    for make in (create_token, create_link):
        with pytest.raises(
            DowiseError, match="is not a valid name for the holder of a token"
        ) as error:
            make(storage, "read", name)
        assert len(str(error.value)) < 200
    assert list_tokens(storage) == []


def test_the_name_defaults_to_the_os_user(storage, monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "bob")
    assert create_token(storage, "read").token.name == "bob"


def test_revoking_an_unknown_token_returns_false(storage):
    for number in (0, -1, 1, 2**63, 10**40):
        assert not revoke(storage, number)


# -- links and sessions -----------------------------------------------------------------------


def test_a_link_creates_one_session(storage, clock):
    link = create_link(storage, "tell", "ann")
    assert authenticate(storage, link.secret) is None  # a link alone does not authenticate
    clock.advance(minutes=LINK_MINUTES, microseconds=-1)
    session = create_session(storage, link.secret)
    assert session.token.kind == "session" and session.token.parent == link.token.id
    assert (session.token.role, session.token.name) == ("tell", "ann")
    assert create_session(storage, link.secret) is None
    assert create_session(storage, session.secret) is None  # or sessions would never end
    clock.advance(hours=SESSION_HOURS, microseconds=-1)
    assert (
        authenticate(storage, session.secret) == session.token
    )  # though its link is used and over
    assert states(storage) == ["used", "valid"]
    clock.advance(microseconds=1)
    assert authenticate(storage, session.secret) is None


def test_expired_and_revoked_links_create_no_session(storage, clock):
    late, revoked = create_link(storage, "tell"), create_link(storage, "tell")
    assert revoke(storage, revoked.token.id)
    assert create_session(storage, revoked.secret) is None
    clock.advance(minutes=LINK_MINUTES)
    assert create_session(storage, late.secret) is None
    assert states(storage) == ["expired", "ended"]


def test_a_session_ends_with_its_token(storage, clock):
    created = create_token(storage, "admin", "ann", days=1)
    first = create_session(storage, created.secret, hours=1)
    clock.advance(hours=23)
    second = create_session(storage, created.secret, hours=12)
    assert second.token.ends_at == created.token.ends_at
    assert (
        authenticate(storage, first.secret) is None
        and authenticate(storage, second.secret) == second.token
    )
    clock.advance(hours=1)
    assert authenticate(storage, second.secret) is None


def test_revoking_a_token_ends_only_its_sessions(storage):
    token, other = create_token(storage, "ask", "ann"), create_token(storage, "ask", "bob")
    sessions = [create_session(storage, token.secret) for _ in range(2)]
    other_session = create_session(storage, other.secret)
    assert revoke(storage, sessions[0].token.id)  # sign out
    assert (
        authenticate(storage, sessions[0].secret) is None
        and authenticate(storage, sessions[1].secret) is not None
    )
    assert revoke(storage, token.token.id)
    assert (
        authenticate(storage, sessions[1].secret) is None
        and create_session(storage, token.secret) is None
    )
    assert authenticate(storage, other_session.secret) == other_session.token


def test_revoking_a_used_link_ends_its_session(storage):
    link = create_link(storage, "ask", "ann")
    session = create_session(storage, link.secret)
    assert revoke(storage, link.token.id)
    assert authenticate(storage, session.secret) is None and states(storage) == ["used", "ended"]


# -- secrets ----------------------------------------------------------------------------------


SECRET_LIKE = st.text(string.ascii_letters, min_size=43, max_size=43).map("dowise_".__add__)


@pytest.fixture(scope="module")
def storage_of_admin(tmp_path_factory):
    storage = open_storage(tmp_path_factory.mktemp("store") / "ward.db", create=True)
    create_token(storage, "admin")
    yield storage
    storage.close()


@given(secret=st.one_of(st.text(), st.binary(), st.none(), st.integers(), SECRET_LIKE))
def test_arbitrary_values_are_not_secrets(storage_of_admin, secret):
    storage = storage_of_admin
    assert authenticate(storage, secret) is None and create_session(storage, secret) is None


def test_variations_of_a_secret_are_unknown(storage):
    created = create_token(storage, "admin")
    secret = created.secret
    for variation in (
        secret + "\n",
        " " + secret,
        secret[:-1],
        secret + "A",
        secret.upper(),
        secret[7:],
        secret[:-1] + "\ud800",
        secret[:-1] + "é",
        secret * 100_000,
        secret.encode(),
        [secret],
        created.token.hash,
    ):
        assert (
            authenticate(storage, variation) is None and create_session(storage, variation) is None
        )
    assert authenticate(storage, secret) == created.token


def test_neither_secrets_nor_hashes_are_shown(storage):
    created = create_token(storage, "ask", "ann")
    session = create_session(storage, created.secret)
    texts = repr(created) + repr(session) + repr(list_tokens(storage))
    assert created.secret not in texts and session.secret not in texts
    assert created.token.hash not in repr(list_tokens(storage))


def test_the_files_of_a_store_hold_no_secret(tmp_path):
    storage = open_storage(tmp_path / "ward.db", create=True)
    link, token = create_link(storage, "ask", "ann"), create_token(storage, "ask", "ann")
    session = create_session(storage, link.secret)
    while_open = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    storage.close()
    closed = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for files, name in ((while_open, "ward.db-wal"), (closed, "ward.db")):
        assert token.token.hash.encode() in files[name]
        for created in (link, token, session):
            secret = created.secret.removeprefix("dowise_").encode()
            assert not [name for name, content in files.items() if secret[:12] in content]


def test_unknown_roles_and_kinds_are_not_valid(storage):
    token = create_token(storage, "read").token
    secrets = ["dowise_" + letter * 43 for letter in "abc"]
    for secret, other in zip(secrets, ({}, {"role": "auditor"}, {"kind": "badge"}), strict=True):
        TokenTable(storage).add(token._replace(hash=sha256(secret.encode()).hexdigest(), **other))
    assert [authenticate(storage, secret) is not None for secret in secrets] == [True, False, False]
    assert [create_session(storage, secret) is not None for secret in secrets] == [
        True,
        False,
        False,
    ]


RACE = """
import sys
from dowise.experiment.storage import open_storage
from dowise_web.tokens import create_session
storage = open_storage("ward.db")
print("ready", flush=True)
secrets = sys.stdin.read().split()
print(*[i for i, secret in enumerate(secrets) if create_session(storage, secret)])
"""


@pytest.mark.slow
def test_links_are_used_once_by_two_processes(tmp_path):
    storage = open_storage(tmp_path / "ward.db", create=True)
    links = [create_link(storage, "ask").secret for _ in range(30)]
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", RACE],
            cwd=tmp_path,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    for program in programs:
        assert program.stdout.readline() == "ready\n"
    for program in programs:
        program.stdin.write(" ".join(links))
    for program in programs:
        program.stdin.close()
    won = [int(word) for program in programs for word in program.stdout.read().split()]
    for program in programs:
        assert program.wait() == 0
        program.stdout.close()
    assert sorted(won) == list(range(30))
    assert states(storage) == ["used"] * 30 + ["valid"] * 30
    storage.close()
