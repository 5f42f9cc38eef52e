"""The trap: observations point in the opposite direction of interventions.

    python evidence/trap.py [--quick] [--trials 200]

X -> Y; X <-> Y. Worlds are drawn from the prior until observations and interventions point in
opposite directions, each by a tenth at least. A thousand records without intervention come first,
then 500 rounds. The claim: with the hidden cause drawn as usual (there with .9) `ts` and `ids` cost
no more than `bernoulli-ts`, which takes such records for plays of do(), within two standard errors.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from dowise import CausalGraph, Environment, Problem, make_environment, make_policy

RESULTS = Path(__file__).parent / "results"
RECORDS, HORIZON, GAP = 1000, 500, 0.1
GRAPH = CausalGraph.parse("X -> Y; X <-> Y")
TRUTH = Problem(GRAPH, "Y")
PLAYERS = {
    "bernoulli-ts": ("bernoulli-ts", TRUTH),
    "ts": ("ts", TRUTH),
    "ids": ("ids", TRUTH),
    "ts, edge certain": ("ts", Problem(GRAPH, "Y", edge_prior=1)),
    "ids, edge certain": ("ids", Problem(GRAPH, "Y", edge_prior=1)),
    "ts, edge .5": ("ts", Problem(GRAPH, "Y", edge_prior=0.5)),
    "ids, edge .5": ("ids", Problem(GRAPH, "Y", edge_prior=0.5)),
    "ts, edge not drawn": ("ts", Problem(CausalGraph.parse("X -> Y"), "Y", arms=TRUTH.arms)),
}


def is_trap(world: Environment) -> bool:
    """Return True if observing X = 1 and setting it point in opposite directions."""
    cpts = world.cpts
    (cause,) = world.hidden
    x = cpts["X"]  # axes: cause, X
    y = cpts["Y"]  # axes: cause, X, Y (parents in the order of names)
    joint = cpts[cause][:, None] * x
    observed = (joint * y[..., 1]).sum(axis=0) / joint.sum(axis=0)
    _, low, high = world.means()
    return bool(
        (observed[1] - observed[0]) * (high - low) < 0
        and min(abs(observed[1] - observed[0]), abs(high - low)) > GAP
    )


def traps(count: int) -> list[Environment]:
    """Return the first worlds of this kind by their seeds."""
    worlds, seed = [], 0
    while len(worlds) < count:
        world = make_environment(TRUTH, np.random.default_rng([11, seed]), strong=True)
        seed += 1
        if is_trap(world):
            worlds.append(world)
    return worlds


def regret(world: Environment, name: str, problem: Problem, seed: int) -> float:
    """Return the regret of 500 rounds after a thousand records without intervention."""
    rng, total = np.random.default_rng([12, seed]), 0.0
    policy = make_policy(name, problem)
    for _ in range(RECORDS):
        policy.observe("do()", world.play("do()", None, rng))
    for _ in range(HORIZON):
        arm = policy.decide(rng=rng).arm
        total += world.regret(arm)
        policy.observe(arm, world.play(arm, None, rng))
    return total


def table(count: int) -> str:
    """Return a Markdown table of all policies."""
    worlds = traps(count)
    lines = ["| policy | regret ± standard error | less bernoulli-ts, paired |", "|---|---|---|"]
    base = None
    for label, (name, problem) in PLAYERS.items():
        costs = np.array([regret(world, name, problem, i) for i, world in enumerate(worlds)])
        base = costs if base is None else base
        more = costs - base
        scale = np.sqrt(count)
        lines.append(
            f"| {label} | {costs.mean():.1f} ± {costs.std() / scale:.1f} "
            f"| {more.mean():+.1f} ± {more.std() / scale:.1f} |"
        )
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Run the simulations and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few worlds, nothing written")
    parser.add_argument("--trials", type=int, default=200)
    options = parser.parse_args()
    if options.quick:
        table(10)
        return
    text = (
        f"# The trap\n\n{options.trials} worlds, {RECORDS} records without intervention, then "
        f"{HORIZON} rounds.\n\n    python evidence/trap.py --trials {options.trials}\n\n"
        f"{table(options.trials)}\n"
    )
    (RESULTS / "trap.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
