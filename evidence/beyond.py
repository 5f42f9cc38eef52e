"""Which policy do we recommend? `best` against the paper's IDS, and against Thompson Sampling.

    python evidence/beyond.py [--trials 400] [--panels task1 …]

Worlds are drawn from the prior on the paper's four tasks, its three kinds of random graphs, asia
and child. Policies are compared by expected regret (docs/simulations.md), in pairs, tails by true
regret.
The bar, set before the run and with seeds that no choice was made by:

- over the nine panels together, each counted alike, `best` has at least 6 % less expected regret
  than `ids` (N = 1000) at T = 500 and 8 % at T = 1000, both significant at 5 %;
- on no panel is it significantly above `ids` (paired, 5 %, Holm over the panels);
- at T = 5000, on the tasks and asia, it is on none significantly above `ts` (the same).
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np
from scipy import stats

import dowise
from dowise import simulate
from dowise._core.files import write_text
from dowise.cli.console import progress_bars
from dowise.simulation.reproduce import heading, table

HERE = Path(__file__).parent
TASKS = ("task1", "task2", "task3", "healthcare")
RANDOM = ("chordal-10-0.1", "chordal-15-0.1", "chordal-15-0.2")
PANELS = (*TASKS, *RANDOM, "asia", "child")
LONG_PANELS = (*TASKS, "asia")
POLICIES = ("ids", "ts", "best")
SHORT, HORIZON, LONG = 500, 1000, 5000
SEED, LONG_SEED = 4001, 4002
LEAST = {SHORT: 6.0, HORIZON: 8.0}  # per cent below ids
ALPHA = 0.05


def race(panels, horizon, trials, seed, out, workers):
    """Rows of panel, policy, trial, round, regret, expected; every 500th round."""
    with progress_bars() as show:
        result = simulate(
            panels, POLICIES, horizon=horizon, trials=trials, seed=seed, out=out, workers=workers,
            every=min(SHORT, horizon), expected=True,
            progress=lambda done, total: show(f"{horizon} rounds", done, total),
        )  # fmt: skip
    return result.frame()


def at(frame, panel, policy, rounds, measure):
    """What each trial has cost after so many rounds."""
    rows = frame[
        (frame["problem"] == panel) & (frame["policy"] == policy) & (frame["round"] == rounds)
    ]
    return rows.sort_values("trial")[measure].to_numpy()


def compared(frame, panel, policy, than, rounds):
    """Per cent of the other's mean: the paired difference, its standard error, and P(above 0)."""
    own, other = (at(frame, panel, name, rounds, "expected") for name in (policy, than))
    paired = 100 * (own - other) / other.mean()
    error = paired.std(ddof=1) / np.sqrt(len(paired))
    # One-sided: how surprising it is, if it is not above. Where they play alike nothing is.
    above = float(stats.t.sf(paired.mean() / error, len(paired) - 1)) if error else 1.0
    return {"per_cent": float(paired.mean()), "error": float(error), "p_above": above}


def holm(chances):
    """Which of several hypotheses are rejected, in their order (Holm 1979)."""
    order, rejected = np.argsort(chances), np.zeros(len(chances), dtype=bool)
    for k, i in enumerate(order):
        if chances[i] > ALPHA / 2 / (len(chances) - k):  # two-sided 5 %: half of it above
            break
        rejected[i] = True
    return rejected.tolist()


def together(parts):
    """The mean over panels, each counted alike, with its error and 95 % interval."""
    mean = float(np.mean([part["per_cent"] for part in parts]))
    error = float(np.sqrt(np.sum([part["error"] ** 2 for part in parts])) / len(parts))
    return {"per_cent": mean, "error": error, "high": mean + 1.96 * error}


def judged(frame, panels, policy, than, rounds):
    """Every panel, which of them are significantly above, and all together."""
    parts = {panel: compared(frame, panel, policy, than, rounds) for panel in panels}
    above = holm([part["p_above"] for part in parts.values()])
    for part, is_above in zip(parts.values(), above, strict=True):
        part["above"] = is_above
    return {"panels": parts, "together": together(list(parts.values()))}


def figures(frame, panels, rounds):
    """A table of means, and of the tail of the true regret."""
    rows = []
    for panel in panels:
        for policy in POLICIES:
            expected = at(frame, panel, policy, rounds, "expected")
            true = at(frame, panel, policy, rounds, "regret")
            error = expected.std(ddof=1) / np.sqrt(len(expected))
            rows.append((
                panel, policy, f"{expected.mean():.2f} ± {error:.2f}", f"{true.mean():.2f}",
                f"{np.quantile(true, 0.95):.1f}", f"{true.max():.0f}",
            ))  # fmt: skip
    head = ("worlds", "policy", "expected regret", "true regret", "95th percentile", "worst")
    return table(head, rows)


def differences(found, than):
    """A table of paired differences."""
    rows = [
        (panel, f"{part['per_cent']:+.1f} ± {part['error']:.1f}", "yes" if part["above"] else "no")
        for panel, part in found["panels"].items()
    ]
    all_of = found["together"]
    rows.append(("**together**", f"**{all_of['per_cent']:+.1f} ± {all_of['error']:.1f}**", ""))
    return table(("worlds", f"less {than}, %", "significantly above"), rows)


def verdicts(found):
    """The bar, line by line."""
    lines = []
    for rounds, least in LEAST.items():
        part = found[str(rounds)]["together"]
        holds = part["per_cent"] <= -least and part["high"] < 0
        lines.append((f"at least {least:g} % below ids over all panels, T = {rounds}", holds))
        above = [name for name, own in found[str(rounds)]["panels"].items() if own["above"]]
        lines.append((f"on no panel significantly above ids, T = {rounds}", not above))
    if str(LONG) in found:
        above = [name for name, own in found[str(LONG)]["panels"].items() if own["above"]]
        lines.append((f"on none significantly above ts, T = {LONG}", not above))
    return lines


def page(found, frames, command):
    """All of it, for people."""
    rows = [(line, "holds" if holds else "**does not hold**") for line, holds in verdicts(found)]
    parts = [
        heading(1, "What we recommend"),
        "`best` is `commit-kg` with up to twelve arms and `ids` with more. "
        f"`{command}`, dowise {dowise.__version__}. Worlds are drawn from the "
        "prior; differences are paired, in per cent of the other's mean, ± a standard error.",
        table(("the bar", ""), rows),
    ]
    for rounds, (frame, panels) in frames.items():
        than = "ts" if rounds == LONG else "ids"
        trials = frame["trial"].nunique()
        parts += [
            heading(2, f"T = {rounds}, {trials} worlds each, against {than}"),
            differences(found[str(rounds)], than),
            figures(frame, panels, rounds),
        ]
    return "\n\n".join(parts) + "\n"


def draw(found, path):
    """The differences with their 95 % intervals, one row a panel."""
    from matplotlib.figure import Figure

    parts = [(t, "ts" if t == LONG else "ids") for t in (SHORT, HORIZON, LONG) if str(t) in found]
    figure = Figure(figsize=(9.5, 3.6), layout="constrained")
    for axes, (rounds, than) in zip(figure.subplots(1, len(parts)), parts, strict=True):
        panels = found[str(rounds)]["panels"]
        rows = [*panels.values(), found[str(rounds)]["together"]]
        places = np.arange(len(rows))[::-1]
        colours = ["#0072b2"] * len(panels) + ["#d55e00"]
        for y, row, colour in zip(places, rows, colours, strict=True):
            width = 1.96 * row["error"]
            axes.errorbar(row["per_cent"], y, xerr=width, fmt="o", color=colour, capsize=3)
        axes.axvline(0, color="0.6", linewidth=1)
        axes.set_yticks(places, [*panels, "together"])
        axes.set_xlabel(f"% of the expected regret of {than}")
        axes.set_title(f"best less {than}, T = {rounds}", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def main(arguments=None):
    """Race, and write down what came out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--panels", nargs="+", choices=PANELS, default=PANELS, metavar="PANEL")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--runs", type=Path, default=HERE.parent / "out" / "evidence" / "beyond")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--picture", type=Path, help="draw the differences here, too")
    given = parser.parse_args(arguments)
    trials = max(given.trials, 400)  # `make evidence` asks for 200 of everything
    frame = race(given.panels, HORIZON, trials, SEED, given.runs / "short", given.workers)
    found = {str(t): judged(frame, given.panels, "best", "ids", t) for t in (SHORT, HORIZON)}
    frames = dict.fromkeys((SHORT, HORIZON), (frame, given.panels))
    panels = [panel for panel in LONG_PANELS if panel in given.panels]
    if panels:
        long = race(panels, LONG, trials // 2, LONG_SEED, given.runs / "long", given.workers)
        found[str(LONG)] = judged(long, panels, "best", "ts", LONG)
        frames[LONG] = long, panels
    command = f"python evidence/beyond.py --trials {trials}"
    command += "" if tuple(given.panels) == PANELS else f" --panels {' '.join(given.panels)}"
    given.results.mkdir(parents=True, exist_ok=True)
    write_text(given.results / "beyond.md", page(found, frames, command))
    write_text(given.results / "beyond.json", json.dumps({"command": command, **found}, indent=1))
    if given.picture is not None and len(found) > 1:
        draw(found, given.picture)


if __name__ == "__main__":
    main()
