"""Registry of policies by name: built-in and custom policies, their options, and `best`.

A built-in policy is one class and one entry in the table below: help texts, colours of figures,
error messages and the web page of policies follow from it.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from dowise._core.validation import check_fraction_or_zero
from dowise.errors import (
    USER_CODE_ERRORS,
    DowiseError,
    UserCodeError,
    describe_error,
    join_names,
    suggestion,
    type_name,
)
from dowise.policies.base import FLOOR_SAMPLES, MinimalPolicy
from dowise.problem import Problem
from dowise.problem.prior import Prior, is_pooled

if TYPE_CHECKING:
    from dowise.belief import Belief
    from dowise.policies.bayesian import BayesianPolicy


_MODULES: dict[str, Any] = {}  # imported modules with custom policies, by name


def imported_modules() -> tuple[str, ...]:
    """Return the names of the imported modules with custom policies, for worker processes."""
    return tuple(_MODULES)


def _is_imported(policy: str) -> bool:
    """Return True if a name is "module:Class" of an imported module."""
    module, colon, _ = policy.partition(":")
    return bool(colon) and module in _MODULES


def import_policies(module: str, asked_by: str = "") -> None:
    """Import a module with custom policies.

    Afterwards `make_policy` takes the names that the module registers (`register_policy`), and
    "module:Class" for its classes and functions.

    Parameters
    ----------
    module : str
        Name of the module, as in an `import` statement.
    asked_by : str, optional
        Beginning of an error message, such as "--policy-module mine".

    Raises
    ------
    DowiseError
        If there is no such module, or if importing it fails (`UserCodeError`).

    Examples
    --------
    >>> import_policies("json")  # any module will do
    """
    failure = f"{asked_by or f'the module {module!r}'} can't be imported"
    stem = module.removesuffix(".py").rpartition("/")[2] if module.endswith(".py") else ""
    remedy = f"(expected a name such as {stem or 'my_policies'})"
    if not all(part.isidentifier() for part in module.split(".")):
        raise DowiseError(
            f"{failure}: {module!r} is not the name of a module {remedy}", code="unknown-module"
        )
    importlib.invalidate_caches()
    try:
        _MODULES[module] = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise UserCodeError(f"{failure}: {describe_error(error)}") from error
        raise DowiseError(
            f"{failure}: not found in this folder or on Python's path {remedy}",
            code="unknown-module",
        ) from None
    except (DowiseError, *USER_CODE_ERRORS) as error:
        raise UserCodeError(f"{failure}: {describe_error(error)}") from error


def _custom_factory(policy: str) -> Callable[..., Any]:
    """Return the class or function "module:Class" of an imported module."""
    name, _, attribute = policy.partition(":")
    module = _MODULES[name]
    try:
        factory: Callable[..., Any] = attrgetter(attribute)(module)
    except AttributeError:
        defined = [
            key
            for key, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == module.__name__
        ]
        available = f" (available: {join_names(defined)})" if defined else ""
        problem = f"has no {attribute!r}{suggestion(attribute, defined)}"
        raise DowiseError(
            f"the policy {policy!r}: {name} {problem if attribute else 'needs a class or function'}"
            f"{available}",
            code="unknown-policy",
        ) from None
    try:
        inspect.signature(factory)
        is_factory = hasattr(factory, "__qualname__")
    except (TypeError, ValueError):
        is_factory = False
    if not is_factory:
        raise DowiseError(
            f"{policy} is {type_name(factory)}, not a policy: name a class or a function that "
            "makes one from a problem (docs/own-policy.md)",
            code="invalid-policy",
        )
    return factory


Factory = TypeVar("Factory", bound=Callable[..., MinimalPolicy])
LearnsFrom = Literal["everything", "rewards", "nothing"]


@dataclass(frozen=True)
class PolicyInfo:
    """Description of a policy in the registry.

    Examples
    --------
    >>> policy_info("ucb").learns_from
    'rewards'
    """

    name: str
    factory: str | Callable[..., MinimalPolicy]
    """Class or function that makes a policy from a problem and options, or its "module:name"."""
    learns_from: LearnsFrom
    """Part of an outcome that it learns from: all observed variables, the reward, or nothing."""
    needs_all_causes: bool
    """True if it does not apply with hidden common causes or doubtful edges."""
    help: str
    """Description in one line."""
    is_deterministic: bool = False
    """True if it plays one arm with probability 1, whatever its options are."""

    def load(self) -> Callable[..., MinimalPolicy]:
        """Import and return the factory."""
        if not isinstance(self.factory, str):
            return self.factory
        module, _, name = self.factory.partition(":")
        factory: Callable[..., MinimalPolicy] = getattr(importlib.import_module(module), name)
        return factory


def _built_in(
    name: str,
    factory: str,
    learns_from: LearnsFrom,
    description: str,
    needs_all_causes: bool = False,
    is_deterministic: bool = False,
) -> PolicyInfo:
    factory = f"dowise.policies.{factory}"
    return PolicyInfo(name, factory, learns_from, needs_all_causes, description, is_deterministic)


# In display order, which is also the order of their colours: a new policy is added at the end.
_BUILT_IN = (
    _built_in(
        "ids",
        "ids:InformationDirectedSampling",
        "everything",
        "Information-Directed Sampling, Algorithm 2: balances expected regret and information",
    ),
    _built_in(
        "ts",
        "thompson:ThompsonSampling",
        "everything",
        "Thompson Sampling, Algorithm 1: the best arm under one draw from the posterior",
    ),
    _built_in(
        "z2-ts",
        "z2:Z2ThompsonSampling",
        "everything",
        "Thompson Sampling on estimates pooled from all arms' data by z²ID",
    ),
    _built_in(
        "z2-kl-ucb",
        "z2:Z2KLUCB",
        "everything",
        "kl-UCB on estimates pooled from all arms' data by z²ID",
        is_deterministic=True,
    ),
    _built_in(
        "bernoulli-ts",
        "baselines:BernoulliThompsonSampling",
        "rewards",
        "Thompson Sampling on each arm's rewards alone",
    ),
    _built_in(
        "kl-ucb",
        "baselines:KLUCB",
        "rewards",
        "the largest upper confidence bound that fits Bernoulli rewards",
        is_deterministic=True,
    ),
    _built_in(
        "ucb",
        "baselines:UCB",
        "rewards",
        "UCB1: the largest upper confidence bound",
        is_deterministic=True,
    ),
    _built_in(
        "random",
        "baselines:RandomChoice",
        "nothing",
        "any arm, all with the same probability: a randomised trial",
    ),
    _built_in(
        "bayes-optimal",
        "bayes_optimal:BayesOptimal",
        "everything",
        "the best possible play of a tiny problem, by dynamic programming",
        needs_all_causes=True,
        is_deterministic=True,
    ),
    _built_in(
        "certified-ids",
        "certified_ids:CertifiedSampling",
        "everything",
        "ids while a regret bound certifies its choice, else ts",
    ),
    _built_in(
        "commit-kg",
        "commit_kg:CommitKG",
        "everything",
        "knowledge gradient: the arm whose next n plays are worth most",
        is_deterministic=True,
    ),
    _built_in(
        "best",
        "registry:best",
        "everything",
        "the recommended policy: commit-kg, or ids where there are many arms and variables",
    ),
    _built_in(
        "arm-ids",
        "arm_ids:ArmIDS",
        "rewards",
        "Information-Directed Sampling on each arm's rewards alone",
    ),
)
_POLICIES = {info.name: info for info in _BUILT_IN}


def policy_names() -> tuple[str, ...]:
    """Return the names that `make_policy` takes, built-in ones first.

    Examples
    --------
    >>> policy_names()[:2]
    ('ids', 'ts')
    """
    return tuple(_POLICIES)


def policies_for_hidden_causes() -> tuple[str, ...]:
    """Return the policies that apply with hidden common causes and doubtful edges."""
    return tuple(name for name, info in _POLICIES.items() if not info.needs_all_causes)


def is_known(name: str) -> bool:
    """Return True if a policy is registered, or is "module:Class" of an imported module."""
    return name in _POLICIES or _is_imported(name)


def is_deterministic(name: str) -> bool:
    """Return True if a registered policy plays one arm with probability 1."""
    return name in _POLICIES and _POLICIES[name].is_deterministic


def is_built_in(name: str) -> bool:
    """Return True if a policy is built in."""
    return name in _POLICIES and isinstance(_POLICIES[name].factory, str)


def import_named(name: str) -> None:
    """Import the module of a policy that the user named as "module:Class".

    Not for names from a journal, which must not run code.
    """
    module, colon, _ = name.partition(":")
    if colon and not is_known(name):
        import_policies(module, f"the policy {name}")


def policy_info(name: str) -> PolicyInfo:
    """Return the description of a policy. Imports no module of custom policies."""
    if name in _POLICIES:
        return _POLICIES[name]
    if isinstance(name, str) and _is_imported(name):
        factory = _custom_factory(name)
        return PolicyInfo(name, factory, "everything", False, _first_line(factory))
    remedy = f"available: {', '.join(policy_names())}, or module:Class for a custom one"
    if isinstance(name, str) and ":" in name:
        module = name.partition(":")[0]
        remedy = f"import its module first, by dowise.policies.import_policies({module!r})"
    close = suggestion(str(name), policy_names())
    raise DowiseError(f"unknown policy {name!r}{close} ({remedy})", code="unknown-policy")


def policy_factory(name: str) -> Callable[..., MinimalPolicy]:
    """Return the factory of a policy."""
    return policy_info(name).load()


def register_policy(
    name: str,
    help: str = "",  # noqa: A002 (the usual name)
    learns_from: LearnsFrom = "everything",
    needs_all_causes: bool = False,
) -> Callable[[Factory], Factory]:
    """Register a class or function that makes a policy from a problem and options.

    Parameters
    ----------
    name : str
        Name of the policy.
    help : str, optional
        Description in one line. Defaults to the first line of the docstring.
    learns_from : {"everything", "rewards", "nothing"}
        Part of an outcome that the policy learns from.
    needs_all_causes : bool
        True if it does not apply with hidden common causes or doubtful edges.

    Returns
    -------
    callable
        Decorator that returns its argument.

    Raises
    ------
    DowiseError
        If the name is taken or not a text.

    Examples
    --------
    >>> register_policy("ids")(lambda problem: None)
    Traceback (most recent call last):
        ...
    dowise.errors.DowiseError: a policy 'ids' is registered already: choose another name
    """
    if not isinstance(name, str) or not name:
        raise DowiseError(
            f'{name!r} is not a name: use @register_policy("my-policy")', code="invalid-type"
        )

    def register(factory: Factory) -> Factory:
        if name in _POLICIES:
            raise DowiseError(
                f"a policy {name!r} is registered already: choose another name",
                code="duplicate-name",
            )
        line = help or _first_line(factory)
        _POLICIES[name] = PolicyInfo(name, factory, learns_from, needs_all_causes, line)
        return factory

    return register


def _first_line(factory: Callable[..., MinimalPolicy]) -> str:
    return (inspect.getdoc(factory) or "").partition("\n")[0]


def make_policy(name: str, problem: Problem, **options: Any) -> MinimalPolicy:
    """Make a policy.

    Parameters
    ----------
    name : str
        Name of the policy (`policy_names`), or "module:Class" for a custom one.
    problem : Problem
        Problem to decide in.
    **options
        Options of the policy. Every policy has the option `floor`: with a floor f its probabilities
        are (1 − f)π + f·p*, p* being how likely each arm is the best.

    Returns
    -------
    Policy

    Raises
    ------
    DowiseError
        If the policy or an option is unknown, or if the policy does not apply to the problem.

    Examples
    --------
    >>> from dowise.problem import load_problem
    >>> policy = make_policy("ids", load_problem("task1"), samples=200)
    >>> policy.decide(rng=0).arm in policy.problem.arms
    True
    """
    return make_checked(name, policy_factory(name), problem, **options)


def make_checked(
    name: str, factory: Callable[..., MinimalPolicy], problem: Problem, **options: Any
) -> MinimalPolicy:
    """Make a policy after checking that its factory takes these options and needs no others."""
    if not isinstance(problem, Problem):
        raise DowiseError(
            f"problem must be a Problem, not {type_name(problem)}: make one with "
            "Problem(graph, reward) or load_problem(name)",
            code="invalid-type",
        )
    parameters = inspect.signature(factory).parameters
    if not parameters:
        raise DowiseError(
            f"the policy {name!r} must take a problem: {name}(problem, …)", code="invalid-policy"
        )
    check_option_names(name, factory, options)
    for parameter in list(parameters.values())[1:]:  # the first is the problem
        is_open = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if parameter.default is parameter.empty and not is_open and parameter.name not in options:
            raise DowiseError(
                f"the policy {name!r} needs the option {parameter.name!r}", code="missing-value"
            )
    try:
        policy = make_with_floor(factory, problem, options)
    except SystemExit as error:
        raise UserCodeError(f"the policy {name!r}: {describe_error(error)}") from error
    for method in ("decide", "observe"):
        if not callable(getattr(policy, method, None)):
            raise DowiseError(
                f"the policy {name!r} makes a {type(policy).__name__}, which has no {method}: "
                f"check_policy({factory.__name__}) tells what a policy needs",
                code="invalid-policy",
            )
    return policy


def check_option_names(
    name: str,
    factory: Callable[..., MinimalPolicy],
    options: Iterable[str],
    more: Iterable[str] = (),
) -> None:
    """Raise `DowiseError` for an option that neither the factory takes nor `more` has."""
    parameters = inspect.signature(factory).parameters
    takes_any = any(x.kind is x.VAR_KEYWORD for x in parameters.values())
    available = [x for x in parameters if x != "problem"]
    available += [x for x in ("floor", *more) if x not in available]
    for option in options:
        if option not in available and not takes_any:
            raise DowiseError(
                f"the policy {name!r} has no option {option!r}{suggestion(option, available)} "
                f"(available: {', '.join(available)})",
                code="unknown-option",
            )


def make_with_floor(
    factory: Callable[..., MinimalPolicy], problem: Problem, options: Mapping[str, Any]
) -> MinimalPolicy:
    """Make a policy with these options; add the floor unless the factory takes that option."""
    if "floor" not in options:  # a call of `signature` costs as much as a trial of a quick policy
        return factory(problem, **options)
    parameters = inspect.signature(factory).parameters
    if "floor" in parameters:
        return factory(problem, **options)
    own_options = {name: value for name, value in options.items() if name != "floor"}
    floor = check_fraction_or_zero("floor", options["floor"])
    if floor == 0:
        return factory(problem, **own_options)
    if "propensity_samples" in parameters:
        own_options.setdefault("propensity_samples", FLOOR_SAMPLES)
    from dowise.policies.floor import add_floor

    return add_floor(factory(problem, **own_options), floor)


FEW_ARMS = 16  # up to which commit-kg is recommended for every graph whose circuit fits
# Beyond, where the edges are certain and the circuit is small, so that a round takes less than a
# millisecond: it was raced with up to 81 arms, on right graphs and on wrong ones.
MANY_ARMS, MAX_WORK = 81, 50_000  # the work is arms times multiplications of the circuit
FEW_ARMS_ALONE = 12  # where the graph alone decides, commit-kg was not better than ids beyond
GRAPH_FREE_PRIORS = {"commit-kg": 0.05, "ids": 0.25}  # docs/robustness.md


def best_name(problem: Problem) -> str:
    """Return the name of the recommended policy for a problem.

    Parameters
    ----------
    problem : Problem
        Problem to decide in.

    Examples
    --------
    >>> from dowise.problem import load_problem
    >>> best_name(load_problem("task1"))
    'commit-kg'
    """
    return resolve_policy("best", problem)[0]


def best_options(problem: Problem) -> dict[str, Any]:
    """Return the options with which the recommended policy is made for a problem.

    Parameters
    ----------
    problem : Problem
        Problem to decide in. If it states a number as its prior, or "flat", that is the prior of
        the policy; if it states counts by variable, the rows of the other variables are pooled.

    Examples
    --------
    >>> from dowise.problem import load_problem
    >>> best_options(load_problem("task1"))
    {'prior': 'pooled', 'graph_free_prior': 0.05, 'count_pending': True}
    """
    return resolve_policy("best", problem)[1]


def resolve_policy(
    policy: str, problem: Problem, options: Mapping[str, Any] | None = None
) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of a policy; "best" is replaced by what it stands for.

    Options of the user are kept. With flat rows and without a graph-free hypothesis it is the
    recommended policy of the versions before these.

    >>> from dowise.problem import load_problem
    >>> resolve_policy("best", load_problem("task1"), {"prior": "flat", "graph_free_prior": 0})
    ('commit-kg', {'prior': 'flat', 'graph_free_prior': 0, 'count_pending': False})
    """
    given = {name: value for name, value in (options or {}).items() if value is not None}
    if policy != "best":
        return policy, given
    states_prior = problem.states_prior and not isinstance(problem.prior, Mapping)
    pools = is_pooled(given.get("prior", problem.prior if states_prior else "pooled"))
    is_graph_alone = not pools and given.get("graph_free_prior") == 0
    name = "commit-kg" if _suits_commit_kg(problem, is_graph_alone) else "ids"
    defaults: dict[str, Any] = {} if states_prior else {"prior": "pooled"}
    defaults["graph_free_prior"] = GRAPH_FREE_PRIORS[name]
    if name == "commit-kg":
        defaults["count_pending"] = not is_graph_alone
    return name, defaults | given


def _suits_commit_kg(problem: Problem, is_graph_alone: bool) -> bool:
    from dowise.model import model_of

    arms, model = len(problem.arms), model_of(problem)
    if not model.has_trace or is_graph_alone:
        return model.has_trace and arms <= FEW_ARMS_ALONE
    is_settled = not problem.edge_priors or model.structures.is_settled
    is_small = is_settled and arms <= MANY_ARMS and arms * model.trace_multiplications <= MAX_WORK
    return arms <= FEW_ARMS or is_small


def best(
    problem: Problem,
    prior: Prior | None = None,
    belief: Belief | None = None,
    graph_free_prior: float | None = None,
) -> BayesianPolicy:
    """Make the recommended policy: `commit-kg`, or `ids` where that would take long.

    Its rows are pooled, and it weighs the graph against the graph-free hypothesis, whose prior is
    0.05 with `commit-kg` and 0.25 with `ids`. It is `commit-kg` for up to sixteen arms, and for up
    to 81 if the circuit is small and no edge is open. With `prior="flat"` and `graph_free_prior=0`
    the graph alone decides, with independent rows, by `commit-kg` for up to twelve arms. Applies to
    every graph whose factors fit into memory.
    """
    from dowise.policies.bayesian import BayesianPolicy

    given = {"prior": prior, "graph_free_prior": graph_free_prior}
    name, options = resolve_policy("best", problem, given)
    if belief is not None:
        options = {key: x for key, x in options.items() if key != "prior"}
        options |= {"belief": belief} | ({} if prior is None else {"prior": prior})
    policy = policy_factory(name)(problem, **options)
    assert isinstance(policy, BayesianPolicy)
    return policy
