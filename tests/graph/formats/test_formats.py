"""Formats of graph files: detection by ending or content, round trips, and errors."""

import gzip
import os
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.errors import raises_code
from support.strategies import graphs

from dowise import CausalGraph
from dowise.errors import InputSyntaxError
from dowise.graph.formats import Structure, read_structure

AWKWARD = [
    "a b",
    " x",
    'say "x"',
    "back\\slash",
    '\\"',
    "\\",
    "\\n",
    "two\nlines",
    "cr\r",
    "größe",
    "变量",
    "1",
    "-1.5",
    "1a",
    "a.b",
    "a-b",
    "Y'",
    "->",
    "A -> B",
    "<b>",
    "[]",
    "()",
    "{",
    ";",
    "#",
    "//x",
    "/*",
    "&amp;",
    "node",
    "Node",
    "edge",
    "graph",
    "digraph",
    "subgraph",
    "strict",
    "dag",
    "latent",
    "table",
    "default",
    "property",
    "variable",
    "\u00a0x",
    "x\u2028",
    "\x00",
    "'",
]


@st.composite
def renamed_graphs(draw):
    """Draw a graph with awkward names."""
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
def test_formats_round_trip(write, read, graph):
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
def test_formats_are_detected_by_the_ending(tmp_path, name, text):
    (tmp_path / name).write_bytes(text.encode())
    structure = read_structure(tmp_path / name)
    assert structure.graph == CausalGraph.parse("X -> Y")
    assert read_structure(str(tmp_path / name)) == structure
    assert CausalGraph.read(tmp_path / name) == structure.graph
    has_domains = name.endswith(".bif")
    assert structure.domains == ({"X": ("low", "high"), "Y": ("0", "1")} if has_domains else {})


GML = CausalGraph.parse("X -> Y").to_gml()


@pytest.mark.parametrize("name", ["g.graph", "g", "g.model", "g.TXT.gz"])
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
def test_formats_are_detected_by_the_content(tmp_path, name, text, has_roles):
    content = text.encode()
    packed = gzip.compress(content) if name.endswith(".gz") else content
    (tmp_path / name).write_bytes(packed)
    structure = read_structure(tmp_path / name)
    assert structure.graph == CausalGraph.parse("X -> Y")
    assert structure.outcomes == (("Y",) if has_roles else ())
    assert bool(structure.domains) == ("discrete" in text)


@pytest.mark.parametrize("name", ["g.bif.gz", "g.BIF.GZ", "g.bif"])
def test_files_may_be_compressed(tmp_path, name):
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
    ("name", "content", "code", "mentioned"),
    [
        ("g.png", b"x", "unsupported-format", "the ending '.png' is unknown"),
        ("graph", b"A, B", "unsupported-format", "it has no ending"),
        ("g.bif", b"digraph { A -> B }", "syntax-error", "this looks like DOT"),
        ("g.dagitty", BIF.encode(), "syntax-error", "this looks like BIF"),
        ("g.gml", b"digraph { A -> B }", "syntax-error", "this looks like DOT"),
        ("g.bif", b"PK\x03\x04rest", "unsupported-format", "zip"),
        ("g.bif.gz", PACKED[:40], "damaged-file", "truncated"),
        ("g.bif.gz", PACKED + b"?", "damaged-file", "damaged"),
        ("g.bif.gz", gzip.compress(PACKED, mtime=0), "invalid-encoding", "byte 2"),
        ("g.bif", b"", "empty-file", "empty"),
    ],
)
def test_invalid_files_are_refused_with_their_name(tmp_path, name, content, code, mentioned):
    (tmp_path / name).write_bytes(content)
    with raises_code(code, name, mentioned) as caught:
        read_structure(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_invalid_paths_are_refused(tmp_path):
    for name in ("g.txt", "g.unknown"):
        with raises_code("file-not-found", name):
            read_structure(tmp_path / name)
    with raises_code("not-a-file", tmp_path.name):
        read_structure(tmp_path)


def test_files_that_are_too_large_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("dowise._core.files.MAX_BYTES", 2**20)
    (tmp_path / "g.txt.gz").write_bytes(gzip.compress(b"A -> B\n" + b" " * 2**20))
    for path in (tmp_path / "g.txt.gz", "/dev/zero"):
        with raises_code("too-large", str(path)):
            CausalGraph.read(path)


def test_pipes_are_read_and_empty_devices_are_refused():
    reader, writer = os.pipe()
    os.write(writer, b"dag { X -> Y }")
    os.close(writer)
    assert CausalGraph.read(f"/dev/fd/{reader}") == CausalGraph.parse("X -> Y")
    os.close(reader)
    with raises_code("empty-file", "/dev/null"):
        CausalGraph.read("/dev/null")


def test_a_syntax_error_has_the_file_and_the_position(tmp_path):
    (tmp_path / "g.dot").write_text("digraph {\n A -- B }")
    with pytest.raises(InputSyntaxError, match=r"^.*g\.dot: DOT, line 2, column 4: ") as caught:
        read_structure(tmp_path / "g.dot")
    assert (caught.value.line, caught.value.column) == (2, 4)


def test_importing_formats_does_not_load_parsers():
    script = (
        "import sys, dowise.graph.formats\n"
        "print({'lark', 'networkx', 'numpy'} & {*sys.modules} or 'none')"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "none"
