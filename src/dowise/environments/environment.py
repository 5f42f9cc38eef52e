"""A world with true CPTs: it shows contexts, plays arms, and knows what each of them costs.

>>> world = make_environment("task1", seed=7)
>>> world.play("do(X=1)", None, rng=0)
{'X': '1', 'Y': '0', 'Z': '1'}
>>> world.regret("do(X=0)") >= 0
True
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dowise.belief.randomness import Random, generator
from dowise.belief.rewards import Context, Rewards
from dowise.errors import DowiseError, suggestion
from dowise.problem import Intervention, Problem, load_problem
from dowise.problem.problem import ArmLike

__all__ = ["Environment", "make_environment"]

_ROUNDING = 1e-9


class Environment:
    """A problem whose CPTs are known to the world, though not to the one who decides.

    `cpts[v]` has one axis for each of `graph.parents(v)`, in that order, and a last one for `v`;
    its rows sum to 1. The graph must have no bidirected edges.
    """

    def __init__(self, problem: Problem, cpts: Mapping[str, ArrayLike]) -> None:
        if not isinstance(problem, Problem):
            raise DowiseError(f"a world needs a Problem, not a {type(problem).__name__}")
        if not isinstance(cpts, Mapping):
            raise DowiseError(f"cpts must map each variable to its table, not be {cpts!r}")
        self.problem = problem
        self._rewards = Rewards(problem)
        self._tables = self._rewards.tables
        for name in cpts:
            if name not in problem.graph:
                raise DowiseError(
                    f"unknown variable {name!r} in cpts{suggestion(str(name), problem.graph)}"
                )
        self._flat = np.empty(self._tables.entries)
        for name in problem.graph:
            self._tables.view(self._flat, name)[...] = self._checked(name, cpts)
        number = self._tables.number
        self._order = np.array([number[name] for name in problem.graph.topological_order()])
        self._context = [number[name] for name in problem.context]
        self._means: dict[tuple[int, ...], NDArray[np.float64]] = {}

    @property
    def cpts(self) -> dict[str, NDArray[np.float64]]:
        """The true CPTs, as copies."""
        return {name: self._tables.view(self._flat, name).copy() for name in self.problem.graph}

    def draw_context(self, rng: Random) -> dict[str, str]:
        """What is seen before the choice; empty where the problem has no context."""
        drawn = self._sample(Intervention(), (), generator(rng))
        return {name: drawn[name] for name in self.problem.context}

    def play(self, arm: ArmLike, context: Context, rng: Random) -> dict[str, str]:
        """Everything that is seen after an intervention in this context, what it set included."""
        played = self.problem.intervention(arm)
        return self._sample(played, self.problem.context_codes(context), generator(rng))

    def means(self, context: Context = None) -> NDArray[np.float64]:
        """μ(a, c): the true mean reward of every arm, exact, in the user's units."""
        codes = self.problem.context_codes(context)
        if codes not in self._means:
            self._means[codes] = (
                self._rewards.distributions(self._flat, context) @ self._rewards.worth
            )
        return self._means[codes].copy()

    def best_arm(self, context: Context = None) -> Intervention:
        """Π*(c); ties go to the first arm."""
        return self.problem.arms[int(self.means(context).argmax())]

    def regret(self, arm: ArmLike, context: Context = None) -> float:
        """μ*(c) − μ(a, c) under the true CPTs."""
        means = self.means(context)
        return float(means.max() - means[self.problem.arm_index(arm)])

    def __repr__(self) -> str:
        return f"<Environment of {self.problem!r}>"

    def _sample(
        self, arm: Intervention, known: tuple[int, ...], source: np.random.Generator
    ) -> dict[str, str]:
        """One draw of all variables, causes before effects; the known ones are as they are."""
        from dowise.environments.kernels import sample_record

        tables = self._tables
        codes = tables.fixed(arm).copy()
        if known:
            codes[self._context] = known
        uniforms = source.random(len(codes))
        sample_record(
            self._flat, codes, self._order, tables.starts, tables.strides, tables.sizes, uniforms
        )
        labels = zip(self.problem.domains.items(), codes.tolist(), strict=True)
        return {name: domain[code] for (name, domain), code in labels}

    def _checked(self, name: str, cpts: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
        if name not in cpts:
            raise DowiseError(f"cpts has no table for {name}: give one for each variable")
        try:
            table = np.asarray(cpts[name], dtype=np.float64)
        except (TypeError, ValueError):
            raise DowiseError(f"the CPT of {name} must be an array of numbers") from None
        shape = self._tables.shapes[self._tables.number[name]]
        if table.shape != shape:
            raise DowiseError(
                f"the CPT of {name} has the shape {table.shape}, not {shape}: its axes are "
                f"{', '.join((*self.problem.graph.parents(name), name))}"
            )
        if not (table >= 0).all() or np.abs(table.sum(axis=-1) - 1).max() > _ROUNDING:
            raise DowiseError(f"the rows of the CPT of {name} must be probabilities that sum to 1")
        return table


def make_environment(problem: str | Problem, seed: int) -> Environment:
    """A world for a problem, or the built-in one of that name, with rows from Dirichlet(1)."""
    made = load_problem(problem) if isinstance(problem, str) else problem
    if not isinstance(made, Problem):
        raise DowiseError(f"give a Problem or the name of one, not {problem!r}")
    source = generator(seed)
    sizes = {name: len(labels) for name, labels in made.domains.items()}
    cpts = {
        name: source.dirichlet(
            np.ones(sizes[name]), size=tuple(sizes[p] for p in made.graph.parents(name))
        )
        for name in made.graph
    }
    return Environment(made, cpts)
