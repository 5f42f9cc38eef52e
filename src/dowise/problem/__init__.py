"""Decision problems: roles, domains, arms, records and problem files."""

from dowise.problem.intervention import Intervention
from dowise.problem.payoff import Payoff
from dowise.problem.problem import Problem
from dowise.problem.problem_file import builtin_names, load_problem
from dowise.problem.record import Record, RecordBatch

__all__ = [
    "Intervention",
    "Payoff",
    "Problem",
    "Record",
    "RecordBatch",
    "builtin_names",
    "load_problem",
]
