"""Files are written whole or not at all."""

import os
import re

import pytest

from dowise import DowiseError
from dowise._core import files
from dowise._core.files import write_bytes, write_text


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_written_is_there_and_nothing_else(tmp_path):
    write_text(tmp_path / "new.txt", "Σ\r\n")
    assert (tmp_path / "new.txt").read_bytes() == "Σ\r\n".encode()
    write_bytes(tmp_path / "new.txt", b"again")
    assert (tmp_path / "new.txt").read_bytes() == b"again"
    assert names_in(tmp_path) == ["new.txt"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch, step, error):
    path = tmp_path / "belief.json"
    path.write_text("old")

    def fail(*_args):
        raise error

    if step == "fsync":
        monkeypatch.setattr(files.os, "fsync", fail)
    else:
        monkeypatch.setattr(files.Path, "replace", fail)
    expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else DowiseError
    with pytest.raises(expected, match=None if expected is KeyboardInterrupt else "No space left"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["belief.json"]


def test_a_full_disk_is_named_with_the_path(tmp_path):
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(DowiseError, match="/full: can't be written .No space left"):
        write_text(tmp_path / "full", "much")


def test_a_link_stays_a_link_and_modes_stay(tmp_path):
    target = tmp_path / "target"
    target.write_text("old")
    target.chmod(0o640)
    (tmp_path / "link").symlink_to(target)
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_new_file_has_the_mode_that_the_user_wants(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "new", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


def test_a_pipe_and_the_longest_name_are_written(tmp_path):
    reader, writer = os.pipe()
    write_text(f"/dev/fd/{writer}", "to a pipe")
    os.close(writer)
    assert os.read(reader, 100) == b"to a pipe"
    os.close(reader)
    write_text(tmp_path / ("日" * 80), "x")
    assert (tmp_path / ("日" * 80)).read_text() == "x"


def test_a_write_protected_file_stays(tmp_path, monkeypatch):
    path = tmp_path / "belief.json"
    path.write_text("old")
    monkeypatch.setattr(files.os, "access", lambda *_: False)  # as root everything may be written
    with pytest.raises(DowiseError, match="Permission denied"):
        write_text(path, "new")
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("path", "message"),
    [(None, "None is not a path"), ("/no/such/folder/x", "no folder"), ("a\0b", "embedded null")],
)
def test_a_bad_path_is_explained(path, message):
    with pytest.raises(DowiseError, match=re.escape(message)):
        write_text(path, "x")
