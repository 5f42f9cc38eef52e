"""The page People: who may come in, somebody more, and the end of one."""

import re
from html import unescape

import httpx2
import pytest
from page_forms import Page

from dowise.service import tokens


@pytest.fixture
def house(ward):
    """The server, which all of these share."""
    return ward


def see(browser):
    return Page(browser.get("/people"))


def send(browser, address="/people", **fields):
    form = see(browser).form("/people") | fields
    return Page(browser.post(address, data=form))


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
        answer = admin.post("/people/revoke", data=see(admin).form("/revoke") | {"id": made["id"]})
        assert answer.headers["location"] == "/people?said=revoked"
        assert zoe.get("/experiments/ward%207/now").status_code == 303  # to the door
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
        ({"kind": "token", "days": "many"}, "Days that it lasts: 'many' is no number."),
        ({"kind": "token", "days": "-1"}, "must be above 0"),
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
    own = re.search(r'class="chosen".*?name="id" value="(\d+)"', page.html, re.DOTALL)[1]
    admin.post("/people/revoke", data=page.form("/revoke") | {"id": own})
    assert admin.get("/people").status_code == 303


def test_forms_of_other_sessions_and_numbers_of_nobody_do_nothing(house):
    admin = house.browser()
    form = see(admin).form("/revoke")
    assert admin.post("/people/revoke", data=form | {"csrf": "x"}).status_code == 403
    assert admin.post("/people", data={"name": "ann", "role": "admin"}).status_code == 403
    for number in ("999", "x", "-1", "9" * 30, ""):
        answer = admin.post("/people/revoke", data=form | {"id": number})
        assert answer.status_code == 422 and "there is nobody of the number" in answer.text.lower()
    for role in ("read", "tell", "ask"):
        assert house.browser(role).get("/people").status_code == 403
        assert house.client(role).post("/people", data={"name": "eve"}).status_code == 403
    assert admin.get("/people/revoke").headers["location"] == "/people"
