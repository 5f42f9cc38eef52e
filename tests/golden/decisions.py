"""Golden decisions: the arms that policies choose for fixed seeds, and the numbers behind them.

`decisions.json` has one character per round, the index of the arm, for 300 rounds of the basic
policies. `decision_cases.json` covers options and kinds of problems with a few rounds each, and has
the probabilities and figures of some of those rounds. `small_priors.json` does the same for prior
parameters of at most 0.5, which are kept apart because their decisions may change on purpose.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dowise import CausalGraph, Intervention, Problem, load_problem, make_environment, make_policy
from dowise.environments import front_door_world

ROUNDS = 300
DIGITS = string.digits + string.ascii_letters
POSTERIOR = ["ids", "ts"]
OTHERS = ["bernoulli-ts", "kl-ucb", "random", "ucb", "z2-kl-ucb", "z2-ts"]
WORLDS = ["task1", "task2", "task3", "healthcare", "asia", "front-door", "X -> Y"]


def world_of(name):
    """Return the environment in which a part of `decisions.json` was recorded."""
    if name == "front-door":
        return front_door_world()
    if name == "X -> Y":
        return make_environment(Problem(CausalGraph.parse(name), "Y"), seed=3)
    return make_environment(name, seed=3)


def policies_of(name):
    """Return the policies that play there, as far as hidden causes and size permit."""
    if name == "front-door":
        return OTHERS
    return ["bayes-optimal"] if name == "X -> Y" else POSTERIOR + OTHERS


def decisions(name, policy):
    """Return one character per round: the index of the arm."""
    environment, rounds = world_of(name), 60 if policy == "bayes-optimal" else ROUNDS
    options = {"horizon": rounds} if policy == "bayes-optimal" else {}
    player = make_policy(policy, environment.problem, **options)
    outcomes, choices = np.random.default_rng(5), np.random.default_rng(7)
    played = []
    for _ in range(rounds):
        context = environment.draw_context(outcomes)
        arm = player.decide(context, choices).arm
        player.observe(arm, environment.play(arm, context, outcomes))
        played.append(DIGITS[environment.problem.arm_index(arm)])
    return "".join(played)


def long_runs():
    """Return the content of `decisions.json`."""
    return {
        name: {policy: decisions(name, policy) for policy in policies_of(name)} for name in WORLDS
    }


CHAIN = "C -> X; C -> Y; X -> Z -> Y; W -> Z"
PROBLEMS = {
    "task1": lambda: load_problem("task1"),
    "task2": lambda: load_problem("task2"),
    "healthcare": lambda: load_problem("healthcare"),
    "tiny": lambda: Problem("X -> Y", "Y"),
    "context": lambda: Problem(CHAIN, "Y", "C", "Z"),
    "costs": lambda: Problem(CHAIN, "Y", "C", "Z", costs={"X": 0.1, "do(W=1)": 0.05}),
    "minimise": lambda: Problem(
        CHAIN,
        "Y",
        "C",
        "Z",
        domains={"Y": ("none", "some", "all")},
        reward_values={"none": 0, "some": 2, "all": 10},
        minimise=True,
        costs={"X": 0.5},
    ),
    "values": lambda: Problem(
        CHAIN, "Y", "C", domains={"Y": ("0", "1", "2"), "X": ("a", "b", "c")}
    ),
    "forbidden": lambda: Problem(CHAIN, "Y", "C", "Z", forbidden=("do(X=1)",)),
    "all-arms": lambda: Problem("X -> Z -> Y", "Y", arms="all"),
    "hidden": lambda: Problem(
        "U -> X; U -> Y; X -> Z -> Y; W -> Z", "Y", non_manipulable="Z", hidden=("U",)
    ),
    "hidden-context": lambda: Problem("C -> X -> Z -> Y; C -> Y; X <-> Y!", "Y", "C"),
    "doubtful": lambda: Problem("Z -> X -> Y; Z ?-> Y; X <?> Y", "Y", edge_rules=1),
    "doubtful-context": lambda: Problem(
        "C -> X -> Z -> Y; C ?-> Y; X <-> Y", "Y", "C", "Z", edge_rules=1
    ),
    "doubtful-costs": lambda: Problem(
        "C ?-> Y; X -> Z -> Y; X ?-> Y", "Y", "C", minimise=True, costs={"X": 0.1, "Z": 0.2}
    ),
    "soft": lambda: Problem("Z -> X -> Y; W -> Y", "Y", soft=0.1, edge_rules=1),
    "narrow": lambda: Problem("Z -> X -> Y; Z ?-> Y; X <?> Y", "Y"),
    "soft-order": lambda: Problem("Z -> X -> Y; W -> Y", "Y", (), "W", soft=0.1),
    "own-prior": lambda: Problem(
        "X -> Z -> Y", "Y", prior={"Y": [[4.0, 1.0], [1.0, 2.0]]}, reward_values={"0": -1, "1": 3}
    ),
}


@dataclass(frozen=True)
class Case:
    """A policy with options on one of `PROBLEMS`, played for a few rounds."""

    policy: str
    problem: str
    options: Mapping[str, Any] = field(default_factory=dict)
    rounds: int = 12
    batch: int = 1
    """Decisions per round; more than one calls `decide_many`."""
    restricted: bool = False
    """True if every second arm only is allowed."""
    label: str | None = None
    """Part of the name that stands for the options."""

    @property
    def name(self):
        """Return the key in the golden file, which is also the id of the test."""
        options = ",".join(f"{name}={value}" for name, value in self.options.items())
        if self.label is not None:
            options = self.label
        more = [options, f"batch={self.batch}" if self.batch > 1 else ""]
        more.append("allowed" if self.restricted else "")
        return " ".join([self.policy, self.problem, *filter(None, more)])


FEW = {"samples": 200}
ALONE = {"prior": "flat", "graph_free_prior": 0}  # "best" as it was before it had other defaults
_BELIEVERS = [("ids", FEW), ("ts", {"propensity_samples": 100}), ("commit-kg", {})]
_SKIPPED = "healthcare", "values", "all-arms", "soft", "soft-order"  # by "best", as by commit-kg
CASES = [
    *(
        Case(policy, problem, options)
        for policy, options in _BELIEVERS
        for problem in PROBLEMS
        if not (policy == "commit-kg" and problem == "healthcare")
    ),
    *(
        Case("best", problem, ALONE, label="")
        for problem in PROBLEMS
        if problem not in (*_SKIPPED, "own-prior")
    ),
    *(
        Case("best", problem, label="pooled")
        for problem in ("task1", "task2", "values", "minimise", "hidden", "narrow", "own-prior")
    ),
    Case("best", "task2", ALONE | {"floor": 0.1}, label="floor=0.1"),
    Case("best", "costs", ALONE | {"floor": 0.1}, label="floor=0.1"),
    Case("best", "task2", {"floor": 0.1}, label="pooled,floor=0.1"),
    *(
        Case(policy, problem, options, rounds=3, batch=4, label=label)
        for policy, options, label in (
            ("commit-kg", {"count_pending": False}, ""),
            ("commit-kg", {}, "pending"),
            ("best", ALONE, ""),
            ("best", {}, "pooled"),
        )
        for problem in ("context", "doubtful")
    ),
    Case("best", "context", ALONE, rounds=8, restricted=True, label=""),
    *(
        Case(policy, "task2", options | {"prior": "pooled", "graph_free_prior": 0.25})
        for policy, options in _BELIEVERS
    ),
    *(
        Case("certified-ids", problem, {"samples": 100, "propensity_samples": 50}, rounds=6)
        for problem in ("task1", "context", "costs", "minimise", "hidden", "doubtful")
    ),
    Case("certified-ids", "task1", {"samples": 100, "lam": 0.5, "floor": 0.1}, rounds=6),
    Case("ids", "task2", FEW | {"gain": "all"}),
    Case("ids", "task2", FEW | {"gain": "rows"}),
    Case("ids", "task2", FEW | {"about": "map"}),
    Case("ids", "context", FEW | {"gain": "all", "about": "map"}),
    Case("ids", "context", FEW | {"gain": "rows", "about": "map", "choice": "deterministic"}),
    Case("ids", "doubtful-context", FEW | {"gain": "all", "about": "map"}),
    Case("ids", "minimise", FEW | {"gain": "all"}),
    Case("ids", "task2", FEW | {"choice": "deterministic"}),
    Case("ids", "task2", FEW | {"choice": "deterministic", "floor": 0.1}),
    Case("ids", "task1", FEW | {"interval": "optimistic"}),
    Case("ids", "task1", FEW | {"interval": "pessimistic", "horizon": 100, "delta": 0.1}),
    Case("ids", "values", FEW | {"interval": "optimistic"}),
    *(
        Case(policy, problem, options | {"floor": 0.1})
        for policy, options in [
            *_BELIEVERS,
            ("bernoulli-ts", {"propensity_samples": 100}),
            ("kl-ucb", {}),
            ("ucb", {}),
            ("random", {}),
            ("z2-ts", {"propensity_samples": 50}),
            ("z2-kl-ucb", {}),
        ]
        for problem in ("task2", "costs")
    ),
    Case("ids", "doubtful", FEW | {"floor": 0.1}),
    Case("commit-kg", "doubtful", {"floor": 0.1}),
    Case("bayes-optimal", "tiny", {"horizon": 12}),
    Case("bayes-optimal", "tiny", {"horizon": 8, "floor": 0.1}, rounds=8),
    *(
        Case(policy, problem, options)
        for policy, options in [
            ("bernoulli-ts", {"propensity_samples": 100}),
            ("kl-ucb", {}),
            ("ucb", {}),
            ("z2-ts", {"propensity_samples": 50}),
            ("z2-kl-ucb", {}),
        ]
        for problem in ("costs", "minimise", "values", "hidden", "hidden-context", "doubtful")
    ),
    Case("bernoulli-ts", "task1", {"prior": (2.0, 3.0), "seed": 4}),
    Case("kl-ucb", "task1", {"c": 1.0}),
    Case("ucb", "task1", {"exploration": 1.0}),
    Case("z2-ts", "task2", {"resamples": 20, "refresh": 0.5, "seed": 4}),
    Case("z2-kl-ucb", "task2", {"resamples": 20, "refresh": 0.5, "c": 1.0}),
    *(
        Case(policy, problem, options, rounds=3, batch=4)
        for policy, options in [
            *_BELIEVERS[:2],
            ("ids", FEW | {"floor": 0.1}),
            ("bernoulli-ts", {}),
            ("kl-ucb", {}),
            ("ucb", {}),
            ("random", {}),
            ("z2-ts", {}),
            ("z2-kl-ucb", {}),
        ]
        for problem in ("context", "doubtful")
    ),
    Case("bayes-optimal", "tiny", {"horizon": 12}, rounds=3, batch=2),
    *(
        Case(policy, "context", options, rounds=8, restricted=True)
        for policy, options in [
            *_BELIEVERS,
            ("ids", FEW | {"floor": 0.1}),
            ("bernoulli-ts", {}),
            ("kl-ucb", {}),
            ("z2-ts", {}),
        ]
    ),
]
SMALL_PRIORS = (
    [
        Case(policy, problem, options | {"prior": prior})
        for policy, options in [*_BELIEVERS, ("ids", FEW | {"floor": 0.1})]
        for problem in ("task1", "context", "costs", "hidden", "doubtful")
        for prior in (0.5, 0.05)
    ]
    + [
        Case("best", problem, ALONE | {"prior": prior}, label=f"prior={prior}")
        for problem in ("task1", "context", "costs", "hidden", "doubtful")
        for prior in (0.5, 0.05)
    ]
    + [
        Case("bayes-optimal", "tiny", {"horizon": 8, "prior": prior}, rounds=8)
        for prior in (0.5, 0.05)
    ]
)


def outcome_of(case):
    """Play a case: the arm of every decision, and the numbers of the first and the last round."""
    problem = PROBLEMS[case.problem]()
    environment = make_environment(problem, seed=3)
    player = make_policy(case.policy, environment.problem, **case.options)
    outcomes, choices = np.random.default_rng(5), np.random.default_rng(7)
    options = {"allowed": problem.arms[::2]} if case.restricted else {}
    played, numbers = [], {}
    for number in range(1, case.rounds + 1):
        contexts = [environment.draw_context(outcomes) for _ in range(case.batch)]
        if case.batch > 1:
            batch = player.decide_many(contexts, choices, **options)
        else:
            batch = [player.decide(contexts[0], choices, **options)]
        for context, decision in zip(contexts, batch, strict=True):
            player.observe(decision.arm, environment.play(decision.arm, context, outcomes))
            played.append(DIGITS[problem.arm_index(decision.arm)])
        if number in (1, case.rounds):
            numbers[str(number)] = {
                "probabilities": rounded(batch[-1].probabilities),
                **{name: rounded(value) for name, value in batch[-1].figures.items()},
            }
    return {"arms": "".join(played), **numbers}


def rounded(value):
    """Turn a figure into JSON with ten digits: enough to notice any change but a compiler's."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Intervention):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): rounded(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        return rounded(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [rounded(part) for part in value]
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(f"{float(value):.10g}")
        return number if np.isfinite(number) else str(number)
    if hasattr(value, "low") and hasattr(value, "high"):
        return rounded([value.low, value.high])
    raise TypeError(f"no JSON form for {type(value).__name__}")


def cases():
    """Return the content of `decision_cases.json`."""
    return {case.name: outcome_of(case) for case in CASES}


def small_priors():
    """Return the content of `small_priors.json`."""
    return {case.name: outcome_of(case) for case in SMALL_PRIORS}
