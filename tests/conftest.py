"""What all tests share."""

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no fault of the code: no test asserts a time. `make check` is thorough.
for name, number in (("quick", 25), ("thorough", 100)):
    settings.register_profile(
        name, max_examples=number, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("quick")

# Together these compile most of the kernels.
_COMPILE_MOST = ("policies/test_records.py", "experiment/test_experiment.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What compiles most comes first: one of two workers does it, and keeps it for both.

    Meanwhile the other, which begins with the second half of the tests, is busy with graphs.
    """
    items.sort(key=lambda item: not str(item.path).endswith(_COMPILE_MOST))
