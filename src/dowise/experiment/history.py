"""How an experiment came where it is: P(best) and the regret of stopping along its journal.

The journal is folded once more from its start. At some points of it what was told by then is read
under the config that holds now, so that the numbers are comparable along the way; decisions were
made by what held then (`Experiment.explain`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise._core.codec import array_from_json, to_json
from dowise._core.document import pluralize
from dowise._core.validation import check_integer
from dowise.errors import import_extra
from dowise.experiment.counters import PlayCounts
from dowise.experiment.event import DamagedEventError, Event
from dowise.experiment.replay import PolicyReplay
from dowise.experiment.state import ExperimentState
from dowise.experiment.status import ArmsStatus, arms_status, contexts_of, draws_for
from dowise.policies.bayesian import BayesianPolicy
from dowise.problem import Intervention
from dowise.problem.problem import Context

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
        page: dict[str, Any] = to_json({**vars(self), "arms": [str(arm) for arm in self.arms]})
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
            array_from_json(page["weights"]),
            events,
            outcomes,
            imported,
            array_from_json(page["best"]).reshape(shape),
            array_from_json(page["mean"]).reshape(shape),
            array_from_json(page["stopping"]).reshape(shape[:2]),
        )


def history(
    name: str,
    learner: PolicyReplay,
    events: Iterable[Event],
    total: int,
    came: PlayCounts,
    context: Context = None,
    points: int = POINTS,
) -> History:
    """Fold the events, of which there are `total`, and look at so many points of them.

    `learner` has a policy with a belief, which has learned nothing yet; `came` says which contexts
    came how often.
    """
    points = check_integer("points", points, 2)
    problem, policy = learner.config.problem, learner.policy
    assert isinstance(policy, BayesianPolicy)
    if context is None:
        contexts = contexts_of(problem, came, MOST_CONTEXTS)
    else:
        contexts = [problem.context_labels(problem.context_codes(context))]
    draws = draws_for(policy.belief, points * len(contexts), _FEWEST, _MOST)
    then, at = ExperimentState(name), {round(number) for number in np.linspace(1, total, points)}
    rows: list[tuple[int, int, int, list[ArmsStatus]]] = []
    for event in events:
        then.apply_all([event])
        if event.number in at:
            learner.sync(then)
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


Page = Mapping[str, Any]


def event_in_words(event: Event) -> str:
    """What an event says, in a sentence.

    >>> says = {"decision": 2, "values": {"Y": "0"}, "before": {"Y": "1"}, "reason": "typo"}
    >>> event = next_event(None, "ward", "amended", "2026-01-01T00:00:00Z", "ann", says)
    >>> event_in_words(event)
    'Of decision 2, Y is 0 now; it was 1 (typo)'
    """
    if event.is_erased:
        return "What it said was erased"
    try:
        return _SENTENCES[event.kind](event.parsed())
    except (DamagedEventError, KeyError, TypeError, ValueError, AttributeError):
        return "It can't be read: run an audit"


def decision_of(event: Event) -> int | None:
    """The number of the decision that an event is about, if it is about one."""
    try:
        number = event.parsed().get("decision")
    except DamagedEventError:
        return None
    return number if isinstance(number, int) else None


def _created(says: Page) -> str:
    return f"The experiment began, with the policy {says['policy']}"


def _asked(says: Page) -> str:
    where = f" where {_pairs(says['context'])}" if says["context"] else ""
    few = "" if says["allowed"] is None else ", among fewer than all arms"
    return f"Decision {says['decision']}: {Intervention(says['arm'])}{where}{few}"


def _told(says: Page) -> str:
    told = f" {_pairs(says['values'])}" if says["values"] else ""
    return f"Of decision {says['decision']} was told{_instead(says)}{told}"


def _instead(says: Page) -> str:
    if "played" not in says:
        return ""
    if says["played"] is None:
        return " that it was done as decided;"
    unrelated = ", for a reason that had nothing to do with it" if says.get("unrelated") else ""
    return f" that {Intervention(says['played'])} was done instead{unrelated};"


def _amended(says: Page) -> str:
    before = says["before"]
    changes = [
        f"{name} is {_shown(label)} now; it was {_shown(before[name])}"
        if name in before
        else f"{name} is {_shown(label)} now"
        for name, label in says["values"].items()
    ]
    if "played" in says:
        changes.insert(0, f"it is corrected{_instead(says).rstrip(';')}")
    return f"Of decision {says['decision']}, {', '.join(changes)} ({says['reason']})"


def _withdrawn(says: Page) -> str:
    return f"Decision {says['decision']} was withdrawn ({says['reason']})"


def _revised(says: Page) -> str:
    return f"The experiment was revised; the policy is {says['policy']} ({says['reason']})"


def _imported(says: Page) -> str:
    source = f" from {says['source']}" if says["source"] else ""
    left = f", {pluralize(says['skipped'], 'bad row')} left out" if says["skipped"] else ""
    return f"{pluralize(says['records'], 'record')} came in{source}{left}"


def _erased(says: Page) -> str:
    return f"All that was said of decision {says['decision']} was erased ({says['reason']})"


def _pairs(values: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name}={_shown(label)}" for name, label in values.items())


def _shown(label: str | None) -> str:
    return "missing" if label is None else str(label)


_SENTENCES: Mapping[str, Callable[[Page], str]] = {
    "created": _created,
    "asked": _asked,
    "told": _told,
    "amended": _amended,
    "withdrawn": _withdrawn,
    "revised": _revised,
    "imported": _imported,
    "erased": _erased,
}
