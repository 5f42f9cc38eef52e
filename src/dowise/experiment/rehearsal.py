"""A rehearsal: the whole experiment, played against worlds drawn from the prior.

Each world is asked and told by the same code as a live experiment, on a store in memory. So before
anything is done to anybody one sees what to expect: how much regret, how sure one will be and how
rightly so, and after how many rounds the advice is to stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.plain import amount, counted, plain
from dowise.problem import Problem

__all__ = ["Rehearsal", "Spread", "given"]

RANGE = (0.05, 0.95)  # of the worlds
_EXACT = 1e-12  # a regret below this is none

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """A number over worlds: its mean, its median, and the range that holds 90 % of them."""

    mean: float
    median: float
    low: float
    high: float

    @classmethod
    def of(cls, numbers: Floats) -> Spread:
        """Quantiles are numbers that occurred, so that one that never comes may be infinite."""
        low, median, high = np.quantile(
            numbers, [RANGE[0], 0.5, RANGE[1]], method="inverted_cdf"
        ).tolist()
        return cls(float(np.mean(numbers)), median, low, high)

    @property
    def ends(self) -> str:
        """The range in words."""
        return f"{amount(self.low)} to {amount(self.high)}"


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """What the worlds showed; arrays are (worlds, looks), in the user's units."""

    problem: Problem
    policy: str
    options: Mapping[str, Any]
    prior: Any
    """What the rows of the worlds' tables were drawn from."""
    horizon: int
    tolerance: float
    delay: int
    seed: int
    rounds: NDArray[np.int64]
    """After how many rounds there was a look, from 0 to the horizon."""
    regret: Floats
    """What the arms played so far have cost against the best ones, by the world's own word."""
    at_random: Floats
    """What choosing any arm with the same probability would have cost instead, on average."""
    stopping: Floats
    """What the posterior expects stopping then to cost a round: what the advice goes by."""
    cost: Floats
    """What playing the arms that look best then would truly cost a round."""
    sure: Floats
    """How likely the posterior holds the arms that look best to be the best."""

    @property
    def worlds(self) -> int:
        """How many worlds were played."""
        return len(self.regret)

    @property
    def per_round(self) -> Floats:
        """The regret a round at the end, for each world: over the last tenth of the rounds."""
        return self._at_the_end(self.regret)

    @property
    def per_round_at_random(self) -> Floats:
        """The same had arms been chosen at random."""
        return self._at_the_end(self.at_random)

    def _at_the_end(self, sums: Floats) -> Floats:
        late = max(int(np.searchsorted(self.rounds, 0.9 * self.horizon, "right")) - 1, 0)
        late = min(late, len(self.rounds) - 2)
        found: Floats = (sums[:, -1] - sums[:, late]) / (self.rounds[-1] - self.rounds[late])
        return found

    @property
    def is_best(self) -> NDArray[np.bool_]:
        """Whether what looks best is truly the best, in all contexts that came."""
        return self.cost <= _EXACT

    @property
    def is_nearly_best(self) -> NDArray[np.bool_]:
        """Whether it truly costs no more than the tolerance a round."""
        return self.cost <= max(self.tolerance, _EXACT)

    @cached_property
    def stops(self) -> Floats:
        """The first look of each world at which the advice was to stop; inf where it never was."""
        advised = self.stopping <= self.tolerance
        return np.where(advised.any(axis=1), self.rounds[advised.argmax(axis=1)], np.inf)

    @property
    def stopped_cost(self) -> float | None:
        """What stopping when it was advised truly cost a round, on average; None if it never was.

        It is no surprise that this is within the tolerance: worlds come from the prior that the
        posterior started with.
        """
        places = np.flatnonzero(np.isfinite(self.stops))
        looks = np.searchsorted(self.rounds, self.stops[places])
        return float(self.cost[places, looks].mean()) if len(places) else None

    def curve(self) -> list[dict[str, Any]]:
        """For each look: the round, and what was seen over the worlds."""
        spreads = {
            name: [Spread.of(column) for column in getattr(self, name).T]
            for name in ("regret", "stopping", "cost", "sure")
        }
        return [
            {
                "round": int(number),
                **{name: found[i] for name, found in spreads.items()},
                "at_random": float(self.at_random[:, i].mean()),
                "best": float(self.is_best[:, i].mean()),
                "nearly_best": float(self.is_nearly_best[:, i].mean()),
                "stopped": float((self.stops <= number).mean()),
            }
            for i, number in enumerate(self.rounds)
        ]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: a number of rounds that never came is "inf"."""
        stop = Spread.of(self.stops)
        page: dict[str, Any] = plain(
            {
                "problem": self.problem.name,
                "policy": self.policy,
                "options": self.options,
                "prior": self.prior,
                "horizon": self.horizon,
                "worlds": self.worlds,
                "tolerance": self.tolerance,
                "delay": self.delay,
                "seed": self.seed,
                "regret": Spread.of(self.regret[:, -1]),
                "regret_at_random": Spread.of(self.at_random[:, -1]),
                "regret_per_round_at_end": Spread.of(self.per_round),
                "regret_per_round_at_random": Spread.of(self.per_round_at_random),
                "sure_at_end": Spread.of(self.sure[:, -1]),
                "best_at_end": float(self.is_best[:, -1].mean()),
                "nearly_best_at_end": float(self.is_nearly_best[:, -1].mean()),
                "rounds_until_stop": {
                    "median": stop.median, "low": stop.low, "high": stop.high,
                    "share_never": float(np.isinf(self.stops).mean()),
                    "true_cost_per_round": self.stopped_cost,
                },
                "looks": self.curve(),
            }
        )  # fmt: skip
        return page

    def in_words(self) -> str:
        """A few sentences."""
        regret, random = Spread.of(self.regret[:, -1]), self.at_random[:, -1].mean()
        end, sure = Spread.of(self.per_round), Spread.of(self.sure[:, -1])
        late = f", outcomes told {counted(self.delay, 'round')} late" if self.delay else ""
        chances = f"{_percent(sure.low)} to {_percent(sure.high)}"
        lines = [
            f"In {counted(self.worlds, 'world')} drawn from the prior, {self.policy} over "
            f"{counted(self.horizon, 'round')}{late}:",
            f"The regret is {amount(regret.mean)} in all{self._averaged(regret.ends)}; choosing at "
            f"random costs {amount(random)}.",
            f"At the end a round costs {amount(end.mean)}{self._averaged()}; at random "
            f"{amount(self.per_round_at_random.mean())}.",
            f"Then you take what looks best for the best with probability {_percent(sure.mean)}"
            f"{self._averaged(chances)}. It is the best{self._everywhere} in "
            f"{_percent(self.is_best[:, -1].mean())} of worlds, and within "
            f"{given(self.tolerance)} of it in {_percent(self.is_nearly_best[:, -1].mean())}.",
            self._stop_in_words(),
        ]
        return "\n".join(lines)

    @property
    def _everywhere(self) -> str:
        """Probabilities are averaged over contexts; to be right is to be so in all of them."""
        return " in every context at once" if self.problem.context else ""

    def _averaged(self, ends: str | None = None) -> str:
        """That a number is a mean, and the range over worlds; nothing where there is one world."""
        if self.worlds == 1:
            return ""
        return f" on average{'' if ends is None else f' (90 % of worlds: {ends})'}"

    def _stop_in_words(self) -> str:
        when_it_came = self.stops[np.isfinite(self.stops)]
        advice = f"The advice to stop, with a tolerance of {given(self.tolerance)} a round,"
        within = f"within {counted(self.horizon, 'round')}"
        if self.stopped_cost is None:
            return f"{advice} comes in no world {within}: take more rounds, or tolerate more."
        came, share = Spread.of(when_it_came), len(when_it_came) / self.worlds
        if share == 1:
            when, whose = f"after {counted(int(came.median), 'round')}", "worlds"
        else:
            there = f"in {_percent(share)} of worlds {within}"
            when, whose = f"{there}, there after {came.median:,.0f}", "them"
        cost = f"What looks best then truly costs {amount(self.stopped_cost)} a round"
        if len(when_it_came) == 1:
            return f"{advice} comes {when}. {cost}."
        ends = f"{came.low:,.0f} to {came.high:,.0f}"
        return f"{advice} comes {when} (median; 90 % of {whose}: {ends}). {cost} on average."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def given(value: float) -> str:
    """A number that somebody chose, with all its digits: "1,250.5", "0.01"."""
    return f"{value:,.12g}"
