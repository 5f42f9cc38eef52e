"""The paper's experiments (section 7) in one command, and panels beyond the paper.

What the paper leaves open is our choice: T = 1000 rounds, N = 1000 draws, CPT rows from
Dirichlet(1), new for every trial, a prior of 1, UCB1 with c = 2, one table per context for the
baselines without a graph. Trials are paired: all policies of a trial face the same world and
contexts. The report is GitHub Markdown, and the same text as an HTML page.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import dowise
from dowise._core.document import Block, Document, Documented, Heading, Paragraph, Table
from dowise._core.files import write_text
from dowise._core.kernels import source_digest
from dowise._core.rng import stream
from dowise._core.validation import check_integer
from dowise.environments import ChordalWorlds, WorldOptions, resolve_worlds
from dowise.errors import DowiseError, import_extra, suggestion
from dowise.simulation.analysis import Claim, Measure, Spread, claims, curves, spread_of
from dowise.simulation.executors import check_workers
from dowise.simulation.paper_panels import ALL_PANELS, BEYOND, PANELS, Panel, in_order
from dowise.simulation.plots import save_curves
from dowise.simulation.run_directory import (
    list_directory,
    make_directory,
    read_checked_json,
    write_checked_json,
)
from dowise.simulation.simulate import simulate
from dowise.simulation.spec import MAX_ROUNDS, has_expected_regret, policy_specs
from dowise.simulation.trial import Purpose

if TYPE_CHECKING:
    import pandas

MANIFEST = "reproduction.json"
Z2 = ("z2-ts", "z2-kl-ucb")
TRIALS, QUICK_TRIALS = 500, 40
CHECK_TRIALS = 200
SAME = 0.1  # regrets that differ by less than this share count as the same
KEPT_ROUNDS = 100  # rounds of each trial that are kept for the curves
REFRESH = 0.05
"""Share by which an arm's data must grow before the z² policies resample."""

JudgedClaims = Mapping[str, Sequence[Claim]]
Finals = Mapping[Measure, "pandas.DataFrame"]
"""Final regrets of a panel by measure: a row per trial, a column per policy."""

_MEASURE_NAMES: Mapping[Measure, str] = {"regret": "regret", "expected": "expected regret"}
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .8rem; text-align: left; border-bottom: 1px solid #ddd; }
img { max-width: 100%; }
"""


@dataclass(frozen=True)
class ReproductionSpec:
    """Arguments of a reproduction."""

    panels: tuple[str, ...]
    trials: int | None
    horizon: int | None
    samples: int
    seed: int
    quick: bool
    band: Literal["se", "sd"]
    count: int
    """Trials per panel."""

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that all panels of a report share."""
        return {
            "dowise": dowise.__version__,
            "sources": source_digest(),
            "trials": self.count,
            "horizon": "that of the panel" if self.horizon is None else self.horizon,
            "samples": self.samples,
            "seed": self.seed,
        }

    def rounds(self, panel: Panel) -> int:
        """Return the rounds per trial: the argument, or those of the panel."""
        return panel.horizon if self.horizon is None else self.horizon

    @property
    def command(self) -> str:
        """Command that repeats the reproduction."""
        parts = ["dowise", "reproduce", *(() if self.panels == tuple(PANELS) else self.panels)]
        parts += ["--quick"] if self.quick else []
        parts += [] if self.trials is None else ["--trials", str(self.trials)]
        parts += [] if self.horizon is None else ["--horizon", str(self.horizon)]
        parts += [] if self.samples == 1000 else ["--samples", str(self.samples)]
        parts += [] if self.band == "se" else ["--band", self.band]
        return shlex.join([*parts, "--seed", str(self.seed), "--out", "DIR"])


@dataclass(frozen=True)
class Reproduction(Documented):
    """Result of a reproduction: final regrets and judged claims by panel."""

    path: Path
    finals: dict[str, dict[str, Spread]]
    claims: dict[str, list[Claim]]
    expected: dict[str, dict[str, Spread]]
    """Expected regrets of the panels whose worlds are drawn from the prior."""

    def document(self) -> Document:
        """Return the final regrets panel by panel, and how many claims hold."""
        return Document(tuple(_document_blocks(self)))


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
    run = _check_arguments(panels, trials, horizon, samples, seed, quick, band)
    workers = check_workers(workers)
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
        panel_finals = _run_panel(panel, folder, run, workers, partial(progress, name))
        finals[name] = _spreads(panel, panel_finals["regret"])
        if "expected" in panel_finals:
            expected[name] = _spreads(panel, panel_finals["expected"])
        judged[name] = claims(panel_finals["regret"], panel.claimed, panel_finals.get("expected"))
        sections[name] = section(panel, panel_finals, judged[name], run.seed)
        if name == "task1":
            check = _refresh_check(folder, panel_finals["regret"], run, workers, progress)
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


def _check_arguments(
    panels: Sequence[str],
    trials: int | None,
    horizon: int | None,
    samples: int,
    seed: int,
    quick: bool,
    band: Literal["se", "sd"],
) -> ReproductionSpec:
    """Validate the arguments before anything is written."""
    for name in panels:
        if name not in ALL_PANELS:
            raise DowiseError(
                f"unknown panel {name!r}{suggestion(name, ALL_PANELS)}: there are "
                f"{', '.join(PANELS)}, and beyond the paper {', '.join(BEYOND)}",
                code="unknown-panel",
            )
    if band not in ("se", "sd"):
        raise DowiseError(f"band={band!r} must be 'se' or 'sd'", code="unknown-value")
    if horizon is not None:
        horizon = check_integer("horizon", horizon, 1, MAX_ROUNDS)
    if trials is not None:
        trials = check_integer("trials", trials, 2)
    return ReproductionSpec(
        in_order(panels or PANELS),
        trials,
        horizon,
        check_integer("samples", samples, 1),
        check_integer("seed", seed, 0),
        quick,
        band,
        trials if trials is not None else QUICK_TRIALS if quick else TRIALS,
    )


def _open(folder: Path, run: ReproductionSpec) -> tuple[str, ...]:
    """Return the panels of the report in a folder; raise if the folder holds anything else."""
    manifest = read_checked_json(folder / MANIFEST)
    if manifest is not None:
        _check_same_settings(folder, manifest["settings"], run.settings)
        return in_order(manifest["panels"])
    if list_directory(folder):
        raise DowiseError(
            f"{folder} already exists and is not a reproduction: choose a new directory",
            code="directory-in-use",
        )
    make_directory(folder)
    write_checked_json(folder / MANIFEST, {"settings": run.settings, "panels": []})
    return ()


def _write(
    folder: Path,
    run: ReproductionSpec,
    judged: JudgedClaims,
    check: str,
    sections: Mapping[str, list[str]],
) -> None:
    """Say which panels are done, and report on them."""
    write_checked_json(folder / MANIFEST, {"settings": run.settings, "panels": [*run.panels]})
    parts = opening({name: judged[name] for name in run.panels}, run)
    parts += [check] if check else []
    parts += [part for name in run.panels for part in sections[name]]
    report = "\n\n".join(parts) + "\n"
    write_text(folder / "report.md", report)
    write_text(folder / "report.html", to_html(report))


def _run_panel(
    panel: Panel,
    folder: Path,
    run: ReproductionSpec,
    workers: int,
    progress: Callable[[int, int], None],
) -> Finals:
    """Run one panel, plot its curves, and return the final regrets with a row for each trial."""
    horizon = run.rounds(panel)
    worlds = resolve_worlds(panel.problem, WorldOptions(strong=panel.strong))
    result = simulate(
        [(panel.name, panel.problem)],
        panel.policies,
        horizon,
        run.count,
        run.seed,
        workers,
        _options(panel, run.samples),
        folder / "runs" / panel.name,
        max(1, horizon // KEPT_ROUNDS),
        progress=progress,
        strong=panel.strong,
        expected=has_expected_regret(worlds),
    )
    save_curves(
        curves(result.frame(), panel.labels),
        panel.title,
        [folder / f"{panel.name}.png", folder / f"{panel.name}.pdf"],
        run.band,
    )
    return {measure: result.final(measure).loc[panel.name] for measure in result.measures}


def _options(panel: Panel, samples: int) -> dict[str, dict[str, Any]]:
    """For policies that draw, how often; for those that resample, how seldom."""
    found: dict[str, dict[str, Any]] = {}
    for policy in policy_specs(panel.policies):
        for option, value in (("samples", samples), ("refresh", REFRESH)):
            if option in policy.options:
                found.setdefault(policy.label, {})[option] = value
    return found


def _refresh_check(
    folder: Path,
    final: pandas.DataFrame,
    run: ReproductionSpec,
    workers: int,
    progress: Callable[[str, int, int], None],
) -> str:
    """Compare z² policies that resample seldom with those that always do, on equal trials."""
    trials, horizon = min(len(final), CHECK_TRIALS), run.rounds(ALL_PANELS["task1"])
    always = (
        simulate(
            ["task1"],
            Z2,
            horizon,
            trials,
            run.seed,
            workers,
            out=folder / "runs" / "refresh",
            every=horizon,
            progress=partial(progress, "refresh check"),
        )
        .final()
        .loc["task1"]
    )
    results = []
    for policy in Z2:
        less_often = final[policy].iloc[:trials].to_numpy()
        difference = spread_of(less_often - always[policy].to_numpy())
        low, high = difference.interval
        mean = float(always[policy].mean())
        verdict = "the same" if max(-low, high) <= SAME * mean else "not shown to be the same"
        results.append(
            f"for {policy} {difference.mean:+.2f} ({low:+.2f} to {high:+.2f}), {verdict} within "
            f"{SAME:.0%} of {mean:.2f}"
        )
    return (
        f"A check of refresh=0.05 on task 1, {trials} trials both ways: final regret with it minus "
        f"without it is {'; '.join(results)}."
    )


def opening(judged: JudgedClaims, run: ReproductionSpec) -> list[str]:
    """Return the opening of the report: settings, and which claims hold."""
    paper = {name: made for name, made in judged.items() if name in PANELS}
    beyond = {name: made for name, made in judged.items() if name not in PANELS}
    rounds = " or ".join(sorted({str(run.rounds(ALL_PANELS[name])) for name in judged}, key=int))
    title = "The experiments of the paper, reproduced" if paper else "Beyond the paper"
    return [
        heading(1, title),
        (
            f"Made by `{run.command}` with dowise {dowise.__version__}: {run.count} trials of "
            f"{rounds} rounds, N = {run.samples} posterior draws a round for ids. Each trial draws "
            "a world of its own, CPT rows from Dirichlet(1), the same for all policies, so "
            "differences are paired. Regret is pseudo-regret under the true CPTs; expected regret "
            "is what the posterior of all that was seen expects of it, round by round: its mean "
            "over worlds is the same, its standard error smaller. These are all panels that were "
            "run in this folder so far, in one call or several, with the same settings."
            + (
                " The paper's own curves are not in its source, so its claims are checked, not "
                "its numbers."
                if paper
                else ""
            )
        ),
        (
            f"The z² policies resample an arm's data when they have grown by {REFRESH:.0%} "
            f"(refresh={REFRESH:g}). Intervals are 95 % confidence intervals of the mean."
        ),
        *(_of_the_paper(paper) if paper else []),
        *(_beyond(beyond) if beyond else []),
    ]


def _of_the_paper(judged: JudgedClaims) -> list[str]:
    return [
        heading(2, "Which claims hold"),
        (
            "The paper claims that IDS has less regret than TS, and TS less than every baseline. "
            "A claim holds where the interval of the paired difference is below 0, does not hold "
            "where it is above, and is not shown where 0 lies inside, or with fewer than ten "
            "worlds. The difference is that of expected regret: the tables below have that of the "
            "regret too, which decides nothing, so that no claim has two chances. Each is judged "
            "by itself; of so many at 95 % one or two may be off by chance."
        ),
        table(
            ("panel", *map(str, next(iter(judged.values())))),
            [
                (PANELS[name].title, *(claim.verdict for claim in made))
                for name, made in judged.items()
            ],
        ),
    ]


def _beyond(judged: JudgedClaims) -> list[str]:
    return [
        heading(2, "Which claims beyond the paper hold"),
        (
            "Hidden common causes: each bidirected edge is there with probability .9 for ids and "
            "ts; a world has it as a hidden variable, with two values, or (strong) three and all "
            "rows from Dirichlet(.2). Wrong graphs: the world has an edge that the policies called "
            "drawn and soft do not know of; soft ones allow every edge that might be missing with "
            "a prior of .1. Claims are judged by expected regret where worlds are drawn from the "
            "prior, and by regret where they are not: with hidden causes. 0.5 × means at most half."
        ),
        table(
            ("panel", "claim", "by", "difference", "95 % interval", "verdict"),
            [
                (
                    ALL_PANELS[name].title,
                    str(claim),
                    _MEASURE_NAMES[claim.measure],
                    *_numbers(claim.decides),
                    claim.verdict,
                )
                for name, made in judged.items()
                for claim in made
            ],
        ),
    ]


def section(panel: Panel, by_measure: Finals, made: Sequence[Claim], seed: int) -> list[str]:
    """Return the section of a panel: picture, final regrets and claims."""
    final = by_measure["regret"]
    finals = {policy: spread_of(final[policy]) for policy in panel.labels}
    parts = [
        heading(2, panel.title),
        image(f"{panel.name}.png", f"{panel.title}: mean cumulative regret"),
        table(
            (
                "policy",
                "final regret",
                "standard error",
                "standard deviation",
                "median",
                *_headings(by_measure),
            ),
            [
                (
                    policy,
                    f"{s.mean:.2f}",
                    f"{s.error:.2f}",
                    f"{final[policy].std():.2f}",
                    f"{final[policy].median():.2f}",
                    *_expected(by_measure, policy),
                )
                for policy, s in finals.items()
            ],
        ),
        claims_table(made),
    ]
    if panel.random is not None:
        parts += _about_random_graphs(panel.random, by_measure, seed)
    return parts


def claims_table(made: Sequence[Claim]) -> str:
    """Return a table of paired differences and verdicts."""
    both = any(claim.expected is not None for claim in made)
    return table(
        (
            "paired difference",
            "mean",
            "95 % interval",
            *(("expected", "95 % interval") if both else ()),
            "claim",
            "by",
        ),
        [
            (
                " − ".join(claim.terms),
                *_numbers(claim.difference),
                *(_numbers(claim.expected) if claim.expected is not None else ()),
                claim.verdict,
                _MEASURE_NAMES[claim.measure],
            )
            for claim in made
        ],
    )


def _numbers(difference: Spread) -> tuple[str, str]:
    low, high = difference.interval
    return f"{difference.mean:+.2f}", f"{low:+.2f} to {high:+.2f}"


def _headings(by_measure: Finals) -> tuple[str, ...]:
    return ("expected regret", "standard error") if "expected" in by_measure else ()


def _expected(by_measure: Finals, policy: str) -> tuple[str, ...]:
    if "expected" not in by_measure:
        return ()
    spread = spread_of(by_measure["expected"][policy])
    return f"{spread.mean:.2f}", f"{spread.error:.2f}"


def _about_random_graphs(worlds: ChordalWorlds, by_measure: Finals, seed: int) -> list[str]:
    """Report how many graphs were redrawn, and the results on graphs with several estimators."""
    final = by_measure["regret"]
    drawn = [worlds.draw_problem(stream(seed, trial, Purpose.WORLD)) for trial in final.index]
    several = [len(graph.problem.intervention_sets) > 1 for graph in drawn]
    few, many = sum(graph.too_few for graph in drawn), sum(graph.too_many for graph in drawn)
    arms = sorted(len(graph.problem.arms) for graph in drawn)
    parts = [
        f"{len(drawn)} graphs, {arms[0]} to {arms[-1]} arms (median {arms[len(arms) // 2]}). "
        f"Redrawn: {few} with fewer than two arms, {many} with more than 64. "
        f"{1 - sum(several) / len(drawn):.0%} of the graphs have one intervention set only, so "
        "that z²ID has no second estimator."
    ]
    rests = {measure: table_of_measure[several] for measure, table_of_measure in by_measure.items()}
    rest = rests["regret"]
    if len(rest) > 1:
        parts += [
            f"The {len(rest)} graphs with several intervention sets:",
            table(
                ("policy", "final regret", "standard error", *_headings(rests)),
                [
                    (policy, f"{s.mean:.2f}", f"{s.error:.2f}", *_expected(rests, policy))
                    for policy, s in ((p, spread_of(rest[p])) for p in final.columns)
                ],
            ),
            claims_table(claims(rest, None, rests.get("expected"))),
        ]
    return parts


def heading(level: int, text: str) -> str:
    """Return a heading; level 1 is the title of the page."""
    return f"{'#' * level} {text}"


def image(file: str, caption: str) -> str:
    """Return a picture with its caption."""
    return f"![{caption}]({file})"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of texts under a header; all columns but the first are numbers or short words.

    >>> print(table(("policy", "regret"), [("ids", "1.0")]))
    | policy | regret |
    |---|---:|
    | ids | 1.0 |
    """
    rule = "|---|" + "---:|" * (len(header) - 1)
    return "\n".join([_row(header), rule, *map(_row, rows)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def to_html(markdown: str) -> str:
    """Return an HTML page of a report; its title is the first heading."""
    renderer = import_extra("markdown_it", "simulate", "a report")
    body = renderer.MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    title = re.search(r"^# (.+)$", markdown, re.MULTILINE)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f"<title>{escape(title[1]) if title else 'Report'}</title>\n"
        f"<style>{_STYLE}</style>\n{body}</html>\n"
    )


def _check_same_settings(folder: Path, stored: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Raise `DowiseError` if the report in a folder was made with other settings."""
    if any(stored.get(key) != wanted[key] for key in ("dowise", "sources")):
        raise DowiseError(
            f"{folder} has a reproduction by other sources of dowise ({stored.get('dowise')}): "
            "choose another directory",
            code="other-version",
        )
    for key, value in wanted.items():
        if stored.get(key) != value:
            raise DowiseError(
                f"{folder} has another reproduction, with {key} {stored.get(key)!r}, not "
                f"{value!r}: choose another directory, or remove this one",
                code="directory-in-use",
            )


def _document_blocks(reproduction: Reproduction) -> Iterator[Block]:
    """Final regrets panel by panel, and which claims hold."""
    yield Heading("Final regret ± standard error")
    yield from _panel_tables(reproduction.finals)
    if reproduction.expected:
        yield Heading("Expected regret ± standard error")
        yield from _panel_tables(reproduction.expected)
    names = {"expected": "expected regret", "regret": "regret"}
    for source, panels in (("of the paper", PANELS), ("beyond the paper", BEYOND)):
        claims = [x for panel, each in reproduction.claims.items() if panel in panels for x in each]
        if claims:
            measures = " or ".join(dict.fromkeys(names[claim.measure] for claim in claims))
            verdicts = Counter(claim.verdict for claim in claims)
            yield Paragraph(
                f"Of {len(claims)} claims {source}, judged by {measures}, "
                f"{verdicts['holds']} hold, {verdicts['does not hold']} do not, and "
                f"{verdicts['not shown']} are not shown by this number of trials."
            )


def _panel_tables(panels: Mapping[str, Mapping[str, Spread]]) -> Iterator[Table]:
    """A table for each set of policies, with the panels that have these policies."""
    for policies in dict.fromkeys(tuple(finals) for finals in panels.values()):
        yield Table(
            ("panel", *policies),
            tuple(
                (name, *(f"{each.mean:.1f} ±{each.error:.1f}" for each in finals.values()))
                for name, finals in panels.items()
                if tuple(finals) == policies
            ),
            right=policies,
        )
