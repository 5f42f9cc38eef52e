"""Who decides: one file a policy, one registry."""

from dowise.policies.base import Policy
from dowise.policies.decision import Decision
from dowise.policies.registry import (
    best_name,
    import_policies,
    make_policy,
    policy_names,
    register_policy,
)
from dowise.policies.value_of_continuing import Continuing, value_of_continuing

__all__ = [
    "Continuing",
    "Decision",
    "Policy",
    "best_name",
    "import_policies",
    "make_policy",
    "policy_names",
    "register_policy",
    "value_of_continuing",
]
