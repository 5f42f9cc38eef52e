"""What is known of the CPTs: Dirichlet counts, posterior draws, the reward program."""

from dowise.belief.belief import Belief

__all__ = ["Belief"]
