"""What people do from end to end, in a real browser at a real server."""

import json
import re

import pytest
from support.browser import accessibility_problems, open_details
from support.browser_experiments import WARD_URL, ask, choose, count

pytestmark = pytest.mark.slow

WRITTEN = """name = "clinic"
graph = "Age -> Dose -> Recovery; Age -> Recovery"
reward = "Recovery"
context = ["Age"]

[domains]
Age = ["young", "old"]
Dose = ["none", "low", "high"]
"""


def test_a_link_signs_in_once(served, open_window):
    window = open_window()
    window.expect("status of 403")
    link = served.server.link("admin", "Ann")
    window.page.goto(link)
    window.page.wait_for_url(f"{served.address}/")
    assert window.page.get_by_role("link", name="New experiment").first.is_visible()
    (cookie,) = window.context.cookies()
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    assert window.page.evaluate("document.cookie") == ""
    window.context.clear_cookies()
    window.page.goto(link)
    window.page.get_by_text("This link was used before").wait_for()
    window.page.goto("/enter")
    window.page.get_by_text("link is incomplete").wait_for()
    window.page.goto(f"{WARD_URL}/now")
    assert window.page.url.partition("?")[0].endswith("/login")


@pytest.mark.parametrize("script", [True, False], ids=["with scripts", "without scripts"])
def test_outcomes_are_recorded_corrected_and_withdrawn(served, open_window, script):
    window = open_window(script=script)
    page = window.enter() if script else window.sign_in()
    page.goto(f"{WARD_URL}/now")
    number = ask(page)
    ward = served.registry.experiment("ward 7")
    assert (
        page.locator("#decision-title").inner_text().lower()
        == ward.case(number).arm.in_words().lower()
    )

    choose(page.locator("#tell"), "Frailty", "frail")
    page.get_by_role("button", name="Save the outcome").click()
    page.get_by_text("Saved.").first.wait_for()
    assert ward.case(number).values["Frailty"] == "frail"
    assert ward.case(number).status == "pending"

    # Later, from the list of what is pending.
    page.goto(f"{WARD_URL}/now")
    page.locator(f"#pending a[href$='decision={number}']").click()
    page.wait_for_url(f"**decision={number}")
    choose(page.locator("#tell"), "Recovery", "1")
    page.get_by_role("button", name="Save the outcome").click()
    page.get_by_text("outcome recorded").wait_for()
    assert ward.case(number).values["Recovery"] == "1"

    page.get_by_text("Correct something").click()
    choose(page.locator("#correct"), "Recovery", "0")
    page.locator("#correct").get_by_role("textbox", name="Reason").fill("the wrong line")
    page.get_by_role("button", name="Correct", exact=True).click()
    page.get_by_text("Corrected.").first.wait_for()
    assert ward.case(number).values["Recovery"] == "0"
    assert page.locator("dl s").inner_text() == "1"

    other = ask(page, "old")
    page.get_by_text("There will be no outcome").click()
    page.locator("#withdraw").get_by_role("textbox", name="Reason").fill("moved away")
    page.get_by_role("button", name=f"Withdraw decision {other}").click()
    page.get_by_text("Withdrawn.").first.wait_for()
    assert ward.case(other).status == "withdrawn"

    page.get_by_role("link", name="What we know").click()
    leader = page.locator("tr.leads .code").first
    assert leader.inner_text().startswith("do(")
    page.get_by_label("A loss that does not matter").fill("0.001")
    page.get_by_role("button", name="Should we stop?").click()
    page.wait_for_url("**tolerance=0.001*")
    page.locator(".verdict-text").wait_for()


def test_the_history_can_be_searched_exported_and_audited(served, open_window):
    window = open_window()
    page = window.enter()
    page.goto(f"{WARD_URL}/history")
    page.get_by_label("Search").fill("slip of the pen")
    events = page.locator(".journal > li[id]")
    events.nth(1).wait_for(state="detached")
    assert "slip of the pen" in events.inner_text()
    assert "search=slip" in page.url
    page.get_by_label("Search").fill("")
    page.get_by_label("Kind of event").select_option("asked")
    page.wait_for_url("**kind=asked*")
    page.get_by_text("Why this decision?").first.click()
    page.locator(".explanation table").wait_for()
    explained = served.registry.experiment("ward 7").explain(count(served)).sentences()
    assert explained[1] in page.locator(".explanation").first.inner_text()
    assert accessibility_problems(page) == []

    for kind, reads in (("CSV", lambda text: text.splitlines()[1:]), ("JSON", json.loads)):
        with page.expect_download() as waiting:
            page.get_by_role("link", name=kind).click()
        text = waiting.value.path().read_text("utf-8")
        assert len(reads(text)) > 0 and "Recovery" in text
        assert waiting.value.suggested_filename.endswith(kind.lower())

    page.get_by_role("link", name="Check the record").click()
    page.get_by_text("The record is complete").wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login")
    page.goto(f"{WARD_URL}/history")
    assert page.url.partition("?")[0].endswith("/login")


def test_a_decision_links_to_its_explanation(served, open_window):
    page = open_window().enter()
    page.goto(f"{WARD_URL}/now?decision=2")
    page.get_by_role("link", name="Why?").click()
    sentence = served.registry.experiment("ward 7").explain(2).sentences()[2]
    page.get_by_text(sentence).wait_for()


def test_an_experiment_is_rehearsed_and_started(served, open_window):
    window = open_window()
    page = window.enter()
    page.get_by_role("link", name="New experiment").first.click()
    text, meaning = page.locator("#problem"), page.locator("#preview")
    text.fill(WRITTEN.replace('"Recovery"', "Recovery"))
    meaning.get_by_text("There is an error in line 3").wait_for()
    assert meaning.locator("mark").inner_text() == "reward = Recovery"
    assert text.get_attribute("aria-invalid") == "true"
    assert accessibility_problems(page) == []
    text.fill(WRITTEN)
    meaning.locator("svg.graph").wait_for()
    meaning.get_by_text("do(Dose=high)", exact=True).wait_for()
    assert text.get_attribute("aria-invalid") is None
    page.get_by_text("Choose another").click()
    page.get_by_role("radio", name=re.compile("^ucb ")).check()
    for field, number in (("Rounds", "5"), ("Worlds", "2")):
        page.get_by_label(field, exact=True).fill(number)
    page.keyboard.press("Enter")  # begins nothing
    page.get_by_role("button", name="Rehearse").click()
    page.locator("#rehearsal .uplot").first.wait_for()
    open_details(page)
    assert accessibility_problems(page) == []
    page.get_by_role("button", name="Start the experiment").click()
    page.wait_for_url("**/experiments/clinic/now")
    page.get_by_text("What to do next", exact=True).wait_for()
    assert served.registry.experiment("clinic").policy == "ucb"

    page.goto("/new")
    page.locator("#problem").fill(WRITTEN)
    meaning.locator("svg.graph").wait_for()
    window.expect("status of 409", "console: htmx:(sendAbort|afterRequest)")  # of a preview
    page.get_by_role("button", name="Start the experiment").dblclick()
    page.get_by_role("alert").get_by_text("clinic").wait_for()
    meaning.locator("svg.graph").wait_for()
    assert page.locator("#problem").input_value() == WRITTEN
    assert accessibility_problems(page) == []


def test_an_experiment_is_started_without_scripts(served, open_window):
    page = open_window(script=False).sign_in()
    page.goto("/new")
    page.locator("#problem").fill(WRITTEN)
    page.get_by_role("button", name="Show now").click()
    page.locator("#preview svg.graph").wait_for()
    assert page.locator("#problem").input_value() == WRITTEN
    page.get_by_label("Name of the experiment").fill("plain")
    page.get_by_role("button", name="Start the experiment").click()
    page.wait_for_url("**/experiments/plain/now")
    assert "plain" in served.registry.names()


@pytest.mark.parametrize("script", [True, False], ids=["with scripts", "without scripts"])
def test_an_invitation_works_until_it_is_revoked(open_window, script):
    window, other = open_window(script=script), open_window()
    page = window.enter() if script else window.sign_in()
    page.get_by_role("link", name="People").click()
    page.get_by_label("Name").fill("Dr. Zoë")
    page.get_by_role("button", name="Invite").click()
    page.get_by_text("Copy it now: it is shown only once.").wait_for()
    if script:
        assert accessibility_problems(page) == []
    other.page.goto(page.locator(".secret").inner_text())
    other.page.wait_for_url(lambda url: "/enter" not in url)
    assert "Dr. Zoë (role read)" in other.page.locator(".page-footer").inner_text()
    assert other.page.get_by_role("link", name="People").count() == 0
    page.goto("/people")
    page.get_by_role("link", name="Revoke link").and_(page.get_by_label("Dr. Zoë")).first.click()
    if script:
        assert accessibility_problems(page) == []
    page.get_by_role("button", name="Revoke").click()
    page.get_by_text("Revoked: Dr. Zoë’s link").wait_for()
    other.page.goto(f"{WARD_URL}/now")
    assert other.page.url.partition("?")[0].endswith("/login")
