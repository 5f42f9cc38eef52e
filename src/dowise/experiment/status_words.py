"""Where an experiment stands, in words: the sentences, one matter at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dowise.experiment.arms import ArmsStatus
from dowise.experiment.case import Case
from dowise.experiment.status import Status, waiting
from dowise.plain import amount, counted
from dowise.problem import Problem

__all__ = [
    "continuing_in_words",
    "duration",
    "graph_in_words",
    "lacking_in_words",
    "leader_in_words",
    "pending_in_words",
    "status_in_words",
    "tied",
]  # fmt: skip

_SHOWN, _NAMED = 10, 3  # pending decisions, arms that tie
_TIE = 1e-12  # means that are closer than this, as a share, are the same
_UNITS = (("day", 86_400), ("hour", 3600), ("minute", 60))


def status_in_words(status: Status, tolerance: float | None = None) -> str:
    """All that there is to say, a sentence or two a line."""
    lines = [f"{status.name}: {decisions_in_words(status)}."]
    for one in status.contexts:
        where = "" if not one.context else f"{context_text(one)}: "
        lines.append(f"{where}{leader_in_words(status, one)}")
    has_more = status.continuing is not None
    lines += [stopping_in_words(status, has_more), *continuing_in_words(status)]
    if tolerance is not None:
        lines.append(status.advice(tolerance))
    lines += pending_in_words(status)
    lines += lacking_in_words(status)
    lines += graph_in_words(status)
    return "\n".join([*lines, *status.notes])


def context_text(one: ArmsStatus) -> str:
    """ "C=1, D=low"."""
    return ", ".join(f"{name}={label}" for name, label in one.context.items())


def decisions_in_words(status: Status) -> str:
    """How many decisions there are, and of which kind."""
    counts = status.counts
    parts = [f"{counts['done']:,} with an outcome", f"{counts['pending']:,} pending"]
    parts += [f"{counts[kind]:,} {kind}" for kind in ("withdrawn", "erased") if counts[kind]]
    text = f"{counted(counts['asked'], 'decision')} ({', '.join(parts)})"
    if status.imported:
        brought = counted(status.imported, "imported record")
        text += f", {brought} (in the means; plays are decisions alone)"
    return f"{text}; the policy is {status.policy}"


def leader_in_words(status: Status, one: ArmsStatus) -> str:
    """Which arm looks best in a context, and how sure that is."""
    i, same = one.leader, tied(status.problem, one)
    mean, cost = amount(one.mean[i]), f"is expected to cost {amount(one.stopping)} a round"
    if len(same) == len(one.arms) > 1:
        return (
            f"Nothing tells the arms apart yet: all have a mean reward of {mean}, and always "
            f"playing one of them {cost}."
        )
    notes = ["smaller is better"] * status.problem.minimise
    notes += ["net of what it costs"] * status.problem.payoff.has_costs
    order = f" ({', '.join(notes)})" if notes else ""
    if len(same) > 1:
        return (
            f"{_arms_in_words(one, same)} tie for the best, each with a mean reward of "
            f"{mean}{order}; one of them is the best with probability {one.best[same].sum():.2g}, "
            f"and always playing one of them {cost}."
        )
    return (
        f"{one.arms[i]} looks best, with a mean reward of {mean}{order}; it is the best with "
        f"probability {one.best[i]:.2g}, and always playing it {cost}."
    )


def tied(problem: Problem, one: ArmsStatus) -> list[int]:
    """The arms whose mean is that of the arm that looks best, which is among them."""
    if one.are_alike:
        return list(range(len(one.arms)))
    scale = max(problem.payoff.span, float(np.abs(one.mean).max()))
    same: list[int] = np.flatnonzero(
        np.abs(one.mean - one.mean[one.leader]) <= _TIE * scale
    ).tolist()
    return same


def _arms_in_words(one: ArmsStatus, places: list[int]) -> str:
    if len(places) > _NAMED:
        return f"{len(places):,} of {counted(len(one.arms), 'arm')}"
    *first, last = (str(one.arms[i]) for i in places)
    return f"{', '.join(first)} and {last}"


def stopping_in_words(status: Status, has_more: bool = False) -> str:
    """What stopping now is expected to cost; `has_more` where it is said what more rounds gain."""
    over = f", {_weighed(status)}" if len(status.contexts) > 1 else ""
    cost = f"Expected regret of stopping now: {amount(status.stopping)} a round{over}."
    if has_more and status.problem.context:
        return cost  # what could be gained at most follows, over other contexts
    return f"{cost} No further experiment can gain more than that."


def continuing_in_words(status: Status) -> Iterator[str]:
    """What more rounds are worth, where that was asked for."""
    found = status.continuing
    if found is None:
        return
    if not found.explore:
        yield (
            f"Experimenting on in the next {counted(found.rounds, 'round')} is not expected to "
            "gain anything over staying with what looks best now."
        )
    else:
        how = "experiment in all of them"
        if found.explore < found.rounds:
            how = f"experiment in {found.explore:,} of them, then stay with what looks best"
        each = amount(found.value / found.rounds)
        yield (
            f"{counted(found.rounds, 'more round')} are expected to gain {amount(found.value)} ± "
            f"{amount(found.error)} in all, {each} a round, over staying with what looks best now: "
            f"{how}."
        )
    if found.policy != status.policy:
        yield (
            f"That is reckoned as if {found.policy} chose the arms from now on, since it is quick "
            f"to play out; the experiment itself goes on with {status.policy}."
        )
    if status.problem.context:
        yield (
            f"At most {amount(found.limit)} could be gained, {amount(found.limit / found.rounds)} "
            "a round. That is over the contexts as they are to be expected, and the cost of "
            f"stopping {_weighed(status)}: so the two may differ."
        )


def _weighed(status: Status) -> str:
    """Of which contexts the cost of stopping is that, and how much each counts."""
    if status.is_one_context:
        return "in this context alone"
    return "over the contexts as they came" if status.has_contexts else "over all contexts alike"


def pending_in_words(status: Status) -> Iterator[str]:
    """What has not been told yet, and for how long: the oldest first."""
    if status.pending:
        yield f"{counted(len(status.pending), 'decision')} pending, the oldest first:"
        yield from _first_of([pending_line(status, case) for case in status.pending])
    if status.incomplete:
        yield (
            f"{counted(len(status.incomplete), 'decision')} with an outcome that does not count "
            "before more is told:"
        )
        yield from _first_of([incomplete_line(status, case) for case in status.incomplete])


def _first_of(lines: list[str]) -> Iterator[str]:
    yield from (f"  {line}" for line in lines[:_SHOWN])
    if len(lines) > _SHOWN:
        yield f"  … and {len(lines) - _SHOWN:,} more"


def incomplete_line(status: Status, case: Case) -> str:
    """One decision of which something does not count yet."""
    return f"decision {case.id}, {case.arm}; not told: {', '.join(case.open(status.problem))}"


def pending_line(status: Status, case: Case) -> str:
    """One pending decision."""
    return (
        f"decision {case.id}, {case.arm}: for {duration(waiting(case))}; not told: "
        f"{', '.join(case.open(status.problem))}"
    )


def lacking_in_words(status: Status) -> Iterator[str]:
    """What does not count, or not as it should, and why."""
    restricted, instead = status.counts["restricted"], status.counts["played_otherwise"]
    if restricted:
        yield (
            f"{counted(restricted, 'decision')} made among fewer than all arms. Where what "
            "restricts the choice also affects the outcome and is not in the context, learning "
            "from them is biased."
        )
    if instead:
        yield (
            f"{counted(instead, 'decision')} where another arm was played: such have no "
            "propensity, and are learned from only if that had nothing to do with the unit."
        )
    for why, times in status.left_out.items():
        yield f"{counted(times, 'record')} left out: {why}."
    for name, reasons in status.unused.items():
        for why, times in reasons.items():
            yield f"{name} was not used in {counted(times, 'record')}: {why}."


def graph_in_words(status: Status) -> Iterator[str]:
    """How likely doubtful edges are, and what the records say against the graph."""
    if status.edges:
        each = ", ".join(f"{edge} ({chance:.2f})" for edge, chance in status.edges.items())
        yield f"How likely doubtful edges are to be there: {each}."
    if status.evidence is not None:
        yield from str(status.evidence).splitlines()
        if status.evidence.alarms:
            yield "`revise` takes a problem with these edges; docs/evidence.md tells more."


def duration(seconds: float) -> str:
    """ "3 days", "1 hour", "20 seconds"."""
    for unit, size in _UNITS:
        if seconds >= size:
            return counted(int(seconds // size), unit)
    return counted(int(seconds), "second")
