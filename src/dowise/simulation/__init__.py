"""Simulations of policies in known worlds, and bounds on their regret."""

from dowise.simulation.bounds import Bounds, bounds
from dowise.simulation.result import Result
from dowise.simulation.simulate import simulate
from dowise.simulation.spec import On

__all__ = ["Bounds", "On", "Result", "bounds", "simulate"]
