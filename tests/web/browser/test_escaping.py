"""Names that would run are shown as text."""

from urllib.parse import quote

import pytest
from support.browser import accessibility_problems, open_details
from support.browser_experiments import AGE, DOSE, HIDDEN, HOSTILE, HOSTILE_NAME, LABELS, OUTCOME

from dowise_web.pages.rendering import page_url

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("place", "sign", "shown"),
    [
        ("now", "#ask", [AGE, "<svg/onload=hacked=1>", "老"]),
        ("now?decision=10", "#tell", [AGE, HIDDEN, OUTCOME]),
        ("now?decision=1", "#correct", [AGE, HIDDEN, OUTCOME]),
        ("known", ".uplot", [AGE, OUTCOME, *LABELS[2:]]),
        ("graph", "svg.graph", [AGE, DOSE, HIDDEN, OUTCOME]),
        ("graph?variable={dose}", "#panel details", [DOSE, *LABELS]),
        ("graph?arm={arm}", "#panel .formula", [DOSE, LABELS[2]]),
        ("history", ".journal", [AGE, DOSE, HIDDEN, OUTCOME, "a slip of the pen <b>"]),
        ("history/explain/3", "table", [AGE, DOSE, *LABELS[2:]]),
    ],
)
def test_hostile_names_are_shown_as_text(shared, place, sign, shown):
    page = shared.page
    address = page_url(
        HOSTILE_NAME, place.format(dose=quote(DOSE), arm=quote(str(HOSTILE.arms[3])))
    )
    page.goto(address)
    page.locator(sign).first.wait_for()
    open_details(page)
    page.locator("a", has_text="All experiments").hover()
    words = page.evaluate("document.body.textContent")
    for text in (HOSTILE_NAME, *shown):
        assert text in words
    assert page.locator("main img, main i, main b, main script").count() == 0
    assert page.evaluate("window.hacked") is None
    assert accessibility_problems(page) == []
    assert shared.unexpected_problems() == []
