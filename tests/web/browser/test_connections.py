"""Many pages in one browser, which has six connections to a server for all of them."""

import pytest
from support.browser import Window, chromium
from support.servers import running

from dowise import Experiment, load_problem

pytestmark = pytest.mark.slow

HIDE = """(is) => {
  Object.defineProperty(document, "hidden", {value: is, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture
def window(request, tmp_path):
    store = tmp_path / "ward.db"
    with Experiment.create(store, "ward", load_problem("task1"), "ucb", seed=7):
        pass
    with chromium(request) as browser, running(store) as served:
        found = Window(browser, served)
        found.enter()
        yield found
        found.close()


def test_hidden_pages_close_their_streams(window):
    pages = [window.page]
    for page in pages:
        page.wait_for_selector(".live[data-state=live]")
        if len(pages) < 9:
            page.evaluate(HIDE, True)
            page.wait_for_timeout(5500 if len(pages) == 6 else 0)
            pages.append(window.context.new_page())
            pages[-1].goto("/experiments/ward/now")
    ward = window.served.registry.experiment("ward")
    ward.ask()
    assert pages[0].locator("#pending .queue li").count() == 0
    pages[0].evaluate(HIDE, False)
    pages[0].wait_for_selector("#pending .queue li")
