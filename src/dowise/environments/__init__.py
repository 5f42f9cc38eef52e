"""Worlds with true CPTs, for simulation; the Gymnasium adapter is in `dowise.environments.gym`."""

from dowise.environments.checks import check_environment
from dowise.environments.chordal import RandomProblem, random_chordal_graph, random_problem
from dowise.environments.draw import Manner
from dowise.environments.environment import Environment, OptimalMap
from dowise.environments.front_door import front_door_world
from dowise.environments.make import make_environment
from dowise.environments.networks import network_world
from dowise.environments.sources import ChordalWorlds, DrawnWorlds, OneWorld, Worlds, worlds_of
from dowise.environments.world import World

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
    "check_environment",
    "front_door_world",
    "make_environment",
    "network_world",
    "random_chordal_graph",
    "random_problem",
    "worlds_of",
]
