"""Problem files: round trips, graph files, errors, and agreement with Python."""

import gzip
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.errors import raises_code
from support.strategies import cases

from dowise import CausalGraph, DowiseError, Problem, load_problem
from dowise.problem.problem_file import builtin_names, parse_problem, problem_text, read_toml

labels = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=6)


@pytest.mark.parametrize("name", builtin_names())
def test_builtin_problems_round_trip(name, tmp_path):
    problem = load_problem(name)
    problem.save(tmp_path / "saved.toml")
    assert load_problem(tmp_path / "saved.toml") == problem
    assert problem.description and problem.name == name


@settings(deadline=None)  # the first example builds the parser
@given(cases(max_size=4), st.data())
def test_any_problem_round_trips(tmp_path_factory, case, data):
    graph, reward, context, hidden = case
    domains = {
        name: data.draw(st.lists(labels, min_size=2, max_size=3, unique=True)) for name in graph
    }
    problem = Problem(
        graph,
        reward,
        context,
        hidden,
        domains,
        arms=data.draw(st.sampled_from(["pomis", "all"])),
        minimise=data.draw(st.booleans()),
        name=data.draw(labels),
        max_arms=data.draw(st.sampled_from([1_000, 100_000])),
        max_program=data.draw(st.sampled_from([10_000, 2_000_000])),
    )
    path = tmp_path_factory.mktemp("problem") / "saved.toml"
    problem.save(path)
    assert load_problem(path) == problem
    assert load_problem(str(path)).max_arms == problem.max_arms
    assert load_problem(str(path)).max_program == problem.max_program


def test_custom_arms_round_trip():
    graph = CausalGraph.parse('"body mass" -> Y')
    problem = Problem(
        graph, "Y", domains={"body mass": ["a, b", 'c"d']}, arms=["do()", {"body mass": "a, b"}]
    )
    assert parse_problem(problem_text(problem)) == problem


def test_a_file_written_by_hand_is_read():
    text = """
    graph = "C -> X1; C -> X2; X1 -> X2; Z -> X2; Z -> Y; X2 -> Y"
    reward = "Y"
    context = ["C"]
    non_manipulable = ["Z"]
    [domains]
    X1 = ["low", "high"]
    C = [0, 1, 2]
    [reward_values]
    "0" = 0
    "1" = 2.5
    """
    assert parse_problem(text.replace("context", "minimise = true\n    context")).minimise
    assert not parse_problem(text.replace("context", "minimise = false\n    context")).minimise
    problem = parse_problem(text)
    assert [str(arm) for arm in problem.arms] == [
        "do(X1=low)",
        "do(X1=high)",
        "do(X2=0)",
        "do(X2=1)",
    ]
    assert problem.domains["C"] == ("0", "1", "2") and problem.reward_values["1"] == 2.5


def test_a_graph_file_may_have_domains(tmp_path):
    (tmp_path / "net.bif").write_text(
        "network n { }\n"
        "variable A { type discrete [ 3 ] { lo, mid, hi }; }\n"
        "variable B { type discrete [ 2 ] { no, yes }; }\n"
        "probability ( A ) { table 0.2, 0.3, 0.5; }\n"
        "probability ( B | A ) { (lo) 0.1, 0.9; (mid) 0.5, 0.5; (hi) 0.9, 0.1; }\n"
    )
    (tmp_path / "p.toml").write_text('graph_file = "net.bif"\nreward = "B"\n')
    problem = load_problem(tmp_path / "p.toml")
    assert [str(arm) for arm in problem.arms] == ["do(A=lo)", "do(A=mid)", "do(A=hi)"]
    assert problem.domains["B"] == ("no", "yes")


@pytest.mark.parametrize("name", ["g.dagitty", "g.txt"])
def test_dagitty_tags_fill_in_the_roles(tmp_path, name):
    (tmp_path / name).write_text(
        "dag { T [exposure] R [outcome] U [latent] M T -> M -> R ; U -> T ; U -> R }"
    )
    (tmp_path / "p.toml").write_text(f'graph_file = "{name}"\n')
    problem = load_problem(tmp_path / "p.toml")
    assert (problem.reward, problem.non_manipulable) == ("R", ("M",))
    assert problem.graph == CausalGraph.parse("T -> M -> R; T <-> R")
    (tmp_path / "p.toml").write_text(f'graph_file = "{name}"\nnon_manipulable = []\n')
    assert load_problem(tmp_path / "p.toml").non_manipulable == ()


def test_the_problem_file_takes_precedence_over_the_graph_file(tmp_path):
    (tmp_path / "g.dagitty").write_text(
        "dag { T [exposure] A R [outcome] S [outcome] A -> T -> R -> S ; A -> R }"
    )
    text = 'graph_file = "g.dagitty"\nreward = "R"\ncontext = ["A"]\n[domains]\nT = ["a", "b"]\n'
    (tmp_path / "p.toml").write_text(text)
    problem = load_problem(tmp_path / "p.toml")
    assert (problem.context, problem.non_manipulable) == (("A",), ("S",))
    assert problem.domains["T"] == ("a", "b")
    (tmp_path / "p.toml").write_text(text.replace('["A"]', '"A"'))
    assert load_problem(tmp_path / "p.toml").non_manipulable == ("S",)
    (tmp_path / "p.toml").write_text('graph_file = "g.dagitty"\n')
    with raises_code("missing-value", "no reward"):  # of two outcomes
        load_problem(tmp_path / "p.toml")
    (tmp_path / "p.toml").write_text('graph_file = "g.dagitty"\nreward = ["R"]\n')
    with raises_code("unknown-variable", "['R']"):
        load_problem(tmp_path / "p.toml")


def test_a_file_takes_precedence_over_a_builtin_problem(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task1").write_text('graph = "A -> B"\nreward = "B"\n')
    assert load_problem("task1").reward == "B"


@pytest.mark.parametrize(
    ("text", "code", "mentioned"),
    [
        ('graph_file = 3\nreward = "Y"', "invalid-type", "graph_file=3"),
        ('graph_file = "nowhere.dot"\nreward = "Y"', "file-not-found", "nowhere.dot"),
        ('graph = "X => Y"\nreward = "Y"', "syntax-error", "line 1, column 3: found '=>'"),
        ("graph = " + "[" * 5000, "syntax-error", "not valid TOML"),
        ("max_arms = " + "9" * 5000, "syntax-error", "not valid TOML"),
    ],
)
def test_invalid_problem_files_are_refused(text, code, mentioned, tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(text)
    with raises_code(code, str(path), mentioned):
        load_problem(path)


def test_invalid_paths_are_refused(tmp_path):
    for name, mentioned in (("taks1", "did you mean 'task1'"), ("", "''"), ("x" * 5000, "'xxx")):
        with raises_code("unknown-problem", mentioned):
            load_problem(name)
    with raises_code("not-a-file", str(tmp_path)):
        load_problem(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with raises_code("invalid-encoding", "binary.toml"):
        load_problem(tmp_path / "binary.toml")
    with raises_code("unwritable-file", "folder.toml"):
        load_problem("task1").save(tmp_path / "no" / "folder.toml")


@pytest.mark.parametrize("name", ["ward.toml", "ward.toml.gz", "ward.txt", "ward", "ward.graph"])
def test_problem_files_may_have_any_name(tmp_path, name):
    text = '# A -> B is no graph here\ngraph = "X -> Y"\nreward = "Y"\n'
    packed = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
    (tmp_path / name).write_bytes(packed)
    assert load_problem(tmp_path / name).graph == CausalGraph.parse("X -> Y")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.dot", "digraph { A -> B }"),
        ("g.txt", "X -> Y"),
        ("g.txt", "dag { X -> Y }"),
        ("g.toml", 'digraph { X -> Y [label="="] }'),
        ("g", "network unknown { }"),
        ("g.bif.gz", "any"),
    ],
)
def test_graph_files_are_not_problem_files(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with raises_code("unsupported-format", f'graph_file = "{name}"'):
        load_problem(tmp_path / name)


def test_saving_to_gz_compresses_reproducibly(tmp_path):
    problem = load_problem("task1")
    problem.save(tmp_path / "p.toml.gz")
    content = (tmp_path / "p.toml.gz").read_bytes()
    assert content[:2] == b"\x1f\x8b" and load_problem(tmp_path / "p.toml.gz") == problem
    problem.save(tmp_path / "p.toml.gz")
    assert (tmp_path / "p.toml.gz").read_bytes() == content


def test_names_with_dots_and_numbers_need_no_quotes_in_tables():
    problem = parse_problem(
        'graph = "B.p -> Y"\nreward = "Y"\n[domains]\nB.p = ["a", "b"]\n'
        "[reward_values]\n12.0 = 3\n13.5 = 4\n[prior]\nB.p = [2, 1]\n"
    )
    assert problem.domains == {"B.p": ("a", "b"), "Y": ("12", "13.5")}
    assert dict(problem.reward_values) == {"12": 3.0, "13.5": 4.0}
    assert dict(problem.prior) == {"B.p": (2.0, 1.0)}


def test_a_problem_file_may_name_a_prior_file(tmp_path):
    text = 'graph = "Z -> X -> Y"\nreward = "Y"\nprior = "prior.toml"\n'
    (tmp_path / "ward.toml").write_text(text)
    (tmp_path / "prior.toml").write_text("X = [[1, 2], [3, 4]]\nZ = 5\n")
    problem = load_problem(tmp_path / "ward.toml")
    assert dict(problem.prior) == {"X": ((1.0, 2.0), (3.0, 4.0)), "Z": 5.0}
    (tmp_path / "prior.toml").unlink()
    problem.save(tmp_path / "copy.toml")
    assert load_problem(tmp_path / "copy.toml") == problem
    with raises_code("file-not-found", "ward.toml: ", "prior.toml"):
        load_problem(tmp_path / "ward.toml")
    with raises_code("external-file"):
        parse_problem(text)  # a journal must not open files
    for counts, code, mentioned in (
        ("X = [1, 2, 3]", "invalid-shape", "shape (2, 2) (axes Z, X)"),
        ("Z = [5]", "invalid-shape", "2 numbers"),
        ("XX = 1", "unknown-variable", "did you mean 'X'"),
        ("X = 0", "invalid-number", "the prior of X"),
        ("X = ", "syntax-error", "not valid TOML"),
    ):
        (tmp_path / "prior.toml").write_text(counts)
        with raises_code(code, "ward.toml: ", "prior.toml", mentioned):
            load_problem(tmp_path / "ward.toml")


# -- TOML syntax --------------------------------------------------------------------------------


UNCLOSED_LISTS = {
    "the next entry": ('a = 1\nb = ["Age"\nreward = "Y"\n', "at line 2, column 5), before line 3"),
    "after a comma": ('context = ["Age",\nreward = "Y"', "at line 1, column 11), before line 2"),
    "a quoted key": ('"a b" = ["Age",\n"c d" = 1', "at line 1, column 9), before line 2"),
    "a table": ('context = ["Age",\n[domains]\nX = ["a"]', "at line 1, column 11), before line 2"),
    "in a table": ('[domains]\nX = ["a", "b"\nY = ["c"]', "at line 2, column 5), before line 3"),
    "the end": ('context = [\n"Age",\n', "at line 1, column 11), before the end"),
    "the outer one": ('x = [["]"],\n[1] # ]\ny = 1', "at line 1, column 5), before line 3"),
    "after a text": ('g = """\n[ = [ "\n"""\nx = [\ny = 1', "at line 4, column 5), before line 5"),
    "a comma": ('x = [\n"a"\n"b"\n]', "at line 1, column 5), before line 3"),
}


@pytest.mark.parametrize(("text", "place"), UNCLOSED_LISTS.values(), ids=UNCLOSED_LISTS)
def test_errors_name_the_line_where_an_unclosed_list_begins(text, place):
    with pytest.raises(DowiseError) as caught:
        read_toml(text)
    assert str(caught.value) == f"not valid TOML: a list lacks its ] or a comma ({place}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('x = ["a" "b"]', "a list lacks its ] or a comma (at line 1, column 10)"),
        ('x = ["a", b]', "Invalid value (at line 1, column 11)"),
        ("[a]\nx = # [\n", "Invalid value (at line 2, column 5)"),
        (
            "x = [\n1,\nb\n]",
            "Invalid value (at line 3, column 1), in a list that begins at line 1, "
            "column 5: does it lack its ]?",
        ),
        ('x = [\n"""abc', "Unterminated string (at end of document)"),
    ],
)
def test_other_syntax_errors_keep_their_position(text, message):
    with pytest.raises(DowiseError) as caught:
        read_toml(text)
    assert str(caught.value) == f"not valid TOML: {message}"


@given(st.text(alphabet="a1=[]\",'\n#{}. "))
def test_read_toml_agrees_with_tomllib(text):
    try:
        expected = tomllib.loads(text)
    except ValueError:
        with raises_code("syntax-error", "not valid TOML"):
            read_toml(text)
    else:
        assert read_toml(text) == expected


# -- agreement with Python ------------------------------------------------------------------------

GRAPH = "C -> X -> Y; Z -> X; Z -> Y; W ?-> Y"


def problem_or_error(make):
    try:
        return make()
    except DowiseError as error:
        return str(error)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('context = "C"', {"context": "C"}),
        ("context = []", {"context": None}),
        ('manipulable = "X"', {"manipulable": "X"}),
        ('arms = "minimal"', {"arms": "minimal"}),
        ('arms = ["do(X=1)", {}]', {"arms": ["do(X=1)", {}]}),
        ("arms = [{X = 1.0}]", {"arms": [{"X": 1.0}]}),
        ("arms = [{X = true}]", {"arms": [{"X": True}]}),
        ('forbidden = ["do(X=1.0)"]', {"forbidden": ["do(X=1)"]}),
        ("forbidden = {X = 1, Z = 0}", {"forbidden": {"X": 1, "Z": 0}}),
        ("costs = {X = 1, Z = 0.5}", {"costs": {"X": 1.0, "Z": 0.5}}),
        ('costs = {X = 1, Z = 1, "do(X=1.0)" = 0.5}', {"costs": {"X": 1, "Z": 1, "do(X=1)": 0.5}}),
        ('edge_prior = {"W -> Y" = 0.25}', {"edge_prior": {"Y <- W": 0.25}}),
        ("soft = 0.1\nmanipulable = []", {"soft": 0.1, "manipulable": ()}),
        ("minimise = true", {"minimise": True}),
        ("max_arms = 77", {"max_arms": 77}),
        (
            'domains.X = [12.0, 13]\narms = "do(X=12.0)"',
            {"domains": {"X": ["12", 13.0]}, "arms": [{"X": 12}]},
        ),
        (
            'domains.X = [true, false]\narms = "do(X=true)"',
            {"domains": {"X": (True, False)}, "arms": [{"X": True}]},
        ),
        ("reward_values = {12.0 = 2, 13.5 = 3}", {"reward_values": {12.0: 2, 13.5: 3}}),
        (
            "domains.Y = [12.0, 13]\nreward_values = {12 = 2, 13.0 = 3}",
            {"domains": {"Y": [12, 13]}, "reward_values": {12.0: 2, "13": 3}},
        ),
        (
            "domains.Y = [true, false]\nreward_values = {true = 2, false = 3}",
            {"domains": {"Y": [True, False]}, "reward_values": {True: 2, False: 3}},
        ),
        ("prior = {X = [1, 3.0]}", {"prior": {"X": (1, 3)}}),
        ('description = "d"\nname = "n"', {"description": "d", "name": "n"}),
        ("context = 3", {"context": 3}),
        ("reward = 3", {"reward": 3}),
        ("soft = true", {"soft": True}),
        ("arms = {X = 1}", {"arms": {"X": 1}}),
        ("prior = {Q = 1}", {"prior": {"Q": 1}}),
        ("name = 3", {"name": 3}),
    ],
)
def test_files_and_python_agree(text, options):
    """Equal problems, or the same error."""
    text = text if text.startswith("reward =") else f'reward = "Y"\n{text}'
    in_file = problem_or_error(lambda: parse_problem(f'graph = "{GRAPH}"\n{text}'))
    in_python = problem_or_error(lambda: Problem(GRAPH, **{"reward": "Y", **options}))
    assert in_file == in_python
    if isinstance(in_python, Problem):
        assert (in_file.name, in_file.description) == (in_python.name, in_python.description)
        assert in_file.max_arms == in_python.max_arms
