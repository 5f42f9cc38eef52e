"""Worlds with true CPTs, for simulation; the Gymnasium adapter is in `dowise.environments.gym`."""

from dowise.environments.environment import Environment, OptimalMap, World
from dowise.environments.networks import front_door_world, network_world
from dowise.environments.random_worlds import (
    RandomProblem,
    WorldOptions,
    random_chordal_graph,
    random_problem,
)
from dowise.environments.sources import (
    ChordalWorlds,
    FixedWorld,
    SampledWorlds,
    Worlds,
    make_environment,
    resolve_worlds,
)

__all__ = [
    "ChordalWorlds",
    "Environment",
    "FixedWorld",
    "OptimalMap",
    "RandomProblem",
    "SampledWorlds",
    "World",
    "WorldOptions",
    "Worlds",
    "front_door_world",
    "make_environment",
    "network_world",
    "random_chordal_graph",
    "random_problem",
    "resolve_worlds",
]
