"""Policies: one module per policy, and a registry of their names."""

from dowise.policies.base import Choice, Policy, allowed_arms
from dowise.policies.bayesian import BayesianPolicy
from dowise.policies.decision import Decision
from dowise.policies.registry import (
    PolicyInfo,
    best_name,
    import_policies,
    make_policy,
    policy_names,
    register_policy,
)

# For dowise_web, which imports nothing else of this package.
from dowise.policies.registry import is_built_in as is_built_in
from dowise.policies.registry import is_known as is_known
from dowise.policies.registry import policy_info as policy_info
from dowise.policies.value_of_continuing import Continuing, value_of_continuing

__all__ = [
    "BayesianPolicy",
    "Choice",
    "Continuing",
    "Decision",
    "Policy",
    "PolicyInfo",
    "allowed_arms",
    "best_name",
    "import_policies",
    "make_policy",
    "policy_names",
    "register_policy",
    "value_of_continuing",
]
