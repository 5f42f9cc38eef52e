"""Who decides: one file a policy, one registry."""

from dowise.policies.best import best_name
from dowise.policies.checks import check_policy
from dowise.policies.continuing import Continuing, value_of_continuing
from dowise.policies.decision import Decision
from dowise.policies.own import import_policies
from dowise.policies.policy import Policy
from dowise.policies.registry import make_policy, policy_names, register_policy

__all__ = [
    "Continuing",
    "Decision",
    "Policy",
    "best_name",
    "check_policy",
    "import_policies",
    "make_policy",
    "policy_names",
    "register_policy",
    "value_of_continuing",
]
