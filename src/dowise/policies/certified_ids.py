"""`certified-ids`: Information-Directed Sampling with a certified regret bound."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import Any, NamedTuple

import numpy as np

from dowise._core.document import format_number
from dowise._core.kernels import kernel
from dowise._core.types import BoolArray, FloatArray, IntArray
from dowise._core.validation import check_fraction, check_integer, check_number
from dowise.belief import Belief
from dowise.belief.draw_kernels import draw_results, mean_results
from dowise.belief.posterior import check_samples
from dowise.errors import DowiseError
from dowise.information.certificate import (
    MIN_SAMPLES,
    Certificate,
    certify,
    choosing_draws,
    default_lam,
    make_certificate,
    min_bound,
    net_values,
    thompson_limit,
)
from dowise.information.estimates import check_memory, find_and_count_winners, summarise
from dowise.information.ratio import MAX_ALL_PAIRS, MIN_GAIN, best_pair
from dowise.model import Codes
from dowise.model.kernels import find_winners
from dowise.model.sampler import TrialScript
from dowise.policies.base import Choice, TrialLoop, pick_winner
from dowise.policies.bayesian import BayesianPolicy
from dowise.policies.decision import DecisionTrace, Edges, sampled_reason
from dowise.policies.trials import (
    learn_round,
    new_outcome,
    play_steps,
    trial_arms,
    trial_posterior,
)
from dowise.problem import Problem
from dowise.problem.prior import Prior

MAX_WORDS = 4  # random words per round: the key of the draws, a coin or the key of another draw


class Played(NamedTuple):
    """Arms and certificates of a trial, by round."""

    arms: IntArray
    certificates: FloatArray
    """cert_t."""
    held: BoolArray
    """True if draws certified the choice, False if Thompson Sampling made it."""


class _Terms(NamedTuple):
    """Constants of a certificate; see `make_certificate`."""

    net: FloatArray
    """net[arm, y]: net reward of each arm at each value, scaled."""
    scaled: FloatArray
    fit: int
    lam: float
    evidence: float
    least: float
    limit: float


def _has_whole_words(rng: np.random.Generator) -> bool:
    """Return True if a uniform takes one 64-bit word, as in all of NumPy's generators but one."""
    return not isinstance(rng.bit_generator, np.random.MT19937)


class CertifiedSampling(BayesianPolicy):
    """Play like IDS if draws certify that Δ − λg is small, else like Thompson Sampling.

    Of `samples` (N) fresh posterior draws, 30 % choose the distribution π over arms as `ids` would.
    The others bound Δ(π) − λg(π) from above; the bound fails with probability delta / horizon. If
    it exceeds K/(8λ), the best arm under one more draw is played, because Thompson Sampling never
    exceeds that limit (Corollary 1). Over `horizon` rounds the Bayesian regret is at most
    λH(Π*) + E[Σ cert_t] + delta·(span + λ log r), where cert_t is the bound or K/(8λ), whichever is
    less, and span is 1 if arms cost nothing (proof: docs/certificate.md). `lam` (λ) is fixed in
    advance; its default depends on the problem and the horizon. Probabilities are exact given the
    draws; those of Thompson Sampling are None, unless `propensity_samples` are drawn as for `ts`.

    Applies to every graph whose factors fit into memory, like `ids`.
    """

    depends_on_horizon = True
    uses_fantasies = True

    def __init__(
        self,
        problem: Problem,
        samples: int = 1000,
        delta: float = 0.05,
        horizon: int = 1000,
        lam: float | None = None,
        prior: Prior | None = None,
        propensity_samples: int = 0,
        belief: Belief | None = None,
    ) -> None:
        super().__init__(problem, prior, belief)
        self.belief.posterior.refuse_pooled("certified-ids")
        self.samples = check_integer("samples", samples, MIN_SAMPLES)
        arms = len(problem.arms)
        check_memory(arms, min(arms, self.samples), len(problem.payoff.values))
        self.horizon = check_integer("horizon", horizon, 1)
        self.delta = check_fraction("delta", delta)
        self.propensity_samples = check_integer("propensity_samples", propensity_samples, 0)
        if lam is None:
            lam = default_lam(problem, self.horizon)
        self.lam = check_number("lam", lam, 0)
        if not self.lam > 0:
            raise DowiseError(
                f"lam={lam!r} must be more than 0; leave it out to use the default",
                code="invalid-number",
            )
        self._net_values = net_values(problem.payoff, arms)

    @property
    def failure(self) -> float:
        """Probability δ_t with which the certificate of one round may fail."""
        return self.delta / self.horizon

    def choose(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> Choice:
        """Choose the arm that the draws certify, or the best one under one more draw."""
        certificate = self.certify(codes, arms, rng)
        chosen, probabilities = self._pick(certificate, codes, arms, rng)
        trace = CertificateTrace(self, arms, certificate, self._edges())
        return Choice(chosen, probabilities, trace)

    def certify(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> Certificate:
        """Return the certificate of fresh draws for these arms."""
        posterior, net = self.belief.posterior, self._net_values
        draws = posterior.draw(codes, self.samples, rng)
        if len(arms) < len(net):
            draws, net = draws.among(arms), net[arms]

        def exact_means() -> FloatArray:
            return posterior.mean_distributions(codes)[arms]

        means: FloatArray | Callable[[], FloatArray] | None = None
        if posterior.is_settled:
            means = exact_means()
        elif posterior.has_exact_means:  # computed only if needed: they take longer than the draws
            means = exact_means
        payoff = self.problem.payoff
        return make_certificate(draws, payoff, net, means, self.lam, self.failure)

    def _pick(
        self, certificate: Certificate, codes: Codes, arms: IntArray, rng: np.random.Generator
    ) -> tuple[int, FloatArray | None]:
        """Return an arm by π, or the best under another draw, and its probabilities if known."""
        if certificate.holds:
            action = certificate.action
            pick = action.first if rng.random() < action.probability else action.second
            probabilities = np.zeros(len(self.problem.arms))
            probabilities[arms] = action.distribution(len(arms))
            return int(arms[pick]), probabilities
        winners = self.knowledge.winners(codes, arms, self.propensity_samples or 1, rng)
        if not self.propensity_samples:
            return int(arms[winners[0]]), None
        winner = pick_winner(self.problem, arms, winners, rng)
        return winner.arm, winner.probabilities

    def compiled_trial(self) -> TrialLoop | None:
        """Return a trial that plays like `decide` but without reasons; see `play_certified`."""
        is_plain = type(self) is CertifiedSampling and self.belief.monitor is None
        if not is_plain or self.floor:
            return None
        return lambda script, rng: self.play_certified(script, rng).arms

    def play_certified(self, script: TrialScript, rng: np.random.Generator) -> Played:
        """Play a whole trial, compiled if possible, else stepped with `choose`."""
        posterior, has_few_arms = self.belief.posterior, len(self.problem.arms) <= MAX_ALL_PAIRS
        fits_kernel = posterior.is_settled and has_few_arms and not posterior.may_be_small
        if not fits_kernel or self.propensity_samples or not _has_whole_words(rng):
            return self._step(script, rng)
        check_samples(self.samples, posterior.model.circuit, False)
        return self._play_whole(script, rng)

    def _play_whole(self, script: TrialScript, rng: np.random.Generator) -> Played:
        """Play all rounds in one kernel; the generator ends where stepping would leave it.

        The number of words that a round takes is known only after it. So the maximum is drawn, and
        the generator is set back to the first word that was not used.
        """
        posterior, rounds, bits = self.belief.posterior, len(script.contexts), rng.bit_generator
        circuit, (arms, values) = posterior.model.circuit, self._net_values.shape
        start = trial_posterior(posterior, script.context_codes)
        terms = _Terms(
            net=self._net_values,
            scaled=self.problem.payoff.scaled,
            fit=choosing_draws(self.samples),
            lam=self.lam,
            evidence=-log(self.failure),
            least=min_bound(self.lam, values),
            limit=thompson_limit(self.lam, arms),
        )
        played = Played(np.empty(rounds, np.int64), np.empty(rounds), np.empty(rounds, np.bool_))
        before = bits.state
        used = _play_rounds(
            bits.random_raw(MAX_WORDS * rounds),
            start.state,
            start.rows,
            trial_arms(posterior),
            (circuit.tape, posterior.block),
            terms,
            np.empty((arms, values - 1, self.samples), dtype=np.float32),
            script,
            played,
            posterior.any_shape,
        )
        bits.state = before
        bits.random_raw(used, output=False)
        self.next_number += rounds
        return played

    def _step(self, script: TrialScript, rng: np.random.Generator) -> Played:
        arms, rounds = np.arange(len(self.problem.arms)), len(script.contexts)
        certificates, held = np.empty(rounds), np.empty(rounds, dtype=np.bool_)

        def choose(t: int, codes: Codes) -> int:
            certificate = self.certify(codes, arms, rng)
            certificates[t], held[t] = certificate.value, certificate.holds
            return self._pick(certificate, codes, arms, rng)[0]

        return Played(play_steps(self, script, choose), certificates, held)


class CertificateTrace(DecisionTrace):
    """Certificate behind one decision; `arms` are the indices of the allowed arms."""

    lazy = "limit", "failure", "counts_gain", "delta", "gain", "best", "pair", "q"

    def __init__(
        self,
        policy: CertifiedSampling,
        arms: IntArray,
        certificate: Certificate,
        edges: Edges | None,
    ) -> None:
        lam, value, holds = policy.lam, certificate.value, certificate.holds
        super().__init__(
            figures={"certificate": value, "certified": holds, "lam": lam}, edges=edges
        )
        self.problem, self.failure = policy.problem, policy.failure
        self.arms, self.certificate = arms, certificate

    def compute(self, name: str) -> Any:
        """Return a figure; for arms that were not allowed it is NaN or 0."""
        certificate, action = self.certificate, self.certificate.action
        if name == "failure":
            return self.failure
        if name == "q":
            return action.probability
        if name == "pair":
            return tuple(self.problem.arms[self.arms[i]] for i in action[:2])
        if name in ("limit", "counts_gain"):
            return getattr(certificate, name)
        full = np.full(len(self.problem.arms), 0.0 if name == "best" else np.nan)
        full[self.arms] = getattr(certificate.chosen_by, name)
        return full

    @property
    def reason(self) -> str:
        """Reason of the choice: what the draws certify, or that they do not certify."""
        certificate, span = self.certificate, self.problem.payoff.span
        bound, limit = (format_number(x * span) for x in (certificate.bound, certificate.limit))
        within = f"the limit of {limit} that sampling in proportion always keeps"
        if not certificate.holds:
            return (
                f"{sampled_reason()}; the choice with the best trade-off of cost and information "
                f"is not certified: net of what it teaches it may lose {bound}, above {within}"
            )
        return (
            "best trade-off of cost and information, certified: net of what it teaches it loses "
            f"at most {bound} against the best arm (wrong with a chance of 1 in "
            f"{1 / self.failure:,.0f}), within {within}"
        )


@kernel()
def _play_rounds(
    words: Any,
    state: Any,
    rows: Any,
    arms: Any,
    circuit: Any,
    terms: Any,
    drawn: Any,
    script: Any,
    played: Any,
    any_shape: Any,
) -> Any:
    """Play each round, and return the number of random words used. `circuit` is (tape, block).

    rows[c] are the rows of the circuit under context c; `drawn` is room for the draws.
    """
    tape, block = circuit
    count, other_values, samples = drawn.shape
    one = script.contexts.ndim  # a literal would compile everything again
    zero = one - one
    winners = np.empty(samples, dtype=np.int64)
    means, early = (
        np.empty((count, other_values + 1)),
        np.empty((count, other_values, terms.fit), np.float32),
    )
    single = np.empty((count, other_values, one), dtype=np.float32)
    used, outcome = zero, new_outcome(script)
    for t in range(len(played.arms)):
        current = rows[script.contexts[t]]
        key, used = words[used : used + 2], used + 2
        draw_results(key, state.prior, state.counts, current, tape, block, zero, drawn, any_shape)
        mean_results(state.prior, state.counts, current, tape, means)
        action, bound = _certified(drawn, early, winners, means, arms.costs, terms)
        held = bound <= terms.limit
        if held:
            coin, used = np.float64(words[used] >> np.uint64(11)) * 2.0**-53, used + 1
            arm = action[0] if coin < action[2] else action[1]
        else:
            key, used = words[used : used + 2], used + 2
            draw_results(
                key, state.prior, state.counts, current, tape, block, zero, single, any_shape
            )
            find_winners(single, terms.scaled, arms.costs, winners[:one])
            arm = winners[0]
        played.arms[t], played.held[t] = arm, held
        played.certificates[t] = min(bound, terms.limit)
        learn_round(state, None, arms, script, t, arm, outcome)
    return used


@kernel()
def _certified(drawn: Any, early: Any, winners: Any, means: Any, costs: Any, terms: Any) -> Any:
    """Return π and its bound, as `make_certificate`; `early` is room for the draws that choose."""
    count, other_values, fit = early.shape
    early[:] = drawn[:, :, :fit]
    chosen_by, best = np.empty(fit, dtype=np.int64), np.empty(count)
    winning = np.empty(count, dtype=np.int64)
    peak, several = find_and_count_winners(early, terms.scaled, costs, chosen_by, best, winning)
    winning = winning[:several]
    joint, net = np.empty((count, several, other_values + 1)), np.empty(count)
    for a in range(count):
        net[a] = 0.0 - costs[a]
    regret, gain = np.empty(count), np.empty(count)
    summarise(early, terms.scaled, peak, chosen_by, winning, best, joint, net, regret, gain)
    action = best_pair(regret, gain, MIN_GAIN)
    find_winners(drawn, terms.scaled, costs, winners)
    bound, _ = certify(
        drawn, terms.net, winners, means, joint, winning, action, fit, terms.lam, terms.evidence
    )
    return action, max(bound, terms.least)
