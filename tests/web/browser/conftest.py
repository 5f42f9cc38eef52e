"""A browser and a server for each file of what people do: the browser runs a loop, which must end
before tests that run one of their own.
"""

import pytest
from support.browser import Window, chromium
from support.browser_experiments import HOSTILE, HOSTILE_NAME, WARD, play
from support.servers import running

from dowise import Experiment


@pytest.fixture(scope="module")
def browser(request):
    with chromium(request) as found:
        yield found


@pytest.fixture(scope="module")
def served(browser, tmp_path_factory):  # noqa: ARG001 (without a browser nothing is to be served)
    """A server with two experiments, in which everything happened that can happen."""
    store = tmp_path_factory.mktemp("browsed") / "ward.db"
    for name, problem in (("ward 7", WARD), (HOSTILE_NAME, HOSTILE)):
        with Experiment.create(store, name, problem, "ids", {"samples": 50}, 7) as made:
            play(made)
    # More people come in from here within a minute than guesses would be let through.
    with running(store, failures=100) as found:
        yield found


@pytest.fixture
def open_window(browser, served):
    """Makes windows, and sees to it that nothing was wrong in any."""
    opened = []

    def opens(**options):
        opened.append(Window(browser, options.pop("at", served), **options))
        return opened[-1]

    yield opens
    for window in opened:
        window.close()


@pytest.fixture(scope="module")
def shared(browser, served):
    """One window for all that is only looked at."""
    window = Window(browser, served)
    window.enter()
    yield window
    window.close()
