"""Regret bounds of the paper (sections 5 and 6) as numbers for a given problem.

The inputs are the prior probability p*(a) that an arm is best in a context, and the entropy H(Π*)
of the map from contexts to best arms, both from posterior draws at the prior; for Theorems 1 and 2
also one run of Thompson Sampling in a world drawn from the prior. Draws of two contexts with the
same seed have the same CPTs, so the best arms of all contexts under one draw make one map.

In each round of the run the information ratio and γ_t are computed from N fresh draws. A ratio from
few draws is too small, because the estimate of g is too large; so the rounds with the largest
ratios are estimated again with more draws. All draws are made in blocks: progress is reported,
Ctrl-C ends the call promptly, and only the best arm of each draw is kept.

With `certify`, E[Σ cert_t] (docs/certificate.md) is the mean over trials of `certified-ids`, each
in a world of its own; the upper limit covers the number of trials and the error of H(Π*).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, inf, isinf, log, log10, prod, sqrt
from statistics import NormalDist
from time import monotonic
from typing import Any

import numpy as np

from dowise._core.codec import to_json
from dowise._core.document import (
    Block,
    Document,
    Documented,
    Heading,
    Paragraph,
    Table,
    pluralize,
)
from dowise._core.rng import Random
from dowise._core.types import BoolArray, FloatArray, IntArray
from dowise._core.validation import check_flag, check_fraction, check_integer
from dowise.belief import Belief
from dowise.environments import make_environment
from dowise.environments.random_worlds import WorldOptions
from dowise.environments.sources import random_worlds
from dowise.errors import DowiseError
from dowise.information import (
    Estimate,
    corollary_1,
    corollary_2,
    delta_interval,
    estimate_in_blocks,
    gain_interval,
    gains_above_0,
    gamma_bracket,
    information_ratio,
    map_entropy,
    theorem_1,
    theorem_2,
)
from dowise.information.certificate import certified_regret, net_values
from dowise.model.draws import Draws
from dowise.model.sampler import TrialScript
from dowise.policies.base import TrialLoop
from dowise.policies.certified_ids import CertifiedSampling, Played
from dowise.policies.thompson import ThompsonSampling
from dowise.problem import Problem
from dowise.problem.problem import Context
from dowise.simulation.spec import MAX_ROUNDS
from dowise.simulation.trial import make_world, run_trial

MAX_CONTEXTS = 1024
_MAX_CONTEXT_COLUMNS = 4  # of the table of p*
# The paper's number of draws, or this many for each arm, which gives a p* of 1/K to a tenth.
SAMPLES, SAMPLES_PER_ARM = 50_000, 100
POLICY_SAMPLES = 1000
TRIALS = 100  # of `certified-ids`
MIN_TRIALS_FOR_QUANTILE = 10  # for the expansion of Student's quantile
P_BEST_CONFIDENCE = 0.999  # of the radius around p*(a), as in section 6
CERTIFIED_CONFIDENCE = 0.95  # of the upper limit of the certified bound
MIN_DRAWS_PER_KIND = 10  # with fewer for each arm or map, an entropy can't be trusted
MAX_SAMPLES = 50_000_000  # their best arms take 2 GB while they are counted
MAX_SEARCHED_SAMPLES = 1e15  # end of the search for the N from which intervals are informative
SEARCH_STEPS = 32  # steps of that search; each counts as a hundredth of the draws
STEEPEST_ROUNDS = 5  # rounds of the run whose ratio is estimated again with more draws
PROGRESS_INTERVAL = 0.1  # seconds between two calls of `progress`

Progress = Callable[[str, int, int], None]
"""Called with the name of the current step, its finished work and its total work."""
State = tuple[dict[str, str], Belief]


@dataclass(frozen=True, eq=False)
class ThompsonRun:
    """Figures of one run of Thompson Sampling, from N fresh draws in each round.

    Attributes
    ----------
    largest_ratio
        The largest information ratio Ψ_t of Thompson Sampling: a measurement, not a bound.
    gamma_low, gamma_high
        Σγ_t from below and from above.
    infinite_rounds
        Number of rounds in which γ_t is infinite.
    vacuous_rounds
        Number of rounds in which Lemma 4 gives no more than 0 ≤ g ≤ log r for any arm.
    steepest
        Contexts and beliefs at which Ψ_t was largest, to be estimated again with more draws.
    """

    largest_ratio: float
    gamma_low: float
    gamma_high: float
    infinite_rounds: int
    vacuous_rounds: int
    steepest: tuple[State, ...] = ()


@dataclass(frozen=True, eq=False)
class Certified:
    """Certificates of `certified-ids` over some trials, for rewards in [0, 1].

    Attributes
    ----------
    lam
        λ of the policy.
    sums
        Σ cert_t of every trial.
    share
        Share of rounds in which the draws certified the choice of IDS.
    bound_of_zero
        The bound if all certificates were 0: λH(Π*) + δ'(span + λ log r).
    entropy_error
        Standard error of the estimate of H(Π*).
    regrets
        Regret of every trial: a measurement, not a bound.
    """

    lam: float
    sums: FloatArray
    share: float
    bound_of_zero: float
    entropy_error: float
    regrets: FloatArray

    @property
    def mean(self) -> float:
        """Bound on the Bayesian regret, with the mean over the trials for E[Σ cert_t]."""
        return self.bound_of_zero + float(self.sums.mean())

    @property
    def bound(self) -> float:
        """Upper confidence limit (.95), by Student's t over the trials and the error of H."""
        trials = len(self.sums)
        error = sqrt(float(self.sums.var(ddof=1)) / trials + (self.lam * self.entropy_error) ** 2)
        return self.mean + _upper_quantile(trials - 1) * error

    def as_dict(self) -> dict[str, float]:
        """Return the JSON data."""
        return {
            "certified_bound": self.bound,
            "certified_mean": self.mean,
            "certified_share": self.share,
            "certified_trials": len(self.sums),
            "certified_lam": self.lam,
            "certified_regret": float(self.regrets.mean()),
        }


@dataclass(frozen=True, eq=False)
class Bounds(Documented):
    """Result of `bounds`.

    Attributes
    ----------
    problem, horizon, samples, policy_samples, delta, seed
        The arguments.
    contexts
        All contexts of the problem.
    p_best
        Probability p*(a) at the prior: (contexts, arms).
    entropy, entropy_error
        H(Π*) in nats, with its standard error.
    maps_seen
        Number of different maps from context to best arm among the draws.
    is_joint
        True if `entropy` is that of the joint map; else it is the sum over contexts, which is never
        smaller.
    run
        Figures of a run of Thompson Sampling.
    samples_for_some, samples_for_all
        Number of draws N from which the lower bound on some arm's g, or on every arm's, is positive
        at the prior. The latter is infinite if there are unresolved arms.
    unresolved
        Number of arms whose g at the prior is too small to be distinguished from 0.
    certified
        Certificates of `certified-ids`, if requested.
    """

    problem: Problem
    horizon: int
    samples: int
    policy_samples: int
    delta: float
    seed: int
    contexts: tuple[dict[str, str], ...]
    p_best: FloatArray
    entropy: float
    entropy_error: float
    maps_seen: int
    is_joint: bool
    run: ThompsonRun
    samples_for_some: float
    samples_for_all: float
    unresolved: int
    certified: Certified | None = None

    @property
    def arms(self) -> int:
        """K, the number of arms."""
        return len(self.problem.arms)

    @property
    def p_best_radius(self) -> float:
        """Error of p*(a), simultaneously for all arms of a context, at confidence .999."""
        return sqrt(log(2 * self.arms / (1 - P_BEST_CONFIDENCE)) / (2 * self.samples))

    @property
    def reward_span(self) -> float:
        """Factor from regrets in [0, 1] to the user's units."""
        return self.problem.payoff.span

    @property
    def worst_entropy(self) -> float:
        """|C| log K."""
        return len(self.contexts) * log(self.arms)

    @property
    def coefficient(self) -> float:
        """√(K/2 · H), the factor of √T in Corollary 2."""
        return corollary_2(self.arms, self.entropy, 1)

    @property
    def worst_coefficient(self) -> float:
        """√(K/2 · |C| log K), the factor of √T in Corollary 1."""
        return corollary_1(self.arms, len(self.contexts), 1)

    @property
    def saving(self) -> float:
        """Share by which the coefficient is below the worst one."""
        return 1 - self.coefficient / self.worst_coefficient if self.worst_coefficient else 0.0

    def values(self) -> dict[str, float]:
        """Return bounds on the Bayesian regret after T rounds by name, for rewards in [0, 1]."""
        k, t = self.arms, self.horizon
        return {
            "corollary_1": corollary_1(k, len(self.contexts), t),
            "theorem_1": theorem_1(sqrt(k / 2), self.entropy, t),
            "theorem_1_run": theorem_1(sqrt(self.run.largest_ratio), self.entropy, t),
            "corollary_2": corollary_2(k, self.entropy, t),
            "theorem_2": theorem_2(k, self.entropy, t, [self.run.gamma_high]),
            "theorem_2_low": theorem_2(k, self.entropy, t, [self.run.gamma_low]),
        }

    def document(self) -> Document:
        """Return p*, H(Π*), the bounds beside the worst case, and the figures of the intervals."""
        return Document(tuple(_document_blocks(self)))

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data; infinity is the text "inf"."""
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
            **({} if self.certified is None else self.certified.as_dict()),
        }
        data: dict[str, Any] = to_json(figures)
        return data


def bounds(
    problem: Problem,
    horizon: int,
    samples: int | None = None,
    policy_samples: int | None = None,
    delta: float = 0.05,
    seed: int = 0,
    progress: Progress | None = None,
    certify: bool = False,
    trials: int | None = None,
) -> Bounds:
    """Compute the bounds of the paper for a problem at its prior.

    Parameters
    ----------
    problem
        The problem, with its prior.
    horizon
        Number of rounds T.
    samples
        Draws for p* and H(Π*). Defaults to 50,000, or to 100 for each arm if that is more.
    policy_samples
        Draws N in each round of the run. Defaults to 1000, or to 10 for each arm if that is more.
    delta
        Probability δ' that any interval of the run may fail; the intervals of Lemmas 3 and 4 have
        the level delta / (2·horizon·K).
    seed
        Random seed.
    progress
        Called with the name of the current step, its finished work and its total work.
    certify
        Compute the bound of docs/certificate.md too.
    trials
        Trials of "certified-ids" for that bound. Defaults to 100.

    Returns
    -------
    Bounds
        All bounds, and the figures they are computed from.

    Raises
    ------
    DowiseError
        If an argument is invalid, or the problem has more than 1,024 contexts.

    Examples
    --------
    >>> from dowise import load_problem
    >>> result = bounds(load_problem("task1"), 10, samples=1000, policy_samples=100)
    >>> result.arms, result.values()["corollary_2"] < result.values()["corollary_1"]
    (3, True)
    """
    horizon = check_integer("horizon", horizon, 1, MAX_ROUNDS)
    arms = len(problem.arms)
    if samples is None:
        samples = max(SAMPLES, SAMPLES_PER_ARM * arms)
    if policy_samples is None:
        policy_samples = max(POLICY_SAMPLES, MIN_DRAWS_PER_KIND * arms)
    samples = _check_draws("samples", samples, arms)
    policy_samples = _check_draws("policy_samples", policy_samples, arms)
    delta, seed = check_fraction("delta", delta), check_integer("seed", seed, 0)
    if not check_flag("certify", certify) and trials is not None:
        raise DowiseError(f"trials={trials!r} requires `certify`", code="unused-option")
    trials = check_integer("trials", TRIALS if trials is None else trials, MIN_TRIALS_FOR_QUANTILE)
    contexts = _contexts(problem)
    level = delta / (2 * horizon * arms)
    belief = Belief(problem)
    belief.posterior.refuse_pooled("bounds")
    prior = _estimate_prior(belief, contexts, samples, level, seed, progress)
    is_joint = samples >= MIN_DRAWS_PER_KIND * len(prior.maps)
    entropy, error = (
        map_entropy(prior.maps) if is_joint else _summed_entropy(prior.p_best * samples)
    )
    entropy = min(entropy, len(contexts) * log(arms))  # the correction may overshoot
    run = run_thompson(problem, horizon, policy_samples, level, seed, progress)
    meter = ProgressMeter(progress, "the steepest rounds again", len(run.steepest) * samples)
    ratios = [
        thompson_ratio(estimate_arms(belief, context, samples, seed, meter))
        for context, belief in run.steepest
    ]
    certified = None
    if certify:
        certified = run_certified(
            problem, horizon, policy_samples, delta, trials, seed, (entropy, error), progress
        )
    return Bounds(
        problem=problem,
        horizon=horizon,
        samples=samples,
        policy_samples=policy_samples,
        delta=delta,
        seed=seed,
        contexts=contexts,
        p_best=prior.p_best,
        entropy=entropy,
        entropy_error=error,
        maps_seen=len(prior.maps),
        is_joint=is_joint,
        run=replace(run, largest_ratio=max([prior.ratio, *ratios])),
        samples_for_some=prior.samples_for_some,
        samples_for_all=inf if prior.unresolved else prior.samples_for_all,
        unresolved=prior.unresolved,
        certified=certified,
    )


def _check_draws(name: str, value: int, arms: int) -> int:
    number = check_integer(name, value, 1, MAX_SAMPLES)
    minimum = MIN_DRAWS_PER_KIND * arms
    if number < minimum:
        raise DowiseError(
            f"{name}={number} must be at least {minimum:,} "
            f"({MIN_DRAWS_PER_KIND} for each arm) to be meaningful; by default there are enough",
            code="invalid-number",
        )
    return number


@dataclass(frozen=True, eq=False)
class _PriorEstimates:
    """Estimates from draws of the prior, over all contexts."""

    p_best: FloatArray
    maps: IntArray
    """Number of draws of each map from context to best arm that occurs."""
    ratio: float
    """The largest information ratio of Thompson Sampling."""
    samples_for_some: float
    samples_for_all: float
    unresolved: int
    """Number of arms whose g may be noise only, in the worst context."""


def _estimate_prior(
    belief: Belief,
    contexts: Sequence[dict[str, str]],
    samples: int,
    level: float,
    seed: int,
    progress: Progress | None,
) -> _PriorEstimates:
    arms = len(belief.problem.arms)
    p_best: list[FloatArray] = []
    maps: IntArray | int = 0
    ratio, for_some, for_all, unresolved = 0.0, inf, 1.0, 0
    work = samples + SEARCH_STEPS * (samples // 100)
    meter = ProgressMeter(progress, "p* and H(Π*) before anything was seen", len(contexts) * work)
    for i, context in enumerate(contexts):
        estimate = estimate_arms(belief, context, samples, seed, meter)
        p_best.append(estimate.best)
        maps = np.unique(maps * arms + estimate.winners, return_inverse=True)[1]
        ratio = max(ratio, thompson_ratio(estimate))
        values = estimate.outcomes.shape[1]
        bias = (arms - 1) * (values - 1) / (2 * samples)  # of a gain from this number of draws
        unresolved = max(unresolved, int((estimate.gain < bias).sum()))
        for_some = _samples_for(estimate, level, np.any, 1.0, for_some, meter)
        for_all = _samples_for(estimate, level, np.all, for_all, inf, meter)
        meter.reach((i + 1) * work)
    return _PriorEstimates(
        np.array(p_best), np.bincount(maps), ratio, for_some, for_all, unresolved
    )


def _contexts(problem: Problem) -> tuple[dict[str, str], ...]:
    domains = [problem.domains[name] for name in problem.context]
    count = prod(len(domain) for domain in domains)
    if count > MAX_CONTEXTS:
        raise DowiseError(
            f"the problem has {count:,} contexts, and bounds are computed for at most "
            f"{MAX_CONTEXTS:,}: use fewer context variables",
            code="too-large",
        )
    return tuple(dict(zip(problem.context, labels, strict=True)) for labels in product(*domains))


def _summed_entropy(counts: FloatArray) -> tuple[float, float]:
    """Return Σ_c H(Π*(c)), an upper bound on the entropy of the map, and the sum of the errors."""
    parts = [map_entropy(row) for row in counts]
    return sum(h for h, _ in parts), sum(error for _, error in parts)


def _samples_for(
    estimate: Estimate,
    level: float,
    condition: Callable[[BoolArray], np.bool_],
    minimum: float,
    maximum: float,
    meter: ProgressMeter,
) -> float:
    """Return the N, to two digits, from which some or all lower bounds of Lemma 4 are positive.

    Lemma 4 is evaluated with the radii of N draws around one estimate, since 1e8 draws would take
    too long. The result is limited to `minimum` and `maximum`, which other contexts determine.
    """

    def is_enough(n: float) -> bool:
        meter.advance(estimate.samples // 100)
        return bool(condition(gains_above_0(estimate, level, ceil(n))))

    if minimum == inf or is_enough(minimum):
        return minimum
    if not is_enough(min(maximum, MAX_SEARCHED_SAMPLES)):
        return maximum
    low, high = log10(minimum), log10(min(maximum, MAX_SEARCHED_SAMPLES))
    while high - low > 0.002:
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(10**middle) else (middle, high)
    return float(f"{10**high:.1e}")


class ProgressMeter:
    """Progress of one step of the work, reported at intervals."""

    def __init__(self, progress: Progress | None, step: str, total: int) -> None:
        self._progress, self._step, self._total = progress, step, total
        self._finished, self._last_report = 0, monotonic()
        if progress is not None:
            progress(step, 0, total)

    def advance(self, work: int) -> None:
        """Add finished work."""
        self.reach(self._finished + work)

    def reach(self, finished: int) -> None:
        """Set the finished work."""
        self._finished, now = min(finished, self._total), monotonic()
        is_due = now - self._last_report >= PROGRESS_INTERVAL or self._finished == self._total
        if self._progress and is_due:
            self._last_report = now
            self._progress(self._step, self._finished, self._total)


def run_thompson(
    problem: Problem, horizon: int, samples: int, level: float, seed: int, progress: Progress | None
) -> ThompsonRun:
    """Run Thompson Sampling once, and compute the figures of every round from `samples` draws.

    Each interval may fail with probability `level`. `largest_ratio` is left at 0, since it requires
    more draws.
    """
    world_seed, run_seed = np.random.SeedSequence(seed).spawn(2)
    world = make_environment(problem, int(world_seed.generate_state(1)[0]))
    policy = ThompsonSampling(problem)
    belief = policy.belief
    rng = np.random.default_rng(run_seed)
    steepest: list[tuple[float, int, State]] = []
    gammas_low, gammas_high, infinite, vacuous = 0.0, 0.0, 0, 0
    max_gain = log(len(problem.domains[problem.reward]))
    meter = ProgressMeter(progress, "a run of Thompson Sampling", horizon * samples)
    for t in range(horizon):
        context = world.draw_context(rng)
        estimate = estimate_arms(belief, context, samples, rng, meter)
        ratio = thompson_ratio(estimate)
        if len(steepest) < STEEPEST_ROUNDS or ratio > steepest[0][0]:
            steepest = sorted([*steepest, (ratio, t, (context, belief.copy()))])[-STEEPEST_ROUNDS:]
        gain = gain_interval(estimate, level)
        vacuous += bool((gain.low == 0).all() and (gain.high == max_gain).all())
        low, high = gamma_bracket(delta_interval(estimate, level), gain)
        infinite += isinf(high)
        gammas_low, gammas_high = gammas_low + low, gammas_high + high
        arm = policy.decide(context, rng).arm
        policy.observe(arm, world.play(arm, context, rng))
    states = tuple(state for _, _, state in steepest)
    return ThompsonRun(0.0, gammas_low, gammas_high, infinite, vacuous, states)


def estimate_arms(
    belief: Belief, context: Context, samples: int, rng: Random, meter: ProgressMeter
) -> Estimate:
    """Estimate Δ, g and p* from `samples` draws."""

    def blocks() -> Iterator[Draws]:
        for block in belief.draw_in_blocks(codes, samples, rng):
            meter.advance(block.samples)
            yield block

    codes = belief.problem.context_codes(context)
    return estimate_in_blocks(blocks(), belief.problem.payoff, samples)


def thompson_ratio(estimate: Estimate) -> float:
    """Return Ψ of Thompson Sampling, which plays an arm with the probability that it is best."""
    return float(information_ratio(estimate.best @ estimate.delta, estimate.best @ estimate.gain))


def run_certified(
    problem: Problem,
    horizon: int,
    samples: int,
    delta: float,
    trials: int,
    seed: int,
    entropy: tuple[float, float],
    progress: Progress | None = None,
) -> Certified:
    """Run trials of `certified-ids`; `entropy` is H(Π*) with its standard error."""
    played: list[Played] = []

    def make(problem: Problem) -> _RecordedSampling:
        return _RecordedSampling(problem, samples, delta, horizon, on_trial=played.append)

    regrets = np.empty(trials)
    worlds = random_worlds(problem, WorldOptions(edges="prior"))
    meter = ProgressMeter(progress, "certified-ids", trials * horizon)
    for trial in range(trials):
        world = make_world(worlds, seed, trial)
        regrets[trial] = run_trial(world, make, horizon, seed, trial).regrets.sum()
        meter.advance(horizon)
    lam = make(problem).lam
    bound_of_zero = certified_regret(
        lam, entropy[0], 0.0, delta, net_values(problem.payoff, len(problem.arms))
    )
    return Certified(
        lam,
        np.array([run.certificates.sum() for run in played]),
        float(np.mean([run.held.mean() for run in played])),
        bound_of_zero,
        entropy[1],
        regrets / problem.payoff.span,
    )


class _RecordedSampling(CertifiedSampling):
    """The policy, with a callback that gets the certificates of each trial."""

    def __init__(self, problem: Problem, *options: Any, on_trial: Callable[[Played], None]) -> None:
        super().__init__(problem, *options)
        self._on_trial = on_trial

    def compiled_trial(self) -> TrialLoop:
        return self._play

    def _play(self, script: TrialScript, rng: np.random.Generator) -> IntArray:
        played = self.play_certified(script, rng)
        self._on_trial(played)
        return played.arms


def _upper_quantile(freedom: int) -> float:
    """Return Student's t at CERTIFIED_CONFIDENCE, to a thousandth from 9 degrees of freedom on.

    This is Fisher's expansion around the normal quantile (Abramowitz & Stegun 26.7.5): SciPy is not
    a dependency of `dowise bounds`.
    """
    z = NormalDist().inv_cdf(CERTIFIED_CONFIDENCE)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2


def _document_blocks(bounds: Bounds) -> Iterator[Block]:
    problem, contexts = bounds.problem, len(bounds.contexts)
    size = f"{pluralize(bounds.arms, 'arm')}, {pluralize(contexts, 'context')}"
    yield Heading(f"{problem.name or 'The problem'}: {size}, T = {bounds.horizon:,}")

    by_context = 1 < contexts <= _MAX_CONTEXT_COLUMNS
    p_best = bounds.p_best if by_context else bounds.p_best.mean(axis=0, keepdims=True)
    heads = ["p*"]
    if by_context:
        heads = [", ".join(f"{k}={v}" for k, v in context.items()) for context in bounds.contexts]
    averaged = "" if by_context or contexts == 1 else ", mean over contexts"
    yield Paragraph(
        f"Chance of each arm to be the best before anything is observed{averaged} "
        f"({bounds.samples:,} draws{_per_arm(bounds.samples, bounds)}, ±{bounds.p_best_radius:.4f} "
        "at confidence 0.999)",
        "strong",
    )
    yield Table(
        ("arm", *heads),
        tuple(
            (str(arm), *(f"{p:.4f}" for p in p_best[:, i])) for i, arm in enumerate(problem.arms)
        ),
        right=tuple(heads),
    )
    subject = "the best arm" if contexts == 1 else "the map from context to best arm"
    entropy = (
        f"Entropy of {subject}: H = {bounds.entropy:.4f} ± {bounds.entropy_error:.4f} nats, "
        f"at most {bounds.worst_entropy:.4f}"
    )
    if not bounds.is_joint:
        entropy += (
            f"\n(There are too few draws for the {bounds.maps_seen:,} maps seen, so this is the "
            "sum over contexts, which is never smaller.)"
        )
    yield Paragraph(entropy)
    yield from _bound_value_blocks(bounds)
    yield Paragraph(_describe_intervals(bounds))
    if bounds.certified is not None:
        yield Paragraph(_describe_certificates(bounds, bounds.certified))
    yield Paragraph("K is the number of arms; docs/bounds.md explains the rest.", "muted")


def _bound_value_blocks(bounds: Bounds) -> Iterator[Block]:
    values, span = bounds.values(), bounds.reward_span
    names = {
        "corollary_1": "Corollary 1, the worst case",
        "theorem_1": f"Theorem 1, TS, Γ² = K/2 = {bounds.arms / 2:g}",
        "corollary_2": "Corollary 2, IDS with exact Δ and g",
        "theorem_2": f"Theorem 2, IDS, N = {bounds.policy_samples:,}",
    }
    if bounds.certified is not None:
        names["certified"] = f"Certificates, certified-ids, N = {bounds.policy_samples:,}"
        values = {**values, "certified": bounds.certified.bound}
    worst = values["corollary_1"]
    units = "" if span == 1 else f" (in the reward's own units, which span {span:g})"
    yield Heading(f"Expected regret after T rounds is at most{units}")
    yield Table(
        ("bound", "regret", "of the worst case"),
        tuple(
            (text, _format_bound(values[name] * span), _format_share(values[name], worst))
            for name, text in names.items()
        ),
        right=("regret", "of the worst case"),
    )
    largest = bounds.horizon * bounds.problem.payoff.largest_regret
    if values["corollary_2"] * span > largest:
        yield Paragraph(
            f"The regret of {bounds.horizon:,} rounds is at most {largest:,g} in any case, so "
            "larger bounds are vacuous."
        )
    yield Paragraph(
        f"The prior lowers the coefficient of √T from {bounds.worst_coefficient:.4f} to "
        f"{bounds.coefficient:.4f}: {100 * bounds.saving:.1f} % less.\n"
        f"Along one run of TS the largest Γ² was {bounds.run.largest_ratio:.3f}; if it were never "
        f"larger, Theorem 1 would give {_format_bound(values['theorem_1_run'] * span)} "
        f"({_format_share(values['theorem_1_run'], worst)}). That is a measurement, not a bound."
    )


def _describe_intervals(bounds: Bounds) -> str:
    run, rounds = bounds.run, bounds.horizon
    if run.infinite_rounds:
        gamma = (
            f"γ_t is infinite in {run.infinite_rounds:,} of {rounds:,} rounds, so Theorem 2 says "
            "nothing."
        )
    else:
        gamma = (
            f"γ_t is finite in every round, and its sum is between {_format_bound(run.gamma_low)} "
            f"and {_format_bound(run.gamma_high)}."
        )
    some_arm, every_arm = (
        "for no N" if isinf(samples) else f"from about N = {samples:,.0f} on"
        for samples in (bounds.samples_for_some, bounds.samples_for_all)
    )
    if bounds.unresolved:
        every_arm = (
            f"perhaps never: {bounds.samples:,} draws can't distinguish the g of some arms from 0"
        )
    return (
        f"With N = {bounds.policy_samples:,} draws per round"
        f"{_per_arm(bounds.policy_samples, bounds)}, Lemma 4 says no more about any arm's "
        f"information gain g than that it is between 0 and log r in {run.vacuous_rounds:,} of "
        f"{rounds:,} rounds; {gamma} Before anything is observed the lower bound on some arm's "
        f"gain is positive {some_arm}, that of every arm {every_arm}."
    )


def _describe_certificates(bounds: Bounds, certified: Certified) -> str:
    span, trials = bounds.reward_span, len(certified.sums)
    return (
        f"In {100 * certified.share:.3g} % of the rounds of {trials:,} runs of certified-ids "
        f"(λ = {certified.lam:.3g}) the draws certified the choice of IDS. The bound is an upper "
        f"confidence limit (0.95) over this number of runs; its mean is "
        f"{_format_bound(certified.mean * span)}. The actual regret of these runs is "
        f"{_format_bound(float(certified.regrets.mean()) * span)} on average: a measurement, not a "
        "bound."
    )


def _per_arm(draws: int, bounds: Bounds) -> str:
    """Explain a default number of draws that follows from the number of arms."""
    draws_per_arm, remainder = divmod(draws, bounds.arms)
    return f", {draws_per_arm} per arm" if not remainder and draws_per_arm in (10, 100) else ""


def _format_share(value: float, whole: float) -> str:
    return "—" if isinf(value) or not whole else f"{100 * value / whole:.1f} %"


def _format_bound(value: float) -> str:
    return "infinite" if isinf(value) else f"{value:,.2f}"
