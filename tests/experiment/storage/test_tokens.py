"""Tokens in stores of all kinds: their contract, races between processes, and older stores."""

import multiprocessing
import os
import re
import shutil
import signal
import sqlite3
import tempfile
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from journals import append
from users import as_nobody, in_child

from dowise import DowiseError, Experiment
from dowise.experiment.storage import (
    MemoryStorage,
    Token,
    check_storage,
    check_token_storage,
    open_storage,
    opening,
    schema,
    sql_tokens,
)
from dowise.experiment.storage.memory_tokens import MemoryTokens
from dowise.experiment.storage.token_contract import tokens_of

FORK = multiprocessing.get_context("fork")
SCHEMA_1 = Path(__file__).parents[1] / "golden" / "schema-1.db"
AT = "2026-01-01T00:00:00.000000Z"


def new(hash_, parent=None):
    return Token(0, hash_, "link", "read", "ann", parent, AT, None, None)


@contextmanager
def opened(place):
    storage = open_storage(place)
    try:
        yield storage
    finally:
        storage.close()


# -- the contract -----------------------------------------------------------------------------


def test_tokens_in_memory_keep_the_contract():
    storage = MemoryStorage()
    check_token_storage(lambda: storage)


def test_tokens_in_tables_keep_the_contract(place):
    open_storage(place, create=True).close()
    check_token_storage(lambda: open_storage(place))


def test_a_store_of_ones_own_need_not_keep_tokens():
    storage = MemoryStorage()
    storage.tokens = None
    check_storage(lambda: storage)
    with pytest.raises(DowiseError, match="a store in memory keeps no tokens, so it can't be se"):
        tokens_of(storage)


def forgetful(self, token):
    return token._replace(id=len(self._tokens) + 1)


def twice(self, token):
    self._tokens.append(added := token._replace(id=len(self._tokens) + 1))
    return added


def unnumbered(self, token):
    MemoryTokens.add(self, token)
    return token


def orphans(self, token, once):  # noqa: ARG001
    return MemoryTokens.add(self, token)._replace(parent=token.parent)


def never_used_up(self, token, once):  # noqa: ARG001
    return MemoryTokens.add_child(self, token, once=False)


def always_used_up(self, token, once):  # noqa: ARG001
    return MemoryTokens.add_child(self, token, once=True)


def used_up_by_nothing(self, token, once):
    parent = self._numbered(token.parent)
    if once and parent is not None and parent.ended_at is None:
        self._end(parent, token.made_at)
        return self._add(token)
    return MemoryTokens.add_child(self, token, once)


def in_two_steps(self, token, once):
    parent = self._numbered(token.parent)
    if parent is None or parent.ended_at is not None:
        return None
    threading.Event().wait(0.05)
    with self._guard:
        added = self._add(token)
        if once:
            self._end(parent, token.made_at)
        return added


def end_alone(self, number, at):
    token = self._numbered(number)
    if token is not None:
        self._end(token, at)
    return token is not None


def end_children_only(self, number, at):
    for token in self._tokens:
        if number in (token.id, token.parent):
            self._end(token, at)
    return self._numbered(number) is not None


def end_all(self, number, at):
    for token in list(self._tokens):
        self._end(token, at)
    return self._numbered(number) is not None


def end_once(self, number, at):
    token = self._numbered(number)
    if token is None or token.ended_at is not None:
        return False
    return MemoryTokens.end(self, number, at)


def end_what_is_used_up_alone(self, number, at):
    token = self._numbered(number)
    return (token is not None and token.ended_at is not None) or MemoryTokens.end(self, number, at)


def end_anew(self, number, at):
    found = MemoryTokens.end(self, number, at)
    if found:
        self._tokens[number - 1] = self._tokens[number - 1]._replace(ended_at=at)
    return found


def end_anything(self, number, at):
    MemoryTokens.end(self, number, at)
    return True


def fail(self, hash_):  # noqa: ARG001
    raise RuntimeError("out of order")


@pytest.mark.parametrize(
    ("methods", "promise"),
    [
        ({"find": fail}, "it raises RuntimeError: out of order"),
        ({"find": lambda self, _: self._tokens[0] if self._tokens else None}, "find gives the tok"),
        ({"add": unnumbered}, "with its number"),
        ({"add": forgetful}, "with its number|read gives all"),
        ({"add": twice}, "there already is refused"),
        ({"read": lambda self: self._tokens[::-1]}, "in order"),
        ({"add_child": orphans}, "has ended|children"),
        ({"add_child": never_used_up}, "with `once` the parent has ended"),
        ({"add_child": always_used_up}, "any number of children|leaves its parent alone"),
        ({"add_child": used_up_by_nothing}, "all is as it was before|the parent has ended"),
        ({"add_child": in_two_steps}, "exactly one succeeds"),
        ({"end": end_alone}, "all that came from it"),
        ({"end": end_children_only}, "all that came from it"),
        ({"end": end_all}, "leaves alone"),
        ({"end": end_once}, "again is no error"),
        ({"end": end_what_is_used_up_alone}, "used up ends what came from it"),
        ({"end": end_anew}, "keeps its time"),
        ({"end": end_anything}, "whether there is such a token"),
    ],
)
def test_each_broken_promise_is_found(methods, promise):
    storage = MemoryStorage()
    storage.tokens = type("Broken", (MemoryTokens,), methods)()
    with pytest.raises(DowiseError, match="breaks the contract") as error:
        check_token_storage(lambda: storage)
    assert re.search(promise, str(error.value))


# -- several processes ------------------------------------------------------------------------


def test_of_two_processes_that_use_one_link_exactly_one_wins(place):
    links = 20
    with closing(open_storage(place, create=True)) as storage:
        for i in range(links):
            storage.tokens.add(new(f"link {i}"))
    barrier = FORK.Barrier(2)
    queue = FORK.SimpleQueue()

    def use(who):
        with opened(place) as storage:
            for i in range(links):
                barrier.wait(60)
                won = storage.tokens.add_child(new(f"{who} {i}", i + 1), once=True)
                queue.put((i, who, won is not None))

    children = [FORK.Process(target=use, args=(who,)) for who in ("one", "other")]
    for child in children:
        child.start()
    told = [queue.get() for _ in range(2 * links)]
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    winners = {i: who for i, who, won in told if won}
    assert sum(won for _, _, won in told) == links == len(winners)
    with opened(place) as storage:
        found = storage.tokens.read()
        assert [token.ended_at for token in found[:links]] == [AT] * links
        assert [token.parent for token in found[links:]] == list(range(1, links + 1))
        assert [token.hash for token in found[links:]] == [f"{winners[i]} {i}" for i in winners]


def test_who_is_killed_in_the_midst_has_neither_used_the_link_nor_a_session(place, monkeypatch):
    with closing(open_storage(place, create=True)) as storage:
        link = storage.tokens.add(new("link"))

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    def use():
        monkeypatch.setattr(sql_tokens, "insert", die)  # after the link has ended
        with opened(place) as storage:
            storage.tokens.add_child(new("session", link.id), once=True)

    child = FORK.Process(target=use)
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    with opened(place) as storage:
        assert storage.tokens.read() == [link]
        assert storage.tokens.add_child(new("session", link.id), once=True).id == 2


def test_tokens_are_written_beside_journals_and_change_nothing_there(place):
    with Experiment.create(place, "ward", "task1", policy="ucb", seed=1) as experiment:
        experiment.ask()
        head = experiment.head
        with opened(place) as storage:
            storage.tokens.add(new("one"))
            storage.tokens.end(1, AT)
        assert experiment.head == head and experiment.audit().ok
        assert experiment.ask().id == 2


def test_a_forked_child_and_a_thread_in_a_writing_block(place):
    with closing(open_storage(place, create=True)) as storage:
        storage.tokens.add(new("one"))
        assert in_child(lambda: storage.tokens.add(new("two")).id) == 2
        assert storage.tokens.add(new("three")).id == 3
        append(storage)
        with storage.writing("ward"):
            assert storage.tokens.find("two").id == 2  # readers never wait
        if "://" not in place:
            with (
                storage.writing("ward"),
                pytest.raises(DowiseError, match="list of tokens can't be written: this thread"),
            ):
                storage.tokens.add(new("four"))


def test_a_row_that_somebody_spoiled_is_told(tmp_path):
    path = tmp_path / "ward.db"
    with closing(open_storage(path, create=True)) as storage:
        storage.tokens.add(new("one"))
        with closing(sqlite3.connect(path)) as raw:
            raw.execute("UPDATE tokens SET role = x'00'")
            raw.commit()
        with pytest.raises(DowiseError, match="token 1 can't be read: restore the store"):
            storage.tokens.find("one")


# -- stores from before there were tokens -----------------------------------------------------


@pytest.fixture
def old(tmp_path):
    """A store of schema 1."""
    return Path(shutil.copy(SCHEMA_1, tmp_path / "old.db"))


def version(path):
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute("SELECT version FROM dowise_schema").fetchone()[0]


def test_an_older_store_is_brought_up_to_date_when_it_is_opened(old):
    with opened(old) as storage:
        assert version(old) == schema.VERSION
        assert storage.tokens.read() == []
        assert storage.tokens.add(new("one")).id == 1


def test_who_may_only_read_an_older_store_reads_it():
    with tempfile.TemporaryDirectory() as name:  # which other users can reach
        Path(name).chmod(0o777)
        path = Path(shutil.copy(SCHEMA_1, Path(name) / "old.db"))
        path.chmod(0o444)

        def look():
            as_nobody()
            with Experiment.open(path, "ward 7") as experiment:
                assert experiment.head.number > 10 and len(experiment.records()) == 7
            with opened(path) as storage:
                assert storage.tokens.read() == [] and storage.tokens.find("one") is None
                assert not storage.tokens.end(1, AT)
                storage.tokens.add(new("one"))

        said = in_child(look)
        assert "can't bring the store up to date, for tokens: the file belongs to" in said
        assert version(path) == 1


def test_who_meets_a_long_writer_reads_an_older_store_all_the_same(old, monkeypatch):
    monkeypatch.setattr(opening, "PATIENCE_TO_CATCH_UP", 0.1)
    with closing(sqlite3.connect(old, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with opened(old) as storage:
            assert storage.experiments() == ("ward 7", "ward 8")
            monkeypatch.setattr(sql_tokens, "PATIENCE", 0.1)
            with pytest.raises(DowiseError, match="up to date, for tokens: another program has"):
                storage.tokens.add(new("one"))
            writer.execute("ROLLBACK")
            assert version(old) == 1
            assert append(storage, "ward 9").number == 1  # as it is
            assert storage.tokens.add(new("one")).id == 1
    assert version(old) == schema.VERSION


def test_tables_that_do_not_serve_any_more_must_be_brought_up_to_date(old, monkeypatch):
    monkeypatch.setattr("dowise.experiment.storage.rules.PATIENCE", 0.1)
    monkeypatch.setattr(schema, "SERVES", 2)
    with closing(sqlite3.connect(old, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(DowiseError, match="can't open the store: another program has held"):
            open_storage(old)


# -- and in PostgreSQL ------------------------------------------------------------------------


@pytest.fixture
def old_database(postgres, database):
    """A store of schema 1 on a server, with one event; the URL, and a connection of the owner's."""
    with closing(open_storage(database, create=True)) as storage:
        append(storage)
    with postgres.connect(database.rpartition("/")[2]) as connection:
        connection.execute("DROP TABLE tokens")
        connection.execute("UPDATE dowise_schema SET version = 1")
        yield database, connection


def test_an_older_database_is_brought_up_to_date(postgres, old_database):
    described = (
        "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
        "WHERE table_name = 'tokens' ORDER BY ordinal_position"
    )
    url, connection = old_database
    with opened(url) as storage:
        assert storage.tokens.add(new("one")).id == 1
        with pytest.raises(DowiseError, match="is there already"):
            storage.tokens.add(new("one"))
    today = postgres.new_database()
    open_storage(postgres.url(today), create=True).close()
    with postgres.connect(today) as fresh:
        found = connection.execute(described).fetchall()
        assert found == fresh.execute(described).fetchall() and len(found) == 9


def test_a_user_of_the_server_who_may_only_read_reads_an_older_database(postgres, old_database):
    url, connection = old_database
    connection.execute("DROP ROLE IF EXISTS guest")
    connection.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    connection.execute("GRANT SELECT ON events, snapshots, dowise_schema TO guest")
    try:
        database = url.rpartition("/")[2]
        with opened(f"postgresql://guest:guest@127.0.0.1:{postgres.port}/{database}") as storage:
            assert len(storage.read("ward")) == 1 and storage.tokens.read() == []
            with pytest.raises(DowiseError, match="for tokens: this user lacks a right there"):
                storage.tokens.add(new("one"))
    finally:
        connection.execute("DROP OWNED BY guest")
        connection.execute("DROP ROLE guest")


def test_a_table_of_the_same_name_in_an_older_database_is_left_alone(old_database):
    url, connection = old_database
    connection.execute("CREATE TABLE tokens(hash text, words text)")
    connection.execute("INSERT INTO tokens VALUES ('one', 'mine')")
    with opened(url) as storage:
        assert append(storage).number == 2
        assert storage.tokens.find("one") is None
        with pytest.raises(DowiseError, match='relation "tokens" already exists'):
            storage.tokens.add(new("one"))
    assert connection.execute("SELECT * FROM tokens").fetchall() == [("one", "mine")]
