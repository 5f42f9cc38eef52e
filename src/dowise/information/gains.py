"""What an arm teaches, beyond the paper's gain: other things that are seen, other questions.

The paper's gain is I(A*; Y_a): what the reward of arm a tells about the best arm A* of the present
context. Here

- of what is seen, "all" takes all variables: I(A*; V_a). "rows" takes Σ_r v_r(a) I(A*; X_r): for
  each row r of a factor what one value X_r drawn from it would tell, times the probability v_r(a)
  that arm a visits it, at the posterior mean factors (an outcome visits one row of each factor).
- "map" asks for the best arms of all contexts: Σ_c' p(c') I(A*_c'; ·) in place of I(A*; ·), with
  p(c') the posterior probability that the next context is c'. That is I(A*_C; · | C), what is told
  about the best arm of the next context C.

All of it is for the posterior that gives each of the N draws the probability 1/N. I(A*; V_a) and
v_r(a) are exact then as long as the outcomes can be enumerated (`MOST_OUTCOMES`, `MOST_WALKS`, of
all arms together). Beyond that they are means over outcomes that are sampled, whose expectation is
the exact value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Dirichlet, Mixture, Posterior
from dowise.belief.dirichlet import Key
from dowise.compiling import kernels_of
from dowise.errors import DowiseError
from dowise.information.estimates import Estimate, estimate_of
from dowise.information.outcomes import outcomes_of
from dowise.model import Codes
from dowise.model.draws import Draws
from dowise.problem import Problem
from dowise.randomness import key_of

__all__ = ["About", "Gains", "Seen", "context_chances", "likely_contexts"]

Seen = Literal["reward", "all", "rows"]
About = Literal["arm", "map"]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_OUTCOMES = 4096  # a hundredth of a second at a thousand draws
MOST_WALKS = 2**17  # at the means alone: a millisecond
SAMPLED_OUTCOMES = 64  # of each arm
SAMPLED_WALKS = 256
LIKELIEST = 64  # contexts that a map is made of
MOST_CONTEXTS = 2**16  # whose probabilities are computed to find these

_kernels = kernels_of("dowise.information.gain_kernels")


@dataclass(frozen=True)
class Gains:
    """How gains are computed: of what is `seen`, `about` which question."""

    seen: Seen
    about: About

    def check(self, problem: Problem, posterior: Posterior) -> None:
        """Raise where these gains can't be had."""
        if not isinstance(posterior, Dirichlet | Mixture):
            raise DowiseError(
                f"gain={self.seen!r} and about={self.about!r} need the draws of a Belief, not of a "
                f'{type(posterior).__name__}: leave them at gain="reward" and about="arm"'
            )
        contexts = prod(len(problem.domains[name]) for name in problem.context)
        if self.about == "map" and contexts > MOST_CONTEXTS:
            raise DowiseError(
                f'about="map": there are {contexts:,} contexts, and the limit is '
                f'{MOST_CONTEXTS:,}; take about="arm", or fewer context variables'
            )

    def estimate(
        self,
        posterior: Posterior,
        codes: Codes,
        samples: int,
        arms: Integers,
        source: np.random.Generator,
    ) -> Estimate:
        """Δ and p* of these arms as in Lemma 2, and the gains that are asked for.

        The best arm of the present context is one of these arms, that of another one any.
        """
        assert isinstance(posterior, Dirichlet | Mixture)
        key, payoff = key_of(source), posterior.problem.payoff
        draws = _drawn(posterior, key, codes, samples)
        if len(arms) < len(posterior.problem.arms):
            draws = draws.among(arms)
        found = estimate_of(draws, payoff)
        questions = self._questions(posterior, key, codes, found.winners)
        if self.seen == "reward":
            gain = np.empty(len(arms))
            _kernels.add_rewards(draws.distributions(), *questions, gain)
        else:
            told = _told_by_all if self.seen == "all" else _told_by_rows
            gain = told(posterior, key, codes, samples, arms, questions, source)
        return replace(found, gain=gain)

    def _questions(
        self, posterior: Dirichlet | Mixture, key: Key, codes: Codes, winners: Integers
    ) -> Questions:
        """Which arm is best, here or in each context, and what it counts for."""
        if self.about == "arm":
            return Questions.of([winners], np.ones(1))
        contexts, chances = likely_contexts(posterior, codes)
        payoff = posterior.problem.payoff
        best = [
            winners
            if context == codes
            else _drawn(posterior, key, context, len(winners)).winners(payoff)[0]
            for context in contexts
        ]
        return Questions.of(best, chances)


class Questions(NamedTuple):
    """Which arm is best in each of some contexts, as the kernels take it."""

    ranks: Integers
    """ranks[q, draw]: the place of the best arm among those that win some draw."""
    shares: Floats
    weights: Floats

    @classmethod
    def of(cls, best: list[Integers], weights: Floats) -> Questions:
        """From the best arm of every draw in each context."""
        every = np.array(best)
        arms = int(every.max()) + 1
        ranks, shares = np.empty_like(every), np.zeros((len(every), arms))
        most = _kernels.rank_answers(every, arms, ranks, shares)
        return cls(ranks, np.ascontiguousarray(shares[:, :most]), weights)


def _drawn(posterior: Dirichlet | Mixture, key: Key, codes: Codes, samples: int) -> Draws:
    """The rewards of all arms under the draws of a key, the same in every context."""
    if posterior.is_fine_in(codes):
        return posterior.draw_lanes(key, codes, 0, samples)
    return posterior.draw_whole_lanes(key, codes, 0, samples)


def _told_by_all(
    posterior: Dirichlet | Mixture,
    key: Key,
    codes: Codes,
    samples: int,
    arms: Integers,
    questions: Questions,
    source: np.random.Generator,
) -> Floats:
    outcomes, gain = outcomes_of(posterior.model), np.zeros(len(arms))
    values = outcomes.draw(posterior, key, codes, samples)
    if outcomes.count(arms) <= MOST_OUTCOMES:
        _kernels.add_all(outcomes.paths, arms, values, *questions, gain)
    else:
        uniforms = source.random((SAMPLED_OUTCOMES, outcomes.longest + 1))
        _kernels.add_sampled(outcomes.paths, arms, values, *questions, uniforms, gain)
    return gain


def _told_by_rows(
    posterior: Dirichlet | Mixture,
    key: Key,
    codes: Codes,
    samples: int,
    arms: Integers,
    questions: Questions,
    source: np.random.Generator,
) -> Floats:
    outcomes, gain = outcomes_of(posterior.model), np.zeros(len(arms))
    values, told = outcomes.draw(posterior, key, codes, samples), np.zeros(outcomes.entries)
    means = outcomes.means(posterior, codes)
    starts, sizes = outcomes.told_starts, outcomes.told_sizes
    _kernels.add_row_information(starts, sizes, values, *questions, told)
    if outcomes.count(arms) <= MOST_WALKS:
        _kernels.add_rows(outcomes.paths, arms, means, told, gain)
    else:
        uniforms = source.random((SAMPLED_WALKS, outcomes.longest))
        _kernels.add_sampled_rows(outcomes.paths, arms, means, told, uniforms, gain)
    return gain


def likely_contexts(posterior: Dirichlet | Mixture, present: Codes) -> tuple[list[Codes], Floats]:
    """The contexts that a map is made of, and how likely each is to be the next one.

    All of them, or where they are more than `LIKELIEST` so many that are likeliest, and the
    present one.
    """
    chances = context_chances(posterior)
    flat = chances.ravel()
    if len(flat) <= LIKELIEST:
        return list(product(*map(range, chances.shape))), flat
    here = int(np.ravel_multi_index(present, chances.shape))
    places = np.union1d(np.argsort(-flat, kind="stable")[:LIKELIEST], here)
    codes = np.stack(np.unravel_index(places, chances.shape), axis=1)
    return [tuple(context) for context in codes.tolist()], flat[places]


def context_chances(posterior: Dirichlet | Mixture) -> Floats:
    """The posterior probability of every context: an axis for each context variable.

    The context is closed under ancestors, so that is the product of its own factors' entries,
    whose mean is the product at the mean entries.
    """
    problem, factors = posterior.problem, posterior.model.factors
    positions = problem.context_positions.tolist()
    axes, chances = {v: i for i, v in enumerate(positions)}, np.ones(())
    if not positions:
        return chances
    means, under = posterior.mean_entries(), factors.under(0).tolist()
    for v in positions:
        own = [axes[u] for u in factors.families[under[v]]]
        table = factors.table(means, under[v])
        spread = tuple(slice(None) if i in own else None for i in range(len(positions)))
        chances = chances * np.transpose(table, np.argsort(own))[spread]
    return chances
