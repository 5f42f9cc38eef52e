"""Cost of a soft graph for `ts` if the graph is right: many worlds, because it is small.

    python evidence/soft_cost.py [--trials 200]

Task 2 as it is, T = 1000; `ts` on the graph as drawn and with `soft=0.1`, both in the same worlds.
Eight times as many worlds as trials, a quarter with each of the seeds 0 to 3.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

from dowise._core.files import write_text
from dowise.problem import Problem, load_problem
from dowise.simulation import On, simulate

RESULTS = Path(__file__).parent / "results"
HORIZON, SEEDS = 1000, range(4)


def lost(seed: int, worlds: int, workers: int) -> np.ndarray:
    """Return the regret of `ts` with the graph as drawn and with the soft graph."""
    task = load_problem("task2")
    roles = task.graph, task.reward, task.context, task.non_manipulable, task.domains
    entries = [On(Problem(*roles), "ts", "drawn"), On(Problem(*roles, soft=0.1), "ts", "soft")]
    result = simulate(
        [Problem(*roles, arms="all", name="task2")],
        entries,
        HORIZON,
        worlds,
        seed,
        workers=workers,
        every=HORIZON,
    )
    frame = result.frame().sort_values("trial")
    return np.array([frame[frame.policy == name].regret for name in ("drawn", "soft")])


def main() -> None:
    """Run the simulations and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=200, help="an eighth of the worlds")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    by_seed = [lost(seed, 2 * options.trials, options.workers) for seed in SEEDS]
    lines = [
        "# What the soft graph costs where the graph is right",
        "",
        f"Task 2, {HORIZON} rounds of `ts`, {2 * options.trials} worlds a seed, ± standard error.",
        "",
        f"    python evidence/soft_cost.py --trials {options.trials}",
        "",
        "| seed | as drawn | soft | soft less drawn, paired |",
        "|---|---|---|---|",
    ]
    rows = {**dict(enumerate(by_seed)), "all": np.concatenate(by_seed, axis=1)}
    for name, (drawn, soft) in rows.items():
        cells = [f"{x.mean():.2f} ± {x.std(ddof=1) / len(x) ** 0.5:.2f}" for x in (drawn, soft)]
        more = soft - drawn
        lines.append(
            f"| {name} | {' | '.join(cells)} | {more.mean():+.2f} ± "
            f"{more.std(ddof=1) / len(more) ** 0.5:.2f} |"
        )
    print("\n".join(lines))
    write_text(RESULTS / "soft_cost.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
