"""What holds for the decisions of an experiment: the problem, and the policy with its options.

A config is written into the journal whole, so that nothing else is needed to read it: the graph and
the prior inline, and every option, those that were not given with the values that they had then.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from dowise._core.codec import to_json
from dowise._core.files import read_file
from dowise._core.validation import check_flag
from dowise.errors import DowiseError, type_name
from dowise.experiment.event import DamagedEventError
from dowise.policies.base import MinimalPolicy
from dowise.policies.bayesian import BayesianPolicy
from dowise.policies.registry import is_known, make_policy, policy_factory, real_name
from dowise.problem import Problem, load_problem
from dowise.problem.prior import parse_prior, plain_prior
from dowise.problem.problem_file import parse_problem, problem_text

DEFAULT_POLICY = "best"
PROPENSITY_SAMPLES = 1000  # draws of which one decides: their shares are the probabilities

_NO_OPTIONS = {
    "belief": "an experiment makes its own from the journal: import past records instead",
    "widen": "what a widened graph knows depends on the order of records: status tells of alarms, "
    "and revise takes a problem with more doubtful edges",
}

_PROBLEMS: WeakValueDictionary[str, Problem] = WeakValueDictionary()


@dataclass(frozen=True)
class ExperimentConfig:
    """A problem, the name of a policy, its options as JSON has them, and what is learned from."""

    problem: Problem
    policy: str
    options: Mapping[str, Any]
    learn_restricted: bool = True
    """Whether decisions among fewer than all arms are learned from."""

    @classmethod
    def from_user(
        cls,
        problem: Problem | str | Path,
        policy: str = DEFAULT_POLICY,
        options: Mapping[str, Any] | None = None,
        learn_restricted: bool = True,
    ) -> ExperimentConfig:
        """From what the user gave; everything is tried once."""
        if isinstance(problem, str | Path):
            problem = load_problem(problem)
        if not isinstance(problem, Problem):
            raise DowiseError(
                f"an experiment is about a Problem, not {type_name(problem)}: give one, the path "
                "of a problem file or the name of a built-in problem"
            )
        if options is not None and not isinstance(options, Mapping):
            raise DowiseError(f"options={options!r} must map names to values, {{'samples': 1000}}")
        if not isinstance(policy, str):
            raise DowiseError(
                f"policy={policy!r}: give the name of a policy; one of your own is made known by "
                "@register_policy(name)"
            )
        policy = real_name(policy, problem)  # in years to come "best" may mean another
        chosen = _journaled(problem, policy, dict(options or {}))
        restricted = check_flag("learn_restricted", learn_restricted)
        config = cls(problem, policy, chosen, restricted)
        config.make_policy()
        return config

    def with_changes(self, **changes: Any) -> ExperimentConfig:
        """This config with some of its parts changed, as the user gave them; None leaves a part."""
        given = {name: value for name, value in changes.items() if value is not None}
        if isinstance(path := given.get("problem"), str | Path):
            given["problem"] = load_problem(path)
        problem = given.get("problem", self.problem)
        if given.get("policy") == "best" and isinstance(problem, Problem):
            given["policy"] = real_name("best", problem)
        if given.get("policy", self.policy) == self.policy:
            kept = dict(self.options)
            if is_bayesian(self.policy) and problem.prior != self.problem.prior:
                kept.pop("prior", None)  # the new problem's is what was said last
            given["options"] = {**kept, **given.get("options", {})}
        kept = {"problem": self.problem, "learn_restricted": self.learn_restricted}
        return ExperimentConfig.from_user(**{"policy": self.policy, **kept, **given})

    def make_policy(self) -> MinimalPolicy:
        """A fresh policy."""
        if not is_known(self.policy):
            module, colon, _ = self.policy.partition(":")
            raise DowiseError(
                f"the policy {self.policy!r} is not known here: where it is one of your own, "
                f"import the module that {'has' if colon else 'registers'} it first "
                f"(in a command, --policy-module {module if colon else 'MODULE'})"
            )
        if isinstance(self.options.get("prior"), str):  # nothing that a journal names is opened
            raise DowiseError("what the journal says of the prior is damaged")
        return make_policy(self.policy, self.problem, **self.options)

    def to_json(self) -> dict[str, Any]:
        """For the journal."""
        return {
            "problem": problem_text(self.problem),
            "policy": self.policy,
            "options": dict(self.options),
            "learn_restricted": self.learn_restricted,
        }

    @classmethod
    def from_json(cls, page: Mapping[str, Any]) -> ExperimentConfig:
        """The way back from `page`: it imports no code and opens no file."""
        try:
            text, policy = str(page["problem"]), str(page["policy"])
            options, restricted = dict(page["options"]), bool(page["learn_restricted"])
            problem = problem_of(text)
        except (KeyError, TypeError, ValueError, DowiseError) as error:
            raise DamagedEventError(f"the problem in the journal can't be read: {error}") from error
        return cls(problem, policy, options, restricted)


def problem_of(text: str) -> Problem:
    """The problem of a text that we wrote; the same for the same text while somebody has it.

    To read one may take seconds, and an event is read once more while the store is held: whoever
    has the problem already makes nobody wait for that.
    """
    found = _PROBLEMS.get(text)
    if found is None:
        found = _PROBLEMS[text] = parse_problem(text)
    return found


def is_bayesian(policy: str) -> bool:
    """Whether the policy of this name has a belief."""
    factory = policy_factory(policy)
    return isinstance(factory, type) and issubclass(factory, BayesianPolicy)


def _journaled(problem: Problem, policy: str, given: dict[str, Any]) -> dict[str, Any]:
    """All options as JSON has them, the defaults of the policy among them."""
    for name, why in _NO_OPTIONS.items():
        if given.get(name) not in (None, False):
            raise DowiseError(f"{name} is no option of a live experiment: {why}")
    if isinstance(prior := given.get("prior"), str | Path):
        given["prior"] = read_file(prior, parse_prior)
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
        if given.get("propensity_samples", 1) == 0:
            raise DowiseError(
                "propensity_samples=0 leaves the probabilities of decisions unknown: leave it out, "
                "or give 1 or more"
            )
    options = {**defaults, **{name: value for name, value in given.items() if value is not None}}
    return {name: as_json(name, value) for name, value in options.items() if name != "widen"}


def as_json(name: str, value: Any) -> Any:
    """The value of an option as the journal keeps it."""
    page = to_json(value)
    if isinstance(page, str) and not isinstance(value, str):
        raise DowiseError(f"the option {name}={value!r} can't be kept: use numbers, texts or lists")
    return page
