"""Users who may only read a SQLite store: they see all events and leave no files."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.journal_writers import append
from support.system_users import FORK, OWNER, READER, become_user, only_root, run_in_child

from dowise import DowiseError
from dowise.experiment.storage import open_storage
from dowise.experiment.storage.sqlite import IMMUTABLE, SHARED, Place, SqliteFiles, SqliteStorage
from dowise.experiment.storage.url import locate

pytestmark = [only_root, pytest.mark.slow]  # processes


@pytest.fixture(params=[0o777, 0o755], ids=["shared folder", "folder of the owner"])
def store(request):
    """A store of OWNER with five events, which READER may read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chown(folder, OWNER, OWNER)
        folder.chmod(request.param)
        store = folder / "ward.db"

        def make():
            with opened(store, create=True) as storage:
                append(storage, words="abcde")
            store.chmod(0o644)

        run_in_child(make, OWNER)
        yield store


@contextmanager
def opened(store, create=False):
    storage = open_storage(store, create)
    try:
        yield storage
    finally:
        storage.close()


def count(store):
    """Open a store, and return the number of its events."""
    with opened(store) as storage:
        return len(storage.read("ward"))


def write(store):
    with opened(store) as storage:
        return append(storage).number


def owners(store):
    """Return the owner of each file."""
    return {file.name: file.stat().st_uid for file in store.parent.iterdir()}


@contextmanager
def writing(store):
    """Run a process of the owner that has the store open and writes events on request."""
    connection, remote = FORK.Pipe()

    def work():
        become_user(OWNER, OWNER)
        with opened(store) as storage:
            while remote.recv():
                remote.send(append(storage).number)

    def write_one():
        connection.send(True)
        return connection.recv()

    child = FORK.Process(target=work)
    child.start()
    try:
        yield write_one, child
        if child.is_alive():
            connection.send(False)
    finally:
        child.join(20)
        child.kill()


def test_a_reader_leaves_no_files(store):
    before = store.read_bytes()
    assert run_in_child(lambda: count(store), READER) == 5
    assert owners(store) == {"ward.db": OWNER} and store.read_bytes() == before
    assert run_in_child(lambda: write(store), OWNER) == 6
    assert run_in_child(lambda: count(store), READER) == 6
    message = run_in_child(lambda: write(store), READER)
    assert "can't write to 'ward': the file belongs to " in message and "\n" not in message
    assert owners(store) == {"ward.db": OWNER}


def test_a_reader_sees_the_events_of_a_writer(store):
    connection, remote = FORK.Pipe()

    def count_on_request():
        become_user(READER, READER)
        with opened(store) as storage:
            while remote.recv():
                remote.send(len(storage.read("ward")))

    def count_of_reader():
        connection.send(True)
        return connection.recv()

    reader = FORK.Process(target=count_on_request)
    reader.start()
    try:
        assert count_of_reader() == 5  # from the main file
        with writing(store) as (write_one, _):
            for _ in range(3):
                assert write_one() == count_of_reader()
        assert count_of_reader() == 8
        assert run_in_child(lambda: write(store), OWNER) == 9
        assert count_of_reader() == 9
        connection.send(False)
    finally:
        reader.join(20)
        reader.kill()
    assert {*owners(store).values()} == {OWNER}


def test_events_in_the_wal_file_are_not_ignored(store):
    with writing(store) as (write_one, child):
        write_one()
        os.kill(child.pid, signal.SIGKILL)
        child.join(20)
    wal, shm = (store.with_name(f"ward.db-{part}") for part in ("wal", "shm"))
    assert wal.stat().st_size > 0
    assert run_in_child(lambda: count(store), READER) == 6
    shm.unlink()
    message = run_in_child(lambda: count(store), READER)
    assert "its newest events are in ward.db-wal, which only a user who may write" in message
    assert {*owners(store).values()} == {OWNER} and not shm.exists()
    assert run_in_child(lambda: write(store), OWNER) == 7


def test_a_read_during_a_write_is_repeated(store):
    begun, found = FORK.Event(), []

    def write_then():
        become_user(OWNER, OWNER)
        begun.wait(20)
        write(store)

    def read():
        place = SqliteFiles(store).place()
        assert place.mode == IMMUTABLE

        def work(connection):
            begun.set()
            while not found and SqliteFiles(store).place().state in (None, place.state):
                time.sleep(0.001)
            found.append(connection.exec_driver_sql("SELECT count(*) FROM events").scalar())
            return found[-1]

        with opened(store) as storage:
            return storage.query(work), len(found)

    writer = FORK.Process(target=write_then)
    writer.start()
    assert run_in_child(read, READER) == (6, 2)
    writer.join(20)


def test_a_reader_after_a_writer_leaves_no_files(store):
    def read():
        storage, status = SqliteStorage(locate(store), timeout=0.1), store.stat()
        place = Place(status.st_dev, status.st_ino, SHARED)
        storage._files.place = lambda: place
        with pytest.raises(DowiseError, match="can't read the store"):
            storage.read("ward")

    run_in_child(read, READER)
    assert owners(store) == {"ward.db": OWNER}


@pytest.mark.parametrize("suffix", ["wal", "shm"])
def test_a_file_of_another_user_is_named(store, suffix):
    file = store.with_name(f"ward.db-{suffix}")
    file.touch(0o644)
    os.chown(file, READER, READER)
    file.chmod(0o644)
    message = run_in_child(lambda: write(store), OWNER)
    assert (
        f"can't write to 'ward': ward.db-{suffix} beside it belongs to nobody, and you (" in message
    )
    assert f"ward.db-{suffix})" in message and "chown" in message and "\n" not in message
    os.chown(file, OWNER, OWNER)
    assert run_in_child(lambda: write(store), OWNER) == 6


def test_a_file_that_may_not_be_read(store):
    store.chmod(0o600)
    message = run_in_child(lambda: count(store), READER)
    assert "ward.db belongs to " in message and "may not read it" in message and "\n" not in message


@pytest.mark.parametrize("state", ["closed", "in use", "crashed"])
def test_a_store_on_a_read_only_file_system(tmp_path, state):
    disk = tmp_path / "disk"
    disk.mkdir()
    if not _mounts("-t", "tmpfs", "none", disk):
        pytest.skip("this machine mounts nothing")
    try:
        with opened(disk / "made.db", create=True) as storage:
            append(storage, words="abcde")
            for ending in ("", "-wal", "-shm") if state != "closed" else ():
                if state == "in use" or ending != "-shm":
                    shutil.copy(disk / f"made.db{ending}", disk / f"ward.db{ending}")
        if state == "closed":
            shutil.copy(disk / "made.db", disk / "ward.db")
        assert _mounts("-o", "remount,ro", disk)
        before = sorted(disk.iterdir())
        if state == "crashed":
            with pytest.raises(DowiseError, match="its newest events are in ward.db-wal"):
                count(disk / "ward.db")
        else:
            assert count(disk / "ward.db") == 5
            with pytest.raises(DowiseError, match="its file system is mounted read-only: copy"):
                write(disk / "ward.db")
        assert sorted(disk.iterdir()) == before
    finally:
        subprocess.run(["umount", disk], check=True)


def _mounts(*words):
    return (
        shutil.which("mount")
        and not subprocess.run(["mount", *words], capture_output=True, check=False).returncode
    )
