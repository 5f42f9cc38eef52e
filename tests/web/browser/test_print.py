"""Pages as they are printed."""

import pytest
from support.browser import WIDE
from support.browser_experiments import WARD_URL

pytestmark = pytest.mark.slow

A4 = 658  # pixels between the margins


@pytest.mark.parametrize(
    ("place", "sign", "printed"),
    [
        ("now?decision=1", "#decision-title", "dl.facts"),
        ("known", ".uplot", "table.arms"),
        ("graph", "svg.graph", "svg.graph"),
        ("history", ".journal", ".journal"),
    ],
)
def test_printed_pages_are_dark_on_white_without_forms(shared, place, sign, printed):
    page = shared.page
    page.goto(f"{WARD_URL}/{place}")
    page.locator(sign).first.wait_for()
    page.emulate_media(media="print", color_scheme="dark")
    try:
        assert page.locator(printed).is_visible()
        assert not page.get_by_role("link", name="All experiments").is_visible()
        assert page.locator("form:visible, button:visible, #ask-title:visible").count() == 0
        ink, paper = page.evaluate(
            "[document.body, document.documentElement].map((one) => getComputedStyle(one))"
            ".map((style, i) => i ? style.backgroundColor : style.color)"
        )
        assert ink == "rgb(27, 33, 38)" and paper == "rgba(0, 0, 0, 0)"
        assert page.pdf().startswith(b"%PDF-")
    finally:
        page.emulate_media(media="screen", color_scheme="light")


def test_the_table_of_arms_fits_on_a4(shared):
    page = shared.page
    page.goto(f"{WARD_URL}/known")
    page.locator(".uplot").first.wait_for()
    page.emulate_media(media="print")
    page.set_viewport_size({"width": A4, "height": 930})
    try:
        row = page.locator("table.arms tbody tr").first
        assert row.evaluate("(one) => getComputedStyle(one).display") == "table-row"
        assert page.locator("table.arms thead th").last.bounding_box()["width"] > 10
        assert page.evaluate("document.documentElement.scrollWidth") <= A4
    finally:
        page.set_viewport_size({"width": WIDE, "height": 900})
        page.emulate_media(media="screen")
