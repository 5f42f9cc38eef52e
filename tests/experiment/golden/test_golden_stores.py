"""Stores as they were written by every schema version so far, read by today's code."""

import importlib.util
import shutil
from pathlib import Path

import pytest
from journals import append, is_chain

from dowise.experiment.event import KINDS, Head
from dowise.experiment.storage import Snapshot, open_storage
from dowise.experiment.storage.schema import VERSION

FOLDER = Path(__file__).parent


def made_by():
    spec = importlib.util.spec_from_file_location("make_golden", FOLDER / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def copy(tmp_path):
    def made(name):
        return Path(shutil.copy(FOLDER / name, tmp_path / name))

    return made


def test_there_is_one_for_each_version():
    names = sorted(path.name for path in FOLDER.glob("*.db"))
    assert names == [f"schema-{version}.db" for version in range(1, VERSION + 1)]


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.db")))
def test_todays_code_reads_it(copy, name):
    make = made_by()
    storage = open_storage(copy(name))
    assert storage.experiments() == ("ward 7", "ward 8")
    events = storage.read("ward 7")
    assert tuple(event.kind for event in events) == KINDS
    assert is_chain(events) and is_chain(storage.read("ward 8"))
    assert tuple(event.number for event in events if event.is_erased) == make.ERASED
    for event in events:
        assert event.is_erased or event.says == make.BODIES[event.kind]
    assert {event.actor for event in events} == {"Zoë"}
    last = storage.last("ward 8")
    assert storage.snapshot("ward 8") == Snapshot("ward 8", *last.head, b"\x00\x01counts")
    assert isinstance(last.head, Head)
    assert append(storage, "ward 7").number == len(KINDS) + 1
    storage.close()


def test_the_script_makes_a_store_like_the_newest(tmp_path):
    made_by().make(tmp_path / "new.db")
    new = open_storage(tmp_path / "new.db")
    assert [event.kind for event in new.read("ward 7")] == list(KINDS)
    assert new.snapshot("ward 8") is not None
    new.close()
