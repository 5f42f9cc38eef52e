"""Forbidden assignments: no arm contains one, and the best of what is permitted is an arm."""

import copy
import json
import pickle
import re
from itertools import combinations, product

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from support.doubtful_problems import with_doubtful
from support.random_problems import random_problem
from support.slow_twins import edges, subsets
from support.strategies import cases, examples

from dowise import (
    Belief,
    CausalGraph,
    DowiseError,
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
from dowise.problem.arms import why_others_are_out
from dowise.problem.problem_file import parse_problem, problem_text

CHAIN = CausalGraph.parse("Z -> X -> Y")


def texts(problem):
    return [str(arm) for arm in problem.arms]


def contains(arm, assignment):
    return all(arm.get(name) == label for name, label in assignment.items())


def minimal_by_definition(graph, reward):
    """X is a subset of An(Y) once the arrows into X are cut."""
    directed, _ = edges(graph)
    found = set()
    for names in subsets(set(graph.variables) - {reward}):
        above = {reward}
        while more := {a for a, b in directed if b in above and b not in names} - above:
            above |= more
        if names <= above:
            found.add(frozenset(names))
    return found


def test_the_issues_example():
    """In Z -> X -> Y with do(X=1) forbidden, do(Z=1) can be best, and it is no POMIS."""
    problem = Problem(CHAIN, "Y", forbidden=("do(X=1)",))
    assert problem.arms_kind == "minimal" and problem.forbidden == (Intervention({"X": 1}),)
    assert texts(problem) == ["do()", "do(X=0)", "do(Z=0)", "do(Z=1)"]
    same, mostly = [[1, 0], [0, 1]], [[0.9, 0.1], [0.2, 0.8]]
    world = Environment(problem, {"Z": [0.5, 0.5], "X": mostly, "Y": same})
    assert str(world.best_arm()) == "do(Z=1)"
    with pytest.warns(DowiseWarning, match="leave out arms = 'pomis'"):
        assert texts(Problem(CHAIN, "Y", forbidden="do(X=1)", arms="pomis")) == ["do(X=0)"]


@given(cases(max_size=6))
def test_minimal_sets_are_those_of_the_definition(case):
    graph, reward, context, immovable = case
    problem = Problem(graph, reward, context, immovable, arms="minimal")
    found = minimal_by_definition(problem.projected, reward)
    assert set(problem.intervention_sets) == found
    assert set(Problem(graph, reward, context, immovable).intervention_sets) <= found
    sizes = [(len(names), sorted(names)) for names in problem.intervention_sets]
    assert sizes == sorted(sizes) and len(set(problem.arms)) == len(problem.arms)
    for names in subsets(problem.manipulable):
        assert is_minimal(problem.projected, reward, names) == (frozenset(names) in found)


def check_best(seed, worlds):
    rng = np.random.default_rng(seed)
    graph, roles, forbidden = random_problem(rng)
    every = Problem(graph, **roles, arms="all")
    problem = Problem(graph, **roles, forbidden=forbidden)
    ok = [not any(contains(arm, never) for never in forbidden) for arm in every.arms]
    assert all(ok[every.arm_index(arm)] for arm in problem.arms)
    for _ in range(worlds):
        world = make_environment(every, rng, strong=True)
        own = Environment(problem, world.cpts, world.graph)
        domains = [every.domains[name] for name in every.context]
        for labels in product(*domains):
            context = dict(zip(every.context, labels, strict=True))
            best = world.means(context)[ok].max()
            assert own.means(context).max() == pytest.approx(best, abs=1e-12)
    return len(problem.arms), sum(ok)


def test_the_best_arm_is_the_best_of_all_permitted_interventions():
    counts = [check_best(seed, worlds=2) for seed in range(60)]
    assert sum(own < all_permitted for own, all_permitted in counts) > 20  # something was saved


@pytest.mark.slow
@pytest.mark.parametrize("block", range(5))
def test_the_best_arm_is_the_best_of_all_permitted_interventions_more_often(block):
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        check_best(seed, worlds=3)


def test_pomis_alone_would_miss_the_best():
    """So the check above can fail."""
    missed = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        graph, roles, forbidden = random_problem(rng)
        problem = Problem(graph, **roles, forbidden=forbidden)
        usual = Problem(graph, **roles)
        left = [arm for arm in usual.arms if not any(contains(arm, never) for never in forbidden)]
        world = make_environment(problem, rng, strong=True)
        context = dict.fromkeys(problem.context, "0")
        means = world.means(context)
        best = max((means[problem.arm_index(arm)] for arm in left), default=0)
        missed += best < means.max() - 1e-9
    assert missed > 3


def test_with_soft_edges_the_minimal_sets_are_those_of_the_graph_with_all_of_them():
    graph = CausalGraph.parse("Z -> X -> Y; W")
    problem = Problem(graph, "Y", forbidden="do(X=1)", soft=0.1)
    for own in (problem.projected, problem.projection(problem.possible)):
        assert minimal_by_definition(own, "Y") <= set(problem.intervention_sets)
    assert frozenset({"W", "X", "Z"}) in problem.intervention_sets


def test_what_contains_a_forbidden_assignment_is_out_whoever_chooses_the_arms():
    graph = CausalGraph.parse("A -> Y; B -> Y; C -> Y")
    pairs = [{a: 1, b: 0} for a, b in combinations("ABC", 2)]
    for kind in ("minimal", "all"):
        problem = Problem(graph, "Y", arms=kind, forbidden=pairs)
        every = Problem(graph, "Y", arms="all").arms
        assert set(problem.arms) == {
            arm
            for arm in every
            if not any(contains(arm, {n: str(v) for n, v in never.items()}) for never in pairs)
        }
    with pytest.warns(DowiseWarning):
        left = Problem(graph, "Y", arms="pomis", forbidden=pairs)
    assert texts(left) == ["do(A=0, B=0, C=0)", "do(A=0, B=0, C=1)", "do(A=0, B=1, C=1)",
                           "do(A=1, B=1, C=1)"]  # fmt: skip


@pytest.mark.slow
def test_one_thing_at_a_time_among_thirty():
    """2^30 sets, of which 31 have a permitted arm: only those are ever looked at."""
    names = [f"X{i:02}" for i in range(30)]
    graph = CausalGraph([(name, "Y") for name in names])
    never = [{a: x, b: y} for a, b in combinations(names, 2) for x in (0, 1) for y in (0, 1)]
    problem = Problem(graph, "Y", forbidden=never)
    assert len(problem.arms) == 61 and len(problem.intervention_sets) == 31
    immovable = [{name: value} for name in names for value in (0, 1)]
    assert texts(Problem(graph, "Y", forbidden=immovable)) == ["do()"]
    with pytest.raises(DowiseError, match="there are more than max_arms, which is 100,000"):
        Problem(graph, "Y", forbidden="do(X00=0)")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"forbidden": "do()"}, "forbidden: every arm contains do(), so none would be left"),
        ({"forbidden": ["do(X=2)"]}, "forbidden: X has no value '2': its values are 0, 1"),
        ({"forbidden": ["do(Q=2)"]}, "forbidden: unknown variable 'Q'"),
        ({"forbidden": ["do(Y=1)"]}, "forbidden: Y can't be set: it is the reward"),
        ({"forbidden": ["do(Z=1)"], "non_manipulable": "Z"}, "Z can't be set: it is non-manip"),
        ({"forbidden": ["X=1"]}, "forbidden: an intervention reads do(X=1, …)"),
        ({"forbidden": 7}, "forbidden=7 must be a list of assignments"),
        ({"forbidden": [7]}, "forbidden: 7 is not an intervention"),
        (
            {"forbidden": ["do(X=1)"], "arms": ["do()", "do(X=1)", "do(X=1, Z=0)"]},
            "forbidden, but among the arms: do(X=1), do(X=1, Z=0) (it contains do(X=1)); ",
        ),
        (
            {"forbidden": ["do(X=1)", "do(X=0)"], "arms": "pomis"},
            "all arms that could be optimal are forbidden: leave out arms = 'pomis'",
        ),
        ({"forbidden": "do(X=1)", "max_arms": 3}, "there are more than max_arms, which is 3"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(options, message):
    with pytest.raises(DowiseError, match=re.escape(message)):
        Problem(CHAIN, "Y", **options)


def test_every_arm_of_ones_own_that_is_forbidden_is_named():
    problem = Problem(CHAIN, "Y", forbidden="do(X=1)", arms="do(X=0)")
    assert texts(problem) == ["do(X=0)"] and problem.arms_kind == "custom"
    with pytest.raises(DowiseError, match=r"^do\(X=1, Z=0\) is forbidden: it contains do\(X=1\)$"):
        problem.arm_index("do(X=1, Z=0)")


def test_it_travels_and_is_told_apart(tmp_path):
    problem = Problem(CHAIN, "Y", forbidden=["do(X=1, Z=0)", {"X": 0}], name="p")
    assert "forbidden=[do(X=0), do(X=1, Z=0)]" in repr(problem)
    problem.save(tmp_path / "p.toml")
    copies = (
        pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem),
        load_problem(tmp_path / "p.toml"), parse_problem(problem_text(problem)),
    )  # fmt: skip
    for other in copies:
        assert other == problem and other.forbidden == problem.forbidden
        assert other.arms_kind == "minimal"
    assert problem != Problem(CHAIN, "Y", forbidden=["do(X=1, Z=0)"], name="p")
    # Two ways to come to the same arms are still two problems: one of them forbids something.
    assert Problem(CHAIN, "Y", arms=problem.arms, name="p") != problem
    wider = with_doubtful(problem, ["Z -> Y"])
    assert wider.forbidden == problem.forbidden and wider.arms == problem.arms


def test_a_warning_is_given_once_to_whoever_wrote_it(tmp_path):
    with pytest.warns(DowiseWarning):
        problem = Problem(CHAIN, "Y", forbidden="do(X=1)", arms="pomis")
    problem.save(tmp_path / "p.toml")
    assert pickle.loads(pickle.dumps(problem)) == problem == parse_problem(problem_text(problem))
    with pytest.warns(DowiseWarning):
        assert load_problem(tmp_path / "p.toml").arms_kind == "pomis"


def test_past_records_of_what_is_forbidden_still_teach():
    problem = Problem(CHAIN, "Y", forbidden="do(X=1)")
    belief = Belief(problem)
    before = belief.mean_rewards()
    belief.update("do(X=1)", {"Z": 0, "Y": 1})
    after = belief.mean_rewards()
    assert after[0] > before[0] and after[1] == before[1]  # Y given X=1, which do() may bring
    policy = make_policy("ids", problem)
    policy.observe("do(X=1)", {"Z": 0, "Y": 1})
    assert policy.decide(rng=0).arm in problem.arms
    with pytest.raises(DowiseError, match=r"do\(X=1\) is forbidden"):
        policy.decide(rng=0, allowed=["do(X=1)"])


def test_the_command_line_says_what_is_forbidden_and_why_others_are_out(tmp_path):
    path = tmp_path / "ward.toml"
    path.write_text('graph = "Z -> X -> Y"\nreward = "Y"\nforbidden = ["do(X=1)"]\n')
    shown = " ".join(CliRunner().invoke(main, ["arms", str(path)]).stdout.split())
    assert "forbidden in an arm do(X=1)" in shown and "3 minimal intervention sets" in shown
    assert "Whatever contains something forbidden is out." in shown
    assert "setting X and Z does no more than setting X to the same." in shown
    document = json.loads(CliRunner().invoke(main, ["arms", str(path), "--json"]).stdout)
    assert document["forbidden"] == [{"X": "1"}]
    path.write_text('graph = "Z -> X -> Y"\nreward = "Y"\nforbidden = ["do()"]\n')
    failed = CliRunner().invoke(main, ["arms", str(path)])
    assert failed.exit_code == 2 and "every arm contains do()" in failed.stderr


def test_reasons_in_words():
    def why(text, **options):
        return why_others_are_out(Problem(CausalGraph.parse(text), "Y", **options))

    assert "each variable matters in each of them" in why("X -> Y", arms="minimal")
    assert "setting W does no more than doing nothing." in why("X -> Y; W", arms="minimal")
    assert "but for the forbidden ones" in why("X -> Y", arms="all", forbidden="do(X=1)")
    assert 'arms = "minimal" finds them' in why("X -> Y", arms="do()", forbidden="do(X=1)")
    with pytest.warns(DowiseWarning):
        assert "there may be better ones" in why("X -> Y", arms="pomis", forbidden="do(X=1)")


@given(st.integers(0, 2**32 - 1))
@examples(40)
def test_any_problem_with_forbidden_assignments_round_trips(seed):
    graph, roles, forbidden = random_problem(np.random.default_rng(seed))
    problem = Problem(graph, **roles, forbidden=forbidden)
    assert parse_problem(problem_text(problem)) == problem
    why_others_are_out(problem)
