"""Policies where the graph is not the whole truth: hidden causes, doubts, what is unused."""

import json
import warnings

import numpy as np
import pytest

from dowise import (
    Belief,
    CausalGraph,
    DowiseError,
    Problem,
    check_policy,
    load_problem,
    make_environment,
    make_policy,
)
from dowise.errors import DowiseWarning
from dowise.simulation.bounds import bounds
from dowise.simulation.trial import run_trial

DOUBTFUL = Problem(
    CausalGraph.parse("C -> X; C ?-> Y; Z -> X -> Y; X <-> Y; Z <?> X"), "Y", "C",
    domains={"X": range(3)},
)  # fmt: skip
SURE = Problem(CausalGraph.parse("Z -> X -> Y; X <-> Y!"), "Y")
SOFT = Problem(load_problem("task1").graph, "Y", non_manipulable="Z", soft=0.1)


@pytest.mark.parametrize("problem", [DOUBTFUL, SURE, SOFT], ids=["doubtful", "sure", "soft"])
@pytest.mark.parametrize("name", ["ids", "ts"])
def test_a_compiled_trial_is_a_stepped_one(name, problem):
    world = make_environment(problem, 5)
    options = {"samples": 40} if name == "ids" else {}
    compiled, stepped = (make_policy(name, problem, **options) for _ in range(2))
    stepped.compiled_trial = lambda: None
    assert compiled.compiled_trial() is not None
    one, other = (run_trial(world, lambda _, p=p: p, 60, 1, 2) for p in (compiled, stepped))
    np.testing.assert_array_equal(one.arms, other.arms)
    assert compiled.state() == stepped.state()


@pytest.mark.parametrize("name", ["ids", "ts"])
@pytest.mark.parametrize("problem", [DOUBTFUL, SURE], ids=["doubtful", "sure"])
def test_the_contract(name, problem):
    check_policy(name, rounds=40, problems=[problem])


@pytest.mark.parametrize("name", ["ids", "ts"])
def test_a_decision_tells_how_likely_edges_were_then(name):
    policy = make_policy(name, DOUBTFUL)
    decision = policy.decide({"C": 1}, 0)
    for _ in range(30):
        policy.observe("do(X=2)", {"C": 1, "Z": 0, "Y": 1})
        policy.observe("do(X=2)", {"C": 0, "Z": 0, "Y": 0})
    priors = dict(DOUBTFUL.edge_priors)
    assert decision.figures["edges"] == pytest.approx(priors)
    assert policy.decide({"C": 1}, 0).figures["edges"]["C -> Y"] > 0.99
    assert json.dumps(decision.as_dict("edges"))
    plain = make_policy(name, load_problem("task1")).decide(rng=0)
    assert "edges" not in plain.figures


def test_what_nobody_records_is_said_once_with_the_remedy():
    """Without a word, nothing at all was learned where a mediator is never recorded."""
    problem = Problem(CausalGraph.parse("X -> M -> Y"), "Y", non_manipulable="M")
    policy = make_policy("ts", problem)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(9):
            policy.observe("do(X=1)", {"Y": 1})
    with pytest.warns(DowiseWarning, match=r'about M, Y, because M was.*hidden = \["M"\]'):
        policy.observe("do(X=1)", {"Y": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(100):
            policy.observe("do(X=1)", {"Y": 1})
    assert policy.belief.unused == {"M": {"M was not seen": 110}, "Y": {"M was not seen": 110}}
    assert policy.belief.never_used() == {"M": ("M",), "Y": ("M",)}


def test_once_it_is_declared_hidden_it_is_learned_from_what_is_seen():
    problem = Problem(CausalGraph.parse("X -> M -> Y"), "Y", hidden="M")
    assert str(problem.graph) == "X -> Y"
    policy = make_policy("ts", problem)
    for _ in range(20):
        policy.observe("do(X=1)", {"Y": 1})
        policy.observe("do(X=0)", {"Y": 0})
    assert policy.belief.unused == {}
    assert policy.belief.mean_rewards()[-1] > 0.9


def test_a_value_now_and_then_missing_is_no_reason_to_warn():
    policy = make_policy("ts", load_problem("task1"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(30):
            policy.observe("do(X=1)", {"Z": 0, "Y": 1} if i % 3 else {"Y": 0})
    assert policy.belief.unused == {
        "Y": {"Z was not seen": 10},
        "Z": {"Z was not seen": 10},
    }


def test_what_is_unused_is_forgotten_with_its_record():
    problem = load_problem("task1")
    belief, partial = Belief(problem), problem.record("do(X=1)", {"Y": 1})
    belief.learn(partial)
    assert belief.unused == {"Y": {"Z was not seen": 1}, "Z": {"Z was not seen": 1}}
    belief.retract(partial)
    assert belief.unused == {}
    with pytest.raises(DowiseError, match="it was not learned"):
        belief.retract(partial)
    assert belief.unused == {}


def test_bounds_and_intervals_on_a_graph_with_doubts():
    belief = Belief(DOUBTFUL)
    intervals = belief.reward_intervals({"C": 1}, 0.9)
    assert intervals.shape == (len(DOUBTFUL.arms), 2)
    assert (intervals[:, 0] < intervals[:, 1]).all()
    found = bounds(DOUBTFUL, horizon=100, samples=2000)
    assert found.entropy > 0 and found.p_best.shape == (2, len(DOUBTFUL.arms))
