"""History of an experiment: how certain it was at some points of its journal.

The journal is folded again from its start. The records known at each point are read under today's
configuration, so that the numbers are comparable, although a decision may have been made under an
earlier one (`Experiment.explain`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dowise._core.codec import JsonResult, in_json
from dowise._core.types import FloatArray, IntArray
from dowise._core.validation import check_integer
from dowise.errors import import_extra
from dowise.experiment.counters import PlayCounts
from dowise.experiment.event import Event
from dowise.experiment.replay import PolicyReplay
from dowise.experiment.state import ExperimentState
from dowise.experiment.status import (
    ArmSummary,
    contexts_to_show,
    number_of_draws,
    summarize_arms,
)
from dowise.policies.bayesian import BayesianPolicy
from dowise.problem import Intervention
from dowise.problem.problem import Context

POINTS = 30
MAX_CONTEXTS = 4
MIN_DRAWS, MAX_DRAWS = 200, 2000  # at a point


@dataclass(frozen=True, eq=False)
class History(JsonResult):
    """Certainty of an experiment along its journal: arrays with a row for each point.

    Examples
    --------
    >>> from dowise import Experiment
    >>> from dowise.experiment.storage import MemoryStorage
    >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
    >>> decision = experiment.ask()
    >>> experiment.history(points=2).events.tolist()
    [1, 2]
    """

    arms: tuple[Intervention, ...] = field(
        metadata=in_json(
            encode=lambda arms, _: [str(arm) for arm in arms],
            decode=lambda data, _: tuple(map(Intervention.parse, data)),
        )
    )
    contexts: tuple[dict[str, str], ...]
    """The most frequent contexts, at most four."""
    weights: FloatArray
    """Share of the decisions so far of each of these contexts."""
    events: IntArray
    """Number of events at each point."""
    outcomes: IntArray
    """Number of decisions with an outcome."""
    imported: IntArray
    """Number of imported records."""
    best: FloatArray
    """Probability that each arm is the best: (points, contexts, arms)."""
    mean: FloatArray
    """Expected reward of each arm, net of cost: (points, contexts, arms)."""
    stopping: FloatArray
    """Expected loss per round of stopping then, in the user's units: (points, contexts)."""

    @property
    def expected_regret_of_stopping(self) -> FloatArray:
        """Expected loss per round of stopping, averaged over the contexts: one per point."""
        loss: FloatArray = self.stopping @ self.weights
        return loss

    def frame(self) -> Any:
        """Return a DataFrame with a row for each point, context and arm."""
        pandas = import_extra("pandas", "simulate", "a table")
        return pandas.DataFrame(
            {
                "events": self.events[t],
                "outcomes": self.outcomes[t],
                "imported": self.imported[t],
                **context,
                "arm": str(arm),
                "best": self.best[t, c, a],
                "mean": self.mean[t, c, a],
                "stopping": self.stopping[t, c],
            }
            for t in range(len(self.events))
            for c, context in enumerate(self.contexts)
            for a, arm in enumerate(self.arms)
        )


def compute_history(
    name: str,
    replay: PolicyReplay,
    events: Iterable[Event],
    total: int,
    plays: PlayCounts,
    context: Context = None,
    points: int = POINTS,
) -> History:
    """Fold `total` events, and summarize the arms at `points` of them.

    The belief of `replay` has learned nothing yet; `plays` has the numbers of past contexts.
    """
    points = check_integer("points", points, 2)
    problem, policy = replay.config.problem, replay.policy
    assert isinstance(policy, BayesianPolicy)
    if context is None:
        contexts = contexts_to_show(problem, plays, MAX_CONTEXTS)
    else:
        contexts = [problem.context_labels(problem.context_codes(context))]
    draws = number_of_draws(policy.deciding_belief, points * len(contexts), MIN_DRAWS, MAX_DRAWS)
    state = ExperimentState(name)
    numbers_of_points = {round(number) for number in np.linspace(1, total, points)}
    counts: list[tuple[int, int, int]] = []
    summaries: list[list[ArmSummary]] = []
    for event in events:
        state.apply_all([event])
        if event.number in numbers_of_points:
            replay.sync(state)
            finished = sum(case.status == "done" for case in state.cases.values())
            counts.append((event.number, finished, state.imported))
            summaries.append(
                [summarize_arms(policy.deciding_belief, labels, draws=draws) for labels in contexts]
            )
    numbers, outcomes, imported = np.array(counts).T
    return History(
        arms=problem.arms,
        contexts=tuple(contexts),
        weights=np.array(plays.shares(contexts)),
        events=numbers,
        outcomes=outcomes,
        imported=imported,
        best=np.array([[arms.best for arms in row] for row in summaries]),
        mean=np.array([[arms.mean for arms in row] for row in summaries]),
        stopping=np.array([[arms.stopping for arms in row] for row in summaries]),
    )
