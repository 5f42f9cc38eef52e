"""Cost of batches: deciding ten times before the first outcome is known.

    python evidence/batches.py [--quick] [--trials 200]

500 rounds of task1 and task3 in worlds drawn from the prior, one at a time or ten at a time by
`decide_many`. Within a trial all policies face the same world, contexts and random numbers. The
questions are what batches of ten cost `ids`, `ts` and `ucb`, and whether fantasies reduce the
regret of `ids`. (With 200 worlds: batches cost at most an eighth on average, in no case by two
standard errors, and an effect of fantasies is not shown.)
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from dowise import Environment, load_problem, make_environment, make_policy
from dowise.policies.base import Policy

RESULTS = Path(__file__).parent / "results"
HORIZON, SIZE = 500, 10
PROBLEMS = ("task1", "task3")
PLAYERS = {
    "ids, one at a time": ("ids", 1, True),
    "ids, ten at a time": ("ids", SIZE, True),
    "ids, ten at a time, imagining nothing": ("ids", SIZE, False),
    "ts, one at a time": ("ts", 1, True),
    "ts, ten at a time": ("ts", SIZE, True),
    "ucb, one at a time": ("ucb", 1, True),
    "ucb, ten at a time": ("ucb", SIZE, True),
}


def world_of(problem: str, trial: int) -> Environment:
    """Return the world of a trial."""
    world = make_environment(problem, np.random.default_rng([21, trial]))
    assert isinstance(world, Environment)
    return world


def regret(
    world: Environment, name: str, size: int, imagines: bool, trial: int, horizon: int = HORIZON
) -> tuple[float, float]:
    """Return the regret, and the number of distinct (arm, context) pairs in batches per round."""
    problem = world.problem
    policy = make_policy(name, problem)
    assert isinstance(policy, Policy)
    policy_rng, total, kinds = np.random.default_rng([22, trial]), 0.0, 0
    context_rng = np.random.default_rng([23, trial])
    contexts = [world.draw_context(context_rng) for _ in range(horizon)]
    for start in range(0, horizon, size):
        batch = contexts[start : start + size]
        if imagines:
            decisions = policy.decide_many(batch, policy_rng)
        else:
            decisions = Policy.decide_many(policy, batch, policy_rng)
        kinds += len(
            {
                (decision.arm, *context.items())
                for decision, context in zip(decisions, batch, strict=True)
            }
        )
        outcomes = []
        for t, (decision, context) in enumerate(zip(decisions, batch, strict=True), start):
            total += world.regret(decision.arm, context)
            outcomes.append(
                world.play(decision.arm, context, np.random.default_rng([24, trial, t]))
            )
        for decision, outcome in zip(decisions, outcomes, strict=True):
            policy.observe(decision.arm, outcome)
    return total, kinds / horizon


def table(problem: str, trials: int, horizon: int = HORIZON) -> list[str]:
    """Return a Markdown table of all policies."""
    worlds, base = [world_of(problem, trial) for trial in range(trials)], None
    lines = [
        f"## {problem}",
        "",
        "| policy | regret ± standard error | 95th percentile | more than one at a time, paired "
        "| different arms a batch |",
        "|---|---|---|---|---|",
    ]
    for label, (name, size, imagines) in PLAYERS.items():
        results = np.array(
            [regret(world, name, size, imagines, i, horizon) for i, world in enumerate(worlds)]
        )
        costs, scale = results[:, 0], np.sqrt(trials)
        base = costs if size == 1 else base
        more = costs - base
        lines.append(
            f"| {label} | {costs.mean():.2f} ± {costs.std() / scale:.2f} "
            f"| {np.quantile(costs, 0.95):.1f} "
            f"| {f'{more.mean():+.2f} ± {more.std() / scale:.2f}' if size > 1 else ''} "
            f"| {f'{size * results[:, 1].mean():.2f}' if size > 1 else ''} |"
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Run the simulations and write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few worlds, nothing written")
    parser.add_argument("--trials", type=int, default=200)
    options = parser.parse_args()
    if options.quick:
        for problem in PROBLEMS:
            table(problem, 5, 100)
        return
    tables = "\n\n".join("\n".join(table(problem, options.trials)) for problem in PROBLEMS)
    arms = ", ".join(f"{len(load_problem(name).arms)} in {name}" for name in PROBLEMS)
    text = (
        f"# Batches of ten\n\n{options.trials} worlds of each problem, {HORIZON} rounds, one at a "
        f"time or {SIZE} at a time: the outcomes of a batch are learned after its last decision. "
        "Regret is the worlds' own; differences are paired. The last column: how many different "
        f"pairs of arm and context the ten decisions of a batch have. Arms: {arms}.\n\n"
        f"    python evidence/batches.py --trials {options.trials}\n\n{tables}\n"
    )
    (RESULTS / "batches.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
