"""Problem files: a TOML page that says what `Problem` needs, and the ones that come built in."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, TypeGuard

from dowise.errors import DowiseError, suggestion
from dowise.files import ending_of, read_file, stem_of, write_text
from dowise.graph import CausalGraph
from dowise.graph.formats import GRAPH_ENDINGS, format_of, read_structure
from dowise.problem.problem import MAX_ARMS, MAX_PROGRAM, Problem, remade
from dowise.problem.roles import names_of
from dowise.problem.toml_text import read_toml

__all__ = ["builtin_names", "builtin_path", "load_problem", "parse_problem", "save_problem", "toml"]

_BUILTIN = Path(__file__).parent / "builtin"


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
        raise DowiseError(_not_there(str(source)[:80]))
    return read_file(path, partial(_parse_file, path))


def _not_there(shown: str) -> str:
    """That there is no such problem, in words, and which one was perhaps meant."""
    if shown.endswith((".toml", ".gz")):
        beside = [*map(str, Path(shown).parent.glob("*.toml"))]
        meant = suggestion(shown, beside)
        return f"there is no file {shown}{meant}: give the path of a problem file"
    return (
        f"no problem {shown!r}{suggestion(shown, builtin_names())}: give the path "
        f"of a problem file (.toml) or one of {', '.join(builtin_names())}"
    )


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


def parse_problem(
    text: str, folder: Path | None = None, name: str | None = None, is_new: bool = False
) -> Problem:
    """Read the text of a problem file; `graph_file` is looked up in `folder`.

    `name` is the problem's where the text has none.

    Without a folder other files are refused. Unless it `is_new`, the text is then one that we
    wrote, and nothing is said that was said when it was written.
    """
    page = read_toml(text)
    return _build(page if name is None else {"name": name, **page}, folder, is_new)


def save_problem(problem: Problem, path: str | Path) -> None:
    """Write the problem file that `load_problem` reads back."""
    write_text(path, problem_text(problem))


def problem_text(problem: Problem) -> str:
    """The problem as the text of a problem file."""
    lines = [
        f"{key} = {toml(value)}"
        for key, value in (("name", problem.name), ("description", problem.description))
        if value is not None
    ]
    lines += [f"graph = {toml(problem.drawn.to_text())}", f"reward = {toml(problem.reward)}"]
    lines += ["minimise = true"] if problem.minimise else []
    lines += [f"context = {toml(problem.context)}"] if problem.context else []
    if problem.non_manipulable:
        lines += [f"non_manipulable = {toml(problem.non_manipulable)}"]
    lines += [f"hidden = {toml(problem.hidden)}"] if problem.hidden else []
    lines += [f"edge_prior = {prior!r}"] if isinstance(prior := problem.edge_prior, float) else []
    lines += [f"soft = {problem.soft!r}"] if problem.soft is not None else []
    if problem.arms_kind == "custom":
        lines += [f"arms = {toml([str(arm) for arm in problem.arms])}"]
    elif problem.arms_kind != "pomis" or problem.forbidden or problem.costs:
        lines += [f"arms = {toml(problem.arms_kind)}"]
    if problem.forbidden:
        lines += [f"forbidden = {toml(map(str, problem.forbidden))}"]
    lines += [f"max_arms = {problem.max_arms}"] if problem.max_arms != MAX_ARMS else []
    if problem.max_program != MAX_PROGRAM:
        lines += [f"max_program = {problem.max_program}"]
    if not isinstance(problem.prior, Mapping) and problem.prior != 1.0:
        lines += [f"prior = {problem.prior!r}"]
    lines += ["", "[domains]"]
    domains = {**problem.domains, **problem.hidden_domains}
    lines += [f"{toml(name)} = {toml(labels)}" for name, labels in domains.items()]
    lines += ["", "[reward_values]"]
    lines += [f"{toml(label)} = {value!r}" for label, value in problem.reward_values.items()]
    if problem.costs:
        lines += ["", "[costs]"]
        lines += [f"{toml(text)} = {cost!r}" for text, cost in problem.costs.items()]
    if isinstance(problem.edge_prior, Mapping):
        lines += ["", "[edge_prior]"]
        lines += [f"{toml(edge)} = {number!r}" for edge, number in problem.edge_prior.items()]
    if isinstance(problem.prior, Mapping):
        lines += ["", "[prior]"]
        lines += [f"{toml(name)} = {_numbers(c)}" for name, c in problem.prior.items()]
    return "\n".join(lines) + "\n"


def _build(page: dict[str, Any], folder: Path | None, is_new: bool) -> Problem:
    keys = [*signature(Problem).parameters, "graph_file"]
    for key in page:
        if key not in keys:
            raise DowiseError(
                f"unknown key {key!r}{suggestion(key, keys)}: a problem file has {', '.join(keys)}"
            )
    if ("graph" in page) == ("graph_file" in page):
        raise DowiseError('give the graph either as graph = "X -> Y" or as graph_file = "…"')
    options = {key: page[key] for key in page if key not in ("graph", "graph_file")}
    if "graph" in page:
        graph = CausalGraph.parse(page["graph"])
    elif not isinstance(page["graph_file"], str):
        raise DowiseError(f"graph_file={page['graph_file']!r} must be the path of a file")
    elif folder is None:
        raise DowiseError(
            'graph_file is not read here: put the graph into the text, graph = "X -> Y"'
        )
    else:
        graph = _read_graph_file(folder / page["graph_file"], options)
    for key in ("domains", "prior", "costs"):
        options |= {key: _undotted(options[key], {*graph})} if key in options else {}
    if "reward_values" in options:
        options["reward_values"] = _with_numbers(options["reward_values"])
    if isinstance(options.get("prior"), str):
        if folder is None:
            raise DowiseError("a file of the prior is not read here: put its counts into the text")
        options["prior"] = folder / options["prior"]
    if "reward" not in options:
        raise DowiseError(
            'no reward: say which variable to maximise, reward = "Y", above any [table]; or to '
            "minimise, with minimise = true"
        )
    if folder is not None or is_new:
        return Problem(graph, **options)
    return remade({"graph": graph, **options})


def _read_graph_file(path: Path, options: dict[str, Any]) -> CausalGraph:
    """The graph of a file; what else the file says (domains, tags) fills in what is not given."""
    structure = read_structure(path)
    own = options.get("domains", {})
    options["domains"] = {**structure.domains, **own} if isinstance(own, dict) else own
    if len(structure.outcomes) == 1:
        options.setdefault("reward", structure.outcomes[0])
    reward = options.get("reward")
    if structure.exposures and isinstance(reward, str) and "manipulable" not in options:
        given = (name for key in ("context", "hidden") for name in names_of(key, options.get(key)))
        named = [name for name in given if isinstance(name, str)]
        spoken_for = {*structure.exposures, reward, *named}
        options.setdefault(
            "non_manipulable", [name for name in structure.graph if name not in spoken_for]
        )
    return structure.graph


def _undotted(table: Any, names: set[str]) -> Any:
    """The table with names that have a dot in one piece: to TOML, X.1 without quotes is 1 in X."""
    if not isinstance(table, dict):
        return table
    found: dict[str, Any] = {}
    for key, value in table.items():
        dotted = {f"{key}.{rest}": part for rest, part in value.items()} if _is_table(value) else {}
        found |= dotted if dotted and dotted.keys() <= names else {key: value}
    return found


def _with_numbers(table: Any) -> Any:
    """The table with labels such as 12.0 in one piece: to TOML, without quotes that is 0 in 12."""
    if not isinstance(table, dict):
        return table
    found: dict[object, Any] = {}
    for key, value in table.items():
        numbers = value.keys() if _is_table(value) else ()
        if numbers and all(map(str.isdecimal, (key.lstrip("-"), *numbers))):
            found |= {float(f"{key}.{rest}"): part for rest, part in value.items()}
        else:
            found[key] = value
    return found


def _is_table(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def toml(value: str | Iterable[str]) -> str:
    """A TOML basic string, or an array of them. JSON's escapes are TOML's, but for DEL."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return "[" + ", ".join(toml(item) for item in value) + "]"


def _numbers(counts: Any) -> str:
    """A number, or nested arrays of numbers."""
    return f"[{', '.join(map(_numbers, counts))}]" if isinstance(counts, tuple) else repr(counts)
