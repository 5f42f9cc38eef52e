"""The jobs themselves: what a problem means, whether an experiment can begin, and a rehearsal.

They run in the process with limits. What they are told is plain JSON that somebody sent: nothing of
it is imported or opened, and numbers are checked against bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from dowise.checks import real_number, whole_number
from dowise.errors import DowiseError, suggestion
from dowise.policies.registry import policy_names
from dowise.problem.problem_file import parse_problem, problem_text
from dowise.service.workshop.describing import describe, describe_graph
from dowise.service.workshop.failures import BadInputError
from dowise.service.workshop.limits import peak_megabytes
from dowise.service.workshop.texts import is_graph, read_graph, read_problem, tidy

__all__ = ["JOBS", "begin", "preview", "rehearse"]

Progress = Callable[[int, int], None]
_Job = Mapping[str, Any]

_MOST = {"horizon": 100_000, "worlds": 1_000, "delay": 100_000, "looks": 200, "seed": 2**128 - 1}
_LEAST = {"horizon": 1, "worlds": 1, "delay": 0, "looks": 1, "seed": 0}


def preview(job: _Job, _progress: Progress) -> dict[str, Any]:
    """What there is to see of a problem before anything begins; of a graph alone a draft."""
    text = tidy(job["text"])
    if not is_graph(text):
        return describe(*read_problem(text))
    graph = read_graph(text)
    if graph.reward is None:
        return describe_graph(graph)
    problem, notes = read_problem(graph.draft())
    return {**describe(problem, notes), "made_of": graph.format}


def begin(job: _Job, _progress: Progress) -> dict[str, Any]:
    """Try all that an experiment does at its start: what passes here passes in the server."""
    from dowise.experiment.advice import floor_advice, soft_advice
    from dowise.experiment.plan import Plan

    start = perf_counter()
    is_held = job.get("is_held", False)
    problem, notes = (
        (parse_problem(job["text"]), []) if is_held else read_problem(tidy(job["text"]))
    )
    policy, options = _policy(job), _options(job)
    try:
        plan = Plan.of(problem, policy, options, job["learn_restricted"])
        first = {name: problem.domains[name][0] for name in problem.context}
        plan.make().decide(first, 0)
    except DowiseError as error:
        raise BadInputError(str(error), "policy") from None
    if is_held:
        return {"policy": plan.policy}
    soft = soft_advice(problem, plan.policy)
    return {
        "name": problem.name,
        "problem": problem_text(problem),
        "policy": plan.policy,
        "options": dict(plan.options),
        "learn_restricted": plan.learn_restricted,
        "arms": len(problem.arms),
        "notes": notes,
        "advice": {
            "soft": None if soft is None else {**soft.as_dict(), "text": str(soft)},
            "floor": floor_advice(plan.policy, plan.options),
        },
        "seconds": round(perf_counter() - start, 3),
        "megabytes": peak_megabytes(),
    }


def rehearse(job: _Job, progress: Progress) -> dict[str, Any]:
    """As `dowise rehearse`, and in words."""
    from dowise.experiment.rehearsing import rehearse as play

    numbers = {name: _whole(job, name) for name in _MOST}
    tolerance = job["tolerance"]
    try:
        tolerance = tolerance if tolerance is None else real_number("tolerance", tolerance, 0)
    except DowiseError as error:
        raise BadInputError(str(error), "tolerance") from None
    problem, _ = read_problem(tidy(job["text"]))
    policy, options = _policy(job), _options(job)
    prior = _prior(job["prior"])
    progress(0, numbers["worlds"])
    try:
        found = play(
            problem, policy=policy, options=options, prior=prior, tolerance=tolerance,
            progress=progress, **numbers,
        )  # fmt: skip
    except DowiseError as error:
        raise BadInputError(str(error), "policy") from None
    return {**found.as_dict(), "words": found.in_words()}


JOBS: dict[str, Callable[[_Job, Progress], dict[str, Any]]] = {
    "preview": preview,
    "begin": begin,
    "rehearse": rehearse,
}


def _policy(job: _Job) -> str:
    """The name of a policy that comes with dowise."""
    name, known = job["policy"], policy_names()
    if isinstance(name, str) and name in known:
        return name
    if isinstance(name, str) and ":" in name:
        raise BadInputError(
            f"{name!r:.80} is a policy of your own, and none is taken from a request: begin such "
            "an experiment where its code is, with `dowise new`",
            "policy",
        )
    close = suggestion(name[:80], known) if isinstance(name, str) else ""
    raise BadInputError(
        f"unknown policy {name!r:.80}{close}: there are {', '.join(known)}", "policy"
    )


def _options(job: _Job) -> dict[str, Any]:
    options = {} if job["options"] is None else job["options"]
    if not isinstance(options, dict):
        raise BadInputError('options must map names to values, {"floor": 0.1}', "options")
    return {**options, "prior": _prior(options["prior"])} if "prior" in options else options


def _prior(prior: Any) -> Any:
    """A prior in numbers: a text would be the path of a file."""
    if isinstance(prior, str):
        raise BadInputError(
            "the prior is a text, and no file is read here: give a number, or put counts into the "
            "problem's text under [prior]",
            "options",
        )
    return prior


def _whole(job: _Job, name: str) -> int:
    try:
        return whole_number(name, job[name], _LEAST[name], _MOST[name])
    except DowiseError as error:
        raise BadInputError(str(error), name) from None
