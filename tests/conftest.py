"""Configuration of all tests."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support.postgres_server import NO_POSTGRES, running_server

# No deadline: no test asserts a time, since the machine may be busy. `make check` is thorough.
for name, number in (("quick", 25), ("thorough", 100)):
    settings.register_profile(
        name, max_examples=number, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("quick")

_TESTS = Path(__file__).parent
# Tests run in this order: those that compile most kernels; those that compile the rest, which are
# not listed here; those that compile nothing; and those that find all kernels compiled.
_COMPILE_MOST = ("policies/test_base.py", "experiment/test_ask.py")
_COMPILE_NOTHING = ("core", "graph", "identification", "plotting", "problem", "repository")
_LAST = ("bad_inputs", "cli", "client", "web")


@pytest.hookimpl(tryfirst=True)  # before tests are deselected
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order tests so that one of two workers compiles kernels, and the other finds them later.

    The other worker begins with the second half: graphs and problems.
    """
    items.sort(key=_rank)
    for item in items:
        if "certified-ids" in item.name:
            item.add_marker(pytest.mark.slow)  # no other policy needs its kernels


def _rank(item: pytest.Item) -> int:
    if not item.path.is_relative_to(_TESTS):  # an example in a docstring
        return 0
    path = item.path.relative_to(_TESTS)
    if path.as_posix() in _COMPILE_MOST:
        return 0
    return 2 if path.parts[0] in _COMPILE_NOTHING else 3 if path.parts[0] in _LAST else 1


@pytest.fixture(scope="session")
def postgres(request):
    """A running PostgreSQL server, for tests of stores and of tokens."""
    with running_server() as server:
        if server is None:
            request.config.get_terminal_writer().line(f"\n{NO_POSTGRES}", red=True, bold=True)
            pytest.skip(NO_POSTGRES)
        yield server


@pytest.fixture
def database(postgres):
    """The URL of an empty database."""
    return postgres.url(postgres.new_database())


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """A file name or a URL where a store can be created."""
    if request.param == "postgres":
        return request.getfixturevalue("database")
    return str(tmp_path / "ward.db")
