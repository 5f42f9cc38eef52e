"""The timeout of waiting threads does not add up."""

import sqlite3
import threading
import time

import pytest
from support.experiments import new_experiment

from dowise.errors import UnavailableError
from dowise.experiment import journal
from dowise.experiment.storage.sql import SqlStorage

TIMEOUT = 0.5


@pytest.mark.slow
def test_threads_behind_a_locked_store_wait_at_the_same_time(tmp_path, monkeypatch):
    experiment = new_experiment(storage=tmp_path / "ward.db")
    experiment.ask({"C": 0})  # compiles the policy
    storage = experiment._journal.storage
    assert isinstance(storage, SqlStorage)
    monkeypatch.setattr(storage, "_timeout", TIMEOUT)
    monkeypatch.setattr(journal, "TIMEOUT", TIMEOUT)
    refused = []

    def ask():
        with pytest.raises(UnavailableError) as caught:
            experiment.ask({"C": 0})
        refused.append(caught.value.code)

    other = sqlite3.connect(tmp_path / "ward.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    threads = [threading.Thread(target=ask) for _ in range(8)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - start
    other.close()
    assert len(refused) == 8 and {*refused} == {"store-busy"}
    assert took < 5 * TIMEOUT  # not eight times as long
    assert experiment.ask({"C": 0}).id == 2
