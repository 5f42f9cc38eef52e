"""Information-Directed Sampling with a regret bound that says something (docs/certificate.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Belief, Dirichlet, Mixture, Posterior
from dowise.belief.dirichlet import checked_samples
from dowise.belief.prior import Prior
from dowise.checks import real_number, share, whole_number
from dowise.errors import DowiseError
from dowise.information.certificate import (
    LEAST_SAMPLES,
    Certificate,
    certificate_of,
    usual_lam,
    worth_of,
)
from dowise.information.estimates import check_room
from dowise.information.ratio import FEW
from dowise.model.sampling import Script
from dowise.plain import amount
from dowise.policies.certified_loop import Played, can_play, play_trial
from dowise.policies.decision import Decision, Figures
from dowise.policies.policy import (
    BayesianPolicy,
    Edges,
    Loop,
    allowed_arms,
    checked_propensity_samples,
    pick_winner,
)
from dowise.policies.reasons import drawn_by_lot
from dowise.policies.stepping import play_out
from dowise.problem import Problem
from dowise.problem.problem import ArmLike, Context
from dowise.randomness import Random, generator

__all__ = ["CertifiedSampling", "Played"]


class CertifiedSampling(BayesianPolicy):
    """Play as IDS does where draws certify that Δ − λg is small, else as Thompson Sampling does.

    Of `samples` (N) fresh posterior draws 30 % choose the distribution π over arms, as `ids` would,
    and the others bound Δ(π) − λg(π) from above, which fails with probability delta / horizon.
    Where the bound exceeds K/(8λ), one more draw is made, and its best arm played: Thompson
    Sampling is never above (Corollary 1). Over `horizon` rounds the Bayesian regret is at most
    λH(Π*) + E[Σ cert_t] + delta·(span + λ log r), with cert_t the bound or K/(8λ), whichever is
    less, and span 1 where arms cost nothing: docs/certificate.md has the proof. `lam` (λ) is fixed
    beforehand, by the problem and the horizon unless given.

    Applies to every graph, as `ids` does. Its probabilities are exact for the draws it made; those
    of a draw of Thompson Sampling are None, or known by `propensity_samples` as with `ts`.
    """

    heeds_horizon = True
    imagines = True

    def __init__(
        self,
        problem: Problem,
        samples: int = 1000,
        delta: float = 0.05,
        horizon: int = 1000,
        lam: float | None = None,
        prior: Prior | None = None,
        propensity_samples: int = 0,
        belief: Belief | Posterior | None = None,
    ) -> None:
        super().__init__(problem, prior, belief)
        self.samples = whole_number("samples", samples, LEAST_SAMPLES)
        arms = len(problem.arms)
        check_room(arms, min(arms, self.samples), len(problem.payoff.values))
        self.horizon = whole_number("horizon", horizon, 1)
        self.delta = share("delta", delta)
        self.propensity_samples = checked_propensity_samples(propensity_samples)
        self.lam = usual_lam(problem, self.horizon) if lam is None else real_number("lam", lam, 0)
        if not self.lam > 0:
            raise DowiseError(f"lam={lam!r} must be more than 0: leave it out, and it is chosen")
        self._worth = worth_of(problem.payoff, arms)

    @property
    def failure(self) -> float:
        """δ_t, the probability with which the certificate of one round may fail."""
        return self.delta / self.horizon

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Play the arm that the draws certify, or the best one under one more draw."""
        problem, source = self.problem, generator(rng)
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        found = self.certified(codes, arms, source)
        chosen, probabilities = self._pick(found, codes, arms, source)
        workings = _Workings(problem, arms, found, self.lam, self.failure, self._edges())
        known = {"certificate": found.value, "certified": found.holds, "lam": self.lam}
        figures, seen = Figures(known, workings), problem.context_labels(codes)
        if found.holds:
            probabilities = workings.probabilities()
        return Decision(problem.arms[chosen], probabilities, workings, figures, seen)

    def certified(
        self, codes: tuple[int, ...], arms: NDArray[np.int64], source: np.random.Generator
    ) -> Certificate:
        """What fresh draws certify; the context and the arms by positions."""
        posterior, worth = self.belief.posterior, self._worth
        draws = posterior.draw(codes, self.samples, source)
        if len(arms) < len(worth):
            draws, worth = draws.among(arms), worth[arms]

        def exact() -> NDArray[np.float64]:
            means = posterior.mean_distributions(codes)
            return means if len(arms) == len(means) else means[arms]

        means: NDArray[np.float64] | Callable[[], NDArray[np.float64]] | None = None
        if not isinstance(posterior, Mixture):
            means = exact()
        elif posterior.has_exact_means:  # they take longer than the draws
            means = exact
        payoff = self.problem.payoff
        return certificate_of(draws, payoff, worth, means, self.lam, self.failure)

    def _pick(
        self,
        found: Certificate,
        codes: tuple[int, ...],
        arms: NDArray[np.int64],
        source: np.random.Generator,
    ) -> tuple[int, NDArray[np.float64] | None]:
        """The arm to play: by π, or the best under another draw, with what is known of its odds."""
        if found.holds:
            action = found.action
            pick = action.first if source.random() < action.probability else action.second
            return int(arms[pick]), None
        draws = self.belief.posterior.draw(codes, self.propensity_samples or 1, source)
        if len(arms) < len(self.problem.arms):
            draws = draws.among(arms)
        winners, _ = draws.winners(self.problem.payoff)
        if not self.propensity_samples:
            return int(arms[winners[0]]), None
        picked = pick_winner(self.problem, arms, winners, source)
        return picked.arm, picked.probabilities

    def compiled_loop(self) -> Loop | None:
        """As `decide` does it, without what a decision says; see `play_certified`."""
        is_plain = type(self) is CertifiedSampling and self.belief.monitor is None
        ours = type(self.belief.posterior) in (Dirichlet, Mixture)
        return self._play if is_plain and ours else None

    def _play(self, script: Script, rng: np.random.Generator) -> NDArray[np.int64]:
        return self.play_certified(script, rng).arms

    def play_certified(self, script: Script, rng: np.random.Generator) -> Played:
        """A whole trial, compiled where it can be; else the rest of each round is."""
        posterior, few = self.belief.posterior, len(self.problem.arms) <= FEW
        is_single = not self.propensity_samples and can_play(rng)
        if not (type(posterior) is Dirichlet and posterior.is_fine and few and is_single):
            return self._step(script, rng)
        checked_samples(self.samples, posterior.model.circuit, True)
        played = play_trial(
            self.problem, posterior, self.samples, self._worth, self.lam, self.failure, script, rng
        )
        self.next_number += len(played.arms)
        return played

    def _step(self, script: Script, rng: np.random.Generator) -> Played:
        arms, rounds = np.arange(len(self.problem.arms)), len(script.contexts)
        certificates, held = np.empty(rounds), np.empty(rounds, dtype=np.bool_)

        def choose(t: int, codes: tuple[int, ...]) -> int:
            found = self.certified(codes, arms, rng)
            certificates[t], held[t] = found.value, found.holds
            return self._pick(found, codes, arms, rng)[0]

        chosen = play_out(self, script, choose)
        return Played(chosen, certificates, held)


@dataclass(frozen=True, eq=False, slots=True)
class _Workings:
    """What one decision was made from: `arms` are the places of the allowed arms among all."""

    problem: Problem
    arms: NDArray[np.int64]
    found: Certificate
    lam: float
    failure: float
    edges: Edges | None

    @property
    def names(self) -> tuple[str, ...]:
        doubtful = () if self.edges is None else ("edges",)
        return (
            "limit", "failure", "counts_gain", "delta", "gain", "best", "pair", "q", *doubtful,
        )  # fmt: skip

    def probabilities(self) -> NDArray[np.float64]:
        """π, of all arms."""
        return self._spread(self.found.action.distribution(len(self.arms)), 0.0)

    def figure(self, name: str) -> Any:
        found = self.found
        if name == "edges" and self.edges is not None:
            return self.edges()
        if name == "failure":
            return self.failure
        if name == "q":
            return found.action.probability
        if name == "pair":
            first, second, _ = found.action
            return self.problem.arms[self.arms[first]], self.problem.arms[self.arms[second]]
        if name in ("limit", "counts_gain"):
            return getattr(found, name)
        return self._spread(getattr(found.chosen_by, name), 0.0 if name == "best" else np.nan)

    def reason(self) -> str:
        found, span = self.found, self.problem.payoff.span
        bound, limit = amount(found.bound * span), amount(found.limit * span)
        within = f"the limit of {limit} that drawing by lot always keeps"
        if not found.holds:
            return (
                f"{drawn_by_lot()}; the choice that seemed to balance cost and learning better is "
                f"not certified: less what it teaches it may cost {bound}, above {within}"
            )
        return (
            f"a balance of cost and learning that is certified: less what it teaches it costs at "
            f"most {bound} against the best arm (wrong with a chance of 1 in "
            f"{1 / self.failure:,.0f}), within {within}"
        )

    def _spread(self, values: NDArray[np.float64], absent: float) -> NDArray[np.float64]:
        """Figures of the allowed arms, at their places among all arms."""
        full = np.full(len(self.problem.arms), absent)
        full[self.arms] = values
        return full
