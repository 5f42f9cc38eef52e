"""A sandbox that the tests of this folder share."""

import pytest

from dowise_web.sandbox import Limits, Sandbox


@pytest.fixture(scope="session")
def sandbox():
    # The first of all tests may have to compile kernels, on a machine that does other things too.
    with Sandbox(Limits(begin_seconds=600)) as shared:
        yield shared
