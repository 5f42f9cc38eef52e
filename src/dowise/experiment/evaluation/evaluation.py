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
from dowise.experiment.evaluation.estimators import (
    Estimated,
    doubly_robust,
    inverse_propensity,
    self_normalised,
    weights,
)
from dowise.experiment.evaluation.replay import Replay, Step, TargetLike, as_target, replay
from dowise.problem import Problem

MIN_EFFECTIVE = 30.0  # effective decisions for the normal approximation


@dataclass(frozen=True, eq=False)
class Evaluation(JsonResult, Documented):
    """Estimate of what a policy, the target, would have earned on the same decisions.

    The question: θ = (1/T) Σ_t Σ_a π_t(a) μ_t(a), an average over the T decisions that count, for
    the contexts that came and among the arms that were allowed. π_t(a) is the probability with
    which the target would have played an arm, given what the experiment knew by then: it learns
    from what was played, not from what its own choices would have taught, so a policy that explores
    more wisely gets no credit for that. μ_t(a) is the mean reward of the arm at decision t, given
    all that came before; the world may change, and the graph may be wrong.

    `low` and `high` of an estimate hold in finite samples, however the policy that decided learned
    from its outcomes, and for all lengths of the log at once, so one may look after every decision
    and stop when one likes. They need three things: the recorded probabilities are those that were
    played with; a decision's outcome does not depend on other decisions; and whether a decision
    counts, or is still pending or left out, depends neither on its arm nor on its outcome. Where
    outcomes come in another order than the decisions were made, they hold at any one look.
    `normal` is narrower, and holds only approximately: for many decisions with moderate weights.

    All numbers are in the user's units and a decision's worth, also where smaller is better, and
    net of what arms cost.
    """

    json_extras: ClassVar[tuple[str, ...]] = ("verdict", "refusal", "words")

    problem: Problem = field(metadata=in_json(is_sent=False, decode=lambda _, problem: problem))
    target: str
    level: float
    dr: Estimated
    """The doubly robust estimate of θ."""
    ips: Estimated | None
    """By inverse propensity; None where some of the target's choices had probability 0."""
    self_normalised: float | None
    """Inverse propensity divided by the mean weight, as a figure; None where `ips` is."""
    logged: Estimated
    """Of the policy that decided, (1/T) Σ_t Σ_a e_t(a) μ_t(a), doubly robust."""
    difference: Estimated
    """The target's less that of the policy that decided, from the same decisions."""
    earned: float
    """The mean of the rewards that were seen, net of what the arms cost."""
    unsupported: float
    """The share of the target's choices that had probability 0."""
    largest_weight: float
    """The largest π_t(A_t)/e_t(A_t)."""
    effective_decisions: float
    """(Σw)² / Σw²: so many decisions with equal weights would tell as much."""
    not_allowed: int
    """At so many decisions the target's arm was not allowed: there it does what was done."""
    unused: int
    """From so many records the target could learn nothing, because something was not seen."""
    decisions: int
    """How many count."""
    replay: Replay = field(
        metadata=in_json(is_sent=False, decode=lambda _, problem: Replay.none(len(problem.arms)))
    )
    """The rows behind the estimates; none if it was read from a document."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Number of decisions that do not count, by reason, if known."""

    @property
    def verdict(self) -> Literal["better", "worse", "not clear"]:
        """On which side of 0 the interval of the difference is."""
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
        for name, found in self._named():
            ends = (None, None) if found is None or found.normal is None else found.normal
            numbers = (None,) * 3 if found is None else (found.value, *found.interval)
            rows.append((name, *numbers, *ends))
        columns = ["estimate", "value", "low", "high", "normal_low", "normal_high"]
        table = pandas.DataFrame(rows, columns=columns)
        return table.astype(dict.fromkeys(columns[1:], float))

    def _named(self) -> Iterator[tuple[str, Estimated | None]]:
        yield "doubly robust", self.dr
        yield "inverse propensity", self.ips
        yield "policy that decided", self.logged
        yield "difference", self.difference

    def document(self) -> Document:
        """Return the estimates as a table, and what they mean."""
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
                "Few decisions are informative, as much as "
                f"{self.effective_decisions:.2g} that it had made itself: a mean "
                f"{self.problem.reward}{net} anywhere from {format_number(self.dr.low)} to "
                f"{format_number(self.dr.high)} agrees with them."
            )
        count = "counts" if self.decisions == 1 else "count"
        yield (
            f"On the {pluralize(self.decisions, 'decision')} that {count}, {self.target} would "
            f"have had a mean {self.problem.reward}{net} of {_with_interval(self.dr)} by the "
            "doubly robust estimate; the same estimate for the policy that decided is "
            f"{_with_interval(self.logged)}{smaller}. In brackets: {100 * self.level:g} % "
            "intervals."
        )
        clear = "not clear which is better" if self.verdict == "not clear" else self.verdict
        yield f"The difference is {_with_interval(self.difference)}: {clear}."
        if self.ips is None:
            yield (
                f"Inverse propensity is refused: {self.refusal}. For this share the doubly robust "
                "estimate rests on the model alone, and the intervals allow for the worst and the "
                "best reward."
            )
        else:
            yield f"By inverse propensity it is {_with_interval(self.ips)}."
        yield from self._cautions()
        if self.left_out:
            each = "; ".join(f"{times:,}: {why}" for why, times in self.left_out.items())
            total = sum(self.left_out.values())
            yield f"{pluralize(total, 'decision')} left out ({each})."

    def _cautions(self) -> Iterator[str]:
        if not self.dr.low <= self.dr.value <= self.dr.high:
            yield (
                "A few decisions with weights of up to "
                f"{format_number(self.largest_weight)} drive the estimate out of its interval: "
                "rely on the interval."
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
                f"In {pluralize(self.not_allowed, 'decision')} its arm was not allowed: there it "
                "is assumed to do what was done."
            )
        if self.unused:
            yield (
                f"It could learn nothing from {pluralize(self.unused, 'record')}, in which "
                "something that it needs is missing."
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

    See `Evaluation`. `target` is a policy's name, with its `options`; a fresh policy; an arm,
    "do(X=1)"; or a mapping from contexts (tuples of labels in the order of `problem.context`) to
    arms. `belief` is the model of the doubly robust estimate, by default one from the prior; it
    learns the steps' records. `seed` is that of the target's own draws.
    """
    level = check_fraction("level", level, 0.9)
    if belief is not None and belief.problem != problem:
        raise DowiseError(f"the belief is about another problem, {belief.problem!r}")
    chosen = as_target(target, problem, options, seed)
    found = replay(problem, steps, chosen, belief if belief is not None else Belief(problem))
    payoff, weight = problem.payoff, weights(found)
    missing, squares = found.unsupported, float(weight @ weight)
    steady = None if missing else self_normalised(found)
    versus = doubly_robust(found, found.target - found.logged, level)
    return Evaluation(
        problem=problem,
        target=chosen.name,
        level=level,
        dr=doubly_robust(found, found.target, level).rescaled(payoff.unscale),
        ips=None if missing else inverse_propensity(found, level).rescaled(payoff.unscale),
        self_normalised=None if steady is None else payoff.unscale(steady),
        logged=doubly_robust(found, found.logged, level).rescaled(payoff.unscale),
        difference=versus.rescaled(lambda scaled: payoff.oriented(payoff.span * scaled)),
        earned=payoff.unscale(float(payoff.net_scaled(found.rewards, found.arms).mean())),
        unsupported=missing,
        largest_weight=float(weight.max()),
        effective_decisions=float(weight.sum()) ** 2 / squares if squares > 0 else 0.0,
        not_allowed=chosen.not_allowed,
        unused=chosen.unused,
        decisions=len(found),
        replay=found,
    )


def _with_interval(estimate: Estimated) -> str:
    return (
        f"{format_number(estimate.value)} "
        f"[{format_number(estimate.low)} to {format_number(estimate.high)}]"
    )


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %" if part >= 0.001 else "less than 0.1 %"
