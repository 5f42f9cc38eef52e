"""What there is to see of a problem, as plain data: roles, arms, a picture, and our advice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dowise.errors import DowiseError
from dowise.experiment.advice import floor_advice, soft_advice
from dowise.picture import picture
from dowise.picture.svg import inline_svg, legend
from dowise.plain import plain
from dowise.policies.best import best_name
from dowise.problem import Problem
from dowise.problem.arms import why_others_are_out
from dowise.problem.problem_file import costs_in_words, doubts_in_words, problem_text
from dowise.service.workshop.texts import Graph

__all__ = ["describe", "describe_graph"]

_MOST_LISTED = 200  # arms, and intervention sets
_MOST_LETTERS = 100_000  # of a list: a thousand variables make long arms
_MOST_DRAWN = 150  # variables of a picture, and ten times as many edges: beyond, it is a blot
_MOST_EXPLAINED = 1_000  # variables that can be set: 2 to this power is still a number to be read


def describe(problem: Problem, notes: list[str]) -> dict[str, Any]:
    """The problem; `notes` are what there was to say when it was read.

    `made_of` is the format of a graph where the problem was drafted from one.
    """
    best, more = _best(problem)
    sets = [", ".join(sorted(names)) for names in problem.intervention_sets[:_MOST_LISTED]]
    return {
        "kind": "problem",
        "made_of": None,
        "name": problem.name,
        "description": problem.description,
        "problem": problem_text(problem),
        "reward": _reward(problem),
        "roles": _roles(problem),
        "domains": {**_listed(problem.domains), **_listed(problem.hidden_domains)},
        "forbidden": [str(one) for one in problem.forbidden],
        "costs": list(costs_in_words(problem)),
        "doubts": doubts_in_words(problem),
        "sets": {"kind": problem.arms_kind, "count": len(problem.intervention_sets),
                 "first": _short(sets)},
        "arms": {"count": len(problem.arms), "first": _arms(problem)},
        "why": _why(problem),
        "best": best,
        "advice": {"soft": _soft(problem), "floor": best and floor_advice(best, {})},
        "notes": notes + more,
        **_picture(problem),
    }  # fmt: skip


def describe_graph(graph: Graph) -> dict[str, Any]:
    """A graph alone: what it lacks, and a draft of the problem."""
    return {
        "kind": "graph",
        "made_of": graph.format,
        "variables": list(graph.structure.graph.variables),
        "candidates": graph.candidates,
        "problem": graph.draft(),
        "notes": [graph.in_words()],
    }


def _reward(problem: Problem) -> dict[str, Any]:
    domain, scaled = problem.domains[problem.reward], problem.payoff.scaled
    return {
        "name": problem.reward,
        "minimise": problem.minimise,
        "values": plain(problem.reward_values),
        "best": domain[scaled.argmax()],
        "worst": domain[scaled.argmin()],
    }


def _roles(problem: Problem) -> dict[str, str]:
    roles = {name: str(problem.role(name)) for name in problem.graph}
    return dict(sorted({**roles, **dict.fromkeys(problem.hidden, "hidden")}.items()))


def _listed(domains: Any) -> dict[str, list[str]]:
    return {name: list(labels) for name, labels in domains.items()}


def _arms(problem: Problem) -> list[dict[str, Any]]:
    arms = problem.arms[:_MOST_LISTED]
    costs = problem.payoff.costs.tolist() if problem.payoff.has_costs else [None] * len(arms)
    texts = _short(str(arm) for arm in arms)
    return [
        {"text": text, "words": arm.in_words(), **({} if cost is None else {"cost": cost})}
        for text, arm, cost in zip(texts, arms, costs, strict=False)
    ]


def _short(texts: Iterable[str]) -> list[str]:
    """The first ones, as many as can be read."""
    found: list[str] = []
    letters = 0
    for text in texts:
        letters += len(text)
        if letters > _MOST_LETTERS:
            break
        found.append(text)
    return found


def _why(problem: Problem) -> str | None:
    return why_others_are_out(problem) if len(problem.manipulable) <= _MOST_EXPLAINED else None


def _best(problem: Problem) -> tuple[str | None, list[str]]:
    """What we recommend; where that can't be, why."""
    try:
        return best_name(problem), []
    except DowiseError as error:
        return None, [str(error)]


def _soft(problem: Problem) -> dict[str, Any] | None:
    found = soft_advice(problem)
    return None if found is None else {**found.as_dict(), "text": str(found)}


def _picture(problem: Problem) -> dict[str, Any]:
    """The graph as SVG for the inside of a page, and its legend; nothing where it is too large."""
    graph = problem.graph
    if len(graph) > _MOST_DRAWN or len(graph.edge_texts) > 10 * _MOST_DRAWN:
        return {}
    drawn = picture(problem)
    entries = [{"label": one.label, "sample": one.sample} for one in legend(drawn)]
    return {"svg": inline_svg(drawn), "legend": entries}
