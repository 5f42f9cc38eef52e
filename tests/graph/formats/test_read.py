"""Reading files by their ending or content, and the round trip that every format owes."""

import gzip
import os
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.strategies import graphs

from dowise import CausalGraph, DowiseError
from dowise.errors import InputSyntaxError
from dowise.graph.formats import Structure, read_structure

AWKWARD = [
    "a b", " x", 'say "x"', "back\\slash", '\\"', "\\", "\\n", "two\nlines", "cr\r", "größe",
    "变量", "1", "-1.5", "1a", "a.b", "a-b", "Y'", "->", "A -> B", "<b>", "[]", "()", "{", ";", "#",
    "//x", "/*", "&amp;", "node", "Node", "edge", "graph", "digraph", "subgraph", "strict", "dag",
    "latent", "table", "default", "property", "variable", "\u00a0x", "x\u2028", "\x00", "'",
]  # fmt: skip


@st.composite
def renamed_graphs(draw):
    """A random graph under awkward names."""
    plain = draw(graphs(max_size=5))
    names = st.sampled_from(AWKWARD) | st.text(min_size=1).filter(str.strip)
    new = draw(st.lists(names, min_size=len(plain), max_size=len(plain), unique=True))
    name = dict(zip(plain, new, strict=True))
    return CausalGraph(
        [(name[a], name[b]) for a, b in plain.directed_edges],
        [(name[a], name[b]) for a, b in plain.bidirected_edges],
        new,
    )


@pytest.mark.parametrize(
    ("write", "read"),
    [
        pytest.param(CausalGraph.to_text, CausalGraph.parse, id="text"),
        pytest.param(CausalGraph.to_networkx, CausalGraph.from_networkx, id="networkx"),
        pytest.param(CausalGraph.to_gml, CausalGraph.from_gml, id="gml"),
        pytest.param(CausalGraph.to_dot, CausalGraph.from_dot, id="dot"),
        pytest.param(CausalGraph.to_dagitty, CausalGraph.from_dagitty, id="dagitty"),
    ],
)
@settings(deadline=None)  # the first example builds the parser
@given(graph=renamed_graphs())
@example(graph=CausalGraph(variables=AWKWARD))
@example(graph=CausalGraph(pairwise(AWKWARD)))
def test_what_is_written_reads_back(write, read, graph):
    assert read(write(graph)) == graph


BIF = """
variable X { type discrete [ 2 ] { low, high }; }
variable Y { type discrete [ 2 ] { 0, 1 }; }
probability ( X ) { table 0.5, 0.5; }
probability ( Y | X ) { (low) 0.1, 0.9; (high) 0.2, 0.8; }
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.txt", "X -> Y"),
        ("g.graph", "X -> Y"),
        ("g.dot", "digraph { X -> Y }"),
        ("g.GV", "digraph { X -> Y }"),
        ("g.gml", CausalGraph.parse("X -> Y").to_gml()),
        ("g.dagitty", "dag { X -> Y }"),
        ("my.g.bif", BIF),
        ("mark.txt", "\ufeffX -> Y\r\n"),
    ],
)
def test_the_ending_tells_the_format(tmp_path, name, text):
    (tmp_path / name).write_bytes(text.encode())
    structure = read_structure(tmp_path / name)
    assert structure.graph == CausalGraph.parse("X -> Y")
    assert read_structure(str(tmp_path / name)) == structure
    assert CausalGraph.read(tmp_path / name) == structure.graph
    has_domains = name.endswith(".bif")
    assert structure.domains == ({"X": ("low", "high"), "Y": ("0", "1")} if has_domains else {})


GML = CausalGraph.parse("X -> Y").to_gml()


@pytest.mark.parametrize("name", ["g.txt", "g.graph", "g", "g.model", "g.TXT.gz", "g.gz"])
@pytest.mark.parametrize(
    ("text", "has_roles"),
    [
        ("X -> Y", False),
        ("# mine\r\n\r\nX -> Y # yours", False),
        ('dag {\nbb="0,0,1,1"\nX [exposure]\nY [outcome]\nX -> Y\n}\n', True),
        ('/* mine */ DAG "my model" { X [e] Y [o] X -> Y }', True),
        ("\ufeff// mine\ndigraph G { X -> Y }", False),
        ("strict digraph{X->Y}", False),
        (GML, False),
        ('Creator "me"\nVersion 1\n' + GML, False),
        (BIF, False),
        ("network unknown {\n}" + BIF, False),
    ],
)
def test_the_content_tells_the_format_where_the_ending_does_not(tmp_path, name, text, has_roles):
    content = text.encode()
    packed = gzip.compress(content) if name.endswith(".gz") else content
    (tmp_path / name).write_bytes(packed)
    structure = read_structure(tmp_path / name)
    assert structure.graph == CausalGraph.parse("X -> Y")
    assert structure.outcomes == (("Y",) if has_roles else ())
    assert bool(structure.domains) == ("discrete" in text)


@pytest.mark.parametrize("name", ["g.bif.gz", "g.BIF.GZ", "g.bif"])
def test_a_packed_file_is_read_whatever_its_name(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(BIF.encode()))
    assert CausalGraph.read(tmp_path / name) == CausalGraph.parse("X -> Y")
    (tmp_path / name).write_bytes(BIF.encode())  # unpacked on the way, as browsers do
    assert CausalGraph.read(tmp_path / name) == CausalGraph.parse("X -> Y")


def test_dagitty_keeps_the_roles(tmp_path):
    (tmp_path / "g.dagitty").write_text("dag { X [e] Y [o] U [u] X <- U -> Y }")
    assert read_structure(tmp_path / "g.dagitty") == Structure(
        CausalGraph.parse("X <-> Y"), {}, ("X",), ("Y",), ("U",)
    )


PACKED = gzip.compress(BIF.encode(), mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "g.png",
            b"x",
            "the ending '.png' is unknown and its .*; supported endings are .txt, .graph",
        ),
        (
            "graph",
            b"A, B",
            "it has no ending and its content is not a graph.* supported endings are ",
        ),
        ("g.toml", b'graph = "A -> B"', "the ending '.toml' is unknown and its content is not a "),
        ("g.csv.gz", b"A,B\n0,1\n", "the ending '.csv' is unknown"),
        (
            "g.bif",
            b"digraph { A -> B }",
            "BIF, line 1, column 1: .*; this looks like DOT: rename ",
        ),
        (
            "g.dot",
            b"dag { A <-> B }",
            "DOT, line 1, column 1: .*; this looks like dagitty: rename ",
        ),
        ("g.dagitty", BIF.encode(), "dagitty, line 2, .*; this looks like BIF: rename the"),
        ("g.gml", b"digraph { A -> B }", "GML.*; this looks like DOT"),
        ("g.dot", b"A -> B", "DOT, line 1, column 1: found 'A', expected 'digraph'$"),
        ("g.txt", b"digraph { A -> }", "DOT, line 1, column 16: found '}', expected"),
        ("g.txt", b"dag { S [selected] }", "dagitty: S is tagged 'selected'"),
        ("g.txt", "A -> B".encode("utf-16"), "byte 1 is not UTF-8 text, it looks like UTF-16: "),
        ("g.bif", b"PK\x03\x04rest", " is compressed with zip: decompress it, or use gzip"),
        ("g.bif.gz", PACKED[:40], "the compressed file is truncated: copy it again"),
        (
            "g.bif.gz",
            PACKED[:40] + b"?" + PACKED[41:],
            "the compressed file is damaged: copy it again",
        ),
        ("g.bif.gz", PACKED + b"?", "the compressed file is damaged"),
        ("g.bif.gz", gzip.compress(b"", mtime=0), "the file is empty"),
        ("g.bif.gz", gzip.compress(PACKED, mtime=0), "byte 2 is not UTF-8 text"),
        ("g.txt", b"A -> \xff", "byte 6 is not UTF-8 text: save the file as UTF-8"),
        ("g.bif", b"", "the file is empty"),
        ("g.dot", b" \n\t\n", "the file is empty"),
        ("g.txt", b"A -> B -> A", "the graph has a cycle"),
    ],
)
def test_unreadable_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DowiseError, match=f"{name}:? ?{message}") as caught:
        read_structure(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_packed_file_that_never_ends_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("dowise._core.files.MAX_BYTES", 2**20)
    (tmp_path / "g.txt.gz").write_bytes(gzip.compress(b"A -> B\n" + b" " * 2**20))
    with pytest.raises(DowiseError, match=r"g\.txt\.gz: larger than 256 MB when decompressed"):
        CausalGraph.read(tmp_path / "g.txt.gz")
    with pytest.raises(DowiseError, match="/dev/zero yields more than 256 MB: use a file instead"):
        CausalGraph.read("/dev/zero")


def test_a_pipe_is_read_and_a_device_without_content_is_empty():
    reader, writer = os.pipe()
    os.write(writer, b"dag { X -> Y }")
    os.close(writer)
    assert CausalGraph.read(f"/dev/fd/{reader}") == CausalGraph.parse("X -> Y")
    os.close(reader)
    with pytest.raises(DowiseError, match="/dev/null: the file is empty"):
        CausalGraph.read("/dev/null")


@pytest.mark.parametrize("name", ["g.txt", "g.unknown"])
def test_a_missing_file(tmp_path, name):
    with pytest.raises(DowiseError, match=f"{name}: there is no such file"):
        read_structure(tmp_path / name)


def test_a_folder(tmp_path):
    with pytest.raises(DowiseError, match=f"{tmp_path.name} is a folder"):
        read_structure(tmp_path)


def test_a_syntax_error_names_the_file_and_keeps_its_place(tmp_path):
    (tmp_path / "g.dot").write_text("digraph {\n A -- B }")
    with pytest.raises(InputSyntaxError, match=r"^.*g\.dot: DOT, line 2, column 4: ") as caught:
        read_structure(tmp_path / "g.dot")
    assert (caught.value.line, caught.value.column) == (2, 4)


def test_heavy_libraries_wait_until_they_are_needed():
    script = (
        "import sys, dowise.graph.formats\n"
        "print({'lark', 'networkx', 'numpy'} & {*sys.modules} or 'none')"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "none"
