"""What is known of the factors, and what follows for every arm.

The posterior of section 4: each row of each CPT has an independent Dirichlet distribution whose
parameters are the prior counts plus how often each value was seen, equations (2) and (3). Every
observation teaches about every arm, because the arms share the CPTs. Where causes are hidden,
factors take the place of CPTs (`dowise.graph.transforms`), and where edges are doubtful there is such
a posterior for every set of them (`dowise.belief.posterior`).

>>> from dowise.problem import load_problem
>>> belief = Belief(load_problem("task1"))
>>> belief.update("do(X=1)", {"Z": 0, "Y": 1})
>>> belief.mean_rewards().round(3).tolist()          # do(), do(X=0), do(X=1)
[0.556, 0.5, 0.611]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise._core.document import pluralize
from dowise._core.files import read_file, write_text
from dowise._core.rng import Random, draw_key, generator
from dowise._core.types import FloatArray
from dowise._core.validation import check_flag, check_fraction
from dowise.belief.evidence import Evidence
from dowise.belief.monitor import KeptRecords, Monitor
from dowise.belief.posterior import Posterior
from dowise.belief.prior import Prior
from dowise.errors import DowiseError, DowiseWarning, type_name
from dowise.model import Codes
from dowise.model.draws import Draws
from dowise.problem import Problem, Record
from dowise.problem.domains import MISSING
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch, check_record, check_same_problem


def warn_of_no_reward(records: RecordBatch, stacklevel: int = 3) -> None:
    """Say so where there are records and the reward was seen in none of them."""
    problem = records.problem
    if len(records) and (records.codes[problem.reward_position] == MISSING).all():
        warnings.warn(
            f"{pluralize(len(records), 'record')}, none with a value of the reward: they teach "
            f"nothing about {problem.reward}; its values belong in a column of that name",
            DowiseWarning,
            stacklevel=stacklevel,
        )


_BLOCK_WORK = 1e8  # multiplications of a block: less than a tenth of a second
_BLOCK_NUMBERS = 2**24  # numbers of a block: 64 MB, or twice as much in double precision
_ROW_WORK, _WHOLE_ROW_WORK = 20, 60  # multiplications that take as long as drawing an entry


class Belief:
    """A Dirichlet posterior over every row of a problem's factors, or a posterior of your own.

    `prior` is the Dirichlet parameter of every entry, or a mapping from variable to counts (see
    `dowise.belief.prior`), or the path of a TOML file with such a mapping; unless given, it is the
    problem's, which is 1 unless told. `posterior` is anything
    that keeps the promises of `dowise.belief.posterior.Posterior`. With `evidence` all records are
    kept, each with its count, and what they say about edges that the graph lacks: see `evidence`.
    """

    has_factors = True
    """True if the belief is about the factors of the graph, so that worlds can be drawn from it."""

    def __init__(
        self,
        problem: Problem,
        prior: Prior | None = None,
        *,
        posterior: Posterior | None = None,
        evidence: bool = False,
    ) -> None:
        if not isinstance(problem, Problem):
            raise DowiseError(
                f"a belief is about a Problem, not {type_name(problem)}: "
                "make one with Problem(graph, reward) or load_problem(name)"
            )
        if posterior is not None and posterior.problem != problem:
            raise DowiseError(f"the posterior is about another problem, {posterior.problem!r}")
        if posterior is not None and evidence and posterior.counts.any():
            raise DowiseError(
                "evidence=True needs all records, and this posterior has learned some before: make "
                "Belief(problem, evidence=True), and let it learn the records again"
            )
        self.problem = problem
        self.posterior = Posterior(problem, prior) if posterior is None else posterior
        """What is known, by itself: counts, draws, means."""
        self.monitor = Monitor(problem) if check_flag("evidence", evidence) else None
        """The records, and the evidence against the graph, where they are kept."""

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
        self.learn(self.problem.record(arm, outcome))

    def update_many(self, frame: Any, arm: ArmLike | None = None) -> int:
        """Learn from a table of past records: a pandas or pyarrow table, or a mapping of columns.

        A column `arm` holds each record's intervention as text, "do(X=1)"; without it all records
        are of `arm`, or of do() where that is not given. (Where the graph itself has a variable
        `arm`, the column is that variable.) A variable without a column is missing. Returns the
        number of records, and warns where none of them has a reward. Of missing values `update`
        says when leaving them out is valid. A bad table is an error and changes nothing.
        """
        records = self.problem.records(frame, arm)
        self.learn_many(records)
        warn_of_no_reward(records)
        return len(records)

    def learn_many(self, records: RecordBatch) -> None:
        """Learn from many records (`problem.records`), the same as one by one."""
        check_same_problem(records, self.problem)
        ready = None if self.monitor is None else self.monitor.get_ready(records)
        self.posterior.learn_many(records)
        if self.monitor is not None:
            self.monitor.learn_many(records, ready)

    def learn(self, record: Record) -> None:
        """Learn from a record (`problem.record`), the same as `update`."""
        if self.monitor is not None:
            check_record(record, self.problem)
            self.monitor.get_ready(record)
        self.posterior.learn(record)
        if self.monitor is not None:
            self.monitor.learn(record)

    def retract(self, record: Record) -> None:
        """Forget a record that was learned: exactly what there would be without it."""
        check_record(record, self.problem)
        if self.monitor is not None:
            self.monitor.check_learned(record)
        self.posterior.retract(record)
        if self.monitor is not None:
            self.monitor.retract(record)

    # -- what it says -------------------------------------------------------------------------

    @property
    def unused(self) -> dict[str, dict[str, int]]:
        """What was seen of a variable and could not be used, by variable and reason: how often.

        A record teaches about a variable where it was seen together with all that its factor is
        conditioned on.
        """
        return {
            name: {
                f"{other} was not seen" if other else "no arm needs what it tells": times
                for other, times in others.items()
            }
            for name, others in self.lacking().items()
        }

    def lacking(self) -> dict[str, dict[str, int]]:
        """The same as `unused`, by the names of what was not seen; "" where no arm needs it."""
        return self.posterior.unused_by_name()

    def times_learned(self) -> dict[str, int]:
        """How many records taught something about each variable."""
        times = self.posterior.times_learned().tolist()
        return dict(zip(self.problem.graph.variables, times, strict=True))

    def never_used(self) -> dict[str, tuple[str, ...]]:
        """The variables that rewards depend on and of which nothing was ever learned, though there
        were records: for each what was lacking in them."""
        learned, factors = self.times_learned(), self.posterior.model.factors
        needed = factors.graph.names(factors.order.useful & ~factors.order.context)
        return {
            name: tuple(filter(None, others))
            for name, others in self.lacking().items()
            if name in needed and not learned[name] and any(others)
        }

    def edges(self) -> dict[str, float]:
        """How likely each doubtful edge is; one that makes no difference keeps its prior."""
        return self.posterior.edges()

    def edge_snapshot(self) -> Callable[[], dict[str, float]]:
        """Return a function that computes `edges` as of now when it is called later."""
        return self.posterior.edge_snapshot()

    @property
    def undecidable_edges(self) -> tuple[str, ...]:
        """The doubtful edges that make no difference to any arm: no record tells of them."""
        posterior = self.posterior
        told = () if posterior.is_settled else posterior.shared.structures.relevant
        return tuple(text for text in self.problem.edge_priors if text not in told)

    def evidence(self, alpha: float = 0.05, strict: bool = False) -> Evidence:
        """What the records say against the graph: a Bayes factor for each edge that it lacks.

        There is an alarm from the first record on after which the mean e-value over all these edges
        is 1/alpha or more. A right graph is then accused with a probability of about alpha at most,
        however often one looks: by simulation, or with `strict` by proof, which takes more records
        to see the same. docs/evidence.md has both.
        """
        if self.monitor is None:
            raise DowiseError(
                "this belief keeps no records to judge the graph by: make it with "
                "Belief(problem, evidence=True), and let it learn the records again"
            )
        return self.monitor.evidence(alpha, strict)

    @property
    def parameters(self) -> FloatArray:
        """The Dirichlet parameter of every CPT entry, flat: prior plus observed."""
        if not self.posterior.is_settled:
            raise DowiseError(
                "doubtful edges give variables several tables, so there is no parameter of every "
                "CPT entry: mean_cpts has the means"
            )
        return self.posterior.parameters

    def mean_cpts(self) -> dict[str, FloatArray]:
        """The posterior mean of every CPT: axes the parents in the order of names, then itself.

        Where hidden causes give a variable several factors, each of them by its name ("Y | X": the
        factor of Y where X is not set either). Averaged over doubtful edges.
        """
        means, factors = self.posterior.mean_entries(), self.posterior.model.factors
        return {name: factors.view(means, name).copy() for name in factors.names}

    def mean_distributions(self, context: Context = None) -> FloatArray:
        """P(Y = y | do(arm), c), averaged over the posterior, exact: (arms, values of Y)."""
        return self.posterior.mean_distributions(self.problem.context_codes(context))

    def mean_rewards(self, context: Context = None) -> FloatArray:
        """The exact posterior mean reward of every arm, net of cost, in the user's units."""
        payoff = self.problem.payoff
        rewards: FloatArray = payoff.net(self.mean_distributions(context) @ payoff.values)
        return rewards

    def draw_distributions(
        self, context: Context, samples: int, rng: Random
    ) -> NDArray[np.floating]:
        """P(Y = y | do(arm), c) under draws from the posterior: (arms, values of Y, samples)."""
        return self.draw(self.problem.context_codes(context), samples, rng).distributions()

    def draw_rewards(self, context: Context, samples: int, rng: Random) -> NDArray[np.floating]:
        """The mean reward of every arm under draws from the posterior: (arms, samples).

        In the user's units, net of what the arms cost. The draws are in single precision; where the
        reward's values are other than 0 and 1, what they are worth is put in in double precision,
        and so are costs. All arms of one draw share its CPTs.
        """
        drawn = self.draw(self.problem.context_codes(context), samples, rng)
        return drawn.rewards(self.problem.payoff)

    def probability_best(self, context: Context, samples: int, rng: Random) -> FloatArray:
        """p*(a): how often each arm is best among draws, net; of arms alike the first counts."""
        drawn = self.draw(self.problem.context_codes(context), samples, rng)
        best, _ = drawn.winners(self.problem.payoff)
        return np.bincount(best, minlength=len(self.problem.arms)) / samples

    def reward_intervals(
        self, context: Context = None, level: float = 0.95, samples: int = 10_000, rng: Random = 0
    ) -> FloatArray:
        """Central credible intervals of every arm's mean reward, net, from draws: (arms, 2)."""
        tail = (1 - check_fraction("level", level, 0.95)) / 2
        rewards = self.draw_rewards(context, samples, rng)
        return np.quantile(rewards.astype(np.float64), [tail, 1 - tail], axis=1).T

    def draw(self, codes: Codes, samples: int, rng: Random) -> Draws:
        """Draws for a context given by the positions of its values; see `Posterior.draw`."""
        return self.posterior.draw(codes, samples, rng)

    def draw_in_blocks(self, codes: Codes, samples: int, rng: Random) -> Iterator[Draws]:
        """Make the same draws as `draw`, in blocks that take less than a tenth of a second."""
        posterior = self.posterior
        if posterior.is_single_precision_in(codes):
            circuit, row = posterior.model.circuit, _ROW_WORK
        else:
            circuit, row = posterior.model.whole_circuit, _WHOLE_ROW_WORK
        key = draw_key(generator(rng))
        work = circuit.multiplications + row * int(circuit.block_sizes.sum())
        lanes = int(min(_BLOCK_WORK / work, _BLOCK_NUMBERS / circuit.results.size))
        lanes = max(lanes // posterior.block, 1) * posterior.block
        for first in range(0, samples, lanes):
            yield posterior.draw_lanes(key, codes, first, min(lanes, samples - first))

    # -- keeping it ---------------------------------------------------------------------------

    def copy(self) -> Belief:
        """A belief that learns on its own from here; what never changes is shared."""
        twin = Belief(self.problem, posterior=self.posterior.copy())
        twin.monitor = None if self.monitor is None else self.monitor.copy()
        return twin

    def save(self, path: str | Path) -> None:
        """Write the belief to a JSON file; `dowise.belief.serialization` documents the format.

        A write that fails leaves an older file as it was.
        """
        from dowise.belief.serialization import as_text

        write_text(path, as_text(self.as_dict()))

    def as_dict(self) -> dict[str, Any]:
        """The page that `save` writes."""
        return self.posterior.as_dict() | ({} if self.monitor is None else self.monitor.page())

    @classmethod
    def load(cls, path: str | Path, problem: Problem) -> Belief:
        """Read a belief of this problem back from the file that `save` wrote."""
        from dowise.belief.serialization import as_page

        if not isinstance(problem, Problem):
            raise DowiseError("Belief.load takes the path and then the Problem it is about")
        return read_file(path, lambda text: cls.from_dict(as_page(text), problem))

    @classmethod
    def from_dict(cls, page: dict[str, Any], problem: Problem) -> Belief:
        """Inverse of `as_dict`.

        Raises `DowiseError` if the data are damaged or belong to another problem.
        """
        belief = cls(problem, posterior=Posterior.from_dict(page, problem))
        if "records" in page:
            records = KeptRecords.read(page["records"], problem)
            records.check_counted_by(belief.posterior)
            belief.monitor = Monitor.read(page, records)
        elif "evidence" in page:
            raise DowiseError("the belief is damaged: it has evidence without records")
        return belief

    def __repr__(self) -> str:
        return f"<Belief about {self.problem!r}>"
