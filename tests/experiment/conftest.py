"""Stores of every kind to test on."""

import pytest
from support.postgres_server import LACKING, running_server

from dowise.experiment.storage import MemoryStorage, open_storage


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


@pytest.fixture
def store(place):
    """A store in tables, empty."""
    storage = open_storage(place, create=True)
    yield storage
    storage.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def any_store(request, tmp_path):
    """A store of any kind, empty."""
    if request.param == "memory":
        storage = MemoryStorage()
    elif request.param == "sqlite":
        storage = open_storage(tmp_path / "ward.db", create=True)
    else:
        storage = open_storage(request.getfixturevalue("database"), create=True)
    yield storage
    storage.close()
