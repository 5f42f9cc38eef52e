"""Stores in a real PostgreSQL server."""

import socket
import threading
import time
import traceback

import pytest
from support.errors import raises_code
from support.journal_writers import append, is_chain
from support.postgres_server import PASSWORD

from dowise import DowiseError
from dowise.experiment.storage import open_storage, sql
from dowise.experiment.storage.postgres import PostgresStorage
from dowise.experiment.storage.url import locate

SECRET = "sEcr3t"


@pytest.fixture
def store(database):
    storage = open_storage(database, create=True)
    yield storage
    storage.close()


def full_text(error):
    """Return everything that a user may see of an error."""
    return "".join(traceback.format_exception(error.value)) + repr(error.value)


def test_tables_are_created_only_on_request(postgres, database):
    name = database.rpartition("/")[2]
    with raises_code("not-found", "postgresql://ann@127.0.0.1:", "dowise new"):
        open_storage(database)
    with postgres.connect(name) as connection:
        found = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        assert connection.execute(found).fetchall() == []
        open_storage(database, create=True).close()
        open_storage(database, create=True).close()
        tables = {table for (table,) in connection.execute(found)}
        assert tables == {"events", "snapshots", "tokens", "dowise_schema"}
        columns = connection.execute("SELECT * FROM events").description
        names = ["experiment", "number", "kind", "at", "actor", "salt", "body", "hash"]
        assert [column.name for column in columns] == names


def test_concurrent_creation_of_the_tables(database):
    errors = []

    def make():
        try:
            open_storage(database, create=True).close()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_foreign_and_newer_tables_are_left_alone(postgres, database):
    with postgres.connect(database.rpartition("/")[2]) as connection:
        connection.execute("CREATE TABLE events(title text)")
        connection.execute("CREATE TABLE songs(title text)")
        with raises_code("invalid-store", "events"):
            open_storage(database, create=True)
        connection.execute("DROP TABLE events")
        storage = open_storage(database, create=True)  # beside a foreign table of another name
        append(storage)
        storage.close()
        connection.execute("UPDATE dowise_schema SET version = 99")
        for create in (False, True):
            with raises_code("other-version", "99"):
                open_storage(database, create)
        with raises_code("other-version"):
            storage.read("ward")


def test_older_tables_are_migrated_once(database, monkeypatch):
    storage = open_storage(database, create=True)
    append(storage)
    ran = []
    today = sql.VERSION
    monkeypatch.setattr(sql, "VERSION", today + 1)
    monkeypatch.setattr(sql, "MIGRATIONS", {today: ran.append})
    for _ in range(2):
        open_storage(database).close()
    assert len(ran) == 1
    assert append(storage).number == 2
    storage.close()


def test_a_wrong_password_is_reported_without_it(postgres):
    wrong = "wr0ng/" + PASSWORD
    with raises_code("unavailable", "authentication failed") as error:
        open_storage(postgres.url(password=wrong))
    assert "wr0ng" not in full_text(error) and "\n" not in str(error.value)
    with raises_code("unavailable", '"nowhere"') as error:
        open_storage(postgres.url("nowhere"), create=True)
    assert PASSWORD not in full_text(error)


@pytest.mark.parametrize("query", ["", f"?sslpassword={SECRET}&application_name={SECRET}"])
def test_a_server_that_does_not_answer(query):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with raises_code("unavailable", "check that the server is running") as error:
            open_storage(f"postgresql://ann:{SECRET}@127.0.0.1:{port}/trials{query}")
    assert SECRET not in full_text(error) and "\n" not in str(error.value)


def test_a_message_of_the_driver_with_the_password_is_not_shown():
    with pytest.raises(DowiseError) as error:
        open_storage(f"postgresql://ann:{SECRET}@127.0.0.1/trials?keepalives={SECRET}2")
    assert SECRET not in full_text(error)


@pytest.mark.slow
def test_the_next_call_after_a_lost_connection_connects_again(postgres, store):
    append(store)
    postgres.stop()
    postgres.start()
    assert append(store).number == 2  # a lost idle connection is replaced
    postgres.stop()
    postgres.start()
    assert len(store.read("ward")) == 2

    def lose(storage):
        with storage.transaction("ward") as block:
            block.read()
            postgres.stop()
            postgres.start()
            block.append([])
            block.read()

    with pytest.raises(DowiseError, match="lost|terminating") as error:
        lose(store)
    assert PASSWORD not in full_text(error)
    assert append(store).number == 3
    assert is_chain(store.read("ward"))
    postgres.stop()
    try:
        with raises_code("unavailable", "check that the server is running"):
            store.read("ward")
    finally:
        postgres.start()
    assert len(store.read("ward")) == 3


def test_writers_wait_per_experiment_and_for_their_timeout(database, store):
    append(store, "ward")
    hasty = PostgresStorage(locate(database), timeout=0.3)
    with store.transaction("ward"):
        append(hasty, "another ward")
        start = time.monotonic()
        with raises_code("store-busy", "'ward'", "0.3 seconds"):
            append(hasty, "ward")
        assert 0.3 <= time.monotonic() - start < 3
        assert len(hasty.read("ward")) == 1
    assert append(hasty, "ward").number == 2
    hasty.close()


def test_a_name_that_postgres_cannot_store_is_refused(store):
    with raises_code("unavailable", "NUL"):
        append(store, "ward \0")
    assert append(store, "ward").number == 1


def test_unsafe_settings_of_the_server_are_overridden(postgres, database, store):
    with postgres.connect(name := database.rpartition("/")[2]) as connection:
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        connection.execute(
            f"ALTER DATABASE {name} SET default_transaction_isolation = serializable"
        )
    store.close()
    with store.transaction("ward") as block:
        shown = [
            block.connection.exec_driver_sql(f"SHOW {setting}").scalar()
            for setting in ("synchronous_commit", "transaction_isolation")
        ]
    assert shown == ["on", "read committed"]
