"""Many arms and slow learning: `commit-kg` against `ids`.

    python evidence/many_arms.py [--trials 200] [--quick]

child has 16 arms, alarm 54. Worlds are drawn from the prior, regret is the expected one, compared
in pairs. The answer decides from how many arms on `best` means `ids` (docs/beyond.md).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from beyond import compare_pair

from dowise import simulate
from dowise._core.files import write_text
from dowise.cli.console import progress_bars
from dowise.simulation.reproduce import heading, table

HERE = Path(__file__).parent
SEED = 4003
PANELS = {"child": (500, 2000), "alarm": (500,)}
POLICIES = ("ids", "ts", "commit-kg")


def rows_of(panel, rounds, trials, runs, workers):
    """Return a row of the table for each number of rounds."""
    with progress_bars() as show:
        result = simulate(
            [panel],
            POLICIES,
            horizon=max(rounds),
            trials=trials,
            seed=SEED,
            workers=workers,
            out=None if runs is None else runs / panel,
            every=min(rounds),
            expected=True,
            progress=lambda finished, total: show(panel, finished, total),
        )
    frame = result.frame()
    rows = []
    for t in rounds:
        shares = [compare_pair(frame, panel, policy, "ids", t) for policy in POLICIES[1:]]
        cells = [f"{share['per_cent']:+.1f} ± {share['error']:.1f}" for share in shares]
        rows.append((panel, str(t), *cells))
    return rows


def main(arguments=None):
    """Run the simulations and write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="few worlds, nothing written")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    head = ("worlds", "T", "ts less ids, %", "commit-kg less ids, %")
    if options.quick:
        return rows_of("child", (40,), 10, None, 1)
    runs = HERE.parent / "out" / "evidence" / "many_arms"
    rows = [
        row
        for panel, rounds in PANELS.items()
        for row in rows_of(panel, rounds, options.trials, runs, options.workers)
    ]
    page = "\n\n".join(
        [
            heading(1, "Many arms, slow learning"),
            f"{options.trials} worlds each, expected regret, paired, ± a standard error: "
            f"`python evidence/many_arms.py --trials {options.trials}`.",
            table(head, rows),
        ]
    )
    write_text(HERE / "results" / "many_arms.md", page + "\n")
    return rows


if __name__ == "__main__":
    main()
