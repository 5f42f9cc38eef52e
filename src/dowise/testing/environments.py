"""The contract that every world keeps, as a check to run on a world of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from math import log, sqrt

import numpy as np

from dowise._core.validation import check_integer
from dowise.environments.environment import World, world_defect
from dowise.errors import USER_CODE_ERRORS, DowiseError
from dowise.problem import Intervention, Problem

FALSE_ALARMS = 1e-6
_CONTEXTS, _ARMS = 3, 10  # at most as many are played
_ROUNDING = 1e-9

Labels = dict[str, str]


def check_environment(environment: World, plays: int = 1000) -> None:
    """Play a world and raise a `DowiseError` that says which promise it breaks, if it does.

    Contexts and outcomes have the right names and labels; an outcome keeps what the arm set and the
    context; same seed, same outcome, whatever was played in between; means are one number for each
    arm within the range of the reward; regret is the distance to the best of them; a context with
    an unknown variable is a `DowiseError`; and rewards agree with the means. For the last one up
    to ten arms are played `plays` times in each of up to three contexts. The seed is fixed, and
    by Hoeffding's inequality at most one right world in a million is found wanting.
    """
    lack = world_defect(environment)
    _demand(lack is None, f"it needs {lack}")
    plays = check_integer("plays", plays, 1)
    problem = environment.problem
    contexts = _contexts(environment, problem)
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(problem.arms))[:_ARMS]
    arms = [problem.arms[i] for i in sorted(chosen)]
    for context in contexts:
        _check_means(environment, problem, context)
        for arm in arms:
            _check_repeatable(environment, problem, arm, context)
    _check_bad_context(environment)
    _check_rewards(environment, contexts, arms, plays, rng)


def _demand(kept: bool, promise: str) -> None:
    if not kept:
        raise DowiseError(f"this world breaks the contract: {promise}")


def _contexts(world: World, problem: Problem) -> list[Labels]:
    """A few different contexts, in the order in which the world shows them."""
    found: list[Labels] = []
    for seed in range(100):
        context = world.draw_context(seed)
        _check_labels(problem, context, problem.context, "draw_context")
        _demand(context == world.draw_context(seed), "same seed, same context")
        if context not in found and len(found) < _CONTEXTS:
            found.append(context)
    return found


def _check_labels(problem: Problem, labels: object, names: tuple[str, ...], method: str) -> None:
    _demand(isinstance(labels, Mapping), f"{method} must return a dict, not {labels!r}")
    assert isinstance(labels, Mapping)
    for name in names:
        _demand(name in labels, f"{method} must give a label of {name}")
        _demand(
            labels[name] in problem.domains[name],
            f"{method} gave {name}={labels[name]!r}; its labels are "
            f"{', '.join(problem.domains[name])}",
        )
    for name in labels:
        _demand(name in names, f"{method} must not show {name!r}, only {', '.join(names) or '{}'}")


def _check_means(world: World, problem: Problem, context: Labels) -> None:
    means, shown = world.means(context), dict(context) or "no context"
    _demand(
        isinstance(means, np.ndarray) and means.shape == (len(problem.arms),),
        f"means must be an array with one number for each of {len(problem.arms)} arms",
    )
    payoff, slack = problem.payoff, _ROUNDING * problem.payoff.span
    ends = (np.full(len(means), end) for end in (payoff.values.min(), payoff.values.max()))
    low, high = map(payoff.net, ends)
    net = ", net of cost" if payoff.has_costs else ""
    _demand(
        bool(((means >= low - slack) & (means <= high + slack)).all()),
        f"means lie between {low.min():g} and {high.max():g}{net}; in {shown} they go from "
        f"{means.min():g} to {means.max():g}",
    )
    best = world.best_arm(context)
    _demand(
        best == problem.arms[payoff.best_of(means)],
        f"best_arm must be the first arm with the {_best(problem)} mean; in {shown} it is {best}",
    )
    for arm, distance in zip(problem.arms, payoff.regrets(means), strict=True):
        regret = world.regret(arm, context)
        _demand(regret >= 0, f"regret is never negative; that of {arm} in {shown} is {regret:g}")
        _demand(
            abs(regret - distance) <= slack,
            f"regret is how far an arm's mean is from the {_best(problem)} one; that of {arm} in "
            f"{shown} is {regret:g}, not {distance:g}",
        )
    _demand(world.regret(best, context) == 0, f"the regret of the best arm is 0; see {shown}")


def _best(problem: Problem) -> str:
    return "smallest" if problem.minimise else "largest"


def _check_repeatable(world: World, problem: Problem, arm: Intervention, context: Labels) -> None:
    first = []
    for seed in range(5):
        handed_over = dict(context)
        first.append(outcome := world.play(arm, handed_over, seed))
        _demand(handed_over == context, "play must leave the context that it is given as it is")
        _check_labels(problem, outcome, problem.graph.variables, "play")
        for name, label in {**context, **arm}.items():
            _demand(
                outcome[name] == label,
                f"play of {arm} must keep {name}={label}, but returned {outcome[name]}",
            )
    again = [world.play(arm, context, seed) for seed in reversed(range(5))]
    _demand(first == again[::-1], f"same seed, same outcome, whatever was played before; see {arm}")


def _check_bad_context(world: World) -> None:
    try:
        world.means({"no such variable": 1})
    except DowiseError:
        return
    except USER_CODE_ERRORS as error:
        _demand(False, f"an unknown context variable must be a DowiseError, not {error!r}")
    _demand(False, "a context with an unknown variable must be a DowiseError")


def _check_rewards(
    world: World,
    contexts: list[Labels],
    arms: list[Intervention],
    plays: int,
    rng: np.random.Generator,
) -> None:
    problem = world.problem
    worth = problem.reward_values
    tests = len(contexts) * len(arms)
    radius = problem.payoff.span * sqrt(log(2 * tests / FALSE_ALARMS) / (2 * plays))
    for context in contexts:
        means = world.means(context)
        for arm in arms:
            total = sum(worth[world.play(arm, context, rng)[problem.reward]] for _ in range(plays))
            place = problem.arm_index(arm)
            claimed, brought = means[place], problem.payoff.net(total / plays, place)
            net = ", net of cost" if problem.payoff.costs[place] else ""
            _demand(
                abs(brought - claimed) <= radius,
                f"means says {claimed:.3f} for {arm} in {context or 'no context'}, but {plays:,} "
                f"plays brought {brought:.3f}{net} (more than ±{radius:.3f} apart)",
            )
