"""From a table of results to numbers: curves, final regrets, paired differences, verdicts.

Reads nothing but the table that a race wrote. Intervals are Student's, at 95 %; of fewer than ten
trials nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas

__all__ = ["Claim", "Curve", "Spread", "claims", "curves", "spread_of"]

FEWEST_TRIALS = 10
Floats = NDArray[np.float64]
Verdict = Literal["holds", "does not hold", "not shown"]


def student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t: Cornish and Fisher's expansion, Hill (1970).

    To 1e-3 from five degrees of freedom on.
    """
    z, n = 1.959963984540054, float(freedom)
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * n**4)
    )


@dataclass(frozen=True)
class Spread:
    """A mean over trials with its standard error."""

    mean: float
    error: float
    trials: int

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval; everything where there is one trial only."""
        if self.trials < 2:
            return -np.inf, np.inf
        width = student(self.trials - 1) * self.error
        return self.mean - width, self.mean + width


@dataclass(frozen=True, eq=False)
class Curve:
    """Of one policy: the cumulative regret at each round kept, over trials."""

    policy: str
    rounds: NDArray[np.int64]
    mean: Floats
    deviation: Floats
    """The standard deviation across trials."""
    trials: int

    def band(self, kind: Literal["se", "sd"]) -> tuple[Floats, Floats]:
        """Two standard errors or, as in the paper, two standard deviations around the mean."""
        width = 2 * self.deviation / (np.sqrt(self.trials) if kind == "se" else 1.0)
        return self.mean - width, self.mean + width


@dataclass(frozen=True)
class Claim:
    """That one policy has less regret than another, and what the paired differences say."""

    less: str
    more: str
    difference: Spread
    """Regret of `less` minus that of `more`, in the same worlds."""

    @property
    def verdict(self) -> Verdict:
        """Whether the interval of the difference is below 0, above it, or neither."""
        if self.difference.trials < FEWEST_TRIALS:
            return "not shown"
        low, high = self.difference.interval
        return "holds" if high < 0 else "does not hold" if low > 0 else "not shown"


def spread_of(values: Floats | pandas.Series[float]) -> Spread:
    """The mean and its standard error."""
    numbers = np.asarray(values, dtype=np.float64)
    error = numbers.std(ddof=1) / np.sqrt(len(numbers)) if len(numbers) > 1 else np.nan
    return Spread(float(numbers.mean()), float(error), len(numbers))


def curves(frame: pandas.DataFrame, policies: Sequence[str]) -> list[Curve]:
    """One curve for each policy, from the rows of one problem."""
    found = []
    for policy in policies:
        rows = frame[frame["policy"] == policy]
        rounds = np.unique(rows["round"])
        table = rows.sort_values(["trial", "round"])["regret"].to_numpy().reshape(-1, len(rounds))
        deviation = table.std(axis=0, ddof=1) if len(table) > 1 else np.zeros(len(rounds))
        found.append(Curve(policy, rounds, table.mean(axis=0), deviation, len(table)))
    return found


def claims(final: pandas.DataFrame) -> list[Claim]:
    """The paper's: IDS below TS, and TS below every baseline. Columns are policies."""
    pairs = [("ids", "ts")] if {"ids", "ts"} <= {*final.columns} else []
    if "ts" in final.columns:
        pairs += [("ts", other) for other in final.columns if other not in ("ids", "ts")]
    return [
        Claim(less, more, spread_of(final[less].to_numpy() - final[more].to_numpy()))
        for less, more in pairs
    ]
