"""Sessions of browsers: one-time links, cookies, CSRF tokens, and signing in and out."""

import re

import httpx2
import pytest
from support.servers import running

from dowise_web import tokens
from dowise_web.auth import csrf_token

API = "/api/experiments/ward%207"


def cookie_of(answer):
    return answer.headers["set-cookie"]


def enter(ward, secret, **headers):
    headers = {"Origin": ward.address} | headers
    return httpx2.post(f"{ward.address}/enter", data={"secret": secret}, headers=headers)


def csrf(browser):
    (secret,) = browser.cookies.values()
    return {"X-CSRF-Token": csrf_token(secret)}


def test_the_cookie_is_http_only_and_same_site(ward):
    answer = enter(ward, ward.link())
    cookie = cookie_of(answer)
    assert answer.status_code == 303 and answer.headers["location"] == "/"
    name = f"dowise-{ward.server.settings.port}"
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert cookie.startswith(f"{name}=dowise_")
    assert {"httponly", "samesite=strict", "path=/"} <= parts
    assert "secure" not in parts and not any(part.startswith("domain") for part in parts)


@pytest.mark.slow
def test_over_tls_the_cookie_is_secure(tmp_path):
    with running(tmp_path / "ward.db", url="https://ward.example.org") as ward:
        local, host = f"http://127.0.0.1:{ward.server.settings.port}", "ward.example.org"
        headers = {"Host": host, "Origin": f"https://{host}"}
        data = {"secret": ward.link()}
        answer = httpx2.post(f"{local}/enter", data=data, headers=headers)
        cookie = cookie_of(answer)
        assert cookie.startswith("__Host-dowise-") and "; secure" in cookie.lower()
        assert "strict-transport-security" in answer.headers
        plain = {"Host": host, "Origin": f"http://{host}:1"}
        assert httpx2.post(f"{local}/enter", data=data, headers=plain).status_code == 403


@pytest.mark.slow
def test_two_servers_on_one_machine_have_separate_sessions(ward, tmp_path):
    """Browsers send the cookies of 127.0.0.1 to all of its ports."""
    with running(tmp_path / "other.db") as other, httpx2.Client() as browser:
        for server in (ward, other):
            headers = {"Sec-Fetch-Site": "same-origin", "Origin": server.address}
            data = {"secret": server.link()}
            url = f"{server.address}/enter"
            assert browser.post(url, data=data, headers=headers).is_redirect
        for server in (ward, other):
            assert browser.get(f"{server.address}/api/me").status_code == 200


def test_a_link_works_once(ward):
    secret = ward.link()
    assert enter(ward, secret).status_code == 303
    again = enter(ward, secret)
    assert again.status_code == 403 and "set-cookie" not in again.headers


def test_links_tokens_and_sessions_are_not_interchangeable(ward):
    secret, browser = ward.link(), ward.browser()
    (session,) = browser.cookies.values()
    name = f"dowise-{ward.server.settings.port}"
    for wrong in (secret, session):
        headers = {"Authorization": f"Bearer {wrong}"}
        assert httpx2.get(f"{ward.address}/api/me", headers=headers).status_code == 401
    for wrong in (secret, ward.token("admin")):
        headers = {"Cookie": f"{name}={wrong}"}
        assert httpx2.get(f"{ward.address}/api/me", headers=headers).status_code == 401
    assert enter(ward, session).status_code == 403


def test_a_secret_in_a_query_is_ignored(ward):
    secret = ward.link()
    for path in (f"/enter?secret={secret}", f"/?token={secret}", f"/api/me?access_token={secret}"):
        answer = httpx2.get(f"{ward.address}{path}")
        assert "set-cookie" not in answer.headers and answer.status_code in (200, 303, 401)
    assert enter(ward, secret).status_code == 303  # it is still valid


def test_a_session_has_the_role_of_its_link(ward):
    browser = ward.browser("tell")
    assert browser.get("/api/me").json()["role"] == "tell"
    asked = browser.post(f"{API}/ask", json={"context": {"C": 1}}, headers=csrf(browser))
    assert asked.status_code == 403 and "'ask'" in asked.json()["detail"]


def test_a_session_needs_its_own_csrf_token(ward):
    browser, other = ward.browser(), ward.browser()
    body = {"context": {"C": 1}}
    for wrong in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": "0" * 64}, csrf(other)):
        assert browser.post(f"{API}/ask", json=body, headers=wrong).status_code == 403
        assert browser.request("DELETE", "/api/tokens/999", headers=wrong).status_code == 403
        form = {"csrf": wrong.get("X-CSRF-Token", "")}
        assert browser.post("/logout", data=form, headers=wrong).status_code == 403
    assert browser.post(f"{API}/ask", json=body, headers=csrf(browser)).status_code == 200


def test_pages_do_not_contain_the_secret_of_the_session(ward):
    """Their CSRF tokens are derived from the secret, which can't be derived from them."""
    browser = ward.browser()
    (secret,) = browser.cookies.values()
    for path in ("/?all", "/experiments/ward%207/now", "/login"):
        page = browser.get(path).text
        assert secret not in page and not re.search(r"dowise_[\w-]{43}", page)


@pytest.mark.parametrize("wrong", ["é" * 32, "\x7f", "a" * 5000])
def test_csrf_tokens_of_odd_characters_are_refused(ward, wrong):
    browser = ward.browser()
    answer = browser.post("/logout", data={"csrf": wrong})
    assert answer.status_code == 403


def test_revoking_a_token_ends_its_sessions(ward):
    created = tokens.create_token(ward.storage, "admin", "Ann")
    login = httpx2.post(f"{ward.address}/login", data={"secret": created.secret})
    cookie = {"Cookie": cookie_of(login).partition(";")[0]}
    bearer = {"Authorization": f"Bearer {created.secret}"}
    me = f"{ward.address}/api/me"
    assert httpx2.get(me, headers=cookie).json() == httpx2.get(me, headers=bearer).json()
    assert ward.client().delete(f"/api/tokens/{created.token.id}").status_code == 200
    for headers in (cookie, bearer):
        assert httpx2.get(me, headers=headers).status_code == 401


def test_signing_out_ends_the_session(ward):
    browser = ward.browser()
    cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
    assert browser.post("/logout", headers=csrf(browser)).status_code == 303
    assert httpx2.get(f"{ward.address}/api/me", headers=cookie).status_code == 401


def test_a_header_takes_precedence_over_a_cookie(ward):
    """So a program never acts by a session unknowingly."""
    browser = ward.browser("admin")
    token = {"Authorization": f"Bearer {ward.token('read')}"}
    assert browser.get("/api/me", headers=token).json()["role"] == "read"
    wrong = {"Authorization": "Basic YTpi"}
    assert browser.get("/api/me", headers=wrong).status_code == 401


def test_signing_in_redirects_to_local_paths_only(ward):
    browser = ward.anonymous_browser()
    redirect = browser.get("/experiments/ward%207/now", params={"decision": "5"})
    assert redirect.status_code == 303
    page = browser.get(redirect.headers["location"]).text
    assert 'name="next" value="/experiments/ward%207/now?decision=5"' in page
    token = ward.token("read")
    for requested, target in [
        ("/experiments/ward%207/now?decision=5", "/experiments/ward%207/now?decision=5"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/x\r\nSet-Cookie: a=b", "/"),
    ]:
        answer = browser.post("/login", data={"secret": token, "next": requested})
        assert answer.status_code == 303 and answer.headers["location"] == target


def test_htmx_requests_without_a_session_are_not_redirected(ward):
    """A redirect would discard what was typed."""
    browser = ward.anonymous_browser()
    answer = browser.post("/experiments/ward%207/now/tell", headers={"HX-Request": "true"})
    assert answer.status_code == 401 and "hx-redirect" not in answer.headers


# -- limits on signing in ---------------------------------------------------------------------


@pytest.fixture
def strict(tmp_path):
    """A server that accepts ten failures, and few after them."""
    with running(tmp_path / "strict.db", failures=0.001) as server:
        yield server


@pytest.fixture
def visitor(strict):
    return strict.anonymous_browser()


def sign_in(visitor, secret, page="/login"):
    return visitor.post(page, data={"secret": secret}).status_code


def test_failures_do_not_lock_out_valid_secrets(strict, visitor):
    statuses = [sign_in(visitor, f"wrong {i}") for i in range(12)]
    assert statuses == [403] * 10 + [429] * 2
    assert sign_in(visitor, strict.token("read")) == 303
    assert sign_in(visitor, strict.link(), "/enter") == 303


def test_the_login_page_tells_whom_to_ask(strict, visitor):
    assert "ask the person who runs this server for a new one" in visitor.get("/login").text
    link = strict.link()
    assert sign_in(visitor, link, "/enter") == 303
    for page in ("/enter", "/login"):
        answer = " ".join(visitor.post(page, data={"secret": link}).text.split())
        assert "Ask the person who runs this server for a new one" in answer
        assert "dowise token" not in answer


def test_sessions_are_limited_per_token(strict, visitor):
    token, other = strict.token("read"), strict.token("read")
    assert [sign_in(visitor, token) for _ in range(11)] == [303] * 10 + [429]
    assert sign_in(visitor, other) == 303


def test_a_token_can_not_sign_out(strict):
    client = strict.client("read", "shared by many")
    answer = client.post("/logout")
    assert answer.status_code == 403 and "no session" in answer.text
    assert client.get("/api/me").json()["name"] == "shared by many"
