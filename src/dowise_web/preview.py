"""The jobs themselves: what a problem means, whether an experiment can begin, and a rehearsal.

They run in the process with limits. What they are told is plain JSON that somebody sent: nothing of
it is imported or opened, and numbers are checked against bounds.
"""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

from dowise._core.codec import to_json
from dowise._core.document import pluralize
from dowise._core.validation import check_integer, check_number
from dowise.errors import DowiseError, DowiseWarning, InputSyntaxError, join_names, suggestion
from dowise.experiment.advice import floor_advice, soft_advice
from dowise.graph import CausalGraph
from dowise.graph.formats import Structure, format_of, parse_structure
from dowise.plotting import picture
from dowise.plotting.svg import inline_svg, legend
from dowise.policies.registry import best_name, policy_names
from dowise.problem import Problem
from dowise.problem.arms import why_others_are_out
from dowise.problem.problem import MAX_ARMS
from dowise.problem.problem_file import (
    costs_in_words,
    doubts_in_words,
    parse_problem,
    problem_text,
    toml,
)
from dowise_web.sandbox import BadInputError, peak_megabytes

_LONGEST = 2_000  # characters of a message: it may quote all of the text
_TOML_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")
_GRAPH = re.compile(
    r"""^[ \t]*(?:graph|"graph"|'graph')[ \t]*=[ \t]*(\"""|'''|"|')""", re.MULTILINE
)
_PYTHONS_OWN = {
    "recursion depth": "brackets are nested too deeply",
    "set_int_max_str_digits": "a number is too long",
}
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_QUOTED = re.compile(r"'([^']+)'")
_WORD = re.compile(r"[A-Za-z_]+")
_KEY = r"^[ \t]*{}[ \t]*=|^[ \t]*\[{}\]"


class _Place(NamedTuple):
    line: int
    column: int


def placed(text: str, error: DowiseError, is_graph: bool = False) -> BadInputError:
    """The same error with its place in the text, which is a problem's or a graph alone."""
    message = str(error)
    for sign, said in _PYTHONS_OWN.items():
        message = f"not valid TOML: {said}" if sign in message else message
    place: _Place | None = None
    if isinstance(error, InputSyntaxError) and error.line is not None and error.column is not None:
        inside = _Place(error.line, error.column)
        place = inside if is_graph else _in_the_graph(text, inside)
        if place is not None:
            said = f"line {inside.line}, column {inside.column}"
            message = message.replace(said, f"line {place.line}, column {place.column}", 1)
    elif found := _TOML_PLACE.search(message):
        place = _Place(int(found[1]), int(found[2]))
    elif "(at end of document)" in message:
        place = _place_at(text, len(text.rstrip()))
    elif not is_graph:
        place = _of_what_is_quoted(text, message)
    short = message if len(message) <= _LONGEST else f"{message[:_LONGEST]} …"
    return BadInputError(short, "problem", *(place or (None, None)))


def _place_at(text: str, position: int) -> _Place:
    before = text[:position]
    return _Place(before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1)


def _in_the_graph(text: str, inside: _Place) -> _Place | None:
    """The place in the page of a place inside of the graph's text."""
    try:
        graph = tomllib.loads(text)["graph"]
    except (ValueError, KeyError, RecursionError):
        return None
    for found in _GRAPH.finditer(text):
        letters = list(_letters(text, found.end(), found[1]))
        if "".join(letter for letter, _ in letters) == graph:
            break
    else:
        return None
    lines = graph.split("\n")
    offset = sum(len(line) + 1 for line in lines[: inside.line - 1]) + inside.column - 1
    positions = [position for _, position in letters]
    end = positions[-1] + 1 if positions else found.end()
    return _place_at(text, positions[offset] if offset < len(positions) else end)


def _letters(text: str, position: int, quotes: str) -> Iterator[tuple[str, int]]:
    """The letters of a text in TOML that begins there, each with its place in the page."""
    mark, is_long, end = quotes[0], len(quotes) == 3, len(text)
    if is_long and text.startswith("\n", position):
        position += 1
    while position < end:
        if text.startswith(quotes, position):
            # Up to two quotes may stand before the three that end it.
            more = 0
            while is_long and text.startswith(mark, position + 3 + more):
                yield mark, position + more
                more += 1
            return
        letter = text[position]
        if letter != "\\" or mark == "'":
            yield letter, position
            position += 1
            continue
        code = text[position + 1 : position + 2]
        if code in ("u", "U"):
            digits = 4 if code == "u" else 8
            yield chr(int(text[position + 2 : position + 2 + digits], 16)), position
            position += 2 + digits
        elif code in _ESCAPES:
            yield _ESCAPES[code], position
            position += 2
        else:  # at the end of a line: it goes on where something stands
            position += 1
            while position < end and text[position].isspace():
                position += 1


def _of_what_is_quoted(text: str, message: str) -> _Place | None:
    """Where the first thing stands that the message quotes, or the key that it begins with."""
    for name in _QUOTED.findall(message)[:5]:
        whole = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])")
        found = [match for match in whole.finditer(text) if not _is_comment(text, match.start())]
        if len(found) == 1:
            return _place_at(text, found[0].start())
    for word in _WORD.findall(message.partition(":")[0])[:20]:
        keys = list(re.finditer(_KEY.format(word, word), text, re.MULTILINE))
        if len(keys) == 1:
            return _place_at(text, text.index(word, keys[0].start()))
    return None


def _is_comment(text: str, position: int) -> bool:
    """Whether a line's first sign is that of a comment."""
    start = text.rfind("\n", 0, position) + 1
    return text[start:position].lstrip().startswith("#")


_AS_TEXT = ".txt"  # an ending that says nothing: the content tells


def tidy(text: str) -> str:
    """With our line ends, which browsers change, and without the mark that editors put first."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def is_graph(text: str) -> bool:
    """Whether it is a graph by itself, in any of our formats."""
    kind = format_of("", text)
    return kind is not None and (kind != "text" or "=" not in text)


def read_problem(text: str) -> tuple[Problem, list[str]]:
    """The problem of a text, and what there is to say of it besides."""
    if not text.strip():
        raise BadInputError("there is nothing yet: write a problem, or begin with an example")
    if is_graph(text):
        graph = read_graph(text)
        raise BadInputError(f"{graph.in_words()} Write it into a problem: graph = and reward =.")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", DowiseWarning)
        try:
            problem = parse_problem(text, is_new=True)
        except DowiseError as error:
            raise placed(text, error) from None
        except RecursionError:
            raise BadInputError("brackets are nested too deeply") from None
    if len(problem.arms) > MAX_ARMS:  # which the text itself may allow
        raise BadInputError(
            f"there are {len(problem.arms):,} arms, and a server takes {MAX_ARMS:,} at most: "
            "make the graph or the domains smaller, or begin it with `dowise new`"
        )
    notes = [str(one.message) for one in said if issubclass(one.category, DowiseWarning)]
    return problem, notes


def read_graph(text: str) -> Graph:
    """A graph by itself."""
    try:
        return Graph(format_of("", text) or "text", parse_structure(_AS_TEXT, text))
    except DowiseError as error:
        raise placed(text, error, is_graph=True) from None


@dataclass(frozen=True)
class Graph:
    """A graph by itself, and what else its text says."""

    format: str
    structure: Structure

    @property
    def reward(self) -> str | None:
        """Which variable is the reward, where that is said."""
        outcomes = self.structure.outcomes
        return outcomes[0] if len(outcomes) == 1 else None

    @property
    def candidates(self) -> list[str]:
        """The variables that cause nothing, among which the reward is mostly found."""
        graph = self.structure.graph
        causes = {cause for cause, _ in graph.directed_edges}
        return [name for name in graph.variables if name not in causes]

    def in_words(self) -> str:
        """What it is, and what it lacks to be a problem."""
        known = {"text": "a graph", "GML": "a graph in GML", "BIF": "a network in BIF"}
        what = known.get(self.format, f"a graph in {self.format}")
        tables = " Its tables of probabilities are not taken over: an experiment learns them."
        perhaps = join_names(self.candidates[:5])
        return (
            f"This is {what} with {pluralize(len(self.structure.graph), 'variable')}. A problem also "
            f"says which variable is the reward (perhaps {perhaps}), which ones are seen before "
            "the choice (context), and which ones can't be set (non_manipulable)."
            f"{tables if self.format == 'BIF' else ''}"
        )

    def draft(self) -> str:
        """The text of a problem, as far as it is known."""
        structure = self.structure
        reward = "…" if self.reward is None else self.reward
        lines = [f"graph = {_drawn(structure.graph)}", f"reward = {toml(reward)}"]
        if self.reward is None:
            lines[-1] += "  # the variable to maximise"
        lines += ["# context = []          # seen before the choice"]
        if structure.exposures:
            lines += [f"manipulable = {toml(structure.exposures)}"]
        else:
            lines += ["# non_manipulable = []  # seen after the choice, and can't be set"]
        if structure.domains:
            lines += ["", "[domains]"]
            lines += [f"{toml(n)} = {toml(d)}" for n, d in structure.domains.items()]
        return "\n".join(lines) + "\n"


def _drawn(graph: CausalGraph) -> str:
    """The graph as a value of TOML, an edge a line unless names stand in the way."""
    text = graph.to_text()
    value = "'''\n" + text.replace("; ", "\n") + "\n'''"
    try:
        if CausalGraph.parse(tomllib.loads(f"graph = {value}")["graph"]) == graph:
            return value
    except (DowiseError, ValueError):
        pass
    return toml(text)


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
        "values": to_json(problem.reward_values),
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
    from dowise.experiment.config import ExperimentConfig

    start = perf_counter()
    is_held = job.get("is_held", False)
    problem, notes = (
        (parse_problem(job["text"]), []) if is_held else read_problem(tidy(job["text"]))
    )
    policy, options = _policy(job), _options(job)
    try:
        plan = ExperimentConfig.from_user(problem, policy, options, job["learn_restricted"])
        first = {name: problem.domains[name][0] for name in problem.context}
        plan.make_policy().decide(first, 0)
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
    from dowise.experiment.rehearsal import rehearse as play

    numbers = {name: _whole(job, name) for name in _MOST}
    tolerance = job["tolerance"]
    try:
        tolerance = tolerance if tolerance is None else check_number("tolerance", tolerance, 0)
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
    return {**found.as_dict(), "words": "\n".join(found.sentences())}


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
        return check_integer(name, job[name], _LEAST[name], _MOST[name])
    except DowiseError as error:
        raise BadInputError(str(error), name) from None
