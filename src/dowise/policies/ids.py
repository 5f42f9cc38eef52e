"""Information-Directed Sampling for causal bandits: Algorithm 2 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dowise._core.document import format_number
from dowise._core.kernels import kernel
from dowise._core.rng import Random, draw_keys_and_coins, generator
from dowise._core.validation import check_fraction, check_fraction_or_zero, check_integer
from dowise.belief import Belief, Posterior
from dowise.belief.draw_kernels import count_record, draw_results
from dowise.belief.posterior import check_samples
from dowise.belief.prior import Prior
from dowise.errors import DowiseError
from dowise.information import (
    Estimate,
    IDSAction,
    Interval,
    delta_interval,
    estimate_of,
    gain_interval,
    information_ratio,
    least_ratio,
    minimise_ratio,
)
from dowise.information.estimates import check_room, find_and_count, summarise
from dowise.information.gains import About, Gains, Seen
from dowise.information.ratio import FEW, NOTHING, best_pair
from dowise.model.kernels import observe_round
from dowise.model.sampler import TrialScript
from dowise.policies.base import BayesianPolicy, Edges, Loop, allowed_arms, play_out
from dowise.policies.decision import Decision, Figures
from dowise.policies.thompson import Learned, arms_of
from dowise.problem import Intervention, Problem
from dowise.problem.problem import ArmLike, Context


def play_trial(
    problem: Problem,
    posterior: Posterior,
    samples: int,
    script: TrialScript,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """The arm of every round; the posterior has learned them."""
    model, rounds = posterior.model, len(script.contexts)
    rows = np.array([model.rows(tuple(codes)) for codes in script.known.tolist()])
    chosen = np.empty(rounds, dtype=np.int64)
    drawn = np.empty((*model.circuit.results.shape, samples), dtype=np.float32)
    learned = Learned(posterior.prior, posterior.counts, posterior.unused)
    circuit = model.circuit.tape, posterior.block, problem.payoff.scaled
    _play_rounds(
        *draw_keys_and_coins(rng, rounds), learned, arms_of(problem, model.factors), rows, circuit,
        drawn, script, chosen,
    )  # fmt: skip
    return chosen


@kernel()
def _play_rounds(
    keys: Any, coins: Any, own: Any, arms: Any, rows: Any, circuit: Any, drawn: Any, script: Any,
    chosen: Any,
) -> None:  # fmt: skip
    """Each round a decision and one more record; `circuit` is (tape, block, what values are worth).

    rows[c] are the rows of the circuit under context c; `drawn` is room for the draws.
    """
    tape, block, scaled = circuit
    count, others, samples = drawn.shape
    one = script.contexts.ndim  # a literal would have everything compiled anew for it
    winners = np.empty(samples, dtype=np.int64)
    winning = np.empty(count, dtype=np.int64)
    best, means = np.empty(count), np.empty(count)
    regret, gain = np.empty(count), np.empty(count)
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    seen = np.empty(len(script.mechanism.observed), dtype=np.int64)
    for t in range(len(chosen)):
        here = rows[script.contexts[t]]
        draw_results(keys[t], own.prior, own.counts, here, tape, block, one - one, drawn)
        peak, several = find_and_count(drawn, scaled, arms.costs, winners, best, winning)
        joint = np.empty((count, several, others + 1))
        for a in range(count):
            means[a] = -arms.costs[a]
        summarise(drawn, scaled, peak, winners, winning[:several], best, joint, means, regret, gain)
        first, second, probability = best_pair(regret, gain, NOTHING)
        arm = chosen[t] = first if coins[t] < probability else second
        observe_round(script, t, chosen[t], codes, seen)
        p = arms.place[arm]
        count_record(
            own.counts, own.unused, seen, arms.fixed[arm], arms.under[p], arms.starts,
            arms.strides, one,
        )  # fmt: skip


Within = Literal["point", "optimistic", "pessimistic"]
Choice = Literal["mixture", "deterministic"]


class InformationDirectedSampling(BayesianPolicy):
    """Play the distribution π over arms with the smallest ratio (πᵀΔ)² / πᵀg.

    Δ is what an arm is expected to lose against the best one, net of what arms cost, and g what its
    reward is expected to tell about which arm that is, both from `samples` (N) fresh posterior
    draws (Lemma 2). At most two arms are played with positive probability. `interval` says which
    values within the confidence intervals of Lemmas 3 and 4, at level delta / (2·horizon·K), drive
    the choice: the estimates ("point"), small Δ and large g ("optimistic"), or large Δ and small g
    ("pessimistic"), ties going to the arm that teaches more, then to the one that is estimated to
    cost less. The regret is bounded by Theorem 2.

    Four options go beyond the paper, whose are the defaults. `gain` says what teaches: the
    "reward", "all" variables that are seen, or "rows", the rows of factors that an arm visits; and
    `about` what of: the best "arm" of the present context, or the "map" of the best arms of all
    contexts (`dowise.information.gains`). With `choice` "deterministic" the one arm with the
    smallest Δ²/g is played. With a `floor` f the probabilities are (1 − f)π + f·p*, p* being the
    shares of the draws in which each arm is best.

    Applies to every graph, with hidden common causes and doubtful edges too (docs/hidden.md), as
    long as its factors fit into memory. At N = 1000 the intervals of g are [0, log r] in practice
    (docs/bounds.md); then both alternatives to "point" just play the arm of the smallest estimated
    Δ, without exploring. Gains are in nats, in the sentence of a decision in bits.
    """

    imagines = True

    def __init__(
        self,
        problem: Problem,
        samples: int = 1000,
        delta: float = 0.05,
        horizon: int = 1000,
        interval: Within = "point",
        prior: Prior | None = None,
        belief: Belief | None = None,
        gain: Seen = "reward",
        about: About = "arm",
        choice: Choice = "mixture",
        floor: float = 0.0,
    ) -> None:
        super().__init__(problem, prior, belief)
        _check_one_of("interval", interval, get_args(Within))
        _check_one_of("gain", gain, get_args(Seen))
        _check_one_of("about", about, get_args(About))
        _check_one_of("choice", choice, get_args(Choice))
        self.gains = None if (gain, about) == ("reward", "arm") else Gains(gain, about)
        """How gains are computed, where they are not the paper's."""
        if self.gains is not None:
            self.gains.check(problem)
            if interval != "point":
                raise DowiseError(
                    f'interval={interval!r} is for gain="reward" and about="arm": Lemma 4 has no '
                    "intervals of other gains"
                )
        self.choice, self.floor = choice, check_fraction_or_zero("floor", floor)
        self.samples = check_integer("samples", samples, 1)
        arms = len(problem.arms)
        check_room(arms, min(arms, self.samples), len(problem.payoff.values))
        self.horizon = check_integer("horizon", horizon, 1)
        self.delta, self.interval = check_fraction("delta", delta), interval

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Balance regret against information, and play one of at most two arms."""
        problem, source = self.problem, generator(rng)
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        return self._decide(codes, arms, source)

    def _decide(
        self, codes: tuple[int, ...], arms: NDArray[np.int64], source: np.random.Generator
    ) -> Decision:
        problem, found = self.problem, self._found(codes, arms, source)
        regret, gain = self._driving(found)
        action = (minimise_ratio if self.choice == "mixture" else least_ratio)(regret, gain)
        action = self._settle_ties(action, regret, gain, found)
        pick = action.first if source.random() < action.probability else action.second
        by_floor = self.floor > 0 and source.random() < self.floor
        if by_floor:
            pick = int(found.winners[source.integers(self.samples)])
        workings = _Workings(
            problem, arms, found, action, pick, regret, gain, self._level(len(arms)),
            self._edges(), self.gains, self.floor, by_floor,
        )  # fmt: skip
        figures = Figures({"q": action.probability}, workings)
        chosen, seen = problem.arms[arms[pick]], problem.context_labels(codes)
        return Decision(chosen, workings.probabilities(), workings, figures, seen)

    def _found(
        self, codes: tuple[int, ...], arms: NDArray[np.int64], source: np.random.Generator
    ) -> Estimate:
        """What fresh draws say of these arms."""
        posterior = self.belief.posterior
        if self.gains is not None:
            return self.gains.estimate(posterior, codes, self.samples, arms, source)
        draws = posterior.draw(codes, self.samples, source)
        if len(arms) < len(self.problem.arms):
            draws = draws.among(arms)
        return estimate_of(draws, self.problem.payoff)

    @property
    def is_the_papers(self) -> bool:
        """Whether gain, about, choice and floor are those of Algorithm 2."""
        return self.gains is None and self.choice == "mixture" and self.floor == 0

    @property
    def heeds_horizon(self) -> bool:
        """Whether decisions depend on the horizon: estimates do not, their intervals do."""
        return self.interval != "point"

    def _level(self, arms: int) -> float:
        return self.delta / (2 * self.horizon * arms)

    def _driving(self, found: Estimate) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The values within the confidence intervals that the choice is made by."""
        if self.interval == "point":
            return found.delta, found.gain
        level = self._level(len(found.delta))
        cost, taught = delta_interval(found, level), gain_interval(found, level)
        if self.interval == "optimistic":
            return cost.low, taught.high
        return cost.high, taught.low

    def _settle_ties(
        self,
        action: IDSAction,
        regret: NDArray[np.float64],
        gain: NDArray[np.float64],
        found: Estimate,
    ) -> IDSAction:
        """Among arms of the same ratio, the one that teaches most, then the one that costs least.

        The ends of wide intervals tie: with Δ̲ = 0 for several arms the first would be played for
        ever. Estimates tie only where the arms are alike, and there the first one goes.
        """
        if self.interval == "point" or action.first != action.second:
            return action
        ratios = information_ratio(regret, gain)
        tied = np.flatnonzero(ratios == ratios[action.first])
        chosen = int(min(tied, key=lambda a: (-gain[a], found.delta[a], a)))
        return IDSAction(chosen, chosen, 1.0)

    def compiled_loop(self) -> Loop | None:
        """A whole trial where it can be; else `decide` as it is, and the rest of a round."""
        is_plain = type(self) is InformationDirectedSampling and self.belief.monitor is None
        posterior, few = self.belief.posterior, len(self.problem.arms) <= FEW
        if not is_plain:
            return None
        is_whole = posterior.is_settled and posterior.is_single_precision and few
        is_driven = self.is_the_papers and self.interval == "point"
        return self._play_compiled if is_whole and is_driven else self._play

    def _play_compiled(self, script: TrialScript, rng: np.random.Generator) -> NDArray[np.int64]:
        posterior = self.belief.posterior
        check_samples(self.samples, posterior.model.circuit, True)
        chosen = play_trial(self.problem, posterior, self.samples, script, rng)
        self.next_number += len(chosen)
        return chosen

    def _play(self, script: TrialScript, rng: np.random.Generator) -> NDArray[np.int64]:
        arms = np.arange(len(self.problem.arms))
        index = {arm: i for i, arm in enumerate(self.problem.arms)}
        return play_out(self, script, lambda _t, codes: index[self._decide(codes, arms, rng).arm])


def _check_one_of(option: str, given: object, known: tuple[str, ...]) -> None:
    if given not in known:
        raise DowiseError(f"{option}={given!r} must be one of {', '.join(known)}")


@dataclass(eq=False, slots=True)  # frozen, it would take a microsecond more to make
class _Workings:
    """What one decision was made from: `arms` are the places of the allowed arms among all."""

    problem: Problem
    arms: NDArray[np.int64]
    found: Estimate
    action: IDSAction
    pick: int
    regret: NDArray[np.float64]
    gain: NDArray[np.float64]
    level: float
    edges: Edges | None
    gains: Gains | None
    floor: float
    by_floor: bool

    @property
    def names(self) -> tuple[str, ...]:
        doubtful = () if self.edges is None else ("edges",)
        lemma_4 = ("gain_interval",) if self.gains is None else ()
        return "delta", "gain", "best", "ratio", "pair", "delta_interval", *lemma_4, *doubtful

    def probabilities(self) -> NDArray[np.float64]:
        full = np.zeros(len(self.problem.arms))
        full[self.arms[self.action.first]] += self.action.probability
        full[self.arms[self.action.second]] += 1 - self.action.probability
        if self.floor:
            full *= 1 - self.floor
            full[self.arms] += self.floor * self.found.best
        return full

    def figure(self, name: str) -> Any:
        if name == "ratio":
            pi = self.action.distribution(len(self.arms))
            return float(information_ratio(pi @ self.regret, pi @ self.gain))
        if name == "pair":
            return self._arm(self.action.first), self._arm(self.action.second)
        if name == "edges" and self.edges is not None:
            return self.edges()
        if name == "delta_interval":
            return self._interval(delta_interval)
        if name == "gain_interval":
            return self._interval(gain_interval)
        return self._spread(getattr(self.found, name), 0.0 if name == "best" else np.nan)

    def reason(self) -> str:
        found, pick, likely = self.found, self.pick, int(self.found.best.argmax())
        cost = format_number(found.delta[pick] * self.problem.payoff.span)
        chance = f"by the floor of {100 * self.floor:.3g} %, which keeps every arm in play"
        return (
            f"{chance if self.by_floor else 'a balance of cost and learning'}: expected to cost "
            f"{cost} against the best arm, and to teach {self._taught()}; most likely the best is "
            f"{self._arm(likely)} ({100 * found.best[likely]:.0f} %)"
        )

    def _taught(self) -> str:
        """The gain, as a share of what is unknown where that is known."""
        gain = float(self.found.gain[self.pick])
        if self.gains is not None and self.gains.about == "map":
            return f"{gain / log(2):.2g} bits about which arm is the best in each context"
        likely = self.found.best[self.found.best > 0]
        unknown = -float(likely @ np.log(likely))
        check_fraction = min(gain / unknown, 1.0) if unknown > 0 else 0.0
        percent = f"{100 * check_fraction:.0f} %" if check_fraction >= 0.01 else "less than 1 %"
        return f"{percent} of what is unknown about which arm that is"

    def _arm(self, place: int) -> Intervention:
        return self.problem.arms[int(self.arms[place])]

    def _interval(self, of: Callable[[Estimate, float], Interval]) -> Interval:
        interval = of(self.found, self.level)
        return Interval(self._spread(interval.low), self._spread(interval.high))

    def _spread(self, values: NDArray[np.float64], absent: float = np.nan) -> NDArray[np.float64]:
        """Figures of the allowed arms, at their places among all arms."""
        full = np.full(len(self.problem.arms), absent)
        full[self.arms] = values
        return full
