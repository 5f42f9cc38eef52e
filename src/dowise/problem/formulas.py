r"""Expected reward of each arm as a formula: a sum of products of conditional probabilities.

An intervention replaces the mechanisms of the variables that it sets and leaves all others as they
are. So without hidden common causes P(v | do(x)) is the product of P(vᵢ | paᵢ) over the variables
that are not set (the truncated factorisation, section 4). Summing out everything except the reward
gives what section 3 prints for G1. A variable without a directed path to the reward under the arm
sums to 1 and is left out; the context is fixed at its value.

>>> from dowise.problem import load_problem
>>> for formula in formulas(load_problem("task1")):
...     print(formula)
P(Y=1 | do()) = Σ_{x,z} P(Y=1 | X=x, Z=z) P(X=x | Z=z) P(Z=z)
P(Y=1 | do(X=0)) = Σ_{z} P(Y=1 | X=0, Z=z) P(Z=z)
P(Y=1 | do(X=1)) = Σ_{z} P(Y=1 | X=1, Z=z) P(Z=z)

With hidden common causes there is one factor for each variable and its component T:
P(v | T, do(the parents of T)). If an arm leaves v the same component as do(), they share its
factor, and the condition may be observed as well: the factor is written without do(). (Without
hidden causes this is always so.)

>>> from dowise.graph import CausalGraph
>>> front_door = Problem(CausalGraph.parse("X -> Z -> Y; X <-> Y"), "Y", arms="all")
>>> for formula in formulas(front_door)[::2][:3]:
...     print(formula)
P(Y=1 | do()) = Σ_{x,z} P(Y=1 | X=x, Z=z) P(Z=z | X=x) P(X=x)
P(Y=1 | do(X=1)) = Σ_{z} P(Y=1 | do(Z=z)) P(Z=z | X=1)
P(Y=1 | do(Z=1)) = Σ_{x} P(Y=1 | X=x, Z=1) P(X=x)

With doubtful edges these are the formulas of the graph with all of them.

A value that a formula leaves open or sums over is written as in a textbook, Z=z. The letter is the
first one of the name, with a number if it could be confused with another variable, value or label.

>>> notation = Notation(("Alcohol", "alcohol", "X1", "Age", "Stage"), frozenset({"0", "s"}))
>>> notation.symbols
{'Alcohol': 'a1', 'alcohol': 'a2', 'X1': 'x1', 'Age': 'a3', 'Stage': 's1'}
>>> notation.text.probability([notation.text.event("X1", "0")], [notation.text.event("Stage")])
'P(X1=0 | Stage=s1)'

In LaTeX a letter with a number is a symbol with an index, and everything else is upright. Special
characters are escaped, Greek letters become commands, and other characters are set as text.

>>> print(notation.latex.probability([notation.latex.event("X1")]))
P(X_{1}=x_{1})
>>> print(latex_name("X1"), latex_name("β_2"), latex_name("blood_sugar"), latex_name("body-mass"))
X_{1} \beta_{2} \mathrm{blood\_sugar} \mathrm{body\text{-{}}mass}
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import count
from operator import or_

from dowise.graph.adjacency import bits
from dowise.graph.transforms import FactorOrder
from dowise.problem.intervention import Intervention, bare_or_quoted
from dowise.problem.problem import Problem

# The other Greek letters look like Latin ones, and LaTeX has no commands for them.
_LETTERS = "αβγδεζηθικλμνξπρςστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"
_COMMANDS = (
    r"\alpha \beta \gamma \delta \varepsilon \zeta \eta \theta \iota \kappa \lambda \mu \nu \xi "
    r"\pi \rho \varsigma \sigma \tau \upsilon \varphi \chi \psi \omega \Gamma \Delta \Theta "
    r"\Lambda \Xi \Pi \Sigma \Upsilon \Phi \Psi \Omega"
)
_GREEK = dict(zip(_LETTERS, _COMMANDS.split(), strict=True))
_ESCAPED = "_%&#${}"
_BLANK = r"\s\x00-\x1f\x7f"
_RUNS = re.compile(
    rf"[A-Za-z0-9]+|[{_BLANK}]+|[{_ESCAPED}{_LETTERS}]"
    rf"|[^A-Za-z0-9{_BLANK}{_ESCAPED}{_LETTERS}]+"
)
SYMBOL = re.compile(r"([^\W\d_])_?([0-9]*)")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_IN_TEXT = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{sign: sign + "{}" for sign in "-`'!?,"},  # no ligatures
}


def latex_name(name: str) -> str:
    """Return a letter with its number as an index, or the name in upright type."""
    match = SYMBOL.fullmatch(name)
    if match is None:
        return latex_upright(name)
    letter, digits = match.groups()
    written = _GREEK.get(letter) or (letter if letter.isascii() else latex_upright(letter))
    return f"{written}_{{{digits}}}" if digits else written


def latex_label(label: str) -> str:
    """Return numbers as they are, other labels in upright type."""
    return label if _NUMBER.fullmatch(label) else latex_upright(label)


def latex_upright(text: str) -> str:
    """Return the text in upright type."""
    return rf"\mathrm{{{_RUNS.sub(_escape, text)}}}"


def _escape(match: re.Match[str]) -> str:
    run = match[0]
    if run in _GREEK:
        return f"{{{_GREEK[run]}}}"
    if run in _ESCAPED:
        return f"\\{run}"
    if run.isascii() and run.isalnum():
        return run
    if re.match(f"[{_BLANK}]", run):
        return r"\ "
    return rf"\text{{{''.join(_IN_TEXT.get(sign, sign) for sign in run)}}}"


@dataclass(frozen=True)
class Writer:
    """Writer of the parts of a formula, as text or LaTeX."""

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
        """Return the symbol of any value, with a prime for each sum inside which it is rebound."""
        return self.symbol(name) + "'" * primes

    def event(self, name: str, label: str | None = None, primes: int = 0) -> str:
        """Return the event that the variable has this value; without a label, any value."""
        value = self.value(name, primes) if label is None else self.label(label)
        return f"{self.name(name)}={value}"

    def do(self, settings: Iterable[str]) -> str:
        """Return do(X=0, …)."""
        return f"{self.do_sign}({', '.join(settings)})"

    def probability(
        self, events: Iterable[str], conditions: Iterable[str] = (), under: Iterable[str] = ()
    ) -> str:
        """Return P(events | conditions), in the distribution `under` these settings."""
        settings, condition = ", ".join(under), ", ".join(conditions)
        inside = ", ".join(events) + (self.bar + condition if condition else "")
        return f"P_{{{settings}}}({inside})" if settings else f"P({inside})"

    def worth(self, value: str) -> str:
        """Return the symbol of the worth of a reward value."""
        return f"{self.worth_sign}({value})"

    def mean(self, quantity: str, conditions: Iterable[str]) -> str:
        """Return E[quantity | conditions]."""
        return f"{self.mean_sign}[{quantity}{self.bar}{', '.join(conditions)}]"

    def sum(self, values: Iterable[str]) -> str:
        """Return the sign of a sum over these values; "" if there are none."""
        below = ",".join(values)
        return f"{self.sum_sign}_{{{below}}} " if below else ""

    def ratio(self, top: str, bottom: str) -> str:
        """Return a fraction."""
        return self.fraction % (top, bottom)


@dataclass(frozen=True)
class Notation:
    """Symbols for values of variables, distinct from all labels."""

    variables: tuple[str, ...]
    labels: frozenset[str] = frozenset()

    @cached_property
    def symbols(self) -> Mapping[str, str]:
        """Symbol of any value of each variable."""
        stems = {name: _stem(name) for name in self.variables}
        shared = Counter(stems.values())
        # LaTeX writes the name z_1 and the value z1 in the same way, with an index.
        reserved = {*self.variables, *self.labels}
        reserved |= {
            match[1] + match[2] for match in map(SYMBOL.fullmatch, self.variables) if match
        }
        free = {name for name, stem in stems.items() if shared[stem] == 1 and stem not in reserved}
        reserved |= {stems[name] for name in free}
        symbols = {}
        for name, stem in stems.items():
            numbered = (f"{stem[0]}{number}" for number in count(1))
            symbols[name] = stem if name in free else next(x for x in numbered if x not in reserved)
            reserved.add(symbols[name])
        return symbols

    @cached_property
    def text(self) -> Writer:
        """Writer for plain text: Σ_{z} P(Y=1 | X=0, Z=z) P(Z=z)."""
        return Writer(bare_or_quoted, bare_or_quoted, self.symbols.__getitem__)

    @cached_property
    def latex(self) -> Writer:
        """Writer for LaTeX with amsmath and amssymb, without the dollar signs."""
        names = {name: latex_name(name) for name in self.variables}
        uses = Counter(names.values())  # X1 and X_1 have one LaTeX name

        def name_of(name: str) -> str:
            return names[name] if uses[names[name]] == 1 else latex_upright(name)

        return Writer(
            name_of,
            latex_label,
            lambda name: latex_name(self.symbols[name]),
            bar=r" \mid ",
            mean_sign=r"\mathbb{E}",
            do_sign=r"\mathrm{do}",
            worth_sign=r"\mathrm{worth}",
            sum_sign=r"\sum",
            fraction=r"\frac{%s}{%s}",
        )


def notation_of(problem: Problem) -> Notation:
    """Return the notation that all formulas of a problem share."""
    labels = frozenset().union(*problem.domains.values())
    return Notation(problem.graph.variables, labels)


def _stem(name: str) -> str:
    """Return the symbol that a name suggests: x1 for X1, h for Health."""
    match = SYMBOL.fullmatch(name)
    if match:
        return match[1].lower()[0] + match[2]
    return next((sign.lower()[0] for sign in name if sign.isalpha()), "v")


@dataclass(frozen=True)
class Factor:
    """P(variable | do(intervened), observed)."""

    variable: str
    observed: tuple[str, ...]
    intervened: tuple[str, ...] = ()


@dataclass(frozen=True)
class Formula:
    """Expected reward of one arm: a sum of products of conditional probabilities.

    If the reward has two values, worth 0 and 1, the expected reward is the probability of the label
    `good` that is worth 1. Otherwise `good` is None, and the sum includes the reward, weighted by
    its worth.
    """

    arm: Intervention
    reward: str
    context: tuple[str, ...]
    summed: tuple[str, ...]
    factors: tuple[Factor, ...]
    good: str | None
    notation: Notation = field(repr=False)

    @property
    def is_observational(self) -> bool:
        """True if no factor has a do(): then observational data suffice."""
        return not any(factor.intervened for factor in self.factors)

    @property
    def is_trivial(self) -> bool:
        """True if the only factor is the distribution of the reward under this arm."""
        itself = Factor(self.reward, self.context, tuple(self.arm))
        return self.good is not None and bool(self.arm) and self.factors == (itself,)

    def __str__(self) -> str:
        text = self.notation.text
        if self.is_trivial:
            return f"{self._left(text)} is a factor that observing alone does not determine"
        return f"{self._left(text)} = {self._right(text)}"

    def latex(self) -> str:
        """Return the formula as LaTeX, without dollar signs."""
        latex = self.notation.latex
        if self.is_trivial:
            return rf"{self._left(latex)} \quad\text{{(a factor)}}"
        return f"{self._left(latex)} = {self._right(latex)}"

    def _left(self, write: Writer) -> str:
        arm = write.do(self._event(name, write) for name in self.arm)
        conditions = [arm, *map(write.event, self.context)]
        if self.good is None:
            return write.mean(write.worth(write.name(self.reward)), conditions)
        return write.probability([write.event(self.reward, self.good)], conditions)

    def _right(self, write: Writer) -> str:
        terms = [self._term(factor, write) for factor in self.factors]
        if self.good is None:
            terms.insert(0, write.worth(write.value(self.reward)))
        return write.sum(map(write.value, self.summed)) + " ".join(terms)

    def _term(self, factor: Factor, write: Writer) -> str:
        conditions = [self._event(name, write) for name in factor.observed]
        if factor.intervened:
            conditions.insert(0, write.do(self._event(name, write) for name in factor.intervened))
        return write.probability([self._event(factor.variable, write)], conditions)

    def _event(self, name: str, write: Writer) -> str:
        return write.event(name, self.good if name == self.reward else self.arm.get(name))


def formulas(problem: Problem) -> tuple[Formula, ...]:
    """Return the reward formula of each arm, in the order of the arms."""
    return tuple(iter_formulas(problem))


def iter_formulas(
    problem: Problem, arms: Iterable[Intervention] | None = None
) -> Iterator[Formula]:
    """Yield the reward formulas of these arms, or of all arms, one at a time."""
    worth, reward = problem.reward_values, problem.reward
    zero_one = sorted(worth.values()) == [0.0, 1.0]
    good = next(label for label in worth if worth[label] == 1.0) if zero_one else None
    order = FactorOrder(problem.possible, problem.context, problem.reward, problem.order)
    notation = notation_of(problem)
    for arm in problem.arms if arms is None else arms:
        left_open, factors = _factors(problem, order, arm)
        summed = tuple(name for name in left_open if good is None or name != reward)
        yield Formula(arm, reward, problem.context, summed, factors, good, notation)


def _factors(
    problem: Problem, order: FactorOrder, arm: Intervention
) -> tuple[tuple[str, ...], tuple[Factor, ...]]:
    """Return the variables that an arm leaves open, and their factors."""
    names, cut = order.graph.variables, order.graph.mask(arm)
    by_variable = {v: _factor(order, v, cut) for v in _needed(order, problem.reward_position, cut)}
    hides = any(order.edges.siblings)
    causes_first = order.variables if hides else order.graph.adjacency.topological_order()
    factors = tuple(by_variable[v] for v in reversed(causes_first) if v in by_variable)
    return tuple(names[v] for v in sorted(by_variable)), factors


def _needed(order: FactorOrder, reward: int, cut: int) -> Iterable[int]:
    """Return the variables whose factors the reward needs if those of `cut` are set."""
    needed = new = 1 << reward
    while new:
        scopes = reduce(or_, (order.scope(order.key(v, cut)) for v in bits(new)))
        new = scopes & ~(needed | cut | order.context)
        needed |= new
    return bits(needed)


def _factor(order: FactorOrder, v: int, cut: int) -> Factor:
    """Return the factor of v if the variables of `cut` are set.

    The context outside T shares no hidden cause with T, so observing it is as good as setting it.
    """
    key = order.key(v, cut)
    scope, names = order.scope(key), order.graph.names
    intervened = 0 if key == order.key(v, 0) else scope & ~key[1] & ~order.context
    return Factor(order.graph.variables[v], names(scope & ~intervened), names(intervened))
