"""Policies on known worlds: what they may cost, and what they do cost."""

from dowise.simulation.bound_figures import Bounds
from dowise.simulation.bounds import bounds
from dowise.simulation.entrants import On
from dowise.simulation.result import Result
from dowise.simulation.simulate import simulate

__all__ = ["Bounds", "On", "Result", "bounds", "simulate"]
