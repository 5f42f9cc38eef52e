"""Problem files: a TOML page that says what `Problem` needs, and the ones that come built in."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from dowise.errors import DowiseError, InputSyntaxError, suggestion
from dowise.files import ending_of, read_file, stem_of, write_text
from dowise.graph import CausalGraph
from dowise.graph.formats import GRAPH_ENDINGS, format_of, read_structure
from dowise.problem.problem import MAX_ARMS, MAX_PROGRAM, Problem, remade

__all__ = ["builtin_names", "builtin_path", "load_problem", "parse_problem", "save_problem"]

_BUILTIN = Path(__file__).parent / "builtin"

_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "name": (str, "a text"),
    "description": (str, "a text"),
    "graph": (str, 'a text such as "X -> Y"'),
    "graph_file": (str, "the path of a .txt, .dot, .gml, .dagitty or .bif file, or of such a .gz"),
    "reward": (str, "the name of a variable"),
    "minimise": (bool, "true or false"),
    "context": (list, "a list of names"),
    "non_manipulable": (list, "a list of names"),
    "manipulable": (list, "a list of names"),
    "hidden": (list, "a list of names"),
    "edge_prior": ((int, float, dict), "a number, or a table with a number for each edge"),
    "soft": ((int, float), "a number between 0 and 1"),
    "arms": ((str, list), '"pomis", "minimal", "all" or a list such as ["do()", "do(X=1)"]'),
    "forbidden": ((str, list), 'a list of assignments such as ["do(X=1, Z=0)"]'),
    "max_arms": (int, "a whole number"),
    "max_program": (int, "a whole number"),
    "domains": (dict, "a table with a list of labels for each variable"),
    "reward_values": (dict, "a table with a number for each label of the reward"),
}


def builtin_names() -> tuple[str, ...]:
    """The problems that come with dowise, which `load_problem` takes by name."""
    return tuple(sorted(path.stem for path in _BUILTIN.glob("*.toml")))


def builtin_path(name: str) -> Path:
    """The file of a built-in problem."""
    return _BUILTIN / f"{name}.toml"


def load_problem(source: str | Path) -> Problem:
    """Load a problem file, or a built-in problem by its name; unnamed, it has its file's name.

    >>> len(load_problem("task3").arms)
    9
    """
    path = Path(source)
    if str(source) in builtin_names() and not path.is_file():
        path = builtin_path(str(source))
    if not str(source).strip() or not os.path.lexists(path):
        shown = str(source)[:80]
        raise DowiseError(
            f"no problem {shown!r}{suggestion(shown, builtin_names())}: give the path "
            f"of a problem file (.toml) or one of {', '.join(builtin_names())}"
        )
    return read_file(path, partial(_parse_file, path))


def _parse_file(path: Path, text: str) -> Problem:
    seen = format_of(ending_of(path), text)
    if seen == "text" and (ending_of(path) not in GRAPH_ENDINGS or "=" in text):
        seen = None  # a page of TOML has arrows too, but no graph in the text form has a "="
    if seen is not None:
        raise DowiseError(
            f"this is a graph, not a problem: write a problem file (.toml) with "
            f'graph_file = "{path.name}" and reward = "…"'
        )
    return parse_problem(text, path.parent, stem_of(path))


def parse_problem(text: str, folder: Path | None = None, name: str | None = None) -> Problem:
    """Read the text of a problem file; `graph_file` is looked up in `folder`.

    `name` is the problem's where the text has none.

    Without a folder the text is one that we wrote: other files are refused, and nothing is said
    that was said when it was written.
    """
    try:
        page = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also numbers of 5,000 digits
        raise InputSyntaxError(f"not valid TOML: {error}") from None
    return _build(page if name is None else {"name": name, **page}, folder)


def save_problem(problem: Problem, path: str | Path) -> None:
    """Write the problem file that `load_problem` reads back."""
    write_text(path, problem_text(problem))


def problem_text(problem: Problem) -> str:
    """The problem as the text of a problem file."""
    lines = [
        f"{key} = {_toml(value)}"
        for key, value in (("name", problem.name), ("description", problem.description))
        if value is not None
    ]
    lines += [f"graph = {_toml(problem.drawn.to_text())}", f"reward = {_toml(problem.reward)}"]
    lines += ["minimise = true"] if problem.minimise else []
    lines += [f"context = {_toml(problem.context)}"] if problem.context else []
    if problem.non_manipulable:
        lines += [f"non_manipulable = {_toml(problem.non_manipulable)}"]
    lines += [f"hidden = {_toml(problem.hidden)}"] if problem.hidden else []
    lines += [f"edge_prior = {prior!r}"] if isinstance(prior := problem.edge_prior, float) else []
    lines += [f"soft = {problem.soft!r}"] if problem.soft is not None else []
    if problem.arms_kind == "custom":
        lines += [f"arms = {_toml([str(arm) for arm in problem.arms])}"]
    elif problem.arms_kind != "pomis" or problem.forbidden:
        lines += [f"arms = {_toml(problem.arms_kind)}"]
    if problem.forbidden:
        lines += [f"forbidden = {_toml(map(str, problem.forbidden))}"]
    lines += [f"max_arms = {problem.max_arms}"] if problem.max_arms != MAX_ARMS else []
    if problem.max_program != MAX_PROGRAM:
        lines += [f"max_program = {problem.max_program}"]
    lines += ["", "[domains]"]
    domains = {**problem.domains, **problem.hidden_domains}
    lines += [f"{_toml(name)} = {_toml(labels)}" for name, labels in domains.items()]
    lines += ["", "[reward_values]"]
    lines += [f"{_toml(label)} = {value!r}" for label, value in problem.reward_values.items()]
    if isinstance(problem.edge_prior, Mapping):
        lines += ["", "[edge_prior]"]
        lines += [f"{_toml(edge)} = {number!r}" for edge, number in problem.edge_prior.items()]
    return "\n".join(lines) + "\n"


def _build(page: dict[str, Any], folder: Path | None) -> Problem:
    for key, value in page.items():
        if key not in _KINDS:
            raise DowiseError(
                f"unknown key {key!r}{suggestion(key, _KINDS)}: "
                f"a problem file has {', '.join(_KINDS)}"
            )
        kind, meaning = _KINDS[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise DowiseError(f"{key} must be {meaning}, not {value!r}")
    if ("graph" in page) == ("graph_file" in page):
        raise DowiseError('give the graph either as graph = "X -> Y" or as graph_file = "…"')
    options = {key: page[key] for key in page if key not in ("graph", "graph_file")}
    if "graph" in page:
        graph = CausalGraph.parse(page["graph"])
    elif folder is None:
        raise DowiseError(
            'graph_file is not read here: put the graph into the text, graph = "X -> Y"'
        )
    else:
        graph = _read_graph_file(folder / page["graph_file"], options)
    if "reward" not in options:
        raise DowiseError(
            'no reward: say which variable to maximise, reward = "Y", above any [table]; or to '
            "minimise, with minimise = true"
        )
    return Problem(graph, **options) if folder is not None else remade({"graph": graph, **options})


def _read_graph_file(path: Path, options: dict[str, Any]) -> CausalGraph:
    """The graph of a file; what else the file says (domains, tags) fills in what is not given."""
    structure = read_structure(path)
    options["domains"] = {**structure.domains, **options.get("domains", {})}
    if len(structure.outcomes) == 1:
        options.setdefault("reward", structure.outcomes[0])
    if structure.exposures and "reward" in options and "manipulable" not in options:
        given = [*options.get("context", ()), *options.get("hidden", ())]
        named = [name for name in given if isinstance(name, str)]
        spoken_for = {*structure.exposures, options["reward"], *named}
        options.setdefault(
            "non_manipulable", [name for name in structure.graph if name not in spoken_for]
        )
    return structure.graph


def _toml(value: str | Iterable[str]) -> str:
    """A TOML basic string, or an array of them. JSON's escapes are TOML's, but for DEL."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return "[" + ", ".join(_toml(item) for item in value) + "]"
