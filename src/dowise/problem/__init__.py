"""What is to be decided: roles, domains, arms, and the files that say so."""

from dowise.problem.files import builtin_names, load_problem
from dowise.problem.intervention import Intervention
from dowise.problem.problem import Problem

__all__ = ["Intervention", "Problem", "builtin_names", "load_problem"]
