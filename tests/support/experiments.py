"""What tests of live experiments share: small experiments, and hands that change what is stored."""

from dataclasses import replace

from dowise import CausalGraph, Problem
from dowise.experiment.event import Event, as_body
from dowise.experiment.experiment import Experiment
from dowise.experiment.storage import MemoryStorage
from dowise.policies.base import allowed_arms, one_hot
from dowise.policies.decision import Decision

WARD = Problem(CausalGraph.parse("C -> X -> Z -> Y; C -> Y; W -> Y"), "Y", "C", "Z", arms="all")
"""Arms do(), do(X=…), do(W=…) and both; the context C is seen before, Z and Y after."""


def new(problem=WARD, policy="ids", options=None, seed=7, storage=None, **more):
    """A fresh experiment, in memory unless said."""
    options = {"samples": 50} if policy == "ids" and options is None else options
    storage = MemoryStorage() if storage is None else storage
    return Experiment.create(storage, "w", problem, policy, options, seed, **more)


def played(rounds=8, **settings):
    """An experiment with some rounds of all kinds in it."""
    experiment = new(**settings)
    context = dict.fromkeys(experiment.problem.context, "1")
    for number in range(1, rounds + 1):
        asked = experiment.ask(context)
        label = str(number % 2)
        seen = {name: label for name in experiment.problem.domains if name not in context}
        if number % 4 != 3:
            experiment.tell(asked.id, seen | dict(asked.arm))
        if number % 4 == 2:
            experiment.amend(asked.id, {"Y": "1" if label == "0" else "0"}, "typo")
    return experiment


def journal(experiment):
    """The list of stored events itself, for changing."""
    return experiment._journal.storage._journals[experiment.name]


def rehash(events, start):
    """Give all events from a place on the hashes that what they say now must have."""
    for i in range(start, len(events)):
        before = events[i - 1] if i else None
        event = replace(events[i], number=i + 1)
        events[i] = replace(event, hash=event.chained(before))


def saying(event, **changes):
    """An event that says something else."""
    return replace(event, body=as_body(event.payload | changes))


def head_text(event: Event) -> str:
    return f"{event.number}:{event.hash}"


class InOrder:
    """Only decides and observes, and what it decides depends on the order of what it saw."""

    def __init__(self, problem):
        self.problem, self.sum = problem, 0

    def decide(self, context=None, rng=None, allowed=None):  # noqa: ARG002
        arms = allowed_arms(self.problem, allowed)
        chosen = int(arms[self.sum % len(arms)])
        return Decision(self.problem.arms[chosen], one_hot(self.problem, chosen), "in order")

    def observe(self, arm, outcome):
        for text in (str(arm), *map(str, sorted(outcome.items()))):
            self.sum = (31 * self.sum + sum(text.encode())) % 1_000_003


def deciding_policy(experiment):
    """Return the policy that decides, after it has learned everything."""
    with experiment._journal.replayed() as (_, replay):
        return replay.policy
