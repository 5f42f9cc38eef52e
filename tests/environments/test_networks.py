"""Worlds from BIF files; published networks agree with pyAgrum, also with hidden variables."""

import gzip

import numpy as np
import pytest
from support.errors import raises_code
from support.pyagrum_oracle import NETWORKS, agrum_reward, gum

from dowise import (
    CausalGraph,
    Environment,
    Problem,
    check_environment,
    load_problem,
    make_environment,
)
from dowise.environments import network_world
from dowise.graph.formats.bif import read_bif
from dowise.problem.problem_file import builtin_path

RAIN = """
network example { }
variable rain { type discrete [ 2 ] { yes, no }; }
variable sprinkler { type discrete [ 2 ] { on, off }; }
variable grass { type discrete [ 3 ] { wet, damp, dry }; }
probability ( rain ) { table 0.2, 0.8; }
probability ( sprinkler | rain ) { (yes) 0.1, 0.9; (no) 0.5, 0.5; }
probability ( grass | rain, sprinkler ) {
  (yes, on) 1, 0, 0; (yes, off) 0.8, 0.1, 0.1; (no, on) 0.6, 0.3, 0.1; (no, off) 0, 0, 1;
}
"""


def network_of(name):
    return read_bif(builtin_path(name).with_name("networks") / f"{name}.bif")


@pytest.mark.parametrize("name", NETWORKS)
def test_means_agree_with_pyagrum(name):
    world = Environment.from_bif(name)
    problem = world.problem
    rng = np.random.default_rng(0)
    assert problem.arms == load_problem(name).arms and problem.name == name
    for seed in range(2):
        context = world.draw_context(seed)
        means = world.means(context)
        for i in rng.choice(len(problem.arms), size=3, replace=False):
            truth = agrum_reward(problem, world.cpts, problem.arms[i], context)
            assert means[i] == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "hidden", "roles"),
    [
        ("asia", ["smoke", "either"], {"context": ["asia"]}),
        ("asia", ["smoke"], {"context": ["lung"], "non_manipulable": ["either"]}),
        ("child", ["Disease"], {"context": ["BirthAsphyxia", "LVH"]}),
    ],
)
def test_means_with_hidden_variables_agree_with_pyagrum(name, hidden, roles):
    world = Environment.from_bif(name, hidden=hidden, **roles)
    problem, network = world.problem, network_of(name)
    assert world.hidden == tuple(sorted(hidden)) and problem.graph.bidirected_edges
    for seed in range(3):
        context = world.draw_context(seed)
        for arm, mean in zip(problem.arms[:6], world.means(context), strict=False):
            truth = agrum_reward(
                problem, network.cpts, arm, context, network.graph, network.domains
            )
            assert mean == pytest.approx(truth, abs=1e-12)


def test_a_world_is_read_from_a_file(tmp_path):
    path = tmp_path / "rain.bif"
    path.write_text(RAIN, "utf-8")
    values = {"wet": 1.0, "damp": 0.5, "dry": 0.0}
    world = Environment.from_bif(path, "grass", context="rain", reward_values=values)
    assert [str(arm) for arm in world.problem.arms] == ["do(sprinkler=on)", "do(sprinkler=off)"]
    np.testing.assert_allclose(world.means({"rain": "no"}), [0.75, 0], atol=1e-15)
    np.testing.assert_allclose(world.means({"rain": "yes"}), [1, 0.85], atol=1e-15)
    check_environment(world)
    hidden = Environment.from_bif(str(path), "grass", reward_values=values, hidden="rain")
    assert len(hidden.problem.arms) == 3 and hidden.hidden == ("rain",)
    np.testing.assert_allclose(hidden.means()[2], 0.2 * 0.85, atol=1e-15)
    check_environment(hidden)
    world = Environment.from_bif(path, "grass", arms=["do(rain=yes)"])
    assert len(world.problem.arms) == 1


def test_roles_of_a_built_in_network_can_be_changed():
    world = Environment.from_bif("asia", reward="xray", non_manipulable=())
    assert world.problem.reward == "xray" and world.problem.context == ("asia",)
    assert dict(world.problem.reward_values) == {"yes": 0.0, "no": 1.0}
    world = Environment.from_bif("asia", context=["asia", "tub"])
    assert world.problem.non_manipulable == ("either", "lung", "xray")


@pytest.mark.parametrize(
    ("path", "roles", "code", "mentioned"),
    [
        ("aisa", {}, "unknown-problem", "did you mean 'asia'?"),
        ("task1", {}, "missing-value", "make_environment('task1', seed)"),
        ("no/such/file.bif", {}, "file-not-found", "no/such/file.bif"),
        (3, {}, "invalid-type", "3 is not a path"),
        ("asia", {"reward": "dispnoea"}, "unknown-variable", "'dispnoea'"),
        ("asia", {"hidden": ["smoker"]}, "unknown-variable", "did you mean 'smoke'?"),
        ("asia", {"hidden": ["dysp"]}, "unknown-variable", "'dysp'"),
        ("asia", {"context": ["tub"]}, "invalid-context", "asia"),
    ],
)
def test_invalid_arguments_are_refused(path, roles, code, mentioned):
    with raises_code(code, mentioned):
        Environment.from_bif(path, **roles)


def test_a_file_needs_a_reward(tmp_path):
    path = tmp_path / "rain.bif"
    path.write_text(RAIN, "utf-8")
    with raises_code("missing-value", "reward", "grass, rain"):
        Environment.from_bif(path)


GARDEN = """
network example { }
variable rain { type discrete [ 2 ] { yes, no }; }
variable grass { type discrete [ 3 ] { wet, damp, dry }; }
probability ( rain ) { table 0.2, 0.8; }
probability ( grass | rain ) { (yes) 0.7, 0.2, 0.1; (no) 0, 0.1, 0.9; }
"""
PROBLEM_FILE = (
    'graph_file = "rain.bif"\nreward = "grass"\n[reward_values]\nwet = 1\ndamp = 0\ndry = 0\n'
)


def test_a_problem_file_may_reorder_the_labels_of_its_network(tmp_path):
    (tmp_path / "rain.bif").write_text(GARDEN)
    path = tmp_path / "rain.toml"
    path.write_text(PROBLEM_FILE)
    np.testing.assert_allclose(network_world(path).means(), [0.7, 0.0])
    reordered = PROBLEM_FILE + '[domains]\nrain = ["no", "yes"]\ngrass = ["dry", "wet", "damp"]\n'
    path.write_text(reordered)
    world = network_world(path)
    assert [str(arm) for arm in world.problem.arms] == ["do(rain=no)", "do(rain=yes)"]
    np.testing.assert_allclose(world.means(), [0.0, 0.7])
    np.testing.assert_allclose(world.cpts["grass"], [[0.9, 0, 0.1], [0.1, 0.7, 0.2]])
    path.write_text(reordered.replace('"yes"', '"heavy"'))
    with raises_code("invalid-domain", "rain has the labels no, heavy", "yes, no"):
        network_world(path)


def test_a_problem_without_cpts_is_refused():
    with raises_code("missing-value", "task1", "alarm, asia"):
        network_world("task1")


@pytest.mark.parametrize("name", ["rain.bif.gz", "rain.txt", "rain"])
def test_a_network_may_be_compressed_or_have_another_extension(tmp_path, name):
    content = RAIN.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    world = Environment.from_bif(tmp_path / name, reward="grass")
    assert world.problem.name == "rain"
    assert Environment.from_bif(str(tmp_path / name), reward="grass").problem == world.problem
    (tmp_path / "rain.toml").write_text(f'graph_file = "{name}"\nreward = "grass"\n')
    from_problem = network_world(tmp_path / "rain.toml")
    np.testing.assert_array_equal(from_problem.means({}), world.means({}))


def test_a_graph_without_cpts_is_refused(tmp_path):
    (tmp_path / "g.bif").write_text("digraph { X -> Y }")
    with raises_code("syntax-error", "g.bif", "DOT"):
        Environment.from_bif(tmp_path / "g.bif", reward="Y")
    with raises_code("file-not-found", "nowhere.bif.gz"):
        Environment.from_bif(str(tmp_path / "nowhere.bif.gz"), reward="Y")
    (tmp_path / "g.txt").write_text("dag { X -> Y }")
    (tmp_path / "g.toml").write_text('graph_file = "g.txt"\nreward = "Y"\n')
    with raises_code("missing-value", "g.toml"):
        network_world(tmp_path / "g.toml")


AWKWARD = """
variable "body mass" { type discrete [ 2 ] { "very low", "<5,;" }; }
variable Y { type discrete [ 3 ] { a, "b c", "größer" }; }
probability ( "body mass" ) { table 0.1, 0.9; }
probability ( Y | "body mass" ) { ("very low") 0.3 0.3 0.4; ("<5,;") 0.7 0.2 0.1; }
"""


def test_worlds_round_trip_through_bif_bit_for_bit(tmp_path):
    (tmp_path / "given.bif").write_text(AWKWARD, "utf-8")
    worlds = [
        Environment.from_bif("insurance"),
        Environment.from_bif(tmp_path / "given.bif", reward="Y"),
        make_environment(Problem(CausalGraph.parse("X -> Y; X <-> Y; Z -> X"), "Y"), seed=4),
    ]
    for world in worlds:
        world.to_bif(tmp_path / "world.bif.gz")
        restored = Environment.from_bif(
            tmp_path / "world.bif.gz", reward=world.problem.reward, hidden=world.hidden
        )
        assert restored.graph == world.graph and restored.problem.domains == world.problem.domains
        for name, cpt in world.cpts.items():
            np.testing.assert_array_equal(restored.cpts[name], cpt)


def test_labels_of_hidden_variables_are_written_if_known():
    graph = CausalGraph.parse("Mood -> X; Mood -> Y; X -> Y")
    mood = ("good", "bad", "so so")
    named = Problem(graph, "Y", hidden=["Mood"], domains={"Mood": mood})
    tables = {"Mood": [0.2, 0.3, 0.5], "X": [[0.5, 0.5]] * 3, "Y": [[[0.1, 0.9]] * 2] * 3}
    assert Environment(named, tables).network.domains["Mood"] == mood
    plain = Problem(graph.project("Mood"), "Y")
    assert Environment(plain, tables, graph).network.domains["Mood"] == ("0", "1", "2")


@pytest.mark.parametrize("name", ["asia", "alarm"])
def test_pyagrum_reads_our_bif_files(name, tmp_path):
    world = Environment.from_bif(name)
    world.to_bif(tmp_path / "written.bif")
    read = gum.loadBN(str(tmp_path / "written.bif"))
    assert sorted(read.names()) == list(world.graph)
    for variable, cpt in world.cpts.items():
        assert read.variable(variable).labels() == world.network.domains[variable]
        axes = (*world.graph.parents(variable), variable)
        table = read.cpt(variable)  # its reader keeps single precision
        for places in np.ndindex(cpt.shape):
            assert table[dict(zip(axes, map(int, places), strict=True))] == pytest.approx(
                cpt[places], abs=1e-6
            )
