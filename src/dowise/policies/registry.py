"""Policies by name, and how to add one's own.

>>> from dowise.problem import load_problem
>>> policy = make_policy("ids", load_problem("task1"), samples=200)
>>> policy.decide(rng=0).arm in policy.problem.arms
True
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from dowise.errors import DowiseError, suggestion
from dowise.policies.policy import Policy
from dowise.problem import Problem

__all__ = ["make_checked", "make_policy", "policy_factory", "policy_names", "register_policy"]

Factory = TypeVar("Factory", bound=Callable[..., Policy])

_BUILTIN = {
    "bayes-optimal": ("dowise.policies.bayes_optimal", "BayesOptimal"),
    "bernoulli-ts": ("dowise.policies.bernoulli", "BernoulliThompsonSampling"),
    "ids": ("dowise.policies.ids", "InformationDirectedSampling"),
    "kl-ucb": ("dowise.policies.kl_ucb", "KLUCB"),
    "random": ("dowise.policies.random_choice", "RandomChoice"),
    "ts": ("dowise.policies.thompson", "ThompsonSampling"),
    "ucb": ("dowise.policies.ucb", "UCB"),
    "z2-kl-ucb": ("dowise.policies.z2", "Z2KLUCB"),
    "z2-ts": ("dowise.policies.z2", "Z2ThompsonSampling"),
}
_OWN: dict[str, Callable[..., Policy]] = {}


def policy_names() -> tuple[str, ...]:
    """The names that `make_policy` takes."""
    return tuple(sorted({*_BUILTIN, *_OWN}))


def register_policy(name: str) -> Callable[[Factory], Factory]:
    """Make a class or function that takes a problem and options known under a name."""

    if not isinstance(name, str) or not name:
        raise DowiseError(f'{name!r} is no name: write @register_policy("my-policy")')

    def register(factory: Factory) -> Factory:
        if name in policy_names():
            raise DowiseError(f"there is a policy {name!r} already: choose another name")
        _OWN[name] = factory
        return factory

    return register


def policy_factory(name: str) -> Callable[..., Policy]:
    """What makes policies of this name."""
    if name not in policy_names():
        raise DowiseError(
            f"unknown policy {name!r}{suggestion(str(name), policy_names())}: "
            f"there are {', '.join(policy_names())}"
        )
    if name in _OWN:
        return _OWN[name]
    module, attribute = _BUILTIN[name]
    factory: Callable[..., Policy] = getattr(importlib.import_module(module), attribute)
    return factory


def make_policy(name: str, problem: Problem, **options: Any) -> Policy:
    """A fresh policy of this name for a problem, with the policy's own options."""
    return make_checked(name, policy_factory(name), problem, **options)


def make_checked(
    name: str, factory: Callable[..., Policy], problem: Problem, **options: Any
) -> Policy:
    """A fresh policy, after a check that its factory takes these options and needs no others."""
    if not isinstance(problem, Problem):
        raise DowiseError(
            f"a policy decides in a Problem, not in a {type(problem).__name__}: "
            "make one with Problem(graph, reward) or load_problem(name)"
        )
    parameters = inspect.signature(factory).parameters
    takes_any = any(x.kind is x.VAR_KEYWORD for x in parameters.values())
    known = [x for x in parameters if x != "problem"]
    for option in options:
        if option not in known and not takes_any:
            raise DowiseError(
                f"the policy {name!r} has no option {option!r}{suggestion(option, known)}: "
                f"its options are {', '.join(known) or 'none'}"
            )
    for parameter in list(parameters.values())[1:]:  # the first is the problem
        is_open = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if parameter.default is parameter.empty and not is_open and parameter.name not in options:
            raise DowiseError(f"the policy {name!r} needs the option {parameter.name!r}: give it")
    return factory(problem, **options)
