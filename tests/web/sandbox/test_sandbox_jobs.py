"""Jobs of the sandbox, run in this process."""

import json

import pytest

from dowise import load_problem
from dowise.experiment.rehearsal import rehearse as rehearse_in_library
from dowise.problem.problem_file import builtin_names, builtin_path, parse_problem, problem_text
from dowise_web import sandbox_jobs
from dowise_web.sandbox import BadInputError
from dowise_web.sandbox_jobs import begin, preview, rehearse

WARD = """
name = "ward"
graph = "Age -> Drug -> Cure; Age -> Cure; Diet ?-> Cure"
reward = "Cure"
context = ["Age"]
[domains]
Drug = ["none", "low", "high"]
[reward_values]
no = 0
yes = 10
"""
ASIA = (builtin_path("asia").parent / "networks" / "asia.bif").read_text()


def no_progress(_finished, _worlds):
    pass


def preview_of(text):
    """Return a preview, which must be plain JSON."""
    page = preview({"text": text}, no_progress)
    assert json.loads(json.dumps(page, allow_nan=False)) == page
    return page


def try_begin(text=WARD, policy="ts", options=None, learn_restricted=True):
    job = {"text": text, "policy": policy, "options": options, "learn_restricted": learn_restricted}
    return begin(job, no_progress)


def try_rehearse(progress=no_progress, **changes):
    job = {
        "text": WARD,
        "policy": "ts",
        "options": None,
        "prior": None,
        "horizon": 6,
        "worlds": 2,
        "tolerance": 0.5,
        "delay": 1,
        "looks": 3,
        "seed": 7,
    }
    return rehearse({**job, **changes}, progress)


def test_a_preview_describes_a_problem():
    page = preview_of(WARD)
    assert page["kind"] == "problem" and page["name"] == "ward" and page["notes"] == []
    assert page["made_of"] is None and page["svg"].startswith("<svg") and page["legend"]
    assert page["reward"] == {
        "name": "Cure",
        "minimise": False,
        "values": {"no": 0, "yes": 10},
        "best": "yes",
        "worst": "no",
    }
    assert page["roles"] == {
        "Age": "context",
        "Cure": "reward",
        "Diet": "manipulable",
        "Drug": "manipulable",
    }
    assert page["domains"]["Drug"] == ["none", "low", "high"]
    assert page["doubts"] == ["Diet -> Cure with probability 0.5"]
    assert page["arms"]["count"] == 6 == len(page["arms"]["first"])
    assert page["arms"]["first"][-1]["text"] == "do(Diet=1, Drug=high)"
    assert page["sets"] == {"kind": "pomis", "count": 1, "first": ["Diet, Drug"]}
    assert page["why"].startswith("The other 3 of 4 sets") and page["best"] == "commit-kg"
    assert page["advice"]["soft"]["text"].startswith("Could an arrow be missing")
    assert "floor=0.1" in page["advice"]["floor"]
    assert parse_problem(page["problem"]) == parse_problem(WARD)


@pytest.mark.parametrize("name", builtin_names())
def test_every_built_in_problem_can_be_previewed(name):
    problem = load_problem(name)
    page = preview_of(problem_text(problem))
    assert page["arms"]["count"] == len(problem.arms) >= len(page["arms"]["first"])
    assert parse_problem(page["problem"]) == problem


def test_long_lists_are_shortened():
    names = [f"X{i}" for i in range(12)]
    page = preview_of(f'graph = "{"; ".join(f"{name} -> Y" for name in names)}"\nreward = "Y"\n')
    assert page["arms"]["count"] == 4096 and len(page["arms"]["first"]) == 200


def test_arms_have_costs():
    page = preview_of('graph = "X -> Y"\nreward = "Y"\n[costs]\nX = 0.25')
    assert page["costs"] == ["X 0.25"]
    assert [arm["cost"] for arm in page["arms"]["first"]] == [0, 0.25, 0.25]


def test_warnings_become_notes():
    page = preview_of('graph = "X -> Y"\nreward = "Y"\narms = "pomis"\nforbidden = ["do(X=1)"]')
    (note,) = page["notes"]
    assert note.startswith("with forbidden assignments the best arm need not be one of those")


def test_line_ends_and_byte_order_marks_are_ignored():
    assert preview_of("\ufeff" + WARD.replace("\n", "\r\n")) == preview_of(WARD)


def test_an_empty_text_is_refused():
    with pytest.raises(BadInputError, match="write a problem, or start with an example"):
        preview_of(" \n")


# -- graphs alone -----------------------------------------------------------------------------

GRAPHS = {
    "text": "A -> B -> Y; A <-> Y\nlone",
    "DOT": 'digraph { A -> B -> Y; A -> Y [dir=both]; "lone" }',
    "dagitty": "dag { A -> B -> Y; A <-> Y; lone }",
    "GML": 'graph [ directed 1 node [ id 0 label "A" ] node [ id 1 label "B" ] node [ id 2 label '
    '"Y" ] node [ id 3 label "lone" ] edge [ source 0 target 1 ] edge [ source 1 target 2 ] '
    "edge [ source 0 target 2 bidirected 1 ] ]",
}


@pytest.mark.parametrize("kind", GRAPHS)
def test_a_graph_alone_becomes_a_draft(kind):
    page = preview_of(GRAPHS[kind])
    assert page["kind"] == "graph" and page["made_of"] == kind
    assert page["candidates"] == ["Y", "lone"]
    assert "the variable that is the reward (perhaps Y, lone)" in page["notes"][0]
    finished = preview_of(page["problem"].replace('"…"', '"Y"'))
    assert finished["kind"] == "problem"
    assert parse_problem(finished["problem"]).graph == load(GRAPHS["text"])


def load(text):
    from dowise import CausalGraph

    return CausalGraph.parse(text)


def test_a_network_has_labels_but_no_reward():
    page = preview_of(ASIA)
    assert page["made_of"] == "BIF" and page["candidates"] == ["dysp", "xray"]
    assert "network in BIF with 8 variables" in page["notes"][0]
    assert "Its probability tables are not used" in page["notes"][0]
    with pytest.raises(BadInputError, match="unknown reward '…'") as caught:
        preview_of(page["problem"])
    assert page["problem"].split("\n")[caught.value.line - 1].startswith("reward = ")
    finished = preview_of(page["problem"].replace('"…"', '"dysp"'))
    assert finished["domains"]["dysp"] == ["yes", "no"]


def test_dagitty_tags_are_roles():
    page = preview_of("dag { X [exposure]; Y [outcome]; X -> Y <- Z -> X }")
    assert page["roles"] == {"X": "manipulable", "Y": "reward", "Z": "non_manipulable"}
    assert page["made_of"] == "dagitty" and page["kind"] == "problem"


def test_quoted_names_survive_the_draft():
    for text in ('"a; b" -> "c\\"d"', "\"it's '''\" -> Y", '"x\\\\y" -> Y'):
        page = preview_of(text)
        assert parse_problem(page["problem"].replace('"…"', page_name(text))).drawn == load(text)


def page_name(text):
    names = load(text).variables
    return json.dumps(names[0])


def test_a_graph_alone_can_not_be_started():
    with pytest.raises(BadInputError, match="a graph with 2 variables.* Add it to a problem"):
        try_begin("X -> Y")


# -- begin --------------------------------------------------------------------------------


def test_begin_returns_policy_and_options():
    page = try_begin(policy="ts", options={"floor": 0.1, "prior": 2}, learn_restricted=False)
    assert page["policy"] == "ts" and page["options"]["floor"] == 0.1
    assert page["options"]["prior"] == 2 and page["learn_restricted"] is False
    assert page["arms"] == 6 and page["seconds"] > 0 and page["megabytes"] > 10
    assert json.loads(json.dumps(page, allow_nan=False)) == page


REFUSED = {
    "an unknown policy": ({"policy": "idz"}, "unknown policy 'idz' .did you mean 'ids'", "policy"),
    "a custom policy": ({"policy": "os:getcwd"}, "a server imports none", "policy"),
    "a number as a policy": ({"policy": 7}, "unknown policy 7 .expected one of ids, ts", "policy"),
    "an unknown option": ({"options": {"flor": 1}}, "no option 'flor' .did you mean", "policy"),
    "a bad option": ({"options": {"floor": 2}}, "floor=2 must be at least 0 and below", "policy"),
    "a list of options": ({"options": [1]}, "options must map names to values", "options"),
    "a prior in a file": ({"options": {"prior": "/etc/passwd"}}, "no files are read", "options"),
    "a prior that does not fit": (
        {"options": {"prior": {"Drug": [1, 2]}}},
        "prior of Drug does not fit",
        "policy",
    ),
    "a prior of texts": (
        {"options": {"prior": {"Drug": "/etc/passwd"}}},
        "must be numbers",
        "policy",
    ),
    "a belief": ({"options": {"belief": "x"}}, "belief is not an option of a live", "policy"),
    "not a boolean": ({"learn_restricted": 1}, "learn_restricted=1 must be True", "policy"),
}


@pytest.mark.parametrize(("changes", "message", "field"), REFUSED.values(), ids=REFUSED)
def test_invalid_policies_are_refused(changes, message, field):
    with pytest.raises(BadInputError, match=message) as caught:
        try_begin(**changes)
    assert caught.value.field == field and caught.value.line is None


def test_custom_policies_are_not_imported(tmp_path, monkeypatch):
    (tmp_path / "sent.py").write_text("raise SystemExit('it was imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInputError, match="a server imports none"):
        try_begin(policy="sent:Policy")


# -- rehearse -------------------------------------------------------------------------------


def test_rehearse_equals_the_library_function():
    reports = []
    page = try_rehearse(lambda *numbers: reports.append(numbers))
    problem = parse_problem(WARD)
    expected = rehearse_in_library(problem, 6, 2, "ts", tolerance=0.5, delay=1, looks=3, seed=7)
    assert page == {**expected.as_dict(), "words": "\n".join(expected.sentences())}
    assert reports == [(0, 2), (1, 2), (2, 2)]
    assert json.loads(json.dumps(page, allow_nan=False)) == page


BOUNDS = {
    "horizon": (0, 100_001, "6", 2.0, True, None),
    "worlds": (0, 1_001),
    "delay": (-1, 100_001),
    "looks": (0, 201),
    "seed": (-1, 2**128),
    "tolerance": (-1, "much", True),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_settings_of_a_rehearsal_have_bounds(name):
    for value in BOUNDS[name]:
        with pytest.raises(BadInputError, match=f"^{name}={value!r} must be") as caught:
            try_rehearse(**{name: value})
        assert caught.value.field == name


def test_the_default_tolerance_is_in_units_of_the_reward():
    assert try_rehearse(tolerance=None)["tolerance"] == parse_problem(WARD).payoff.span / 100


def test_a_prior_is_not_a_file():
    with pytest.raises(BadInputError, match="no files are read here"):
        try_rehearse(prior="prior.toml")
    assert try_rehearse(prior=3.0)["prior"] == 3


def test_the_server_limits_the_number_of_arms(monkeypatch):
    monkeypatch.setattr(sandbox_jobs, "MAX_ARMS", 2)
    for job in (preview_of, try_begin):
        with pytest.raises(BadInputError, match="3 arms, and a server accepts at most 2"):
            job(
                WARD.replace(
                    '"Age -> Drug -> Cure; Age -> Cure; Diet ?-> Cure"',
                    '"Age -> Drug -> Cure; Age -> Cure"',
                )
            )


def test_the_current_problem_is_read_without_limits():
    text = problem_text(parse_problem(WARD))
    job = {"text": text, "policy": "ucb", "options": None, "learn_restricted": True}
    assert begin({**job, "is_current": True}, no_progress) == {"policy": "ucb"}
    assert begin({**job, "is_current": False}, no_progress)["problem"] == text
