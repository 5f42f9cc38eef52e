"""Nothing that axe or a narrow screen would find fault with; mistakes are told where they are."""

import pytest
from support.browser import accessibility_problems, open_details
from support.browser_experiments import WARD_URL, choose

pytestmark = pytest.mark.slow


PLACES = {
    "the experiments": ("/?all", ".experiment-list"),
    "the people": ("/people", "#invite"),
    "now": (f"{WARD_URL}/now", "#ask"),
    "a pending decision": (f"{WARD_URL}/now?decision=10", "#tell"),
    "a corrected decision": (f"{WARD_URL}/now?decision=1", "#correct"),
    "what we know": (f"{WARD_URL}/known", ".uplot"),
    "the advice": (f"{WARD_URL}/known?tolerance=0.01&arms=all&context.Age=%3Dold", ".uplot"),
    "a wrong number": (f"{WARD_URL}/known?tolerance=-1", ".note.bad"),
    "the graph": (f"{WARD_URL}/graph", "svg.graph"),
    "a variable": (f"{WARD_URL}/graph?variable=Recovery", "#panel table"),
    "an arm": (f"{WARD_URL}/graph?arm=do(Dose%3Dlow)", "#panel .formula"),
    "the history": (f"{WARD_URL}/history?kind=asked", ".journal"),
    "an explanation": (f"{WARD_URL}/history/explain/3", "table"),
    "an audit": (f"{WARD_URL}/history/audit", ".note"),
}


@pytest.mark.parametrize(("place", "sign"), PLACES.values(), ids=PLACES)
def test_pages_are_accessible(shared, place, sign):
    page = shared.page
    page.goto(place)
    page.locator(sign).first.wait_for()
    open_details(page)
    assert accessibility_problems(page) == []
    assert shared.unexpected_problems() == []


def test_login_and_error_pages_are_accessible(open_window):
    window = open_window()
    window.expect("status of 403", "status of 404")
    page = window.page
    page.goto("/enter#dowise_nobody")
    page.get_by_text("This link was used before").wait_for()
    assert accessibility_problems(page) == []
    page.goto("/login")
    page.get_by_label("Token").fill("dowise_nobody")
    page.keyboard.press("Enter")
    page.get_by_text("This token is unknown or has expired").wait_for()
    assert accessibility_problems(page) == []
    window.sign_in("read")
    page.goto("/experiments/nowhere/now")
    assert accessibility_problems(page) == []
    page.goto(f"{WARD_URL}/now?decision=10")
    assert "Your role is read" in page.locator("main").inner_text()
    assert accessibility_problems(page) == []


@pytest.mark.parametrize("script", [True, False], ids=["with scripts", "without scripts"])
def test_errors_are_shown_at_their_form_with_focus(served, open_window, script):
    window = open_window(script=script)
    window.expect("status of 422")
    page = window.enter() if script else window.sign_in()
    before = served.registry.experiment("ward 7").head

    def refused(form, words):
        note = page.locator(form).get_by_role("alert")
        note.get_by_text(words).wait_for()
        if script:
            page.wait_for_function("() => document.activeElement.getAttribute('role') === 'alert'")
            assert note.evaluate("(one) => one === document.activeElement")
            assert accessibility_problems(page) == []

    page.goto(f"{WARD_URL}/now?decision=10")
    choose(page.locator("#ask"), "Age", "old")
    page.get_by_text("Restrict the choice").click()
    for box in page.locator("#ask input[name=forbid]").all():
        box.check()
    page.get_by_role("button", name="Ask for a decision").click()
    refused("#ask", "arm")
    assert page.locator("#ask input[name=forbid]").first.is_checked()
    assert page.locator("#ask").get_by_role("radio", name="old").is_checked()

    page.goto(f"{WARD_URL}/now?decision=10")
    page.get_by_role("button", name="Save the outcome").click()
    refused("#tell", "Choose at least one value")

    page.get_by_text("Correct something").click()
    page.locator("#correct").get_by_role("textbox", name="Reason").fill("nothing <changed>")
    page.get_by_role("button", name="Correct", exact=True).click()
    refused("#correct", "Change at least one value to correct it")
    assert (
        page.locator("#correct").get_by_role("textbox", name="Reason").input_value()
        == "nothing <changed>"
    )

    page.get_by_text("There will be no outcome").click()
    page.locator("#withdraw").get_by_role("textbox", name="Reason").fill(" ")
    page.get_by_role("button", name="Withdraw decision 10").click()
    refused("#withdraw", "Enter a reason.")
    assert served.registry.experiment("ward 7").head == before
