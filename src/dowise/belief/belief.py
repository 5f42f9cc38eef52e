"""Belief about a problem: the posterior of its factors, and of the rewards of all arms.

This is the posterior of section 4: each row of each CPT has an independent Dirichlet distribution
whose parameters are the prior counts plus the number of times each value was seen, equations (2)
and (3). Every record is evidence about every arm, because the arms share the CPTs. If causes are
hidden, factors replace CPTs (`dowise.model.factors`), and if edges are doubtful, there is such a
posterior for every set of edges (`dowise.belief.posterior`).
"""

from __future__ import annotations

import json
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
from dowise.belief.monitor import Monitor
from dowise.belief.pooling import CommonRow
from dowise.belief.posterior import Posterior
from dowise.errors import DowiseError, DowiseWarning, type_name
from dowise.model import Codes
from dowise.model.draws import Draws
from dowise.problem import Problem, Record
from dowise.problem.domains import MISSING
from dowise.problem.prior import Prior
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch, check_record, check_same_problem


def warn_of_no_reward(records: RecordBatch, stacklevel: int = 3) -> None:
    """Warn if there are records and none of them has a value of the reward."""
    for note in no_reward_note(records):
        warnings.warn(note, DowiseWarning, stacklevel=stacklevel)


def no_reward_note(records: RecordBatch) -> list[str]:
    """Return a note if there are records and none of them has a value of the reward."""
    problem = records.problem
    if not len(records) or (records.codes[problem.reward_position] != MISSING).any():
        return []
    return [
        f"{pluralize(len(records), 'record')}, none with a value of the reward "
        f"{problem.reward}: put its values in a column of that name"
    ]


_BLOCK_WORK = 1e8  # multiplications per block: less than a tenth of a second
_BLOCK_NUMBERS = 2**24  # numbers per block: 64 MB
_ROW_WORK = 20  # multiplications that take as long as drawing an entry


class Belief:
    """Belief about the conditional probabilities of a problem, learned from records.

    Parameters
    ----------
    problem : Problem
        The problem that the belief is about.
    prior : float, mapping, path, "flat" or "pooled", optional
        Dirichlet parameter of every entry, a mapping from variable to counts, or the path of a TOML
        file with such a mapping; "flat" is 1 for every entry. With "pooled", a row that was never
        seen is expected to look like the other rows of its table, as far as these look alike.
        Defaults to the prior of the problem, which is flat by default.
    posterior : Posterior, optional
        Posterior to continue from, in place of a prior.
    evidence : bool, default False
        Keep all records, and with them the evidence about edges that the graph lacks; see
        `evidence`.

    Raises
    ------
    DowiseError
        If the prior does not fit the problem, the tables are too large, or the posterior belongs
        to another problem.

    Examples
    --------
    >>> from dowise import load_problem
    >>> belief = Belief(load_problem("task1"), prior=1.0)
    >>> belief.update("do(X=1)", {"Z": 0, "Y": 1})
    >>> belief.mean_rewards().round(3).tolist()          # do(), do(X=0), do(X=1)
    [0.556, 0.5, 0.611]
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
                f"problem must be a Problem, not {type_name(problem)}: create one with "
                "Problem(graph, reward) or load_problem(name)",
                code="invalid-type",
            )
        if posterior is not None and posterior.problem != problem:
            raise DowiseError(
                f"the posterior belongs to another problem, {posterior.problem!r}",
                code="wrong-problem",
            )
        if posterior is not None and evidence and posterior.counts.any():
            raise DowiseError(
                "evidence=True needs all records, and this posterior has learned some before: "
                "create Belief(problem, evidence=True) and learn all records again",
                code="missing-records",
            )
        self.problem = problem
        self.posterior = Posterior(problem, prior) if posterior is None else posterior
        """Posterior of the factors: counts, draws and means."""
        self.monitor = Monitor(problem) if check_flag("evidence", evidence) else None
        """Records and evidence against the graph; None unless `evidence` was set."""

    # -- learning ----------------------------------------------------------------------------------

    def update(self, arm: ArmLike, outcome: Mapping[str, object]) -> None:
        """Learn from one outcome of an intervention on manipulable variables.

        A family (a variable and its parents) counts only if all its values are known. This is valid
        as long as, given the parents, its completeness does not depend on the value of the child: a
        variable may be missing because of the arm, the context or earlier variables, never because
        of how a later one turned out.

        Parameters
        ----------
        arm : Intervention, mapping or str
            The intervention, such as "do(X=1)".
        outcome : mapping
            Values of the variables, including the context; variables set by the arm may be absent.

        Raises
        ------
        DowiseError
            If the arm or the outcome does not fit the problem. The belief is then unchanged.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.update("do(X=1)", {"Z": 0, "Y": 1})
        >>> belief.times_learned()
        {'X': 0, 'Y': 1, 'Z': 1}
        """
        self.learn(self.problem.record(arm, outcome))

    def update_many(self, frame: Any, arm: ArmLike | None = None) -> int:
        """Learn from a table of past records, and warn if none of them has a reward.

        `update` explains when missing values are valid.

        Parameters
        ----------
        frame : pandas or pyarrow table, or mapping of columns
            One record per row. A column `arm` holds each record's intervention as text, "do(X=1)"
            (unless the graph has a variable of that name). A variable without a column is missing.
        arm : Intervention, mapping or str, optional
            Intervention of all records if there is no column `arm`. Defaults to do().

        Returns
        -------
        int
            Number of records.

        Raises
        ------
        DowiseError
            If the table does not fit the problem. The belief is then unchanged.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.update_many({"X": [0, 1], "Z": [0, 1], "Y": [0, 1]})
        2
        >>> belief.times_learned()
        {'X': 2, 'Y': 2, 'Z': 2}
        """
        records = self.problem.records(frame, arm)
        self.learn_many(records)
        warn_of_no_reward(records)
        return len(records)

    def learn_many(self, records: RecordBatch) -> None:
        """Learn from many records (`problem.records`), with the same result as one by one.

        Parameters
        ----------
        records : RecordBatch
            Records of the problem.

        Raises
        ------
        DowiseError
            If the records belong to another problem. The belief is then unchanged.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.learn_many(belief.problem.records({"X": [0, 1], "Z": [0, 1], "Y": [0, 1]}))
        >>> belief.times_learned()
        {'X': 2, 'Y': 2, 'Z': 2}
        """
        check_same_problem(records, self.problem)
        if self.monitor is not None:
            self.monitor.prepare(records)
        self.posterior.learn_many(records)
        if self.monitor is not None:
            self.monitor.learn_many(records)

    def learn(self, record: Record) -> None:
        """Learn from a record (`problem.record`), like `update`.

        Parameters
        ----------
        record : Record
            Record of the problem.

        Raises
        ------
        DowiseError
            If it is not a record of this problem. The belief is then unchanged.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.learn(belief.problem.record("do(X=1)", {"Z": 0, "Y": 1}))
        >>> belief.times_learned()
        {'X': 0, 'Y': 1, 'Z': 1}
        """
        if self.monitor is not None:
            check_record(record, self.problem)
            self.monitor.prepare(record)
        self.posterior.learn(record)
        if self.monitor is not None:
            self.monitor.learn(record)

    def retract(self, record: Record) -> None:
        """Undo `learn` exactly.

        Parameters
        ----------
        record : Record
            Record that was learned.

        Raises
        ------
        DowiseError
            If it is not a record of this problem, or was not learned. The belief is then unchanged.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> record = belief.problem.record("do(X=1)", {"Z": 0, "Y": 1})
        >>> belief.learn(record)
        >>> belief.retract(record)
        >>> belief.times_learned()
        {'X': 0, 'Y': 0, 'Z': 0}
        """
        check_record(record, self.problem)
        if self.monitor is not None:
            self.monitor.check_learned(record)
        self.posterior.retract(record)
        if self.monitor is not None:
            self.monitor.retract(record)

    # -- queries -----------------------------------------------------------------------------------

    @property
    def unused(self) -> dict[str, dict[str, int]]:
        """Number of values of each variable that could not be used, by reason.

        A record counts for a variable if it has the values of the variable and of everything that
        its factor is conditioned on.
        """
        return {
            name: {
                f"{missing} was not seen" if missing else "no arm needs what it tells": times
                for missing, times in reasons.items()
            }
            for name, reasons in self.lacking().items()
        }

    def lacking(self) -> dict[str, dict[str, int]]:
        """Return `unused` by the name of the missing variable.

        Returns
        -------
        dict of str to dict of str to int
            For each variable, the number of its values that could not be used, by the
            missing variable; "" if no arm needs the factor.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.update("do(X=1)", {"Y": 1})
        >>> belief.lacking()
        {'Y': {'Z': 1}, 'Z': {'Z': 1}}
        """
        return self.posterior.unused_by_name()

    def times_learned(self) -> dict[str, int]:
        """Return the number of records that counted for each variable.

        Returns
        -------
        dict of str to int
            Number of records by variable.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.update("do(X=1)", {"Z": 0, "Y": 1})
        >>> belief.times_learned()
        {'X': 0, 'Y': 1, 'Z': 1}
        """
        times = self.posterior.times_learned().tolist()
        return dict(zip(self.problem.graph.variables, times, strict=True))

    def never_used(self) -> dict[str, tuple[str, ...]]:
        """Return the variables that matter and were never learned despite records.

        Returns
        -------
        dict of str to tuple of str
            For each such variable, the variables that were missing in these records.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.update("do(X=1)", {"Y": 1})
        >>> belief.never_used()
        {'Y': ('Z',), 'Z': ('Z',)}
        """
        learned, factors = self.times_learned(), self.posterior.model.factors
        needed = factors.graph.names(factors.order.useful & ~factors.order.context)
        return {
            name: tuple(filter(None, reasons))
            for name, reasons in self.lacking().items()
            if name in needed and not learned[name] and any(reasons)
        }

    def edges(self) -> dict[str, float]:
        """Return the probability of each doubtful edge.

        An edge that makes no difference to any arm keeps its prior.

        Returns
        -------
        dict of str to float
            Probability by edge, such as "X -> Y"; empty if no edge is doubtful.

        Examples
        --------
        >>> from dowise import CausalGraph
        >>> belief = Belief(Problem(CausalGraph.parse("Z -> X -> Y; Z ?-> Y"), reward="Y"))
        >>> belief.edges()
        {'Z -> Y': 0.5}
        """
        return self.posterior.edges()

    def edge_snapshot(self) -> Callable[[], dict[str, float]]:
        """Return a function that computes `edges` as of now when it is called later.

        Returns
        -------
        callable
            Function without parameters that returns the probability of each doubtful edge.

        Examples
        --------
        >>> from dowise import CausalGraph
        >>> belief = Belief(Problem(CausalGraph.parse("Z -> X -> Y; Z ?-> Y"), reward="Y"))
        >>> before = belief.edge_snapshot()
        >>> belief.update("do(X=1)", {"Z": 0, "Y": 0})
        >>> belief.update("do(X=1)", {"Z": 1, "Y": 1})
        >>> before(), round(belief.edges()["Z -> Y"], 3)
        ({'Z -> Y': 0.5}, 0.6)
        """
        return self.posterior.edge_snapshot()

    @property
    def undecidable_edges(self) -> tuple[str, ...]:
        """Doubtful edges that make no difference to any arm, so that no record is evidence."""
        posterior = self.posterior
        relevant = () if posterior.is_settled else posterior.shared.structures.relevant
        return tuple(text for text in self.problem.edge_priors if text not in relevant)

    def evidence(self, alpha: float = 0.05, strict: bool = False) -> Evidence:
        """Return the evidence of the records against the graph: edges that it may lack.

        The alarm is raised by the first record after which the mean e-value over all these edges is
        1/alpha or more. If the graph is right, the probability that this ever happens is at most
        alpha, in every world on the graph, however arms are chosen and however often one looks. A
        variable may be missing because of the arm, the context or earlier variables, never because
        of how a later one turned out. See docs/evidence.md.

        Parameters
        ----------
        alpha : float, default 0.05
            Level of the alarm.
        strict : bool, default False
            Changes nothing, as the level is proven in any case; it will be removed.

        Returns
        -------
        Evidence
            E-values of these edges, and the alarm, if any.

        Raises
        ------
        DowiseError
            If the belief was not created with `evidence=True`, or `alpha` is not between 0 and 1.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"), evidence=True)
        >>> belief.update("do(X=1)", {"Z": 0, "Y": 1})
        >>> print(belief.evidence())
        No alarm at level 0.05 in 1 record, and no hint of a missing edge.
        """
        if self.monitor is None:
            raise DowiseError(
                "this belief does not keep the records that evidence needs: create it with "
                "Belief(problem, evidence=True) and learn the records again",
                code="missing-records",
            )
        check_flag("strict", strict)
        return self.monitor.evidence(alpha)

    def alike(self) -> dict[str, CommonRow]:
        """Return how much the rows of each table look alike, with `prior="pooled"`.

        Returns
        -------
        dict of str to CommonRow
            For each table with pooled rows: the probability that they scatter around a common row,
            and, if they do, the mean of that row and the 90 % range of a new one, entry by entry.
            Empty if no rows are pooled.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"), prior="pooled")
        >>> belief.update_many({"X": [0, 1] * 40, "Z": [0, 0, 1, 1] * 20, "Y": [1] * 80})
        80
        >>> row = belief.alike()["Y"]
        >>> round(row.probability, 2), round(row.mean[1], 2)
        (1.0, 0.99)
        """
        return self.posterior.alike()

    @property
    def parameters(self) -> FloatArray:
        """Dirichlet parameter of every CPT entry, flat: prior plus counts."""
        if not self.posterior.is_settled:
            raise DowiseError(
                "doubtful edges give variables several tables, so there is no parameter of every "
                "CPT entry: use mean_cpts",
                code="doubtful-edges",
            )
        return self.posterior.parameters

    def mean_cpts(self) -> dict[str, FloatArray]:
        """Return the posterior mean of every CPT.

        If hidden causes give a variable several factors, they are listed by name ("Y | X": the
        factor of Y where X is not set either). Means are averaged over doubtful edges.

        Returns
        -------
        dict of str to array
            Table of each variable or factor: one axis for each parent, in the order of names, and a
            last one for the variable itself.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.update("do(X=1)", {"Z": 0, "Y": 1})
        >>> belief.mean_cpts()["Z"].round(3).tolist()
        [0.667, 0.333]
        """
        means, factors = self.posterior.mean_entries(), self.posterior.model.factors
        return {name: factors.view(means, name).copy() for name in factors.names}

    def mean_distributions(self, context: Context = None) -> FloatArray:
        """Return the posterior mean of P(Y = y | do(arm), c), which is exact.

        Parameters
        ----------
        context : mapping, optional
            Values of all context variables; None if the problem has none.

        Returns
        -------
        array (arms, values of Y)
            Probability of each value of the reward under each arm.

        Raises
        ------
        DowiseError
            If the context does not fit the problem.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.update("do(X=1)", {"Z": 0, "Y": 1})
        >>> belief.mean_distributions().round(3).tolist()
        [[0.444, 0.556], [0.5, 0.5], [0.389, 0.611]]
        """
        return self.posterior.mean_distributions(self.problem.context_codes(context))

    def mean_rewards(self, context: Context = None) -> FloatArray:
        """Return the exact posterior mean reward of every arm, net of cost, in the user's units.

        Parameters
        ----------
        context : mapping, optional
            Values of all context variables; None if the problem has none.

        Returns
        -------
        array (arms,)
            Mean reward of each arm.

        Raises
        ------
        DowiseError
            If the context does not fit the problem.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.update("do(X=1)", {"Z": 0, "Y": 1})
        >>> belief.mean_rewards().round(3).tolist()
        [0.556, 0.5, 0.611]
        """
        payoff = self.problem.payoff
        rewards: FloatArray = payoff.net(self.mean_distributions(context) @ payoff.values)
        return rewards

    def draw_distributions(
        self, context: Context, samples: int, rng: Random
    ) -> NDArray[np.floating]:
        """Return P(Y = y | do(arm), c) under posterior draws.

        Parameters
        ----------
        context : mapping, optional
            Values of all context variables; None if the problem has none.
        samples : int
            Number of draws.
        rng : int or numpy.random.Generator
            Seed or source of random numbers.

        Returns
        -------
        array (arms, values of Y, samples)
            Probability of each value of the reward under each arm, in each draw.

        Raises
        ------
        DowiseError
            If the context does not fit the problem, the number of draws is invalid or too large, or
            `rng` is neither a seed nor a generator.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.draw_distributions(None, samples=4, rng=0).shape
        (3, 2, 4)
        """
        return self.draw(self.problem.context_codes(context), samples, rng).distributions()

    def draw_rewards(self, context: Context, samples: int, rng: Random) -> NDArray[np.floating]:
        """Return the mean reward of every arm under posterior draws, net of cost.

        All arms of one draw share its CPTs. Probabilities are drawn in single precision; reward
        values other than 0 and 1 and costs are applied in double precision.

        Parameters
        ----------
        context : mapping, optional
            Values of all context variables; None if the problem has none.
        samples : int
            Number of draws.
        rng : int or numpy.random.Generator
            Seed or source of random numbers; equal seeds give equal worlds in every context.

        Returns
        -------
        array (arms, samples)
            Rewards in the user's units.

        Raises
        ------
        DowiseError
            If the context does not fit the problem, the number of draws is invalid or too large, or
            `rng` is neither a seed nor a generator.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.draw_rewards(None, samples=2, rng=0).astype(float).round(2).tolist()
        [[0.53, 0.45], [0.91, 0.32], [0.52, 0.49]]
        """
        drawn = self.draw(self.problem.context_codes(context), samples, rng)
        return drawn.rewards(self.problem.payoff)

    def probability_best(self, context: Context, samples: int, rng: Random) -> FloatArray:
        """Return p*(a), the share of posterior draws in which each arm is best, net of cost.

        Ties go to the first arm.

        Parameters
        ----------
        context : mapping, optional
            Values of all context variables; None if the problem has none.
        samples : int
            Number of draws.
        rng : int or numpy.random.Generator
            Seed or source of random numbers.

        Returns
        -------
        array (arms,)
            Share of each arm; the shares sum to 1.

        Raises
        ------
        DowiseError
            If the context does not fit the problem, the number of draws is invalid or too large, or
            `rng` is neither a seed nor a generator.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.probability_best(None, samples=100, rng=0).tolist()
        [0.09, 0.48, 0.43]
        """
        drawn = self.draw(self.problem.context_codes(context), samples, rng)
        best, _ = drawn.winners(self.problem.payoff)
        return np.bincount(best, minlength=len(self.problem.arms)) / samples

    def reward_intervals(
        self, context: Context = None, level: float = 0.95, samples: int = 10_000, rng: Random = 0
    ) -> FloatArray:
        """Return credible intervals of every arm's net mean reward, from draws.

        Parameters
        ----------
        context : mapping, optional
            Values of all context variables; None if the problem has none.
        level : float, default 0.95
            Posterior probability of each interval.
        samples : int, default 10,000
            Number of draws.
        rng : int or numpy.random.Generator, default 0
            Seed or source of random numbers.

        Returns
        -------
        array (arms, 2)
            Lower and upper end of each arm's interval, in the user's units.

        Raises
        ------
        DowiseError
            If the context does not fit the problem, `level` is not between 0 and 1, the number of
            draws is invalid or too large, or `rng` is neither a seed nor a generator.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.reward_intervals(samples=100).round(2).tolist()
        [[0.12, 0.85], [0.08, 0.92], [0.09, 0.92]]
        """
        tail = (1 - check_fraction("level", level, 0.95)) / 2
        rewards = self.draw_rewards(context, samples, rng)
        return np.quantile(rewards.astype(np.float64), [tail, 1 - tail], axis=1).T

    def draw(self, codes: Codes, samples: int, rng: Random) -> Draws:
        """Draw reward distributions in a context given by codes; see `Posterior.draw`.

        Parameters
        ----------
        codes : tuple of int
            Codes of the values of the context variables, in the problem's order.
        samples : int
            Number of draws.
        rng : int or numpy.random.Generator
            Seed or source of random numbers.

        Returns
        -------
        Draws
            Distributions of the reward under all arms.

        Raises
        ------
        DowiseError
            If the number of draws is invalid or too large, or `rng` is neither a seed nor a
            generator.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.draw((), samples=4, rng=0).samples
        4
        """
        return self.posterior.draw(codes, samples, rng)

    def draw_in_blocks(self, codes: Codes, samples: int, rng: Random) -> Iterator[Draws]:
        """Yield the draws of `draw` in blocks that take less than a tenth of a second each.

        Parameters
        ----------
        codes : tuple of int
            Codes of the values of the context variables, in the problem's order.
        samples : int
            Number of draws.
        rng : int or numpy.random.Generator
            Seed or source of random numbers.

        Yields
        ------
        Draws
            The next draws.

        Raises
        ------
        DowiseError
            If `rng` is neither a seed nor a generator.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> sum(draws.samples for draws in belief.draw_in_blocks((), samples=4, rng=0))
        4
        """
        posterior = self.posterior
        model = posterior.model
        circuit = model.whole_circuit if posterior.is_small_in(codes) else model.circuit
        key = draw_key(generator(rng))
        work = circuit.multiplications + _ROW_WORK * int(circuit.block_sizes.sum())
        lanes = int(min(_BLOCK_WORK / work, _BLOCK_NUMBERS / circuit.results.size))
        lanes = max(lanes // posterior.block, 1) * posterior.block
        for first in range(0, samples, lanes):
            yield posterior.draw_lanes(key, codes, first, min(lanes, samples - first))

    # -- copies and files --------------------------------------------------------------------------

    def copy(self) -> Belief:
        """Return an independent copy.

        Returns
        -------
        Belief
            Belief with the same posterior and the same kept records.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> copied = belief.copy()
        >>> copied.update("do(X=1)", {"Z": 0, "Y": 1})
        >>> belief.times_learned()["Y"], copied.times_learned()["Y"]
        (0, 1)
        """
        copied = Belief(self.problem, posterior=self.posterior.copy())
        copied.monitor = None if self.monitor is None else self.monitor.copy()
        return copied

    def save(self, path: str | Path) -> None:
        """Write the belief to a JSON file; `dowise.belief.serialization` documents the format.

        A failed write leaves an existing file unchanged.

        Parameters
        ----------
        path : str or Path
            The file.

        Raises
        ------
        DowiseError
            If the file can't be written.

        Examples
        --------
        >>> import tempfile
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     belief.save(f"{folder}/belief.json")
        ...     Belief.load(f"{folder}/belief.json", belief.problem).as_dict() == belief.as_dict()
        True
        """
        write_text(path, json.dumps(self.as_dict(), indent=1) + "\n")

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data that `save` writes.

        Returns
        -------
        dict
            JSON data of the belief.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> list(belief.as_dict())
        ['format', 'version', 'factors', 'unused']
        """
        monitor = {} if self.monitor is None else self.monitor.to_json()
        return self.posterior.as_dict() | monitor

    @classmethod
    def load(cls, path: str | Path, problem: Problem) -> Belief:
        """Read a belief of this problem from a file that `save` wrote.

        Parameters
        ----------
        path : str or Path
            The file.
        problem : Problem
            The problem that the belief is about.

        Returns
        -------
        Belief
            The belief.

        Raises
        ------
        DowiseError
            If the file can't be read, is damaged or belongs to another problem, or `problem` is not
            a `Problem`.

        Examples
        --------
        >>> import tempfile
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.update("do(X=1)", {"Z": 0, "Y": 1})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     belief.save(f"{folder}/belief.json")
        ...     Belief.load(f"{folder}/belief.json", belief.problem).times_learned()
        {'X': 0, 'Y': 1, 'Z': 1}
        """
        from dowise.belief.serialization import parse_belief

        if not isinstance(problem, Problem):
            raise DowiseError(
                f"problem must be a Problem, not {type_name(problem)}: pass it after the path",
                code="invalid-type",
            )
        return read_file(path, lambda text: cls.from_dict(parse_belief(text), problem))

    @classmethod
    def from_dict(cls, data: dict[str, Any], problem: Problem) -> Belief:
        """Return a belief from JSON data; inverse of `as_dict`.

        Parameters
        ----------
        data : dict
            JSON data of a belief.
        problem : Problem
            The problem that the belief is about.

        Returns
        -------
        Belief
            The belief.

        Raises
        ------
        DowiseError
            If the data are damaged or belong to another problem.

        Examples
        --------
        >>> from dowise import load_problem
        >>> belief = Belief(load_problem("task1"))
        >>> belief.update("do(X=1)", {"Z": 0, "Y": 1})
        >>> Belief.from_dict(belief.as_dict(), belief.problem).times_learned()
        {'X': 0, 'Y': 1, 'Z': 1}
        """
        belief = cls(problem, posterior=Posterior.from_dict(data, problem))
        if "records" in data:
            belief.monitor = Monitor.from_json(data, problem)
            belief.monitor.check_counted_by(belief.posterior)
        elif "evidence" in data:
            raise DowiseError(
                "the belief is damaged: it has evidence without records", code="damaged-file"
            )
        return belief

    def __repr__(self) -> str:
        return f"<Belief about {self.problem!r}>"
