"""A belief that learns the journal for looks alone, beside whoever decides.

It may take a while to catch up: the first time, after a revision, or with evidence. So it learns
outside of the journal's lock, and nobody has to wait for it but others who look by the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from dowise.belief import Belief
from dowise.experiment.facts import Facts, News, Place
from dowise.experiment.learner import Learner
from dowise.experiment.looking import policy_for_looks
from dowise.experiment.plan import Plan
from dowise.policies.policy import BayesianPolicy

__all__ = ["Looker"]


class Looker:
    """Follows an experiment, whatever its plan; to be held before the journal's lock is taken."""

    def __init__(self, read_import: Callable[[int], dict[str, Any]], evidence: bool) -> None:
        self._read_import, self._evidence = read_import, evidence
        self._lock = Lock()
        self._forget()

    def _forget(self) -> None:
        self._plan: Plan | None = None
        self._learner: Learner | None = None
        self._place = Place()

    @contextmanager
    def held(self) -> Iterator[Looker]:
        """For one look: take the `news` under the journal's lock, then `learn` them outside."""
        with self._lock:
            try:
                yield self
            except BaseException:  # perhaps half-way
                self._forget()
                raise

    def news(self, facts: Facts) -> News:
        """What it does not know yet: all there is where another plan holds now."""
        if self._plan is not facts.plan:
            self._forget()
            self._plan = facts.plan
        return self._place.news(facts)

    def learn(self, news: News) -> Belief:
        """What is known with these: not to be changed, nor kept."""
        assert self._plan is not None
        if self._learner is None:
            policy = policy_for_looks(self._plan, self._evidence)
            self._learner = Learner(self._plan, policy, self._read_import)
        self._learner.learn(news)
        assert isinstance(self._learner.policy, BayesianPolicy)
        return self._learner.policy.belief
