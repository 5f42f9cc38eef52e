"""A browser and a server, shared by the tests of a module.

The browser runs an event loop, which must end before other tests run one.
"""

import pytest
from support.browser import Window, chromium
from support.browser_experiments import HOSTILE, HOSTILE_NAME, WARD, play
from support.servers import running

from dowise import Experiment


@pytest.fixture(scope="module")
def browser(request):
    with chromium(request) as program:
        yield program


@pytest.fixture(scope="module")
def served(browser, tmp_path_factory):  # noqa: ARG001 (without a browser the tests are skipped)
    """A server with two experiments that have decisions of every kind."""
    store = tmp_path_factory.mktemp("browsed") / "ward.db"
    for name, problem in (("ward 7", WARD), (HOSTILE_NAME, HOSTILE)):
        with Experiment.create(store, name, problem, "ids", {"samples": 50}, 7) as experiment:
            play(experiment)
    with running(store, failures=100) as server:
        yield server


@pytest.fixture
def open_window(browser, served):
    """Opens windows, which must have no problems when the test ends."""
    windows = []

    def open_one(**options):
        windows.append(Window(browser, options.pop("server", served), **options))
        return windows[-1]

    yield open_one
    for window in windows:
        window.close()


@pytest.fixture(scope="module")
def shared(browser, served):
    """A window of an admin for tests that change nothing."""
    window = Window(browser, served)
    window.enter()
    yield window
    window.close()
