"""Stores written by earlier versions are read, derived again and shown as recorded."""

import json
import shutil
import sqlite3
from contextlib import closing

import pytest
from golden.record import as_recorded, assert_close, content, recorded
from golden.stores import DRAWN_ANEW, EXPERIMENTS, STORES, events_of, write_store

from dowise import Experiment
from dowise.experiment.event import build_info


@pytest.mark.parametrize("part", ["store_documents", "store_texts"])
def test_documents_of_stores_are_as_recorded(part):
    assert_close(as_recorded(content(part)), recorded(part), part)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "written.db"
    write_store(path)
    return path


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name not in DRAWN_ANEW])
def test_equal_calls_write_equal_events(written, name, tmp_path):
    earlier = shutil.copy(STORES["present"], tmp_path / "present.db")
    assert_close(events_of(written, name), events_of(earlier, name), name)


@pytest.mark.parametrize("name", sorted(DRAWN_ANEW))
def test_decisions_whose_draws_have_other_bits_now_are_no_finding(written, name, tmp_path):
    earlier = shutil.copy(STORES["present"], tmp_path / "present.db")
    with Experiment.open(earlier, name) as experiment:
        audit = experiment.audit()
    assert audit.ok and audit.made_elsewhere
    with Experiment.open(written, name) as experiment:
        audit = experiment.audit()
    assert audit.ok and not audit.made_elsewhere


def test_an_earlier_version_of_draws_on_this_machine_is_no_finding(tmp_path):
    """Its journals state the same libraries and processor: only the version of draws differs."""
    earlier = shutil.copy(STORES["present"], tmp_path / "present.db")
    with closing(sqlite3.connect(earlier)) as store:
        (body,) = store.execute("SELECT body FROM events WHERE number = 1").fetchone()
    assert json.loads(body)["maker"]["draws"] == "2" != build_info()["draws"]


def test_every_recorded_audit_passed():
    audits = [page for key, page in recorded("store_documents").items() if key.endswith("audit")]
    assert len(audits) == len(EXPERIMENTS) + 2 and all(page["ok"] for page in audits)
