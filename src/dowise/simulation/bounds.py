"""The regret bounds of the paper for a problem at hand: sections 5 and 6, with numbers.

What goes in: the prior probability p*(a) that an arm is best in a context, and the entropy H(Π*) of
the whole map from contexts to best arms, both from posterior draws at the prior; and, for Theorems
1 and 2, one run of Thompson Sampling in a world drawn from the prior, in each round of which the
information ratio and γ_t are computed from N fresh draws. (A ratio from few draws is too small,
because the estimate of g is too large; so the largest ones are taken again with more draws.)

The draws of two contexts with the same seed have the same CPTs, so the best arms of all contexts
under one draw make one map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, inf, isinf, log, log10, prod, sqrt
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Belief
from dowise.environments import make_environment
from dowise.errors import DowiseError
from dowise.information import (
    Estimate,
    corollary_1,
    corollary_2,
    delta_interval,
    estimate_from_draws,
    gain_interval,
    gamma_bracket,
    information_ratio,
    map_entropy,
    theorem_1,
    theorem_2,
)
from dowise.policies.thompson import ThompsonSampling
from dowise.problem import Problem

__all__ = ["Bounds", "bounds"]

MAX_CONTEXTS = 1024
CONFIDENCE = 0.999  # of the radius around p*(a), as in section 6
_DRAWS_PER_KIND = 10  # with fewer for each arm or map, an entropy is not to be trusted
_STEEPEST = 5  # rounds of the run whose ratio is taken again with more draws
_MOST_SAMPLES = 1e15  # where the search for the N at which intervals bite ends

Track = Callable[[Iterable[Any], str], Iterable[Any]]
State = tuple[dict[str, str], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Run:
    """What one run of Thompson Sampling showed, from N fresh draws in each round."""

    largest_ratio: float
    """The largest information ratio Ψ_t of Thompson Sampling; a measurement of one run."""
    gamma_low: float
    """Σγ_t from below, and from above."""
    gamma_high: float
    infinite_rounds: int
    """Rounds in which γ_t is infinite."""
    vacuous_rounds: int
    """Rounds in which Lemma 4 says of no arm more than 0 ≤ g ≤ log r."""
    steepest: tuple[State, ...] = ()
    """Where Ψ_t was largest by N draws: context and Dirichlet counts, to look at more closely."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Every figure by its own name; `as_dict` is what `dowise bounds --json` prints."""

    problem: Problem
    horizon: int
    samples: int
    policy_samples: int
    delta: float
    seed: int
    contexts: tuple[dict[str, str], ...]
    p_best: NDArray[np.float64]
    """p*(a) at the prior: (contexts, arms)."""
    entropy: float
    entropy_error: float
    maps_seen: int
    is_joint: bool
    """Whether the entropy is that of the joint map, or else the sum over contexts, at least it."""
    run: Run
    samples_for_some: float
    """The N from which the lower bound on some arm's g is positive, at the prior."""
    samples_for_all: float
    """The N from which all of them are, so that γ_t is finite; infinite where `unresolved`."""
    unresolved: int
    """Arms whose g at the prior is too small to be told from 0 with so many draws."""

    @property
    def arms(self) -> int:
        """K, the number of arms."""
        return len(self.problem.arms)

    @property
    def p_best_radius(self) -> float:
        """How far p*(a) may be off, all arms of a context at once, at confidence .999."""
        return sqrt(log(2 * self.arms / (1 - CONFIDENCE)) / (2 * self.samples))

    @property
    def reward_span(self) -> float:
        """What a regret in [0, 1] is multiplied by to be in the user's units."""
        worth = self.problem.reward_values.values()
        return max(worth) - min(worth)

    @property
    def worst_entropy(self) -> float:
        """|C| log K."""
        return len(self.contexts) * log(self.arms)

    @property
    def coefficient(self) -> float:
        """√(K/2 · H): what Corollary 2 multiplies √T by."""
        return corollary_2(self.arms, self.entropy, 1)

    @property
    def worst_coefficient(self) -> float:
        """√(K/2 · |C| log K): what Corollary 1 multiplies √T by."""
        return corollary_1(self.arms, len(self.contexts), 1)

    @property
    def saving(self) -> float:
        """By which share the coefficient is below the worst one."""
        return 1 - self.coefficient / self.worst_coefficient if self.worst_coefficient else 0.0

    def values(self) -> dict[str, float]:
        """The bounds on the Bayesian regret after T rounds, by name, for rewards in [0, 1]."""
        k, t = self.arms, self.horizon
        return {
            "corollary_1": corollary_1(k, len(self.contexts), t),
            "theorem_1": theorem_1(sqrt(k / 2), self.entropy, t),
            "theorem_1_run": theorem_1(sqrt(self.run.largest_ratio), self.entropy, t),
            "corollary_2": corollary_2(k, self.entropy, t),
            "theorem_2": theorem_2(k, self.entropy, t, [self.run.gamma_high]),
            "theorem_2_low": theorem_2(k, self.entropy, t, [self.run.gamma_low]),
        }

    def as_dict(self) -> dict[str, Any]:
        """For JSON: infinity is the text "inf"."""
        values, run = self.values(), self.run
        worst = values["corollary_1"]
        figures = {
            "problem": self.problem.name,
            "horizon": self.horizon,
            "samples": self.samples,
            "policy_samples": self.policy_samples,
            "delta": self.delta,
            "seed": self.seed,
            "arms": self.arms,
            "contexts": len(self.contexts),
            "arm_names": [str(arm) for arm in self.problem.arms],
            "p_best": self.p_best.mean(axis=0).tolist(),
            "p_best_by_context": [
                {"context": context, "p_best": row.tolist()}
                for context, row in zip(self.contexts, self.p_best, strict=True)
            ],
            "p_best_radius": self.p_best_radius,
            "reward_span": self.reward_span,
            "entropy": self.entropy,
            "entropy_error": self.entropy_error,
            "entropy_of": "joint map" if self.is_joint else "sum over contexts",
            "maps_seen": self.maps_seen,
            "worst_entropy": self.worst_entropy,
            "coefficient": self.coefficient,
            "worst_coefficient": self.worst_coefficient,
            "saving": self.saving,
            **values,  # for rewards in [0, 1]
            "of_worst_case": {name: x / worst if worst else 1.0 for name, x in values.items()},
            "largest_ratio": run.largest_ratio,
            "worst_ratio": self.arms / 2,
            "gamma_sum": run.gamma_high,
            "gamma_sum_low": run.gamma_low,
            "gamma_infinite_rounds": run.infinite_rounds,
            "vacuous_rounds": run.vacuous_rounds,
            "samples_for_some_lower_bound": self.samples_for_some,
            "samples_for_every_lower_bound": self.samples_for_all,
            "unresolved_arms": self.unresolved,
        }
        spoken: dict[str, Any] = _infinity_as_text(figures)
        return spoken


def bounds(
    problem: Problem,
    horizon: int,
    samples: int = 50_000,
    policy_samples: int = 1000,
    delta: float = 0.05,
    seed: int = 0,
    track: Track = lambda items, _what: items,
) -> Bounds:
    """Every bound of the paper for this problem at the uniform prior.

    `samples` draws for p* and H(Π*); `policy_samples` (N) draws in each round of the run, with the
    intervals of Lemmas 3 and 4 at level delta / (2·horizon·K). `track` shows progress: it is given
    what to go through, and what for.
    """
    for name, number in (
        ("horizon", horizon), ("samples", samples), ("policy_samples", policy_samples),
    ):  # fmt: skip
        if type(number) is bool or not isinstance(number, int | np.integer) or number < 1:
            raise DowiseError(f"{name}={number!r} must be a whole number of at least 1")
    if not isinstance(delta, Real) or not 0 < delta < 1:
        raise DowiseError(f"delta={delta!r} must be between 0 and 1, such as 0.05")
    if type(seed) is bool or not isinstance(seed, int | np.integer) or seed < 0:
        raise DowiseError(f"seed={seed!r} must be a whole number, 0 or more")
    arms = len(problem.arms)
    if min(samples, policy_samples) < _DRAWS_PER_KIND * arms:
        raise DowiseError(
            f"samples={samples} and policy_samples={policy_samples} must be at least "
            f"{_DRAWS_PER_KIND * arms} ({_DRAWS_PER_KIND} for each arm) to say anything"
        )
    belief = Belief(problem)
    contexts = tuple(_contexts(problem))
    level = delta / (2 * horizon * arms)
    p_best: list[NDArray[np.float64]] = []
    maps: NDArray[np.int64] | int = 0
    ratio, some, every, unresolved = 0.0, inf, 1.0, 0
    for context in track(contexts, "p* and H(Π*) before anything was seen"):
        drawn = belief.draw_raw(context, samples, seed)
        found = _estimate(belief, drawn)
        p_best.append(found.best)
        maps = np.unique(maps * arms + _winners(belief, drawn), return_inverse=True)[1]
        ratio = max(ratio, _ratio_of_thompson(found))
        unresolved = max(unresolved, int((found.gain < _noise(found)).sum()))
        some = _samples_for(found, level, np.any, 1.0, some)
        every = _samples_for(found, level, np.all, every, inf)
    counts = np.bincount(maps)
    is_joint = samples >= _DRAWS_PER_KIND * len(counts)
    entropy, error = (
        map_entropy(counts) if is_joint else _summed_entropy(np.array(p_best) * samples)
    )
    entropy = min(entropy, len(contexts) * log(arms))  # the correction may overshoot
    run = _run(problem, horizon, policy_samples, level, seed, track)
    for context, counts_then in run.steepest:
        belief.counts[:] = counts_then
        again = _estimate(belief, belief.draw_raw(context, samples, seed))
        ratio = max(ratio, _ratio_of_thompson(again))
    return Bounds(
        problem, horizon, samples, policy_samples, float(delta), seed, contexts, np.array(p_best),
        entropy, error, len(counts), is_joint, replace(run, largest_ratio=ratio),
        some, inf if unresolved else every, unresolved,
    )  # fmt: skip


def _contexts(problem: Problem) -> Iterator[dict[str, str]]:
    domains = [problem.domains[name] for name in problem.context]
    count = prod(len(domain) for domain in domains)
    if count > MAX_CONTEXTS:
        raise DowiseError(
            f"the problem has {count:,} contexts, and bounds goes through each of at most "
            f"{MAX_CONTEXTS:,}: name fewer context variables"
        )
    for labels in product(*domains):
        yield dict(zip(problem.context, labels, strict=True))


def _estimate(belief: Belief, drawn: NDArray[np.float32]) -> Estimate:
    return estimate_from_draws(drawn, np.array(belief.problem.scaled_rewards))


def _winners(belief: Belief, drawn: NDArray[np.float32]) -> NDArray[np.int64]:
    worth = np.array(belief.problem.scaled_rewards)
    winners: NDArray[np.int64] = np.einsum("avs,v->as", drawn, worth[1:] - worth[0]).argmax(axis=0)
    return winners


def _ratio_of_thompson(found: Estimate) -> float:
    """Ψ of Thompson Sampling, which plays an arm with the probability that it is the best."""
    return float(information_ratio(found.best @ found.delta, found.best @ found.gain))


def _noise(found: Estimate) -> float:
    """A gain up to this may be nothing but the bias of an estimate from so many draws."""
    arms, _, values = found.joint.shape
    return float((arms - 1) * (values - 1) / (2 * found.samples))


def _summed_entropy(counts: NDArray[np.float64]) -> tuple[float, float]:
    """Σ_c H(Π*(c)), an upper bound on the entropy of the map; the errors add up at worst."""
    parts = [map_entropy(row) for row in counts]
    return sum(h for h, _ in parts), sum(error for _, error in parts)


def _samples_for(
    found: Estimate,
    level: float,
    enough: Callable[[NDArray[np.bool_]], np.bool_],
    least: float,
    most: float,
) -> float:
    """The N, to two digits, from which some or all lower bounds of Lemma 4 are positive.

    From one large estimate with the radii that N draws would have; nobody draws 1e8. Not less than
    `least` and not more than `most`, which other contexts have settled.
    """

    def bites(n: float) -> bool:
        return bool(enough(gain_interval(found, level, ceil(n)).low > 0))

    if bites(least):
        return least
    if not bites(min(most, _MOST_SAMPLES)):
        return most
    low, high = log10(least), log10(min(most, _MOST_SAMPLES))
    while high - low > 0.002:
        middle = (low + high) / 2
        low, high = (low, middle) if bites(10**middle) else (middle, high)
    return float(f"{10**high:.1e}")


def _run(
    problem: Problem, horizon: int, samples: int, level: float, seed: int, track: Track
) -> Run:
    """Thompson Sampling in a world drawn from the prior."""
    world_seed, run_seed = np.random.SeedSequence(seed).spawn(2)
    world = make_environment(problem, int(world_seed.generate_state(1)[0]))
    policy = ThompsonSampling(problem)
    belief = policy.belief
    rng = np.random.default_rng(run_seed)
    steepest: list[tuple[float, int, State]] = []
    gammas_low, gammas_high, infinite, vacuous = 0.0, 0.0, 0, 0
    most = log(len(problem.domains[problem.reward]))
    for t in track(range(horizon), "a run of Thompson Sampling"):
        context = world.draw_context(rng)
        found = _estimate(belief, belief.draw_raw(context, samples, rng))
        ratio = _ratio_of_thompson(found)
        if len(steepest) < _STEEPEST or ratio > steepest[0][0]:
            steepest = sorted([*steepest, (ratio, t, (context, belief.counts.copy()))])[-_STEEPEST:]
        gain = gain_interval(found, level)
        vacuous += bool((gain.low == 0).all() and (gain.high == most).all())
        low, high = gamma_bracket(delta_interval(found, level), gain)
        infinite += isinf(high)
        gammas_low, gammas_high = gammas_low + low, gammas_high + high
        arm = policy.decide(context, rng).arm
        policy.observe(arm, world.play(arm, context, rng))
    states = tuple(state for _, _, state in steepest)
    return Run(0.0, gammas_low, gammas_high, infinite, vacuous, states)


def _infinity_as_text(figures: Any) -> Any:
    if isinstance(figures, dict):
        return {name: _infinity_as_text(x) for name, x in figures.items()}
    if isinstance(figures, list):
        return [_infinity_as_text(x) for x in figures]
    return "inf" if isinstance(figures, float) and isinf(figures) else figures
