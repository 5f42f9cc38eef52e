r"""How formulas are written: variables by their names as they are spelled, values by small letters.

A value that a formula leaves open or sums over is written as in a textbook, Z=z. The letter is that
with which the name begins, with a number where it would be taken for another variable, for another
value or for a label.

>>> notation = Notation(("Alcohol", "alcohol", "X1", "Age", "Stage"), frozenset({"0", "s"}))
>>> notation.symbols
{'Alcohol': 'a1', 'alcohol': 'a2', 'X1': 'x1', 'Age': 'a3', 'Stage': 's1'}
>>> notation.text.probability([notation.text.event("X1", "0")], [notation.text.event("Stage")])
'P(X1=0 | Stage=s1)'
>>> print(notation.latex.probability([notation.latex.event("X1")]))
P(X_{1}=x_{1})
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count

from dowise.problem.intervention import bare_or_quoted
from dowise.problem.latex import SYMBOL, latex_label, latex_name, latex_upright
from dowise.problem.problem import Problem

__all__ = ["Notation", "Writer", "notation_of"]


@dataclass(frozen=True)
class Writer:
    """Writes the parts of a formula."""

    name: Callable[[str], str]
    label: Callable[[str], str]
    symbol: Callable[[str], str]
    bar: str = " | "
    mean_sign: str = "E"
    do_sign: str = "do"
    worth_sign: str = "worth"
    sum_sign: str = "Σ"
    fraction: str = "[%s] / [%s]"

    def value(self, name: str, primes: int = 0) -> str:
        """Any value of the variable; one bound again inside a sum has a prime more."""
        return self.symbol(name) + "'" * primes

    def event(self, name: str, label: str | None = None, primes: int = 0) -> str:
        """That the variable has this value; without a label, any value."""
        value = self.value(name, primes) if label is None else self.label(label)
        return f"{self.name(name)}={value}"

    def do(self, settings: Iterable[str]) -> str:
        """do(X=0, …)."""
        return f"{self.do_sign}({', '.join(settings)})"

    def probability(
        self, events: Iterable[str], given: Iterable[str] = (), under: Iterable[str] = ()
    ) -> str:
        """P(events | given), by the distribution `under` these settings."""
        where, known = ", ".join(under), ", ".join(given)
        inside = ", ".join(events) + (self.bar + known if known else "")
        return f"P_{{{where}}}({inside})" if where else f"P({inside})"

    def worth(self, what: str) -> str:
        """What a value of the reward is worth."""
        return f"{self.worth_sign}({what})"

    def mean(self, what: str, given: Iterable[str]) -> str:
        """E[what | given]."""
        return f"{self.mean_sign}[{what}{self.bar}{', '.join(given)}]"

    def sum(self, values: Iterable[str]) -> str:
        """The sign of a sum over these values; nothing where there are none."""
        below = ",".join(values)
        return f"{self.sum_sign}_{{{below}}} " if below else ""

    def ratio(self, top: str, bottom: str) -> str:
        """One divided by the other."""
        return self.fraction % (top, bottom)


@dataclass(frozen=True)
class Notation:
    """The symbols for the values of these variables, which are none of the labels."""

    variables: tuple[str, ...]
    labels: frozenset[str] = frozenset()

    @cached_property
    def symbols(self) -> Mapping[str, str]:
        """For each variable the letter for any value of it."""
        stems = {name: _stem(name) for name in self.variables}
        shared = Counter(stems.values())
        # LaTeX has z_1 and the value z1 alike, as an index.
        taken = {*self.variables, *self.labels, *map(_without_line, self.variables)}
        free = {name for name, stem in stems.items() if shared[stem] == 1 and stem not in taken}
        taken |= {stems[name] for name in free}
        found = {}
        for name, stem in stems.items():
            numbered = (f"{stem[0]}{number}" for number in count(1))
            found[name] = (
                stem if name in free else next(symbol for symbol in numbered if symbol not in taken)
            )
            taken.add(found[name])
        return found

    @cached_property
    def text(self) -> Writer:
        """For people: Σ_{z} P(Y=1 | X=0, Z=z) P(Z=z)."""
        return Writer(bare_or_quoted, bare_or_quoted, self.symbols.__getitem__)

    @cached_property
    def latex(self) -> Writer:
        """For LaTeX with amsmath and amssymb, without the dollar signs."""
        written = {name: latex_name(name) for name in self.variables}
        alike = Counter(written.values())  # X1 and X_1

        def name_of(name: str) -> str:
            return written[name] if alike[written[name]] == 1 else latex_upright(name)

        return Writer(
            name_of, latex_label, lambda name: latex_name(self.symbols[name]),
            bar=r" \mid ", mean_sign=r"\mathbb{E}", do_sign=r"\mathrm{do}",
            worth_sign=r"\mathrm{worth}", sum_sign=r"\sum", fraction=r"\frac{%s}{%s}",
        )  # fmt: skip


def notation_of(problem: Problem) -> Notation:
    """One notation for all formulas of the problem."""
    labels = frozenset().union(*problem.domains.values())
    return Notation(problem.graph.variables, labels)


def _without_line(name: str) -> str:
    """z1 for z_1, the same for all that is no letter with an index."""
    match = SYMBOL.fullmatch(name)
    return match[1] + match[2] if match else name


def _stem(name: str) -> str:
    """The symbol that the name suggests: x1 for X1, h for Health."""
    match = SYMBOL.fullmatch(name)
    if match:
        return match[1].lower()[0] + match[2]
    return next((sign.lower()[0] for sign in name if sign.isalpha()), "v")
