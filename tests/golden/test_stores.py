"""Stores written by earlier versions are read, derived again and shown as recorded."""

import shutil

import pytest
from golden.record import as_recorded, assert_close, content, recorded
from golden.stores import EXPERIMENTS, STORES, events_of, write_store


@pytest.mark.parametrize("part", ["store_documents", "store_texts"])
def test_documents_of_stores_are_as_recorded(part):
    assert_close(as_recorded(content(part)), recorded(part), part)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "written.db"
    write_store(path)
    return path


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_equal_calls_write_equal_events(written, name, tmp_path):
    earlier = shutil.copy(STORES["present"], tmp_path / "present.db")
    assert_close(events_of(written, name), events_of(earlier, name), name)


def test_every_recorded_audit_passed():
    audits = [page for key, page in recorded("store_documents").items() if key.endswith("audit")]
    assert len(audits) == len(EXPERIMENTS) + 2 and all(page["ok"] for page in audits)
