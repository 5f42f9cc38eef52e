"""Signing in and out where others share the address, or the token."""

import httpx2
import pytest
from support.servers import running


@pytest.fixture
def ward(tmp_path):
    with running(tmp_path / "ward.db", failures=0.001) as found:
        yield found


@pytest.fixture
def visitor(ward):
    with httpx2.Client(base_url=ward.address, headers={"Origin": ward.address}) as client:
        yield client


def sign_in(visitor, secret, page="/login"):
    return visitor.post(page, data={"secret": secret}).status_code


def test_who_guesses_shuts_nobody_out(ward, visitor):
    tries = [sign_in(visitor, f"wrong {i}") for i in range(12)]
    assert tries == [403] * 10 + [429] * 2
    assert sign_in(visitor, ward.token("read")) == 303
    assert sign_in(visitor, ward.server.link().partition("#")[2], "/enter") == 303


def test_whoever_can_not_come_in_reads_whom_to_ask(ward, visitor):
    assert "ask the person who runs this server for a new one" in visitor.get("/login").text
    link = ward.server.link().partition("#")[2]
    assert sign_in(visitor, link, "/enter") == 303
    for page in ("/enter", "/login"):
        answer = " ".join(visitor.post(page, data={"secret": link}).text.split())
        assert "Ask the person who runs this server for a new one" in answer
        assert "dowise token" not in answer


def test_a_token_opens_some_sessions_and_not_many(ward, visitor):
    token, other = ward.token("read"), ward.token("read")
    assert [sign_in(visitor, token) for _ in range(11)] == [303] * 10 + [429]
    assert sign_in(visitor, other) == 303


def test_signing_out_revokes_no_token(ward):
    client = ward.client("read", "shared by many")
    answer = client.post("/logout")
    assert answer.status_code == 403 and "no session" in answer.text
    assert client.get("/api/me").json()["name"] == "shared by many"
