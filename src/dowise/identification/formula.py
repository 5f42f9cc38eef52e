"""Formulas for the effect of an intervention in terms of experiments: a small algebra.

    P_{B=b}(Y=y) = Σ_{a,c} P(C=c | A=a, B=b) Σ_{b'} P(A=a, B=b') P(Y=y | A=a, B=b', C=c)

A formula is a tree of terms, products, quotients and sums. A term P_Z(v | w) is read off the data
of the experiments on Z. Variables denote their values; a sum binds its variables, and a variable
that is bound again inside is a different one, which is printed with a prime.

The constructors `product`, `quotient` and `total` simplify as they build: they merge P(a) P(b | a)
into P(a, b), cancel common factors of a quotient, and drop a conditional that sums to 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from dowise.problem.formulas import Notation, Writer

Names = frozenset[str]


@dataclass(frozen=True)
class Term:
    """P_experiment(variables | given)."""

    experiment: Names
    variables: Names
    given: Names = frozenset()

    @cached_property
    def free(self) -> Names:
        """Variables whose values the term depends on."""
        return self.experiment | self.variables | self.given

    def terms(self) -> tuple[Term, ...]:
        """Return the term itself."""
        return (self,)


@dataclass(frozen=True)
class Product:
    """Product of factors; 1 if there are none."""

    factors: tuple[Expression, ...]

    @cached_property
    def free(self) -> Names:
        """Variables whose values it depends on."""
        return frozenset().union(*(factor.free for factor in self.factors))

    def terms(self) -> tuple[Term, ...]:
        """Return all terms in it."""
        return tuple(term for factor in self.factors for term in factor.terms())


@dataclass(frozen=True)
class Quotient:
    """Quotient of two expressions."""

    top: Expression
    bottom: Expression

    @cached_property
    def free(self) -> Names:
        """Variables whose values it depends on."""
        return self.top.free | self.bottom.free

    def terms(self) -> tuple[Term, ...]:
        """Return all terms in it."""
        return self.top.terms() + self.bottom.terms()


@dataclass(frozen=True)
class Sum:
    """Sum over all values of the bound variables."""

    bound: Names
    body: Expression

    @cached_property
    def free(self) -> Names:
        """Variables whose values it depends on."""
        return self.body.free - self.bound

    def terms(self) -> tuple[Term, ...]:
        """Return all terms in it."""
        return self.body.terms()


Expression = Term | Product | Quotient | Sum


def product(factors: Iterable[Expression]) -> Expression:
    """Return the product, simplified."""
    above: list[Expression] = []
    below: list[Expression] = []
    waiting = list(factors)
    while waiting:
        factor = waiting.pop(0)
        if isinstance(factor, Product):
            waiting[:0] = factor.factors
        elif isinstance(factor, Quotient):
            waiting.insert(0, factor.top)
            below.append(factor.bottom)
        else:
            above.append(factor)
    bottom_factors = [x for part in below for x in _factors(part)]
    top, bottom = _cancelled(_merged(above), _merged(bottom_factors))
    return quotient(_plain_product(top), _plain_product(bottom))


def quotient(top: Expression, bottom: Expression) -> Expression:
    """Return the quotient, simplified if the bottom is 1."""
    if bottom == _ONE:
        return top
    return Quotient(top, bottom)


def total(bound: Collection[str], body: Expression) -> Expression:
    """Return Σ over the bound variables, without distributions that sum to 1."""
    names = frozenset(bound) & body.free
    if isinstance(body, Sum) and not names & body.bound:
        return total(names | body.bound, body.body)
    factors = list(_factors(body))
    nested = [x for x in factors if isinstance(x, Sum)]
    if len(nested) == 1:  # Σ_a f(a) Σ_b g(a, b) = Σ_{a,b} f(a) g(a, b), if f does not depend on b
        rest = [x for x in factors if x is not nested[0]]
        if not nested[0].bound & frozenset().union(names, *(x.free for x in rest)):
            return total(names | nested[0].bound, product([*rest, nested[0].body]))
    for name in sorted(names):
        holders = [i for i, factor in enumerate(factors) if name in factor.free]
        if len(holders) > 1:
            continue
        term = factors[holders[0]]
        if isinstance(term, Term) and name in term.variables:
            left = term.variables - {name}
            factors[holders[0] : holders[0] + 1] = (
                [Term(term.experiment, left, term.given)] if left else []
            )
            return total(names - {name}, product(factors))
    return Sum(names, body) if names else body


_ONE = Product(())


def _factors(expression: Expression) -> tuple[Expression, ...]:
    return expression.factors if isinstance(expression, Product) else (expression,)


def _plain_product(factors: list[Expression]) -> Expression:
    ordered = sorted(factors, key=_place)
    return ordered[0] if len(ordered) == 1 else Product(tuple(ordered))


def _place(expression: Expression) -> tuple[int, str]:
    """Return a sort key, so that equal products are equal: terms come first."""
    kind = (Term, Product, Quotient, Sum).index(type(expression))
    return kind, _whole(expression, _BY_NAME)


def _merged(factors: list[Expression]) -> list[Expression]:
    """Apply P_Z(a | c) P_Z(b | a, c) = P_Z(a, b | c) as long as there are such pairs."""
    merged = list(factors)
    for first in merged:
        for second in merged:
            if (
                isinstance(first, Term)
                and isinstance(second, Term)
                and first.experiment == second.experiment
                and second.given == first.given | first.variables
                and not second.variables & first.free
            ):
                rest = [x for x in merged if x is not first and x is not second]
                joint = Term(first.experiment, first.variables | second.variables, first.given)
                return _merged([*rest, joint])
    return merged


def _cancelled(
    top: list[Expression], bottom: list[Expression]
) -> tuple[list[Expression], list[Expression]]:
    common = Counter(top) & Counter(bottom)
    return list((Counter(top) - common).elements()), list((Counter(bottom) - common).elements())


class _ByName(Writer):
    """Writer that uses names only: an order that does not depend on the choice of symbols."""

    def event(self, name: str, label: str | None = None, primes: int = 0) -> str:
        assert label is None
        return name + "'" * primes


_BY_NAME = _ByName(str, str, str)


# -- printing -----------------------------------------------------------------------------------


def as_text(expression: Expression, notation: Notation | None = None) -> str:
    """Return the expression as text: P_{B=b}(C=c | A=a)."""
    return _whole(expression, (notation or _default_notation(expression)).text)


def as_latex(expression: Expression, notation: Notation | None = None) -> str:
    """Return the expression in LaTeX, without the dollar signs."""
    return _whole(expression, (notation or _default_notation(expression)).latex)


def _default_notation(expression: Expression) -> Notation:
    return Notation(tuple(sorted(frozenset().union(*(term.free for term in expression.terms())))))


def _whole(expression: Expression, write: Writer) -> str:
    return _written(expression, write, dict.fromkeys(expression.free, 0))


def _written(expression: Expression, write: Writer, primes: Mapping[str, int]) -> str:
    def events(group: Names) -> list[str]:
        return [write.event(name, primes=primes.get(name, 0)) for name in sorted(group)]

    if isinstance(expression, Term):
        return write.probability(
            events(expression.variables), events(expression.given), events(expression.experiment)
        )
    if isinstance(expression, Quotient):
        return write.ratio(
            _written(expression.top, write, primes), _written(expression.bottom, write, primes)
        )
    if isinstance(expression, Sum):
        inner = {**primes, **{name: primes.get(name, -1) + 1 for name in expression.bound}}
        over = write.sum(write.value(name, inner[name]) for name in sorted(expression.bound))
        return over + _written(expression.body, write, inner)
    parts = [_written(factor, write, primes) for factor in expression.factors]
    if len(parts) > 1:  # a sum inside a product needs brackets unless it comes last
        parts = [
            f"[{part}]" if isinstance(factor, Sum) and i + 1 < len(parts) else part
            for i, (factor, part) in enumerate(zip(expression.factors, parts, strict=True))
        ]
    return " ".join(parts) or "1"
