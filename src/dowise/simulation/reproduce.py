"""Reproduction of the paper's experiments (section 7) in one command, and panels beyond the paper.

The paper does not specify everything. Our choices are: T = 1000 rounds, N = 1000 draws, CPT rows
from Dirichlet(1), new for every trial, a prior of 1, UCB1 with c = 2, and one table per context for
the baselines without a graph. Trials are paired: all policies of a trial face the same world and
contexts. The report is written as GitHub Markdown and as an HTML page.
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
from dowise.simulation.analysis import (
    JudgedClaim,
    Measure,
    Spread,
    curves,
    paper_claims,
    spread_of,
)
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
SAME = 0.1  # regrets that differ by a smaller share count as the same
KEPT_ROUNDS = 100  # rounds of each trial that are kept for the curves
REFRESH = 0.05
"""Share by which an arm's data must grow before the z² policies resample."""

JudgedClaims = Mapping[str, Sequence[JudgedClaim]]
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
    """Validated arguments of a reproduction; `count` is the number of trials per panel."""

    panels: tuple[str, ...]
    trials: int | None
    horizon: int | None
    samples: int
    seed: int
    quick: bool
    band: Literal["se", "sd"]
    count: int

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
    """Result of a reproduction.

    Attributes
    ----------
    path
        The folder.
    finals
        Final regret of each policy by panel.
    claims
        Judged claims by panel.
    expected
        Expected regret of each policy, by panel whose worlds are drawn from the prior.
    """

    path: Path
    finals: dict[str, dict[str, Spread]]
    claims: dict[str, list[JudgedClaim]]
    expected: dict[str, dict[str, Spread]]

    def document(self) -> Document:
        """Return the final regrets by panel, and the number of claims that hold."""
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
    """Run panels, and write figures, tables and a report to a folder.

    The same call resumes a run that was stopped. Further panels with the same settings are added to
    the report in the folder.

    Parameters
    ----------
    out
        The folder.
    panels
        Names of the panels. Defaults to those of the paper.
    trials
        Trials per panel. Defaults to 500, or to 40 with `quick`.
    horizon
        Rounds per trial. Defaults to those of the panel (1000 for the paper's).
    samples
        Posterior draws per round for policies that draw.
    seed
        Random seed.
    workers
        Number of processes.
    quick
        Run fewer trials by default.
    band
        "se" draws bands of two standard errors, "sd" of two standard deviations as in the paper.
    progress
        Called with a panel, the number of its finished jobs and the number of its jobs.

    Returns
    -------
    Reproduction
        Final regrets and judged claims.

    Raises
    ------
    DowiseError
        If an argument is invalid, or the folder has other contents or another reproduction.

    Examples
    --------
    >>> from dowise.simulation.reproduce import reproduce
    >>> reproduce("out", ["task1"], quick=True).claims  # doctest: +SKIP
    """
    run = _check_arguments(panels, trials, horizon, samples, seed, quick, band)
    workers = check_workers(workers)
    for library in ("matplotlib", "markdown_it", "pandas", "scipy", "pyarrow"):
        import_extra(library, "simulate", "a report")  # now, and not after the first panel
    folder = Path(out)
    earlier = _open(folder, run)
    run = replace(run, panels=in_order({*run.panels, *earlier}))
    sections: dict[str, list[str]] = {}
    finals: dict[str, Finals] = {}
    judged, check = {}, ""
    # Earlier panels come first: the old report remains until all of them are in the new one.
    for name in sorted(run.panels, key=lambda name: name not in earlier):
        panel = ALL_PANELS[name]
        finals[name] = _run_panel(panel, folder, run, workers, partial(progress, name))
        regret, expected = finals[name]["regret"], finals[name].get("expected")
        judged[name] = [claim.judge(regret, expected) for claim in panel.claims]
        sections[name] = section(panel, finals[name], judged[name], run.seed)
        if name == "task1":
            check = _refresh_check(folder, regret, run, workers, progress)
        if {*earlier} <= {*sections}:
            _write_report(folder, replace(run, panels=in_order(sections)), judged, check, sections)

    def spreads(measure: Measure) -> dict[str, dict[str, Spread]]:
        return {
            name: {x: spread_of(finals[name][measure][x]) for x in ALL_PANELS[name].labels}
            for name in run.panels
            if measure in finals[name]
        }

    claims = {name: judged[name] for name in run.panels}
    return Reproduction(folder, spreads("regret"), claims, spreads("expected"))


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


def _write_report(
    folder: Path,
    run: ReproductionSpec,
    judged: JudgedClaims,
    check: str,
    sections: Mapping[str, list[str]],
) -> None:
    """Write the list of finished panels, and the report on them."""
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
    """Return the number of draws for policies that draw, and `refresh` for those that resample."""
    options: dict[str, dict[str, Any]] = {}
    for policy in policy_specs(panel.policies):
        for option, value in (("samples", samples), ("refresh", REFRESH)):
            if option in policy.options:
                options.setdefault(policy.label, {})[option] = value
    return options


def _refresh_check(
    folder: Path,
    final: pandas.DataFrame,
    run: ReproductionSpec,
    workers: int,
    progress: Callable[[str, int, int], None],
) -> str:
    """Compare z² policies that rarely resample with those that always do, on equal trials."""
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
    paper = {name: claims for name, claims in judged.items() if name in PANELS}
    beyond = {name: claims for name, claims in judged.items() if name not in PANELS}
    rounds = " or ".join(sorted({str(run.rounds(ALL_PANELS[name])) for name in judged}, key=int))
    title = "The experiments of the paper, reproduced" if paper else "Beyond the paper"
    return [
        heading(1, title),
        (
            f"Made by `{run.command}` with dowise {dowise.__version__}: {run.count} trials of "
            f"{rounds} rounds, N = {run.samples} posterior draws per round for ids. Each trial "
            "draws a new world, CPT rows from Dirichlet(1), the same for all policies, so "
            "differences are paired. Regret is pseudo-regret under the true CPTs. Expected regret "
            "is its expectation, round by round, under the posterior given the history: its mean "
            "over worlds is the same, its standard error smaller. The report covers all panels "
            "that were run in this folder with these settings, in one call or several."
            + (
                " The curves of the paper are not in its source, so its claims are checked, not "
                "its numbers."
                if paper
                else ""
            )
        ),
        (
            f"The z² policies resample an arm's data when they have grown by {REFRESH:.0%} "
            f"(refresh={REFRESH:g}). Intervals are 95 % confidence intervals of the mean."
        ),
        *(_paper_claims_section(paper) if paper else []),
        *(_other_claims_section(beyond) if beyond else []),
    ]


def _paper_claims_section(judged: JudgedClaims) -> list[str]:
    return [
        heading(2, "Which claims hold"),
        (
            "The paper claims that IDS has less regret than TS, and TS less than every baseline. "
            "A claim holds if the interval of the paired difference is below 0, does not hold if "
            "it is above 0, and is not shown if it contains 0 or there are fewer than ten worlds. "
            "The difference is that of expected regret. The tables below also have that of regret, "
            "which decides nothing, so that no claim has two chances. Claims are judged "
            "separately; of this number at 95 %, one or two may be wrong by chance."
        ),
        table(
            ("panel", *map(str, next(iter(judged.values())))),
            [
                (PANELS[name].title, *(claim.verdict for claim in claims))
                for name, claims in judged.items()
            ],
        ),
    ]


def _other_claims_section(judged: JudgedClaims) -> list[str]:
    return [
        heading(2, "Which claims beyond the paper hold"),
        (
            "Hidden common causes: ids and ts give each bidirected edge a probability of .9; in a "
            "world it is a hidden variable with two values, or (strong) with three and all rows "
            "from Dirichlet(.2). Wrong graphs: the world has an edge that is not in the graph of "
            "the policies called drawn and soft; soft ones allow every missing edge with a prior "
            "of .1. Claims are judged by expected regret if worlds are drawn from the prior, and "
            "otherwise, with hidden causes, by regret. 0.5 × means at most half."
        ),
        table(
            ("panel", "claim", "by", "difference", "95 % interval", "verdict"),
            [
                (
                    ALL_PANELS[name].title,
                    str(claim),
                    _MEASURE_NAMES[claim.measure],
                    *_numbers(claim.deciding),
                    claim.verdict,
                )
                for name, claims in judged.items()
                for claim in claims
            ],
        ),
    ]


def section(
    panel: Panel, by_measure: Finals, claims: Sequence[JudgedClaim], seed: int
) -> list[str]:
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
        claims_table(claims),
    ]
    if panel.random is not None:
        parts += _random_graphs_section(panel.random, by_measure, seed)
    return parts


def claims_table(claims: Sequence[JudgedClaim]) -> str:
    """Return a table of paired differences and verdicts."""
    has_expected = any(claim.expected is not None for claim in claims)
    return table(
        (
            "paired difference",
            "mean",
            "95 % interval",
            *(("expected", "95 % interval") if has_expected else ()),
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
            for claim in claims
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


def _random_graphs_section(worlds: ChordalWorlds, by_measure: Finals, seed: int) -> list[str]:
    """Report how many graphs were redrawn, and the results on graphs with several estimators."""
    trials = by_measure["regret"].index
    graphs = [worlds.draw_problem(stream(seed, trial, Purpose.WORLD)) for trial in trials]
    several = [len(graph.problem.intervention_sets) > 1 for graph in graphs]
    few, many = sum(graph.too_few for graph in graphs), sum(graph.too_many for graph in graphs)
    arms = sorted(len(graph.problem.arms) for graph in graphs)
    parts = [
        f"{len(graphs)} graphs, {arms[0]} to {arms[-1]} arms (median {arms[len(arms) // 2]}). "
        f"Redrawn: {few} with fewer than two arms, {many} with more than 64. "
        f"{1 - sum(several) / len(graphs):.0%} of the graphs have one intervention set only, so "
        "that z²ID has no second estimator."
    ]
    subset = {measure: final[several] for measure, final in by_measure.items()}
    regret, expected = subset["regret"], subset.get("expected")
    if len(regret) > 1:
        claims = [claim.judge(regret, expected) for claim in paper_claims([*regret.columns])]
        parts += [
            f"The {len(regret)} graphs with several intervention sets:",
            table(
                ("policy", "final regret", "standard error", *_headings(subset)),
                [
                    (policy, f"{s.mean:.2f}", f"{s.error:.2f}", *_expected(subset, policy))
                    for policy, s in ((p, spread_of(regret[p])) for p in regret.columns)
                ],
            ),
            claims_table(claims),
        ]
    return parts


def heading(level: int, text: str) -> str:
    """Return a heading; level 1 is the title of the page."""
    return f"{'#' * level} {text}"


def image(file: str, caption: str) -> str:
    """Return a picture with its caption."""
    return f"![{caption}]({file})"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; all columns but the first are aligned to the right.

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


def _check_same_settings(folder: Path, stored: dict[str, Any], settings: dict[str, Any]) -> None:
    """Raise `DowiseError` if the report in a folder was made with other settings."""
    if any(stored.get(key) != settings[key] for key in ("dowise", "sources")):
        raise DowiseError(
            f"{folder} has a reproduction by other sources of dowise ({stored.get('dowise')}): "
            "choose another directory",
            code="other-version",
        )
    for key, value in settings.items():
        if stored.get(key) != value:
            raise DowiseError(
                f"{folder} has another reproduction, with {key} {stored.get(key)!r}, not "
                f"{value!r}: choose another directory, or remove this one",
                code="directory-in-use",
            )


def _document_blocks(reproduction: Reproduction) -> Iterator[Block]:
    yield Heading("Final regret ± standard error")
    yield from _panel_tables(reproduction.finals)
    if reproduction.expected:
        yield Heading("Expected regret ± standard error")
        yield from _panel_tables(reproduction.expected)
    for source, panels in (("of the paper", PANELS), ("beyond the paper", BEYOND)):
        claims = [
            claim
            for panel, judged in reproduction.claims.items()
            if panel in panels
            for claim in judged
        ]
        if claims:
            measures = " or ".join(dict.fromkeys(_MEASURE_NAMES[claim.measure] for claim in claims))
            verdicts = Counter(claim.verdict for claim in claims)
            yield Paragraph(
                f"Of {len(claims)} claims {source}, judged by {measures}, "
                f"{verdicts['holds']} hold, {verdicts['does not hold']} do not, and "
                f"{verdicts['not shown']} are not shown by this number of trials."
            )


def _panel_tables(panels: Mapping[str, Mapping[str, Spread]]) -> Iterator[Table]:
    """Yield a table for each set of policies, with the panels that have these policies."""
    for policies in dict.fromkeys(tuple(finals) for finals in panels.values()):
        yield Table(
            ("panel", *policies),
            tuple(
                (name, *(f"{final.mean:.1f} ±{final.error:.1f}" for final in finals.values()))
                for name, finals in panels.items()
                if tuple(finals) == policies
            ),
            right=policies,
        )
