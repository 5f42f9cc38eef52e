"""Journals in a real PostgreSQL server."""

import socket
import threading
import time
import traceback

import pytest
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


def told(error):
    """All that a user could see of it."""
    return "".join(traceback.format_exception(error.value)) + repr(error.value)


def test_tables_are_made_only_where_that_is_asked_for(postgres, database):
    name = database.rpartition("/")[2]
    with pytest.raises(DowiseError, match="there is no store in postgresql://ann@127.0.0.1:.*new"):
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


def test_many_make_the_tables_at_once(database):
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
        with pytest.raises(DowiseError, match=r"tables of something else \(events\)"):
            open_storage(database, create=True)
        connection.execute("DROP TABLE events")
        storage = open_storage(database, create=True)  # among songs is no harm
        append(storage)
        storage.close()
        connection.execute("UPDATE dowise_schema SET version = 99")
        for create in (False, True):
            with pytest.raises(DowiseError, match="by a newer dowise .schema 99"):
                open_storage(database, create)
        with pytest.raises(DowiseError, match="by a newer dowise"):
            storage.read("ward")


def test_older_tables_are_brought_up_to_date_once(database, monkeypatch):
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


def test_a_wrong_password_is_told_and_not_shown(postgres):
    wrong = "wr0ng/" + PASSWORD
    with pytest.raises(DowiseError, match="can't open the store: .*authentication failed") as error:
        open_storage(postgres.url(password=wrong))
    assert "wr0ng" not in told(error) and "\n" not in str(error.value)
    with pytest.raises(DowiseError, match='database "nowhere" does not exist') as error:
        open_storage(postgres.url("nowhere"), create=True)
    assert PASSWORD not in told(error)


@pytest.mark.parametrize("query", ["", f"?sslpassword={SECRET}&application_name={SECRET}"])
def test_a_host_that_does_not_answer(query):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(DowiseError, match="see that the server runs") as error:
            open_storage(f"postgresql://ann:{SECRET}@127.0.0.1:{port}/trials{query}")
    assert SECRET not in told(error) and "\n" not in str(error.value)


def test_a_driver_that_repeats_the_secret_is_not_repeated():
    with pytest.raises(DowiseError) as error:
        open_storage(f"postgresql://ann:{SECRET}@127.0.0.1/trials?keepalives={SECRET}2")
    assert SECRET not in told(error)


@pytest.mark.slow
def test_a_lost_connection_is_one_clear_error_and_the_next_call_connects_anew(postgres, store):
    append(store)
    postgres.stop()
    postgres.start()
    assert append(store).number == 2  # an idle connection was lost: nothing had been said by it
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
    assert PASSWORD not in told(error)
    assert append(store).number == 3
    assert is_chain(store.read("ward"))
    postgres.stop()
    try:
        with pytest.raises(DowiseError, match="see that the server runs"):
            store.read("ward")
    finally:
        postgres.start()
    assert len(store.read("ward")) == 3


def test_experiments_do_not_wait_for_one_another_and_one_waits_no_longer_than_its_timeout(
    database, store
):
    append(store, "ward")
    hasty = PostgresStorage(locate(database), timeout=0.3)
    with store.transaction("ward"):
        append(hasty, "another ward")
        start = time.monotonic()
        with pytest.raises(DowiseError, match=r"'ward' can't be written: .* for 0.3 seconds"):
            append(hasty, "ward")
        assert 0.3 <= time.monotonic() - start < 3
        assert len(hasty.read("ward")) == 1
    assert append(hasty, "ward").number == 2
    hasty.close()


def test_what_postgres_can_not_hold_is_told(store):
    with pytest.raises(DowiseError, match="cannot contain NUL"):
        append(store, "ward \0")
    assert append(store, "ward").number == 1


def test_settings_of_the_server_that_would_lose_events_are_overruled(postgres, database, store):
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
