"""The page People: who may come in, somebody more, and the end of one."""

import re
from html import unescape

import httpx2
import pytest
from support.html_forms import Page
from support.servers import running

from dowise_web import tokens

HERE = "It works on this machine only."


@pytest.fixture
def house(ward):
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


def made_last(house):
    return tokens.pages(house.storage)[-1]


def secret_in(page):
    return unescape(re.search(r'<p class="secret code">([^<]*)</p>', page.html)[1])


def test_a_link_for_a_colleague_is_shown_once_and_lets_them_in(house):
    admin = house.browser()
    page = send(admin, name="Dr. Zoë <b>", role="read", kind="link")
    link = secret_in(page)
    assert page.status == 200 and link.startswith(f"{house.address}/enter#dowise_")
    assert "It is shown this once." in page.text and "look at everything" in page.text
    assert "dowise_" not in see(admin).html and "Dr. Zoë <b>" in see(admin).text
    made = tokens.pages(house.storage)[-1]
    assert (made["kind"], made["role"], made["name"]) == ("link", "read", "Dr. Zoë <b>")
    assert made["ends_at"][:10] > made["made_at"][:10]  # within a day, not minutes

    browser = {"Sec-Fetch-Site": "same-origin", "Origin": house.address}
    with httpx2.Client(base_url=house.address, headers=browser) as zoe:
        assert zoe.post("/enter", data={"secret": link.partition("#")[2]}).status_code == 303
        assert "(role read)" in zoe.get("/experiments/ward%207/now").text
        assert "/people" not in zoe.get("/experiments/ward%207/now").text
        assert zoe.get("/people").status_code == 403
        assert f"link {made['id']}, used 1 session open" in see(admin).text
        session = tokens.pages(house.storage)[-1]
        assert session["parent"] == made["id"] and session["ends_at"] in see(admin).html
        assert f"/people/revoke?id={made['id']}" in see(admin).hrefs
        answer = revoke(admin, made["id"])
        page = Page(admin.get(answer.headers["location"]))
        assert f"Revoked: Dr. Zoë <b>’s link {made['id']}, and the sessions" in page.text
        assert zoe.get("/experiments/ward%207/now").status_code == 303  # to the door
    assert f"link {made['id']}, used, then revoked or signed out" in see(admin).text
    page = see(admin).html
    assert page.index("Dr. Zoë") > page.index('<details id="before">')


def test_a_token_for_a_program(house):
    admin = house.browser()
    secret = secret_in(send(admin, name="till 3", role="ask", kind="token", days="30"))
    found = tokens.who(house.storage, secret)
    assert (found.kind, found.role, found.name) == ("token", "ask", "till 3")
    assert found.ends_at is not None
    found = tokens.who(house.storage, secret_in(send(admin, name="ann", kind="token")))
    assert (found.role, found.ends_at) == ("read", None)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": " "}, "Say who it is for, in the field Name."),
        ({"name": "a\x07b"}, "can't be the name of who has a token"),
        ({"role": "king"}, "Unknown role 'king': there are read, tell, ask, admin."),
        ({"kind": "token", "days": "many"}, "Days that a token lasts: 'many' is no whole"),
        ({"kind": "token", "days": "1.5"}, "Days that a token lasts: '1.5' is no whole number."),
        ({"kind": "token", "days": "0"}, "must be above 0"),
        ({"kind": "link", "days": "30"}, "A link is good for a day: leave the days empty, or"),
        ({"key": "of a server that was"}, "This form is from before the server was started: send"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_made(house, fields, said):
    admin = house.browser()
    before = len(tokens.pages(house.storage))
    page = send(admin, **{"name": "ann", **fields})
    assert page.status == 422 and said in page.text and "That did not work" in page.text
    assert len(tokens.pages(house.storage)) == before
    assert page.form("/people")["name"] == fields.get("name", "ann")


def test_who_looks_is_marked_and_may_end_their_own_way_in(house):
    admin = house.browser()
    page = see(admin)
    assert page.text.count(" you ") == 1
    own = re.search(r'class="chosen".*?revoke\?id=(\d+)"', page.html, re.DOTALL)[1]
    question = Page(admin.get(f"/people/revoke?id={own}"))
    assert f"Revoke browser of admin’s link {own}?" in question.text
    assert "This is yours: you will be signed out." in question.text
    assert admin.get("/people").status_code == 200  # to ask ends nothing
    door = Page(admin.get(revoke(admin, own).headers["location"]))
    assert door.status == 200 and "You revoked your own link, and are signed out." in door.text
    assert admin.get("/people").status_code == 303


def test_the_question_says_that_it_is_yours_of_yours_alone(house):
    admin = house.browser()
    send(admin, name="ann")
    question = Page(admin.get(f"/people/revoke?id={made_last(house)['id']}"))
    assert "Revoke ann’s link" in question.text and "This is yours" not in question.text


def test_a_link_that_nobody_used_is_listed_as_revoked(house):
    admin = house.browser()
    send(admin, name="ann")
    number = made_last(house)["id"]
    assert f"link {number}, revoked" not in see(admin).text
    revoke(admin, number)
    assert f"link {number}, revoked" in see(admin).text
    assert "Revoked:" not in Page(admin.get(f"/people?revoked={number + 999}")).text


def test_a_form_that_is_sent_twice_makes_one(house):
    admin = house.browser()
    form = see(admin).form("/people") | {"name": "ann", "kind": "token"}
    secret = secret_in(Page(admin.post("/people", data=form)))
    made = made_last(house)
    again = Page(admin.post("/people", data=form))
    assert made_last(house) == made and secret not in again.html and again.status == 200
    assert f"This form was sent before, and made token {made['id']}." in again.text
    assert f"If nobody has it, revoke token {made['id']} below and make another." in again.text
    assert again.form("/people")["key"] != form["key"]
    went_back = Page(admin.post("/people", data=form | {"name": "bob"}))
    assert secret_in(went_back) != secret
    assert made_last(house)["name"] == "bob"


def test_a_link_without_an_address_for_others_says_so(house):
    page = send(house.browser(), name="ann", kind="link")
    assert HERE in page.text and "dowise serve … --url" in page.text
    assert HERE not in send(house.browser(), name="ann", kind="token").text


@pytest.mark.slow
def test_a_link_to_an_address_for_others_works_there(tmp_path):
    with running(tmp_path / "ward.db", url="http://ward.example.org") as other:
        page = send(other.browser(), name="ann", kind="link")
        assert secret_in(page).startswith("http://ward.example.org/enter#")
        assert HERE not in page.text


def test_forms_of_other_sessions_and_numbers_of_nobody_do_nothing(house):
    admin = house.browser()
    send(admin, name="ann")
    question = Page(admin.get(f"/people/revoke?id={made_last(house)['id']}"))
    form = question.form("/revoke")
    assert admin.post("/people/revoke", data=form | {"csrf": "x"}).status_code == 403
    assert admin.post("/people", data={"name": "ann", "role": "admin"}).status_code == 403
    for number in ("999", "x", "-1", "9" * 30, ""):
        answer = admin.post("/people/revoke", data=form | {"id": number})
        assert answer.status_code == 422 and "there is nobody of the number" in answer.text.lower()
        answer = admin.get("/people/revoke", params={"id": number})
        assert answer.status_code == (422 if number else 303)
    for role in ("read", "tell", "ask"):
        assert house.browser(role).get("/people").status_code == 403
        assert house.client(role).post("/people", data={"name": "eve"}).status_code == 403
    assert admin.get("/people/revoke").headers["location"] == "/people"
