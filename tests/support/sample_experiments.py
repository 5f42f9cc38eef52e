"""Sample experiments of all kinds, by name: functions that make one in a storage."""

from contextlib import contextmanager
from datetime import UTC, datetime

from dowise import CausalGraph, Problem, load_problem
from dowise.experiment import status
from dowise.experiment.experiment import Experiment
from dowise.experiment.storage import MemoryStorage
from support.played_experiments import play

WARD = Problem(CausalGraph.parse("C -> X -> Z -> Y; C -> Y; W -> Y"), "Y", "C", "Z", arms="all")
ODD = Problem(
    CausalGraph.parse('"body mass" -> "a, b" -> "=Y"; "body mass" -> "=Y"'),
    "=Y",
    "body mass",
    domains={"a, b": ['say "no"', "ja, gern", "é"]},
    reward_values={"0": -1e-7, "1": 1e9 / 3},
)
"""Names and labels that must be quoted in the texts of arms, and rewards of odd sizes."""
PRICED = Problem(
    CausalGraph.parse("X -> Y; W -> Y"),
    "Y",
    reward_values={"0": 10.0, "1": 60.0},
    minimise=True,
    costs={"X": 0.1, "do(W=1)": 3.0},
    forbidden=["do(W=0)"],
    arms="all",
)
DOUBTFUL = Problem(CausalGraph.parse("Z -> X -> Y; Z ?-> Y; X <-> Y"), "Y", non_manipulable="Z")
LARGE = Problem(
    CausalGraph.parse("; ".join(f"Z{i:02d} -> Y" for i in range(24)) + "; C -> Y; X -> Y"),
    "Y",
    "C",
    [f"Z{i:02d}" for i in range(24)],
    reward_values={"0": 0.0, "1": 8.0},
)


def create(storage, name, problem, policy="ids", options=None, seed=7):
    options = {"samples": 40} if policy == "ids" and options is None else options
    return Experiment.create(storage, name, problem, policy, options, seed)


def fresh(storage, name):
    return create(storage, name, WARD)


def eventful(storage, name):
    """Restricted, played otherwise, withdrawn, erased, amended, incomplete, pending, a batch."""
    experiment = create(storage, name, WARD, "ts", {"propensity_samples": 30})
    play(experiment, 6)
    batch = experiment.ask_many([{"C": 0}, {"C": 1}, {"C": 1}], "a batch/é", forbid=["do(X=1)"])
    other = {"played": "do(W=1)", "unrelated": True}
    experiment.tell(batch[0].id, {"X": 0, "Z": 1, "Y": 1}, **other)
    experiment.tell(batch[1].id, {"Z": None})
    experiment.withdraw(batch[1].id, "left")
    experiment.tell(batch[2].id, {"Y": 0})  # values that Y depends on are not known
    number = experiment.ask({"C": 1}, allowed=["do()", "do(X=0)"]).id
    experiment.tell(number, {"Y": 1, "Z": 0})
    experiment.amend(number, {"Y": 0, "C": 0}, "typo")
    experiment.amend(1, {}, "misheard", played="do(X=0, W=0)")
    experiment.erase(2, "asked to be forgotten")
    pending = experiment.ask({"C": 0}, "a request")
    experiment.tell(pending.id, {"Z": 1} if "Z" not in pending.arm else {})
    return experiment


def revised(storage, name):
    """Decisions of an earlier problem with other arms."""
    experiment = create(storage, name, WARD)
    play(experiment, 4)
    experiment.ask({"C": 1})
    fewer = Problem(CausalGraph.parse("C -> X -> Z -> Y; C -> Y; W -> Y"), "Y", "C", ("Z", "W"))
    experiment.revise(fewer, reason="W can't be set")
    play(experiment, 2)
    return experiment


def imported(storage, name):
    """Records that speak against the graph."""
    problem = Problem(CausalGraph.parse("Z; X -> Y"), "Y", non_manipulable="Z", arms="all")
    experiment = create(storage, name, problem)
    z = [i % 2 for i in range(80)]
    experiment.import_records({"Z": z, "X": [0, 0, 1, 1] * 20, "Y": z}, source="past.csv")
    play(experiment, 3)
    return experiment


def priced(storage, name):
    experiment = create(storage, name, PRICED)
    play(experiment, 8)
    return experiment


def doubtful(storage, name):
    experiment = create(storage, name, DOUBTFUL)
    play(experiment, 8)
    return experiment


def odd(storage, name):
    experiment = create(storage, name, ODD, "ucb", {})
    play(experiment, 7)
    experiment.ask({"body mass": 1}, allowed=['do("a, b"="ja, gern")', 'do("a, b"=é)'])
    return experiment


def large(storage, name):
    experiment = create(storage, name, LARGE, "ucb", {})
    for number in range(8):
        decision = experiment.ask({"C": number % 2})
        experiment.tell(decision.id, {"Y": number % 3 % 2})
    return experiment


def no_context(storage, name):
    experiment = create(storage, name, load_problem("task1"), "commit-kg", {})
    play(experiment, 5)
    return experiment


SAMPLES = {
    make.__name__: make
    for make in (fresh, eventful, revised, imported, priced, doubtful, odd, large, no_context)
}


def make_sample(kind):
    """Return a sample experiment in memory."""
    return SAMPLES[kind](MemoryStorage(), kind)


@contextmanager
def frozen_clock(monkeypatch):
    """Stop the clock, so that waiting times are the same."""
    with monkeypatch.context() as patch:
        patch.setattr(status, "now", lambda: datetime(2030, 1, 1, tzinfo=UTC))
        yield
