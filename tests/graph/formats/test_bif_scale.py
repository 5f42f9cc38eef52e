"""Networks as large as the public ones: a quarter of a million numbers, domains of thousands."""

import re
import sys
import time

import numpy as np
import pytest

from dowise import CausalGraph, DowiseError, Problem
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


def diabetes_like(variables=120, labels=12, seed=7):
    """A chain of variables with two parents each, as the network `diabetes` has them."""
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
    """How many functions of Python's are entered on the way."""
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


@pytest.mark.slow
def test_numbers_are_not_read_one_by_one():
    network = diabetes_like()
    text = to_bif(network)
    parse_bif("variable X { type discrete [ 1 ] { a }; } probability ( X ) { table 1; }")
    calls, read = python_calls(lambda: parse_bif(text))
    numbers = sum(cpt.size for cpt in network.cpts.values())
    assert numbers > 200_000
    # Six a row, of twelve numbers; read token by token it was more than twenty a number.
    assert calls < numbers
    for name, cpt in network.cpts.items():
        # A row that sums to 1 within rounding is left as it is; others are divided by their sum.
        np.testing.assert_allclose(read.cpts[name], cpt, rtol=1e-14)


def one_domain(size, odd=""):
    labels = [f"v{i}" for i in range(size)]
    return (
        f"variable X {{ type discrete [ {size} ] {{ {', '.join(labels)}{odd} }}; }}\n"
        "variable Y { type discrete [ 2 ] { a, b }; }\n"
        f"probability ( X ) {{ table {', '.join([repr(1 / size)] * size)}; }}\n"
        "probability ( Y | X ) {\n" + "\n".join(f"({label}) 0.25, 0.75;" for label in labels) + "}"
    )


def seconds(work):
    """The least of three runs, in time of this process alone."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def test_time_grows_with_the_domain_and_not_with_its_square():
    def check(size):
        labels = tuple(f"v{i}" for i in range(size))
        rows = [BifEntry("row", (label,), [0.25, 0.75]) for label in labels]
        variables = BifVariable("X", size, labels), BifVariable("Y", 2, ("a", "b"))

        def work():
            cpt_of(BifBlock("Y", ("X",), rows), domains_of(variables))

        return seconds(work)

    # Thirty-two if it is linear, 1024 if it is quadratic.
    assert check(16_000) < 180 * check(500)


@pytest.mark.slow
def test_a_problem_with_many_labels_finds_each_at_once():
    def learn(size):
        labels = [f"v{i}" for i in range(size)]
        problem = Problem(CausalGraph.parse("X -> Y"), "Y", domains={"X": labels})
        texts = [f"do(X={label})" for label in labels]

        def find():
            assert problem.intervention(texts[-1])["X"] == labels[-1]
            for text in texts:
                problem.intervention(text)

        assert problem.domains["X"] == tuple(labels)
        assert problem.domains["X"].index(labels[-1]) == size - 1
        with pytest.raises(ValueError, match="not in tuple"):
            problem.domains["X"].index("none")
        return seconds(find)

    assert learn(16_000) < 180 * learn(500)


def test_a_long_list_is_cut_short_in_a_message():
    with pytest.raises(DowiseError, match=r"lists 5001 \(v0, v1, .*, … \(5,001 in all\)\)") as got:
        parse_bif(one_domain(5_000, odd=", more"))
    assert len(str(got.value)) < 400
    with pytest.raises(DowiseError, match=r"lists the label 'v7' twice: rename one"):
        parse_bif(one_domain(5_000, odd=", v7").replace("[ 5000 ]", "[ 5001 ]"))
    problem = Problem(
        CausalGraph.parse("X -> Y"), "Y", domains={"X": [str(i) for i in range(5_000)]}
    )
    with pytest.raises(DowiseError, match=r"X has no value 'x': its values are 0, 1, .*in all\)"):
        problem.intervention("do(X=x)")


@pytest.mark.parametrize(
    ("bad", "column"),
    [("0.25 0.x5", 14), ("0.25, , 0.75", 15), ("0.25, 0.75", 19), ("0.25, 0.75}", 15)],
)
def test_a_mistake_in_the_last_of_many_rows_is_found_at_once_and_in_its_place(bad, column):
    text = one_domain(5_000)
    cut = text.rindex("(")
    text = text[:cut] + f"(v4999) {bad}"
    with pytest.raises(InputSyntaxError, match=f"BIF, line 5004, column {column}: "):
        parse_bif(text)


def test_rows_with_comments_quotes_and_blanks_are_read_as_any_other():
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
