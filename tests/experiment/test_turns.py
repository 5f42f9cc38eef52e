"""Whoever waits for others to write waits a minute, and no longer for those who wait before."""

import sqlite3
import threading
import time

import pytest
from support.experiments import new

from dowise.errors import UnavailableError
from dowise.experiment import journal
from dowise.experiment.storage.sql import SqlStorage

SECONDS = 0.5


@pytest.mark.slow
def test_those_behind_a_store_that_is_held_do_not_wait_in_a_row(tmp_path, monkeypatch):
    experiment = new(storage=tmp_path / "ward.db")
    experiment.ask({"C": 0})  # all that is to be compiled
    storage = experiment._journal.storage
    assert isinstance(storage, SqlStorage)
    monkeypatch.setattr(storage, "_timeout", SECONDS)
    monkeypatch.setattr(journal, "TIMEOUT", SECONDS)
    refused = []

    def ask():
        with pytest.raises(UnavailableError) as found:
            experiment.ask({"C": 0})
        refused.append(str(found.value))

    other = sqlite3.connect(tmp_path / "ward.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    threads = [threading.Thread(target=ask) for _ in range(8)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    other.close()
    assert len(refused) == 8 and all("can't be written" in said for said in refused)
    assert took < 5 * SECONDS  # and not eight times as long
    assert experiment.ask({"C": 0}).id == 2
