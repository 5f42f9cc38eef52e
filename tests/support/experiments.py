"""Small experiments, and changes to their stored events."""

from dataclasses import replace

from dowise import CausalGraph, Problem
from dowise.experiment.event import Event, as_body
from dowise.experiment.experiment import Experiment
from dowise.experiment.storage import MemoryStorage
from dowise.policies.base import allowed_arms, one_hot
from dowise.policies.decision import Decision

WARD = Problem(CausalGraph.parse("C -> X -> Z -> Y; C -> Y; W -> Y"), "Y", "C", "Z", arms="all")
"""Arms do(), do(X=…), do(W=…) and both; C is context, Z and Y are seen afterwards."""


def new_experiment(problem=WARD, policy="ids", options=None, seed=7, storage=None, **more):
    """Create an experiment, by default in memory."""
    options = {"samples": 50} if policy == "ids" and options is None else options
    storage = MemoryStorage() if storage is None else storage
    return Experiment.create(storage, "w", problem, policy, options, seed, **more)


def play_experiment(rounds=8, **settings):
    """Create an experiment with done, pending and amended decisions."""
    experiment = new_experiment(**settings)
    context = dict.fromkeys(experiment.problem.context, "1")
    for number in range(1, rounds + 1):
        asked = experiment.ask(context)
        label = str(number % 2)
        values = {name: label for name in experiment.problem.domains if name not in context}
        if number % 4 != 3:
            experiment.tell(asked.id, values | dict(asked.arm))
        if number % 4 == 2:
            experiment.amend(asked.id, {"Y": "1" if label == "0" else "0"}, "typo")
    return experiment


def stored_events(experiment):
    """Return the list of events in the store, to be changed."""
    return experiment._journal.storage._journals[experiment.name]


def rehash(events, start):
    """Correct numbers and hashes of all events from an index on."""
    for i in range(start, len(events)):
        before = events[i - 1] if i else None
        event = replace(events[i], number=i + 1)
        events[i] = replace(event, hash=event.expected_hash(before))


def with_payload(event, **changes):
    """Return an event with another payload."""
    return replace(event, body=as_body(event.payload | changes))


def head_text(event: Event) -> str:
    return f"{event.number}:{event.hash}"


class OrderDependentPolicy:
    """Custom policy whose decisions depend on the order of its records."""

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
