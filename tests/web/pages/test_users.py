"""The page People: invitations, access and its end."""

import re
from html import unescape

import httpx2
import pytest
from support.html_forms import Page
from support.servers import running

from dowise_web import tokens

LOCAL_NOTE = "It works only on this computer."


def people(browser):
    return Page(browser.get("/people"))


def invite(browser, **fields):
    form = people(browser).form("/people") | fields
    return Page(browser.post("/people", data=form))


def revoke(browser, number):
    """Press Revoke and confirm."""
    confirmation = Page(browser.get("/people/revoke", params={"id": number}))
    assert confirmation.status == 200
    return browser.post("/people/revoke", data=confirmation.form("/revoke"))


def last_token(server):
    return tokens.list_tokens(server.storage)[-1]


def secret_in(page):
    return unescape(re.search(r'<p class="secret code">([^<]*)</p>', page.html)[1])


def test_an_invited_user_signs_in_until_revoked(ward):
    admin = ward.browser()
    page = invite(admin, name="Dr. Zoë <b>", role="read", kind="link")
    link = secret_in(page)
    assert page.status == 200 and link.startswith(f"{ward.address}/enter#dowise_")
    assert "Copy it now: it is shown only once." in page.text and "see everything" in page.text
    assert "dowise_" not in people(admin).html and "Dr. Zoë <b>" in people(admin).text
    created = tokens.list_tokens(ward.storage)[-1]
    assert (created["kind"], created["role"], created["name"]) == ("link", "read", "Dr. Zoë <b>")
    assert created["ends_at"][:10] > created["made_at"][:10]  # within a day, not minutes

    browser = {"Sec-Fetch-Site": "same-origin", "Origin": ward.address}
    with httpx2.Client(base_url=ward.address, headers=browser) as zoe:
        assert zoe.post("/enter", data={"secret": link.partition("#")[2]}).status_code == 303
        assert "(role read)" in zoe.get("/experiments/ward%207/now").text
        assert "/people" not in zoe.get("/experiments/ward%207/now").text
        assert zoe.get("/people").status_code == 403
        assert f"link {created['id']}, used 1 session open" in people(admin).text
        session = tokens.list_tokens(ward.storage)[-1]
        assert session["parent"] == created["id"] and session["ends_at"] in people(admin).html
        assert f"/people/revoke?id={created['id']}" in people(admin).hrefs
        answer = revoke(admin, created["id"])
        page = Page(admin.get(answer.headers["location"]))
        assert f"Revoked: Dr. Zoë <b>’s link {created['id']} and its sessions" in page.text
        assert zoe.get("/experiments/ward%207/now").status_code == 303
    assert f"link {created['id']}, used, then revoked or signed out" in people(admin).text
    page = people(admin).html
    assert page.index("Dr. Zoë") > page.index('<details id="former">')


def test_tokens_are_created(ward):
    admin = ward.browser()
    secret = secret_in(invite(admin, name="till 3", role="ask", kind="token", days="30"))
    token = tokens.authenticate(ward.storage, secret)
    assert (token.kind, token.role, token.name) == ("token", "ask", "till 3")
    assert token.ends_at is not None
    token = tokens.authenticate(ward.storage, secret_in(invite(admin, name="ann", kind="token")))
    assert (token.role, token.ends_at) == ("read", None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": " "}, "Enter a name."),
        ({"name": "a\x07b"}, "is not a valid name for the holder of a token"),
        ({"role": "king"}, "Unknown role 'king' (expected one of read, tell, ask, admin)."),
        ({"kind": "token", "days": "many"}, "Days until the token expires: 'many' is not a whole"),
        (
            {"kind": "token", "days": "1.5"},
            "Days until the token expires: '1.5' is not a whole number.",
        ),
        ({"kind": "token", "days": "0"}, "must be above 0"),
        ({"kind": "link", "days": "30"}, "A link is valid for one day: leave the days empty, or"),
        (
            {"key": "of an earlier server"},
            "The server was restarted since this form was opened: send",
        ),
    ],
)
def test_invalid_forms_create_nothing(ward, fields, message):
    admin = ward.browser()
    before = len(tokens.list_tokens(ward.storage))
    page = invite(admin, **{"name": "ann", **fields})
    assert page.status == 422 and message in page.text and "That did not work" in page.text
    assert len(tokens.list_tokens(ward.storage)) == before
    assert page.form("/people")["name"] == fields.get("name", "ann")


def test_users_can_revoke_their_own_access(ward):
    admin = ward.browser()
    page = people(admin)
    assert page.text.count(" you ") == 1
    number = re.search(r'class="chosen".*?revoke\?id=(\d+)"', page.html, re.DOTALL)[1]
    confirmation = Page(admin.get(f"/people/revoke?id={number}"))
    assert f"Revoke browser of admin’s link {number}?" in confirmation.text
    assert "This is your own: you will be signed out." in confirmation.text
    assert admin.get("/people").status_code == 200  # not before the confirmation
    login = Page(admin.get(revoke(admin, number).headers["location"]))
    assert login.status == 200 and "You revoked your own link, and are signed out." in login.text
    assert admin.get("/people").status_code == 303


def test_revoking_others_has_no_warning(ward):
    admin = ward.browser()
    invite(admin, name="ann")
    confirmation = Page(admin.get(f"/people/revoke?id={last_token(ward)['id']}"))
    assert "Revoke ann’s link" in confirmation.text and "This is yours" not in confirmation.text


def test_revoked_links_are_listed(ward):
    admin = ward.browser()
    invite(admin, name="ann")
    number = last_token(ward)["id"]
    assert f"link {number}, revoked" not in people(admin).text
    revoke(admin, number)
    assert f"link {number}, revoked" in people(admin).text
    assert "Revoked:" not in Page(admin.get(f"/people?revoked={number + 999}")).text


def test_a_form_sent_twice_creates_one_token(ward):
    admin = ward.browser()
    form = people(admin).form("/people") | {"name": "ann", "kind": "token"}
    secret = secret_in(Page(admin.post("/people", data=form)))
    created = last_token(ward)
    again = Page(admin.post("/people", data=form))
    assert last_token(ward) == created and secret not in again.html and again.status == 200
    assert f"This form was sent before and created token {created['id']}." in again.text
    assert f"If nobody has it, revoke token {created['id']} below and create another." in again.text
    assert again.form("/people")["key"] != form["key"]
    changed = Page(admin.post("/people", data=form | {"name": "bob"}))
    assert secret_in(changed) != secret
    assert last_token(ward)["name"] == "bob"


def test_a_local_link_is_marked_as_local(ward):
    page = invite(ward.browser(), name="ann", kind="link")
    assert LOCAL_NOTE in page.text and "dowise serve … --url" in page.text
    assert LOCAL_NOTE not in invite(ward.browser(), name="ann", kind="token").text


@pytest.mark.slow
def test_a_link_has_the_public_address(tmp_path):
    with running(tmp_path / "ward.db", url="http://ward.example.org") as server:
        page = invite(server.browser(), name="ann", kind="link")
        assert secret_in(page).startswith("http://ward.example.org/enter#")
        assert LOCAL_NOTE not in page.text


def test_forged_forms_and_unknown_numbers_are_refused(ward):
    admin = ward.browser()
    invite(admin, name="ann")
    confirmation = Page(admin.get(f"/people/revoke?id={last_token(ward)['id']}"))
    form = confirmation.form("/revoke")
    assert admin.post("/people/revoke", data=form | {"csrf": "x"}).status_code == 403
    assert admin.post("/people", data={"name": "ann", "role": "admin"}).status_code == 403
    for number in ("999", "x", "-1", "9" * 30, ""):
        answer = admin.post("/people/revoke", data=form | {"id": number})
        assert answer.status_code == 422 and "there is no token or link" in answer.text.lower()
        answer = admin.get("/people/revoke", params={"id": number})
        assert answer.status_code == (422 if number else 303)
    for role in ("read", "tell", "ask"):
        assert ward.browser(role).get("/people").status_code == 403
        assert ward.client(role).post("/people", data={"name": "eve"}).status_code == 403
    assert admin.get("/people/revoke").headers["location"] == "/people"
