"""Decision problems: roles, domains, arms, records and problem files."""

from dowise.problem.arms import why_others_are_out as why_others_are_out
from dowise.problem.intervention import Intervention
from dowise.problem.payoff import Payoff
from dowise.problem.problem import MAX_ARMS as MAX_ARMS
from dowise.problem.problem import Problem
from dowise.problem.problem_file import builtin_names, load_problem
from dowise.problem.problem_file import builtin_path as builtin_path
from dowise.problem.problem_file import costs_in_words as costs_in_words
from dowise.problem.problem_file import doubts_in_words as doubts_in_words
from dowise.problem.problem_file import parse_problem as parse_problem
from dowise.problem.problem_file import problem_text as problem_text
from dowise.problem.problem_file import toml as toml
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
