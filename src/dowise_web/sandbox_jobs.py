"""Jobs of the sandbox: preview a problem, try an experiment, rehearse it.

They run in a worker process. Their input is plain JSON from a user: nothing in it is imported or
opened, and numbers are checked against bounds.
"""

from __future__ import annotations

import re
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from time import perf_counter
from typing import Any, NamedTuple

from dowise._core.document import pluralize
from dowise.errors import DowiseError, DowiseWarning, InputSyntaxError, join_names, suggestion
from dowise.experiment import floor_advice, soft_advice, to_json
from dowise.graph import CausalGraph
from dowise.graph.formats import Structure, format_of, parse_structure
from dowise.plotting import inline_svg, legend, picture
from dowise.policies import best_name, policy_names
from dowise.problem import (
    MAX_ARMS,
    Problem,
    describe_costs,
    describe_edge_priors,
    explain_excluded_arms,
    is_prior_name,
    parse_problem,
    problem_text,
    toml,
)
from dowise_web.sandbox import BadInputError, Progress

MAX_MESSAGE = 2_000  # characters: a message may quote all of the text
_TOML_LOCATION = re.compile(r"\(at line (\d+), column (\d+)\)")
_GRAPH_KEY = re.compile(
    r"""^[ \t]*(?:graph|"graph"|'graph')[ \t]*=[ \t]*(\"""|'''|"|')""", re.MULTILINE
)
_PYTHON_MESSAGES = {
    "recursion depth": "brackets are nested too deeply",
    "set_int_max_str_digits": "a number is too long",
}
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_QUOTED = re.compile(r"'([^']+)'")
_WORD = re.compile(r"[A-Za-z_]+")
_KEY = r"^[ \t]*{}[ \t]*=|^[ \t]*\[{}\]"


class _Location(NamedTuple):
    line: int
    column: int


def locate(text: str, error: DowiseError, is_graph: bool = False) -> BadInputError:
    """Return an error with its location in the text of a problem, or of a graph alone."""
    message = str(error)
    for sign, meaning in _PYTHON_MESSAGES.items():
        message = f"not valid TOML: {meaning}" if sign in message else message
    location: _Location | None = None
    if isinstance(error, InputSyntaxError) and error.line is not None and error.column is not None:
        in_graph = _Location(error.line, error.column)
        location = in_graph if is_graph else _locate_in_graph(text, in_graph)
        if location is not None:
            quoted = f"line {in_graph.line}, column {in_graph.column}"
            message = message.replace(quoted, f"line {location.line}, column {location.column}", 1)
    elif match := _TOML_LOCATION.search(message):
        location = _Location(int(match[1]), int(match[2]))
    elif "(at end of document)" in message:
        location = _location_at(text, len(text.rstrip()))
    elif not is_graph:
        location = _locate_quoted(text, message)
    short = message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]} …"
    return BadInputError(short, "problem", *(location or (None, None)), code=error.code)


def _location_at(text: str, position: int) -> _Location:
    before = text[:position]
    return _Location(before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1)


def _locate_in_graph(text: str, in_graph: _Location) -> _Location | None:
    """Translate a location in the graph, which is a string in the problem."""
    try:
        graph = tomllib.loads(text)["graph"]
    except (ValueError, KeyError, RecursionError):
        return None
    for match in _GRAPH_KEY.finditer(text):
        letters = list(_toml_letters(text, match.end(), match[1]))
        if "".join(letter for letter, _ in letters) == graph:
            break
    else:
        return None
    lines = graph.split("\n")
    offset = sum(len(line) + 1 for line in lines[: in_graph.line - 1]) + in_graph.column - 1
    positions = [position for _, position in letters]
    end = positions[-1] + 1 if positions else match.end()
    return _location_at(text, positions[offset] if offset < len(positions) else end)


def _toml_letters(text: str, position: int, quotes: str) -> Iterator[tuple[str, int]]:
    """Yield the characters of a TOML string that starts here, each with its position."""
    mark, is_multiline, end = quotes[0], len(quotes) == 3, len(text)
    if is_multiline and text.startswith("\n", position):
        position += 1
    while position < end:
        if text.startswith(quotes, position):
            # Up to two quotes may precede the three that end it.
            more = 0
            while is_multiline and text.startswith(mark, position + 3 + more):
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
        else:  # a line continuation: skip white space
            position += 1
            while position < end and text[position].isspace():
                position += 1


def _locate_quoted(text: str, message: str) -> _Location | None:
    """Locate the first name that the message quotes, or the key that it starts with."""
    for name in _QUOTED.findall(message)[:5]:
        pattern = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])")
        matches = [m for m in pattern.finditer(text) if not _is_in_comment(text, m.start())]
        if len(matches) == 1:
            return _location_at(text, matches[0].start())
    for word in _WORD.findall(message.partition(":")[0])[:20]:
        keys = list(re.finditer(_KEY.format(word, word), text, re.MULTILINE))
        if len(keys) == 1:
            return _location_at(text, text.index(word, keys[0].start()))
    return None


def _is_in_comment(text: str, position: int) -> bool:
    start = text.rfind("\n", 0, position) + 1
    return text[start:position].lstrip().startswith("#")


_NO_EXTENSION = ".txt"  # the content tells the format


def normalize(text: str) -> str:
    """Remove a byte order mark, and the line ends of browsers and Windows."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def is_graph(text: str) -> bool:
    """Return True if a text is a graph alone, in any format."""
    kind = format_of("", text)
    return kind is not None and (kind != "text" or "=" not in text)


@contextmanager
def _recorded_notes() -> Iterator[list[str]]:
    """Collect warnings of dowise as notes; a worker has only one thread that warns."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always", DowiseWarning)
        try:
            yield notes
        finally:
            notes += [
                str(warning.message)
                for warning in recorded
                if issubclass(warning.category, DowiseWarning)
            ]


def read_problem(text: str) -> Problem:
    """Read a problem; warnings are left to `_recorded_notes`."""
    if not text.strip():
        raise BadInputError(
            "the text is empty: write a problem, or start with an example", code="missing-value"
        )
    if is_graph(text):
        graph = read_graph(text)
        raise BadInputError(
            f"{graph.summary()} Add it to a problem, with graph = and reward =.",
            code="missing-value",
        )
    try:
        problem = parse_problem(text, is_new=True)
    except DowiseError as error:
        raise locate(text, error) from None
    except RecursionError:
        raise BadInputError("brackets are nested too deeply", code="syntax-error") from None
    if len(problem.arms) > MAX_ARMS:  # the text itself may allow more
        raise BadInputError(
            f"the problem has {len(problem.arms):,} arms, and a server accepts at most "
            f"{MAX_ARMS:,}: make the graph or the domains smaller, or create it with `dowise new`",
            code="too-large",
        )
    return problem


def read_graph(text: str) -> Graph:
    """Read a graph alone."""
    try:
        return Graph(format_of("", text) or "text", parse_structure(_NO_EXTENSION, text))
    except DowiseError as error:
        raise locate(text, error, is_graph=True) from None


@dataclass(frozen=True)
class Graph:
    """A graph alone, with what else its text says."""

    format: str
    structure: Structure

    @property
    def reward(self) -> str | None:
        """The reward, if the text names it."""
        outcomes = self.structure.outcomes
        return outcomes[0] if len(outcomes) == 1 else None

    @property
    def candidates(self) -> list[str]:
        """Variables without effects: usually the reward is one of them."""
        graph = self.structure.graph
        causes = {cause for cause, _ in graph.directed_edges}
        return [name for name in graph.variables if name not in causes]

    def summary(self) -> str:
        """Describe the graph, and what a problem needs beyond it."""
        names = {"text": "a graph", "GML": "a graph in GML", "BIF": "a network in BIF"}
        kind = names.get(self.format, f"a graph in {self.format}")
        tables = " Its probability tables are not used: an experiment learns them."
        perhaps = join_names(self.candidates[:5])
        return (
            f"This is {kind} with {pluralize(len(self.structure.graph), 'variable')}. A problem "
            f"also names the variable that is the reward (perhaps {perhaps}), those known before "
            "the choice (context), and those that can't be set (non_manipulable)."
            f"{tables if self.format == 'BIF' else ''}"
        )

    def draft(self) -> str:
        """Return the draft of a problem."""
        structure = self.structure
        reward = "…" if self.reward is None else self.reward
        lines = [f"graph = {_graph_to_toml(structure.graph)}", f"reward = {toml(reward)}"]
        if self.reward is None:
            lines[-1] += "  # the variable to maximise"
        lines += ["# context = []          # known before the choice"]
        if structure.exposures:
            lines += [f"manipulable = {toml(structure.exposures)}"]
        else:
            lines += ["# non_manipulable = []  # seen after the choice; can't be set"]
        if structure.domains:
            lines += ["", "[domains]"]
            lines += [f"{toml(n)} = {toml(d)}" for n, d in structure.domains.items()]
        return "\n".join(lines) + "\n"


def _graph_to_toml(graph: CausalGraph) -> str:
    """Return the graph as a TOML string, one edge per line unless a name prevents it."""
    text = graph.to_text()
    value = "'''\n" + text.replace("; ", "\n") + "\n'''"
    try:
        if CausalGraph.parse(tomllib.loads(f"graph = {value}")["graph"]) == graph:
            return value
    except (DowiseError, ValueError):
        pass
    return toml(text)


MAX_LISTED = 200  # arms, and intervention sets
MAX_LIST_LENGTH = 100_000  # characters: arms on a thousand variables are long
MAX_DRAWN = 150  # variables of a picture, and ten times as many edges: beyond, it is unreadable
MAX_EXPLAINED = 1_000  # variables that can be set: 2 to this power can still be printed


def describe(problem: Problem, notes: list[str]) -> dict[str, Any]:
    """Describe a problem; `made_of` is the format of the graph that it was drafted from."""
    best, more = _best(problem)
    few_sets = len(problem.manipulable) <= MAX_EXPLAINED
    sets = [", ".join(sorted(names)) for names in problem.intervention_sets[:MAX_LISTED]]
    return {
        "kind": "problem",
        "made_of": None,
        "name": problem.name,
        "description": problem.description,
        "problem": problem_text(problem),
        "reward": _reward(problem),
        "roles": _roles(problem),
        "domains": {
            name: list(labels)
            for name, labels in {**problem.domains, **problem.hidden_domains}.items()
        },
        "forbidden": [str(assignment) for assignment in problem.forbidden],
        "costs": list(describe_costs(problem)),
        "doubts": describe_edge_priors(problem),
        "sets": {
            "kind": problem.arms_kind,
            "count": len(problem.intervention_sets),
            "first": _shorten(sets),
        },
        "arms": {"count": len(problem.arms), "first": _arms(problem)},
        "why": explain_excluded_arms(problem) if few_sets else None,
        "best": best,
        "advice": {"soft": _soft_advice(problem), "floor": best and floor_advice(best, {})},
        "notes": notes + more,
        **_picture(problem),
    }


def describe_graph(graph: Graph) -> dict[str, Any]:
    """Describe a graph alone: what is missing, and the draft of a problem."""
    return {
        "kind": "graph",
        "made_of": graph.format,
        "variables": list(graph.structure.graph.variables),
        "candidates": graph.candidates,
        "problem": graph.draft(),
        "notes": [graph.summary()],
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


def _arms(problem: Problem) -> list[dict[str, Any]]:
    arms = problem.arms[:MAX_LISTED]
    costs = problem.payoff.costs.tolist() if problem.payoff.has_costs else [None] * len(arms)
    texts = _shorten(str(arm) for arm in arms)
    return [
        {"text": text, "words": arm.in_words(), **({} if cost is None else {"cost": cost})}
        for text, arm, cost in zip(texts, arms, costs, strict=False)
    ]


def _shorten(texts: Iterable[str]) -> list[str]:
    """Return the first texts, up to `MAX_LIST_LENGTH` characters in all."""
    shortened: list[str] = []
    length = 0
    for text in texts:
        length += len(text)
        if length > MAX_LIST_LENGTH:
            break
        shortened.append(text)
    return shortened


def _best(problem: Problem) -> tuple[str | None, list[str]]:
    """Return the recommended policy, or None and the reason."""
    try:
        return best_name(problem), []
    except DowiseError as error:
        return None, [str(error)]


def _soft_advice(problem: Problem, policy: str | None = None) -> dict[str, Any] | None:
    advice = soft_advice(problem) if policy is None else soft_advice(problem, policy)
    return None if advice is None else {**advice.as_dict(), "text": str(advice)}


def _picture(problem: Problem) -> dict[str, Any]:
    """Return the graph as SVG for a page, with its legend; nothing if it is too large."""
    graph = problem.graph
    if len(graph) > MAX_DRAWN or len(graph.edge_texts) > 10 * MAX_DRAWN:
        return {}
    drawn = picture(problem)
    entries = [{"label": entry.label, "sample": entry.sample} for entry in legend(drawn)]
    return {"svg": inline_svg(drawn), "legend": entries}


_Job = Mapping[str, Any]
_BOUNDS = {
    "horizon": (1, 100_000),
    "worlds": (1, 1_000),
    "delay": (0, 100_000),
    "looks": (1, 200),
    "seed": (0, 2**128 - 1),
}
"""Least and greatest number of each setting of a rehearsal."""


def preview(job: _Job, _progress: Progress) -> dict[str, Any]:
    """Describe a problem, or draft one from a graph alone."""
    text, made_of = normalize(job["text"]), None
    if is_graph(text):
        graph = read_graph(text)
        if graph.reward is None:
            return describe_graph(graph)
        text, made_of = graph.draft(), graph.format
    with _recorded_notes() as notes:
        problem = read_problem(text)
    return {**describe(problem, notes), "made_of": made_of}


def begin(job: _Job, _progress: Progress) -> dict[str, Any]:
    """Try all that an experiment does at its start: what passes here passes in the server."""
    from dowise.experiment import ExperimentConfig

    start = perf_counter()
    is_current = job.get("is_current", False)
    with _recorded_notes() as notes:
        problem = parse_problem(job["text"]) if is_current else read_problem(normalize(job["text"]))
        policy, options = _policy(job), _options(job)
        try:
            config = ExperimentConfig.from_user(problem, policy, options, job["learn_restricted"])
            first = {name: problem.domains[name][0] for name in problem.context}
            config.make_policy().decide(first, 0)
        except DowiseError as error:
            raise BadInputError(str(error), "policy", code=error.code) from None
    if is_current:
        return {"policy": config.policy}
    return {
        "name": problem.name,
        "problem": problem_text(problem),
        "policy": config.policy,
        "options": dict(config.options),
        "learn_restricted": config.learn_restricted,
        "arms": len(problem.arms),
        "notes": notes,
        "advice": {
            "soft": _soft_advice(problem, config.policy),
            "floor": floor_advice(config.policy, config.options),
        },
        "seconds": round(perf_counter() - start, 3),
        "megabytes": _peak_megabytes(),
    }


def _peak_megabytes() -> float | None:
    try:
        import resource
    except ImportError:
        return None
    per_megabyte = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / per_megabyte


def rehearse(job: _Job, progress: Progress) -> dict[str, Any]:
    """Rehearse an experiment, as `dowise rehearse` does; `words` has the result as text."""
    from dowise.experiment import rehearse as run

    numbers = {name: _whole_number(job, name) for name in _BOUNDS}
    tolerance = job["tolerance"]
    is_number = isinstance(tolerance, int | float) and not isinstance(tolerance, bool)
    if tolerance is not None and not (is_number and isfinite(tolerance) and tolerance >= 0):
        raise BadInputError(
            f"tolerance={tolerance!r:.80} must be a number of at least 0",
            "tolerance",
            code="invalid-number",
        )
    problem = read_problem(normalize(job["text"]))
    policy, options = _policy(job), _options(job)
    prior = _prior(job["prior"])
    progress(0, numbers["worlds"])
    try:
        rehearsal = run(
            problem,
            policy=policy,
            options=options,
            prior=prior,
            tolerance=tolerance,
            progress=progress,
            **numbers,
        )
    except DowiseError as error:
        raise BadInputError(str(error), "policy", code=error.code) from None
    return {**rehearsal.as_dict(), "words": "\n".join(rehearsal.sentences())}


JOBS: dict[str, Callable[[_Job, Progress], dict[str, Any]]] = {
    "preview": preview,
    "begin": begin,
    "rehearse": rehearse,
}


def _policy(job: _Job) -> str:
    """Return the name of a built-in policy."""
    name, names = job["policy"], policy_names()
    if isinstance(name, str) and name in names:
        return name
    if isinstance(name, str) and ":" in name:
        raise BadInputError(
            f"{name!r:.80} is a custom policy, and a server imports none: create such an "
            "experiment where the code is, with `dowise new`",
            "policy",
            code="unknown-policy",
        )
    close = suggestion(name[:80], names) if isinstance(name, str) else ""
    raise BadInputError(
        f"unknown policy {name!r:.80}{close} (expected one of {', '.join(names)})",
        "policy",
        code="unknown-policy",
    )


def _options(job: _Job) -> dict[str, Any]:
    options = {} if job["options"] is None else job["options"]
    if not isinstance(options, dict):
        raise BadInputError(
            'options must map names to values, such as {"floor": 0.1}',
            "options",
            code="invalid-type",
        )
    return {**options, "prior": _prior(options["prior"])} if "prior" in options else options


def _prior(prior: Any) -> Any:
    """Return a prior; a text other than "flat" and "pooled" would be the path of a file."""
    if isinstance(prior, str) and not is_prior_name(prior):
        raise BadInputError(
            f"prior={prior!r} is not known, and no files are read here: use flat, pooled or a "
            "number, or add counts to the problem under [prior]",
            "options",
            code="invalid-type",
        )
    return prior


def _whole_number(job: _Job, name: str) -> int:
    number, (low, high) = job[name], _BOUNDS[name]
    if type(number) is not int or not low <= number <= high:
        raise BadInputError(
            f"{name}={number!r:.80} must be a whole number between {low:,} and {high:,}",
            name,
            code="invalid-number",
        )
    return number
