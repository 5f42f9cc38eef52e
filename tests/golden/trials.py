"""Golden digests of simulated trials, which run compiled loops where a policy has one."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from dowise import CausalGraph, Problem, simulate

PLAIN = ["ids", "ts", "commit-kg", "best", "certified-ids", "z2-ts", "z2-kl-ucb"]
PLAIN += ["bernoulli-ts", "kl-ucb", "ucb", "random", "arm-ids"]
DOUBTFUL = Problem(
    "C -> X -> Z -> Y; C ?-> Y; X <?> Y", "Y", "C", "Z", name="doubtful", edge_rules=1
)
DIRECTED = Problem("C -> X -> Z -> Y; C ?-> Y; X ?-> Y", "Y", "C", "Z", name="directed")
COSTLY = Problem(
    CausalGraph.parse("C -> X; C -> Y; X -> Z -> Y; W -> Z"),
    "Y",
    "C",
    "Z",
    domains={"Y": ("0", "1", "2")},
    minimise=True,
    costs={"X": 0.1},
    name="costly",
)
SHORT = {name: {"samples": 100} for name in ("ids", "certified-ids", "arm-ids")}
SHORT["best"] = {"prior": "flat", "graph_free_prior": 0}  # as it was before it had other defaults
RUNS = {
    **{f"{policy} task1": (["task1"], policy, {}) for policy in PLAIN},
    **{f"{policy} task2": (["task2"], policy, {}) for policy in PLAIN},
    **{f"{policy} costly": ([COSTLY], policy, {}) for policy in PLAIN},
    **{f"{policy} doubtful": ([DOUBTFUL], policy, {}) for policy in PLAIN},
    "bayes-optimal tiny": ([Problem("X -> Y", "Y", name="tiny")], "bayes-optimal", {}),
    **{
        f"{policy} task2 expected": (["task2"], policy, {"expected": True})
        for policy in ("ids", "ts", "commit-kg", "ucb")
    },
    **{
        f"{policy} directed expected": ([DIRECTED], policy, {"expected": True, "edges": "prior"})
        for policy in ("ids", "ts")
    },
    "ts task1 observational": (["task1"], "ts", {"observational": 5, "every": 10}),
    "ids task1 strong": (["task1"], "ids", {"strong": True}),
    **{
        f"{policy} task2 floor=0.1": (["task2"], policy, {"options": {policy: {"floor": 0.1}}})
        for policy in ("ids", "ts", "commit-kg", "kl-ucb")
    },
    **{
        f"best {name} pooled": ([problem], "best", {"options": {"best": {}}})
        for name, problem in (("task2", "task2"), ("costly", COSTLY), ("doubtful", DOUBTFUL))
    },
    "ids task2 options": (
        ["task2"],
        "ids",
        {"options": {"ids": {"samples": 100, "gain": "all", "about": "map"}}},
    ),
}


def digest(name):
    """Simulate three trials of a run and return digests of its columns."""
    problems, policy, arguments = RUNS[name]
    horizon = 12 if policy in ("bayes-optimal", "certified-ids") else 40
    arguments = {"options": {policy: SHORT[policy]} if policy in SHORT else {}} | arguments
    result = simulate(problems, [policy], horizon=horizon, trials=3, seed=11, **arguments)
    frame = result.frame()
    numbers = [name for name in ("regret", "expected") if name in frame]
    return {
        "rows": len(frame),
        "arms": sha256("\n".join(frame["arm"].astype(str)).encode()).hexdigest()[:20],
        **{
            name: sha256(_text(frame[name].to_numpy()).encode()).hexdigest()[:20]
            for name in numbers
        },
        **{f"last {name}": float(f"{frame[name].iloc[-1]:.9g}") for name in numbers},
    }


def _text(values):
    return "\n".join(f"{value + 0.0:.9g}" for value in np.asarray(values, float))


def digests():
    """Return the content of `trials.json`."""
    return {name: digest(name) for name in RUNS}
