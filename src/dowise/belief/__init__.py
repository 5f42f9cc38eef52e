"""What is known of the numbers: posteriors behind one protocol, and the belief that users hold."""

from dowise.belief.belief import Belief
from dowise.belief.posterior import Posterior

__all__ = ["Belief", "Posterior"]
