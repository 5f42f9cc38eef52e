"""Stores from before there were tokens."""

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from support.errors import raises_code
from support.journal_writers import append
from support.system_users import become_nobody, run_in_child
from support.tokens import CREATED_AT, new_token, opened

from dowise import DowiseError, Experiment
from dowise.experiment.storage import open_storage, sql
from dowise_web import tokens
from dowise_web.tokens import TokenTable

SCHEMA_1 = Path(__file__).parents[1] / "experiment" / "golden" / "schema-1.db"


@pytest.fixture
def old(tmp_path):
    """A store of schema 1."""
    return Path(shutil.copy(SCHEMA_1, tmp_path / "old.db"))


def version(path):
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute("SELECT version FROM dowise_schema").fetchone()[0]


def test_an_older_store_is_upgraded_when_it_is_opened(old):
    with opened(old) as storage:
        assert version(old) == sql.VERSION
        assert TokenTable(storage).read() == []
        assert TokenTable(storage).add(new_token("one")).id == 1


def test_an_older_store_can_be_read_without_write_access():
    with tempfile.TemporaryDirectory() as name:  # accessible to other users
        Path(name).chmod(0o777)
        path = Path(shutil.copy(SCHEMA_1, Path(name) / "old.db"))
        path.chmod(0o444)

        def read():
            become_nobody()
            with Experiment.open(path, "ward 7") as experiment:
                assert experiment.head.number > 10 and len(experiment.records()) == 7
            with opened(path) as storage:
                assert TokenTable(storage).read() == [] and TokenTable(storage).find("one") is None
                assert not TokenTable(storage).end(1, CREATED_AT)
                TokenTable(storage).add(new_token("one"))

        error = run_in_child(read)
        assert "can't bring the store up to date, for tokens: the file belongs to" in error
        assert version(path) == 1


def test_an_older_store_can_be_read_while_it_is_locked(old, monkeypatch):
    monkeypatch.setattr(sql, "UPGRADE_TIMEOUT", 0.1)
    with closing(sqlite3.connect(old, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with opened(old) as storage:
            assert storage.experiments() == ("ward 7", "ward 8")
            monkeypatch.setattr(tokens, "TIMEOUT", 0.1)
            with pytest.raises(DowiseError, match="up to date, for tokens: another program has"):
                TokenTable(storage).add(new_token("one"))
            writer.execute("ROLLBACK")
            assert version(old) == 1
            assert append(storage, "ward 9").number == 1
            assert TokenTable(storage).add(new_token("one")).id == 1
    assert version(old) == sql.VERSION


def test_an_unusable_schema_must_be_upgraded(old, monkeypatch):
    monkeypatch.setattr(sql, "TIMEOUT", 0.1)
    monkeypatch.setattr(sql, "OLDEST_USABLE", 2)
    with closing(sqlite3.connect(old, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(DowiseError, match="can't open the store: another program has locked"):
            open_storage(old)


@pytest.fixture
def old_database(postgres, database):
    """A store of schema 1 on a server, with one event; the URL, and a connection of the owner's."""
    with closing(open_storage(database, create=True)) as storage:
        append(storage)
    with postgres.connect(database.rpartition("/")[2]) as connection:
        connection.execute("DROP TABLE tokens")
        connection.execute("UPDATE dowise_schema SET version = 1")
        yield database, connection


def test_an_older_database_is_upgraded(postgres, old_database):
    described = (
        "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
        "WHERE table_name = 'tokens' ORDER BY ordinal_position"
    )
    url, connection = old_database
    with opened(url) as storage:
        assert TokenTable(storage).add(new_token("one")).id == 1
        with raises_code("duplicate-name", "the hash one"):
            TokenTable(storage).add(new_token("one"))
    today = postgres.new_database()
    open_storage(postgres.url(today), create=True).close()
    with postgres.connect(today) as fresh:
        columns = connection.execute(described).fetchall()
        assert columns == fresh.execute(described).fetchall() and len(columns) == 9


def test_an_older_database_can_be_read_without_write_access(postgres, old_database):
    url, connection = old_database
    connection.execute("DROP ROLE IF EXISTS guest")
    connection.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    connection.execute("GRANT SELECT ON events, snapshots, dowise_schema TO guest")
    try:
        database = url.rpartition("/")[2]
        with opened(f"postgresql://guest:guest@127.0.0.1:{postgres.port}/{database}") as storage:
            assert len(storage.read("ward")) == 1 and TokenTable(storage).read() == []
            with pytest.raises(DowiseError, match="for tokens: this user lacks a privilege"):
                TokenTable(storage).add(new_token("one"))
    finally:
        connection.execute("DROP OWNED BY guest")
        connection.execute("DROP ROLE guest")


def test_a_foreign_table_of_the_same_name_is_not_touched(old_database):
    url, connection = old_database
    connection.execute("CREATE TABLE tokens(hash text, words text)")
    connection.execute("INSERT INTO tokens VALUES ('one', 'mine')")
    with opened(url) as storage:
        assert append(storage).number == 2
        assert TokenTable(storage).find("one") is None
        with pytest.raises(DowiseError, match='relation "tokens" already exists'):
            TokenTable(storage).add(new_token("one"))
    assert connection.execute("SELECT * FROM tokens").fetchall() == [("one", "mine")]
