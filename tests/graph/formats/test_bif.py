"""Bayesian networks in BIF."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.errors import raises_code
from support.strategies import graphs

from dowise import CausalGraph
from dowise.errors import InputSyntaxError
from dowise.graph.formats.bif import Network, parse_bif, read_bif, to_bif, write_bif

CHEST = """
network unknown { property author "a; b" ; }
variable tub { type discrete [ 2 ] { yes/* ill */, no }; property position = (1, 2) ; }
variable age { type discrete [ 3 ] { <5, 5-12, 12+ }; }   // labels as in the repository
variable film {
  type discrete[2] { Asy/Patch, >=7.5 };
}
probability ( tub ) { table 0.01, 0.99; }
probability ( age ) { table 0.2 0.3 5e-1; }
probability ( film | tub, age ) {
  (yes, <5)  0.1, 0.9;
  (no, <5)   0.2, 0.8;  /* rows in any order */
  (yes, 12+) 0.5, 0.5;
  (no, 12+)  0.6, 0.4;
  (yes, 5-12) 0.3, 0.7;
  (no, 5-12) 0.4, 0.6;
}
"""


def test_axes_follow_the_sorted_parents():
    network = parse_bif(CHEST)
    assert network.graph == CausalGraph.parse("age -> film; tub -> film")
    assert network.domains == {
        "tub": ("yes", "no"),
        "age": ("<5", "5-12", "12+"),
        "film": ("Asy/Patch", ">=7.5"),
    }
    assert network.cpts["age"].tolist() == [0.2, 0.3, 0.5]
    assert network.cpts["film"].tolist() == [  # [age][tub][film], though the file says tub, age
        [[0.1, 0.9], [0.2, 0.8]],
        [[0.3, 0.7], [0.4, 0.6]],
        [[0.5, 0.5], [0.6, 0.4]],
    ]
    assert all(cpt.dtype == np.float64 and cpt.flags.c_contiguous for cpt in network.cpts.values())


X = "variable X { type discrete [ 2 ] { a, b }; }\n"
Y = "variable Y { type discrete [ 3 ] { 0.5, c, d }; }\n"
Z = "variable Z { type discrete [ 2 ] { 0, 1 }; }\n"
PX = "probability ( X ) { table 0.5, 0.5; }\n"
PY = "probability ( Y ) { table 0.2, 0.3, 0.5; }\n"


def given_x_and_y(block):
    """Return a network in which Z has the parents X and Y, and this block."""
    return X + Y + Z + PX + PY + f"probability ( Z | X, Y ) {{ {block} }}"


def test_order_of_the_numbers_in_a_table():
    block = "table .1 .2 .3 .4 .5 .6, .9 .8 .7 .6 .5 .4;"
    assert parse_bif(given_x_and_y(block)).cpts["Z"].tolist() == [
        [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]],
        [[0.4, 0.6], [0.5, 0.5], [0.6, 0.4]],
    ]


def test_default_fills_missing_rows():
    block = "(a, c) 1, 0; default .25, .75; (b, 0.5) 0, 1;"
    cpt = parse_bif(given_x_and_y(block)).cpts["Z"]
    assert cpt[0].tolist() == [[0.25, 0.75], [1, 0], [0.25, 0.75]]
    assert cpt[1].tolist() == [[0, 1], [0.25, 0.75], [0.25, 0.75]]


def test_the_first_version_of_the_format_is_read():
    network = parse_bif("""network "Dog-Problem" { //5 variables
        property "credal-set constant-density-bounded 1.1" ;
    }
    variable "light-on" { type discrete[2] { "true" "false" }; property "position = (2, 1)" ; }
    variable "family-out" { type discrete[2] { "true" "not so" }; }
    probability ( "light-on" "family-out" ) { table 0.6 0.05 0.4 0.95 ; }
    probability ( "family-out" ) { table 0.15 0.85 ; }""")
    assert network.graph == CausalGraph.parse("family-out -> light-on")
    assert network.domains["family-out"] == ("true", "not so")
    assert network.cpts["light-on"].tolist() == [[0.6, 0.4], [0.05, 0.95]]


def test_only_rounded_rows_are_normalised():
    third = parse_bif(Y + "probability ( Y ) { table 0.333, 0.333, 0.3335; }").cpts["Y"]
    assert abs(third.sum() - 1) < 1e-15
    assert third.tolist() == (np.array([0.333, 0.333, 0.3335]) / 0.9995).tolist()
    exact = [0.1, 0.7, 0.2 - 1e-13]
    unchanged = parse_bif(Y + f"probability ( Y ) {{ table {', '.join(map(repr, exact))}; }}")
    assert unchanged.cpts["Y"].tolist() == exact


NAMES = st.sampled_from(
    [
        "a b",
        'say "x"',
        "\\",
        "größe",
        "<5",
        "12+",
        "Asy/Patch",
        "//x",
        "a/*b",
        "0.5",
        "-",
        "|",
        ",",
        "table",
        "default",
        "property",
        "variable",
        "network",
        "type",
        "two\nlines",
        "{",
        "'",
    ]
)


@st.composite
def networks(draw):
    plain = draw(graphs(max_size=4, bidirected=False))
    size = len(plain)
    new = draw(st.lists(NAMES, min_size=size, max_size=size, unique=True))
    name = dict(zip(plain, new, strict=True))
    graph = CausalGraph([(name[a], name[b]) for a, b in plain.directed_edges], variables=new)
    labels = st.lists(NAMES | st.text(), min_size=1, max_size=3, unique=True).map(tuple)
    domains = {name: draw(labels) for name in new}
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    cpts = {}
    for variable in graph.variables:
        shape = [len(domains[name]) for name in (*graph.parents(variable), variable)]
        # A small concentration brings numbers such as 1e-300 and 0.
        numbers = rng.gamma(draw(st.sampled_from([0.01, 1])), size=shape) + 1e-300
        cpts[variable] = numbers / numbers.sum(axis=-1, keepdims=True)
    return Network(graph, domains, cpts)


def assert_same(network, expected):
    assert network.graph == expected.graph and network.domains == expected.domains
    assert network.cpts.keys() == expected.cpts.keys()
    for name in network.cpts:
        np.testing.assert_array_equal(network.cpts[name], expected.cpts[name], strict=True)


@settings(deadline=None)  # the first example builds the parser
@given(networks())
def test_networks_round_trip_bit_for_bit(network):
    assert_same(parse_bif(to_bif(network)), network)


def test_networks_are_written_to_files_and_read_back(tmp_path):
    network = parse_bif(CHEST)
    write_bif(network, tmp_path / "chest.bif")
    assert_same(read_bif(tmp_path / "chest.bif"), network)
    with raises_code("file-not-found", "nowhere.bif"):
        read_bif(tmp_path / "nowhere.bif")
    with raises_code("unwritable-file", "chest.bif"):
        write_bif(network, tmp_path / "no folder" / "chest.bif")


def test_bidirected_edges_are_refused():
    network = Network(CausalGraph.parse("A <-> B"), {"A": ("0",), "B": ("0",)}, {})
    with raises_code("bidirected-edge", "A <-> B"):
        to_bif(network)


ROWS = "(a,0.5) 1,0; (a,c) 1,0; (a,d) 1,0; (b,0.5) 1,0; (b,c) 1,0; "


@pytest.mark.parametrize(
    ("text", "code", "mentioned"),
    [
        (X + X + PX, "duplicate-name", "'X' is declared twice"),
        (X + PX + PX, "duplicate-name", "probability of 'X' is defined twice"),
        (X + PX + Y + "probability ( Y | X, X ) { }", "duplicate-name", "parent 'X'"),
        (X + "probability ( X ) { table 1e999, 0; }", "invalid-number", "P(X) = inf"),
        (given_x_and_y("table 1, 0;"), "inconsistent-table", "2 numbers instead of 12, for 6 rows"),
        (given_x_and_y("(a) 1, 0;"), "inconsistent-table", "Z has 2 parents, not 1"),
        (given_x_and_y(ROWS), "missing-value", "P(Z | X=b, Y=d)"),
        (given_x_and_y("(b, d) 1, 0; (b, d) 1, 0;"), "duplicate-name", "P(Z | X=b, Y=d)"),
        (
            given_x_and_y("(a, d) 1, 0; table 1 1 1 1 1 1 0 0 0 0 0 0;"),
            "duplicate-name",
            "P(Z | X=a, Y=d)",
        ),
        (given_x_and_y(ROWS + "(b,d) 1, 0.0011;"), "invalid-number", "(sum 1.0011)"),
        (given_x_and_y("(a, c) -1, 2; default 1, 0;"), "invalid-number", "P(Z | X=a, Y=c)"),
    ],
)
def test_invalid_tables_are_refused(text, code, mentioned):
    with raises_code(code, mentioned):
        parse_bif(text)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("hello", 1, 1, "found 'hello', expected 'network', 'probability', 'variable' or the end"),
        (X + "probability ( X ) { tabel 1; }", 2, 21, "found 'tabel', expected .*'table'"),
        (X + "probability ( X ) { table 1, x; }", 2, 30, "found 'x;', expected a number"),
        (X + "probability ( X ) { table 1, 0 }", 2, 32, "found '}', expected ',', ';' or a number"),
        ("variable X { type continuous; }", 1, 19, "found 'continuous;', expected 'discrete'"),
        ("variable X { type discrete [ b ] { }; }", 1, 30, "found 'b', expected a whole number"),
        ("variable X { }", 1, 14, "found '}', expected 'property' or 'type'"),
        (X + "probability ( X ", 2, 17, "the text ends, expected"),
    ],
)
def test_a_syntax_error_has_its_position(text, line, column, message):
    with pytest.raises(
        InputSyntaxError, match=f"BIF, line {line}, column {column}: {message}"
    ) as got:
        parse_bif(text)
    assert (got.value.line, got.value.column) == (line, column)
