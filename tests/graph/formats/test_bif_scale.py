"""Large networks and domains: work grows linearly, messages stay short."""

import re
import sys

import numpy as np
import pytest
from support.errors import raises_code

from dowise import CausalGraph, Problem
from dowise.errors import InputSyntaxError
from dowise.graph.formats.bif import (
    BifBlock,
    BifEntry,
    BifVariable,
    Network,
    cpt_of,
    domains_of,
    parse_bif,
    to_bif,
)


def diabetes_like(variables, labels=12, seed=7):
    """Return a chain of variables with two parents each, like the network `diabetes`."""
    rng = np.random.default_rng(seed)
    names = [f"v{i:03}" for i in range(variables)]
    edges = [(names[i - k], names[i]) for i in range(variables) for k in (1, 2) if i >= k]
    graph = CausalGraph(edges, variables=names)
    domains = {name: tuple(f"{i}_0mmol" for i in range(labels)) for name in names}
    cpts = {
        name: rng.dirichlet(np.ones(labels), size=[labels] * len(graph.parents(name)))
        for name in names
    }
    return Network(graph, domains, cpts)


def python_calls(work):
    """Return the number of Python calls, and the result."""
    count = 0

    def note(_frame, event, _what):
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        result = work()
    finally:
        sys.setprofile(before)
    return count, result


def test_numbers_are_not_read_one_by_one():
    network = diabetes_like(variables=20)
    text = to_bif(network)
    parse_bif("variable X { type discrete [ 1 ] { a }; } probability ( X ) { table 1; }")
    calls, read = python_calls(lambda: parse_bif(text))
    numbers = sum(cpt.size for cpt in network.cpts.values())
    # Six calls per row of twelve numbers; reading tokens takes more than twenty per number.
    assert calls < 2 * numbers
    for name, cpt in network.cpts.items():
        np.testing.assert_allclose(read.cpts[name], cpt, rtol=1e-14)


def one_domain(size, extra=""):
    labels = [f"v{i}" for i in range(size)]
    return (
        f"variable X {{ type discrete [ {size} ] {{ {', '.join(labels)}{extra} }}; }}\n"
        "variable Y { type discrete [ 2 ] { a, b }; }\n"
        f"probability ( X ) {{ table {', '.join([repr(1 / size)] * size)}; }}\n"
        "probability ( Y | X ) {\n" + "\n".join(f"({label}) 0.25, 0.75;" for label in labels) + "}"
    )


class CountedLabel(str):
    """A label that counts how often labels are compared."""

    comparisons = 0

    def __eq__(self, other):
        CountedLabel.comparisons += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


def test_reading_tables_compares_each_label_a_few_times():
    size = 1000
    labels = tuple(CountedLabel(f"v{i}") for i in range(size))
    rows = [BifEntry("row", (CountedLabel(label),), [0.25, 0.75]) for label in labels]
    variables = BifVariable("X", size, labels), BifVariable("Y", 2, ("a", "b"))
    CountedLabel.comparisons = 0
    cpt_of(BifBlock("Y", ("X",), rows), domains_of(variables))
    assert 0 < CountedLabel.comparisons <= 5 * size  # a search in lists takes size² / 2


def test_labels_of_a_large_domain_are_found_without_a_search():
    labels = [f"v{i}" for i in range(8_000)]
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", domains={"X": labels})
    assert problem.domains["X"] == tuple(labels)
    assert problem.domains["X"].index(labels[-1]) == len(labels) - 1
    assert problem.intervention(f"do(X={labels[-1]})")["X"] == labels[-1]
    CountedLabel.comparisons = 0
    assert problem.domains["X"].index(CountedLabel(labels[-1])) == len(labels) - 1
    assert 0 < CountedLabel.comparisons < 10
    with pytest.raises(ValueError, match="not in tuple"):
        problem.domains["X"].index("none")


def test_messages_cut_long_lists():
    with raises_code("inconsistent-table", "lists 5001 (v0, v1, ", "(5,001 in all)") as caught:
        parse_bif(one_domain(5_000, extra=", more"))
    assert len(str(caught.value)) < 400
    with raises_code("duplicate-name", "'v7' twice"):
        parse_bif(one_domain(5_000, extra=", v7").replace("[ 5000 ]", "[ 5001 ]"))
    problem = Problem(
        CausalGraph.parse("X -> Y"), "Y", domains={"X": [str(i) for i in range(5_000)]}
    )
    with raises_code("unknown-value", "'x': its values are 0, 1, ", "(5,000 in all)"):
        problem.intervention("do(X=x)")


@pytest.mark.parametrize(
    ("bad", "column"),
    [("0.25 0.x5", 14), ("0.25, , 0.75", 15), ("0.25, 0.75", 19), ("0.25, 0.75}", 15)],
)
def test_a_mistake_in_the_last_of_many_rows_has_its_position(bad, column):
    text = one_domain(5_000)
    cut = text.rindex("(")
    text = text[:cut] + f"(v4999) {bad}"
    with pytest.raises(InputSyntaxError, match=f"BIF, line 5004, column {column}: "):
        parse_bif(text)


def test_rows_may_have_comments_quotes_and_line_breaks():
    text = one_domain(40)
    rows = re.findall(r"\(v\d+\) [^;]+;", text)
    plain = parse_bif(text)
    for change in (
        lambda row: row.replace("(", '( "').replace(")", '" )'),
        lambda row: row.replace(",", " // half\n"),
        lambda row: f"/* {row} */ {row}",
        lambda row: row.replace(" ", "\r\n\t"),
        lambda row: row.replace(", ", " "),
    ):
        changed = text
        for row in rows[10:30]:
            changed = changed.replace(row, change(row))
        np.testing.assert_array_equal(parse_bif(changed).cpts["Y"], plain.cpts["Y"])
