"""Stores of every kind to test on."""

import pytest

from dowise.experiment.storage import MemoryStorage, open_storage


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
