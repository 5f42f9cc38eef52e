"""What is known of the CPTs, and what follows for every arm.

The posterior of section 4: each row of each CPT has an independent Dirichlet distribution whose
parameters are the prior counts plus how often each value was seen, equations (2) and (3). Every
observation teaches about every arm, because the arms share the CPTs.

>>> from dowise.problem import load_problem
>>> belief = Belief(load_problem("task1"))
>>> belief.update("do(X=1)", {"Z": 0, "Y": 1})
>>> belief.mean_rewards().round(3).tolist()          # do(), do(X=0), do(X=1)
[0.556, 0.5, 0.611]
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.belief.compiled import kernels
from dowise.belief.observe import encode_frame, encode_outcome, entries_seen
from dowise.belief.prior import Prior, prior_counts
from dowise.belief.randomness import Random, generator, key_of
from dowise.belief.rewards import Context, rewards_of, with_first_value
from dowise.errors import DowiseError
from dowise.graph.formats.files import read_file, write_file
from dowise.problem import Problem
from dowise.problem.problem import ArmLike

__all__ = ["Belief"]

MAX_BYTES = 16 * 2**30  # of one array of draws
# All values of a block of lanes should fit in the second-level cache of a core.
_CACHE = 512 * 1024
_LARGEST_BLOCK, _SMALLEST_BLOCK = 256, 16


class Belief:
    """A Dirichlet posterior over every CPT row of a problem.

    `prior` is the Dirichlet parameter of every entry, or a mapping from variable to counts (see
    `dowise.belief.prior`), or the path of a TOML file with such a mapping. The graph must have no
    bidirected edges.
    """

    def __init__(self, problem: Problem, prior: Prior = 1.0) -> None:
        if not isinstance(problem, Problem):
            raise DowiseError(
                f"a belief is about a Problem, not a {type(problem).__name__}: "
                "make one with Problem(graph, reward) or load_problem(name)"
            )
        self.problem = problem
        self.rewards = rewards_of(problem)
        self.tables, self.program = self.rewards.tables, self.rewards.program
        self.counts: NDArray[np.float64] = prior_counts(self.tables, prior)
        """The Dirichlet parameter of every CPT entry: prior plus observed; see `Tables`."""
        block = _CACHE // (4 * self.program.slots) // 16 * 16
        self._block = min(max(block, _SMALLEST_BLOCK), _LARGEST_BLOCK)
        worth = self.rewards.worth
        self._first, self._rest = float(worth[0]), worth[1:] - worth[0]
        self._is_plain = worth.tolist() == [0, 1]

    # -- learning -----------------------------------------------------------------------------

    def update(self, arm: ArmLike, outcome: Mapping[str, object]) -> None:
        """Learn from one outcome of an intervention on manipulable variables.

        `outcome` maps variables, the context among them, to values; variables that the arm set may
        be absent. A family (a variable and its parents) counts only where all of it was seen. That
        is valid as long as whether a family is complete does not depend on the variable's own
        value, given its parents: a parent may be unseen more often for some values of the parents,
        but not more often for some values of the child. What was seen of an incomplete family is
        not used. A bad outcome is an error and changes nothing.
        """
        played = self.problem.intervention(arm)
        codes = np.array(encode_outcome(self.problem, played, outcome))
        tables = self.tables
        kernels().count_record(
            self.counts, codes, tables.fixed(played), tables.starts, tables.strides
        )

    def update_many(self, frame: Any, arm: ArmLike | None = None) -> int:
        """Learn from a table of past records: a pandas or pyarrow table, or a mapping of columns.

        A column `arm` holds each record's intervention as text, "do(X=1)"; without it all records
        are of `arm`, or of do() where that is not given. (Where the graph itself has a variable
        `arm`, the column is that variable.) A variable without a column is missing. Returns the
        number of records. Of missing values `update` says when leaving them out is valid. A bad
        table is an error and changes nothing.
        """
        played = None if arm is None else self.problem.intervention(arm)
        codes, was_set = encode_frame(self.problem, frame, played)
        seen = entries_seen(self.tables, codes, was_set)
        self.counts += np.bincount(seen, minlength=self.tables.entries)
        return int(codes.shape[1])

    # -- what it says -------------------------------------------------------------------------

    def mean_cpts(self) -> dict[str, NDArray[np.float64]]:
        """The posterior mean of every CPT: axes the parents in the order of names, then itself."""
        means = self.tables.normalised(self.counts)
        return {name: self.tables.view(means, name).copy() for name in self.tables.variables}

    def mean_distributions(self, context: Context = None) -> NDArray[np.float64]:
        """P(Y = y | do(arm), c), averaged over the posterior: an array (arms, values of Y).

        Exact: a monomial of the program has one entry of each CPT, and rows are independent, so the
        mean of the polynomial is the polynomial at the mean CPTs.
        """
        return self.rewards.distributions(self.tables.normalised(self.counts), context)

    def mean_rewards(self, context: Context = None) -> NDArray[np.float64]:
        """The exact posterior mean reward of every arm, in the user's units."""
        rewards: NDArray[np.float64] = self.mean_distributions(context) @ self.rewards.worth
        return rewards

    def draw_distributions(
        self, context: Context, samples: int, rng: Random
    ) -> NDArray[np.float32]:
        """P(Y = y | do(arm), c) under draws from the posterior: (arms, values of Y, samples)."""
        return with_first_value(self.draw_raw(context, samples, rng))

    def draw_rewards(self, context: Context, samples: int, rng: Random) -> NDArray[np.floating]:
        """The mean reward of every arm under draws from the posterior: (arms, samples).

        In the user's units. The draws are in single precision; where the reward's values are other
        than 0 and 1, what they are worth is put in in double precision. All arms of one draw share
        its CPTs.
        """
        drawn = self.draw_raw(context, samples, rng)
        if self._is_plain:
            return drawn[:, 0]
        rewards: NDArray[np.float64] = self._first + np.einsum("avs,v->as", drawn, self._rest)
        return rewards

    def probability_best(self, context: Context, samples: int, rng: Random) -> NDArray[np.float64]:
        """p*(a): how often each arm is best among draws; ties go to the first arm."""
        best = self.draw_rewards(context, samples, rng).argmax(axis=0)
        return np.bincount(best, minlength=len(self.problem.arms)) / samples

    def reward_intervals(
        self, context: Context = None, level: float = 0.95, samples: int = 10_000, rng: Random = 0
    ) -> NDArray[np.float64]:
        """Central credible intervals of every arm's mean reward, from draws: (arms, 2)."""
        if not isinstance(level, float) or not 0 < level < 1:
            raise DowiseError(f"level={level!r} must be between 0 and 1, such as 0.95")
        tail = (1 - level) / 2
        rewards = self.draw_rewards(context, samples, rng)
        return np.quantile(rewards.astype(np.float64), [tail, 1 - tail], axis=1).T

    def draw_raw(self, context: Context, samples: int, rng: Random) -> NDArray[np.float32]:
        """`draw_distributions` without the reward's first value, which the others leave.

        An array (arms, values of Y but the first, samples): what the kernel computes, and what
        `dowise.information.estimate_from_draws` takes.
        """
        if type(samples) is bool or not isinstance(samples, int | np.integer) or samples < 1:
            raise DowiseError(f"samples={samples!r}: draw at least one, a whole number of them")
        rows = self.rewards.row_entries(context)
        key0, key1 = key_of(generator(rng))
        program = self.program
        size = 4 * program.results.size * int(samples)
        if size > MAX_BYTES:
            raise DowiseError(
                f"{samples:,} draws for {len(program.results):,} arms take {size:.1e} bytes: "
                "draw fewer at a time"
            )
        out = np.empty((*program.results.shape, samples), dtype=np.float32)
        kernels().draw_results(
            key0, key1, self.counts, rows, program.row_slots, program.row_sizes,
            program.outputs, program.starts, program.lefts, program.rights, program.results,
            self._block, program.slots, out,
        )  # fmt: skip
        return out

    # -- keeping it ---------------------------------------------------------------------------

    def copy(self) -> Belief:
        """A belief that learns on its own from here; what never changes is shared."""
        twin = object.__new__(Belief)
        twin.__dict__ |= self.__dict__
        twin.counts = self.counts.copy()
        return twin

    def save(self, path: str | Path) -> None:
        """Write the belief to a JSON file; `dowise.belief.storage` documents the format."""
        from dowise.belief.storage import to_json

        write_file(path, to_json(self))

    @classmethod
    def load(cls, path: str | Path, problem: Problem) -> Belief:
        """Read a belief of this problem back from the file that `save` wrote."""
        from dowise.belief.storage import from_json

        if not isinstance(problem, Problem):
            raise DowiseError("Belief.load takes the path and then the Problem it is about")
        return read_file(path, lambda text: from_json(text, problem))

    def __repr__(self) -> str:
        return f"<Belief about {self.problem!r}>"
