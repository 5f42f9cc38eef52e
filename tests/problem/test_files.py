"""Problem files: what is written is read back, and a bad page is explained."""

import gzip
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import cases

from dowise import CausalGraph, DowiseError, Problem, load_problem
from dowise.problem.problem_file import builtin_names, parse_problem

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
        graph, reward, context, hidden, domains, arms=data.draw(st.sampled_from(["pomis", "all"])),
        minimise=data.draw(st.booleans()), name=data.draw(labels),
        max_arms=data.draw(st.sampled_from([1_000, 100_000])),
        max_program=data.draw(st.sampled_from([10_000, 2_000_000])),
    )  # fmt: skip
    path = tmp_path_factory.mktemp("problem") / "saved.toml"
    problem.save(path)
    assert load_problem(path) == problem
    assert load_problem(str(path)).max_arms == problem.max_arms
    assert load_problem(str(path)).max_program == problem.max_program


def test_own_arms_round_trip(tmp_path):
    graph = CausalGraph.parse('"body mass" -> Y')
    problem = Problem(
        graph, "Y", domains={"body mass": ["a, b", 'c"d']}, arms=["do()", {"body mass": "a, b"}]
    )
    problem.save(tmp_path / "own.toml")
    assert load_problem(tmp_path / "own.toml") == problem


def test_the_files_that_people_write():
    page = """
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
    assert parse_problem(page.replace("context", "minimise = true\n    context")).minimise
    assert not parse_problem(page.replace("context", "minimise = false\n    context")).minimise
    problem = parse_problem(page)
    assert [str(arm) for arm in problem.arms] == [
        "do(X1=low)", "do(X1=high)", "do(X2=0)", "do(X2=1)",
    ]  # fmt: skip
    assert problem.domains["C"] == ("0", "1", "2") and problem.reward_values["1"] == 2.5


def test_a_graph_file_brings_its_domains(tmp_path):
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


def test_dagitty_tags_fill_in_the_roles(tmp_path):
    (tmp_path / "g.dagitty").write_text(
        "dag { T [exposure] R [outcome] U [latent] M T -> M -> R ; U -> T ; U -> R }"
    )
    (tmp_path / "p.toml").write_text('graph_file = "g.dagitty"\n')
    problem = load_problem(tmp_path / "p.toml")
    assert (problem.reward, problem.non_manipulable) == ("R", ("M",))
    assert problem.graph == CausalGraph.parse("T -> M -> R; T <-> R")
    (tmp_path / "p.toml").write_text('graph_file = "g.dagitty"\nnon_manipulable = []\n')
    assert load_problem(tmp_path / "p.toml").non_manipulable == ()


def test_what_the_problem_file_says_goes_before_what_the_graph_file_says(tmp_path):
    (tmp_path / "g.dagitty").write_text(
        "dag { T [exposure] A R [outcome] S [outcome] A -> T -> R -> S ; A -> R }"
    )
    page = 'graph_file = "g.dagitty"\nreward = "R"\ncontext = ["A"]\n[domains]\nT = ["a", "b"]\n'
    (tmp_path / "p.toml").write_text(page)
    problem = load_problem(tmp_path / "p.toml")
    assert (problem.context, problem.non_manipulable) == (("A",), ("S",))
    assert problem.domains["T"] == ("a", "b")
    (tmp_path / "p.toml").write_text(page.replace('["A"]', '"A"'))
    assert load_problem(tmp_path / "p.toml").non_manipulable == ("S",)
    (tmp_path / "p.toml").write_text('graph_file = "g.dagitty"\n')
    with pytest.raises(DowiseError, match="no reward"):  # two outcomes are no choice
        load_problem(tmp_path / "p.toml")
    (tmp_path / "p.toml").write_text('graph_file = "g.dagitty"\nreward = ["R"]\n')
    with pytest.raises(DowiseError, match=r"unknown reward \['R'\]"):
        load_problem(tmp_path / "p.toml")


def test_a_file_goes_before_a_builtin_of_the_same_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task1").write_text('graph = "A -> B"\nreward = "B"\n')
    assert load_problem("task1").reward == "B"


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ('graph = "X -> Y"\nrewrd = "Y"', "unknown key 'rewrd' (did you mean 'reward'?)"),
        ('graph = "X -> Y"', "no reward"),
        ('reward = "Y"', "specify the graph either as"),
        ('graph = "X -> Y"\ngraph_file = "a.dot"\nreward = "Y"', "specify the graph either as"),
        ('graph_file = 3\nreward = "Y"', "graph_file=3 must be the path of a file"),
        ('graph = 3\nreward = "Y"', "graph: expected a text, not an int"),
        (
            'graph = "Blood pressure -> Y"\nreward = "Y"',
            'a name with a space goes in double quotes: "Blood pressure"',
        ),
        ('graph = "X => Y"\nreward = "Y"', "graph, line 1, column 3: found '=>'"),
        ('graph = "X -> Y"\nreward = "Y"\n[domains]\nX = "a"', "must be a list of labels"),
        ("graph = ", "not valid TOML"),
        ("graph = " + "[" * 5000, "not valid TOML"),
        ("max_arms = " + "9" * 5000, "not valid TOML"),
        ('graph = "X -> Y"\nreward = "Y"\ncontext = [["X"]]', "unknown context variable ['X']"),
        ("", "the file is empty"),
        ('graph_file = "nowhere.dot"\nreward = "Y"', "nowhere.dot"),
    ],
)
def test_a_bad_page_is_explained(page, message, tmp_path):
    path = tmp_path / "page.toml"
    path.write_text(page)
    with pytest.raises(DowiseError, match=re.escape(message)) as caught:
        load_problem(path)
    assert str(path) in str(caught.value)


def test_bad_paths(tmp_path):
    with pytest.raises(DowiseError, match=r"no problem 'taks1' \(did you mean 'task1'\?\)"):
        load_problem("taks1")
    with pytest.raises(DowiseError, match="no problem ''"):
        load_problem("")
    with pytest.raises(DowiseError, match="no problem 'xxx"):
        load_problem("x" * 5000)
    (tmp_path / "net.dot").write_text("digraph { A -> B }")
    with pytest.raises(DowiseError, match='is a graph, not a problem.*graph_file = "net.dot"'):
        load_problem(tmp_path / "net.dot")
    with pytest.raises(DowiseError, match="is a folder"):
        load_problem(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DowiseError, match="is not UTF-8 text"):
        load_problem(tmp_path / "binary.toml")
    with pytest.raises(DowiseError, match="can't be written"):
        load_problem("task1").save(tmp_path / "no" / "folder.toml")


@pytest.mark.parametrize("name", ["ward.toml", "ward.toml.gz", "ward.txt", "ward", "ward.graph"])
def test_a_problem_is_read_whatever_its_name(tmp_path, name):
    page = '# A -> B is no graph here\ngraph = "X -> Y"\nreward = "Y"\n'
    packed = gzip.compress(page.encode()) if name.endswith(".gz") else page.encode()
    (tmp_path / name).write_bytes(packed)
    assert load_problem(tmp_path / name).graph == CausalGraph.parse("X -> Y")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.txt", "X -> Y"),
        ("g.txt", "dag { X -> Y }"),
        ("g.toml", 'digraph { X -> Y [label="="] }'),
        ("g", "network unknown { }"),
        ("g.bif.gz", "any"),
    ],
)
def test_a_graph_is_no_problem(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(DowiseError, match=f'this is a graph, not a prob.*graph_file = "{name}"'):
        load_problem(tmp_path / name)


def test_roles_of_dagitty_in_a_text_file_fill_in_the_problem(tmp_path):
    (tmp_path / "g.txt").write_text("dag { X [exposure] Y [outcome] Z X <- Z -> Y X -> Y }")
    (tmp_path / "p.toml").write_text('graph_file = "g.txt"\n')
    problem = load_problem(tmp_path / "p.toml")
    assert problem.reward == "Y" and problem.non_manipulable == ("Z",)


def test_what_is_written_to_a_gz_is_packed(tmp_path):
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


def test_a_prior_is_read_beside_the_problem_and_carried_whole(tmp_path):
    page = 'graph = "Z -> X -> Y"\nreward = "Y"\nprior = "prior.toml"\n'
    (tmp_path / "ward.toml").write_text(page)
    (tmp_path / "prior.toml").write_text("X = [[1, 2], [3, 4]]\nZ = 5\n")
    problem = load_problem(tmp_path / "ward.toml")
    assert dict(problem.prior) == {"X": ((1.0, 2.0), (3.0, 4.0)), "Z": 5.0}
    (tmp_path / "prior.toml").unlink()
    problem.save(tmp_path / "copy.toml")
    assert load_problem(tmp_path / "copy.toml") == problem
    with pytest.raises(DowiseError, match=r"ward\.toml: .*prior\.toml: there is no such file"):
        load_problem(tmp_path / "ward.toml")
    with pytest.raises(DowiseError, match="prior files cannot be read here"):
        parse_problem(page)  # a journal opens no file
    for counts, message in (
        ("X = [1, 2, 3]", r"the prior of X does not fit its CPT.*shape \(2, 2\) \(axes Z, X\)"),
        ("Z = [5]", "the prior of Z does not fit its CPT: pass a number, 2 numbers, or"),
        ("XX = 1", r"the prior names 'XX', which is not a variable \(did you mean 'X'\?\)"),
        ("X = 0", "the prior of X must be above 0"),
        ("X = ", "not valid TOML"),
    ):
        (tmp_path / "prior.toml").write_text(counts)
        with pytest.raises(DowiseError, match=rf"ward\.toml: .*prior\.toml.*{message}"):
            load_problem(tmp_path / "ward.toml")
