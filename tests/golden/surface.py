"""Golden public surface: names and signatures, the HTTP API, and the options of the commands.

Annotations, descriptions, and names of schemas and operations are left out: those of private
aliases and classes may change, while names, kinds and defaults of parameters may not.
"""

from __future__ import annotations

import enum
import importlib
import inspect

import click
from click.testing import CliRunner

import dowise
from dowise.cli.main import main
from dowise.experiment.storage import MemoryStorage
from dowise_web.app import make_app
from dowise_web.registry import ExperimentRegistry
from dowise_web.settings import Settings

PACKAGES = [
    "dowise.environments",
    "dowise.experiment",
    "dowise.information",
    "dowise.policies",
    "dowise.problem",
    "dowise.simulation",
]
# Attributes of these classes are set in `__init__`.
_INSTANCES = {dowise.Problem: dowise.load_problem("task1")}
_PROSE = ("description", "summary", "title", "operationId", "tags", "examples", "example")


def names():
    """Return the content of `surface.json`: every public name, with its signature."""
    page = {"dowise": sorted(dowise.__all__)}
    for package in PACKAGES:
        page[package] = sorted(getattr(importlib.import_module(package), "__all__", []))
    for name in sorted({*dowise.__all__} - {"__version__"}):
        value = getattr(dowise, name)
        page[name] = signature(value)
        if inspect.isclass(value):
            page |= members(name, value)
    return page


def members(name, cls):
    """Return the public attributes of a class, inherited ones included."""
    page = {}
    names = {*dir(_INSTANCES.get(cls, cls)), *getattr(cls, "__annotations__", {})}
    for attribute in sorted(names):
        value = inspect.getattr_static(cls, attribute, None)
        is_inherited = hasattr(object, attribute) or hasattr(Exception, attribute)
        if attribute.startswith("_") or is_inherited:
            continue
        if isinstance(value, (staticmethod, classmethod)) or inspect.isfunction(value):
            kind = "classmethod" if isinstance(value, classmethod) else "method"
            kind = "staticmethod" if isinstance(value, staticmethod) else kind
            page[f"{name}.{attribute}"] = f"{kind} {signature(getattr(cls, attribute))}"
        else:
            page[f"{name}.{attribute}"] = "attribute"
    return page


def signature(value):
    """Return the signature of a callable as text, without annotations."""
    try:
        original = inspect.signature(value)
    except (TypeError, ValueError):
        return "?"
    parameters = [
        each.replace(annotation=each.empty, default=_default(each.default))
        for each in original.parameters.values()
    ]
    return str(original.replace(parameters=parameters, return_annotation=original.empty))


class _Text(str):
    __slots__ = ()

    def __repr__(self):
        return str(self)


def _default(value):
    if value is inspect.Parameter.empty or isinstance(value, (str, int, float, tuple, type(None))):
        return value
    return _Text("<function>" if callable(value) else f"<{type(value).__name__}>")


def http():
    """Return the content of `openapi.json`: parameters, bodies and responses of every operation."""
    description = make_app(ExperimentRegistry(MemoryStorage()), Settings()).openapi()
    schemas = description["components"]["schemas"]
    page = {"security schemes": description["components"]["securitySchemes"]}
    for path, methods in sorted(description["paths"].items()):
        for method, operation in sorted(methods.items()):
            page[f"{method.upper()} {path}"] = _inlined(operation, schemas, ())
    return page


def _inlined(value, schemas, within):
    """Replace references by what they refer to, and leave out prose."""
    if isinstance(value, list):
        return [_inlined(part, schemas, within) for part in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return (
            "<recursive>" if name in within else _inlined(schemas[name], schemas, (*within, name))
        )
    is_properties = within and within[-1] == "properties"
    page = {}
    for key in sorted(value):
        if key in _PROSE and not is_properties:
            continue
        inner = (
            (*within, "properties")
            if key == "properties" and not is_properties
            else (within[:-1] if is_properties else within)
        )
        page[key] = _inlined(value[key], schemas, inner)
    return page


def every_command(command=main, words=("dowise",)):
    """Yield every command with the words that call it."""
    yield words, command
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from every_command(command.commands[name], (*words, name))


def options():
    """Return the content of `options.json`: arguments and options of every command."""
    return {
        " ".join(words): [_parameter(parameter) for parameter in command.params]
        for words, command in every_command()
    }


def _parameter(parameter):
    kind = parameter.to_info_dict()
    default = kind.get("default")
    return {
        "names": [*parameter.opts, *parameter.secondary_opts],
        "kind": kind["param_type_name"],
        "type": {k: v for k, v in kind["type"].items() if k in ("name", "choices", "min", "max")},
        "required": parameter.required,
        "nargs": parameter.nargs,
        "multiple": parameter.multiple,
        "flag": bool(getattr(parameter, "is_flag", False)),
        "default": _plain(default),
    }


def _plain(value):
    if isinstance(value, enum.Enum):
        return None
    return value if isinstance(value, (str, int, float, type(None))) else repr(value)


def helps():
    """Return the content of `help.txt`: the help of every command."""
    parts = []
    for words, _ in every_command():
        result = CliRunner().invoke(main, [*words[1:], "--help"], terminal_width=80)
        assert result.exit_code == 0, result.output
        parts.append(f"$ {' '.join(words)} --help\n{result.stdout.rstrip()}\n")
    return "\n".join(parts)
