"""How an experiment came where it is: P(best) and the regret of stopping along its journal.

The journal is folded once more from its start. At some points of it what was told by then is read
under the plan that holds now, so that the numbers are comparable along the way; decisions were made
by what held then (`Experiment.explain`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.checks import whole_number
from dowise.errors import import_extra
from dowise.experiment.arms import ArmsStatus, Came, arms_status, contexts_of, draws_for
from dowise.experiment.event import Event
from dowise.experiment.facts import Facts
from dowise.experiment.learner import Learner
from dowise.plain import numbers_from, plain
from dowise.policies.policy import BayesianPolicy
from dowise.problem import Intervention
from dowise.problem.problem import Context

__all__ = ["POINTS", "History", "history"]

POINTS = 30
MOST_CONTEXTS = 4
_FEWEST, _MOST = 200, 2000  # draws at a point

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class History:
    """Arrays with a row for each point of the journal."""

    arms: tuple[Intervention, ...]
    contexts: tuple[dict[str, str], ...]
    """Those that came most often, at most four."""
    weights: Floats
    """Their shares, of the decisions so far."""
    events: Integers
    """How many events there were at each point."""
    outcomes: Integers
    """How many decisions had an outcome."""
    imported: Integers
    """How many records had been brought in."""
    best: Floats
    """How likely each arm was to be the best: (points, contexts, arms)."""
    mean: Floats
    """What each arm was expected to bring, net of cost: (points, contexts, arms)."""
    stopping: Floats
    """What stopping there was expected to cost a round, in the user's units: (points, contexts)."""

    @property
    def expected_regret_of_stopping(self) -> Floats:
        """Over the contexts as they came: one number for each point."""
        cost: Floats = self.stopping @ self.weights
        return cost

    def frame(self) -> Any:
        """A pandas table: events, outcomes, imported, the context, arm, best, mean, stopping."""
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

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        page: dict[str, Any] = plain({**vars(self), "arms": [str(arm) for arm in self.arms]})
        return page

    @classmethod
    def from_dict(cls, page: Mapping[str, Any]) -> History:
        """The way back from `as_dict`."""
        arms, contexts = page["arms"], page["contexts"]
        events, outcomes, imported = (
            np.array(page[name], dtype=np.int64) for name in ("events", "outcomes", "imported")
        )
        shape = len(events), len(contexts), len(arms)
        return cls(
            tuple(map(Intervention.parse, arms)),
            tuple(dict(context) for context in contexts),
            numbers_from(page["weights"]),
            events,
            outcomes,
            imported,
            numbers_from(page["best"]).reshape(shape),
            numbers_from(page["mean"]).reshape(shape),
            numbers_from(page["stopping"]).reshape(shape[:2]),
        )


def history(
    name: str,
    learner: Learner,
    events: Iterable[Event],
    total: int,
    came: Came,
    context: Context = None,
    points: int = POINTS,
) -> History:
    """Fold the events, of which there are `total`, and look at so many points of them.

    `learner` has a policy with a belief, which has learned nothing yet; `came` says which contexts
    came how often.
    """
    points = whole_number("points", points, 2)
    problem, policy = learner.plan.problem, learner.policy
    assert isinstance(policy, BayesianPolicy)
    if context is None:
        contexts = contexts_of(problem, came, MOST_CONTEXTS)
    else:
        contexts = [problem.context_labels(problem.context_codes(context))]
    draws = draws_for(policy.belief, points * len(contexts), _FEWEST, _MOST)
    then, at = Facts(name), {round(number) for number in np.linspace(1, total, points)}
    rows: list[tuple[int, int, int, list[ArmsStatus]]] = []
    for event in events:
        then.apply_all([event])
        if event.number in at:
            learner.follow(then)
            looks = [arms_status(policy.belief, one, draws=draws) for one in contexts]
            done = sum(case.status == "done" for case in then.cases.values())
            rows.append((event.number, done, then.imported, looks))
    return History(
        problem.arms,
        tuple(contexts),
        np.array(came.shares(contexts)),
        np.array([row[0] for row in rows]),
        np.array([row[1] for row in rows]),
        np.array([row[2] for row in rows]),
        np.array([[look.best for look in row[3]] for row in rows]),
        np.array([[look.mean for look in row[3]] for row in rows]),
        np.array([[look.stopping for look in row[3]] for row in rows]),
    )
