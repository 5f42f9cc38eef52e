"""check_environment: right worlds pass, and each broken promise is named."""

import re
import sys

import numpy as np
import pytest

from dowise import CausalGraph, DowiseError, Environment, Problem, check_environment
from dowise.environments import front_door_world, make_environment

CONFOUNDED = Problem(
    CausalGraph.parse("C -> X -> Y; C <-> X; C <-> Y"), "Y", "C", reward_values={"a": -3, "b": 9}
)


@pytest.mark.parametrize(
    "world",
    [
        make_environment("task1", 0),
        make_environment("task3", 0),
        make_environment(CONFOUNDED, 0),
        make_environment("chordal-10-0.1", 0),
        front_door_world(),
    ],
    ids=lambda world: world.problem.name or "confounded",
)
def test_right_worlds_pass(world):
    check_environment(world, plays=300)


class Wrong(Environment):
    """A world to break: task2 with the CPTs of another."""

    def __init__(self):
        super().__init__(CONFOUNDED, (right := make_environment(CONFOUNDED, 0)).cpts, right.graph)
        self.count = 0


def broken(method, wrong):
    """A world whose `method` returns wrong(what it should, the world, its arguments)."""

    def replaced(self, *arguments):
        return wrong(getattr(Environment, method)(self, *arguments), self, *arguments)

    return type("Broken", (Wrong,), {method: replaced})()


def stateful(outcome, world, *_):
    world.count += 1
    return outcome | {"Y": "ab"[world.count % 2]}


def stealing(outcome, _world, _arm, context, _rng):
    context.clear()
    return outcome


@pytest.mark.parametrize(
    ("method", "wrong", "message"),
    [
        ("draw_context", lambda c, *_: [*c], "draw_context must return a dict"),
        ("draw_context", lambda *_: {}, "draw_context must give a label of C"),
        ("draw_context", lambda *_: {"C": 1}, "draw_context gave C=1; its labels are 0, 1"),
        ("draw_context", lambda c, *_: c | {"X": "1"}, "must not show 'X', only C"),
        ("draw_context", lambda *_: {"C": str(np.random.default_rng().integers(2))}, "same seed"),
        ("play", lambda o, *_: {v: o[v] for v in "CX"}, "play must give a label of Y"),
        ("play", lambda o, *_: o | {"Y": "c"}, "play gave Y='c'; its labels are a, b"),
        ("play", lambda o, *_: o | {"U(C,X)": "1"}, "play must not show 'U(C,X)', only C, X, Y"),
        ("play", lambda o, *_: o | {"C": "1"}, "must keep C=0, but returned 1"),
        ("play", lambda o, *_: o | {"X": "1"}, "play of do(X=0) must keep X=0, but returned 1"),
        ("play", stateful, "same seed, same outcome"),
        ("play", stealing, "play must leave the context that it is given as it is"),
        ("play", lambda o, *_: o | {"Y": "a"}, "but 1,000 plays brought -3.000"),
        ("means", lambda m, *_: m[:-1], "one number for each of 3 arms"),
        ("means", lambda m, *_: m + 20, "means lie between -3 and 9"),
        ("means", lambda m, *_: m * np.nan, "means lie between -3 and 9"),
        ("best_arm", lambda _b, world, *_: world.problem.arms[0], "the first arm with the largest"),
        ("regret", lambda *_: -1.0, "regret is never negative"),
        ("regret", lambda r, *_: 2 * r, "regret is how far an arm's mean is from the largest"),
    ],
)  # fmt: skip
def test_each_broken_promise_is_named(method, wrong, message):
    with pytest.raises(DowiseError, match=re.escape(message)):
        check_environment(broken(method, wrong))


def test_what_is_no_world_at_all_is_said():
    with pytest.raises(DowiseError, match="it needs a Problem as its attribute problem"):
        check_environment(3)
    with pytest.raises(DowiseError, match="it needs a method draw_context"):
        check_environment(type("Stub", (), {"problem": CONFOUNDED})())
    with pytest.raises(DowiseError, match="plays=0 must be"):
        check_environment(front_door_world(), plays=0)


def test_unknown_variables_in_a_context_must_be_refused():
    class Lenient(Wrong):
        def means(self, context=None):
            return super().means({"C": (context or {}).get("C", 0)})

    class Leaving(Wrong):
        def means(self, context=None):
            return super().means(context) if "C" in (context or {}) else sys.exit()

    with pytest.raises(DowiseError, match="an unknown variable must be a DowiseError"):
        check_environment(Lenient(), plays=1)
    with pytest.raises(DowiseError, match="must be a DowiseError, not SystemExit"):
        check_environment(Leaving(), plays=1)
