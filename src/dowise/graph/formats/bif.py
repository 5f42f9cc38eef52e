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

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dowise._core.files import read_file, write_text
from dowise.errors import DowiseError, join_names, suggestion
from dowise.graph.causal_graph import CausalGraph
from dowise.graph.edges import bare_text, quoted
from dowise.graph.formats.grammar import Structure, parse_with

if TYPE_CHECKING:
    from dowise._core.types import FloatArray

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
    """Bayesian network: a graph, the labels of its variables and their probability tables.

    `cpts[v]` is a float64 array with one axis for each of `graph.parents(v)`, in that order, and
    a last one for `v` itself; along each axis the labels are in the order of `domains`.
    """

    graph: CausalGraph
    domains: Domains
    cpts: dict[str, FloatArray]

    def structure(self) -> Structure:
        """Return the graph and the domains without the tables."""
        return Structure(self.graph, self.domains)


def parse_bif(text: str) -> Network:
    """Parse a network.

    A row must sum to 1 within 0.001. It is divided by its sum if that is off by more than 1e-12,
    and otherwise not changed. In the `table` of a variable with parents the labels of the
    variable itself vary slowest and those of the last parent fastest.
    """
    from lark import Transformer

    class BifReader(Transformer[Any, Any]):
        def name(self, children: list[Any]) -> str:
            return bare_text(str(children[0]))

        def names(self, children: list[Any]) -> tuple[str, ...]:
            return tuple(name for run in children for name in _names(run))

        def numbers(self, children: list[Any]) -> list[float]:
            return [number for run in children for number in _numbers(run)]

        def network(self, children: list[Any]) -> None:  # noqa: ARG002 - the name is not used
            return None

        def type(self, children: list[Any]) -> tuple[int, tuple[str, ...]]:
            return int(children[0]), children[1]

        def variable(self, children: list[Any]) -> BifVariable:
            return BifVariable(children[0], *children[1])

        def table(self, children: list[Any]) -> list[BifEntry]:
            return [BifEntry("table", (), children[0])]

        def default(self, children: list[Any]) -> list[BifEntry]:
            return [BifEntry("default", (), children[0])]

        def row(self, children: list[Any]) -> list[BifEntry]:
            return [BifEntry("row", children[0], children[1])]

        def rows(self, children: list[Any]) -> list[BifEntry]:
            parts = _ROW.findall(children[0])
            return [BifEntry("row", _names(labels), _numbers(numbers)) for labels, numbers in parts]

        def probability(self, children: list[Any]) -> BifBlock:
            name, *parts = children
            parents = parts.pop(0) if parts and isinstance(parts[0], tuple) else ()
            return BifBlock(name, parents, [entry for entries in parts for entry in entries])

        def start(self, children: list[Any]) -> list[BifVariable | BifBlock]:
            return [child for child in children if child is not None]

    parts = parse_with("bif", text, BifReader(), _WORDS, "BIF")
    domains = domains_of(part for part in parts if isinstance(part, BifVariable))
    blocks = blocks_of((part for part in parts if isinstance(part, BifBlock)), domains)
    edges = [(parent, block.name) for block in blocks.values() for parent in block.parents]
    graph = CausalGraph(edges, variables=domains)
    cpts = {}
    for name in graph.variables:
        block = blocks[name]
        order = [block.parents.index(parent) for parent in graph.parents(name)]
        cpts[name] = cpt_of(block, domains).transpose(*order, len(order)).copy()
    return Network(graph, domains, cpts)


def read_bif(path: str | Path) -> Network:
    """Read a BIF file."""
    from dowise.graph.formats import parse_as

    remedy = "this looks like {}, which has no probabilities: pass a BIF file"
    return read_file(path, lambda text: parse_as("BIF", parse_bif, text, remedy))


def to_bif(network: Network) -> str:
    """Return the network as BIF. `parse_bif` restores it to the last bit."""
    graph, domains = network.graph, network.domains
    for left, right in graph.bidirected_edges:
        raise DowiseError(
            f"{left} <-> {right}: a Bayesian network has no bidirected edges",
            code="bidirected-edge",
        )
    lines = ["network unknown {", "}"]
    for name in graph.variables:
        labels = domains[name]
        declared = f"type discrete [ {len(labels)} ] {{ {_listed(labels)} }};"
        lines += [f"variable {_name(name)} {{", f"  {declared}", "}"]
    for name in graph.variables:
        parents = graph.parents(name)
        condition = f" | {_listed(parents)}" if parents else ""
        lines.append(f"probability ( {_name(name)}{condition} ) {{")
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
    """Split a run of names."""
    if '"' not in run:
        return tuple(run.replace(",", " ").split())
    return tuple(map(bare_text, _NAME.findall(run)))


def _numbers(run: str) -> list[float]:
    """Split a run of numbers."""
    return list(map(float, run.replace(",", " ").split()))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(_name, names))


def _name(name: str) -> str:
    return name if _BARE.fullmatch(name) else quoted(name)


_TOLERANCE = 1e-3  # files round their numbers, often to three digits
_MAX_ENTRIES, _MAX_PARENTS = 50_000_000, 60  # 400 MB; NumPy has at most 64 axes
_EXACT = 1e-12  # rounding error of a float64 row that should sum to 1

Domains = dict[str, tuple[str, ...]]


class BifVariable(NamedTuple):
    """`variable name { type discrete [ declared ] { labels }; }`."""

    name: str
    declared: int
    labels: tuple[str, ...]


class BifEntry(NamedTuple):
    """Line of numbers in a block."""

    kind: str  # "table", "default" or "row"
    labels: tuple[str, ...]  # of the parents, in a row
    numbers: list[float]


class BifBlock(NamedTuple):
    """`probability ( name | parents ) { entries }`."""

    name: str
    parents: tuple[str, ...]
    entries: list[BifEntry]


def domains_of(variables: Iterable[BifVariable]) -> Domains:
    """Return the labels of each variable, validated."""
    domains: Domains = {}
    for name, declared, labels in variables:
        if name in domains:
            raise DowiseError(
                f"the variable {name!r} is declared twice: remove one declaration",
                code="duplicate-name",
            )
        if declared != len(labels):
            raise DowiseError(
                f"variable {name!r} is declared with [ {declared} ] labels but lists {len(labels)} "
                f"({join_names(labels)}): correct the number or the list",
                code="inconsistent-table",
            )
        if len(set(labels)) < len(labels):
            label, _ = Counter(labels).most_common(1)[0]
            raise DowiseError(
                f"variable {name!r} lists the label {label!r} twice: rename one",
                code="duplicate-name",
            )
        domains[name] = labels
    if not domains:
        raise DowiseError(
            "the network is empty: it does not declare any variables", code="empty-graph"
        )
    return domains


def blocks_of(blocks: Iterable[BifBlock], domains: Domains) -> dict[str, BifBlock]:
    """Return the probability block of each variable. There must be exactly one."""
    by_name: dict[str, BifBlock] = {}
    for block in blocks:
        for role, name in [("variable", block.name), *(("parent", p) for p in block.parents)]:
            if name not in domains:
                raise DowiseError(
                    f"probability of {block.name!r}: unknown {role} {name!r}"
                    f"{suggestion(name, domains)}; declare it with 'variable {name} {{ ... }}'",
                    code="unknown-variable",
                )
            if block.parents.count(name) > 1:
                raise DowiseError(
                    f"probability of {block.name!r}: the parent {name!r} is listed twice: "
                    "name each parent once",
                    code="duplicate-name",
                )
        if block.name in by_name:
            raise DowiseError(
                f"probability of {block.name!r} is defined twice: remove one block",
                code="duplicate-name",
            )
        by_name[block.name] = block
    for name in domains:
        if name not in by_name:
            raise DowiseError(
                f"variable {name!r} has no probability block: "
                f"add 'probability ( {name} ) {{ table ...; }}'",
                code="missing-value",
            )
    return by_name


def cpt_of(block: BifBlock, domains: Domains) -> FloatArray:
    """Return the table of a block; axes: the parents as the block lists them, then the variable.

    Rows that are off by rounding are divided by their sums; rows that sum to 1 are not changed.
    """
    import numpy as np

    rows = _rows(block, domains)
    sums = rows.sum(axis=1)
    for wrong, message in [
        ((rows < 0).any(axis=1), "has a negative entry: a probability is between 0 and 1"),
        (~(np.abs(sums - 1) <= _TOLERANCE), "must sum to 1: correct or rescale its entries"),
    ]:
        for index in np.flatnonzero(wrong).tolist():
            row = join_names(map(repr, rows[index].tolist()))
            raise DowiseError(
                f"{_row_name(block, index, domains)} = {row} (sum {sums[index]:.6g}) {message}",
                code="invalid-number",
            )
    rounded = np.abs(sums - 1) > _EXACT
    rows[rounded] /= sums[rounded, np.newaxis]
    return rows.reshape([len(domains[name]) for name in (*block.parents, block.name)])


def _rows(block: BifBlock, domains: Domains) -> FloatArray:
    """Return the numbers of a block: a row for every combination of the parents' labels."""
    import numpy as np

    count, size = math.prod(len(domains[p]) for p in block.parents), len(domains[block.name])
    if count * size > _MAX_ENTRIES or len(block.parents) > _MAX_PARENTS:
        raise DowiseError(
            f"the table of {block.name!r} is too large: {len(block.parents)} parents make it more "
            f"than {_MAX_ENTRIES:,} numbers or {_MAX_PARENTS} axes; remove some of its parents",
            code="too-large",
        )
    rows, is_set = np.empty((count, size)), np.zeros(count, dtype=bool)
    positions = [
        {label: index for index, label in enumerate(domains[parent])} for parent in block.parents
    ]
    default: list[float] | None = None
    for kind, labels, numbers in block.entries:
        expected, chosen, name = size, slice(None), f"the {kind} of P({block.name})"
        if kind == "row":
            index = _row_index(block, labels, positions)
            chosen, name = slice(index, index + 1), _row_name(block, index, domains)
        elif kind == "table":
            expected = count * size
        if len(numbers) != expected:
            row = f"{size} labels ({join_names(domains[block.name])})"
            raise DowiseError(
                f"{name} has {len(numbers)} numbers instead of {expected}, for "
                f"{f'{count} rows of ' if expected > size else ''}{row}",
                code="inconsistent-table",
            )
        if kind == "default":
            default = numbers
            continue
        if is_set[chosen].any():
            index = int(np.arange(count)[chosen][is_set[chosen].argmax()])
            raise DowiseError(
                f"{_row_name(block, index, domains)} is defined twice: remove one of the two",
                code="duplicate-name",
            )
        rows[chosen], is_set[chosen] = np.reshape(numbers, (size, -1)).T, True
    if default is not None:
        rows[~is_set] = default
    elif not is_set.all():
        missing = _row_name(block, int(is_set.argmin()), domains)
        raise DowiseError(
            f"{missing} is missing: add this row, or a 'default' line", code="missing-value"
        )
    return rows


def _row_index(
    block: BifBlock, labels: tuple[str, ...], positions: Sequence[Mapping[str, int]]
) -> int:
    """Return the index of a row; the label of the last parent varies fastest."""
    if len(labels) != len(block.parents):
        parents = ", ".join(block.parents)
        remedy = f"write one label for each of {parents}" if parents else "write 'table ...;'"
        raise DowiseError(
            f"{_row(block, labels)}: {block.name} has {len(block.parents)} parents, "
            f"not {len(labels)}: {remedy}",
            code="inconsistent-table",
        )
    index = 0
    for parent, label, domain in zip(block.parents, labels, positions, strict=True):
        if label not in domain:
            raise DowiseError(
                f"{_row(block, labels)}: {parent} has no label {label!r}"
                f"{suggestion(label, domain)}; its labels are {join_names(domain)}",
                code="unknown-value",
            )
        index = index * len(domain) + domain[label]
    return index


def _row(block: BifBlock, labels: tuple[str, ...]) -> str:
    """Return a row as it is written in the file."""
    return f"P({block.name}), row ({', '.join(labels)})"


def _row_name(block: BifBlock, index: int, domains: Domains) -> str:
    """Return the row at this index as it is written in a formula: `P(X | A=a, B=b)`."""
    condition: list[str] = []
    for parent in reversed(block.parents):
        index, position = divmod(index, len(domains[parent]))
        condition.insert(0, f"{parent}={domains[parent][position]}")
    return f"P({block.name} | {', '.join(condition)})" if condition else f"P({block.name})"
