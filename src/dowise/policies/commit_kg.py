"""The value of committing to n more plays of an arm: a policy that looks further than one round.

The paper's IDS looks one round ahead, at what the reward tells about the best arm of this context.
This one asks what n = 1, 2, 4, … plays would teach, through every variable that they show, about
every arm in every context, beyond what as many plays of the incumbent would teach anyway; and
whether that pays over the rounds to come. All in closed form at the posterior means, without draws
(`dowise.policies.commit_kg_kernels`; docs/beyond.md has the derivation and the evidence).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from dowise._core.document import format_number
from dowise._core.rng import Random, generator
from dowise.belief import Belief, Posterior
from dowise.belief.prior import Prior
from dowise.model import Codes
from dowise.model.kernels import trace_of
from dowise.model.sampler import TrialScript
from dowise.policies.base import (
    PAST,
    BayesianPolicy,
    EdgeTrace,
    Loop,
    Numbers,
    allowed_arms,
    certainly,
    digest_of,
)
from dowise.policies.commit_kg_kernels import (
    MOST_CONTEXTS,
    Contexts,
    DirichletParams,
    PlayPlan,
    RewardScale,
    choose,
    choose_in,
    mixed_lanes,
    most_lanes,
    play_rounds,
)
from dowise.policies.decision import Decision, Figures
from dowise.policies.thompson import arms_of
from dowise.problem import Problem, Record
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch, equal_columns

__all__ = ["CommitKG"]

FEW_CONTEXTS = 16  # all of them count from the start; of more, those that were seen
PACE, HEAD_START = 2.0, 30.0  # after t rounds PACE·(t + HEAD_START) are reckoned to come


class CommitKG(BayesianPolicy):
    """Play the arm whose next n plays are worth most, over all that they teach.

    The rounds to come are reckoned as 2·(t + 30) after t decisions, so that no horizon is needed;
    records that follow no decision, such as past ones, teach but do not count as rounds.
    Deterministic: `decision.probabilities` are 0 and 1, and `floor` mixes Thompson draws in.

    Applies to every graph whose circuit fits, with hidden causes and doubtful edges too: what plays
    are worth is averaged over the sets of edges, drawn where there are more than 64 of them. Of
    more than 16 contexts those count that were seen, of these the 64 most frequent; of both fewer
    where there would be no room (32 MB).
    """

    imagines = takes_notes = True

    def __init__(
        self,
        problem: Problem,
        prior: Prior | None = None,
        belief: Belief | None = None,
    ) -> None:
        super().__init__(problem, prior, belief)
        trace_of(self.belief.problem)  # what is too large shows here
        self.rounds = 0
        """How many decisions it has learned from."""
        self.visits: Counter[Codes] = Counter()
        """How often each context was seen, by the positions of its values."""
        self._worth = RewardScale(problem.payoff.scaled, problem.payoff.scaled_costs)
        sizes = [len(problem.domains[name]) for name in problem.context]
        self._has_few = prod(sizes) <= FEW_CONTEXTS
        self._contexts: list[Codes] = []
        if self._has_few:
            self._contexts = list(product(*map(range, sizes)))

    # -- what it has learned ------------------------------------------------------------------

    def note(self, record: Record, times: int) -> None:
        """Count the round, if it was one, and the context."""
        self.rounds += times * (record.number is not None and record.number < PAST)
        self._add_visits(record.context, times)

    def note_many(self, records: RecordBatch, numbers: Numbers) -> None:
        """The same of many."""
        self.rounds += 0 if numbers is None else int(np.count_nonzero(np.asarray(numbers) < PAST))
        columns = [records.codes[v] for v in self.problem.context_positions]
        first, which = equal_columns([np.zeros(len(records), dtype=np.int64), *columns])
        for i, times in zip(first.tolist(), np.bincount(which).tolist(), strict=True):
            self._add_visits(tuple(int(column[i]) for column in columns), times)

    def _add_visits(self, codes: Codes, times: int) -> None:
        self.visits[codes] += times
        if not self.visits[codes]:
            del self.visits[codes]

    def began_to_stand_in(self) -> None:
        """Contexts that are imagined are counted apart."""
        self.visits = self.visits.copy()

    def state(self) -> dict[str, object]:
        """The posterior, the rounds, and how often each context was seen."""
        seen = {str(codes): times for codes, times in sorted(self.visits.items())}
        return {**super().state(), "rounds": self.rounds, "visits": seen}

    def fingerprint(self) -> bytes:
        """Of the counts, the rounds and the contexts."""
        posterior = self.belief.posterior
        seen = [x for codes, times in sorted(self.visits.items()) for x in (codes, (times,))]
        return digest_of(posterior.counts, (self.rounds,), *seen)

    # -- deciding -----------------------------------------------------------------------------

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Play what is worth most, without anything random."""
        problem, _ = self.problem, generator(rng)  # as for every policy, a source is asked for
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        plan = self._plan(codes, arms)
        edges, seen = self._edges(), problem.context_labels(codes)
        figures = {
            "delta": self._delta(codes, arms),
            "plays": int(plan.plays),
            "value": plan.gain * problem.payoff.span,
        }
        known = Figures(figures, None if edges is None else EdgeTrace(edges))
        arm = problem.arms[plan.arm]
        return Decision(arm, certainly(problem, plan.arm), self._reason(plan), known, seen)

    def _delta(self, codes: Codes, arms: NDArray[np.int64]) -> NDArray[np.float64]:
        """What each allowed arm is expected to cost against the best of them, on the scale."""
        payoff = self.problem.payoff
        shares = self.belief.posterior.mean_distributions(codes)[arms]
        means = payoff.net_scaled(shares @ payoff.scaled, arms)
        delta = np.full(len(self.problem.arms), np.nan)
        delta[arms] = means.max() - means
        return delta

    def _reason(self, plan: PlayPlan) -> str:
        if not plan.plays:
            return (
                "no arm looks better by what is known, and trying another would not teach enough "
                "to pay for itself"
            )
        span, often = self.problem.payoff.span, int(plan.plays)
        times = {1: "once", 2: "twice"}.get(often, f"{often:,} times")
        best = self.problem.arms[plan.best]
        taught = (
            f"playing this one {times} should teach enough to gain {format_number(plan.gain * span)} in "
            f"all over the next {self._to_come:,.0f} rounds"
        )
        if plan.cost <= 0:
            return f"it looks as good as {best}, and {taught}"
        cost = format_number(plan.cost * span)
        return f"{best} looks better by {cost} a round, but {taught}, that cost taken off"

    @property
    def _to_come(self) -> float:
        return PACE * (self.rounds + HEAD_START)

    def _plan(self, codes: Codes, arms: NDArray[np.int64]) -> PlayPlan:
        posterior = self.belief.posterior
        may = np.zeros(len(self.problem.arms), dtype=np.bool_)
        may[arms] = True
        known, trace = (
            DirichletParams(posterior.prior, posterior.counts),
            trace_of(self.belief.problem),
        )
        contexts = self._all_contexts([codes], MOST_CONTEXTS)
        now = contexts.index(codes)
        if posterior.is_settled:
            own = self._as_arrays(posterior, contexts)
            plan = choose_in(known, own, now, trace, self._worth, may, self._to_come)
        else:
            visits = np.array([self.visits[c] for c in contexts], dtype=np.int64)
            most = most_lanes(trace)
            lanes = mixed_lanes(posterior, contexts, visits, now, self._has_few, most)
            plan = choose(known, lanes, trace, self._worth, may, self._to_come)
        return PlayPlan(*plan)

    def _all_contexts(self, more: Iterable[Codes], most: int | None = None) -> list[Codes]:
        """All contexts, in order; or those that were seen, most often if not all, and these."""
        if self._has_few:
            return self._contexts
        seen = sorted(self.visits, key=lambda codes: (-self.visits[codes], codes))[:most]
        return sorted({*seen, *more})

    def _as_arrays(self, posterior: Posterior, contexts: list[Codes]) -> Contexts:
        model = posterior.model
        rows = np.array([model.rows_of(model.trace, codes) for codes in contexts])
        visits = np.array([self.visits[codes] for codes in contexts], dtype=np.int64)
        most = min(MOST_CONTEXTS, most_lanes(trace_of(self.belief.problem)))
        return Contexts(rows, visits, self._has_few, most)

    # -- whole trials -------------------------------------------------------------------------

    def compiled_loop(self) -> Loop | None:
        """For posteriors without doubtful edges."""
        ours = type(self) is CommitKG and self.belief.monitor is None
        return self._play if ours and self.belief.posterior.is_settled else None

    def _play(self, script: TrialScript, _rng: np.random.Generator) -> NDArray[np.int64]:
        posterior = self.belief.posterior
        known = [tuple(codes) for codes in script.known.tolist()]
        contexts = self._all_contexts(known)
        places = {codes: i for i, codes in enumerate(contexts)}
        own = self._as_arrays(posterior, contexts)
        chosen = np.empty(len(script.contexts), dtype=np.int64)
        play_rounds(
            DirichletParams(posterior.prior, posterior.counts), posterior.unused,
            arms_of(self.problem, posterior.model.factors), own,
            np.array([places[codes] for codes in known]), trace_of(self.belief.problem),
            self._worth, (PACE, HEAD_START, self.rounds), script, chosen,
        )  # fmt: skip
        pairs = zip(contexts, own.visits.tolist(), strict=True)
        self.visits = Counter({codes: times for codes, times in pairs if times})
        self.rounds += len(chosen)
        self.next_number += len(chosen)
        return chosen
