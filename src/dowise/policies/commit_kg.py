"""Knowledge gradient of committing to n more plays of an arm: a policy that plans several rounds.

The paper's IDS looks one round ahead, at what the reward tells about the best arm of this context.
This policy computes what n = 1, 2, 4, … plays would teach, through every observed variable, about
every arm in every context, beyond what as many plays of the incumbent would teach, and whether that
pays off over the coming rounds. All of it is in closed form at the posterior means, without draws
(`dowise.policies.commit_kg_kernels`; docs/beyond.md has the derivation and the evidence).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import product
from math import prod
from typing import Self

import numpy as np

from dowise._core.document import format_number
from dowise._core.types import FloatArray, IntArray
from dowise._core.validation import check_flag
from dowise.belief import Belief, Posterior
from dowise.belief.posterior import State
from dowise.model import Codes
from dowise.model.kernels import trace_of
from dowise.model.sampler import TrialScript
from dowise.policies.arm_rewards import PendingPlays, PendingPlaysMixin
from dowise.policies.base import PAST, Choice, TrialLoop, digest_of, one_hot
from dowise.policies.bayesian import BayesianPolicy
from dowise.policies.commit_kg_kernels import (
    MAX_CONTEXTS,
    ContextLanes,
    Contexts,
    OwnRewards,
    OwnTrial,
    PlayPlan,
    RewardScale,
    choose,
    count_pending,
    lanes_in,
    max_lanes,
    mixed_lanes,
    play_rounds,
)
from dowise.policies.decision import DecisionTrace
from dowise.policies.requirements import Numbers
from dowise.policies.trials import trial_arms
from dowise.problem import Problem, Record
from dowise.problem.domains import MISSING
from dowise.problem.prior import Prior
from dowise.problem.record import RecordBatch, equal_columns

FEW_CONTEXTS = 16  # with more contexts only those count that were seen
PACE, HEAD_START = 2.0, 30.0  # after t rounds PACE·(t + HEAD_START) are assumed to follow


class CommitKG(PendingPlaysMixin, BayesianPolicy):
    """Play the arm whose next n plays are worth most, given everything that they teach.

    After t decisions 2·(t + 30) rounds are assumed to follow, so no horizon is needed. Records that
    follow no decision, such as imported ones, teach but do not count as rounds. Deterministic:
    `decision.probabilities` are 0 and 1, and `floor` mixes in Thompson draws.

    The value of plays is averaged over contexts and sets of edges. With more than 16 contexts only
    those count that were seen, at most the 64 most frequent; more than 64 sets of edges are
    sampled. Fewer of both are used if they would take more than 32 MB.

    With a `graph_free_prior` above 0 the hypothesis that every arm has a reward distribution of its
    own is one more lane of the value (`dowise.policies.graph_free`). With `count_pending` each play
    whose reward is not known yet counts at its mean, for the decision only: means stay, variances
    shrink, so that an exploring play is not repeated until its reward is in. That is so in live
    experiments also if other values of the play are known: they are learned in addition.

    Applies to every graph whose circuit fits into memory, also with hidden common causes and
    doubtful edges.
    """

    def __init__(
        self,
        problem: Problem,
        prior: Prior | None = None,
        belief: Belief | None = None,
        graph_free_prior: float = 0.0,
        count_pending: bool = True,
    ) -> None:
        super().__init__(problem, prior, belief, graph_free_prior)
        self.count_pending = check_flag("count_pending", count_pending)
        self.uses_fantasies = not self.count_pending
        self.pending = PendingPlays(problem)
        trace_of(self.belief.problem)  # raises if the circuit is too large
        self.rounds = 0
        """Number of decisions that it has learned from."""
        self.visits: Counter[Codes] = Counter()
        """Number of records of each context, by its codes."""
        self._scale = RewardScale(problem.payoff.scaled, problem.payoff.scaled_costs)
        sizes = [len(problem.domains[name]) for name in problem.context]
        self._has_few = prod(sizes) <= FEW_CONTEXTS
        self._contexts = list(product(*map(range, sizes))) if self._has_few else []

    # -- learning -----------------------------------------------------------------------------

    def on_learned(self, record: Record, times: int) -> None:
        """Count the context, and the round if the record follows a decision."""
        self.rounds += times * (record.number is not None and record.number < PAST)
        self._add_visits(record.context, times)

    def on_learned_many(self, records: RecordBatch, numbers: Numbers) -> None:
        """Count the contexts and rounds of many records."""
        self.rounds += 0 if numbers is None else int(np.count_nonzero(np.asarray(numbers) < PAST))
        columns = [records.codes[v] for v in self.problem.context_positions]
        first, groups = equal_columns([np.zeros(len(records), dtype=np.int64), *columns])
        for i, times in zip(first.tolist(), np.bincount(groups).tolist(), strict=True):
            self._add_visits(tuple(int(column[i]) for column in columns), times)

    def _add_visits(self, codes: Codes, times: int) -> None:
        self.visits[codes] += times
        if not self.visits[codes]:
            del self.visits[codes]

    def copy(self) -> Self:
        """Return a policy that learns independently."""
        copied = super().copy()
        copied.visits = self.visits.copy()
        return copied

    def state(self) -> dict[str, object]:
        """Return the posterior, the rounds, and the visits of each context."""
        visits = {str(codes): times for codes, times in sorted(self.visits.items())}
        return {**super().state(), "rounds": self.rounds, "visits": visits}

    def fingerprint(self) -> bytes:
        """Return a digest of the counts, the rounds and the visits, and of the mixture's gain."""
        visits = [x for codes, times in sorted(self.visits.items()) for x in (codes, (times,))]
        gain = [] if self.mixture is None else [(self.mixture.gain,)]
        return digest_of(self.belief.posterior.counts, (self.rounds,), *visits, *gain)

    # -- deciding -----------------------------------------------------------------------------

    def choose(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> Choice:
        """Choose the arm whose plays are worth most."""
        problem, plan = self.problem, self._plan(codes, arms)
        figures = {
            "delta": self._delta(codes, arms),
            "plays": int(plan.plays),
            "value": plan.gain * problem.payoff.span,
            **self._mixture_figures(),
        }
        trace = DecisionTrace(self._reason(plan), figures, self._edges())
        return Choice(plan.arm, one_hot(problem, plan.arm), trace)

    def _delta(self, codes: Codes, arms: IntArray) -> FloatArray:
        """Return the expected loss of each allowed arm against the best one, scaled to [0, 1]."""
        payoff, labels = self.problem.payoff, self.problem.context_labels(codes)
        shares = self.knowledge.belief.mean_distributions(labels)[arms]
        means = payoff.net_scaled(shares @ payoff.scaled, arms)
        delta = np.full(len(self.problem.arms), np.nan)
        delta[arms] = means.max() - means
        return delta

    def _reason(self, plan: PlayPlan) -> str:
        if not plan.plays:
            return (
                "it has the best expected reward, and what could be learned from another arm would "
                "not pay for itself"
            )
        span, plays = self.problem.payoff.span, int(plan.plays)
        rounds = PACE * (self.rounds + HEAD_START)
        times = {1: "once", 2: "twice"}.get(plays, f"{plays:,} times")
        best = self.problem.arms[plan.best]
        gain = (
            f"what is learned by playing this one {times} is expected to gain "
            f"{format_number(plan.gain * span)} in total over the next {rounds:,.0f} rounds"
        )
        if plan.cost <= 0:
            return f"it looks as good as {best}, and {gain}"
        cost = format_number(plan.cost * span)
        return f"{best} looks better by {cost} per round, but {gain}, net of that cost"

    def _plan(self, codes: Codes, arms: IntArray) -> PlayPlan:
        posterior, rounds = self.belief.posterior, PACE * (self.rounds + HEAD_START)
        allowed = np.zeros(len(self.problem.arms), dtype=np.bool_)
        allowed[arms] = True
        state, trace = self._state_with_pending(), trace_of(self.belief.problem)
        own = self._own_rewards(codes)
        codes_of = self._all_contexts([codes], MAX_CONTEXTS)
        now = codes_of.index(codes)
        if posterior.is_settled:
            lanes = lanes_in(self._context_arrays(posterior, codes_of), now)
        else:
            visits = np.array([self.visits[c] for c in codes_of], dtype=np.int64)
            lanes = mixed_lanes(posterior, codes_of, visits, now, self._has_few, max_lanes(trace))
        plan = choose(state, lanes, trace, self._scale, allowed, rounds, own)
        return PlayPlan(*plan)

    def _own_rewards(self, codes: Codes) -> OwnRewards | None:
        """Return the graph-free hypothesis in a context, with pending plays at their mean."""
        if self.mixture is None:
            return None
        parameters = 1.0 + self.mixture.rewards.in_context(codes).counts
        if self.count_pending:
            plays = self.pending.in_context(codes) / parameters.sum(axis=1)
            parameters = parameters * (1 + plays)[:, None]
        return OwnRewards(self.mixture.weight, parameters)

    def _state_with_pending(self) -> State:
        """Return the posterior's state; pending plays count at their mean in all rows they visit.

        In every set of edges they count as often as they are expected to visit the row.
        """
        posterior = self.belief.posterior
        state = posterior.state()
        if not (self.count_pending and self.pending):
            return state
        trace, prior = trace_of(self.belief.problem), posterior.prior.copy()
        for codes in self.pending.contexts():
            visits = np.zeros(1, dtype=np.int64)
            if posterior.is_settled:
                contexts = self._context_arrays(posterior, [codes])
                lanes = ContextLanes(
                    contexts.rows, np.arange(contexts.rows.shape[1])[None], np.ones(1), visits
                )
            else:
                lanes = mixed_lanes(posterior, [codes], visits, 0, True, max_lanes(trace))
            added, visited = np.zeros(len(prior)), np.zeros(len(prior))
            count_pending(state, lanes, self.pending.in_context(codes), trace, added, visited)
            prior += np.divide(added, visited, out=added, where=visited > 0)
        return state._replace(prior=prior)

    def _all_contexts(self, added: Iterable[Codes], limit: int | None = None) -> list[Codes]:
        """Return all contexts if there are few, else the most frequent and `added`, in order."""
        if self._has_few:
            return self._contexts
        frequent = sorted(self.visits, key=lambda codes: (-self.visits[codes], codes))[:limit]
        return sorted({*frequent, *added})

    def _context_arrays(self, posterior: Posterior, codes_of: list[Codes]) -> Contexts:
        model = posterior.model
        rows = np.array([model.rows_of(model.trace, codes) for codes in codes_of])
        visits = np.array([self.visits[codes] for codes in codes_of], dtype=np.int64)
        limit = min(MAX_CONTEXTS, max_lanes(trace_of(self.belief.problem)))
        return Contexts(rows, visits, self._has_few, limit)

    # -- whole trials -------------------------------------------------------------------------

    def compiled_trial(self) -> TrialLoop | None:
        """Return a compiled trial for posteriors without doubtful edges and pending plays."""
        is_plain = type(self) is CommitKG and self.belief.monitor is None and not self.floor
        is_plain &= not (self.count_pending and self.pending)
        return self._play if is_plain and self.belief.posterior.is_settled else None

    def _play(self, script: TrialScript, _rng: np.random.Generator) -> IntArray:
        posterior = self.belief.posterior
        script_codes = [tuple(codes) for codes in script.context_codes.tolist()]
        codes_of = self._all_contexts(script_codes)
        numbers = {codes: i for i, codes in enumerate(codes_of)}
        contexts = self._context_arrays(posterior, codes_of)
        chosen = np.empty(len(script.contexts), dtype=np.int64)
        own = self._own_trial(script)
        play_rounds(
            posterior.state(),
            trial_arms(posterior),
            contexts,
            np.array([numbers[codes] for codes in script_codes]),
            trace_of(self.belief.problem),
            self._scale,
            (PACE, HEAD_START, self.rounds),
            script,
            own,
            chosen,
        )
        if self.mixture is not None and own is not None:
            was_set = np.array([self.problem.fixed(arm) for arm in self.problem.arms]) != MISSING
            batch = RecordBatch(self.problem, own.seen.T, was_set[chosen].T)
            self.mixture.add_learned(batch, own.gains)
        pairs = zip(codes_of, contexts.visits.tolist(), strict=True)
        self.visits = Counter({codes: times for codes, times in pairs if times})
        self.rounds += len(chosen)
        self.next_number += len(chosen)
        return chosen

    def _own_trial(self, script: TrialScript) -> OwnTrial | None:
        mixture, rounds = self.mixture, len(script.contexts)
        if mixture is None:
            return None
        codes_of = [tuple(codes) for codes in script.context_codes.tolist()]
        model = mixture.posterior.model
        return OwnTrial(
            prior=mixture.prior,
            before=mixture.gain,
            gains=np.zeros(rounds, dtype=np.int64),
            counts=np.array([mixture.rewards.in_context(codes).counts for codes in codes_of]),
            seen=np.empty((rounds, len(self.problem.graph)), dtype=np.int64),
            rows=np.array([model.rows(codes) for codes in codes_of]),
            tape=model.circuit.tape,
            position=self.problem.reward_position,
        )
