"""Stores that were written with each schema version are read by the current code."""

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
from dowise.experiment.snapshots import restore_state
from dowise.experiment.storage import open_storage
from dowise.experiment.storage.sql import VERSION
from dowise_web.tokens import authenticate, create_token, list_tokens

FOLDER = Path(__file__).parent
STORES = sorted(path.name for path in FOLDER.glob("*.db"))


def load_make():
    spec = importlib.util.spec_from_file_location("make_golden", FOLDER / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    return Path(shutil.copy(FOLDER / request.param, tmp_path / request.param))


def recorded_contents(store):
    return json.loads((FOLDER / store.name).with_suffix(".json").read_text("utf-8"))


def recorded_experiments(store):
    return {
        name: part for name, part in recorded_contents(store).items() if name.startswith("ward")
    }


def test_there_is_a_store_for_each_version():
    assert [f"schema-{version}.db" for version in range(1, VERSION + 1)] == STORES


def test_the_contents_are_as_recorded(store):
    actual, expected = load_make().contents(store), recorded_experiments(store)
    for name in expected:
        means, recorded = actual[name].pop("means"), expected[name].pop("means")
        assert means == [pytest.approx(rewards, rel=1e-12) for rewards in recorded]
        cases = zip(actual[name]["cases"], expected[name]["cases"], strict=True)
        actual[name]["cases"] = [  # current documents may have more fields
            {key: case[key] for key in recorded} for case, recorded in cases
        ]
    assert actual == expected


def test_the_tokens_have_the_recorded_roles(store):
    storage = open_storage(store)
    expected = recorded_contents(store).get("tokens", [])  # schema 1 had none
    assert list_tokens(storage) == expected
    secrets = recorded_contents(store).get("secrets", {})
    authenticated = {name: authenticate(storage, secret) for name, secret in secrets.items()}
    valid = {
        name: (token.kind, token.role, token.name) for name, token in authenticated.items() if token
    }
    if expected:
        assert valid == {"token": ("token", "ask", "Zoë"), "session": ("session", "read", "ann")}
    new = create_token(storage, "read", "eve")
    assert new.token.id == len(expected) + 1 and authenticate(storage, new.secret) == new.token
    storage.close()


def test_the_tables_are_migrated_to_those_of_a_new_store(store, tmp_path):
    open_storage(store).close()
    open_storage(tmp_path / "new.db", create=True).close()
    assert columns(store) == columns(tmp_path / "new.db")


def columns(store):
    with closing(sqlite3.connect(store)) as raw:
        names = [name for (name,) in raw.execute("SELECT name FROM sqlite_master ORDER BY name")]
        return {name: raw.execute(f"PRAGMA table_info({name})").fetchall() for name in names}


def test_the_stores_cover_all_kinds_of_events_and_snapshots(store):
    storage = open_storage(store)
    assert storage.experiments() == ("ward 7", "ward 8")
    events = storage.read("ward 7")
    assert {event.kind for event in events} == {*KINDS}
    assert {event.kind for event in events if event.is_erased} == {"asked", "told"}
    assert is_chain(events) and is_chain(storage.read("ward 8"))
    assert storage.snapshot("ward 8") is not None
    assert restore_state(storage, "ward 8") is None  # it does not tell the order of arrival
    storage.close()


@pytest.mark.parametrize("name", ["ward 7", "ward 8"])
def test_experiments_pass_the_audit_and_continue(store, name):
    with Experiment.open(store, name) as experiment:
        audit = experiment.audit(head=recorded_experiments(store)[name]["head"])
        assert audit.ok, audit.finding
        before = experiment.head.number
        asked = experiment.ask({"C": "1"})
        experiment.tell(asked.id, {"Z": "0", "Y": "well"})
        assert experiment.head.number == before + 2 and experiment.audit().ok
        assert len(experiment.explain(1).rows()) == len(experiment.problem.arms)


def test_an_earlier_request_returns_the_same_decision(store):
    with Experiment.open(store, "ward 7") as experiment:
        before = experiment.head
        assert experiment.ask({"C": "1"}, request_id="ünï-☃").id == 1
        assert experiment.head == before


def test_the_script_makes_a_store_like_the_newest_one(tmp_path):
    make = load_make()
    secrets = make.make(tmp_path / "new.db")
    newest = recorded_contents(FOLDER / f"schema-{VERSION}.db")
    assert {*secrets} == {*newest["secrets"]}
    assert [token["state"] for token in make.tokens(tmp_path / "new.db")] == [
        token["state"] for token in newest["tokens"]
    ]
    new, newest = (
        make.contents(tmp_path / "new.db"),
        recorded_experiments(FOLDER / f"schema-{VERSION}.db"),
    )
    assert [new[name]["kinds"] for name in new] == [newest[name]["kinds"] for name in newest]
