"""Bayesian networks in the interchange format (BIF): a graph, domains and probability tables.

>>> network = parse_bif('''
...     network example { }
...     variable rain { type discrete [ 2 ] { yes, no }; }
...     variable grass { type discrete [ 2 ] { wet, dry }; }
...     probability ( rain ) { table 0.2, 0.8; }
...     probability ( grass | rain ) { (yes) 0.9, 0.1; (no) 0.25, 0.75; }
... ''')
>>> print(network.graph, network.domains["grass"])
rain -> grass ('wet', 'dry')
>>> network.cpts["grass"].tolist()
[[0.9, 0.1], [0.25, 0.75]]
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dowise.errors import DowiseError
from dowise.files import read_file, write_text
from dowise.graph.causal_graph import CausalGraph
from dowise.graph.formats.cpt import Block, Domains, Entry, Variable, blocks_of, cpt_of, domains_of
from dowise.graph.formats.grammar import parse_with
from dowise.graph.formats.recognise import reading_as
from dowise.graph.names import bare_text, quoted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Network", "parse_bif", "read_bif", "to_bif", "write_bif"]

_WORDS = {
    **dict.fromkeys(("WORD", "WORDS", "QUOTED"), "a name"),
    "NUMBERS": "a number",
    "ROWS": "",
    "COUNT": "a whole number",
    "_PROPERTY": "'property'",
    "$END": "the end",
}
_BARE = re.compile(r'(?:(?!/[/*])[^\s,;{}()\[\]|"])+')
_QUOTED = r'"(?:[^"\\]|\\[\s\S])*"'
_NAME = re.compile(rf"{_QUOTED}|[^\s,\"]+")
_ROW = re.compile(rf"\(((?:[^\")]|{_QUOTED})*)\)([^;]*);")


@dataclass(frozen=True, eq=False)
class Network:
    """A Bayesian network.

    `cpts[v]` is a float64 array with one axis for each of `graph.parents(v)`, in that order, and
    a last one for `v` itself; along each axis the labels stand in the order of `domains`.
    """

    graph: CausalGraph
    domains: Domains
    cpts: dict[str, NDArray[np.float64]]


def parse_bif(text: str) -> Network:
    """Read a network.

    A row must sum to 1 within 0.001. It is divided by its sum where that is off by more than
    1e-12, and otherwise left to the last bit. A `table` of a variable with parents runs through
    the variable's own labels slowest and through those of the last parent fastest.
    """
    from lark import Transformer  # and so its class stands in here, which makes this function long

    class Reader(Transformer[Any, Any]):
        def name(self, children: list[Any]) -> str:
            return bare_text(str(children[0]))

        def names(self, children: list[Any]) -> tuple[str, ...]:
            return tuple(name for run in children for name in _names(run))

        def numbers(self, children: list[Any]) -> list[float]:
            return [number for run in children for number in _numbers(run)]

        def network(self, children: list[Any]) -> None:  # noqa: ARG002 - its name is no matter
            return None

        def type(self, children: list[Any]) -> tuple[int, tuple[str, ...]]:
            return int(children[0]), children[1]

        def variable(self, children: list[Any]) -> Variable:
            return Variable(children[0], *children[1])

        def table(self, children: list[Any]) -> list[Entry]:
            return [Entry("table", (), children[0])]

        def default(self, children: list[Any]) -> list[Entry]:
            return [Entry("default", (), children[0])]

        def row(self, children: list[Any]) -> list[Entry]:
            return [Entry("row", children[0], children[1])]

        def rows(self, children: list[Any]) -> list[Entry]:
            parts = _ROW.findall(children[0])
            return [Entry("row", _names(labels), _numbers(numbers)) for labels, numbers in parts]

        def probability(self, children: list[Any]) -> Block:
            name, *rest = children
            parents = rest.pop(0) if rest and isinstance(rest[0], tuple) else ()
            return Block(name, parents, [entry for entries in rest for entry in entries])

        def start(self, children: list[Any]) -> list[Variable | Block]:
            return [child for child in children if child is not None]

    parts = parse_with("bif", text, Reader(), _WORDS, "BIF")
    domains = domains_of(part for part in parts if isinstance(part, Variable))
    blocks = blocks_of((part for part in parts if isinstance(part, Block)), domains)
    edges = [(parent, block.name) for block in blocks.values() for parent in block.parents]
    graph = CausalGraph(edges, variables=domains)
    cpts = {}
    for name in graph.variables:
        block = blocks[name]
        order = [block.parents.index(parent) for parent in graph.parents(name)]
        cpts[name] = cpt_of(block, domains).transpose(*order, len(order)).copy()
    return Network(graph, domains, cpts)


def read_bif(path: str | Path) -> Network:
    """Read the network of a BIF file."""
    remedy = "this looks like {}, which has no numbers: give a BIF file"
    return read_file(path, lambda text: reading_as("BIF", parse_bif, text, remedy))


def to_bif(network: Network) -> str:
    """The network as BIF, which `parse_bif` reads back to the last bit."""
    graph, domains = network.graph, network.domains
    for one, other in graph.bidirected_edges:
        raise DowiseError(f"{one} <-> {other}: a Bayesian network has no bidirected edges")
    lines = ["network unknown {", "}"]
    for name in graph.variables:
        labels = domains[name]
        declared = f"type discrete [ {len(labels)} ] {{ {_listed(labels)} }};"
        lines += [f"variable {_name(name)} {{", f"  {declared}", "}"]
    for name in graph.variables:
        parents = graph.parents(name)
        given = f" | {_listed(parents)}" if parents else ""
        lines.append(f"probability ( {_name(name)}{given} ) {{")
        rows = network.cpts[name].reshape(-1, len(domains[name])).tolist()
        for labels, row in zip(product(*(domains[p] for p in parents)), rows, strict=True):
            start = f"({_listed(labels)})" if parents else "table"
            lines.append(f"  {start} {', '.join(map(repr, row))};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def write_bif(network: Network, path: str | Path) -> None:
    """Write the network to a BIF file."""
    write_text(path, to_bif(network))


def _names(run: str) -> tuple[str, ...]:
    """The names that stand in a row."""
    if '"' not in run:
        return tuple(run.replace(",", " ").split())
    return tuple(map(bare_text, _NAME.findall(run)))


def _numbers(run: str) -> list[float]:
    """The numbers that stand in a row."""
    return list(map(float, run.replace(",", " ").split()))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(_name, names))


def _name(name: str) -> str:
    return name if _BARE.fullmatch(name) else quoted(name)
