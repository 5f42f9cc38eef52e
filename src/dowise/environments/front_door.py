"""The front-door world: a hidden cause of both X and Y, and a mediator that can't be set.

    X = U_X ⊕ U_XY        Z = U_Z ⊕ X        Y = (U_Y ∧ U_XY) ⊕ Z

All U are hidden, so the problem's graph is X -> Z -> Y; X <-> Y. Estimators that go through Z, such
as those of z²ID, apply there.

>>> front_door_world().means().round(3).tolist()  # do(), do(X=0), do(X=1)
[0.5, 0.44, 0.56]
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from dowise.environments.environment import Environment
from dowise.graph import CausalGraph
from dowise.problem import Problem

__all__ = ["front_door_world"]

_IS_ZERO, _IS_ONE = [1.0, 0.0], [0.0, 1.0]


def front_door_world() -> Environment:
    """X -> Z -> Y; X <-> Y with N = {Z}; the means are .50 for do(), .44 and .56 for do(X=x)."""
    problem = Problem(
        CausalGraph.parse("X -> Z -> Y; X <-> Y"), "Y", non_manipulable="Z", name="front-door"
    )
    graph = CausalGraph.parse("U_X -> X; U_XY -> X; U_XY -> Y; U_Z -> Z; U_Y -> Y; X -> Z -> Y")
    exclusive_or = [[_IS_ZERO, _IS_ONE], [_IS_ONE, _IS_ZERO]]
    cpts: dict[str, ArrayLike] = {
        "U_X": [0.5, 0.5],
        "U_Y": [0.6, 0.4],
        "U_Z": [0.6, 0.4],
        "U_XY": [0.5, 0.5],
        "X": exclusive_or,  # of U_X and U_XY
        "Z": exclusive_or,  # of U_Z and X
        "Y": [[[_IS_ZERO, _IS_ONE]] * 2, exclusive_or],  # of U_XY, U_Y and Z: Z unless both U are 1
    }
    return Environment(problem, cpts, graph)
