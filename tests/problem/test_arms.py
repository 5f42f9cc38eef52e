"""Arms: the best intervention is among them; forbidden assignments; explanations."""

import json
from itertools import combinations, product

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from support.brute_force import mean_reward, random_cpts
from support.doubtful_problems import with_doubtful
from support.errors import raises_code
from support.random_problems import random_problem
from support.slow_twins import edges, subsets
from support.strategies import cases, examples

from dowise import (
    Belief,
    Environment,
    Intervention,
    Problem,
    load_problem,
    make_environment,
    make_policy,
)
from dowise.cli.main import main
from dowise.errors import DowiseWarning
from dowise.graph.pomis import is_minimal
from dowise.problem.arms import explain_excluded_arms
from dowise.problem.problem_file import parse_problem, problem_text

CHAIN = "Z -> X -> Y"


def arm_texts(problem):
    return [str(arm) for arm in problem.arms]


def contains(arm, assignment):
    return all(arm.get(name) == str(label) for name, label in assignment.items())


# -- the best intervention is an arm ------------------------------------------------------------


@given(cases(max_size=6, bidirected=False), st.integers(0, 2**32 - 1))
@examples(80)
def test_no_intervention_beats_the_best_pomis_arm(case, seed):
    graph, reward, context, hidden = case
    problem = Problem(graph, reward, context, hidden)
    every = Problem(graph, reward, context, hidden, arms="all")
    cpts = random_cpts(problem, np.random.default_rng(seed))
    for codes in product((0, 1), repeat=len(context)):
        observed = dict(zip(sorted(context), codes, strict=True))
        best, best_of_all = (
            max(mean_reward(p, cpts, arm, observed) for arm in p.arms) for p in (problem, every)
        )
        assert best == pytest.approx(best_of_all, abs=1e-12)


def test_no_permitted_intervention_beats_the_best_arm():
    saved, missed_by_pomis = 0, 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        graph, roles, forbidden = random_problem(rng)
        every = Problem(graph, **roles, arms="all")
        problem = Problem(graph, **roles, forbidden=forbidden)
        permitted = [not any(contains(arm, never) for never in forbidden) for arm in every.arms]
        assert all(permitted[every.arm_index(arm)] for arm in problem.arms)
        saved += len(problem.arms) < sum(permitted)
        usual = [arm for arm in Problem(graph, **roles).arms if permitted[every.arm_index(arm)]]
        for _ in range(2):
            world = make_environment(every, rng, strong=True)
            own_world = Environment(problem, world.cpts, world.graph)
            for labels in product(*(every.domains[name] for name in every.context)):
                context = dict(zip(every.context, labels, strict=True))
                means = world.means(context)
                best = means[permitted].max()
                assert own_world.means(context).max() == pytest.approx(best, abs=1e-12)
                pomis = max((means[every.arm_index(arm)] for arm in usual), default=0)
                missed_by_pomis += pomis < best - 1e-9
    assert saved > 20 and missed_by_pomis > 3  # otherwise the assertions above say little


# -- minimal sets -------------------------------------------------------------------------------


def minimal_by_definition(graph, reward):
    """X is a subset of An(Y) once the edges into X are cut."""
    directed, _ = edges(graph)
    minimal = set()
    for names in subsets(set(graph.variables) - {reward}):
        above = {reward}
        while new := {a for a, b in directed if b in above and b not in names} - above:
            above |= new
        if names <= above:
            minimal.add(frozenset(names))
    return minimal


@given(cases(max_size=6))
def test_minimal_sets_are_those_of_the_definition(case):
    graph, reward, context, immovable = case
    problem = Problem(graph, reward, context, immovable, arms="minimal")
    minimal = minimal_by_definition(problem.projected, reward)
    assert set(problem.intervention_sets) == minimal
    assert set(Problem(graph, reward, context, immovable).intervention_sets) <= minimal
    order = [(len(names), sorted(names)) for names in problem.intervention_sets]
    assert order == sorted(order) and len(set(problem.arms)) == len(problem.arms)
    for names in subsets(problem.manipulable):
        assert is_minimal(problem.projected, reward, names) == (frozenset(names) in minimal)


def test_minimal_sets_with_soft_edges_are_those_of_both_graphs():
    problem = Problem(f"{CHAIN}; W", "Y", forbidden="do(X=1)", soft=0.1)
    for graph in (problem.projected, problem.projection(problem.possible)):
        assert minimal_by_definition(graph, "Y") <= set(problem.intervention_sets)
    assert frozenset({"W", "X", "Z"}) in problem.intervention_sets


# -- forbidden assignments ----------------------------------------------------------------------


def test_forbidding_a_pomis_arm_adds_other_minimal_arms():
    """In Z -> X -> Y with do(X=1) forbidden, do(Z=1) can be best, and it is not a POMIS arm."""
    problem = Problem(CHAIN, "Y", forbidden=("do(X=1)",))
    assert problem.arms_kind == "minimal" and problem.forbidden == (Intervention({"X": 1}),)
    assert arm_texts(problem) == ["do()", "do(X=0)", "do(Z=0)", "do(Z=1)"]
    same, mostly = [[1, 0], [0, 1]], [[0.9, 0.1], [0.2, 0.8]]
    world = Environment(problem, {"Z": [0.5, 0.5], "X": mostly, "Y": same})
    assert str(world.best_arm()) == "do(Z=1)"
    with pytest.warns(DowiseWarning, match="leave out arms = 'pomis'"):
        assert arm_texts(Problem(CHAIN, "Y", forbidden="do(X=1)", arms="pomis")) == ["do(X=0)"]


def test_no_arm_of_any_kind_contains_a_forbidden_assignment():
    graph = "A -> Y; B -> Y; C -> Y"
    pairs = [{a: 1, b: 0} for a, b in combinations("ABC", 2)]
    every = Problem(graph, "Y", arms="all").arms
    permitted = {arm for arm in every if not any(contains(arm, pair) for pair in pairs)}
    for kind in ("minimal", "all"):
        assert set(Problem(graph, "Y", arms=kind, forbidden=pairs).arms) == permitted
    with pytest.warns(DowiseWarning):
        pomis = Problem(graph, "Y", arms="pomis", forbidden=pairs)
    assert set(pomis.arms) == {arm for arm in permitted if len(arm) == 3}


def test_enumeration_examines_few_sets_without_a_permitted_arm():
    """Of 2^24 sets, 25 have a permitted arm."""
    names = [f"X{i:02}" for i in range(24)]
    graph = "; ".join(f"{name} -> Y" for name in names)
    pairs = [{a: x, b: y} for a, b in combinations(names, 2) for x in (0, 1) for y in (0, 1)]
    problem = Problem(graph, "Y", forbidden=pairs)
    assert len(problem.arms) == 49 and len(problem.intervention_sets) == 25
    singles = [{name: value} for name in names for value in (0, 1)]
    assert arm_texts(Problem(graph, "Y", forbidden=singles)) == ["do()"]
    with raises_code("too-large", "max_arms, which is 1,000"):
        Problem(graph, "Y", forbidden="do(X00=0)", max_arms=1000)


@pytest.mark.parametrize(
    ("options", "code", "mentioned"),
    [
        ({"forbidden": 7}, "invalid-type", "forbidden=7"),
        (
            {"forbidden": ["do(X=1)"], "arms": ["do()", "do(X=1)", "do(X=1, Z=0)"]},
            "forbidden-arm",
            "do(X=1), do(X=1, Z=0) (it contains do(X=1)); ",
        ),
        ({"forbidden": ["do(X=1)", "do(X=0)"], "arms": "pomis"}, "no-arms", "arms = 'pomis'"),
        ({"forbidden": "do(X=1)", "max_arms": 3}, "too-large", "max_arms, which is 3"),
    ],
)
def test_invalid_forbidden_assignments_are_refused(options, code, mentioned):
    with raises_code(code, mentioned):
        Problem(CHAIN, "Y", **options)


def test_custom_arms_may_be_restricted_too():
    problem = Problem(CHAIN, "Y", forbidden="do(X=1)", arms="do(X=0)")
    assert arm_texts(problem) == ["do(X=0)"] and problem.arms_kind == "custom"
    with raises_code("unknown-arm", "do(X=1, Z=0) is forbidden: it contains do(X=1)"):
        problem.arm_index("do(X=1, Z=0)")


def test_problems_differ_by_what_they_forbid():
    problem = Problem(CHAIN, "Y", forbidden=["do(X=1, Z=0)", {"X": 0}])
    assert "forbidden=[do(X=0), do(X=1, Z=0)]" in repr(problem)
    assert problem != Problem(CHAIN, "Y", forbidden=["do(X=1, Z=0)"])
    assert problem != Problem(CHAIN, "Y", arms=problem.arms)
    wider = with_doubtful(problem, ["Z -> Y"])
    assert wider.forbidden == problem.forbidden and wider.arms == problem.arms


def test_past_records_of_forbidden_arms_are_learned():
    problem = Problem(CHAIN, "Y", forbidden="do(X=1)")
    belief = Belief(problem)
    before = belief.mean_rewards()
    belief.update("do(X=1)", {"Z": 0, "Y": 1})
    after = belief.mean_rewards()
    assert after[0] > before[0] and after[1] == before[1]  # Y given X=1, possible under do()
    policy = make_policy("ids", problem)
    policy.observe("do(X=1)", {"Z": 0, "Y": 1})
    assert policy.decide(rng=0).arm in problem.arms
    with raises_code("unknown-arm", "do(X=1) is forbidden"):
        policy.decide(rng=0, allowed=["do(X=1)"])


@given(st.integers(0, 2**32 - 1))
@examples(40)
def test_problems_with_forbidden_assignments_round_trip(seed):
    graph, roles, forbidden = random_problem(np.random.default_rng(seed))
    problem = Problem(graph, **roles, forbidden=forbidden)
    assert parse_problem(problem_text(problem)) == problem
    explain_excluded_arms(problem)


# -- explanations -------------------------------------------------------------------------------


def explain(text, **options):
    return explain_excluded_arms(Problem(text, "Y", **options))


@pytest.mark.parametrize(
    ("problem", "mentioned"),
    [
        (load_problem("task3"), "setting X3 never beats the best way of setting X2."),
        (load_problem("task2"), "in every context"),
        (Problem("Y -> W", "Y"), "No variable that you can set has an effect on Y"),
        (Problem("X -> Y; X <-> Y", "Y"), "No set of variables is left out"),
        (Problem("X -> Y", "Y"), "The other set is left out"),
        (Problem("X -> Y -> W", "Y", soft=0.1), "and any of the soft edges"),
        (Problem("X -> Y", "Y", arms=["do()"]), 'arms = "pomis" finds them'),
        (Problem("X -> Y", "Y", arms="do()", forbidden="do(X=1)"), 'arms = "minimal" finds them'),
        (Problem("X -> Y", "Y", arms="all"), "all interventions;"),
        (Problem("X -> Y", "Y", arms="all", forbidden="do(X=1)"), "except forbidden ones"),
        (Problem("X -> Y", "Y", arms="minimal"), "each variable matters in each of them"),
        (Problem("X -> Y; W", "Y", arms="minimal"), "setting W does no more than doing nothing."),
    ],
)
def test_explanations_of_each_kind(problem, mentioned):
    assert mentioned in explain_excluded_arms(problem)


def test_explanation_of_pomis_with_forbidden_assignments():
    with pytest.warns(DowiseWarning):
        assert "may be better ones" in explain("X -> Y", arms="pomis", forbidden="do(X=1)")


@given(cases(max_size=7), st.sampled_from([None, 0.1]))
def test_the_example_has_an_excluded_set_and_a_better_arm(case, soft):
    graph, reward, context, hidden = case
    problem = Problem(graph, reward, context, hidden, soft=soft)
    _, _, example = explain_excluded_arms(problem).partition("For example, ")

    def names(phrase):
        phrase = phrase.removeprefix("the best way of ").removeprefix("setting ")
        is_empty = phrase == "doing nothing"
        return frozenset([] if is_empty else phrase.replace(" and ", ", ").split(", "))

    if example:
        excluded, better = map(names, example.rstrip(".").split(" never beats "))
        assert excluded not in problem.intervention_sets and better in problem.intervention_sets


def test_the_command_line_shows_forbidden_assignments(tmp_path):
    path = tmp_path / "ward.toml"
    path.write_text(f'graph = "{CHAIN}"\nreward = "Y"\nforbidden = ["do(X=1)"]\n')
    output = " ".join(CliRunner().invoke(main, ["arms", str(path)]).stdout.split())
    assert "forbidden in an arm do(X=1)" in output and "3 minimal intervention sets" in output
    assert "setting X and Z does no more than setting X to the same." in output
    document = json.loads(CliRunner().invoke(main, ["arms", str(path), "--json"]).stdout)
    assert document["forbidden"] == [{"X": "1"}]
