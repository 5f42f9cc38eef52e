"""Many pages in one browser, which has six connections to a server for all of them."""

import pytest
from support.browser import Window
from support.servers import running

from dowise import Experiment, load_problem

pytestmark = pytest.mark.slow

SET_HIDDEN = """(isHidden) => {
  Object.defineProperty(document, "hidden", {value: isHidden, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""
MAX_CONNECTIONS = 6
LEAVE = 5500  # milliseconds after which a hidden page has closed its stream


@pytest.fixture
def window(browser, tmp_path):
    store = tmp_path / "ward.db"
    with Experiment.create(store, "ward", load_problem("task1"), "ucb", seed=7):
        pass
    with running(store) as server:
        window = Window(browser, server)
        window.enter()
        yield window
        window.close()


def test_hidden_pages_close_their_streams(window):
    pages = [window.page]
    while True:
        pages[-1].wait_for_selector(".live[data-state=live]")
        if len(pages) > MAX_CONNECTIONS:
            break
        pages[-1].evaluate(SET_HIDDEN, True)
        if len(pages) == MAX_CONNECTIONS:
            pages[-1].wait_for_timeout(LEAVE)
        pages.append(window.context.new_page())
        pages[-1].goto("/experiments/ward/now")
    window.served.registry.experiment("ward").ask()
    assert pages[0].locator("#pending .queue li").count() == 0
    pages[0].evaluate(SET_HIDDEN, False)
    pages[0].wait_for_selector("#pending .queue li")
