"""A server for the tests of each module."""

import pytest
from support.servers import running

from dowise import Experiment, load_problem


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """A server with the experiment `ward 7` (task2) in its store."""
    store = tmp_path_factory.mktemp("served") / "ward.db"
    with Experiment.create(store, "ward 7", load_problem("task2"), "ids", {"samples": 50}, 7):
        pass
    # Every browser that a test opens signs in, and attempts to sign in are limited.
    with running(store, failures=1000.0) as server:
        yield server
