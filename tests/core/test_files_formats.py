"""Files in another format than text are refused with advice that fits the format."""

import io
import sqlite3
from contextlib import closing

import pytest
from support.errors import raises_code

from dowise._core.files import read_file


def sqlite_database(path):
    with closing(sqlite3.connect(path)) as database:
        database.execute("create table t (x)")
    return path.read_bytes()


def figure(extension):
    from matplotlib.figure import Figure

    stream = io.BytesIO()
    Figure().savefig(stream, format=extension)
    return stream.getvalue()


def parquet_table():
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table({"X": ["0", "1"]}), sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("name", "content", "code", "mentioned"),
    [
        ("ward.toml", sqlite_database, "unsupported-format", "SQLite"),
        ("a.csv", lambda _: figure("png"), "unsupported-format", "PNG"),
        ("a.csv", lambda _: figure("pdf"), "unsupported-format", "PDF"),
        ("a.csv", lambda _: b"\xff\xd8\xff\xe0 JFIF", "unsupported-format", "JPEG"),
        ("a.csv", lambda _: parquet_table(), "unsupported-format", ".parquet"),
        ("a.xlsx", lambda _: b"PK\x03\x04...", "unsupported-format", "CSV"),
        ("a.csv", lambda _: b"PK\x03\x04...", "unsupported-format", "zip"),
        ("a.csv", lambda _: b"X\n\xff", "invalid-encoding", "byte 3"),
    ],
)
def test_other_formats_are_refused(tmp_path, name, content, code, mentioned):
    path = tmp_path / name
    path.write_bytes(content(tmp_path / "database.db"))
    with raises_code(code, mentioned):
        read_file(path, str)


def test_a_text_may_begin_like_another_format(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("PAR1 -> Y")
    assert read_file(path, str) == "PAR1 -> Y"
