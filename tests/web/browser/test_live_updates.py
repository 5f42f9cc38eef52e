"""Pages follow what others do, and say when the server is away."""

import pytest
from support.browser_experiments import WARD, WARD_URL, ask, choose
from support.servers import running

from dowise import Experiment

pytestmark = pytest.mark.slow


def test_updates_arrive_and_keep_the_form(served, open_window):
    page, bo = open_window().enter(), served.client("ask", "Bo")
    page.goto(f"{WARD_URL}/now")
    number = ask(page)
    page.locator(".live[data-state=live]").wait_for()
    page.get_by_text("Correct something").click()
    page.locator("#correct").get_by_role("textbox", name="Reason").fill("half a sen")
    other = bo.post(f"/api{WARD_URL}/ask", json={"context": {"Age": "old"}}).json()["id"]
    page.locator(f"#pending a[href$='decision={other}']").wait_for()
    assert (
        bo.post(f"/api{WARD_URL}/tell/{number}", json={"values": {"Frailty": "fit"}}).status_code
        == 200
    )
    page.locator("#changed", has_text="Someone else has changed this decision").wait_for()
    assert (
        page.locator("#correct").get_by_role("textbox", name="Reason").input_value() == "half a sen"
    )
    assert page.evaluate("document.activeElement.id") == "amend-reason"
    page.get_by_role("link", name="Reload it").click()
    page.locator("dl.facts").get_by_text("fit", exact=True).wait_for()


def test_updates_reach_the_results_and_the_history(served, open_window):
    window, bo = open_window(), served.client("ask", "Bo")
    results = window.enter()
    results.goto(f"{WARD_URL}/known")
    results.locator(".live[data-state=live]").wait_for()
    results.get_by_label("Rounds to come").fill("12")
    before = results.locator("#intro").inner_text()
    history = window.context.new_page()
    history.goto(f"{WARD_URL}/history")
    history.locator(".live[data-state=live]").wait_for()
    history.get_by_text("Why this decision?").first.click()
    history.locator(".explanation table").wait_for()
    asked = bo.post(f"/api{WARD_URL}/ask", json={"context": {"Age": "old"}}).json()["id"]
    history.get_by_text(f"Decision {asked}").first.wait_for()
    assert history.locator(".explanation table").is_visible()
    results.bring_to_front()
    results.wait_for_function(
        "(text) => document.querySelector('#intro').innerText !== text", arg=before
    )
    assert results.get_by_label("Rounds to come").input_value() == "12"


def test_a_page_shows_when_the_server_is_unreachable(open_window, tmp_path):
    store = tmp_path / "ward.db"
    with Experiment.create(store, "ward 7", WARD, "ids", {"samples": 50}, 7) as experiment:
        experiment.ask({"Age": "old"})
    with running(store) as first:
        window = open_window(server=first)
        window.expect("net::ERR_", "console: htmx:")
        page = window.enter()
        page.locator(".live[data-state=live]").wait_for()
    page.locator(".live", has_text="reconnecting").wait_for()
    choose(page.locator("#ask"), "Age", "old")
    page.get_by_role("button", name="Ask for a decision").click()
    page.get_by_text("The server can't be reached").wait_for()
    with running(store, port=first.server.settings.port) as second:
        second.client("tell").post(f"/api{WARD_URL}/tell/1", json={"values": {"Recovery": "1"}})
        page.locator(".live", has_text="live").wait_for()
        page.get_by_text("No decision is waiting for an outcome.").wait_for()
        page.get_by_role("button", name="Ask for a decision").click()
        page.wait_for_url("**decision=2*")
        page.close()
