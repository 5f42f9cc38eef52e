"""A served store with an experiment of every kind, and a server without experiments."""

import pytest
from support.sample_experiments import SAMPLES
from support.servers import running

from dowise import Client, Experiment
from dowise.experiment.storage import open_storage


@pytest.fixture(autouse=True)
def no_token(monkeypatch):
    for name in ("DOWISE_TOKEN", "DOWISE_INSECURE"):
        monkeypatch.delenv(name, raising=False)


class Served:
    """A served store, with experiments by URL (`client`) and by file (`local`)."""

    def __init__(self, server, store):
        self.url, self.store = server.address, store
        self.tokens = {role: server.token(role) for role in ("read", "tell", "ask", "admin")}

    def client(self, name=None, role="admin"):
        return Client(self.url, self.tokens[role], name)

    def local(self, name):
        return Experiment.open(self.store, name)


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    store = tmp_path_factory.mktemp("served") / "all.db"
    storage = open_storage(store, create=True)
    for name, make in SAMPLES.items():
        make(storage, name)
    storage.close()
    with running(store) as server:
        yield Served(server, store)


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A server without experiments, to which tests add theirs."""
    store = tmp_path_factory.mktemp("empty") / "new.db"
    with running(store) as server:
        yield Served(server, store)
