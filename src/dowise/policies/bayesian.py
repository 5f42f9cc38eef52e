"""Policies that know the world through a `Belief`, and the fantasies of their batches."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Self

import numpy as np

from dowise._core.rng import Random, generator
from dowise._core.types import IntArray
from dowise._core.validation import check_fraction_or_zero
from dowise.belief import Belief
from dowise.belief.predictive import draw_record
from dowise.errors import DowiseError, DowiseWarning, type_name
from dowise.model import Codes
from dowise.policies.base import Policy, as_list, digest_of, validate_contexts
from dowise.policies.decision import Decision, Edges
from dowise.policies.graph_free import MixtureBelief
from dowise.policies.requirements import Numbers, RecordRequirements
from dowise.problem import Problem, Record
from dowise.problem.prior import Prior
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch

CONTEXT_REMEDY = "add the context to it"


class BeliefKnowledge:
    """A belief as the knowledge of a policy. Every record with a known context is learned."""

    def __init__(self, belief: Belief, requires: RecordRequirements | None = None) -> None:
        self.belief = belief
        if requires is None:
            positions = belief.problem.context_positions.tolist()
            requires = RecordRequirements(positions, CONTEXT_REMEDY)
        self.requires = requires

    def learn(self, record: Record) -> None:
        """Learn from all variables that were observed."""
        self.belief.learn(record)

    def retract(self, record: Record) -> None:
        """Forget one record."""
        self.belief.retract(record)

    def learn_many(self, records: RecordBatch, numbers: Numbers = None) -> None:
        """Learn from many records; their numbers do not matter."""
        self.belief.learn_many(records)

    def copy(self) -> Self:
        """Return a copy that learns independently, without evidence about the graph."""
        belief = Belief(self.belief.problem, posterior=self.belief.posterior.copy())
        return type(self)(belief, self.requires)

    def state(self) -> Mapping[str, object]:
        """Return the posterior, as it is saved."""
        return self.belief.as_dict()

    def fingerprint(self) -> bytes:
        """Return a digest of the counts."""
        return digest_of(self.belief.posterior.counts)

    def winners(
        self, codes: Codes, arms: IntArray, samples: int, rng: np.random.Generator
    ) -> IntArray:
        """Return the best of these arms under each posterior draw, as indices into `arms`."""
        problem = self.belief.problem
        draws = self.belief.draw(codes, samples, rng)
        if len(arms) < len(problem.arms):
            draws = draws.among(arms)
        return draws.winners(problem.payoff)[0]


class MixtureKnowledge(BeliefKnowledge):
    """Belief about the graph and the graph-free hypothesis as the knowledge of a policy."""

    belief: MixtureBelief

    def copy(self) -> Self:
        """Return a copy that learns independently, without evidence about the graph."""
        belief = self.belief.copy()
        belief.graph.monitor = belief.monitor = None
        return type(self)(belief, self.requires)

    def fingerprint(self) -> bytes:
        """Return a digest of the counts and the gain of the graph-free hypothesis."""
        return digest_of(self.belief.posterior.counts, (self.belief.gain,))


class BayesianPolicy(Policy):
    """Policy whose knowledge is a `Belief`. Subclasses implement `choose`.

    Parameters
    ----------
    problem : Problem
        Problem to decide in.
    prior : number, mapping or path, optional
        Prior counts. Defaults to the problem's.
    belief : Belief, optional
        Belief to start from, instead of a prior; the policy learns into it.
    graph_free_prior : float, optional
        Prior probability, from 0 to below 1, of the hypothesis that every arm has a reward
        distribution of its own in each context, whatever the graph says
        (`dowise.policies.graph_free`).

    Raises
    ------
    DowiseError
        If both a prior and a belief are passed, or a belief about another problem.

    Examples
    --------
    >>> from dowise.policies import Choice
    >>> from dowise.policies.base import one_hot
    >>> from dowise.policies.decision import DecisionTrace
    >>> from dowise.problem import load_problem
    >>> class Greedy(BayesianPolicy):
    ...     def choose(self, codes, arms, rng):
    ...         means = self.belief.posterior.mean_distributions(codes)[arms, 1]
    ...         arm = int(arms[means.argmax()])
    ...         return Choice(arm, one_hot(self.problem, arm), DecisionTrace("the best mean"))
    >>> policy = Greedy(load_problem("task1"))
    >>> policy.observe("do(X=1)", {"Z": 0, "Y": 1})
    >>> print(policy.decide(rng=0))
    do(X=1): the best mean
    """

    knowledge: BeliefKnowledge
    suppress_warnings = False
    """True if the caller reports variables that are never learned (`belief.never_used`)."""
    uses_fantasies = False
    """True if each decision of a batch learns imagined outcomes of the decisions before it.

    For policies that would otherwise repeat the same arm.
    """

    def __init__(
        self,
        problem: Problem,
        prior: Prior | None = None,
        belief: Belief | None = None,
        graph_free_prior: float = 0.0,
    ) -> None:
        self.graph_free_prior = check_fraction_or_zero("graph_free_prior", graph_free_prior)
        if belief is None:
            belief = Belief(problem, prior)
        elif prior is not None:
            raise DowiseError(
                "pass prior or belief, not both: a belief has its own prior", code="invalid-option"
            )
        elif not isinstance(belief, Belief):
            raise DowiseError(
                f"belief must be a Belief, not {type_name(belief)}", code="invalid-type"
            )
        elif belief.problem != problem:
            raise DowiseError(
                f"the belief is about another problem, {belief.problem!r}", code="wrong-problem"
            )
        knowledge = BeliefKnowledge(belief)
        if self.graph_free_prior:
            knowledge = MixtureKnowledge(MixtureBelief(belief, self.graph_free_prior))
        super().__init__(problem, knowledge)
        self.arrivals = None if self.mixture is None else self.mixture.arrivals
        self._has_warned = False

    @property
    def belief(self) -> Belief:
        """Posterior of the problem's tables, with what records could not teach."""
        mixture = self.mixture
        return self.knowledge.belief if mixture is None else mixture.graph

    @property
    def deciding_belief(self) -> Belief:
        """Belief that decisions are made from: `belief`, or `mixture` if there is one."""
        return self.knowledge.belief

    @property
    def mixture(self) -> MixtureBelief | None:
        """Mixture of the graph and the graph-free hypothesis; None if the graph decides alone."""
        belief = self.knowledge.belief
        return belief if isinstance(belief, MixtureBelief) else None

    def decide_many(
        self,
        contexts: int | Iterable[Context],
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> list[Decision]:
        """Make a decision for each context, before any outcome is known.

        If the policy `uses_fantasies`, each decision is made as if the decisions before it had
        outcomes, which are drawn from the posterior. `probabilities` are exact given what was
        learned and imagined.
        """
        labels, source = validate_contexts(self.problem, contexts), generator(rng)
        if not self.uses_fantasies:
            return super().decide_many(labels, source, allowed)
        arms = as_list(allowed)
        decisions, fantasy = [self.decide(labels[0], source, arms)], None
        for before, context in pairwise(labels):
            fantasy = self.copy() if fantasy is None else fantasy
            fantasy.fantasize(decisions[-1].arm, before, source)
            decisions.append(fantasy.decide(context, source, arms))
        return decisions

    def fantasize(self, arm: ArmLike, context: Context, rng: np.random.Generator) -> None:
        """Draw the outcome of a pending play from the posterior, and learn it. For copies."""
        posterior, problem = self.belief.posterior, self.problem
        codes = problem.context_codes(context)
        record = draw_record(posterior, problem.arm_index(arm), codes, rng)
        posterior.learn(record)
        if self.mixture is not None:
            self.mixture.rewards.learn(record)  # it is no evidence for either side
        self.on_learned(record, 1)

    def _warn_of_unused(self) -> None:
        if self._has_warned or self.suppress_warnings:
            return
        unused = self.belief.never_used()
        if not unused:
            return
        self._has_warned = True
        absent = sorted({name for missing in unused.values() for name in missing})
        warnings.warn(
            f"{self.records} records taught nothing about {', '.join(unused)}, because "
            f"{', '.join(absent)} {'was' if len(absent) == 1 else 'were'} not observed. Declare "
            f"variables that are never recorded as hidden = {json.dumps(absent)} in the problem; "
            "then the policy learns from what is observed",
            DowiseWarning,
            stacklevel=4,
        )

    def _mixture_figures(self) -> dict[str, float]:
        """Return the figures of the graph-free hypothesis, if there is one."""
        if self.mixture is None:
            return {}
        return {
            "graph_free_weight": self.mixture.weight,
            "graph_free_log_ratio": self.mixture.log_ratio,
        }

    def _edges(self) -> Edges | None:
        """Return a function for the current probabilities of doubtful edges; None without any."""
        belief = self.knowledge.belief
        return belief.edge_snapshot() if belief.problem.edge_priors else None
