"""Posterior of a problem's factors, and the belief that users hold."""

from dowise.belief.belief import Belief
from dowise.belief.posterior import Posterior

__all__ = ["Belief", "Posterior"]
