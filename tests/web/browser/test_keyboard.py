"""All of it goes by keyboard, and the focus is seen."""

import pytest
from support.browser import tab_to
from support.browser_experiments import WARD_URL, count

pytestmark = pytest.mark.slow


def test_ask_and_tell_work_by_keyboard(served, open_window):
    page = open_window().enter("ask")
    page.goto(f"{WARD_URL}/now")
    page.keyboard.press("Tab")
    assert page.get_by_text("Skip to content").is_visible()
    page.keyboard.press("Enter")
    before = count(served)
    tab_to(page, page.locator("#ask").get_by_role("radio", name="young"))
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    assert page.locator("#ask").get_by_role("radio", name="old").is_checked()
    tab_to(page, page.get_by_text("Restrict the choice"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("checkbox", name="Dose to high"))
    page.keyboard.press("Space")
    tab_to(page, page.get_by_role("button", name="Ask for a decision"))
    page.keyboard.press("Enter")
    page.wait_for_url("**said=asked")
    case = served.registry.experiment("ward 7").case(before + 1)
    assert case.context == {"Age": "old"} and case.arm.get("Dose") != "high"
    page.wait_for_function("() => document.activeElement.id === 'decision-title'")

    tab_to(page, page.locator("#tell").get_by_role("radio", name="not known yet").last)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.get_by_text("Saved.").first.wait_for()
    page.wait_for_function("() => document.activeElement.id === 'decision-title'")
    assert served.registry.experiment("ward 7").case(before + 1).values["Recovery"] == "1"
    assert page.locator("#announcements").inner_text() == "Saved."


@pytest.mark.parametrize(
    ("place", "last"),
    [
        ("/new?example=healthcare", "Rehearse"),
        (f"{WARD_URL}/known", "Sign out"),
        (f"{WARD_URL}/history?kind=amended", "Sign out"),
    ],
)
def test_the_focus_is_visible_along_the_page(open_window, place, last):
    page = open_window().enter()
    page.goto(place)
    page.locator("svg.graph, .uplot, .journal").first.wait_for()
    tab_to(page, page.get_by_role("button", name=last))


def test_the_graph_works_by_keyboard(open_window):
    page = open_window().enter("read")
    page.goto(f"{WARD_URL}/graph")
    page.locator("#variable-0").focus()
    for _ in range(4):
        if "Recovery" in page.evaluate("document.activeElement.textContent"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator("#panel-title", has_text="Recovery").wait_for()
    page.wait_for_function("() => document.activeElement.id === 'panel-title'")
    assert page.locator("#panel table").first.is_visible()
    page.get_by_role("link", name="do(Dose=low)").click()
    page.locator("#panel-title", has_text="do(Dose=low)").wait_for()
    assert "P(Recovery" in page.locator("#panel .formula").inner_text()
    page.go_back()
    page.locator("#panel-title", has_text="Recovery").wait_for()
