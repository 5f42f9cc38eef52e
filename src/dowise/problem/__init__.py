"""What is to be decided: roles, domains, arms, records, and the files that say so."""

from dowise.problem.files import builtin_names, load_problem
from dowise.problem.intervention import Intervention
from dowise.problem.libraries import problem_from_dowhy, problem_from_pgmpy
from dowise.problem.payoff import Payoff
from dowise.problem.problem import Problem
from dowise.problem.record import Record

__all__ = [
    "Intervention", "Payoff", "Problem", "Record", "builtin_names", "load_problem",
    "problem_from_dowhy", "problem_from_pgmpy",
]  # fmt: skip
