"""Policies on known worlds: what they may cost, and what they do cost."""

from dowise.simulation.bounds import Bounds, bounds

__all__ = ["Bounds", "bounds"]
