"""Why the other interventions are no arms, in a sentence or two."""

from __future__ import annotations

from itertools import combinations

from dowise.graph import CausalGraph
from dowise.graph.minimal import is_minimal
from dowise.problem.problem import Problem

__all__ = ["why_others_are_out"]


def why_others_are_out(problem: Problem) -> str:
    """Say what the arms leave out, and show it on one example.

    For any set S that is left out, the border of Y in the graph with S cut is a POMIS whose best
    arm is at least as good as the best arm on S (Lee & Bareinboim 2018): that one is the example.

    >>> from dowise.problem import load_problem
    >>> print(why_others_are_out(load_problem("healthcare")))
    The other 3 of 4 sets of variables are out: in every world with this graph some arm above does \
at least as well. For example, doing nothing never beats the best way of setting Diet and Treatment.
    """
    projected = problem.projection(problem.possible)
    if problem.arms_kind in ("custom", "all"):
        return _as_told(problem)
    if problem.arms_kind == "minimal":
        return _beyond_the_minimal(problem, projected)
    if problem.forbidden or problem.payoff.has_costs:
        return _if_all_were_free(problem)
    effective = projected.ancestors(problem.reward) - {problem.reward}
    if not effective:
        return (
            f"No variable that you can set has an effect on {problem.reward}, "
            "so do() is the only arm."
        )
    total = 2 ** len(problem.manipulable)
    out = total - len(problem.intervention_sets)
    if out == 0:
        return "No set of variables is left out: each of them can be optimal."
    lost = next(
        frozenset(chosen)
        for size in range(len(problem.manipulable) + 1)
        for chosen in combinations(problem.manipulable, size)
        if frozenset(chosen) not in problem.intervention_sets
    )
    better = projected.cut(lost).interventional_border(problem.reward)
    soft = " and any of the soft edges" if problem.soft is not None else ""
    context = ", in every context," if problem.context else ""
    where = f"in every world with this graph{soft}{context}"
    which = "The other set" if out == 1 else f"The other {out:,} of {total:,} sets of variables"
    return (
        f"{which} {'is' if out == 1 else 'are'} out: {where} some arm above does at least as well. "
        f"For example, {_doing(lost)} never beats "
        f"{'the best way of ' if better else ''}{_doing(better)}."
    )


def _as_told(problem: Problem) -> str:
    is_minimal_right = problem.forbidden or problem.payoff.has_costs
    which = "minimal" if is_minimal_right else "pomis"
    if problem.arms_kind == "custom":
        return (
            "These arms were chosen by hand; there may be better ones "
            f'(arms = "{which}" finds them).'
        )
    but = ", but for the forbidden ones" if problem.forbidden else ""
    keeps = "are as good" if is_minimal_right else "can be optimal"
    return f'These are all interventions{but}; arms = "{which}" would keep those that {keeps}.'


def _if_all_were_free(problem: Problem) -> str:
    """That POMISs were asked for where they do not suffice."""
    if problem.forbidden:
        return (
            "These are the permitted ones of the arms that could be optimal if nothing were "
            "forbidden. As it is there may be better ones: leave arms out, and they are found."
        )
    return (
        "These are the arms that could be optimal if nothing had a cost. As it is there may be "
        "better ones: leave arms out, and they are found."
    )


def _beyond_the_minimal(problem: Problem, projected: CausalGraph) -> str:
    """That setting more does no more, on an example: a set that is just not minimal."""
    said = "Whatever contains something forbidden is out. " if problem.forbidden else ""
    lost = frozenset(problem.manipulable)
    if is_minimal(projected, problem.reward, lost):
        return f"{said}No set of variables is left out: each variable matters in each of them."
    for name in problem.manipulable:
        if not is_minimal(projected, problem.reward, lost - {name}):
            lost -= {name}
    matters = lost & projected.cut(lost).ancestors(problem.reward)
    return (
        f"{said}In every other set of variables one makes no difference beside the others, so that "
        f"an arm above does the same. For example, {_doing(lost)} does no more than "
        f"{_doing(matters)}{' to the same' if matters else ''}."
    )


def _doing(names: frozenset[str]) -> str:
    if not names:
        return "doing nothing"
    ordered = sorted(names)
    listed = ", ".join(ordered[:-1]) + " and " + ordered[-1] if ordered[1:] else ordered[0]
    return f"setting {listed}"
