"""What is known of the numbers: posteriors behind one protocol, and the belief that users hold."""

from dowise.belief.belief import Belief
from dowise.belief.dirichlet import Dirichlet
from dowise.belief.mixture import Mixture
from dowise.belief.posterior import Posterior

__all__ = ["Belief", "Dirichlet", "Mixture", "Posterior"]
