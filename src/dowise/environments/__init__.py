"""Worlds with true CPTs, for simulation; the Gymnasium adapter is in `dowise.environments.gym`."""

from dowise.environments.environment import Environment, OptimalMap, World
from dowise.environments.networks import front_door_world, network_world
from dowise.environments.random_worlds import (
    Manner,
    RandomProblem,
    random_chordal_graph,
    random_problem,
)
from dowise.environments.sources import (
    ChordalWorlds,
    DrawnWorlds,
    OneWorld,
    Worlds,
    make_environment,
    worlds_of,
)

__all__ = [
    "ChordalWorlds",
    "DrawnWorlds",
    "Environment",
    "Manner",
    "OneWorld",
    "OptimalMap",
    "RandomProblem",
    "World",
    "Worlds",
    "front_door_world",
    "make_environment",
    "network_world",
    "random_chordal_graph",
    "random_problem",
    "worlds_of",
]
