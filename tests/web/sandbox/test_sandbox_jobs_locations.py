"""Locations of errors in the text of a problem."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowise.errors import DowiseError, InputSyntaxError
from dowise_web.sandbox import BadInputError
from dowise_web.sandbox_jobs import locate, read_graph, read_problem

GRAPHS = {
    "a line": 'graph = "X -> Y; X -> -> Z"\nreward = "Y"',
    "lines": 'reward = "Y"\n\ngraph = """\nX -> Y\n  X -> -> Z\n"""',
    "lines from the first one": 'reward = "Y"\ngraph = """X -> Y\n  X -> -> Z"""',
    "a literal": "graph = 'X -> Y; X -> -> Z'\nreward = 'Y'",
    "a long literal": "  graph = '''\nX -> Y\nX -> -> Z\n'''\nreward = 'Y'",
    "with escapes": 'graph = "\\"a\\\\b\\" -> Y\\nX -> -> Z\\u0020"\nreward = "Y"',
    "a continued line": 'graph = """\\\n   X -> Y; \\\n   X -> -> Z"""\nreward = "Y"',
    "a key in quotes": 'reward = "Y"\n"graph" = "X -> -> Z"',
    "after another one in a description": (
        'description = """\ngraph = "X -> Y"\n"""\ngraph = "X -> -> Z"\nreward = "Z"'
    ),
    "with quotes at the end": "graph = '''X -> -> \"Z''''\nreward = 'Z'",
}


@pytest.mark.parametrize("text", GRAPHS.values(), ids=GRAPHS)
def test_errors_in_the_graph_are_located_in_the_text(text):
    with pytest.raises(BadInputError, match="found '->") as caught:
        read_problem(text)
    error, position = caught.value, text.index("-> -> ") + 3
    before = text[:position]
    assert error.line == before.count("\n") + 1
    assert error.column == position - before.rfind("\n")
    assert f"line {error.line}, column {error.column}" in str(error)


LOCATIONS = {
    "TOML": ('graph = "X -> Y"\nreward = Y\n', 2, 10),
    "TOML that ends": ('graph = "X -> Y"\nreward = ["Y"\n', 2, 10),
    "an open list": ('context = ["X"\ngraph = "X -> Y"\nreward = "Y"', 1, 11),
    "an unknown key": ('graph = "X -> Y"\nreward = "Y"\ncontxt = ["X"]', 3, 1),
    "a misspelt reward": ('# Recover\ngraph = "X -> Recovery"\nreward = "Recover"', 3, 11),
    "a misspelt context": ('graph = "Age -> Y"\nreward = "Y"\ncontext = ["age"]', 3, 13),
    "an option": ('graph = "X -> Y"\nreward = "Y"\nsoft = 2', 3, 1),
    "a role": ('graph = "X -> Y"\nreward = "Y"\ncontext = ["Y"]', 2, 1),
    "a file of the graph": ('graph_file = "a.bif"\nreward = "Y"', 1, 1),
    "a file of the prior": ('graph = "X -> Y"\nreward = "Y"\nprior = "/etc/passwd"', 3, 1),
    "a label": ('graph = "X -> Y"\nreward = "Y"\n[domains]\nX = ["low", "low"]', 4, 1),
    "no reward": ('graph = "X -> Y"', None, None),
    "an empty graph": ('reward = "Y"\ngraph = ""', 2, 10),
}


@pytest.mark.parametrize(("text", "line", "column"), LOCATIONS.values(), ids=LOCATIONS)
def test_other_errors_are_located(text, line, column):
    with pytest.raises(BadInputError) as caught:
        read_problem(text)
    assert (caught.value.line, caught.value.column) == (line, column), caught.value
    assert caught.value.field == "problem"


def test_files_are_refused():
    with pytest.raises(BadInputError, match="graph_file cannot be read here"):
        read_problem(LOCATIONS["a file of the graph"][0])
    with pytest.raises(BadInputError, match="prior files cannot be read here"):
        read_problem(LOCATIONS["a file of the prior"][0])


def test_errors_of_a_graph_alone_are_located():
    with pytest.raises(BadInputError) as caught:
        read_graph("X -> Y\nX -> -> Z")
    assert (caught.value.line, caught.value.column) == (2, 6)


def test_long_messages_are_shortened():
    error = locate("", DowiseError("'" + "Y" * 10_000 + "' is unknown"))
    assert len(str(error)) < 2_100


def test_messages_of_python_are_translated():
    with pytest.raises(BadInputError, match="^not valid TOML: brackets are nested too deeply$"):
        read_problem("context = " + "[" * 100_000)
    with pytest.raises(BadInputError, match="^not valid TOML: a number is too long$"):
        read_problem("soft = " + "9" * 5_000)


_STRING = st.text(st.sampled_from("ab\"'\\\n\t é->\U0001f600"), max_size=12)


@given(graph=_STRING, before=_STRING, style=st.sampled_from(["basic", "long", "literal"]))
def test_every_position_in_a_graph_is_located(graph, before, style):
    value = {
        "basic": '"' + graph.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"',
        "long": '"""\n' + graph.replace("\\", "\\\\").replace('""', '"\\"') + '"""',
        "literal": f"'''{graph}'''",
    }[style]
    comment = before.replace("\n", " ")
    text = f"# {comment}\ngraph = {value}\n"
    try:
        if tomllib.loads(text)["graph"] != graph:
            return
    except ValueError:
        return
    for offset, letter in enumerate(graph):
        lines = graph[:offset].split("\n")
        error = locate(text, InputSyntaxError("", len(lines), len(lines[-1]) + 1))
        located = text.split("\n")[error.line - 1][error.column - 1 :]
        written = {"\n": ("\\n", ""), '"': ('"', '\\"'), "\\": ("\\",)}.get(letter, (letter,))
        assert located.startswith(written)
