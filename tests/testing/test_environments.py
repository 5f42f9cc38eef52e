"""check_environment: correct worlds pass, and each broken promise is named."""

import sys

import numpy as np
import pytest
from support.errors import raises_code

from dowise import CausalGraph, Environment, Problem, check_environment
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
def test_correct_worlds_pass(world):
    check_environment(world, plays=300)


class Breakable(Environment):
    """Confounded world with methods to override."""

    def __init__(self):
        world = make_environment(CONFOUNDED, 0)
        super().__init__(CONFOUNDED, world.cpts, world.graph)
        self.count = 0


def broken(method, fault):
    """A world whose `method` returns fault(correct result, world, *arguments)."""

    def replaced(self, *arguments):
        return fault(getattr(Environment, method)(self, *arguments), self, *arguments)

    return type("Broken", (Breakable,), {method: replaced})()


def stateful(outcome, world, *_):
    world.count += 1
    return outcome | {"Y": "ab"[world.count % 2]}


def clearing(outcome, _world, _arm, context, _rng):
    context.clear()
    return outcome


@pytest.mark.parametrize(
    ("method", "fault", "mentioned"),
    [
        ("draw_context", lambda c, *_: [*c], "draw_context must return a dict"),
        ("draw_context", lambda *_: {}, "draw_context must return a label of C"),
        ("draw_context", lambda *_: {"C": 1}, "draw_context returned C=1"),
        ("draw_context", lambda c, *_: c | {"X": "1"}, "must not show 'X', only C"),
        (
            "draw_context",
            lambda *_: {"C": str(np.random.default_rng().integers(2))},
            "equal contexts",
        ),
        ("play", lambda o, *_: {v: o[v] for v in "CX"}, "play must return a label of Y"),
        ("play", lambda o, *_: o | {"Y": "c"}, "play returned Y='c'"),
        ("play", lambda o, *_: o | {"U(C,X)": "1"}, "play must not show 'U(C,X)', only C, X, Y"),
        ("play", lambda o, *_: o | {"C": "1"}, "must keep C=0, but returned 1"),
        ("play", lambda o, *_: o | {"X": "1"}, "play of do(X=0) must keep X=0, but returned 1"),
        ("play", stateful, "equal outcomes"),
        ("play", clearing, "must not change the context"),
        ("play", lambda o, *_: o | {"Y": "a"}, "1,000 plays average -3.000"),
        ("means", lambda m, *_: m[:-1], "one number for each of 3 arms"),
        ("means", lambda m, *_: m + 20, "between -3 and 9"),
        ("means", lambda m, *_: m * np.nan, "between -3 and 9"),
        ("best_arm", lambda _b, world, *_: world.problem.arms[0], "the first arm with the largest"),
        ("regret", lambda *_: -1.0, "regret must not be negative"),
        ("regret", lambda r, *_: 2 * r, "the distance to the largest mean"),
    ],
)
def test_each_broken_promise_is_named(method, fault, mentioned):
    with raises_code("broken-contract", mentioned):
        check_environment(broken(method, fault))


def test_objects_without_the_interface_are_refused():
    with raises_code("broken-contract", "an attribute problem"):
        check_environment(3)
    with raises_code("broken-contract", "a method draw_context"):
        check_environment(type("Stub", (), {"problem": CONFOUNDED})())
    with raises_code("invalid-number", "plays=0"):
        check_environment(front_door_world(), plays=0)


def test_unknown_variables_in_a_context_must_be_refused():
    class Lenient(Breakable):
        def means(self, context=None):
            return super().means({"C": (context or {}).get("C", 0)})

    class Exiting(Breakable):
        def means(self, context=None):
            return super().means(context) if "C" in (context or {}) else sys.exit()

    with raises_code("broken-contract", "an unknown variable"):
        check_environment(Lenient(), plays=1)
    with raises_code("broken-contract", "not SystemExit"):
        check_environment(Exiting(), plays=1)
