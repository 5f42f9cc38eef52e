"""SQLite stores: foreign and damaged files, forks, timeouts, erasure, migrations."""

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from support.errors import raises_code
from support.journal_writers import append, is_chain
from support.system_users import FORK, become_nobody, run_in_child

from dowise import DowiseError
from dowise.experiment.event import Event, next_event
from dowise.experiment.storage import Snapshot, open_storage, sql
from dowise.experiment.storage.sqlite import SqliteFiles, SqliteStorage
from dowise.experiment.storage.url import locate


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ward.db"


@pytest.fixture
def open_folder():
    """A folder that other users can reach, which pytest's own is not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder
        folder.chmod(0o700)


@pytest.fixture
def filled(path):
    """A store with 50 events, closed."""
    with opened(path, create=True) as storage:
        append(storage, words=["word"] * 50)
    return path


@contextmanager
def opened(path, create=False, timeout=60.0):
    open_storage(path, create).close()
    storage = SqliteStorage(locate(path), timeout)
    try:
        yield storage
    finally:
        storage.close()


def contents(folder):
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}


def test_the_file_is_in_wal_mode_with_the_documented_columns(filled):
    with closing(sqlite3.connect(filled)) as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        columns = [row[1] for row in raw.execute("PRAGMA table_info(events)")]
        assert columns == ["experiment", "number", "kind", "at", "actor", "salt", "body", "hash"]
        row = raw.execute("SELECT * FROM events WHERE experiment='ward' AND number=1").fetchone()
        keys = [row[1] for row in raw.execute("PRAGMA table_info(events)") if row[5]]
        assert keys == ["experiment", "number"]
        columns = [row[1] for row in raw.execute("PRAGMA table_info(snapshots)")]
        assert columns == ["experiment", "number", "hash", "body"]
        assert raw.execute("SELECT version FROM dowise_schema").fetchall() == [(sql.VERSION,)]
    with opened(filled) as storage:
        assert Event(*row) == storage.read("ward", upto=1)[0]


def test_connections_sync_fully_and_overwrite_deleted_contents(filled):
    with opened(filled) as storage, storage.transaction("ward") as block:
        connection = block.connection
        for setting, value in (("synchronous", 2), ("secure_delete", 1), ("journal_mode", "wal")):
            assert connection.exec_driver_sql(f"PRAGMA {setting}").scalar() == value


def test_files_are_created_only_on_request(path):
    with raises_code("not-found", "ward.db", "dowise new"):
        open_storage(path)
    with raises_code("file-not-found", "none"):
        open_storage(path.parent / "none" / "ward.db", create=True)
    assert list(path.parent.iterdir()) == []
    with opened(path, create=True) as storage:
        append(storage)
    with opened(path, create=True) as storage:  # an existing store is kept
        assert len(storage.read("ward")) == 1
    assert [entry.name for entry in path.parent.iterdir()] == ["ward.db"]


def test_a_copy_in_another_mode_is_changed_to_wal_mode(filled):
    copy = filled.with_name("copy.db")
    with closing(sqlite3.connect(filled)) as raw:
        raw.execute("VACUUM INTO ?", [str(copy)])
    with opened(copy) as storage:
        append(storage)
    with closing(sqlite3.connect(copy)) as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_an_empty_file_is_not_a_store_but_can_become_one(path):
    path.touch()
    with raises_code("not-found", "ward.db", "dowise new"):
        open_storage(path)
    assert contents(path.parent) == {"ward.db": b""}
    with opened(path, create=True) as storage:
        append(storage)


def foreign(path, mode):
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(f"PRAGMA journal_mode={mode}")
        raw.execute("CREATE TABLE songs(name)")
        raw.execute("INSERT INTO songs VALUES ('one')")
        raw.commit()


def cut(path, size):
    with path.open("r+b") as file:
        file.truncate(size)


def newer(path):
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("UPDATE dowise_schema SET version = 99")
        raw.commit()


def versionless(path):
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("DELETE FROM dowise_schema")
        raw.commit()


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize(
    ("spoil", "code", "mentioned"),
    [
        (lambda path: path.write_bytes(b"not SQLite " * 100), "unavailable", "not a SQLite file"),
        (lambda path: path.write_bytes(b"short"), "unavailable", "not a SQLite file"),
        (lambda path: (path.unlink(), foreign(path, "delete")), "invalid-store", "songs"),
        (lambda path: (path.unlink(), foreign(path, "wal")), "invalid-store", "songs"),
        (lambda path: cut(path, 5000), "unavailable", "damaged"),
        (lambda path: cut(path, 8192), "unavailable", "damaged"),
        (lambda path: cut(path, 50), "unavailable", "damaged"),
        (newer, "other-version", "99"),
        (versionless, "invalid-store", "version"),
        (lambda path: (path.unlink(), path.mkdir()), "invalid-store", "folder"),
        (lambda path: (path.unlink(), os.mkfifo(path)), "invalid-store", "pipe"),
        (lambda path: (path.unlink(), path.symlink_to(path)), "invalid-store", "link"),
    ],
)
def test_a_file_that_is_not_a_store_is_left_unchanged(filled, spoil, code, mentioned, create):
    spoil(filled)
    before = contents(filled.parent)
    with raises_code(code, mentioned) as caught:
        open_storage(filled, create)
    assert "\n" not in str(caught.value)
    assert contents(filled.parent) == before


def test_a_missing_table_is_reported(filled):
    with closing(sqlite3.connect(filled)) as raw:
        raw.execute("DROP TABLE events")
    with raises_code("unavailable", "tables is missing"):
        open_storage(filled).read("ward")


def test_a_damaged_page_is_reported_when_it_is_read(filled):
    with filled.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096 * 2)
    before = contents(filled.parent)
    with raises_code("unavailable", "damaged"), opened(filled) as storage:
        storage.read("ward")
    assert contents(filled.parent)["ward.db"] == before["ward.db"]


def test_writing_to_read_only_files_and_folders_names_the_owner(open_folder):
    filled = open_folder / "ward.db"
    with opened(filled, create=True) as storage:
        append(storage, words=["word"] * 50)
    filled.chmod(0o444)
    before = contents(filled.parent)["ward.db"]

    def read_then_write():
        become_nobody()
        with opened(filled) as storage:
            assert len(storage.read("ward")) == 50
            storage.save_snapshot(Snapshot("ward", 50, storage.last("ward").hash, b""))
            append(storage)

    assert "can't write to 'ward': the file belongs to" in run_in_child(read_then_write)
    filled.parent.chmod(0o555)
    filled.chmod(0o666)
    assert "can't write to 'ward': its folder belongs to" in run_in_child(read_then_write)
    assert filled.read_bytes() == before

    def make():
        become_nobody()
        open_storage(filled.parent / "new.db", create=True)

    assert "can't open the store: its folder belongs to" in run_in_child(make)
    filled.parent.chmod(0o700)
    with opened(filled) as storage:
        append(storage)


def test_a_folder_that_may_not_be_read(filled):
    filled.parent.chmod(0o700)

    def read():
        become_nobody()
        open_storage(filled)

    if os.geteuid() == 0:
        assert "ward.db" in (message := run_in_child(read)) and "\n" not in message


def test_a_file_that_may_not_grow(filled):
    """If the system refuses to write beyond a size, earlier events stay and writing can go on."""

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        with opened(filled) as storage:
            for _ in range(1000):
                append(storage, words=["x" * 2000])

    assert "could not read or write it" in run_in_child(fill)
    with opened(filled) as storage:
        events = storage.read("ward")
        assert len(events) > 60 and is_chain(events)
        append(storage)


def test_a_full_disk_loses_no_acknowledged_event(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = os.geteuid() == 0 and shutil.which("mount") and not subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], capture_output=True, check=False
    ).returncode  # fmt: skip
    if not mounted:
        pytest.skip("only root can make a small disk")
    try:
        with opened(disk / "ward.db", create=True) as storage:
            append(storage, words=["x"])
            (disk / "ballast").write_bytes(b"x" * 700_000)
            acknowledged = [storage.last("ward")]

            def fill():
                while True:
                    acknowledged.append(append(storage, words=["x" * 2000]))

            with raises_code("unavailable", "the disk is full") as caught:
                fill()
            assert "\n" not in str(caught.value)
            assert storage.read("ward") == acknowledged
            (disk / "ballast").unlink()
            append(storage)
            assert is_chain(storage.read("ward")) and storage.read("ward")[:-1] == acknowledged
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_transaction_with_an_ignored_error_commits_nothing(filled):
    with opened(filled) as storage:
        last = storage.last("ward")
        good = next_event(last, "ward", "told", "", "ann", {})
        bad = replace(next_event(good, "ward", "told", "", "ann", {}), actor="\ud800")

        def write():
            with storage.transaction("ward") as block:
                block.append([good])
                block.append([bad])
                with raises_code("unavailable", "'ward'"):
                    block.read()  # sends the event

        with raises_code("transaction-failed"):
            write()
        assert storage.last("ward") == last
        append(storage)


def test_a_replaced_file_is_used_from_then_on(filled):
    copy = filled.with_name("copy.db")
    shutil.copy(filled, copy)
    with opened(filled) as storage:
        append(storage)
        storage.close()
        copy.rename(filled)
        assert append(storage).number == 51
        with opened(filled) as another:
            assert len(another.read("ward")) == 51
        filled.unlink()
        with raises_code("not-found"):
            append(storage)
        with raises_code("not-found"):
            storage.read("ward")


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_writer_waits_exactly_for_its_timeout(filled, elsewhere):
    with opened(filled, timeout=0.3) as storage, opened(filled) as another:
        holder = another if elsewhere else storage
        held, done = threading.Event(), threading.Event()

        def hold():
            with holder.transaction("ward"):
                held.set()
                done.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        start = time.monotonic()
        with raises_code("store-busy", "'ward'", "0.3 seconds"):
            append(storage)
        assert 0.3 <= time.monotonic() - start < 3
        storage.save_snapshot(Snapshot("ward", 50, storage.last("ward").hash, b""))
        assert storage.snapshot("ward") is None
        done.set()
        thread.join()
        assert append(storage).number == 51


def test_a_forked_child_uses_its_own_connections(filled):
    with opened(filled) as storage:
        append(storage)
        number = run_in_child(lambda: append(storage).number)
        assert number == 52
        assert append(storage).number == 53
        with storage.transaction("ward") as block:
            assert "belongs to the parent process" in run_in_child(lambda: block.append([]))
            block.append([next_event(block.read()[-1], "ward", "told", "", "ann", {})])
        assert len(storage.read("ward")) == 54

        def end_in_child():
            """Return the exit code of a child that ends its parent's transaction."""
            try:
                with storage.transaction("ward"):
                    child = os.fork()
                    if child:
                        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                os._exit(3)
            except DowiseError:
                os._exit(7)

        assert end_in_child() == 7
        assert append(storage).number == 55


def test_erased_contents_are_in_none_of_the_files(path):
    """Rows of many sizes in several experiments, so that SQLite moves them from page to page."""
    rng = Random(0)
    with opened(path, create=True) as storage:
        for turn in range(120):
            name = f"ward {rng.randrange(3)}"
            sizes = [rng.choice([0, 9, 300, 3000, 9000]) for _ in range(4)]
            append(storage, name, [f"SECRET-{turn}-{i}:" + "s" * sizes[i] for i in range(4)])
            if turn % 40 == 39:
                last = storage.last(name)
                storage.save_snapshot(Snapshot(name, last.number, last.hash, b"SECRET-snapshot"))
        for name in storage.experiments():
            events = storage.read(name)
            chosen = rng.sample(range(1, len(events) + 1), len(events) // 2)
            erased = [events[number - 1] for number in chosen]
            salts = [event.salt.encode() for event in erased]
            texts = [event.payload["word"].partition(":")[0].encode() + b":" for event in erased]
            with storage.transaction(name) as block:
                block.erase(chosen)
            bytes_now = b"".join(contents(path.parent).values())
            assert not [text for text in texts + salts if text in bytes_now]
            assert is_chain(storage.read(name))
            kept = {event.number: event for event in events if event.number not in chosen}
            assert {e.number: e for e in storage.read(name) if not e.is_erased} == kept
        assert b"SECRET-" in bytes_now and b"SECRET-snapshot" not in bytes_now
        assert path.with_name("ward.db-wal").stat().st_size == 0


def test_an_erasure_that_readers_block_can_be_completed_later(filled):
    with opened(filled, timeout=0.2) as storage:
        with closing(sqlite3.connect(filled, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM events").fetchall()
            with raises_code("erasure-incomplete"), storage.transaction("ward") as block:
                block.erase([7])
            assert storage.read("ward")[6].is_erased
            reader.execute("COMMIT")
        with storage.transaction("ward") as block:
            block.erase([7])
        assert filled.with_name("ward.db-wal").stat().st_size == 0


def test_older_tables_are_migrated_once(filled, monkeypatch):
    ran = []

    def step(connection):
        ran.append(connection.exec_driver_sql("SELECT version FROM dowise_schema").scalar())
        connection.exec_driver_sql("CREATE TABLE extra(x)")

    today = sql.VERSION
    monkeypatch.setattr(sql, "VERSION", today + 2)
    monkeypatch.setattr(sql, "MIGRATIONS", {today: step, today + 1: lambda _: 1 / 0})
    before = filled.read_bytes()
    with pytest.raises(ZeroDivisionError):
        open_storage(filled)
    with closing(sqlite3.connect(filled)) as raw:
        assert raw.execute("SELECT version FROM dowise_schema").fetchall() == [(today,)]
        assert not raw.execute("SELECT * FROM sqlite_master WHERE name='extra'").fetchall()
    assert filled.read_bytes() == before
    monkeypatch.setattr(sql, "MIGRATIONS", {today: step, today + 1: lambda _: None})
    with opened(filled) as storage:
        assert append(storage).number == 51
    assert ran == [today, today]
    monkeypatch.setattr(sql, "VERSION", today)
    with raises_code("other-version", f"schema {today + 2}"):
        open_storage(filled)


def die_inside(path):
    with opened(path) as storage, storage.transaction("ward") as block:
        block.append([next_event(block.read()[-1], "ward", "told", "", "ann", {})])
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_dies_in_a_transaction_leaves_no_event_and_no_lock(filled):
    child = FORK.Process(target=die_inside, args=(filled,))
    child.start()
    child.join(30)
    assert child.exitcode == -signal.SIGKILL
    with opened(filled, timeout=5) as storage:
        assert append(storage).number == 51


def test_concurrent_readers_keep_their_connections(filled, monkeypatch):
    made, set_up = [], SqliteStorage.set_up
    monkeypatch.setattr(SqliteStorage, "set_up", lambda *it: (made.append(1), set_up(*it))[1])
    with closing(open_storage(filled)) as storage, ThreadPoolExecutor(20) as pool:
        together = threading.Barrier(20)

        def read(_):
            storage.query(lambda _: together.wait(60))
            return len(storage.read("ward"))

        for _ in range(2):
            assert len({*pool.map(read, range(20))}) == 1
    assert len(made) == 20


def test_a_wal_file_that_a_writer_is_opening_is_not_removed(tmp_path):
    files, wal = SqliteFiles(tmp_path / "ward.db"), tmp_path / "ward.db-wal"
    wal.touch()
    with files.opened_to_write() as is_held:
        assert is_held
        files.drop_own_wal()
        assert wal.exists()
        with files.opened_to_write() as other:
            assert other  # writers do not wait for each other
    files.drop_own_wal()
    assert not wal.exists()
