"""What all tests share."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support.postgres_server import LACKING, running_server

# A busy machine is no fault of the code: no test asserts a time. `make check` is thorough.
for name, number in (("quick", 25), ("thorough", 100)):
    settings.register_profile(
        name, max_examples=number, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("quick")

_HERE = Path(__file__).parent
# In turn: what compiles most of the kernels; then all that is not named here, which compiles the
# rest; what compiles none; and what finds them compiled by then.
_COMPILE_MOST = ("policies/test_records.py", "experiment/test_experiment.py")
_COMPILE_NONE = ("graph", "identification", "picture", "problem", "test_house.py")
_LAST = ("bad_inputs", "cli", "client", "web")


@pytest.hookimpl(tryfirst=True)  # before those are left out that are not asked for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What compiles kernels comes first: one of two workers does it, and keeps them for both.

    The other begins with the second half, with graphs and problems.
    """
    items.sort(key=_turn)
    for item in items:
        if "certified-ids" in item.name:
            item.add_marker(pytest.mark.slow)  # no other policy needs its kernels


def _turn(item: pytest.Item) -> int:
    if not item.path.is_relative_to(_HERE):  # an example in a docstring
        return 0
    place = item.path.relative_to(_HERE)
    if place.as_posix() in _COMPILE_MOST:
        return 0
    return 2 if place.parts[0] in _COMPILE_NONE else 3 if place.parts[0] in _LAST else 1


@pytest.fixture(scope="session")
def postgres(request):
    """A running PostgreSQL server."""
    with running_server() as server:
        if server is None:
            request.config.get_terminal_writer().line(f"\n{LACKING}", red=True, bold=True)
            pytest.skip(LACKING)
        yield server


@pytest.fixture
def database(postgres):
    """The URL of an empty database."""
    return postgres.url(postgres.new_database())


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """A file name or a URL where a store can be made."""
    if request.param == "postgres":
        return request.getfixturevalue("database")
    return str(tmp_path / "ward.db")
