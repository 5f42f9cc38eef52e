"""The regret bounds of the paper for a given problem: sections 5 and 6, with numbers.

The inputs are the prior probability p*(a) that an arm is best in a context, and the entropy H(Π*)
of the map from contexts to best arms, both from posterior draws at the prior; for Theorems 1 and 2
also one run of Thompson Sampling in a world drawn from the prior. Draws of two contexts with the
same seed have the same CPTs, so the best arms of all contexts under one draw make one map.

In each round of the run the information ratio and γ_t are computed from N fresh draws. A ratio from
few draws is too small, because the estimate of g is too large; so the rounds with the largest ones
are kept, and estimated again with more draws. All draws are made in blocks: progress is reported,
Ctrl-C ends the call promptly, and of each draw only its best arm is kept.

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
# As in the paper, or so many for each arm: then a p* of 1/K is known to a tenth.
SAMPLES, SAMPLES_PER_ARM = 50_000, 100
POLICY_SAMPLES = 1000
TRIALS = 100  # of `certified-ids`
MIN_TRIALS = 10  # for the expansion of Student's quantile
P_BEST_CONFIDENCE = 0.999  # of the radius around p*(a), as in section 6
CERTIFIED_CONFIDENCE = 0.95  # of the upper limit of the certified bound
MIN_DRAWS_PER_KIND = 10  # with fewer for each arm or map, an entropy can't be trusted
MAX_SAMPLES = 50_000_000  # whose best arms take 2 GB while they are counted
MAX_SEARCHED_SAMPLES = 1e15  # end of the search for the N from which intervals are informative
SEARCH_STEPS = 32  # of that search, each of which counts as a hundredth of the draws
STEEPEST_ROUNDS = 5  # rounds of the run whose ratio is estimated again with more draws
PROGRESS_INTERVAL = 0.1  # seconds between two calls of `progress`

Progress = Callable[[str, int, int], None]
"""Called with the current step, how much of it is done, and how much there is."""
State = tuple[dict[str, str], Belief]


@dataclass(frozen=True, eq=False)
class ThompsonRun:
    """Figures of one run of Thompson Sampling, from N fresh draws in each round."""

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
    """Where Ψ_t was largest by N draws: the context and the belief, to look at more closely."""


@dataclass(frozen=True, eq=False)
class Certified:
    """Certificates of `certified-ids` over some trials, for rewards in [0, 1]."""

    lam: float
    sums: FloatArray
    """Σ cert_t of every trial."""
    share: float
    """The share of rounds in which draws certified what IDS would play."""
    bound_of_zero: float
    """The bound if all certificates were 0: λH(Π*) + δ'(span + λ log r)."""
    entropy_error: float
    """The standard error of the estimate of H(Π*)."""
    regrets: FloatArray
    """What every trial did cost: a measurement, no bound."""

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
        """Return every figure by its name."""
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
    """Every figure by its own name; `as_dict` is what `dowise bounds --json` prints."""

    problem: Problem
    horizon: int
    samples: int
    policy_samples: int
    delta: float
    """δ', with which all intervals of the run together may fail; not the regret Δ."""
    seed: int
    contexts: tuple[dict[str, str], ...]
    p_best: FloatArray
    """p*(a) at the prior: (contexts, arms)."""
    entropy: float
    entropy_error: float
    maps_seen: int
    is_joint: bool
    """Whether the entropy is that of the joint map, or else the sum over contexts, at least it."""
    run: ThompsonRun
    samples_for_some: float
    """The N from which the lower bound on some arm's g is positive, at the prior."""
    samples_for_all: float
    """The N from which all of them are, so that γ_t is finite; infinite where `unresolved`."""
    unresolved: int
    """Arms whose g at the prior is too small to be told from 0 with so many draws."""
    certified: Certified | None = None
    """What `certified-ids` certifies, where that was asked for."""

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
        """Bounds on the Bayesian regret after T rounds, by name, for rewards in [0, 1]."""
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
        """Return p*, H(Π*), every bound beside the worst case, and what the intervals are worth."""
        return Document(tuple(_document_blocks(self)))

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data; infinity is the text "inf"."""
        figures = {**self._inputs(), **self._prior_figures(), **self._run_figures()}
        if self.certified is not None:
            figures |= self.certified.as_dict()
        spoken: dict[str, Any] = to_json(figures)
        return spoken

    def _inputs(self) -> dict[str, Any]:
        return {
            "problem": self.problem.name,
            "horizon": self.horizon,
            "samples": self.samples,
            "policy_samples": self.policy_samples,
            "delta": self.delta,
            "seed": self.seed,
            "arms": self.arms,
            "contexts": len(self.contexts),
            "arm_names": [str(arm) for arm in self.problem.arms],
        }

    def _prior_figures(self) -> dict[str, Any]:
        values = self.values()
        worst = values["corollary_1"]
        return {
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
        }

    def _run_figures(self) -> dict[str, Any]:
        run = self.run
        return {
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
    """Every bound of the paper for this problem at its prior, uniform unless told.

    `samples` draws for p* and H(Π*), unless told 50,000, or 100 for each arm where that is more;
    `policy_samples` (N) draws in each round of the run, unless told 1000, or 10 for each arm, with
    the intervals of Lemmas 3 and 4 at level delta / (2·horizon·K). `progress` is told what is being
    done, how much of it is, and how much there is. With `certify` also the bound of
    docs/certificate.md, from so many `trials` of "certified-ids", 100 unless told.
    """
    horizon = check_integer("horizon", horizon, 1, MAX_ROUNDS)
    arms = len(problem.arms)
    samples = _checked_draws("samples", samples, arms, max(SAMPLES, SAMPLES_PER_ARM * arms))
    policy_samples = _checked_draws(
        "policy_samples", policy_samples, arms, max(POLICY_SAMPLES, MIN_DRAWS_PER_KIND * arms)
    )
    failure, seed = check_fraction("delta", delta), check_integer("seed", seed, 0)
    trials = _checked_trials(trials, check_flag("certify", certify))
    belief = Belief(problem)
    contexts = tuple(_contexts(problem))
    level = failure / (2 * horizon * arms)
    prior = _estimate_prior(belief, contexts, samples, level, seed, progress)
    is_joint = samples >= MIN_DRAWS_PER_KIND * len(prior.maps)
    entropy, error = (
        map_entropy(prior.maps) if is_joint else _summed_entropy(prior.p_best * samples)
    )
    entropy = min(entropy, len(contexts) * log(arms))  # the correction may overshoot
    run = run_thompson(problem, horizon, policy_samples, level, seed, progress)
    run = _refine_ratio(run, prior.ratio, samples, seed, progress)
    certified = None
    if certify:
        certified = run_certified(
            problem, horizon, policy_samples, failure, trials, seed, (entropy, error), progress
        )
    return Bounds(
        problem,
        horizon,
        samples,
        policy_samples,
        failure,
        seed,
        contexts,
        prior.p_best,
        entropy,
        error,
        len(prior.maps),
        is_joint,
        run,
        prior.some,
        inf if prior.unresolved else prior.every,
        prior.unresolved,
        certified,
    )


def _refine_ratio(
    run: ThompsonRun, ratio: float, samples: int, seed: int, progress: Progress | None
) -> ThompsonRun:
    """Return the run with its largest ratio from more draws; at least that of the prior."""
    meter = ProgressMeter(progress, "the steepest rounds again", len(run.steepest) * samples)
    again = [estimate_arms(then, context, samples, seed, meter) for context, then in run.steepest]
    return replace(run, largest_ratio=max([ratio, *map(thompson_ratio, again)]))


def _checked_trials(given: int | None, is_wanted: bool) -> int:
    if given is not None and not is_wanted:
        raise DowiseError(
            f"trials={given!r} requires `certify`",
            code="unused-option",
        )
    return check_integer("trials", TRIALS if given is None else given, MIN_TRIALS)


def _checked_draws(name: str, given: int | None, arms: int, needed: int) -> int:
    """Return the number of draws: the argument, or what the problem needs."""
    number = check_integer(name, needed if given is None else given, 1, MAX_SAMPLES)
    least = MIN_DRAWS_PER_KIND * arms
    if number < least:
        raise DowiseError(
            f"{name}={number} must be at least {least:,} "
            f"({MIN_DRAWS_PER_KIND} for each arm) to be meaningful; by default there are enough",
            code="invalid-number",
        )
    return number


@dataclass(frozen=True, eq=False)
class _PriorEstimates:
    """Estimates from draws of the prior, over all contexts."""

    p_best: FloatArray
    """p*(a): (contexts, arms)."""
    maps: IntArray
    """How many draws have each map from context to best arm that was seen."""
    ratio: float
    """The largest information ratio of Thompson Sampling."""
    some: float
    """The N from which the lower bound on some arm's g is positive, and that on every arm's."""
    every: float
    unresolved: int
    """Arms whose g may be nothing but noise, in the worst context."""


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
    ratio, some, every, unresolved = 0.0, inf, 1.0, 0
    each = samples + SEARCH_STEPS * (samples // 100)
    meter = ProgressMeter(progress, "p* and H(Π*) before anything was seen", len(contexts) * each)
    for i, context in enumerate(contexts):
        found = estimate_arms(belief, context, samples, seed, meter)
        p_best.append(found.best)
        maps = np.unique(maps * arms + found.winners, return_inverse=True)[1]
        ratio = max(ratio, thompson_ratio(found))
        unresolved = max(unresolved, int((found.gain < _noise(found)).sum()))
        some = _samples_for(found, level, np.any, 1.0, some, meter)
        every = _samples_for(found, level, np.all, every, inf, meter)
        meter.reach((i + 1) * each)
    return _PriorEstimates(np.array(p_best), np.bincount(maps), ratio, some, every, unresolved)


def _contexts(problem: Problem) -> Iterator[dict[str, str]]:
    domains = [problem.domains[name] for name in problem.context]
    count = prod(len(domain) for domain in domains)
    if count > MAX_CONTEXTS:
        raise DowiseError(
            f"the problem has {count:,} contexts, and bounds goes through each of at most "
            f"{MAX_CONTEXTS:,}: use fewer context variables",
            code="too-large",
        )
    for labels in product(*domains):
        yield dict(zip(problem.context, labels, strict=True))


def _noise(found: Estimate) -> float:
    """Return the gain that may be mere bias of an estimate from n draws."""
    arms, values = found.outcomes.shape
    return float((arms - 1) * (values - 1) / (2 * found.samples))


def _summed_entropy(counts: FloatArray) -> tuple[float, float]:
    """Σ_c H(Π*(c)), an upper bound on the entropy of the map; the errors add up at worst."""
    parts = [map_entropy(row) for row in counts]
    return sum(h for h, _ in parts), sum(error for _, error in parts)


def _samples_for(
    found: Estimate,
    level: float,
    enough: Callable[[BoolArray], np.bool_],
    least: float,
    most: float,
    meter: ProgressMeter,
) -> float:
    """Return the N, to two digits, from which some or all lower bounds of Lemma 4 are positive.

    From one large estimate with the radii that N draws would have; nobody draws 1e8. Not less than
    `least` and not more than `most`, which other contexts have settled.
    """

    def bites(n: float) -> bool:
        meter.advance(found.samples // 100)
        return bool(enough(gains_above_0(found, level, ceil(n))))

    if least == inf or bites(least):
        return least
    if not bites(min(most, MAX_SEARCHED_SAMPLES)):
        return most
    low, high = log10(least), log10(min(most, MAX_SEARCHED_SAMPLES))
    while high - low > 0.002:
        middle = (low + high) / 2
        low, high = (low, middle) if bites(10**middle) else (middle, high)
    return float(f"{10**high:.1e}")


class ProgressMeter:
    """Progress of a part of the work, reported at intervals."""

    def __init__(self, progress: Progress | None, what: str, total: int) -> None:
        self._progress, self._what, self._total = progress, what, total
        self._done, self._said = 0, monotonic()
        if progress is not None:
            progress(what, 0, total)

    def advance(self, by: int) -> None:
        """Add to the work that is done."""
        self.reach(self._done + by)

    def reach(self, done: int) -> None:
        """Set the work that is done."""
        self._done, now = min(done, self._total), monotonic()
        if self._progress and (now - self._said >= PROGRESS_INTERVAL or self._done == self._total):
            self._said = now
            self._progress(self._what, self._done, self._total)


def run_thompson(
    problem: Problem, horizon: int, samples: int, level: float, seed: int, progress: Progress | None
) -> ThompsonRun:
    """Let Thompson Sampling play, and take every round's figures at N = `samples` draws.

    Each interval may fail with probability `level`. `largest_ratio` is left at 0: it takes more
    draws than these.
    """
    world_seed, run_seed = np.random.SeedSequence(seed).spawn(2)
    world = make_environment(problem, int(world_seed.generate_state(1)[0]))
    policy = ThompsonSampling(problem)
    belief = policy.belief
    rng = np.random.default_rng(run_seed)
    steepest: list[tuple[float, int, State]] = []
    gammas_low, gammas_high, infinite, vacuous = 0.0, 0.0, 0, 0
    most = log(len(problem.domains[problem.reward]))
    meter = ProgressMeter(progress, "a run of Thompson Sampling", horizon * samples)
    for t in range(horizon):
        context = world.draw_context(rng)
        estimate = estimate_arms(belief, context, samples, rng, meter)
        ratio = thompson_ratio(estimate)
        if len(steepest) < STEEPEST_ROUNDS or ratio > steepest[0][0]:
            steepest = sorted([*steepest, (ratio, t, (context, belief.copy()))])[-STEEPEST_ROUNDS:]
        gain = gain_interval(estimate, level)
        vacuous += bool((gain.low == 0).all() and (gain.high == most).all())
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
    """Estimate Δ, g and p* from n draws."""

    def measured() -> Iterator[Draws]:
        for block in belief.draw_in_blocks(codes, samples, rng):
            meter.advance(block.samples)
            yield block

    codes = belief.problem.context_codes(context)
    return estimate_in_blocks(measured(), belief.problem.payoff, samples)


def thompson_ratio(estimate: Estimate) -> float:
    """Ψ of Thompson Sampling, which plays an arm with the probability that it is the best."""
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
    """Let `certified-ids` play n trials; `entropy` is H(Π*) with its standard error."""
    played: list[Played] = []

    def make(own: Problem) -> _RecordedSampling:
        return _RecordedSampling(own, samples, delta, horizon, tell=played.append)

    regrets = np.empty(trials)
    worlds = random_worlds(problem, WorldOptions(edges="prior"))
    meter = ProgressMeter(progress, "certified-ids", trials * horizon)
    for trial in range(trials):
        world = make_world(worlds, seed, trial)
        regrets[trial] = run_trial(world, make, horizon, seed, trial).regrets.sum()
        meter.advance(horizon)
    lam = make(problem).lam
    flat = certified_regret(
        lam, entropy[0], 0.0, delta, net_values(problem.payoff, len(problem.arms))
    )
    return Certified(
        lam,
        np.array([run.certificates.sum() for run in played]),
        float(np.mean([run.held.mean() for run in played])),
        flat,
        entropy[1],
        regrets / problem.payoff.span,
    )


class _RecordedSampling(CertifiedSampling):
    """The policy, which tells what it certified."""

    def __init__(self, problem: Problem, *options: Any, tell: Callable[[Played], None]) -> None:
        super().__init__(problem, *options)
        self._tell = tell

    def compiled_trial(self) -> TrialLoop:
        return self._play

    def _play(self, script: TrialScript, rng: np.random.Generator) -> IntArray:
        played = self.play_certified(script, rng)
        self._tell(played)
        return played.arms


def _upper_quantile(freedom: int) -> float:
    """Student's t at CERTIFIED_CONFIDENCE, to a thousandth from nine degrees of freedom on.

    By Fisher's expansion around the normal quantile (Abramowitz & Stegun 26.7.5).
    """
    z = NormalDist().inv_cdf(CERTIFIED_CONFIDENCE)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2


def _document_blocks(bounds: Bounds) -> Iterator[Block]:
    """p*, H(Π*), every bound beside the worst case, and what the intervals are worth."""
    problem, contexts = bounds.problem, len(bounds.contexts)
    size = f"{pluralize(bounds.arms, 'arm')}, {pluralize(contexts, 'context')}"
    yield Heading(f"{problem.name or 'The problem'}: {size}, T = {bounds.horizon:,}")

    by_context = 1 < contexts <= _MAX_CONTEXT_COLUMNS
    shares = bounds.p_best if by_context else bounds.p_best.mean(axis=0, keepdims=True)
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
            (str(arm), *(f"{p:.4f}" for p in shares[:, i])) for i, arm in enumerate(problem.arms)
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
            f"No more than {largest:,g} can be lost in {bounds.horizon:,} rounds: bounds above "
            "that say nothing."
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
    some = f"from about N = {bounds.samples_for_some:,.0f} on"
    if isinf(bounds.samples_for_some):
        some = "for no N"
    every = f"from about N = {bounds.samples_for_all:,.0f} on"
    if bounds.unresolved:
        every = f"perhaps never: of some arms g can't be told from 0 by {bounds.samples:,} draws"
    elif isinf(bounds.samples_for_all):
        every = "for no N"
    return (
        f"With N = {bounds.policy_samples:,} draws per round"
        f"{_per_arm(bounds.policy_samples, bounds)}, Lemma 4 says no more about any arm's "
        f"information gain g than that it is between 0 and log r in {run.vacuous_rounds:,} of "
        f"{rounds:,} rounds; {gamma} Before anything is observed the lower bound on some arm's "
        f"gain is positive {some}, that of every arm {every}."
    )


def _describe_certificates(bounds: Bounds, certified: Certified) -> str:
    span, trials = bounds.reward_span, len(certified.sums)
    return (
        f"In {100 * certified.share:.3g} % of the rounds of {trials:,} runs of certified-ids "
        f"(λ = {certified.lam:.3g}) the draws certified what IDS would play. The bound is the "
        f"upper limit, at confidence 0.95, that this number of runs leaves; its mean is "
        f"{_format_bound(certified.mean * span)}. The actual regret of these runs is "
        f"{_format_bound(float(certified.regrets.mean()) * span)} on average: a measurement, not a "
        "bound."
    )


def _per_arm(draws: int, bounds: Bounds) -> str:
    """Explain a default number of draws that follows from the number of arms."""
    each = draws // bounds.arms
    return f", {each} per arm" if draws == each * bounds.arms and each in (10, 100) else ""


def _format_share(value: float, whole: float) -> str:
    return "—" if isinf(value) or not whole else f"{100 * value / whole:.1f} %"


def _format_bound(value: float) -> str:
    return "infinite" if isinf(value) else f"{value:,.2f}"
