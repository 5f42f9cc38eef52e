"""Worlds with true CPTs, for simulation; the Gymnasium adapter is in `dowise.environments.gym`."""

from dowise.environments.checks import check_environment
from dowise.environments.chordal import RandomProblem, random_chordal_graph, random_problem
from dowise.environments.environment import Environment, OptimalMap
from dowise.environments.front_door import front_door_world
from dowise.environments.make import make_environment
from dowise.environments.world import World

__all__ = [
    "Environment",
    "OptimalMap",
    "RandomProblem",
    "World",
    "check_environment",
    "front_door_world",
    "make_environment",
    "random_chordal_graph",
    "random_problem",
]
