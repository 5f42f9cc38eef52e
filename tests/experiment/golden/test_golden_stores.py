"""Stores as they were written by every schema version so far, read by today's code."""

import importlib.util
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.journal_writers import is_chain

from dowise import Experiment
from dowise.experiment.event import KINDS
from dowise.experiment.journal import restore_state
from dowise.experiment.storage import open_storage
from dowise.experiment.storage.sql import VERSION
from dowise_web.tokens import authenticate, create_token, list_tokens

FOLDER = Path(__file__).parent
STORES = sorted(path.name for path in FOLDER.glob("*.db"))


def made_by():
    spec = importlib.util.spec_from_file_location("make_golden", FOLDER / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    return Path(shutil.copy(FOLDER / request.param, tmp_path / request.param))


def page(store):
    return json.loads((FOLDER / store.name).with_suffix(".json").read_text("utf-8"))


def said(store):
    """What is said of its experiments."""
    return {name: part for name, part in page(store).items() if name.startswith("ward")}


def test_there_is_one_for_each_version():
    assert [f"schema-{version}.db" for version in range(1, VERSION + 1)] == STORES


def test_todays_code_finds_in_it_what_was_there(store):
    found, expected = made_by().contents(store), said(store)
    for name in expected:
        means, wanted = found[name].pop("means"), expected[name].pop("means")
        assert means == [pytest.approx(each, rel=1e-12) for each in wanted]
        cases = zip(found[name]["cases"], expected[name]["cases"], strict=True)
        found[name]["cases"] = [  # of which today's code may say more
            {part: case[part] for part in then} for case, then in cases
        ]
    assert found == expected


def test_its_tokens_are_good_for_what_they_were_good_for(store):
    storage = open_storage(store)
    expected = page(store).get("tokens", [])  # schema 1 had none
    assert list_tokens(storage) == expected
    secrets = page(store).get("secrets", {})
    found = {name: authenticate(storage, secret) for name, secret in secrets.items()}
    good = {name: (token.kind, token.role, token.name) for name, token in found.items() if token}
    if expected:
        assert good == {"token": ("token", "ask", "Zoë"), "session": ("session", "read", "ann")}
    made = create_token(storage, "read", "eve")
    assert made.token.id == len(expected) + 1 and authenticate(storage, made.secret) == made.token
    storage.close()


def test_it_has_the_same_tables_as_a_new_one(store, tmp_path):
    open_storage(store).close()
    open_storage(tmp_path / "new.db", create=True).close()
    assert columns(store) == columns(tmp_path / "new.db")


def columns(store):
    with closing(sqlite3.connect(store)) as raw:
        names = [name for (name,) in raw.execute("SELECT name FROM sqlite_master ORDER BY name")]
        return {name: raw.execute(f"PRAGMA table_info({name})").fetchall() for name in names}


def test_it_has_events_of_all_kinds_some_of_them_erased_and_a_snapshot_that_is_right(store):
    storage = open_storage(store)
    assert storage.experiments() == ("ward 7", "ward 8")
    events = storage.read("ward 7")
    assert {event.kind for event in events} == {*KINDS}
    assert {event.kind for event in events if event.is_erased} == {"asked", "told"}
    assert is_chain(events) and is_chain(storage.read("ward 8"))
    assert len(restore_state(storage, "ward 8").cases) > 100
    storage.close()


@pytest.mark.parametrize("name", ["ward 7", "ward 8"])
def test_it_passes_the_audit_and_goes_on(store, name):
    with Experiment.open(store, name) as experiment:
        audit = experiment.audit(head=said(store)[name]["head"])
        assert audit.ok, audit.finding
        before = experiment.head.number
        asked = experiment.ask({"C": "1"})
        experiment.tell(asked.id, {"Z": "0", "Y": "well"})
        assert experiment.head.number == before + 2 and experiment.audit().ok
        assert len(experiment.explain(1).rows()) == len(experiment.problem.arms)


def test_what_a_request_was_answered_is_answered_again(store):
    with Experiment.open(store, "ward 7") as experiment:
        before = experiment.head
        assert experiment.ask({"C": "1"}, request_id="ünï-☃").id == 1
        assert experiment.head == before


def test_the_script_makes_a_store_like_the_newest(tmp_path):
    make = made_by()
    secrets = make.make(tmp_path / "new.db")
    newest = page(FOLDER / f"schema-{VERSION}.db")
    assert {*secrets} == {*newest["secrets"]}
    assert [one["state"] for one in make.tokens(tmp_path / "new.db")] == [
        one["state"] for one in newest["tokens"]
    ]
    new, newest = make.contents(tmp_path / "new.db"), said(FOLDER / f"schema-{VERSION}.db")
    assert [new[name]["kinds"] for name in new] == [newest[name]["kinds"] for name in newest]
