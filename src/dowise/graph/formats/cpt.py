"""What a BIF file declares, checked: the domains, one block a variable, and its whole table.

Every check names the variable and says what would be right.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dowise.errors import DowiseError, listed, suggestion

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Block", "Domains", "Entry", "Variable", "blocks_of", "cpt_of", "domains_of"]

_TOLERANCE = 1e-3  # files round their numbers, often to three digits
_MAX_ENTRIES, _MAX_PARENTS = 50_000_000, 60  # 400 MB; NumPy has at most 64 axes
_EXACT = 1e-12  # what float64 leaves of a row that was meant to sum to 1

Domains = dict[str, tuple[str, ...]]


class Variable(NamedTuple):
    """`variable name { type discrete [ declared ] { labels }; }`."""

    name: str
    declared: int
    labels: tuple[str, ...]


class Entry(NamedTuple):
    """One line of numbers in a block."""

    kind: str  # "table", "default" or "row"
    labels: tuple[str, ...]  # of the parents, in a row
    numbers: list[float]


class Block(NamedTuple):
    """`probability ( name | parents ) { entries }`."""

    name: str
    parents: tuple[str, ...]
    entries: list[Entry]


def domains_of(variables: Iterable[Variable]) -> Domains:
    """The labels of each variable."""
    domains: Domains = {}
    for name, declared, labels in variables:
        if name in domains:
            raise DowiseError(f"the variable {name!r} is declared twice: remove one declaration")
        if declared != len(labels):
            raise DowiseError(
                f"variable {name!r} is declared with [ {declared} ] labels but lists {len(labels)} "
                f"({listed(labels)}): correct the number or the list"
            )
        if len(set(labels)) < len(labels):
            label, _ = Counter(labels).most_common(1)[0]
            raise DowiseError(f"variable {name!r} lists the label {label!r} twice: rename one")
        domains[name] = labels
    if not domains:
        raise DowiseError("the network is empty: it declares no variable")
    return domains


def blocks_of(blocks: Iterable[Block], domains: Domains) -> dict[str, Block]:
    """The one probability block of each variable."""
    found: dict[str, Block] = {}
    for block in blocks:
        for role, name in [("variable", block.name), *(("parent", p) for p in block.parents)]:
            if name not in domains:
                raise DowiseError(
                    f"probability of {block.name!r}: unknown {role} {name!r}"
                    f"{suggestion(name, domains)}; declare it with 'variable {name} {{ ... }}'"
                )
            if block.parents.count(name) > 1:
                raise DowiseError(
                    f"probability of {block.name!r}: the parent {name!r} is listed twice: "
                    "name each parent once"
                )
        if block.name in found:
            raise DowiseError(f"probability of {block.name!r} is given twice: remove one block")
        found[block.name] = block
    for name in domains:
        if name not in found:
            raise DowiseError(
                f"variable {name!r} has no probability block: "
                f"add 'probability ( {name} ) {{ table ...; }}'"
            )
    return found


def cpt_of(block: Block, domains: Domains) -> NDArray[np.float64]:
    """The table of a block; axes: the parents as the block lists them, then the variable.

    A row off by rounding is divided by its sum; one that sums to 1 is left as it is.
    """
    import numpy as np

    rows = _rows(block, domains)
    sums = rows.sum(axis=1)
    for wrong, what in [
        ((rows < 0).any(axis=1), "has a negative entry: a probability is between 0 and 1"),
        (~(np.abs(sums - 1) <= _TOLERANCE), "must sum to 1: correct or rescale its entries"),
    ]:
        for place in np.flatnonzero(wrong).tolist():
            row = listed(map(repr, rows[place].tolist()))
            raise DowiseError(
                f"{_row_name(block, place, domains)} = {row} (sum {sums[place]:.6g}) {what}"
            )
    rounded = np.abs(sums - 1) > _EXACT
    rows[rounded] /= sums[rounded, np.newaxis]
    return rows.reshape([len(domains[name]) for name in (*block.parents, block.name)])


def _rows(block: Block, domains: Domains) -> NDArray[np.float64]:
    """The numbers of a block as they are: a row for every choice of labels of the parents."""
    import numpy as np

    count, size = math.prod(len(domains[p]) for p in block.parents), len(domains[block.name])
    if count * size > _MAX_ENTRIES or len(block.parents) > _MAX_PARENTS:
        raise DowiseError(
            f"the table of {block.name!r} is too large: {len(block.parents)} parents make it more "
            f"than {_MAX_ENTRIES:,} numbers or {_MAX_PARENTS} axes; give it fewer parents"
        )
    rows, given = np.empty((count, size)), np.zeros(count, dtype=bool)

    def refuse_length(numbers: list[float], expected: int, where: str) -> None:
        labels = f"{size} labels ({listed(domains[block.name])})"
        each = f"{count} rows of {labels}" if expected > size else labels
        raise DowiseError(f"{where} has {len(numbers)} numbers: give {expected}, for {each}")

    def refuse_twice(place: int) -> None:
        if given[place]:
            raise DowiseError(
                f"{_row_name(block, place, domains)} is given twice: remove one of the two"
            )

    positions = [
        {label: place for place, label in enumerate(domains[parent])} for parent in block.parents
    ]
    default: list[float] | None = None
    for kind, labels, numbers in block.entries:
        if kind == "row":
            place = _place(block, labels, positions)
            if len(numbers) != size:
                refuse_length(numbers, size, _row_name(block, place, domains))
            refuse_twice(place)
            rows[place], given[place] = numbers, True
        elif kind == "table":
            if len(numbers) != count * size:
                refuse_length(numbers, count * size, f"the table of P({block.name})")
            refuse_twice(int(given.argmax()))
            rows[:], given[:] = np.reshape(numbers, (size, count)).T, True
        else:
            if len(numbers) != size:
                refuse_length(numbers, size, f"the default of P({block.name})")
            default = numbers
    if default is not None:
        rows[~given] = default
    elif not given.all():
        missing = _row_name(block, int(given.argmin()), domains)
        raise DowiseError(f"{missing} is missing: add this row, or a 'default' line")
    return rows


def _place(block: Block, labels: tuple[str, ...], positions: Sequence[Mapping[str, int]]) -> int:
    """The position of a row; the label of the last parent varies fastest."""
    if len(labels) != len(block.parents):
        parents = ", ".join(block.parents)
        remedy = f"give one label for each of {parents}" if parents else "write 'table ...;'"
        raise DowiseError(
            f"{_row(block, labels)}: {block.name} has {len(block.parents)} parents, "
            f"not {len(labels)}: {remedy}"
        )
    place = 0
    for parent, label, domain in zip(block.parents, labels, positions, strict=True):
        if label not in domain:
            raise DowiseError(
                f"{_row(block, labels)}: {parent} has no label {label!r}"
                f"{suggestion(label, domain)}; its labels are {listed(domain)}"
            )
        place = place * len(domain) + domain[label]
    return place


def _row(block: Block, labels: tuple[str, ...]) -> str:
    """A row as the file has it."""
    return f"P({block.name}), row ({', '.join(labels)})"


def _row_name(block: Block, place: int, domains: Domains) -> str:
    """The row at this position as it reads in a formula: `P(X | A=a, B=b)`."""
    given: list[str] = []
    for parent in reversed(block.parents):
        place, position = divmod(place, len(domains[parent]))
        given.insert(0, f"{parent}={domains[parent][position]}")
    return f"P({block.name} | {', '.join(given)})" if given else f"P({block.name})"
