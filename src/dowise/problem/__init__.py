"""Decision problems: roles, domains, arms, records and problem files."""

from dowise.problem.arms import explain_excluded_arms as explain_excluded_arms
from dowise.problem.intervention import Intervention
from dowise.problem.payoff import Payoff
from dowise.problem.prior import is_prior_name as is_prior_name
from dowise.problem.problem import MAX_ARMS as MAX_ARMS
from dowise.problem.problem import Problem
from dowise.problem.problem_file import builtin_names, load_problem
from dowise.problem.problem_file import builtin_path as builtin_path
from dowise.problem.problem_file import describe_costs as describe_costs
from dowise.problem.problem_file import describe_edge_priors as describe_edge_priors
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
