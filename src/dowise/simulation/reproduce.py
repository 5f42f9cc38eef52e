"""Section 7 of the paper, all seven panels, by one command; and panels beyond the paper, if named.

What the paper leaves open is ours: T = 1000 rounds, N = 1000 draws, CPT rows from Dirichlet(1),
fresh for every trial, a prior of 1, UCB1 with c = 2, one table per context for the baselines that
know no graph. Trials are paired: all policies of a trial face the same world and contexts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dowise.checks import whole_number
from dowise.environments import Manner, worlds_of
from dowise.errors import DowiseError, import_extra, suggestion
from dowise.files import write_text
from dowise.simulation.analysis import Claim, Spread, claims, curves, spread_of
from dowise.simulation.entrants import entrants_of
from dowise.simulation.expectable import is_expectable
from dowise.simulation.figures import draw_curves
from dowise.simulation.manifest import (
    check_same,
    contents,
    make_folder,
    read_manifest,
    write_manifest,
)
from dowise.simulation.pages import as_html
from dowise.simulation.panels import ALL_PANELS, BEYOND, PANELS, POLICIES, Panel, in_order
from dowise.simulation.race import MOST_ROUNDS
from dowise.simulation.report import REFRESH, Finals, Judged, Run, opening, section
from dowise.simulation.simulate import simulate
from dowise.simulation.workers import checked_workers

if TYPE_CHECKING:
    import pandas

__all__ = ["BEYOND", "PANELS", "POLICIES", "Panel", "Reproduction", "reproduce"]

MANIFEST = "reproduction.json"
Z2 = ("z2-ts", "z2-kl-ucb")
TRIALS, QUICK_TRIALS = 500, 40
CHECK_TRIALS = 200
SAME = 0.1  # regrets that differ by less than this share count as the same
KEPT = 100  # rounds of each trial that are kept for the curves


@dataclass(frozen=True)
class Reproduction:
    """What came out: for each panel the final regrets and what they say of the claims."""

    path: Path
    finals: dict[str, dict[str, Spread]]
    claims: dict[str, list[Claim]]
    expected: dict[str, dict[str, Spread]]
    """Expected regrets, of the panels whose worlds are drawn from the prior."""


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
    `horizon` says otherwise. A run that was stopped goes on where it was. Further panels in the
    same folder, with the same settings, are added to its report; other settings are refused, and
    so is a folder that has anything else. Bands are two standard errors, or two standard deviations
    as in the paper.
    """
    run = _checked_run(panels, trials, horizon, samples, seed, quick, band)
    workers = checked_workers(workers)
    for library in ("matplotlib", "markdown_it", "pandas", "scipy", "pyarrow"):
        import_extra(library, "simulate", "a report")  # now, and not after the first panel
    folder = Path(out)
    earlier = _open(folder, run)
    run = replace(run, panels=in_order({*run.panels, *earlier}))
    sections: dict[str, list[str]] = {}
    finals, judged, check = {}, {}, ""
    expected = {}
    # What is there already comes first: until it is done the old report stays.
    for name in sorted(run.panels, key=lambda name: name not in earlier):
        panel = ALL_PANELS[name]
        found = _race(panel, folder, run, workers, partial(progress, name))
        finals[name] = _spreads(panel, found["regret"])
        if "expected" in found:
            expected[name] = _spreads(panel, found["expected"])
        judged[name] = claims(found["regret"], panel.claimed, found.get("expected"))
        sections[name] = section(panel, found, judged[name], run.seed)
        if name == "task1":
            check = _refresh_check(folder, found["regret"], run, workers, progress)
        if {*earlier} <= {*sections}:
            _write(folder, replace(run, panels=in_order(sections)), judged, check, sections)
    return Reproduction(
        folder,
        {name: finals[name] for name in run.panels},
        {name: judged[name] for name in run.panels},
        {name: expected[name] for name in run.panels if name in expected},
    )


def _spreads(panel: Panel, final: pandas.DataFrame) -> dict[str, Spread]:
    return {policy: spread_of(final[policy]) for policy in panel.labels}


def _checked_run(
    panels: Sequence[str],
    trials: int | None,
    horizon: int | None,
    samples: int,
    seed: int,
    quick: bool,
    band: Literal["se", "sd"],
) -> Run:
    """How it was called, with everything checked before anything is written."""
    for name in panels:
        if name not in ALL_PANELS:
            raise DowiseError(
                f"unknown panel {name!r}{suggestion(name, ALL_PANELS)}: there are "
                f"{', '.join(PANELS)}, and beyond the paper {', '.join(BEYOND)}"
            )
    if band not in ("se", "sd"):
        raise DowiseError(f"band={band!r} must be 'se' or 'sd'")
    if horizon is not None:
        horizon = whole_number("horizon", horizon, 1, MOST_ROUNDS)
    if trials is not None:
        trials = whole_number("trials", trials, 2)
    return Run(
        in_order(panels or PANELS), trials, horizon, whole_number("samples", samples, 1),
        whole_number("seed", seed, 0), quick, band,
        trials if trials is not None else QUICK_TRIALS if quick else TRIALS,
    )  # fmt: skip


def _open(folder: Path, run: Run) -> tuple[str, ...]:
    """The panels that the report in a folder has; raises unless it is new, or one of ours."""
    manifest = read_manifest(folder / MANIFEST)
    if manifest is not None:
        check_same(folder, "a reproduction", manifest["settings"], run.settings)
        return in_order(manifest["panels"])
    if contents(folder):
        raise DowiseError(
            f"{folder} is there already, and no reproduction of ours: name a new folder as out"
        )
    make_folder(folder)
    write_manifest(folder / MANIFEST, {"settings": run.settings, "panels": []})
    return ()


def _write(
    folder: Path, run: Run, judged: Judged, check: str, sections: Mapping[str, list[str]]
) -> None:
    """Say which panels are done, and report on them."""
    write_manifest(folder / MANIFEST, {"settings": run.settings, "panels": [*run.panels]})
    parts = opening({name: judged[name] for name in run.panels}, run)
    parts += [check] if check else []
    parts += [part for name in run.panels for part in sections[name]]
    report = "\n\n".join(parts) + "\n"
    write_text(folder / "report.md", report)
    write_text(folder / "report.html", as_html(report))


def _race(
    panel: Panel, folder: Path, run: Run, workers: int, progress: Callable[[int, int], None]
) -> Finals:
    """Run one panel and draw its curves; the final regrets, a row for each trial."""
    horizon = run.rounds(panel)
    worlds = worlds_of(panel.problem, Manner(strong=panel.strong))
    result = simulate(
        [(panel.name, panel.problem)], panel.policies, horizon, run.count, run.seed, workers,
        _options(panel, run.samples), folder / "runs" / panel.name, max(1, horizon // KEPT),
        progress=progress, strong=panel.strong, expected=is_expectable(worlds),
    )  # fmt: skip
    draw_curves(
        curves(result.frame(), panel.labels), panel.title,
        [folder / f"{panel.name}.png", folder / f"{panel.name}.pdf"], run.band,
    )  # fmt: skip
    return {measure: result.final(measure).loc[panel.name] for measure in result.measures}


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
    run: Run,
    workers: int,
    progress: Callable[[str, int, int], None],
) -> str:
    """Whether the z² policies do as well when they resample less often: the same trials."""
    trials, horizon = min(len(final), CHECK_TRIALS), run.rounds(ALL_PANELS["task1"])
    always = simulate(
        ["task1"], Z2, horizon, trials, run.seed, workers, out=folder / "runs" / "refresh",
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
