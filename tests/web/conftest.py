"""Servers for tests, each on a store of its own."""

import pytest
from support.servers import running

from dowise import Experiment, load_problem


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """A server with the experiment `ward 7` (task2) in its store."""
    store = tmp_path_factory.mktemp("served") / "ward.db"
    with Experiment.create(store, "ward 7", load_problem("task2"), "ids", {"samples": 50}, 7):
        pass
    # Each browser that a test opens is a try to sign in, of which few may come at once.
    with running(store, failures=1000.0) as found:
        yield found
