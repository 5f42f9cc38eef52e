"""A sandbox that the tests of this folder share."""

import pytest

from dowise_web.sandbox import Sandbox, SandboxLimits


@pytest.fixture(scope="session")
def sandbox():
    # The first test may have to compile kernels, on a busy machine.
    with Sandbox(SandboxLimits(begin_seconds=600)) as shared:
        yield shared
