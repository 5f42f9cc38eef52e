"""Prior check: are the first rewards of an experiment within the range of its own prior?

Worlds are drawn from the prior, and in each of them the arms of the first decisions are played in
the same contexts. A mean reward outside of what nearly all of these worlds give shows that the
prior does not fit. Rewards alone often do not show what is wrong with the tables, so a check that
finds nothing proves nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np

from dowise._core.codec import JsonResult
from dowise._core.document import format_number
from dowise._core.types import FloatArray
from dowise.belief.predictive import draw_prior_worlds
from dowise.errors import DowiseError
from dowise.experiment.case import Case
from dowise.experiment.config import ExperimentConfig
from dowise.experiment.replay import exclusion_reason
from dowise.model import Codes, model_of
from dowise.model.model import with_first_value
from dowise.problem import Problem
from dowise.problem.prior import Prior

CHECKED = (20, 50)
"""Numbers of first rewards that are checked."""
WORLDS = 1000
_TAIL = 0.01  # of worlds on either side of the range
_MAX_ENTRIES, _MAX_WORK = 1e7, 2e8  # of all worlds: a fraction of a second
_MIN_WORLDS = 300
_BLOCK_NUMBERS = 2**22  # numbers that are held together
_ROUNDING = 1e-9

Play = tuple[Codes, int]
"""Codes of a context, and the index of an arm."""


@dataclass(frozen=True)
class PriorCheck(JsonResult):
    """First rewards that the prior of an experiment did not expect.

    Examples
    --------
    >>> PriorCheck(20, 0.86, 0.29, 0.71, is_flat=True).sentence()
    'The prior expected 0.29 to 0.71; the first 20 rewards average 0.86. \
Write prior = "pooled", or give counts.'
    """

    records: int
    """Number of first decisions with a reward."""
    mean: float
    """Mean of their rewards."""
    low: float
    """Lower end of the range in which it is in 98 % of the worlds of the prior."""
    high: float
    """Upper end of that range."""
    is_flat: bool
    """True if the prior is "flat" or a number: not pooled, and without counts by variable."""

    def sentence(self) -> str:
        """Return the finding, with advice if there is any."""
        expected = f"{format_number(self.low)} to {format_number(self.high)}"
        finding = (
            f"The prior expected {expected}; the first {self.records} rewards average "
            f"{format_number(self.mean)}."
        )
        return f'{finding} Write prior = "pooled", or give counts.' if self.is_flat else finding


def check_prior(config: ExperimentConfig, prior: Prior, cases: Iterable[Case]) -> PriorCheck | None:
    """Return the first rewards if the prior did not expect them, otherwise None.

    Decisions count if their reward is known and they are learned from, in the order in which the
    rewards were told.
    """
    first = list(islice(_rewards(config, cases), max(CHECKED)))
    text = json.dumps(prior, default=dict)
    for records in reversed(CHECKED):
        if len(first) < records:
            continue
        plays = Counter(play for play, _ in first[:records])
        expected = _expected_range(config.problem, text, tuple(sorted(plays.items())))
        if expected is None:
            return None
        low, high = expected
        mean = float(np.mean([reward for _, reward in first[:records]]))
        slack = _ROUNDING * config.problem.payoff.span
        if not low - slack <= mean <= high + slack:
            is_flat = prior == "flat" or isinstance(prior, int | float)
            return PriorCheck(records, mean, low, high, is_flat)
    return None


def _rewards(config: ExperimentConfig, cases: Iterable[Case]) -> Iterator[tuple[Play, float]]:
    """Yield the plays of decisions that count, and their rewards, in the order of arrival."""
    problem, name = config.problem, config.problem.reward
    indices = {arm: i for i, arm in enumerate(problem.arms)}
    told = [case for case in cases if case.status == "done" and name in case.told_at]
    for case in sorted(told, key=lambda case: case.told_at[name]):
        arm = indices.get(case.arm)
        if arm is None or exclusion_reason(case, config) is not None:
            continue
        try:
            codes = problem.context_codes({v: case.known[v] for v in problem.context})
            code = problem.domains[name].index(str(case.values[name]))
        except (DowiseError, KeyError, ValueError):  # under an earlier problem
            continue
        yield (codes, arm), float(problem.payoff.values[code])


@lru_cache(maxsize=256)
def _expected_range(
    problem: Problem, prior: str, plays: tuple[tuple[Play, int], ...]
) -> tuple[float, float] | None:
    """Return the range of the mean reward of these plays; None if it would take too long.

    The prior is JSON, and the number of each play is beside it.
    """
    model = model_of(problem)
    if not model.has_circuit:
        return None
    contexts = dict.fromkeys(codes for (codes, _), _ in plays)
    slots = model.circuit.slots
    worlds = int(
        min(WORLDS, _MAX_ENTRIES / model.factors.entries, _MAX_WORK / len(contexts) / slots)
    )
    if worlds < _MIN_WORLDS:
        return None
    rng = np.random.default_rng(0)
    entries = np.ascontiguousarray(draw_prior_worlds(problem, json.loads(prior), worlds, rng).T)
    together = max(1, _BLOCK_NUMBERS // slots)
    blocks = [entries[:, i : i + together] for i in range(0, worlds, together)]
    shares = {
        codes: with_first_value(
            np.concatenate([model.evaluated(block, codes) for block in blocks], axis=-1)
        )
        for codes in contexts
    }
    totals: FloatArray = np.zeros(worlds)
    for (codes, arm), times in plays:
        chances = np.clip(shares[codes][arm].T, 0, 1)
        outcomes = rng.multinomial(times, chances / chances.sum(axis=1, keepdims=True))
        totals += outcomes @ problem.payoff.values
    means = totals / sum(times for _, times in plays)
    low, high = np.quantile(means, [_TAIL, 1 - _TAIL], method="inverted_cdf").tolist()
    return low, high
