"""Bayesian networks in BIF."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import graphs

from dowise import CausalGraph, DowiseError
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
    """A network in which Z has the parents X and Y, and this block."""
    return X + Y + Z + PX + PY + f"probability ( Z | X, Y ) {{ {block} }}"


def test_a_table_runs_through_the_last_parent_fastest_and_the_variable_slowest():
    block = "table .1 .2 .3 .4 .5 .6, .9 .8 .7 .6 .5 .4;"
    assert parse_bif(given_x_and_y(block)).cpts["Z"].tolist() == [
        [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]],
        [[0.4, 0.6], [0.5, 0.5], [0.6, 0.4]],
    ]


def test_default_fills_the_rows_that_are_not_given():
    block = "(a, c) 1, 0; default .25, .75; (b, 0.5) 0, 1;"
    cpt = parse_bif(given_x_and_y(block)).cpts["Z"]
    assert cpt[0].tolist() == [[0.25, 0.75], [1, 0], [0.25, 0.75]]
    assert cpt[1].tolist() == [[0, 1], [0.25, 0.75], [0.25, 0.75]]


def test_the_first_version_of_the_format():
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


def test_rounded_rows_are_normalised_and_good_ones_left_alone():
    third = parse_bif(Y + "probability ( Y ) { table 0.333, 0.333, 0.3335; }").cpts["Y"]
    assert abs(third.sum() - 1) < 1e-15
    assert third.tolist() == (np.array([0.333, 0.333, 0.3335]) / 0.9995).tolist()
    exact = [0.1, 0.7, 0.2 - 1e-13]
    kept = parse_bif(Y + f"probability ( Y ) {{ table {', '.join(map(repr, exact))}; }}")
    assert kept.cpts["Y"].tolist() == exact


NAMES = st.sampled_from([
    "a b", 'say "x"', "\\", "größe", "<5", "12+", "Asy/Patch", "//x", "a/*b", "0.5", "-", "|", ",",
    "table", "default", "property", "variable", "network", "type", "two\nlines", "{", "'",
])  # fmt: skip


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


def assert_same(one, other):
    assert one.graph == other.graph
    assert one.domains == other.domains
    assert one.cpts.keys() == other.cpts.keys()
    for name in one.cpts:
        np.testing.assert_array_equal(one.cpts[name], other.cpts[name], strict=True)


@settings(deadline=None)  # the first example builds the parser
@given(networks())
def test_what_is_written_reads_back_to_the_last_bit(network):
    assert_same(parse_bif(to_bif(network)), network)


def test_files(tmp_path):
    network = parse_bif(CHEST)
    write_bif(network, tmp_path / "chest.bif")
    assert_same(read_bif(tmp_path / "chest.bif"), network)
    with pytest.raises(DowiseError, match=r"nowhere\.bif: there is no such file"):
        read_bif(tmp_path / "nowhere.bif")
    with pytest.raises(DowiseError, match=r"chest\.bif: can't be written"):
        write_bif(network, tmp_path / "no folder" / "chest.bif")


def test_bidirected_edges_do_not_fit_into_bif():
    network = Network(CausalGraph.parse("A <-> B"), {"A": ("0",), "B": ("0",)}, {})
    with pytest.raises(DowiseError, match="A <-> B: a Bayesian network has no bidirected edges"):
        to_bif(network)


ROWS = "(a,0.5) 1,0; (a,c) 1,0; (a,d) 1,0; (b,0.5) 1,0; (b,c) 1,0; "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("network n { }", "the network is empty"),
        ("variable X { type discrete [ 3 ] { a, b }; }" + PX, r"'X'.*\[ 3 \].*lists 2 \(a, b\)"),
        ("variable X { type discrete [ 2 ] { a, a }; }" + PX, "'X' lists the label 'a' twice"),
        (X + X + PX, "'X' is declared twice"),
        (X + PX + PX, "probability of 'X' is defined twice"),
        (X + Y + PX, r"'Y' has no probability block: add 'probability \( Y \)"),
        (X + "probability ( x ) { table 1, 0; }", r"unknown variable 'x' \(did you mean 'X'\?\)"),
        (X + PX + Y + "probability ( Y | Xx ) { }", r"'Y': unknown parent 'Xx' \(did you mean 'X'"),
        (X + PX + Y + "probability ( Y | X, X ) { }", "'Y': the parent 'X' is listed twice"),
        (X + "probability ( X ) { table 0.5; }", r"the table of P\(X\) has 1 numbers instead of 2"),
        (X + "probability ( X ) { (a) .5, .5; }", r"row \(a\): X has 0 parents.*'table"),
        (X + "probability ( X ) { table .4, .5; }", r"P\(X\) = 0.4, 0.5 \(sum 0.9\) must sum to 1"),
        (X + "probability ( X ) { table -.5, 1.5; }", r"P\(X\) = -0.5, 1.5 .*negative"),
        (X + "probability ( X ) { table 1e999, 0; }", r"P\(X\) = inf.*must sum to 1"),
        (X + "probability ( X ) { }", r"P\(X\) is missing"),
        (X + "probability ( X ) { table 1, 0; table 1, 0; }", r"P\(X\) is defined twice"),
        (X + "probability ( X | X ) { default 1, 0; }", "X -> X: a variable can't be its own"),
        (
            given_x_and_y("table 1, 0;"),
            r"table of P\(Z\) has 2 numbers instead of 12, for 6 rows of 2",
        ),
        (given_x_and_y("default 1, 0, 0;"), r"default of P\(Z\) has 3 numbers instead of 2"),
        (given_x_and_y("(a, c) 1;"), r"P\(Z \| X=a, Y=c\) has 1 numbers instead of 2, .*\(0, 1\)"),
        (given_x_and_y("(a) 1, 0;"), r"P\(Z\), row \(a\): Z has 2 parents, not 1: .* X, Y"),
        (given_x_and_y("(A, c) 1, 0;"), r"P\(Z\).*X has no label 'A' \(did you mean 'a'\?\)"),
        (given_x_and_y("(c, a) 1, 0;"), r"X has no label 'c'.*its labels are a, b"),
        (given_x_and_y(ROWS), r"P\(Z \| X=b, Y=d\) is missing: add this row, or a 'default'"),
        (given_x_and_y("(b, d) 1, 0; (b, d) 1, 0;"), r"P\(Z \| X=b, Y=d\) is defined twice"),
        (
            given_x_and_y("(a, d) 1, 0; table 1 1 1 1 1 1 0 0 0 0 0 0;"),
            r"P\(Z \| X=a, Y=d\) is defined twice",
        ),
        (given_x_and_y(ROWS + "(b,d) 1, 0.0011;"), r"P\(Z \| X=b, Y=d\) .*\(sum 1.0011\)"),
        (given_x_and_y("(a, c) -1, 2; default 1, 0;"), r"P\(Z \| X=a, Y=c\) .*negative"),
    ],
)
def test_each_mistake_is_named(text, message):
    with pytest.raises(DowiseError, match=message):
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
def test_syntax_errors_say_where_and_what(text, line, column, message):
    with pytest.raises(
        InputSyntaxError, match=f"BIF, line {line}, column {column}: {message}"
    ) as got:
        parse_bif(text)
    assert (got.value.line, got.value.column) == (line, column)
