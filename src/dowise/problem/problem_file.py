"""Problem files in TOML, built-in problems, and problems as JSON.

If a list is not closed, Python's TOML reader reports one of the lines below it. Errors here name
the line in which the list begins.

>>> _explain_error('context = ["Age"\\nreward = "Y"', "Unclosed array (at line 2, column 1)")
'a list lacks its ] or a comma (at line 1, column 11), before line 2'
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache, partial
from inspect import signature
from pathlib import Path
from typing import Any, TypeGuard

from dowise._core.files import file_extension, file_stem, read_file, write_text
from dowise.errors import DowiseError, InputSyntaxError, suggestion
from dowise.graph import CausalGraph
from dowise.graph.formats import GRAPH_ENDINGS, format_of, read_structure
from dowise.problem.domains import names_of
from dowise.problem.prior import is_prior_name, plain_prior
from dowise.problem.problem import EDGE_RULES, MAX_ARMS, MAX_PROGRAM, Problem, rebuild_problem

_BUILTIN = Path(__file__).parent / "builtin"


def builtin_names() -> tuple[str, ...]:
    """Return the names of the built-in problems, which `load_problem` takes."""
    return tuple(sorted(path.stem for path in _BUILTIN.glob("*.toml")))


def builtin_path(name: str) -> Path:
    """Return the path of a built-in problem."""
    return _BUILTIN / f"{name}.toml"


def load_problem(source: str | Path) -> Problem:
    """Load a problem file or a built-in problem.

    Parameters
    ----------
    source : str or Path
        Path of a problem file (.toml), or the name of a built-in problem. A problem without a name
        gets the name of its file.

    Returns
    -------
    Problem
        The problem.

    Raises
    ------
    DowiseError
        If there is no such problem, or the file is not a valid problem.

    Examples
    --------
    >>> from dowise import load_problem
    >>> len(load_problem("task3").arms)
    9
    """
    path = Path(source)
    if str(source) in builtin_names() and not path.is_file():
        return _builtin_problem(str(source))
    if not str(source).strip() or not os.path.lexists(path):
        raise DowiseError(_unknown_problem(str(source)[:80]), code="unknown-problem")
    return read_file(path, partial(_parse_file, path))


@cache
def _builtin_problem(name: str) -> Problem:
    # Problems are immutable, and so are these files: a second simulation need not compile again.
    path = builtin_path(name)
    return read_file(path, partial(_parse_file, path))


def _unknown_problem(name: str) -> str:
    if name.endswith((".toml", ".gz")):
        close = suggestion(name, map(str, Path(name).parent.glob("*.toml")))
        return f"there is no file {name}{close}: pass the path of a problem file"
    return (
        f"no problem {name!r}{suggestion(name, builtin_names())}: pass the path "
        f"of a problem file (.toml) or one of {', '.join(builtin_names())}"
    )


def _parse_file(path: Path, text: str) -> Problem:
    graph_format = format_of(file_extension(path), text)
    if graph_format == "text" and (file_extension(path) not in GRAPH_ENDINGS or "=" in text):
        graph_format = None  # TOML may have arrows too, but graphs in the text form have no "="
    if graph_format is not None:
        raise DowiseError(
            f"this is a graph, not a problem: write a problem file (.toml) with "
            f'graph_file = "{path.name}" and reward = "…"',
            code="unsupported-format",
        )
    return parse_problem(text, path.parent, file_stem(path))


def parse_problem(
    text: str,
    folder: Path | None = None,
    name: str | None = None,
    is_new: bool = False,
    edge_rules: int = EDGE_RULES,
) -> Problem:
    """Parse the text of a problem file.

    Parameters
    ----------
    text : str
        Content of the file.
    folder : Path, optional
        Folder of `graph_file` and `prior`. Without it the text must not refer to other files.
    name : str, optional
        Name of the problem if the text has none.
    is_new : bool
        Without a folder: False if `problem_text` wrote the text; then warnings are not repeated.
    edge_rules : {2, 1}
        Rules for doubtful edges if the text does not state them. Journals of versions that had only
        one do not.
    """
    data = read_toml(text)
    data = {"edge_rules": edge_rules, **data}
    return _build(data if name is None else {"name": name, **data}, folder, is_new)


def save_problem(problem: Problem, path: str | Path) -> None:
    """Write the problem file that `load_problem` reads back."""
    write_text(path, problem_text(problem))


def problem_text(problem: Problem) -> str:
    """Return the problem as the text of a problem file."""
    kind, edge_prior = problem.arms_kind, problem.edge_prior
    is_default_kind = kind == "pomis" and not (problem.forbidden or problem.costs)
    arms = [str(arm) for arm in problem.arms] if kind == "custom" else kind
    has_prior = problem.states_prior and not isinstance(problem.prior, Mapping)
    options: dict[str, Any] = {  # None is left out
        "name": problem.name,
        "description": problem.description,
        "graph": problem.drawn.to_text(),
        "reward": problem.reward,
        "minimise": problem.minimise or None,
        "context": problem.context or None,
        "non_manipulable": problem.non_manipulable or None,
        "hidden": problem.hidden or None,
        "edge_prior": None if isinstance(edge_prior, Mapping) else edge_prior,
        "soft": problem.soft,
        "order": problem.stated_order,
        "edge_rules": problem.edge_rules if problem.edge_priors else None,
        "arms": None if is_default_kind else arms,
        "forbidden": tuple(map(str, problem.forbidden)) or None,
        "max_arms": problem.max_arms if problem.max_arms != MAX_ARMS else None,
        "max_program": problem.max_program if problem.max_program != MAX_PROGRAM else None,
        "prior": problem.prior if has_prior else None,
    }
    tables = {
        "domains": {**problem.domains, **problem.hidden_domains},
        "reward_values": problem.reward_values,
        "costs": problem.costs,
        "edge_prior": edge_prior if isinstance(edge_prior, Mapping) else {},
        "prior": problem.prior if isinstance(problem.prior, Mapping) else {},
    }
    lines = [f"{key} = {toml(value)}" for key, value in options.items() if value is not None]
    for name, table in tables.items():
        if table or name in ("domains", "reward_values"):
            lines += ["", f"[{name}]", *(f"{toml(k)} = {toml(v)}" for k, v in table.items())]
    return "\n".join(lines) + "\n"


def _build(data: dict[str, Any], folder: Path | None, is_new: bool) -> Problem:
    keys = [*signature(Problem).parameters, "graph_file"]
    for key in data:
        if key not in keys:
            raise DowiseError(
                f"unknown key {key!r}{suggestion(key, keys)}: a problem file has {', '.join(keys)}",
                code="unknown-option",
            )
    if ("graph" in data) == ("graph_file" in data):
        raise DowiseError(
            'specify the graph either as graph = "X -> Y" or as graph_file = "…"',
            code="missing-value",
        )
    options = {key: data[key] for key in data if key not in ("graph", "graph_file")}
    if "graph" in data:
        graph = CausalGraph.parse(data["graph"])
    elif not isinstance(data["graph_file"], str):
        raise DowiseError(
            f"graph_file={data['graph_file']!r} must be the path of a file", code="invalid-type"
        )
    elif folder is None:
        raise DowiseError(
            'graph_file cannot be read here: put the graph into the text, graph = "X -> Y"',
            code="external-file",
        )
    else:
        graph = _read_graph_file(folder / data["graph_file"], options)
    for key in ("domains", "prior", "costs"):
        options |= {key: _undotted(options[key], {*graph})} if key in options else {}
    if "reward_values" in options:
        options["reward_values"] = _with_numbers(options["reward_values"])
    if isinstance(options.get("prior"), str) and not is_prior_name(options["prior"]):
        if folder is None:
            raise DowiseError(
                "prior files cannot be read here: put the counts into the text",
                code="external-file",
            )
        options["prior"] = folder / options["prior"]
    if "reward" not in options:
        raise DowiseError(
            'no reward: add the variable to maximise, reward = "Y", above any [table]; or to '
            "minimise, with minimise = true",
            code="missing-value",
        )
    if folder is not None or is_new:
        return Problem(graph, **options)
    return rebuild_problem({"graph": graph, **options})


def _read_graph_file(path: Path, options: dict[str, Any]) -> CausalGraph:
    """Read the graph of a file; its domains and tags fill in missing options."""
    structure = read_structure(path)
    domains = options.get("domains", {})
    options["domains"] = {**structure.domains, **domains} if isinstance(domains, dict) else domains
    if len(structure.outcomes) == 1:
        options.setdefault("reward", structure.outcomes[0])
    reward = options.get("reward")
    if structure.exposures and isinstance(reward, str) and "manipulable" not in options:
        names = [name for key in ("context", "hidden") for name in names_of(key, options.get(key))]
        assigned = [*structure.exposures, reward, *names]
        options.setdefault(
            "non_manipulable", [name for name in structure.graph if name not in assigned]
        )
    return structure.graph


def _undotted(table: Any, names: set[str]) -> Any:
    """Join names with a dot, since TOML reads an unquoted X.1 as 1 in X."""
    if not isinstance(table, dict):
        return table
    joined: dict[str, Any] = {}
    for key, value in table.items():
        dotted = {f"{key}.{end}": part for end, part in value.items()} if _is_table(value) else {}
        joined |= dotted if dotted and dotted.keys() <= names else {key: value}
    return joined


def _with_numbers(table: Any) -> Any:
    """Join labels such as 12.0, since TOML reads them without quotes as 0 in 12."""
    if not isinstance(table, dict):
        return table
    joined: dict[object, Any] = {}
    for key, value in table.items():
        numbers = value.keys() if _is_table(value) else ()
        if numbers and all(map(str.isdecimal, (key.lstrip("-"), *numbers))):
            joined |= {float(f"{key}.{digits}"): part for digits, part in value.items()}
        else:
            joined[key] = value
    return joined


def _is_table(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def toml(value: object) -> str:
    """Return a text, a number or an array as TOML. JSON's escapes are TOML's, except for DEL."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Iterable):
        return f"[{', '.join(map(toml, value))}]"
    return "true" if value is True else repr(value)


_UNCLOSED, _LACKS = "Unclosed array", "a list lacks its ] or a comma"
_PLACE = re.compile(r"\(at line (\d+), column \d+\)$")
# Texts and comments, whose brackets do not count; brackets; "=" and line breaks.
_PIECE = re.compile(
    r"""\"""(?:\\.|[^\\])*?\"""|'''.*?'''|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|[\[\]=\n]""",
    re.DOTALL,
)
_NEXT_ENTRY = re.compile(
    r"""[ \t]*(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*=|\[[ \t]*[A-Za-z_][^\[\],\n]*\])"""
)


def read_toml(text: str) -> dict[str, Any]:
    """Parse TOML; raise `InputSyntaxError` with the line if it is invalid."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also numbers of 5,000 digits
        raise InputSyntaxError(f"not valid TOML: {_explain_error(text, str(error))}") from None


def _explain_error(text: str, message: str) -> str:
    """Return Python's message, with the line of the list that is not closed if there is one."""
    if not message.startswith((_UNCLOSED, "Invalid value")):
        return message
    place, lines = _PLACE.search(message), text.split("\n")
    before = len(lines) if place is None else int(place[1]) - 1
    opened = _open_list("\n".join(lines[:before]))
    if opened is None:
        return message.replace(_UNCLOSED, _LACKS)
    # If the reported line is the next entry, the list should have ended before it.
    is_over = place is None or _NEXT_ENTRY.match(lines[before]) is not None
    if is_over or message.startswith(_UNCLOSED):
        until = "the end" if place is None else f"line {place[1]}"
        return f"{_LACKS} (at {opened}), before {until}"
    return f"{message}, in a list that begins at {opened}: does it lack its ]?"


def _open_list(text: str) -> str | None:
    """Return the line in which a list begins that is never closed, or None."""
    begins: list[int] = []
    is_value = False
    for piece in _PIECE.finditer(text):
        match piece[0]:
            case "=":
                is_value = True
            case "\n":
                is_value = False
            case "[" if begins or is_value:  # else it is the header of a table
                begins.append(piece.start())
            case "]" if begins:
                begins.pop()
    if not begins:
        return None
    line, column = text.count("\n", 0, begins[0]) + 1, begins[0] - text.rfind("\n", 0, begins[0])
    return f"line {line}, column {column}"


def describe_arms(problem: Problem) -> dict[str, Any]:
    """Return a problem as JSON, with its intervention sets and arms in canonical order.

    >>> from dowise.problem import load_problem
    >>> data = describe_arms(load_problem("task1"))
    >>> data["roles"], data["intervention_sets"], data["arms"]
    ({'X': 'manipulable', 'Y': 'reward', 'Z': 'non_manipulable'}, [[], ['X']], [{}, {'X': '0'}, \
{'X': '1'}])
    """
    roles = {name: problem.role(name) for name in problem.graph}
    return {
        "name": problem.name,
        "description": problem.description,
        "graph": problem.drawn.to_text(),
        "reward": problem.reward,
        "minimise": problem.minimise,
        "reward_values": dict(problem.reward_values),
        "roles": dict(sorted({**roles, **dict.fromkeys(problem.hidden, "hidden")}.items())),
        "domains": {
            name: list(labels)
            for name, labels in sorted({**problem.domains, **problem.hidden_domains}.items())
        },
        "hidden": list(problem.hidden),
        "edge_priors": dict(problem.edge_priors),
        "soft": problem.soft,
        "prior": plain_prior(problem.prior),
        "forbidden": [dict(assignment) for assignment in problem.forbidden],
        "costs": dict(problem.costs),
        "kind": problem.arms_kind,
        "intervention_sets": [sorted(names) for names in problem.intervention_sets],
        "arms": [dict(arm) for arm in problem.arms],
        "arm_costs": problem.payoff.costs.tolist(),
    }


def describe_edge_priors(problem: Problem) -> list[str]:
    """Describe the priors of uncertain edges as text, one line per number.

    >>> from dowise.graph import CausalGraph
    >>> graph = CausalGraph.parse("Z ?-> X -> Y; X <-> Y")
    >>> for line in describe_edge_priors(Problem(graph, "Y", soft=0.1)): print(line)
    X <-> Y with probability 0.9
    Z -> X with probability 0.5
    3 more, not drawn, each with probability 0.1 (soft)
    """
    drawn = set(problem.graph.edge_texts)
    by_prior: dict[float, list[str]] = {}
    for edge, prior in problem.edge_priors.items():
        if edge in drawn:
            by_prior.setdefault(prior, []).append(edge)
    lines = [
        f"{', '.join(edges)} with probability {prior:g}"
        for prior, edges in sorted(by_prior.items(), reverse=True)
    ]
    count = len(problem.edge_priors) - sum(map(len, by_prior.values()))
    if count:
        suffix = " each" if count > 1 else ""
        lines += [f"{count} more, not drawn,{suffix} with probability {problem.soft:g} (soft)"]
    return lines


def describe_costs(problem: Problem) -> tuple[str, ...]:
    """Describe the costs of variables and arms as text.

    >>> describe_costs(Problem("Z -> X -> Y", "Y", costs={"X": 0.1, "Z": 2}))
    ('X 0.1', 'Z 2')
    """
    return tuple(f"{text} {cost:g}" for text, cost in problem.costs.items())


def describe_problems(problems: Iterable[tuple[str, Problem]]) -> dict[str, Any]:
    """Return names, descriptions and numbers of arms of problems, as JSON."""
    return {
        "problems": [
            {"name": name, "description": problem.description, "arms": len(problem.arms)}
            for name, problem in problems
        ]
    }
