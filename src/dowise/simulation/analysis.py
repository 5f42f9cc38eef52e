"""From a table of results to numbers: curves, final regrets, paired differences, verdicts.

Reads nothing but the table that a race wrote. Intervals are Student's, at 95 %; of fewer than ten
trials nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dowise._core.types import FloatArray, IntArray
from dowise.errors import import_extra

if TYPE_CHECKING:
    import pandas

FEWEST_TRIALS = 10
Measure = Literal["regret", "expected"]
"""What is compared: regret under the true CPTs, or what the posterior expects of it."""
Verdict = Literal["holds", "does not hold", "not shown"]


@dataclass(frozen=True)
class Spread:
    """A mean over trials with its standard error."""

    mean: float
    error: float
    trials: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval; unbounded if there is only one trial."""
        if self.trials < 2:
            return -np.inf, np.inf
        special = import_extra("scipy.special", "simulate", "a confidence interval")
        width = float(special.stdtrit(self.trials - 1, 0.975)) * self.error
        return self.mean - width, self.mean + width


@dataclass(frozen=True, eq=False)
class RegretCurve:
    """Cumulative regret of one policy at each kept round, over trials."""

    policy: str
    rounds: IntArray
    mean: FloatArray
    deviation: FloatArray
    """The standard deviation across trials."""
    trials: int
    measure: Measure = "regret"

    def band(self, kind: Literal["se", "sd"]) -> tuple[FloatArray, FloatArray]:
        """Return two standard errors or, as in the paper, standard deviations around the mean."""
        width = 2 * self.deviation / (np.sqrt(self.trials) if kind == "se" else 1.0)
        return self.mean - width, self.mean + width


@dataclass(frozen=True)
class Claimed:
    """Claim that one policy has less regret than another, or than a multiple of it."""

    less: str
    more: str
    times: float = 1.0

    def judged(self, final: pandas.DataFrame, expected: pandas.DataFrame | None = None) -> Claim:
        """Judge the claim by final regrets, a column per policy, and by expected ones, if any."""
        of_expected = None if expected is None else self._paired(expected)
        return Claim(self.less, self.more, self._paired(final), self.times, of_expected)

    def _paired(self, final: pandas.DataFrame) -> Spread:
        return spread_of(final[self.less].to_numpy() - self.times * final[self.more].to_numpy())


@dataclass(frozen=True)
class Claim:
    """Claim with the paired differences by which it is judged.

    One of the two measures decides, and which one does not depend on what they say: expected regret
    where the race has it, else the regret under the true CPTs.
    """

    less: str
    more: str
    difference: Spread
    """Regret of `less` minus `times` that of `more`, in the same worlds."""
    times: float = 1.0
    expected: Spread | None = None
    """The same of expected regret, where the race has it."""

    @property
    def decides(self) -> Spread:
        """Difference by which the claim is judged."""
        return self.difference if self.expected is None else self.expected

    @property
    def measure(self) -> Measure:
        """Measure of the difference: regret or expected regret."""
        return "regret" if self.expected is None else "expected"

    @property
    def terms(self) -> tuple[str, str]:
        """The two terms of the difference as text."""
        return self.less, self.more if self.times == 1 else f"{self.times:g} × ({self.more})"

    def __str__(self) -> str:
        return " < ".join(self.terms)

    @property
    def verdict(self) -> Verdict:
        """Verdict: "holds", "does not hold" or "not shown", by the interval of the difference."""
        if self.decides.trials < FEWEST_TRIALS:
            return "not shown"
        low, high = self.decides.interval
        return "holds" if high < 0 else "does not hold" if low > 0 else "not shown"


@dataclass(frozen=True)
class Standing:
    """The final regret of one policy on one problem, over trials."""

    problem: str
    policy: str
    regret: Spread
    measure: Measure = "regret"

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data; a single trial has no standard error."""
        return {
            "problem": self.problem,
            "policy": self.policy,
            self.measure: self.regret.mean,
            "standard_error": self.regret.error if self.regret.trials > 1 else None,
            "trials": self.regret.trials,
        }


@dataclass(frozen=True)
class Difference:
    """The final regret of a policy less that of another, in the same worlds of one problem."""

    problem: str
    policy: str
    than: str
    difference: Spread

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data; a single trial has no spread."""
        several = self.difference.trials > 1
        low, high = self.difference.interval if several else (None, None)
        return {
            "problem": self.problem,
            "policy": self.policy,
            "than": self.than,
            "mean": self.difference.mean,
            "standard_error": self.difference.error if several else None,
            "low": low,
            "high": high,
            "trials": self.difference.trials,
        }


def spread_of(values: FloatArray | pandas.Series[float]) -> Spread:
    """Return the mean and its standard error."""
    numbers = np.asarray(values, dtype=np.float64)
    error = numbers.std(ddof=1) / np.sqrt(len(numbers)) if len(numbers) > 1 else np.nan
    return Spread(float(numbers.mean()), float(error), len(numbers))


def curves(
    frame: pandas.DataFrame, policies: Sequence[str], measure: Measure = "regret"
) -> list[RegretCurve]:
    """Return the curve of each policy, from the rows of one problem."""
    by_policy = []
    for policy in policies:
        rows = frame[frame["policy"] == policy]
        rounds = np.unique(rows["round"])
        table = rows.sort_values(["trial", "round"])[measure].to_numpy().reshape(-1, len(rounds))
        deviation = table.std(axis=0, ddof=1) if len(table) > 1 else np.zeros(len(rounds))
        mean = table.mean(axis=0)
        by_policy.append(RegretCurve(policy, rounds, mean, deviation, len(table), measure))
    return by_policy


def claims(
    final: pandas.DataFrame,
    claimed: Sequence[Claimed] | None = None,
    expected: pandas.DataFrame | None = None,
) -> list[Claim]:
    """Judge claims; by default the paper's: IDS below TS, TS below every baseline.

    Columns are policies; `expected` is a table of expected regrets, where there is one.
    """
    if claimed is None:
        policies = {*final.columns}
        pairs = [("ids", "ts")] if {"ids", "ts"} <= policies else []
        if "ts" in policies:
            pairs += [("ts", other) for other in final.columns if other not in ("ids", "ts")]
        claimed = [Claimed(less, more) for less, more in pairs]
    return [claim.judged(final, expected) for claim in claimed]


def standings(final: pandas.DataFrame, measure: Measure = "regret") -> list[Standing]:
    """Summarise every policy on every problem, from the table of `Result.final`.

    Trials of a race that is still under way are left out where they are missing.
    """
    return [
        Standing(problem, policy, spread_of(own[policy].dropna()), measure)
        for problem, own in _by_problem(final)
        for policy in final.columns
        if own[policy].notna().any()
    ]


def differences(final: pandas.DataFrame, all_pairs: bool = False) -> list[Difference]:
    """Compare every other policy with the first, per problem, in the trials that both have.

    With `all_pairs` every policy against each of those before it.
    """
    pairs = [
        (policy, than)
        for i, than in enumerate(final.columns)
        for policy in final.columns[i + 1 :]
        if all_pairs or not i
    ]
    return [
        Difference(problem, policy, than, spread_of(paired))
        for problem, own in _by_problem(final)
        for policy, than in pairs
        if len(paired := (own[policy] - own[than]).dropna())
    ]


def _by_problem(final: pandas.DataFrame) -> list[tuple[str, pandas.DataFrame]]:
    problems = dict.fromkeys(final.index.get_level_values("problem"))
    return [(problem, final.loc[problem]) for problem in problems]
