"""A round with everything in it, so that everything is compiled and loaded that a round needs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dowise.errors import DowiseError

if TYPE_CHECKING:
    from dowise.experiment.experiment import Experiment

__all__ = ["play_a_round"]


def play_a_round(experiment: Experiment) -> None:
    """Ask, tell in two pieces, amend, import, ask for several and look, where nothing was yet."""
    problem = experiment.problem
    first = {name: domain[0] for name, domain in problem.domains.items()}
    asked = experiment.ask({name: first[name] for name in problem.context})
    seen = {
        name: label
        for name, label in first.items()
        if name not in (*asked.context, *asked.arm, problem.reward)
    }
    if seen:
        experiment.tell(asked.id, seen)
    experiment.tell(asked.id, {problem.reward: first[problem.reward]})
    experiment.amend(asked.id, {problem.reward: problem.domains[problem.reward][-1]}, "a try")
    experiment.import_records({name: [label] for name, label in first.items()})
    experiment.ask_many([asked.context] * 2)
    with suppress(DowiseError):  # of a graph that is too large for some look, the others serve
        experiment.status()
        experiment.history(points=2)
        experiment.explain(asked.id)
        experiment.value_of_continuing(2, worlds=4)
