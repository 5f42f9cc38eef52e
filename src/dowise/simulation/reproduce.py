"""Section 7 of the paper, all seven panels, by one command.

What the paper leaves open is ours: T = 1000 rounds, N = 1000 draws, CPT rows from Dirichlet(1),
fresh for every trial, a prior of 1, UCB1 with c = 2, one table per context for the baselines that
know no graph. Trials are paired: all policies of a trial face the same world and contexts.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import dowise
from dowise.environments import ChordalWorlds, worlds_of
from dowise.errors import DowiseError, import_extra, suggestion
from dowise.files import write_text
from dowise.randomness import stream
from dowise.simulation.analysis import Claim, Spread, claims, curves, spread_of
from dowise.simulation.figures import draw_curves
from dowise.simulation.pages import as_html, heading, image, table
from dowise.simulation.simulate import simulate
from dowise.simulation.trial import Purpose

if TYPE_CHECKING:
    import pandas

__all__ = ["PANELS", "Panel", "Reproduction", "reproduce"]

REFRESH = 0.05
Z2 = ("z2-ts", "z2-kl-ucb")
POLICIES = ("ids", "ts", "z2-ts", "z2-kl-ucb", "bernoulli-ts", "ucb")
QUICK_TRIALS = 40
CHECK_TRIALS = 200
SAME = 0.1  # regrets that differ by less than this share count as the same
KEPT = 100  # rounds of each trial that are kept for the curves


@dataclass(frozen=True)
class Panel:
    """One plot of the paper."""

    name: str
    problem: str
    title: str

    @property
    def random(self) -> ChordalWorlds | None:
        """Where the graphs come from, if every trial has one of its own."""
        worlds = worlds_of(self.problem)
        return worlds if isinstance(worlds, ChordalWorlds) else None


PANELS = {
    panel.name: panel
    for panel in (
        Panel("task1", "task1", "Task 1"),
        Panel("task2", "task2", "Task 2"),
        Panel("task3", "task3", "Task 3"),
        Panel("random-10-0.1", "chordal-10-0.1", "Random chordal graphs, n = 10, ρ = 0.1"),
        Panel("random-15-0.1", "chordal-15-0.1", "Random chordal graphs, n = 15, ρ = 0.1"),
        Panel("random-15-0.2", "chordal-15-0.2", "Random chordal graphs, n = 15, ρ = 0.2"),
        Panel("healthcare", "healthcare", "Healthcare"),
    )
}


@dataclass(frozen=True)
class Reproduction:
    """What came out: for each panel the final regrets and what they say of the paper's claims."""

    path: Path
    finals: dict[str, dict[str, Spread]]
    claims: dict[str, list[Claim]]


def reproduce(
    out: str | Path,
    panels: Sequence[str] = (),
    trials: int | None = None,
    horizon: int = 1000,
    samples: int = 1000,
    seed: int = 0,
    workers: int = 1,
    quick: bool = False,
    band: Literal["se", "sd"] = "se",
    progress: Callable[[str, int, int], None] = lambda _panel, _done, _total: None,
) -> Reproduction:
    """Run the panels (all unless named), and write figures, tables and one report to a folder.

    500 trials, or 40 with `quick`. A run that was stopped goes on where it was. The report has the
    panels of this call. Bands are two standard errors, or two standard deviations as in the paper.
    """
    for library in ("matplotlib", "markdown_it", "pandas", "scipy"):
        import_extra(library, "simulate", "a report")  # now, and not after the first panel
    for name in panels:
        if name not in PANELS:
            raise DowiseError(
                f"unknown panel {name!r}{suggestion(name, PANELS)}: there are {', '.join(PANELS)}"
            )
    if band not in ("se", "sd"):
        raise DowiseError(f"band={band!r} must be 'se' or 'sd'")
    count = trials if trials is not None else QUICK_TRIALS if quick else 500
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    found = Reproduction(folder, {}, {})
    sections: list[str] = []
    check: list[str] = []
    for name in panels or PANELS:
        panel, shown = PANELS[name], partial(progress, name)
        final = _race(panel, folder, count, horizon, samples, seed, workers, band, shown)
        found.finals[name] = {policy: spread_of(final[policy]) for policy in POLICIES}
        found.claims[name] = claims(final)
        sections += _section(panel, final, found, seed)
        if name == "task1":
            check = [_refresh_check(folder, final, horizon, seed, workers, progress)]
        command = _command(panels, trials, horizon, samples, seed, quick, band)
        parts = [*_opening(found, command, count, horizon, samples), *check, *sections]
        report = "\n\n".join(parts) + "\n"
        write_text(folder / "report.md", report)
        write_text(folder / "report.html", as_html(report))
    return found


def _race(
    panel: Panel,
    folder: Path,
    trials: int,
    horizon: int,
    samples: int,
    seed: int,
    workers: int,
    band: Literal["se", "sd"],
    progress: Callable[[int, int], None],
) -> pandas.DataFrame:
    """Run one panel and draw its curves; the final regrets, a row for each trial."""
    options: dict[str, dict[str, Any]] = {
        "ids": {"samples": samples},
        **{policy: {"refresh": REFRESH} for policy in Z2},
    }
    result = simulate(
        [panel.problem], POLICIES, horizon, trials, seed, workers, options,
        folder / "runs" / panel.name, max(1, horizon // KEPT), progress=progress,
    )  # fmt: skip
    draw_curves(
        curves(result.frame(), POLICIES), panel.title,
        [folder / f"{panel.name}.png", folder / f"{panel.name}.pdf"], band,
    )  # fmt: skip
    final: pandas.DataFrame = result.final().loc[panel.problem]
    return final


def _refresh_check(
    folder: Path,
    final: pandas.DataFrame,
    horizon: int,
    seed: int,
    workers: int,
    progress: Callable[[str, int, int], None],
) -> str:
    """Whether the z² policies do as well when they resample less often: the same trials."""
    trials = min(len(final), CHECK_TRIALS)
    always = simulate(
        ["task1"], Z2, horizon, trials, seed, workers, out=folder / "runs" / "refresh",
        every=horizon, progress=partial(progress, "refresh check"),
    ).final().loc["task1"]  # fmt: skip
    found = []
    for policy in Z2:
        less_often = final[policy].iloc[:trials].to_numpy()
        difference = spread_of(less_often - always[policy].to_numpy())
        low, high = difference.interval
        mean = float(always[policy].mean())
        verdict = "the same" if max(-low, high) <= SAME * mean else "not shown to be the same"
        found.append(
            f"for {policy} {difference.mean:+.2f} ({low:+.2f} to {high:+.2f}), {verdict} within "
            f"{SAME:.0%} of {mean:.2f}"
        )
    return (
        f"A check of refresh=0.05 on task 1, {trials} trials both ways: final regret with it minus "
        f"without it is {'; '.join(found)}."
    )


def _command(
    panels: Sequence[str], trials: int | None, horizon: int, samples: int, seed: int, quick: bool,
    band: str,
) -> str:  # fmt: skip
    parts = ["dowise", "reproduce", *panels]
    parts += ["--quick"] if quick else []
    parts += [] if trials is None else ["--trials", str(trials)]
    parts += [] if horizon == 1000 else ["--horizon", str(horizon)]
    parts += [] if samples == 1000 else ["--samples", str(samples)]
    parts += [] if band == "se" else ["--band", band]
    return shlex.join([*parts, "--seed", str(seed), "--out", "DIR"])


def _opening(
    found: Reproduction, command: str, trials: int, horizon: int, samples: int
) -> list[str]:
    return [
        heading(1, "The experiments of the paper, reproduced"),
        (
            f"Made by `{command}` with dowise {dowise.__version__}: {trials} trials of {horizon} "
            f"rounds, N = {samples} posterior draws a round for ids. Each trial draws a world of "
            "its own, CPT rows from Dirichlet(1), the same for all policies, so differences are "
            "paired. Regret is pseudo-regret under the true CPTs. The paper's own curves are not "
            "in its source, so its claims are checked, not its numbers."
        ),
        (
            f"The z² policies resample an arm's data when they have grown by {REFRESH:.0%} "
            "(refresh=0.05). Intervals are 95 % confidence intervals of the mean."
        ),
        heading(2, "Which claims hold"),
        (
            "The paper claims that IDS has less regret than TS, and TS less than every baseline. "
            "A claim holds where the interval of the paired difference is below 0, does not hold "
            "where it is above, and is not shown where 0 lies inside, or with fewer than ten "
            "worlds. Each is judged by itself; of so many at 95 % one or two may be off by chance."
        ),
        table(
            ("panel", *(f"{c.less} < {c.more}" for c in next(iter(found.claims.values())))),
            [
                (PANELS[name].title, *(claim.verdict for claim in made))
                for name, made in found.claims.items()
            ],
        ),
    ]


def _section(panel: Panel, final: pandas.DataFrame, found: Reproduction, seed: int) -> list[str]:
    finals = found.finals[panel.name]
    parts = [
        heading(2, panel.title),
        image(f"{panel.name}.png", f"{panel.title}: mean cumulative regret"),
        table(
            ("policy", "final regret", "standard error", "standard deviation", "median"),
            [
                (policy, f"{s.mean:.2f}", f"{s.error:.2f}", f"{final[policy].std():.2f}",
                 f"{final[policy].median():.2f}")
                for policy, s in finals.items()
            ],
        ),
        _claims_table(found.claims[panel.name]),
    ]  # fmt: skip
    if panel.random is not None:
        parts += _about_random_graphs(panel.random, final, seed)
    return parts


def _claims_table(made: Sequence[Claim]) -> str:
    return table(
        ("paired difference", "mean", "95 % interval", "claim"),
        [
            (
                f"{claim.less} − {claim.more}",
                f"{claim.difference.mean:+.2f}",
                "{:+.2f} to {:+.2f}".format(*claim.difference.interval),
                claim.verdict,
            )
            for claim in made
        ],
    )


def _about_random_graphs(worlds: ChordalWorlds, final: pandas.DataFrame, seed: int) -> list[str]:
    """How many graphs were redrawn, and the results where z²ID has something to work with."""
    drawn = [worlds.draw_problem(stream(seed, trial, Purpose.WORLD)) for trial in final.index]
    several = [len(one.problem.intervention_sets) > 1 for one in drawn]
    few, many = sum(one.too_few for one in drawn), sum(one.too_many for one in drawn)
    arms = sorted(len(one.problem.arms) for one in drawn)
    parts = [
        f"{len(drawn)} graphs, {arms[0]} to {arms[-1]} arms (median {arms[len(arms) // 2]}). "
        f"Redrawn: {few} with fewer than two arms, {many} with more than 64. "
        f"{1 - sum(several) / len(drawn):.0%} of the graphs have one intervention set only, so "
        "that z²ID has no second estimator."
    ]
    rest = final[several]
    if len(rest) > 1:
        parts += [
            f"The {len(rest)} graphs with several intervention sets:",
            table(
                ("policy", "final regret", "standard error"),
                [
                    (policy, f"{s.mean:.2f}", f"{s.error:.2f}")
                    for policy, s in ((p, spread_of(rest[p])) for p in final.columns)
                ],
            ),
            _claims_table(claims(rest)),
        ]
    return parts
