"""A form that is sent twice, by whatever way, counts once."""

import pytest
from support.browser_experiments import WARD_URL, choose, count

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("script", [True, False], ids=["with scripts", "without scripts"])
def test_double_click_back_and_reload_make_one_decision(served, open_window, script):
    window = open_window(script=script)
    page = window.enter() if script else window.sign_in()
    page.goto(f"{WARD_URL}/known")
    page.goto(f"{WARD_URL}/now")
    before = count(served)
    choose(page.locator("#ask"), "Age", "young")
    page.get_by_role("button", name="Ask for a decision").dblclick()
    page.wait_for_url("**said=asked")
    assert count(served) == before + 1
    page.reload()
    page.locator("#decision-title").wait_for()
    page.go_back()
    page.get_by_text("What to do next", exact=True).wait_for()
    page.go_back()
    page.locator("#verdict").wait_for()
    page.go_forward()
    page.get_by_text("What to do next", exact=True).wait_for()
    assert count(served) == before + 1


def test_concurrent_submits_make_one_decision(served, open_window):
    page = open_window().enter("ask")
    page.goto(f"{WARD_URL}/now")
    before = count(served)
    choose(page.locator("#ask"), "Age", "old")
    places = page.evaluate("""async () => {
      const form = document.getElementById("ask");
      const body = new URLSearchParams(new FormData(form));
      const sent = () => fetch(form.action, { method: "POST", body }).then((answer) => answer.url);
      return Promise.all([sent(), sent()]);
    }""")
    assert len({*places}) == 1 and places[0].endswith(f"decision={before + 1}&said=asked")
    assert count(served) == before + 1
