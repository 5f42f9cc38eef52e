"""Files that are no text get advice that fits them."""

import io
import sqlite3
from contextlib import closing

import pytest

from dowise._core.files import read_file
from dowise.errors import DowiseError


def _database(path):
    with closing(sqlite3.connect(path)) as database:
        database.execute("create table t (x)")
    return path.read_bytes()


def _picture(kind):
    from matplotlib.figure import Figure

    drawn = io.BytesIO()
    Figure().savefig(drawn, format=kind)
    return drawn.getvalue()


def _parquet():
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table({"X": ["0", "1"]}), sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "ward.toml",
            _database,
            "a SQLite database, perhaps a store of experiments, not a tex",
        ),
        ("a.csv", lambda _: _picture("png"), r"is a picture \(PNG\): pass a text file"),
        ("a.csv", lambda _: _picture("pdf"), "is a PDF: pass a text file"),
        ("a.csv", lambda _: b"\xff\xd8\xff\xe0 JFIF", r"is a picture \(JPEG\)"),
        ("a.csv", lambda _: _parquet(), "a Parquet table: use a name that ends in .parquet"),
        ("a.xlsx", lambda _: b"PK\x03\x04...", "is a spreadsheet: save the sheet as CSV"),
        ("a.csv", lambda _: b"PK\x03\x04...", "is compressed with zip"),
        ("a.csv", lambda _: b"X\n\xff", "byte 3 is not UTF-8 text: save the file as UTF-8"),
    ],
)
def test_what_a_file_is_instead(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content(tmp_path / "made.db"))
    with pytest.raises(DowiseError, match=message):
        read_file(path, str)


def test_a_text_that_begins_like_another_kind_is_a_text(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("PAR1 -> Y")
    assert read_file(path, str) == "PAR1 -> Y"
