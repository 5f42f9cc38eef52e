"""Locations of stores: file names and URLs, shown without passwords."""

from pathlib import Path

import pytest
from support.errors import raises_code

from dowise.experiment.storage import MemoryStorage, open_storage
from dowise.experiment.storage.url import locate


def test_a_storage_is_returned_unchanged():
    storage = MemoryStorage()
    assert open_storage(storage) is storage


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("ward.db", "ward.db"),
        (Path("a b/ward?.db"), "a b/ward?.db"),
        ("sqlite:///ward.db", "ward.db"),
        ("SQLite:////data/ward.db", "/data/ward.db"),
        ("sqlite+pysqlite:///ward.db", "ward.db"),
    ],
)
def test_file_names_and_sqlite_urls(location, path):
    parsed = locate(location)
    assert (parsed.path, parsed.shown, parsed.url) == (Path(path), path, None)


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("postgresql://ann:s3cret@db/trials", "postgresql://ann@db/trials"),
        ("postgres://db:5433/trials", "postgresql://db:5433/trials"),
        ("postgresql+psycopg://a%40b:s3cret@[::1]/", "postgresql://a%40b@[::1]/"),
        ("postgresql:///trials?host=db&password=s3cret", "postgresql:///trials"),
    ],
)
def test_postgres_urls_are_shown_without_the_password(location, shown):
    parsed = locate(location)
    assert parsed.shown == shown and parsed.url.drivername == "postgresql+psycopg"
    assert "s3cret" not in repr(parsed)
    assert parsed.is_discreet("no connection to db")
    assert parsed.is_discreet("s3cret") == ("s3cret" not in location)


def test_passwords_are_recognized_in_every_encoding():
    parsed = locate("postgresql://ann:a%2Fb+c@db/x?sslpassword=k&k=v%20w&sslmode=require")
    encodings = ["<a/b+c>", "<a%2Fb%2Bc>", "<v w>", "<v%20w>", "<v+w>"]
    assert not any(map(parsed.is_discreet, encodings))
    assert parsed.is_discreet("require")


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("mysql://ann:s3cret@db/x", "invalid-url"),
        ("http://ann:s3cret@db/x", "invalid-url"),
        ("postgresql+psycopg2://ann:s3cret@db/x", "invalid-url"),
        ("postgresql://ann:s3cret@db:port/x", "invalid-url"),
        ("postgres:ann:s3cret@db/x", "invalid-url"),
        ("sqlite://", "invalid-url"),
        ("sqlite:///:memory:", "invalid-url"),
        ("sqlite:///ward.db?mode=ro", "invalid-url"),
        ("sqlite://ann:s3cret@host/ward.db", "invalid-url"),
        (":memory:", "invalid-store"),
        ("", "invalid-store"),
        ("a\0b", "invalid-store"),
        (7, "invalid-type"),
        (None, "invalid-type"),
    ],
)
@pytest.mark.parametrize("create", [False, True])
def test_invalid_locations_are_refused_without_the_password(location, code, create):
    with raises_code(code) as caught:
        open_storage(location, create)
    assert "s3cret" not in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("module", "store", "extra"),
    [("sqlalchemy", "ward.db", "live"), ("psycopg", "postgresql://db/x", "postgres")],
)
def test_a_missing_library_is_named_with_its_extra(monkeypatch, tmp_path, module, store, extra):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with raises_code("missing-extra", module, f"dowise[{extra}]"):
        open_storage(store, create=True)
    assert list(tmp_path.iterdir()) == []
