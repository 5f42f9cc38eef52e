"""The page People: who may come in, somebody more, and the end of one."""

import re
from html import unescape

import httpx2
import pytest
from support.html_forms import Page
from support.servers import running

from dowise_web import tokens

HERE = "It works only on this computer."


@pytest.fixture
def server(ward):
    """The server, which all of these share."""
    return ward


def see(browser):
    return Page(browser.get("/people"))


def send(browser, address="/people", **fields):
    form = see(browser).form("/people") | fields
    return Page(browser.post(address, data=form))


def revoke(browser, number):
    """Press Revoke, and say yes to what is asked."""
    question = Page(browser.get("/people/revoke", params={"id": number}))
    assert question.status == 200
    return browser.post("/people/revoke", data=question.form("/revoke"))


def made_last(server):
    return tokens.list_tokens(server.storage)[-1]


def secret_in(page):
    return unescape(re.search(r'<p class="secret code">([^<]*)</p>', page.html)[1])


def test_an_invited_user_signs_in_until_revoked(server):
    admin = server.browser()
    page = send(admin, name="Dr. Zoë <b>", role="read", kind="link")
    link = secret_in(page)
    assert page.status == 200 and link.startswith(f"{server.address}/enter#dowise_")
    assert "Copy it now: it is shown only once." in page.text and "see everything" in page.text
    assert "dowise_" not in see(admin).html and "Dr. Zoë <b>" in see(admin).text
    made = tokens.list_tokens(server.storage)[-1]
    assert (made["kind"], made["role"], made["name"]) == ("link", "read", "Dr. Zoë <b>")
    assert made["ends_at"][:10] > made["made_at"][:10]  # within a day, not minutes

    browser = {"Sec-Fetch-Site": "same-origin", "Origin": server.address}
    with httpx2.Client(base_url=server.address, headers=browser) as zoe:
        assert zoe.post("/enter", data={"secret": link.partition("#")[2]}).status_code == 303
        assert "(role read)" in zoe.get("/experiments/ward%207/now").text
        assert "/people" not in zoe.get("/experiments/ward%207/now").text
        assert zoe.get("/people").status_code == 403
        assert f"link {made['id']}, used 1 session open" in see(admin).text
        session = tokens.list_tokens(server.storage)[-1]
        assert session["parent"] == made["id"] and session["ends_at"] in see(admin).html
        assert f"/people/revoke?id={made['id']}" in see(admin).hrefs
        answer = revoke(admin, made["id"])
        page = Page(admin.get(answer.headers["location"]))
        assert f"Revoked: Dr. Zoë <b>’s link {made['id']} and its sessions" in page.text
        assert zoe.get("/experiments/ward%207/now").status_code == 303  # to the door
    assert f"link {made['id']}, used, then revoked or signed out" in see(admin).text
    page = see(admin).html
    assert page.index("Dr. Zoë") > page.index('<details id="former">')


def test_tokens_are_created(server):
    admin = server.browser()
    secret = secret_in(send(admin, name="till 3", role="ask", kind="token", days="30"))
    found = tokens.authenticate(server.storage, secret)
    assert (found.kind, found.role, found.name) == ("token", "ask", "till 3")
    assert found.ends_at is not None
    found = tokens.authenticate(server.storage, secret_in(send(admin, name="ann", kind="token")))
    assert (found.role, found.ends_at) == ("read", None)


@pytest.mark.parametrize(
    ("fields", "said"),
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
            {"key": "of a server that was"},
            "The server was restarted since this form was opened: send",
        ),
    ],
)
def test_invalid_forms_create_nothing(server, fields, said):
    admin = server.browser()
    before = len(tokens.list_tokens(server.storage))
    page = send(admin, **{"name": "ann", **fields})
    assert page.status == 422 and said in page.text and "That did not work" in page.text
    assert len(tokens.list_tokens(server.storage)) == before
    assert page.form("/people")["name"] == fields.get("name", "ann")


def test_users_can_revoke_their_own_access(server):
    admin = server.browser()
    page = see(admin)
    assert page.text.count(" you ") == 1
    own = re.search(r'class="chosen".*?revoke\?id=(\d+)"', page.html, re.DOTALL)[1]
    question = Page(admin.get(f"/people/revoke?id={own}"))
    assert f"Revoke browser of admin’s link {own}?" in question.text
    assert "This is your own: you will be signed out." in question.text
    assert admin.get("/people").status_code == 200  # to ask ends nothing
    door = Page(admin.get(revoke(admin, own).headers["location"]))
    assert door.status == 200 and "You revoked your own link, and are signed out." in door.text
    assert admin.get("/people").status_code == 303


def test_revoking_others_has_no_warning(server):
    admin = server.browser()
    send(admin, name="ann")
    question = Page(admin.get(f"/people/revoke?id={made_last(server)['id']}"))
    assert "Revoke ann’s link" in question.text and "This is yours" not in question.text


def test_revoked_links_are_listed(server):
    admin = server.browser()
    send(admin, name="ann")
    number = made_last(server)["id"]
    assert f"link {number}, revoked" not in see(admin).text
    revoke(admin, number)
    assert f"link {number}, revoked" in see(admin).text
    assert "Revoked:" not in Page(admin.get(f"/people?revoked={number + 999}")).text


def test_a_form_sent_twice_creates_one_token(server):
    admin = server.browser()
    form = see(admin).form("/people") | {"name": "ann", "kind": "token"}
    secret = secret_in(Page(admin.post("/people", data=form)))
    made = made_last(server)
    again = Page(admin.post("/people", data=form))
    assert made_last(server) == made and secret not in again.html and again.status == 200
    assert f"This form was sent before and created token {made['id']}." in again.text
    assert f"If nobody has it, revoke token {made['id']} below and create another." in again.text
    assert again.form("/people")["key"] != form["key"]
    went_back = Page(admin.post("/people", data=form | {"name": "bob"}))
    assert secret_in(went_back) != secret
    assert made_last(server)["name"] == "bob"


def test_a_local_link_is_marked_as_local(server):
    page = send(server.browser(), name="ann", kind="link")
    assert HERE in page.text and "dowise serve … --url" in page.text
    assert HERE not in send(server.browser(), name="ann", kind="token").text


@pytest.mark.slow
def test_a_link_has_the_public_address(tmp_path):
    with running(tmp_path / "ward.db", url="http://ward.example.org") as other:
        page = send(other.browser(), name="ann", kind="link")
        assert secret_in(page).startswith("http://ward.example.org/enter#")
        assert HERE not in page.text


def test_forged_forms_and_unknown_numbers_are_refused(server):
    admin = server.browser()
    send(admin, name="ann")
    question = Page(admin.get(f"/people/revoke?id={made_last(server)['id']}"))
    form = question.form("/revoke")
    assert admin.post("/people/revoke", data=form | {"csrf": "x"}).status_code == 403
    assert admin.post("/people", data={"name": "ann", "role": "admin"}).status_code == 403
    for number in ("999", "x", "-1", "9" * 30, ""):
        answer = admin.post("/people/revoke", data=form | {"id": number})
        assert answer.status_code == 422 and "there is no token or link" in answer.text.lower()
        answer = admin.get("/people/revoke", params={"id": number})
        assert answer.status_code == (422 if number else 303)
    for role in ("read", "tell", "ask"):
        assert server.browser(role).get("/people").status_code == 403
        assert server.client(role).post("/people", data={"name": "eve"}).status_code == 403
    assert admin.get("/people/revoke").headers["location"] == "/people"
