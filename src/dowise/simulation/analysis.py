"""Statistics of a table of results: curves, final regrets, paired differences, verdicts.

Intervals are Student's, at 95 %. There is no verdict from fewer than ten trials.
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

MIN_TRIALS_FOR_VERDICT = 10  # for a verdict
Measure = Literal["regret", "expected"]
"""Regret under the true CPTs, or expected regret under the posterior."""
Verdict = Literal["holds", "does not hold", "not shown"]


@dataclass(frozen=True)
class Spread:
    """Mean over trials with its standard error."""

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
class Claim:
    """Claim that policy `less` has less regret than policy `more`, or than a multiple of it."""

    less: str
    more: str
    times: float = 1.0

    def judge(
        self, final: pandas.DataFrame, expected: pandas.DataFrame | None = None
    ) -> JudgedClaim:
        """Return the paired differences in tables of final regrets, with a column per policy."""
        differences = [
            None if table is None else spread_of(table[self.less] - self.times * table[self.more])
            for table in (final, expected)
        ]
        assert differences[0] is not None
        return JudgedClaim(self.less, self.more, differences[0], self.times, differences[1])


@dataclass(frozen=True)
class JudgedClaim:
    """Claim with the paired differences that decide about it.

    Expected regret decides if the simulation computed it, otherwise the regret under the true CPTs:
    the measure does not depend on the results.

    Attributes
    ----------
    difference
        Regret of `less` minus `times` that of `more`, in the same worlds.
    expected
        The same difference of expected regrets, if they were computed.
    """

    less: str
    more: str
    difference: Spread
    times: float = 1.0
    expected: Spread | None = None

    @property
    def deciding(self) -> Spread:
        """The difference by which the claim is judged."""
        return self.difference if self.expected is None else self.expected

    @property
    def measure(self) -> Measure:
        """Measure of the deciding difference."""
        return "regret" if self.expected is None else "expected"

    @property
    def terms(self) -> tuple[str, str]:
        """The two terms of the difference as text."""
        return self.less, self.more if self.times == 1 else f"{self.times:g} × ({self.more})"

    def __str__(self) -> str:
        return " < ".join(self.terms)

    @property
    def verdict(self) -> Verdict:
        """Verdict by the interval of the deciding difference."""
        if self.deciding.trials < MIN_TRIALS_FOR_VERDICT:
            return "not shown"
        low, high = self.deciding.interval
        return "holds" if high < 0 else "does not hold" if low > 0 else "not shown"


@dataclass(frozen=True)
class Standing:
    """Final regret of one policy on one problem, over trials."""

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
    """Final regret of `policy` minus that of `baseline`, in the same worlds of one problem."""

    problem: str
    policy: str
    baseline: str
    difference: Spread

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data; a single trial has no spread."""
        several = self.difference.trials > 1
        low, high = self.difference.interval if several else (None, None)
        return {
            "problem": self.problem,
            "policy": self.policy,
            "than": self.baseline,
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


def paper_claims(policies: Sequence[str]) -> list[Claim]:
    """Return the claims of the paper about these policies: IDS < TS, and TS < every baseline."""
    if "ts" not in policies:
        return []
    claims = [Claim("ids", "ts")] if "ids" in policies else []
    return claims + [Claim("ts", policy) for policy in policies if policy not in ("ids", "ts")]


def standings(final: pandas.DataFrame, measure: Measure = "regret") -> list[Standing]:
    """Summarise every policy on every problem, from the table of `Result.final`.

    Trials that a running simulation has not finished yet are omitted.
    """
    return [
        Standing(problem, policy, spread_of(table[policy].dropna()), measure)
        for problem, table in _by_problem(final)
        for policy in final.columns
        if table[policy].notna().any()
    ]


def differences(final: pandas.DataFrame, all_pairs: bool = False) -> list[Difference]:
    """Compare each policy with the first one, per problem, in the trials that both have.

    With `all_pairs`, compare each policy with all policies before it.
    """
    pairs = [
        (policy, baseline)
        for i, baseline in enumerate(final.columns)
        for policy in final.columns[i + 1 :]
        if all_pairs or not i
    ]
    return [
        Difference(problem, policy, baseline, spread_of(paired))
        for problem, table in _by_problem(final)
        for policy, baseline in pairs
        if len(paired := (table[policy] - table[baseline]).dropna())
    ]


def _by_problem(final: pandas.DataFrame) -> list[tuple[str, pandas.DataFrame]]:
    problems = dict.fromkeys(final.index.get_level_values("problem"))
    return [(problem, final.loc[problem]) for problem in problems]
