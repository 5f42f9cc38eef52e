"""Worlds with true CPTs, for simulation."""

from dowise.environments.environment import Environment, make_environment

__all__ = ["Environment", "make_environment"]
