"""A plain twin of z2-ts: dense tables, NumPy for the bootstrap and the formulas, SLSQP for weights.

The formulas are the library's own (`dowise.identification.identify`); everything numeric is
written out again, as one would in an afternoon: all arms are resampled in every round, contraction
paths are found once.
"""

from __future__ import annotations

import string

import numpy as np
from scipy.optimize import minimize

from dowise import Intervention, Problem
from dowise.identification import estimators
from dowise.identification.formula import Product, Sum, Term


class NumpyZ2:
    """Two-valued variables, formulas without quotients: enough for the paper's tasks."""

    def __init__(self, problem: Problem, resamples: int = 100) -> None:
        self.problem, self.resamples = problem, resamples
        self.names = [name for name in problem.graph if name not in problem.context]
        self.letter = dict(zip(self.names, string.ascii_letters, strict=False))
        self.counts: dict = {}
        self.paths: dict = {}

    def observe(self, arm, outcome) -> None:
        seen = {**outcome, **arm}
        place = tuple(int(seen[name]) for name in self.names)
        self._tables(tuple(str(seen[name]) for name in self.problem.context))[arm][place] += 1

    def _tables(self, context):
        if context not in self.counts:
            shape = [2] * len(self.names)
            self.counts[context] = {arm: np.zeros(shape) for arm in self.problem.arms}
        return self.counts[context]

    def decide(self, context, rng):
        tables = self._tables(tuple(str(context[name]) for name in self.problem.context))
        drawn = {}
        for arm, table in tables.items():
            lanes = np.zeros((1 + self.resamples, *table.shape))
            total = int(table.sum())
            if total:
                flat = rng.multinomial(total, table.ravel() / total, size=self.resamples)
                lanes[0], lanes[1:] = table, flat.reshape(-1, *table.shape)
            drawn[arm] = lanes
        draws = []
        for arm in self.problem.arms:
            mean, variance = self.pooled(arm, drawn)
            spread = mean * (1 - mean)
            if not 0 < variance < spread:
                table = tables[arm]
                won = table.take(1, axis=self.names.index(self.problem.reward)).sum()
                draws.append(rng.beta(1 + won, 1 + table.sum() - won))
            else:
                kappa = spread / variance - 1
                draws.append(rng.beta(kappa * mean, kappa * (1 - mean)))
        return self.problem.arms[int(np.argmax(draws))]

    def pooled(self, arm, drawn):
        with np.errstate(invalid="ignore", divide="ignore"):
            values = np.array([self.lanes(e, arm, free, drawn) for e, free in self.instances(arm)])
        undefined = np.isnan(values)
        kept = ~undefined[:, 0] & (undefined[:, 1:].mean(axis=1) <= 0.1)
        values = values[kept]
        if not len(values):
            return np.nan, np.nan
        usable = values[:, 1:][:, ~np.isnan(values[:, 1:]).any(axis=0)]
        covariance = np.cov(usable).reshape(len(values), len(values))
        varying = covariance.diagonal() > 1e-15
        if not varying.any():
            return values[0, 0], 0.0
        values, covariance = values[varying], covariance[np.ix_(varying, varying)]
        weights = self.weights(covariance)
        return float(weights @ values[:, 0]), float(weights @ covariance @ weights)

    def weights(self, covariance):
        size = len(covariance)
        if size == 1:
            return np.ones(1)
        scale = covariance.diagonal().max()
        solved = minimize(
            lambda w: w @ covariance @ w / scale,
            np.full(size, 1 / size),
            jac=lambda w: 2 * covariance @ w / scale,
            bounds=[(0, 1)] * size,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
            method="SLSQP",
            options={"ftol": 1e-10},
        )
        return solved.x

    def instances(self, arm):
        for estimator in estimators(self.problem)[arm.variables]:
            for values in np.ndindex(*[2] * len(estimator.any_value)):
                yield estimator, dict(zip(estimator.any_value, values, strict=True))

    def lanes(self, estimator, arm, free, drawn):
        fixed = {name: int(label) for name, label in arm.items()} | free
        return self.table(estimator.formula, {**fixed, self.problem.reward: 1}, drawn)[1]

    def table(self, formula, fixed, drawn):
        """(axes, array with the lanes first)."""
        if isinstance(formula, Term):
            return self.term(formula, fixed, drawn)
        body, bound = (formula.body, formula.bound) if isinstance(formula, Sum) else (formula, ())
        inner = {name: code for name, code in fixed.items() if name not in bound}
        factors = body.factors if isinstance(body, Product) else (body,)
        parts = [self.table(factor, inner, drawn) for factor in factors]
        axes = tuple(sorted({a for part, _ in parts for a in part} - {*bound}))
        terms = ["Z" + "".join(self.letter[a] for a in part) for part, _ in parts]
        text = ",".join(terms) + "->Z" + "".join(self.letter[a] for a in axes)
        arrays = [array for _, array in parts]
        if text not in self.paths:
            self.paths[text] = np.einsum_path(text, *arrays, optimize="greedy")[0]
        return axes, np.einsum(text, *arrays, optimize=self.paths[text])

    def term(self, term, fixed, drawn):
        axes = tuple(sorted(term.free - fixed.keys()))
        moving = [name for name in sorted(term.experiment) if name not in fixed]
        result = np.empty([len(next(iter(drawn.values()))), *[2] * len(axes)])
        for values in np.ndindex(*[2] * len(moving)):
            known = fixed | dict(zip(moving, values, strict=True))
            arm = Intervention({name: known[name] for name in term.experiment})
            event = self.marginal(drawn[arm], term.variables | term.given, known)
            given = self.marginal(drawn[arm], term.given, known)
            names = [n for n in self.names if n in term.variables | term.given and n not in known]
            shape = [len(event), *(2 if n in term.given else 1 for n in names)]
            place = tuple(known[a] if a in moving else slice(None) for a in axes)
            result[(slice(None), *place)] = event / given.reshape(shape)
        return axes, result

    def marginal(self, lanes, names, known):
        """The counts of these names, at the known values, by name."""
        away = tuple(1 + i for i, name in enumerate(self.names) if name not in names)
        table = lanes.sum(axis=away)
        index = [known.get(name, slice(None)) for name in self.names if name in names]
        return table[(slice(None), *index)]
