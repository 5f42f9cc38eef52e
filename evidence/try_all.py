"""What it costs or gains that live experiments with `best` play every arm once first.

    python evidence/try_all.py [--trials 200]

`best` with and without it in the same worlds, in the families of _worlds.py with at most twelve
arms, also with outcomes that are learned ten rounds after the decision. The worlds are not those of
robust.py.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from _races import new_policy, play, rounds_of
from _worlds import FAMILIES

from dowise._core.files import write_text
from dowise.simulation.reproduce import heading, table

RESULTS = Path(__file__).parent / "results"
FULL = 200  # --trials at which every family is played as often as here
WORLDS = {"our own prior": 200, "stroke trial": 12}
OTHER_WORLDS = 100
FIRST_WORLD = 7000
LATE, LATE_HORIZON = 10, 300
NAMES = [
    *("events0", "events", "events5", "clinic", "hidden clinic", "rare", "high", "Boolean", "sure"),
    *("IV", "XYZW", "Markovian", "missing", "too many", "turned", "swapped"),
    *("stroke", "stroke, reversed", "task1", "task2", "task3", "healthcare"),
]


class EveryArmFirst:
    """A policy after every arm was played once, in seeded order, as live experiments do."""

    def __init__(self, policy: Any, seed: int) -> None:
        self.policy, self.problem = policy, policy.problem
        arms, rng = policy.problem.arms, np.random.default_rng([9, seed])
        self.untried = [arms[i] for i in rng.permutation(len(arms))]

    def decide(self, context: Any, rng: Any) -> Any:
        """Return the next untried arm, or what the policy decides."""
        if self.untried:
            return SimpleNamespace(arm=self.untried.pop())
        return self.policy.decide(context, rng)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)


def regrets(name: str, late: int, world: int) -> tuple[float, float]:
    """Return the regret of `best` in one world, without and with trying every arm first."""
    family = FAMILIES[name]
    horizon = LATE_HORIZON if late else family.horizon
    setting = family.make(world)
    rounds = rounds_of(setting, horizon, world)
    plain = play(new_policy("best", setting, world), rounds, late, world)
    first = EveryArmFirst(new_policy("best", setting, world), world)
    return float(plain.sum()), float(play(first, rounds, late, world).sum())


def change(pairs: list[tuple[float, float]]) -> str:
    """Return the paired change of the regret with its standard error, in percent."""
    without, with_it = np.array(pairs).T
    differences = (with_it - without) / without.mean()
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return f"{100 * differences.mean():+.1f} ± {100 * error:.1f} %"


def main() -> None:
    """Play the worlds and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=FULL, help=f"{FULL} plays all worlds")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    rows = []
    with ProcessPoolExecutor(options.workers) as pool:
        for name in NAMES:
            worlds = WORLDS.get(FAMILIES[name].group, OTHER_WORLDS)
            numbers = FIRST_WORLD + np.arange(max(2, round(worlds * options.trials / FULL)))
            cells = []
            for late in (0, LATE):
                pairs = pool.map(partial(regrets, name, late), numbers.tolist(), chunksize=4)
                cells.append(change(list(pairs)))
            arms = len(FAMILIES[name].make(FIRST_WORLD).drawn.arms)
            rows.append((name, str(arms), str(len(numbers)), *cells))
            print(" | ".join(rows[-1]), flush=True)
    head = ("family", "arms", "worlds", "outcomes at once", f"ten rounds late, T = {LATE_HORIZON}")
    parts = [
        heading(1, "Every arm once first"),
        f"`python evidence/try_all.py --trials {options.trials}`",
        "Change of the regret of `best` by playing every arm once first, ± standard error, in the "
        "same worlds. What the families are: [robustness](../../docs/robustness.md).",
        table(head, rows),
    ]
    write_text(RESULTS / "try_all.md", "\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
