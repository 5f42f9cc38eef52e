"""Files are written completely or not at all, and read with errors that name the path."""

import gzip
import os
import time

import pytest
from support.errors import raises_code

from dowise._core import files
from dowise._core.files import read_file, remove_stale_temporaries, write_bytes, write_text


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_writing_replaces_a_file(tmp_path):
    write_text(tmp_path / "new.txt", "Σ\r\n")
    assert (tmp_path / "new.txt").read_bytes() == "Σ\r\n".encode()
    write_bytes(tmp_path / "new.txt", b"again")
    assert (tmp_path / "new.txt").read_bytes() == b"again"
    assert names_in(tmp_path) == ["new.txt"]


def test_names_that_end_in_gz_are_compressed(tmp_path):
    write_text(tmp_path / "new.txt.gz", "Σ")
    assert gzip.decompress((tmp_path / "new.txt.gz").read_bytes()) == "Σ".encode()
    assert read_file(tmp_path / "new.txt.gz", str) == "Σ"


@pytest.mark.parametrize("step", ["os.fsync", "Path.replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, step, error):
    path = tmp_path / "belief.json"
    path.write_text("old")

    def fail(*_args):
        raise error

    owner, _, name = step.partition(".")
    monkeypatch.setattr(getattr(files, owner), name, fail)
    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            write_text(path, "new")
    else:
        with raises_code("unwritable-file", str(path), "No space left"):
            write_text(path, "new")
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["belief.json"]


def test_a_full_disk_leaves_the_old_file(tmp_path):
    (tmp_path / "full").symlink_to("/dev/full")
    with raises_code("unwritable-file", "/full", "No space left"):
        write_text(tmp_path / "full", "much")


def test_links_and_modes_are_kept(tmp_path):
    target = tmp_path / "target"
    target.write_text("old")
    target.chmod(0o640)
    (tmp_path / "link").symlink_to(target)
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_new_files_respect_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "new", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


def test_pipes_and_the_longest_names_are_written(tmp_path):
    reader, writer = os.pipe()
    write_text(f"/dev/fd/{writer}", "to a pipe")
    os.close(writer)
    assert os.read(reader, 100) == b"to a pipe"
    os.close(reader)
    write_text(tmp_path / ("日" * 80), "x")
    assert (tmp_path / ("日" * 80)).read_text() == "x"


def test_a_write_protected_file_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "belief.json"
    path.write_text("old")
    monkeypatch.setattr(files.os, "access", lambda *_: False)  # as root everything may be written
    with raises_code("unwritable-file", "Permission denied"):
        write_text(path, "new")
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("path", "code", "mentioned"),
    [
        (None, "invalid-type", "None"),
        ("/no/such/folder/x", "unwritable-file", "no folder"),
        ("a\0b", "unwritable-file", "embedded null"),
    ],
)
def test_invalid_paths_are_refused(path, code, mentioned):
    with raises_code(code, mentioned):
        write_text(path, "x")


def test_stale_temporary_files_are_removed(tmp_path):
    names = [".0123456789ab.draft", ".ba9876543210.draft", "notes.draft"]
    for name in names:
        (tmp_path / name).write_text("")
    old = time.time() - 2 * files._STALE_AFTER
    os.utime(tmp_path / names[0], (old, old))
    os.utime(tmp_path / names[2], (old, old))
    remove_stale_temporaries(tmp_path)
    assert names_in(tmp_path) == sorted(names[1:])
