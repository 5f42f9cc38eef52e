"""Parsers return a result or raise `DowiseError`, whatever the text."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code
from support.strategies import examples

from dowise import CausalGraph, DowiseError, Intervention
from dowise.graph.formats.bif import parse_bif
from dowise.problem.problem_file import parse_problem

PARSERS = {
    "text": (CausalGraph.parse, ["A", "B", "->", "<->", "<-", ";", "\n", '"', "#", "--", " "]),
    "dot": (
        CausalGraph.from_dot,
        ["digraph", "{", "}", "A", "->", "[", "]", "dir=both", ";", '"', "subgraph", "<b>", ":"],
    ),
    "dagitty": (
        CausalGraph.from_dagitty,
        ["dag", "{", "}", "A", "B", "->", "<->", "[latent]", "[e]", '"', "bb=", ";"],
    ),
    "gml": (
        CausalGraph.from_gml,
        ["graph [", "]", "directed 1", "node [", "id 0", 'label "A"', "edge [", "source 0", "\n"],
    ),
    "bif": (
        parse_bif,
        [
            "network n {}",
            "variable",
            "A",
            "{",
            "}",
            "type discrete [ 2 ] { a, b };",
            "probability",
            "(",
            ")",
            "|",
            "table",
            "0.5,",
            "0.5;",
            "default",
            "9" * 5000,
        ],
    ),
    "do": (Intervention.parse, ["do(", ")", "X", "=", "1", ",", '"', " ", "\\"]),
    "toml": (
        parse_problem,
        [
            'graph = "A -> B"\n',
            'reward = "B"\n',
            "context = ",
            '["A"]',
            "[[1]]",
            "[domains]\n",
            "A = 1\n",
            "[reward_values]\n",
            '"0" = 1e999\n',
            "minimise = true\n",
            "arms = ",
            '["do(A=1)"]',
            "\n",
        ],
    ),
}


@pytest.mark.parametrize("parser", PARSERS)
@given(data=st.data())
@examples(150)
def test_random_texts_raise_only_dowise_errors(parser, data):
    parse, pieces = PARSERS[parser]
    piece = st.sampled_from(pieces) | st.text(max_size=3)
    text = data.draw(st.lists(piece, max_size=25).map(" ".join) | st.text())
    with suppress(DowiseError):
        parse(text)


@pytest.mark.parametrize("parser", ["dot", "dagitty"])
@pytest.mark.parametrize("depth", [300, 3000])
def test_deep_nesting_raises_only_dowise_errors(parser, depth):
    parse, pieces = PARSERS[parser]
    text = pieces[0] + "{" * depth + "A" + "}" * depth
    with suppress(DowiseError):
        assert parse(text).variables == ("A",)


def test_a_table_with_too_many_parents_is_refused():
    parents = [f"P{i}" for i in range(70)]
    lines = [f"variable {p} {{ type discrete [ 1 ] {{ a }}; }}" for p in [*parents, "X"]]
    lines += [f"probability ( {p} ) {{ table 1.0; }}" for p in parents]
    lines += [f"probability ( X | {', '.join(parents)} ) {{ default 1.0; }}"]
    with raises_code("too-large", "'X'", "70 parents"):
        parse_bif("\n".join(lines))
