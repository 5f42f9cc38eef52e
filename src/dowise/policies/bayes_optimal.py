"""The policy that no other can beat on average, for problems that are small enough to plan."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Belief, Dirichlet, Mixture, Posterior
from dowise.belief.prior import Prior
from dowise.checks import whole_number
from dowise.errors import DowiseError
from dowise.model import model_of
from dowise.plain import counted
from dowise.policies.batches import contexts_of_batch
from dowise.policies.decision import Decision, Figures
from dowise.policies.planning import Plan
from dowise.policies.policy import BayesianPolicy, allowed_arms, certainly
from dowise.policies.usable import Numbers, Usable, check_batch
from dowise.problem import Problem, Record
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch, check_record
from dowise.randomness import Random, generator

__all__ = ["BayesOptimal"]

MAX_STATES = 5_000_000
_ROUNDING = 1e-12


class BayesOptimal(BayesianPolicy):
    """The best expected total reward over `horizon` rounds, exactly.

    The expectation is over CPTs from the prior, the contexts included; the plan takes into account
    all that later rounds may teach (Bellman's dynamic programming over posterior states; Berry &
    Fristedt 1985). A yardstick: no policy has a smaller Bayesian regret over these rounds. The
    number of states grows fast, so it is for small problems: a two-arm X -> Y up to a horizon of
    about 100, the paper's task 1 up to 10. Beyond `max_states` it refuses, with an estimate.

    Applies when no bidirected or doubtful edge touches what the reward needs, to `horizon` rounds
    and no more, with every relevant variable seen afterwards. Where only some arms are `allowed` it
    plays the best of them on the assumption that all are allowed later. Nothing is random: the
    chosen arm has probability 1. Figures: `values`, what each arm is expected to bring from this
    round to the end, in the user's units, and `rounds_left`. Plans are kept for the next policies
    of the same kind. The plan is for one round at a time. In a batch (`decide_many`) each decision
    is made as if those before it had had an outcome, which counts as a round of the plan.
    """

    imagines = True

    def __init__(
        self,
        problem: Problem,
        horizon: int,
        prior: Prior | None = None,
        max_states: int = MAX_STATES,
        belief: Belief | Posterior | None = None,
    ) -> None:
        super().__init__(problem, prior, belief)
        self.horizon = whole_number("horizon", horizon, 1)
        posterior = self.belief.posterior
        _refuse_what_is_open(problem, posterior)
        if not isinstance(posterior, Dirichlet):
            raise DowiseError(f"planning needs a Dirichlet posterior, not {posterior!r}")
        self._start = Belief(problem, posterior=posterior.copy())
        self._learned, self._known = posterior, posterior.counts.copy()
        parameters = posterior.parameters.tobytes()
        states = whole_number("max_states", max_states, 1)
        self._plan = _plan(problem, parameters, self.horizon, states)
        self._needed = [problem.positions[name] for name in self._plan.outcomes.variables]
        self._needs = (
            "this policy plans with complete outcomes, so give all of "
            f"{', '.join(self._plan.outcomes.variables)}"
        )
        starts = posterior.model.factors.starts
        self._reward = slice(*starts[problem.reward_position : problem.reward_position + 2])

    @property
    def value(self) -> float:
        """The expected total reward over all rounds, net of cost, in the user's units."""
        return self.problem.payoff.oriented(self._plan.value)

    def expected_regret(self, samples: int, rng: Random) -> tuple[float, float]:
        """How far the value is from horizon · E[max_a μ(a, C)], and the standard error of that.

        Where smaller is better, from that of the minimum. The value is exact, and so is the mean
        reward of all arms, E[Σ_a μ(a, C)] / K; what the best arm has over it is a mean over draws
        from the prior. The rows of the context and those that the rewards depend on are
        independent, so that the expectation over contexts is exact too.
        """
        source, best, variance = generator(rng), 0.0, 0.0
        turned = self.problem.payoff.turned
        for context, chance in self._contexts():
            drawn = turned(self._start.draw_rewards(context, samples, source))
            over = drawn.max(axis=0) - drawn.mean(axis=0, dtype=np.float64)
            best += chance * float(turned(self._start.mean_rewards(context)).mean() + over.mean())
            variance += chance**2 * float(over.var()) / samples
        error = self.horizon * float(np.sqrt(variance))
        return self.horizon * best - self._plan.value, error

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Play the arm that is best for this round and all that are left."""
        generator(rng)  # nothing is drawn, but every policy wants one
        problem = self.problem
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        seen = self._learned.counts - self._known
        rounds = int(seen[self._reward].sum())
        if rounds >= self.horizon:
            raise DowiseError(self._is_over())
        counts = seen[self._plan.outcomes.entries]
        values = self._plan.arm_values(counts, rounds, self._number_of(codes))
        if values is None:
            raise DowiseError(
                "the belief holds what no play of this problem's arms can have shown: it must "
                "learn from complete outcomes of arms, by `observe`"
            )
        offered = values[arms]
        # Arms that are alike differ by rounding, and the first of them is to be played.
        tied = offered >= offered.max() - _ROUNDING * max(1.0, float(np.abs(values).max()))
        chosen = int(arms[tied.argmax()])
        left, worth = self.horizon - rounds, problem.payoff.oriented(values)
        reason = (
            f"no arm is a better start into the {counted(left, 'round')} left: played as well as "
            f"can be, they are expected to bring {worth[chosen]:.4g} in all"
        )
        figures = Figures({"values": worth, "rounds_left": left})
        sure, known = certainly(problem, chosen), problem.context_labels(codes)
        return Decision(problem.arms[chosen], sure, reason, figures, known)

    def decide_many(
        self,
        contexts: int | Iterable[Context],
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> list[Decision]:
        """A decision for each context; no more of them than there are rounds left."""
        checked = contexts_of_batch(self.problem, contexts)
        if len(checked) > self._rounds_left():
            raise DowiseError(
                f"of {self.horizon:,} rounds {self._rounds_left():,} are left, too few for "
                f"{len(checked):,} decisions: make a policy with a longer horizon"
            )
        return super().decide_many(checked, rng, allowed)

    def began_to_stand_in(self) -> None:
        """The plan is followed by what is learned from here on."""
        posterior = self.belief.posterior
        assert isinstance(posterior, Dirichlet)
        self._learned = posterior

    def lacks(self, record: Record) -> str | None:
        """Whether it is of no arm, a variable that matters is missing, or no round is left."""
        check_record(record, self.problem)
        if record.arm not in self.problem.arm_positions:
            return self.problem.not_an_arm(record.arm)
        why = record.lacking(self._needed, self._needs) or super().lacks(record)
        return why if why is not None or self._rounds_left() else self._is_over()

    def usable(self, records: RecordBatch, numbers: Numbers = None) -> Usable:
        """Those that the plan can follow, and no more of them than there are rounds left."""
        check_batch(self.problem, records, numbers)
        found = Usable.all_of(len(records))
        found.need_arms(records)
        found.need(records, self._needed, self._needs)
        found.need_context(records)
        too_late = np.cumsum(found.mask) > self._rounds_left()
        found.leave_out(too_late, self._is_over())
        return found

    def _rounds_left(self) -> int:
        seen = self._learned.counts[self._reward] - self._known[self._reward]
        return max(self.horizon - int(seen.sum()), 0)

    def _is_over(self) -> str:
        return (
            f"the horizon of {self.horizon:,} rounds is over: "
            "make a policy with a longer one for more"
        )

    def _number_of(self, codes: tuple[int, ...]) -> int:
        """The number of a context among those that matter."""
        number = 0
        for name, code in zip(self.problem.context, codes, strict=True):
            if name in self._plan.outcomes.variables:
                number = number * len(self.problem.domains[name]) + code
        return number

    def _contexts(self) -> list[tuple[dict[str, str], float]]:
        """A context for each number, with its probability under the prior."""
        problem = self.problem
        names = [name for name in problem.context if name in self._plan.outcomes.variables]
        others = {name: problem.domains[name][0] for name in problem.context}
        values = product(*(problem.domains[name] for name in names))
        chances = self._plan.context_chances().tolist()
        return [
            (others | dict(zip(names, labels, strict=True)), chance)
            for labels, chance in zip(values, chances, strict=True)
        ]


def _refuse_what_is_open(problem: Problem, posterior: Posterior) -> None:
    """Hidden causes and doubtful edges make more factors than a plan can follow."""
    is_open = isinstance(posterior, Mixture)
    if not is_open and (not isinstance(posterior, Dirichlet) or posterior.model.factors.is_plain):
        return
    from dowise.policies.registry import names_with_hidden_causes

    edges = [*problem.edge_priors, *(f"{a} <-> {b}" for a, b in problem.graph.bidirected_edges)]
    raise DowiseError(
        "bayes-optimal can't plan with hidden common causes or doubtful edges, here "
        f"{', '.join(dict.fromkeys(edges))}: its plan follows the counts of one CPT for each "
        f"variable. Policies that do apply: {', '.join(names_with_hidden_causes())}"
    )


@lru_cache(maxsize=2)
def _plan(problem: Problem, parameters: bytes, horizon: int, max_states: int) -> Plan:
    """Trials of one problem share their plan."""
    flat: NDArray[np.float64] = np.frombuffer(parameters)
    return Plan(problem, model_of(problem).factors, flat, horizon, max_states)
