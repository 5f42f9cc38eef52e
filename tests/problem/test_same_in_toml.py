"""What a problem file says and what Python says is one thing: equal problems, or the same error."""

import pytest

from dowise import DowiseError, Problem
from dowise.problem.problem_file import parse_problem

GRAPH = "C -> X -> Y; Z -> X; Z -> Y; W ?-> Y"
T, F = True, False


def made(make):
    try:
        return make()
    except DowiseError as error:
        return str(error)


@pytest.mark.parametrize(
    ("said", "options"),
    [
        ('context = "C"', {"context": "C"}),
        ('context = ["C"]', {"context": ("C",)}),
        ("context = []", {"context": None}),
        ('non_manipulable = "Z"', {"non_manipulable": "Z"}),
        ('manipulable = "X"', {"manipulable": "X"}),
        ('hidden = "Z"', {"hidden": "Z"}),
        ('arms = "all"', {"arms": "all"}),
        ('arms = "minimal"', {"arms": "minimal"}),
        ('arms = "do(X=1)"', {"arms": "do(X=1)"}),
        ('arms = ["do(X=1)", {}]', {"arms": ["do(X=1)", {}]}),
        ("arms = [{X = 1.0}]", {"arms": [{"X": 1.0}]}),
        ("arms = [{X = true}]", {"arms": [{"X": T}]}),
        ('forbidden = "do(X=1)"', {"forbidden": "do(X=1)"}),
        ('forbidden = ["do(X=1.0)"]', {"forbidden": ["do(X=1)"]}),
        ("forbidden = {X = 1, Z = 0}", {"forbidden": {"X": 1, "Z": 0}}),
        ("costs = {X = 1, Z = 0.5}", {"costs": {"X": 1.0, "Z": 0.5}}),
        ('costs = {X = 1, Z = 1, "do(X=1.0)" = 0.5}', {"costs": {"X": 1, "Z": 1, "do(X=1)": 0.5}}),
        ("edge_prior = 1", {"edge_prior": 1}),
        ('edge_prior = {"W -> Y" = 0.25}', {"edge_prior": {"Y <- W": 0.25}}),
        ("soft = 0.1\nmanipulable = []", {"soft": 0.1, "manipulable": ()}),
        ("minimise = true", {"minimise": T}),
        ("max_arms = 77", {"max_arms": 77}),
        ("domains.X = [12.0, 13]", {"domains": {"X": [12.0, 13]}}),
        ('domains.X = [12.0, 13]\narms = "do(X=12.0)"', {"domains": {"X": ["12", 13.0]},
                                                         "arms": [{"X": 12}]}),
        ("domains.X = [true, false]", {"domains": {"X": (T, F)}}),
        ('domains.X = [true, false]\narms = "do(X=true)"', {"domains": {"X": (T, F)},
                                                            "arms": [{"X": T}]}),
        ("reward_values = {0 = 2, 1 = 7.5}", {"reward_values": {0: 2, 1: 7.5}}),
        ("reward_values = {12.0 = 2, 13.5 = 3}", {"reward_values": {12.0: 2, 13.5: 3}}),
        ("domains.Y = [12.0, 13]\nreward_values = {12 = 2, 13.0 = 3}",
         {"domains": {"Y": [12, 13]}, "reward_values": {12.0: 2, "13": 3}}),
        ("domains.Y = [true, false]\nreward_values = {true = 2, false = 3}",
         {"domains": {"Y": [T, F]}, "reward_values": {T: 2, F: 3}}),
        ("prior = 2", {"prior": 2}),
        ("prior = {X = [1, 3.0]}", {"prior": {"X": (1, 3)}}),
        ('description = "d"\nname = "n"', {"description": "d", "name": "n"}),
        # errors
        ("context = 3", {"context": 3}),
        ("context = {C = 1}", {"context": {"C": 1}}),
        ('context = [["C"]]', {"context": [["C"]]}),
        ("hidden = true", {"hidden": T}),
        ("manipulable = 1.5", {"manipulable": 1.5}),
        ("non_manipulable = 1", {"non_manipulable": 1}),
        ("reward = 3", {"reward": 3}),
        ('reward = ["Y"]', {"reward": ["Y"]}),
        ("minimise = 1", {"minimise": 1}),
        ('minimise = "Y"', {"minimise": "Y"}),
        ("max_arms = true", {"max_arms": T}),
        ("max_arms = 2.5", {"max_arms": 2.5}),
        ("max_program = 0", {"max_program": 0}),
        ('soft = "much"', {"soft": "much"}),
        ("soft = true", {"soft": T}),
        ("edge_prior = true", {"edge_prior": T}),
        ('edge_prior = "W -> Y"', {"edge_prior": "W -> Y"}),
        ("arms = 5", {"arms": 5}),
        ("arms = {X = 1}", {"arms": {"X": 1}}),
        ('arms = "some"', {"arms": "some"}),
        ("forbidden = 5", {"forbidden": 5}),
        ("forbidden = [5]", {"forbidden": [5]}),
        ("costs = 5", {"costs": 5}),
        ('costs = ["X"]', {"costs": ["X"]}),
        ("costs = {X = true}", {"costs": {"X": T}}),
        ("costs = {Y = 1}", {"costs": {"Y": 1}}),
        ('domains = ["X"]', {"domains": ["X"]}),
        ('domains.X = "a"', {"domains": {"X": "a"}}),
        ("domains.X = {a = 1}", {"domains": {"X": {"a": 1}}}),
        ("domains.X = [[1], 2]", {"domains": {"X": [[1], 2]}}),
        ("reward_values = [0, 1]", {"reward_values": [0, 1]}),
        ('reward_values = {0 = "much", 1 = 2}', {"reward_values": {0: "much", 1: 2}}),
        ("reward_values = {0 = 0, O = 1}", {"reward_values": {0: 0, "O": 1}}),
        ("reward_values = {0 = true, 1 = 2}", {"reward_values": {0: T, 1: 2}}),
        ("prior = true", {"prior": T}),
        ("prior = [1, 2]", {"prior": [1, 2]}),
        ("prior = {Q = 1}", {"prior": {"Q": 1}}),
        ("name = 3", {"name": 3}),
        ("description = false", {"description": F}),
    ],
)  # fmt: skip
def test_a_file_and_python_say_the_same(said, options):
    page = said if said.startswith("reward =") else f'reward = "Y"\n{said}'
    in_file = made(lambda: parse_problem(f'graph = "{GRAPH}"\n{page}'))
    in_python = made(lambda: Problem(GRAPH, **{"reward": "Y", **options}))
    assert in_file == in_python
    if isinstance(in_python, Problem):
        assert (in_file.name, in_file.description) == (in_python.name, in_python.description)
        assert in_file.max_arms == in_python.max_arms
