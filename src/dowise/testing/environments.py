"""Conformance suite for custom worlds."""

from __future__ import annotations

from collections.abc import Mapping
from math import log, sqrt

import numpy as np

from dowise._core.validation import check_integer
from dowise.environments.environment import World, world_defect
from dowise.errors import USER_CODE_ERRORS, DowiseError
from dowise.problem import Intervention, Problem
from dowise.testing.contract import Contract

FALSE_ALARM_RATE = 1e-6
_MAX_CONTEXTS, _MAX_ARMS = 3, 10  # number of contexts and arms that are played
_ROUNDING = 1e-9

Labels = dict[str, str]

_require = Contract("the world").require


def check_environment(environment: World, plays: int = 1000) -> None:
    """Play a world and raise an error if it breaks the contract of `World`.

    Contexts and outcomes have the right names and labels; an outcome keeps the context and what the
    arm set; equal seeds give equal outcomes, whatever was played in between; means are one number
    per arm within the range of the reward; regret is the distance to the best mean; a context with
    an unknown variable is a `DowiseError`; and rewards agree with the means. The seed is fixed, and
    by Hoeffding's inequality at most one correct world in a million fails.

    Parameters
    ----------
    environment : World
    plays : int
        Number of plays of each of up to ten arms in each of up to three contexts, to compare
        rewards with means.

    Raises
    ------
    DowiseError
        If the world breaks the contract ("broken-contract"); the message says how.

    Examples
    --------
    >>> from dowise import make_environment
    >>> check_environment(make_environment("task1", seed=0), plays=100)
    """
    defect = world_defect(environment)
    _require(defect is None, f"it needs {defect}")
    plays = check_integer("plays", plays, 1)
    problem = environment.problem
    contexts = _contexts(environment, problem)
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(problem.arms))[:_MAX_ARMS]
    arms = [problem.arms[i] for i in sorted(chosen)]
    for context in contexts:
        _check_means(environment, problem, context)
        for arm in arms:
            _check_repeatable(environment, problem, arm, context)
    _check_bad_context(environment)
    _check_rewards(environment, contexts, arms, plays, rng)


def _contexts(world: World, problem: Problem) -> list[Labels]:
    """Return a few different contexts, in the order in which they are drawn."""
    contexts: list[Labels] = []
    for seed in range(100):
        context = world.draw_context(seed)
        _check_labels(problem, context, problem.context, "draw_context")
        _require(context == world.draw_context(seed), "equal seeds must give equal contexts")
        if context not in contexts and len(contexts) < _MAX_CONTEXTS:
            contexts.append(context)
    return contexts


def _check_labels(problem: Problem, labels: object, names: tuple[str, ...], method: str) -> None:
    _require(isinstance(labels, Mapping), f"{method} must return a dict, not {labels!r}")
    assert isinstance(labels, Mapping)
    for name in names:
        _require(name in labels, f"{method} must return a label of {name}")
        _require(
            labels[name] in problem.domains[name],
            f"{method} returned {name}={labels[name]!r}; its labels are "
            f"{', '.join(problem.domains[name])}",
        )
    for name in labels:
        _require(name in names, f"{method} must not show {name!r}, only {', '.join(names) or '{}'}")


def _check_means(world: World, problem: Problem, context: Labels) -> None:
    means, shown = world.means(context), dict(context) or "no context"
    _require(
        isinstance(means, np.ndarray) and means.shape == (len(problem.arms),),
        f"means must be an array with one number for each of {len(problem.arms)} arms",
    )
    payoff, slack = problem.payoff, _ROUNDING * problem.payoff.span
    ends = (np.full(len(means), end) for end in (payoff.values.min(), payoff.values.max()))
    low, high = map(payoff.net, ends)
    net = ", net of cost" if payoff.has_costs else ""
    for arm, mean, lowest, highest in zip(problem.arms, means, low, high, strict=True):
        _require(
            lowest - slack <= mean <= highest + slack,
            f"the mean of {arm} must be between {lowest:g} and {highest:g}{net}; in {shown} it is "
            f"{mean:g}",
        )
    best = world.best_arm(context)
    _require(
        best == problem.arms[payoff.best_of(means)],
        f"best_arm must be the first arm with the {_best(problem)} mean; in {shown} it is {best}",
    )
    for arm, distance in zip(problem.arms, payoff.regrets(means), strict=True):
        regret = world.regret(arm, context)
        _require(
            regret >= 0, f"regret must not be negative; that of {arm} in {shown} is {regret:g}"
        )
        _require(
            abs(regret - distance) <= slack,
            f"regret must be the distance to the {_best(problem)} mean; that of {arm} in "
            f"{shown} is {regret:g}, not {distance:g}",
        )
    _require(world.regret(best, context) == 0, f"the regret of the best arm must be 0; see {shown}")


def _best(problem: Problem) -> str:
    return "smallest" if problem.minimise else "largest"


def _check_repeatable(world: World, problem: Problem, arm: Intervention, context: Labels) -> None:
    first = []
    for seed in range(5):
        passed = dict(context)
        first.append(outcome := world.play(arm, passed, seed))
        _require(passed == context, "play must not change the context that is passed to it")
        _check_labels(problem, outcome, problem.graph.variables, "play")
        for name, label in {**context, **arm}.items():
            _require(
                outcome[name] == label,
                f"play of {arm} must keep {name}={label}, but returned {outcome[name]}",
            )
    second = [world.play(arm, context, seed) for seed in reversed(range(5))]
    _require(
        first == second[::-1],
        f"equal seeds must give equal outcomes, whatever was played before; see {arm}",
    )


def _check_bad_context(world: World) -> None:
    try:
        world.means({"no such variable": 1})
    except DowiseError:
        return
    except USER_CODE_ERRORS as error:
        _require(False, f"an unknown context variable must raise a DowiseError, not {error!r}")
    _require(False, "a context with an unknown variable must raise a DowiseError")


def _check_rewards(
    world: World,
    contexts: list[Labels],
    arms: list[Intervention],
    plays: int,
    rng: np.random.Generator,
) -> None:
    problem = world.problem
    values = problem.reward_values
    tests = len(contexts) * len(arms)
    radius = problem.payoff.span * sqrt(log(2 * tests / FALSE_ALARM_RATE) / (2 * plays))
    for context in contexts:
        means = world.means(context)
        for arm in arms:
            total = sum(values[world.play(arm, context, rng)[problem.reward]] for _ in range(plays))
            index = problem.arm_index(arm)
            expected, observed = means[index], problem.payoff.net(total / plays, index)
            net = ", net of cost" if problem.payoff.costs[index] else ""
            _require(
                abs(observed - expected) <= radius,
                f"the mean of {arm} in {context or 'no context'} is {expected:.3f}, but "
                f"{plays:,} plays average {observed:.3f}{net} (more than ±{radius:.3f} apart)",
            )
