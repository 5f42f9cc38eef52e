"""Formulas for the effect of an intervention in terms of experiments: a small algebra.

    P_{B=b}(Y=y) = Σ_{a,c} P(C=c | A=a, B=b) Σ_{b'} P(A=a, B=b') P(Y=y | A=a, B=b', C=c)

A formula is a tree of terms, products, quotients and sums. A term P_Z(v | w) is estimated from the
data of the experiments on Z. A variable denotes its value. A sum binds its variables; a variable
that is bound again inside a sum is another variable, which is printed with a prime.

The constructors `product`, `quotient` and `total` simplify: they merge P(a) P(b | a) into P(a, b),
cancel common factors of a quotient, and drop a conditional that sums to 1.
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
        """Variables whose values the expression depends on."""
        return self.experiment | self.variables | self.given

    def terms(self) -> tuple[Term, ...]:
        """Return all terms of the expression."""
        return (self,)


@dataclass(frozen=True)
class Product:
    """Product of factors; 1 if there are none."""

    factors: tuple[Expression, ...]

    @cached_property
    def free(self) -> Names:
        """Variables whose values the expression depends on."""
        return frozenset().union(*(factor.free for factor in self.factors))

    def terms(self) -> tuple[Term, ...]:
        """Return all terms of the expression."""
        return tuple(term for factor in self.factors for term in factor.terms())


@dataclass(frozen=True)
class Quotient:
    """Quotient of two expressions."""

    top: Expression
    bottom: Expression

    @cached_property
    def free(self) -> Names:
        """Variables whose values the expression depends on."""
        return self.top.free | self.bottom.free

    def terms(self) -> tuple[Term, ...]:
        """Return all terms of the expression."""
        return self.top.terms() + self.bottom.terms()


@dataclass(frozen=True)
class Sum:
    """Sum over all values of the bound variables."""

    bound: Names
    body: Expression

    @cached_property
    def free(self) -> Names:
        """Variables whose values the expression depends on."""
        return self.body.free - self.bound

    def terms(self) -> tuple[Term, ...]:
        """Return all terms of the expression."""
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
    bottom_factors = [x for part in below for x in factors_of(part)]
    top, bottom = Counter(_merged(above)), Counter(_merged(bottom_factors))
    common = top & bottom
    return quotient(_plain_product(top - common), _plain_product(bottom - common))


def quotient(top: Expression, bottom: Expression) -> Expression:
    """Return the quotient, simplified if the bottom is 1."""
    return top if bottom == _ONE else Quotient(top, bottom)


def total(bound: Collection[str], body: Expression) -> Expression:
    """Return Σ over the bound variables, without distributions that sum to 1."""
    names = frozenset(bound) & body.free
    if isinstance(body, Sum) and not names & body.bound:
        return total(names | body.bound, body.body)
    factors = list(factors_of(body))
    nested = [x for x in factors if isinstance(x, Sum)]
    if len(nested) == 1:  # Σ_a f(a) Σ_b g(a, b) = Σ_{a,b} f(a) g(a, b), if f does not depend on b
        outer = [x for x in factors if x is not nested[0]]
        if not nested[0].bound & frozenset().union(names, *(x.free for x in outer)):
            return total(names | nested[0].bound, product([*outer, nested[0].body]))
    for name in sorted(names):
        holders = [i for i, factor in enumerate(factors) if name in factor.free]
        if len(holders) > 1:
            continue
        term = factors[holders[0]]
        if isinstance(term, Term) and name in term.variables:
            variables = term.variables - {name}
            summed = [Term(term.experiment, variables, term.given)] if variables else []
            factors[holders[0] : holders[0] + 1] = summed
            return total(names - {name}, product(factors))
    return Sum(names, body) if names else body


_ONE = Product(())


def factors_of(expression: Expression) -> tuple[Expression, ...]:
    """Return the factors of a product, or the expression itself."""
    return expression.factors if isinstance(expression, Product) else (expression,)


def _plain_product(factors: Counter[Expression]) -> Expression:
    ordered = sorted(factors.elements(), key=_sort_key)
    return ordered[0] if len(ordered) == 1 else Product(tuple(ordered))


def _sort_key(expression: Expression) -> tuple[int, str]:
    """Return a sort key that puts terms first, so that equal products compare equal."""
    kind = (Term, Product, Quotient, Sum).index(type(expression))
    return kind, _to_string(expression, _BY_NAME)


def _merged(factors: list[Expression]) -> list[Expression]:
    """Apply P_Z(a | c) P_Z(b | a, c) = P_Z(a, b | c) to all such pairs."""
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
                joint = Term(first.experiment, first.variables | second.variables, first.given)
                unchanged = [x for x in merged if x is not first and x is not second]
                return _merged([*unchanged, joint])
    return merged


class _ByName(Writer):
    """Writer of names only, for an order that does not depend on the choice of symbols."""

    def event(self, name: str, label: str | None = None, primes: int = 0) -> str:
        assert label is None
        return name + "'" * primes


_BY_NAME = _ByName(str, str, str)


# -- printing -----------------------------------------------------------------------------------


def as_text(expression: Expression, notation: Notation | None = None) -> str:
    """Return the expression as text: P_{B=b}(C=c | A=a)."""
    return _to_string(expression, (notation or _default_notation(expression)).text)


def as_latex(expression: Expression, notation: Notation | None = None) -> str:
    """Return the expression in LaTeX, without the dollar signs."""
    return _to_string(expression, (notation or _default_notation(expression)).latex)


def _default_notation(expression: Expression) -> Notation:
    return Notation(tuple(sorted(frozenset().union(*(term.free for term in expression.terms())))))


def _to_string(expression: Expression, write: Writer) -> str:
    return _write(expression, write, dict.fromkeys(expression.free, 0))


def _write(expression: Expression, write: Writer, primes: Mapping[str, int]) -> str:
    def events(group: Names) -> list[str]:
        return [write.event(name, primes=primes.get(name, 0)) for name in sorted(group)]

    if isinstance(expression, Term):
        return write.probability(
            events(expression.variables), events(expression.given), events(expression.experiment)
        )
    if isinstance(expression, Quotient):
        return write.ratio(
            _write(expression.top, write, primes), _write(expression.bottom, write, primes)
        )
    if isinstance(expression, Sum):
        inner = {**primes, **{name: primes.get(name, -1) + 1 for name in expression.bound}}
        over = write.sum(write.value(name, inner[name]) for name in sorted(expression.bound))
        return over + _write(expression.body, write, inner)
    parts = [_write(factor, write, primes) for factor in expression.factors]
    if len(parts) > 1:  # a sum inside a product needs brackets unless it comes last
        parts = [
            f"[{part}]" if isinstance(factor, Sum) and i + 1 < len(parts) else part
            for i, (factor, part) in enumerate(zip(expression.factors, parts, strict=True))
        ]
    return " ".join(parts) or "1"
