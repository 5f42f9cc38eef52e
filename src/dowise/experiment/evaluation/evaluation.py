"""Off-policy evaluation: what another policy would have earned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from dowise._core.codec import JsonResult, in_json
from dowise._core.document import (
    Block,
    BulletList,
    Document,
    Documented,
    Heading,
    Table,
    format_number,
    pluralize,
)
from dowise._core.validation import check_fraction
from dowise.belief import Belief
from dowise.errors import DowiseError, import_extra
from dowise.experiment.evaluation.decision_log import Replay, Step, TargetLike, as_target, replay
from dowise.experiment.evaluation.estimators import (
    IntervalEstimate,
    doubly_robust,
    importance_weights,
    inverse_propensity,
    self_normalised,
)
from dowise.problem import Problem

MIN_EFFECTIVE = 30.0  # effective decisions for the normal approximation


@dataclass(frozen=True, eq=False)
class Evaluation(JsonResult, Documented):
    """Estimate of what a policy, the target, would have earned on the same decisions.

    The estimate is about θ = (1/T) Σ_t Σ_a π_t(a) μ_t(a), an average over the T decisions that
    count, with their contexts and the arms that were allowed. π_t(a) is the probability with which
    the target would have played an arm, given what the experiment knew at the time. The target
    learns from what was played, not from what its own choices would have shown, so a policy that
    explores better gets no credit for that. μ_t(a) is the mean reward of the arm at decision t,
    given everything before it; the world may change, and the graph may be wrong.

    `low` and `high` of an estimate are guaranteed in finite samples, however the policy that
    decided learned from its outcomes, and for all lengths of the log at once: you may look after
    every decision, and stop when you like. They rest on three assumptions. The recorded
    probabilities are those that were used. The outcome of a decision does not depend on other
    decisions. Whether a decision counts, is pending or is left out depends neither on its arm nor
    on its outcome. If outcomes arrive in another order than the decisions were made, the guarantee
    is for any single look. `normal` is narrower, and only approximate: it needs many decisions with
    moderate weights.

    All numbers are per decision, in the user's units, also if smaller is better, and net of the
    costs of arms.

    Examples
    --------
    >>> from dowise import Experiment
    >>> from dowise.experiment.storage import MemoryStorage
    >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", "random", seed=1)
    >>> for reward in (0, 1, 1, 0):
    ...     case = experiment.tell(experiment.ask().id, {"Y": reward})
    >>> evaluation = experiment.evaluate("random")
    >>> evaluation.decisions, evaluation.earned, evaluation.verdict
    (4, 0.5, 'not clear')
    """

    json_extras: ClassVar[tuple[str, ...]] = ("verdict", "refusal", "words")

    problem: Problem = field(metadata=in_json(is_sent=False, decode=lambda _, problem: problem))
    target: str
    level: float
    dr: IntervalEstimate
    """The doubly robust estimate of θ."""
    ips: IntervalEstimate | None
    """Estimate by inverse propensity; None if some of the target's choices had probability 0."""
    self_normalised: float | None
    """Inverse propensity divided by the mean weight; None if `ips` is, or if all weights are 0."""
    logged: IntervalEstimate
    """Doubly robust estimate of the policy that decided, (1/T) Σ_t Σ_a e_t(a) μ_t(a)."""
    difference: IntervalEstimate
    """Estimate of the target minus the policy that decided, from the same decisions."""
    earned: float
    """Mean of the observed rewards, net of the costs of arms."""
    unsupported: float
    """Share of the target's choices that had probability 0."""
    largest_weight: float
    """Largest π_t(A_t)/e_t(A_t)."""
    effective_decisions: float
    """Number of decisions with equal weights that would be as informative: (Σw)² / Σw²."""
    not_allowed: int
    """Number of decisions where the target's arm was not allowed, and it does what was done."""
    unused: int
    """Number of records that the target could not learn from, because a value is missing."""
    decisions: int
    """Number of decisions that count."""
    replay: Replay = field(
        metadata=in_json(is_sent=False, decode=lambda _, problem: Replay.empty(len(problem.arms)))
    )
    """The rows behind the estimates; empty if the result was read from JSON."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Number of decisions that do not count, by reason, if known."""

    @property
    def verdict(self) -> Literal["better", "worse", "not clear"]:
        """Side of 0 on which the interval of the difference is."""
        low, high = sorted(map(self.problem.payoff.oriented, self.difference.interval))
        return "better" if low > 0 else "worse" if high < 0 else "not clear"

    @property
    def refusal(self) -> str | None:
        """Reason why there is no estimate by inverse propensity; None if there is one."""
        if not self.unsupported:
            return None
        return (
            f"{_percent(self.unsupported)} of its choices had probability 0 when the decisions "
            "were made, so no decision shows what they would have earned"
        )

    def words(self) -> str:
        """Return the sentences of the evaluation, one per line."""
        return "\n".join(self._sentences())

    def frame(self) -> Any:
        """Return a DataFrame: estimate, value, low, high, normal_low, normal_high."""
        pandas = import_extra("pandas", "simulate", "a table of the evaluation")
        rows = []
        for name, estimate in self._named():
            if estimate is None:
                rows.append((name, *(None,) * 5))
            else:
                normal = estimate.normal or (None, None)
                rows.append((name, estimate.value, *estimate.interval, *normal))
        columns = ["estimate", "value", "low", "high", "normal_low", "normal_high"]
        table = pandas.DataFrame(rows, columns=columns)
        return table.astype(dict.fromkeys(columns[1:], float))

    def _named(self) -> Iterator[tuple[str, IntervalEstimate | None]]:
        yield "doubly robust", self.dr
        yield "inverse propensity", self.ips
        yield "policy that decided", self.logged
        yield "difference", self.difference

    def document(self) -> Document:
        """Return a table of the estimates, and their meaning in sentences."""
        return Document(tuple(self._blocks()))

    def _blocks(self) -> Iterator[Block]:
        yield Heading(f"{self.target} on {pluralize(self.decisions, 'decision')}")
        yield Table(
            ("per decision", f"{100 * self.level:g} % interval", "estimate"),
            tuple(
                (name, "refused", "")
                if estimate is None
                else (
                    name,
                    f"{format_number(estimate.low)} to {format_number(estimate.high)}",
                    format_number(estimate.value),
                )
                for name, estimate in self._named()
            ),
            right=("estimate",),
        )
        yield BulletList(tuple(self._sentences()))

    def _sentences(self) -> Iterator[str]:
        smaller = " (smaller is better)" if self.problem.minimise else ""
        net = ", net of cost," if self.problem.payoff.has_costs else ""
        if self.effective_decisions < MIN_EFFECTIVE:  # say so before the estimate
            yield (
                f"The decisions tell little about {self.target} (their effective number is "
                f"{self.effective_decisions:.2g}): a mean {self.problem.reward}{net} anywhere from "
                f"{format_number(self.dr.low)} to {format_number(self.dr.high)} agrees with them."
            )
        count = "counts" if self.decisions == 1 else "count"
        yield (
            f"On the {pluralize(self.decisions, 'decision')} that {count}, {self.target} would "
            f"have had a mean {self.problem.reward}{net} of {_with_interval(self.dr)} by the "
            "doubly robust estimate; the same estimate for the policy that decided is "
            f"{_with_interval(self.logged)}{smaller}. In brackets: {100 * self.level:g} % "
            "intervals."
        )
        verdict = "not clear which is better" if self.verdict == "not clear" else self.verdict
        yield f"The difference is {_with_interval(self.difference)}: {verdict}."
        if self.ips is None:
            yield (
                f"Inverse propensity is refused: {self.refusal}. For this share the doubly robust "
                "estimate rests on the model alone, and the intervals allow for the worst and the "
                "best reward."
            )
        else:
            yield (
                f"By inverse propensity, the mean for {self.target} is {_with_interval(self.ips)}."
            )
        yield from self._cautions()
        if self.left_out:
            reasons = "; ".join(f"{times:,}: {why}" for why, times in self.left_out.items())
            total = sum(self.left_out.values())
            yield f"{pluralize(total, 'decision')} left out ({reasons})."

    def _cautions(self) -> Iterator[str]:
        if not self.dr.low <= self.dr.value <= self.dr.high:
            yield (
                "A few decisions with weights of up to "
                f"{format_number(self.largest_weight)} push the doubly robust estimate out of its "
                "interval: rely on the interval."
            )
        if self.dr.normal is not None and self.effective_decisions >= MIN_EFFECTIVE:
            low, high = self.dr.normal
            yield (
                "By the normal approximation, which holds only for many decisions with moderate "
                f"weights, the doubly robust interval is {format_number(low)} to "
                f"{format_number(high)}."
            )
        if self.not_allowed:
            yield (
                f"In {pluralize(self.not_allowed, 'decision')} the arm of {self.target} was not "
                "allowed; it is assumed to do what was done."
            )
        if self.unused:
            yield (
                f"{self.target} could not learn from {pluralize(self.unused, 'record')}, because a "
                "value that it needs is missing."
            )


def evaluate(
    problem: Problem,
    steps: Iterable[Step],
    target: TargetLike,
    options: Mapping[str, Any] | None = None,
    level: float = 0.9,
    belief: Belief | None = None,
    seed: int = 0,
) -> Evaluation:
    """Estimate what the target would have earned on the decisions among the steps.

    Parameters
    ----------
    problem : Problem
        The problem of the decisions.
    steps : iterable of steps
        What was decided and what became known, in order.
    target : str, policy, arm or mapping
        The name of a policy; a fresh policy; an arm such as "do(X=1)"; or a mapping from contexts
        (tuples of labels in the order of `problem.context`) to arms.
    options : mapping, optional
        Options of a policy that is passed by its name.
    level : float, default 0.9
        Level of the intervals.
    belief : Belief, optional
        Model of the doubly robust estimate, which learns the records of the steps; by default one
        from the prior.
    seed : int, default 0
        Random seed of the target's own draws.

    Returns
    -------
    Evaluation

    Raises
    ------
    NothingToEvaluateError
        If no decision is among the steps.
    DowiseError
        If the target, a step or another argument is invalid.
    """
    level = check_fraction("level", level, 0.9)
    if belief is not None and belief.problem != problem:
        raise DowiseError(
            f"the belief is about another problem, {belief.problem!r}", code="wrong-problem"
        )
    chosen = as_target(target, problem, options, seed)
    log = replay(problem, steps, chosen, belief if belief is not None else Belief(problem))
    payoff, weights = problem.payoff, importance_weights(log)
    squares, is_supported = float(weights @ weights), not log.unsupported
    normalised = self_normalised(log) if is_supported else None
    difference = doubly_robust(log, log.target - log.logged, level)
    return Evaluation(
        problem=problem,
        target=chosen.name,
        level=level,
        dr=doubly_robust(log, log.target, level).rescaled(payoff.unscale),
        ips=inverse_propensity(log, level).rescaled(payoff.unscale) if is_supported else None,
        self_normalised=None if normalised is None else payoff.unscale(normalised),
        logged=doubly_robust(log, log.logged, level).rescaled(payoff.unscale),
        difference=difference.rescaled(lambda scaled: payoff.oriented(payoff.span * scaled)),
        earned=payoff.unscale(float(payoff.net_scaled(log.rewards, log.arms).mean())),
        unsupported=log.unsupported,
        largest_weight=float(weights.max()),
        effective_decisions=float(weights.sum()) ** 2 / squares if squares > 0 else 0.0,
        not_allowed=chosen.not_allowed,
        unused=chosen.unused,
        decisions=len(log),
        replay=log,
    )


def _with_interval(estimate: IntervalEstimate) -> str:
    return (
        f"{format_number(estimate.value)} "
        f"[{format_number(estimate.low)} to {format_number(estimate.high)}]"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.001 else "less than 0.1 %"
