"""Where a store is: file names and URLs, and never a password."""

from pathlib import Path

import pytest

from dowise import DowiseError
from dowise.experiment.storage import MemoryStorage, open_storage
from dowise.experiment.storage.url import locate


def test_a_storage_is_opened_as_it_is():
    storage = MemoryStorage()
    assert open_storage(storage) is storage


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("ward.db", "ward.db"),
        (Path("a b/ward?.db"), "a b/ward?.db"),
        ("sqlite:///ward.db", "ward.db"),
        ("SQLite:////data/ward.db", "/data/ward.db"),
        ("sqlite+pysqlite:///ward.db", "ward.db"),
    ],
)
def test_files(given, path):
    found = locate(given)
    assert (found.path, found.shown, found.url) == (Path(path), path, None)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgresql://ann:s3cret@db/trials", "postgresql://ann@db/trials"),
        ("postgres://db:5433/trials", "postgresql://db:5433/trials"),
        ("postgresql+psycopg://a%40b:s3cret@[::1]/", "postgresql://a%40b@[::1]/"),
        ("postgresql:///trials?host=db&password=s3cret", "postgresql:///trials"),
    ],
)
def test_servers(given, shown):
    found = locate(given)
    assert found.shown == shown and found.url.drivername == "postgresql+psycopg"
    assert "s3cret" not in repr(found)
    assert found.is_discreet("no connection to db") and found.is_discreet("s3cret") == (
        "s3cret" not in given
    )


def test_a_password_is_known_in_each_of_its_spellings():
    found = locate("postgresql://ann:a%2Fb+c@db/x?sslpassword=k&k=v%20w&sslmode=require")
    assert not any(map(found.is_discreet, ["<a/b+c>", "<a%2Fb%2Bc>", "<v w>", "<v%20w>", "<v+w>"]))
    assert found.is_discreet("require")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("mysql://ann:s3cret@db/x", "can't be opened by mysql://: give a file name"),
        ("http://ann:s3cret@db/x", "can't be opened by http://"),
        ("postgresql+psycopg2://ann:s3cret@db/x", "by postgresql[+]psycopg2://"),
        ("postgresql://ann:s3cret@db:port/x", "%-codes for signs"),
        ("sqlite://", "names a file and nothing else: write sqlite:///ward.db"),
        ("sqlite:///:memory:", "names a file and nothing else"),
        ("sqlite:///ward.db?mode=ro", "names a file and nothing else"),
        ("sqlite://ann:s3cret@host/ward.db", "names a file and nothing else"),
        (":memory:", "':memory:' can't name a store"),
        ("", "'' can't name a store"),
        ("a\0b", "can't name a store"),
        (7, "an? int is no store: give a file name"),
        (None, "a NoneType is no store"),
    ],
)
@pytest.mark.parametrize("create", [False, True])
def test_what_is_no_store(given, message, create):
    with pytest.raises(DowiseError, match=message) as error:
        open_storage(given, create)
    assert "s3cret" not in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("module", "store", "extra"),
    [("sqlalchemy", "ward.db", "live"), ("psycopg", "postgresql://db/x", "postgres")],
)
def test_a_missing_library_is_one_line(monkeypatch, tmp_path, module, store, extra):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(DowiseError, match=rf"needs {module}.*pip install 'dowise\[{extra}\]'"):
        open_storage(store, create=True)
    assert list(tmp_path.iterdir()) == []
