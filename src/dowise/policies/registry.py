"""Policies by name, and how to add one's own.

A built-in policy is one file and one line of the table below: help texts, the colours of figures,
error messages and the page of policies follow from that line.

>>> from dowise.problem import load_problem
>>> policy = make_policy("ids", load_problem("task1"), samples=200)
>>> policy.decide(rng=0).arm in policy.problem.arms
True
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from dowise._core.validation import check_fraction_or_zero
from dowise.belief.prior import Prior
from dowise.errors import (
    USER_CODE_ERRORS,
    DowiseError,
    UserCodeError,
    describe_error,
    join_names,
    suggestion,
    type_name,
)
from dowise.policies.base import FLOOR_SAMPLES, MinimalPolicy, add_floor
from dowise.problem import Problem

if TYPE_CHECKING:
    from dowise.belief import Belief
    from dowise.policies.bayesian import BayesianPolicy


_MODULES: dict[str, Any] = {}  # those that were asked for


def asked_for() -> tuple[str, ...]:
    """The names of the modules that were asked for, so that workers can have them too."""
    return tuple(_MODULES)


def is_asked_for(policy: str) -> bool:
    """Whether a name is "module:Class", of a module that was asked for."""
    module, colon, _ = policy.partition(":")
    return bool(colon) and module in _MODULES


def import_policies(module: str, asked_by: str = "") -> None:
    """Import a module that has policies of one's own, by its name as `import` has it.

    What it registers is known then (`register_policy`), and its classes and functions can be named
    as "module:Class". `asked_by` stands first in an error, such as "--policy-module mine".
    """
    refused = f"{asked_by or f'the module {module!r}'} can't be imported"
    remedy = "give its name as import does, my_policies"
    if module.endswith(".py"):
        remedy = f"give its name as import does, {module.removesuffix('.py').rpartition('/')[2]}"
    if not all(part.isidentifier() for part in module.split(".")):
        raise DowiseError(f"{refused}: {module!r} is no name of a module; {remedy}")
    importlib.invalidate_caches()
    try:
        _MODULES[module] = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise UserCodeError(f"{refused}: {describe_error(error)}") from error
        raise DowiseError(
            f"{refused}: there is no such module in this folder or where Python looks; {remedy}"
        ) from None
    except DowiseError as error:
        raise UserCodeError(f"{refused}: {describe_error(error)}") from error
    except USER_CODE_ERRORS as error:
        raise UserCodeError(f"{refused}: {describe_error(error)}") from error


def own_factory(policy: str) -> Callable[..., Any]:
    """What "module:Class" names, of a module that was asked for."""
    name, _, inside = policy.partition(":")
    module = _MODULES[name]
    try:
        factory = attrgetter(inside)(module)
    except AttributeError:
        made_here = [
            key
            for key, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == module.__name__
        ]
        close = suggestion(inside, made_here)
        known = f": it has {join_names(made_here)}" if made_here else ""
        lacking = f"has no {inside!r}" if inside else "has what? Say which class or function it is"
        raise DowiseError(f"the policy {policy!r}: {name} {lacking}{close}{known}") from None
    if not callable(factory) or not hasattr(factory, "__qualname__"):
        raise DowiseError(
            f"{policy} is {type_name(factory)}, not a policy: name a class or a function that "
            "makes one from a problem (docs/own-policy.md)"
        )
    try:
        inspect.signature(factory)
    except (TypeError, ValueError):
        raise DowiseError(
            f"{policy} takes nobody knows what, so it is no policy: name a class or a function "
            "that makes one from a problem (docs/own-policy.md)"
        ) from None
    made: Callable[..., Any] = factory
    return made


Factory = TypeVar("Factory", bound=Callable[..., MinimalPolicy])
LearnsFrom = Literal["everything", "rewards", "nothing"]


@dataclass(frozen=True)
class PolicyInfo:
    """What there is to know of a policy before one is made."""

    name: str
    factory: str | Callable[..., MinimalPolicy]
    """What makes one from a problem and options, or "module:name" of it."""
    learns_from: LearnsFrom
    """Of an outcome: all variables that were seen, the reward alone, or nothing."""
    needs_all_causes: bool
    """Whether hidden common causes and doubtful edges rule it out."""
    help: str
    """One line."""

    def load(self) -> Callable[..., MinimalPolicy]:
        """The factory itself."""
        if not isinstance(self.factory, str):
            return self.factory
        module, _, name = self.factory.partition(":")
        factory: Callable[..., MinimalPolicy] = getattr(importlib.import_module(module), name)
        return factory


def _line(
    name: str, where: str, learns_from: LearnsFrom, all_causes: bool, text: str
) -> PolicyInfo:
    return PolicyInfo(name, f"dowise.policies.{where}", learns_from, all_causes, text)


# In the order in which they are shown, which is also that of their colours.
_POLICIES = {
    info.name: info
    for info in (
        _line("ids", "ids:InformationDirectedSampling", "everything", False,
              "Information-Directed Sampling, Algorithm 2: what an arm costs and what it tells"),
        _line("ts", "thompson:ThompsonSampling", "everything", False,
              "Thompson Sampling, Algorithm 1: the best arm under one draw from the posterior"),
        _line("z2-ts", "z2:Z2ThompsonSampling", "everything", False,
              "Thompson Sampling on estimates pooled from all arms' data by z²ID"),
        _line("z2-kl-ucb", "z2:Z2KLUCB", "everything", False,
              "kl-UCB on estimates pooled from all arms' data by z²ID"),
        _line("bernoulli-ts", "baselines:BernoulliThompsonSampling", "rewards", False,
              "Thompson Sampling on each arm's rewards alone"),
        _line("kl-ucb", "baselines:KLUCB", "rewards", False,
              "the largest upper confidence bound that fits Bernoulli rewards"),
        _line("ucb", "baselines:UCB", "rewards", False,
              "UCB1: the largest upper confidence bound"),
        _line("random", "baselines:RandomChoice", "nothing", False,
              "any arm, all with the same probability: a randomised trial"),
        _line("bayes-optimal", "bayes_optimal:BayesOptimal", "everything", True,
              "the best possible play of a tiny problem, by dynamic programming"),
        _line("certified-ids", "certified_ids:CertifiedSampling", "everything", False,
              "plays what draws certify to cost little beyond what it tells, else as ts does"),
        _line("commit-kg", "commit_kg:CommitKG", "everything", False,
              "the value of n more plays: what they teach about all arms in all contexts"),
        _line("best", "registry:best", "everything", False,
              "what we recommend: commit-kg with up to twelve arms, ids with more"),
    )
}  # fmt: skip


def policy_names() -> tuple[str, ...]:
    """The names that `make_policy` takes, built-in ones first."""
    return tuple(_POLICIES)


def names_with_hidden_causes() -> tuple[str, ...]:
    """The policies that apply where common causes are hidden and edges doubtful."""
    return tuple(name for name, info in _POLICIES.items() if not info.needs_all_causes)


def is_known(name: str) -> bool:
    """Whether it is registered, or "module:Class" of a module that was asked for."""
    return name in _POLICIES or is_asked_for(name)


def is_built_in(name: str) -> bool:
    """Whether it is a policy of ours."""
    return name in _POLICIES and isinstance(_POLICIES[name].factory, str)


def import_named(name: str) -> None:
    """Import the module of a policy that the user named as "module:Class".

    Not for names that a journal has, which must not run code.
    """
    module, colon, _ = name.partition(":")
    if colon and not is_known(name):
        import_policies(module, f"the policy {name}")


def policy_info(name: str) -> PolicyInfo:
    """What there is to know of the policy of this name; it imports nothing but ours."""
    if name in _POLICIES:
        return _POLICIES[name]
    if isinstance(name, str) and is_asked_for(name):
        factory = own_factory(name)
        return PolicyInfo(name, factory, "everything", False, _first_line(factory))
    remedy = f"there are {', '.join(policy_names())}; one of your own is module:Class"
    if isinstance(name, str) and ":" in name:
        module = name.partition(":")[0]
        remedy = f"import its module first, dowise.policies.import_policies({module!r})"
    raise DowiseError(f"unknown policy {name!r}{suggestion(str(name), policy_names())}: {remedy}")


def policy_factory(name: str) -> Callable[..., MinimalPolicy]:
    """What makes policies of this name."""
    return policy_info(name).load()


def register_policy(
    name: str,
    help: str = "",  # noqa: A002 (what it is called everywhere)
    learns_from: LearnsFrom = "everything",
    needs_all_causes: bool = False,
) -> Callable[[Factory], Factory]:
    """Make a class or function that takes a problem and options known under a name.

    `help` is one line, by default the first of its docstring.
    """
    if not isinstance(name, str) or not name:
        raise DowiseError(f'{name!r} is no name: write @register_policy("my-policy")')

    def register(factory: Factory) -> Factory:
        if name in _POLICIES:
            raise DowiseError(f"there is a policy {name!r} already: choose another name")
        line = help or _first_line(factory)
        _POLICIES[name] = PolicyInfo(name, factory, learns_from, needs_all_causes, line)
        return factory

    return register


def _first_line(factory: Callable[..., MinimalPolicy]) -> str:
    return (inspect.getdoc(factory) or "").partition("\n")[0]


def make_policy(name: str, problem: Problem, **options: Any) -> MinimalPolicy:
    """A fresh policy of this name for a problem, with the policy's own options.

    Every policy has the option `floor`: with a floor f it plays with probabilities (1 − f)π + f·p*
    (`dowise.policies.floor`).
    """
    return make_checked(name, policy_factory(name), problem, **options)


def make_checked(
    name: str, factory: Callable[..., MinimalPolicy], problem: Problem, **options: Any
) -> MinimalPolicy:
    """A fresh policy, after a check that its factory takes these options and needs no others."""
    if not isinstance(problem, Problem):
        raise DowiseError(
            f"a policy decides in a Problem, not in a {type(problem).__name__}: "
            "make one with Problem(graph, reward) or load_problem(name)"
        )
    parameters = inspect.signature(factory).parameters
    if not parameters:
        raise DowiseError(f"the policy {name!r} must take a problem: {name}(problem, …)")
    takes_any = any(x.kind is x.VAR_KEYWORD for x in parameters.values())
    known = [x for x in parameters if x != "problem"]
    known += [] if "floor" in known else ["floor"]
    for option in options:
        if option not in known and not takes_any:
            raise DowiseError(
                f"the policy {name!r} has no option {option!r}{suggestion(option, known)}: "
                f"its options are {', '.join(known)}"
            )
    for parameter in list(parameters.values())[1:]:  # the first is the problem
        is_open = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if parameter.default is parameter.empty and not is_open and parameter.name not in options:
            raise DowiseError(f"the policy {name!r} needs the option {parameter.name!r}: give it")
    try:
        policy = made_by(factory, problem, options)
    except SystemExit as error:
        raise UserCodeError(f"the policy {name!r}: {describe_error(error)}") from error
    for method in ("decide", "observe"):
        if not callable(getattr(policy, method, None)):
            raise DowiseError(
                f"the policy {name!r} makes a {type(policy).__name__}, which has no {method}: "
                f"check_policy({factory.__name__}) says what a policy needs"
            )
    return policy


def made_by(
    factory: Callable[..., MinimalPolicy], problem: Problem, options: Mapping[str, Any]
) -> MinimalPolicy:
    """A fresh policy with these options; those that have no `floor` of their own get it here."""
    if "floor" not in options or "floor" in inspect.signature(factory).parameters:
        return factory(problem, **options)
    rest = {name: value for name, value in options.items() if name != "floor"}
    floor = check_fraction_or_zero("floor", options["floor"])
    if floor == 0:
        return factory(problem, **rest)
    if "propensity_samples" in inspect.signature(factory).parameters:
        rest.setdefault("propensity_samples", FLOOR_SAMPLES)
    return add_floor(factory(problem, **rest), floor)


FEW_ARMS = 12  # with more of them commit-kg was not better than ids


def best_name(problem: Problem) -> str:
    """The name of the policy that we recommend for a problem."""
    from dowise.model import model_of

    few = len(problem.arms) <= FEW_ARMS
    return "commit-kg" if few and model_of(problem).has_trace else "ids"


def real_name(policy: str, problem: Problem) -> str:
    """The name itself, or what "best" means for this problem."""
    return best_name(problem) if policy == "best" else policy


def best(
    problem: Problem, prior: Prior | None = None, belief: Belief | None = None
) -> BayesianPolicy:
    """Make the recommended policy: `commit-kg` for up to twelve arms, `ids` for more.

    `ids` also replaces `commit-kg` if the circuit of that would be too large.
    """
    if best_name(problem) == "ids":
        from dowise.policies.ids import InformationDirectedSampling

        return InformationDirectedSampling(problem, prior=prior, belief=belief)
    from dowise.policies.commit_kg import CommitKG

    return CommitKG(problem, prior, belief)
