"""Section 7 of the paper, all seven panels, by one command; and panels beyond the paper, if named.

What the paper leaves open is ours: T = 1000 rounds, N = 1000 draws, CPT rows from Dirichlet(1),
fresh for every trial, a prior of 1, UCB1 with c = 2, one table per context for the baselines that
know no graph. Trials are paired: all policies of a trial face the same world and contexts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dowise.errors import DowiseError, import_extra, suggestion
from dowise.files import write_text
from dowise.simulation.analysis import Claim, Spread, claims, curves, spread_of
from dowise.simulation.entrants import entrants_of
from dowise.simulation.figures import draw_curves
from dowise.simulation.pages import as_html
from dowise.simulation.panels import ALL_PANELS, BEYOND, PANELS, POLICIES, Panel
from dowise.simulation.report import REFRESH, Run, opening, section
from dowise.simulation.simulate import simulate

if TYPE_CHECKING:
    import pandas

__all__ = ["BEYOND", "PANELS", "POLICIES", "Panel", "Reproduction", "reproduce"]

Z2 = ("z2-ts", "z2-kl-ucb")
QUICK_TRIALS = 40
CHECK_TRIALS = 200
SAME = 0.1  # regrets that differ by less than this share count as the same
KEPT = 100  # rounds of each trial that are kept for the curves


@dataclass(frozen=True)
class Reproduction:
    """What came out: for each panel the final regrets and what they say of the claims."""

    path: Path
    finals: dict[str, dict[str, Spread]]
    claims: dict[str, list[Claim]]


def reproduce(
    out: str | Path,
    panels: Sequence[str] = (),
    trials: int | None = None,
    horizon: int | None = None,
    samples: int = 1000,
    seed: int = 0,
    workers: int = 1,
    quick: bool = False,
    band: Literal["se", "sd"] = "se",
    progress: Callable[[str, int, int], None] = lambda _panel, _done, _total: None,
) -> Reproduction:
    """Run the panels (the paper's unless named) and write figures, tables and a report to a folder.

    500 trials, or 40 with `quick`, of as many rounds as the panel has (1000 for the paper's) unless
    `horizon` says otherwise. A run that was stopped goes on where it was. The report has the
    panels of this call. Bands are two standard errors, or two standard deviations as in the paper.
    """
    for library in ("matplotlib", "markdown_it", "pandas", "scipy"):
        import_extra(library, "simulate", "a report")  # now, and not after the first panel
    for name in panels:
        if name not in ALL_PANELS:
            raise DowiseError(
                f"unknown panel {name!r}{suggestion(name, ALL_PANELS)}: there are "
                f"{', '.join(PANELS)}, and beyond the paper {', '.join(BEYOND)}"
            )
    if band not in ("se", "sd"):
        raise DowiseError(f"band={band!r} must be 'se' or 'sd'")
    count = trials if trials is not None else QUICK_TRIALS if quick else 500
    run = Run(tuple(panels), trials, horizon, samples, seed, quick, band, count)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    found = Reproduction(folder, {}, {})
    sections: list[str] = []
    check: list[str] = []
    for name in panels or PANELS:
        panel = ALL_PANELS[name]
        final = _race(panel, folder, run, workers, partial(progress, name))
        found.finals[name] = {policy: spread_of(final[policy]) for policy in panel.labels}
        found.claims[name] = claims(final, panel.expected)
        sections += section(panel, final, found.claims[name], seed)
        if name == "task1":
            rounds = run.rounds(panel)
            check = [_refresh_check(folder, final, rounds, seed, workers, progress)]
        report = "\n\n".join([*opening(found.claims, run), *check, *sections]) + "\n"
        write_text(folder / "report.md", report)
        write_text(folder / "report.html", as_html(report))
    return found


def _race(
    panel: Panel, folder: Path, run: Run, workers: int, progress: Callable[[int, int], None]
) -> pandas.DataFrame:
    """Run one panel and draw its curves; the final regrets, a row for each trial."""
    horizon = run.rounds(panel)
    result = simulate(
        [(panel.name, panel.problem)], panel.policies, horizon, run.count, run.seed, workers,
        _options(panel, run.samples), folder / "runs" / panel.name, max(1, horizon // KEPT),
        progress=progress, strong=panel.strong,
    )  # fmt: skip
    draw_curves(
        curves(result.frame(), panel.labels), panel.title,
        [folder / f"{panel.name}.png", folder / f"{panel.name}.pdf"], run.band,
    )  # fmt: skip
    final: pandas.DataFrame = result.final().loc[panel.name]
    return final


def _options(panel: Panel, samples: int) -> dict[str, dict[str, Any]]:
    """For policies that draw, how often; for those that resample, how seldom."""
    found: dict[str, dict[str, Any]] = {}
    for entrant in entrants_of(panel.policies):
        for option, value in (("samples", samples), ("refresh", REFRESH)):
            if entrant.takes(option):
                found.setdefault(entrant.label, {})[option] = value
    return found


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
