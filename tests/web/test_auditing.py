"""An audit over HTTP doubts the store, whatever the server remembers of it."""

import sqlite3

import pytest
from support.servers import running

from dowise import Experiment, load_problem

AT = "/api/experiments/ward"


@pytest.fixture
def ward(tmp_path):
    store = tmp_path / "ward.db"
    with Experiment.create(store, "ward", load_problem("task1"), "ucb", seed=7) as made:
        for _ in range(3):
            made.tell(made.ask().id, {"Z": 0, "Y": 1})
    with running(store) as found:
        yield found


def change(store, number):
    """What event `number` says, rewritten behind the server's back."""
    with sqlite3.connect(store) as database:
        changed = database.execute(
            """UPDATE events SET body = replace(body, '"Y":"1"', '"Y":"0"') WHERE number = ?""",
            (number,),
        )
        assert changed.rowcount == 1
    database.close()


def test_an_audit_finds_what_was_changed_since_the_last_one(ward, tmp_path):
    reader, browser = ward.client("read"), ward.browser("read")
    page = "/experiments/ward/history/audit"
    assert reader.get(f"{AT}/audit").json()["ok"]
    assert "is complete" in browser.get(page).text
    change(tmp_path / "ward.db", 3)
    found = reader.get(f"{AT}/audit").json()
    assert not found["ok"] and found["finding"]["event"] == 3
    assert "The journal has an error" in browser.get(page).text
