"""Configuration of an experiment: the problem, and the policy with its options.

A configuration is stored in the journal as a whole, so that nothing else is needed to read it: the
graph and the prior inline, and every option, defaults with the values that they had then.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Set
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from dowise._core.codec import to_json
from dowise._core.validation import check_flag
from dowise.errors import DowiseError, type_name
from dowise.experiment.event import DamagedEventError
from dowise.policies.base import MinimalPolicy
from dowise.policies.bayesian import BayesianPolicy
from dowise.policies.registry import (
    best_options,
    check_option_names,
    is_known,
    make_policy,
    policy_factory,
    resolve_policy,
)
from dowise.problem import Problem, load_problem
from dowise.problem.prior import is_pooled, is_prior_name, plain_prior, read_prior
from dowise.problem.problem_file import parse_problem, problem_text

DEFAULT_POLICY = "best"
PROPENSITY_SAMPLES = 1000  # draws of which one decides: their shares are the probabilities
MAX_TRIED_ARMS = 12  # up to which "best" plays every arm once first

_NO_OPTIONS = {
    "belief": "it learns its belief from the journal; import past records instead",
    "widen": "a widened graph depends on the order of records; watch the alarms in the status, and "
    "revise the problem with more doubtful edges",
}

_RECOMMENDED: Set[str] = frozenset({"commit-kg", "ids"})  # names that "best" may stand for

_EARLIER_DEFAULTS: Mapping[str, Mapping[str, Any]] = {"commit-kg": {"count_pending": False}}
"""Defaults of policies in journals from before these options, where they have changed since."""

_PROBLEMS: WeakValueDictionary[str, Problem] = WeakValueDictionary()


@dataclass(frozen=True)
class ExperimentConfig:
    """A problem, the name of a policy and its options as plain data."""

    problem: Problem
    policy: str
    options: Mapping[str, Any]
    learn_restricted: bool = True
    """True if the policy learns from decisions for which some arms were not allowed."""

    @classmethod
    def from_user(
        cls,
        problem: Problem | str | Path,
        policy: str = DEFAULT_POLICY,
        options: Mapping[str, Any] | None = None,
        learn_restricted: bool = True,
    ) -> ExperimentConfig:
        """Validate the arguments of a user, and make the policy once."""
        if isinstance(problem, str | Path):
            problem = load_problem(problem)
        if not isinstance(problem, Problem):
            raise DowiseError(
                "problem must be a Problem, the path of a problem file or the name of a built-in "
                f"problem, not {type_name(problem)}",
                code="invalid-type",
            )
        if options is not None and not isinstance(options, Mapping):
            raise DowiseError(
                f"options={options!r} must map names to values, such as {{'samples': 1000}}",
                code="invalid-type",
            )
        if not isinstance(policy, str):
            raise DowiseError(
                f"policy={policy!r} must be the name of a policy; register a custom one with "
                "@register_policy(name)",
                code="invalid-type",
            )
        is_best = policy == "best"
        policy, given = resolve_policy(policy, problem, options)  # "best" may be another one later
        if is_best:
            given = _trial_option(problem, given) | given
        if policy in _RECOMMENDED:
            name = "best" if is_best else policy
            names = given.keys() - _NO_OPTIONS.keys()  # which get another error
            check_option_names(name, policy_factory(policy), sorted(names), ["try_all"])
        config = cls(
            problem,
            policy,
            _complete_options(problem, policy, given),
            check_flag("learn_restricted", learn_restricted),
        )
        config.make_policy()
        return config

    def with_changes(self, **changes: Any) -> ExperimentConfig:
        """Return a configuration with other parts; a part that is None stays as it is."""
        changes = {name: value for name, value in changes.items() if value is not None}
        if isinstance(path := changes.get("problem"), str | Path):
            changes["problem"] = load_problem(path)
        problem = changes.get("problem", self.problem)
        if changes.get("policy") == "best" and isinstance(problem, Problem):
            changes["policy"], options = resolve_policy("best", problem, changes.get("options"))
            changes["options"] = _trial_option(problem, options) | options
        if changes.get("policy", self.policy) == self.policy:
            options = dict(self.options)
            if is_bayesian(self.policy) and self._has_another_prior(problem):
                options.pop("prior", None)  # the prior of the new problem replaces it
                if "try_all" in options:  # the policy was named "best"
                    options["prior"] = best_options(problem).get("prior")
            changes["options"] = {**options, **changes.get("options", {})}
        current = {
            "problem": self.problem,
            "policy": self.policy,
            "learn_restricted": self.learn_restricted,
        }
        return ExperimentConfig.from_user(**{**current, **changes})

    def _has_another_prior(self, problem: Problem) -> bool:
        """Return True if a problem has another prior than that of this configuration."""
        if problem.prior != self.problem.prior:
            return True
        # For "best", a prior that is not stated is another one than the same that is.
        return "try_all" in self.options and problem.states_prior != self.problem.states_prior

    def make_policy(self) -> MinimalPolicy:
        """Return a new policy."""
        if not is_known(self.policy):
            module, colon, _ = self.policy.partition(":")
            raise DowiseError(
                f"unknown policy {self.policy!r}: if it is a custom one, first import the module "
                f"that {'has' if colon else 'registers'} it "
                f"(in a command, --policy-module {module if colon else 'MODULE'})",
                code="unknown-policy",
            )
        prior = self.options.get("prior")
        if isinstance(prior, str) and not is_prior_name(prior):  # a file name is never opened
            raise DowiseError("the prior in the journal is damaged", code="damaged-file")
        options = dict(self.options)
        if self.policy in _RECOMMENDED:
            options.pop("try_all", None)
        return make_policy(self.policy, self.problem, **options)

    @property
    def tries_all(self) -> bool:
        """True if every arm is played once before the policy chooses."""
        return self.policy in _RECOMMENDED and self.options.get("try_all") is True

    @property
    def weighs_graph(self) -> bool:
        """True if the policy weighs the graph against the graph-free hypothesis."""
        share = self.options.get("graph_free_prior")  # to load the policy would take long
        return isinstance(share, int | float) and share > 0

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the journal."""
        return {
            "problem": problem_text(self.problem),
            "policy": self.policy,
            "options": dict(self.options),
            "learn_restricted": self.learn_restricted,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ExperimentConfig:
        """Inverse of `to_json`; imports no code and opens no file.

        Options that an older journal does not have get the values of its time.
        """
        try:
            policy = str(data["policy"])
            return cls(
                problem_of(str(data["problem"])),
                policy,
                {**_EARLIER_DEFAULTS.get(policy, {}), **data["options"]},
                bool(data["learn_restricted"]),
            )
        except (KeyError, TypeError, ValueError, DowiseError) as error:
            raise DamagedEventError(f"the problem in the journal can't be read: {error}") from error


def problem_of(text: str) -> Problem:
    """Parse a problem; equal texts return the same object while it is in use.

    Parsing may take seconds, and events are applied while other writers wait. Experiments that
    began before rules for doubtful edges were recorded go on with the first ones.
    """
    problem = _PROBLEMS.get(text)
    if problem is None:
        problem = _PROBLEMS[text] = parse_problem(text, edge_rules=1)
    return problem


def is_bayesian(policy: str) -> bool:
    """Return True if the policy of this name has a belief."""
    factory = policy_factory(policy)
    return isinstance(factory, type) and issubclass(factory, BayesianPolicy)


def _trial_option(problem: Problem, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the option of "best" that is one of experiments, not of policies.

    With the graph alone and independent rows, "best" is that of the versions before the option.
    """
    pools = is_pooled(options.get("prior", problem.prior))
    is_graph_alone = options.get("graph_free_prior") == 0 and not pools
    return {"try_all": len(problem.arms) <= MAX_TRIED_ARMS and not is_graph_alone}


def _check_try_all(value: Any) -> None:
    if not isinstance(value, bool | np.bool_):
        raise DowiseError(
            f"try_all={value!r} must be true or false (True or False in Python)",
            code="invalid-type",
        )


def _complete_options(problem: Problem, policy: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return all options as plain data, including the defaults of the policy."""
    for name, reason in _NO_OPTIONS.items():
        if options.get(name) not in (None, False):
            raise DowiseError(
                f"{name} is not an option of a live experiment: {reason}", code="unknown-option"
            )
    prior = options.get("prior")
    if isinstance(prior, str | Path) and not is_prior_name(prior):
        options["prior"] = read_prior(prior)
    if "try_all" in options and policy in _RECOMMENDED:
        _check_try_all(options["try_all"])
    parameters = inspect.signature(policy_factory(policy)).parameters
    defaults = {
        name: parameter.default
        for name, parameter in parameters.items()
        if parameter.default is not parameter.empty
        and parameter.default is not None
        and name not in _NO_OPTIONS
    }
    if "prior" in parameters and is_bayesian(policy):
        defaults["prior"] = plain_prior(problem.prior)
    if "propensity_samples" in defaults:
        defaults["propensity_samples"] = PROPENSITY_SAMPLES
        if options.get("propensity_samples", 1) == 0:
            raise DowiseError(
                "propensity_samples=0 leaves the probabilities of decisions unknown: leave it out, "
                "or use 1 or more",
                code="invalid-number",
            )
    values = defaults | {name: value for name, value in options.items() if value is not None}
    return {name: option_to_json(name, value) for name, value in values.items() if name != "widen"}


def option_to_json(name: str, value: Any) -> Any:
    """Return the value of an option as plain data; JSON has neither NaN nor infinity."""
    if not _is_finite(value):
        raise DowiseError(
            f"{name}={value!r} must be a finite number"
            if isinstance(value, float | np.floating)
            else f"the option {name}={value!r} must have finite numbers only",
            code="invalid-number",
        )
    plain = to_json(value)
    if isinstance(plain, str) and not isinstance(value, str):
        raise DowiseError(
            f"the option {name}={value!r} can't be stored: use numbers, texts or lists",
            code="invalid-type",
        )
    return plain


def _is_finite(value: Any) -> bool:
    """Return True if a value has no NaN or infinity, also in lists, arrays and mappings."""
    if isinstance(value, float | np.floating):
        return isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    if isinstance(value, np.ndarray):
        return value.dtype.kind != "f" or bool(np.isfinite(value).all())
    return not isinstance(value, list | tuple) or all(map(_is_finite, value))
