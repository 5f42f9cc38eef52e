"""What a reproduction found, in words and tables: the Markdown of its report."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import dowise
from dowise.compiling import source_digest
from dowise.environments import ChordalWorlds
from dowise.randomness import stream
from dowise.simulation.analysis import Claim, Measure, Spread, claims, spread_of
from dowise.simulation.pages import heading, image, table
from dowise.simulation.panels import ALL_PANELS, PANELS, Panel
from dowise.simulation.trial import Purpose

if TYPE_CHECKING:
    import pandas

__all__ = ["REFRESH", "Finals", "Judged", "Run", "claims_table", "opening", "section"]

REFRESH = 0.05
"""The z² policies resample an arm's data when they have grown by this share."""

Judged = Mapping[str, Sequence[Claim]]
Finals = Mapping[Measure, "pandas.DataFrame"]
"""The final regrets of a panel, by what they are measured by: a row a trial, a column a policy."""

_WORDS: Mapping[Measure, str] = {"regret": "regret", "expected": "expected regret"}


@dataclass(frozen=True)
class Run:
    """How a reproduction was called."""

    panels: tuple[str, ...]
    trials: int | None
    horizon: int | None
    samples: int
    seed: int
    quick: bool
    band: Literal["se", "sd"]
    count: int
    """The trials of a panel."""

    @property
    def settings(self) -> dict[str, Any]:
        """What all panels of a report share."""
        return {
            "dowise": dowise.__version__,
            "sources": source_digest(),
            "trials": self.count,
            "horizon": "that of the panel" if self.horizon is None else self.horizon,
            "samples": self.samples,
            "seed": self.seed,
        }

    def rounds(self, panel: Panel) -> int:
        """Those of a trial: the panel's own unless told."""
        return panel.horizon if self.horizon is None else self.horizon

    @property
    def command(self) -> str:
        """What does the same again."""
        parts = ["dowise", "reproduce", *(() if self.panels == tuple(PANELS) else self.panels)]
        parts += ["--quick"] if self.quick else []
        parts += [] if self.trials is None else ["--trials", str(self.trials)]
        parts += [] if self.horizon is None else ["--horizon", str(self.horizon)]
        parts += [] if self.samples == 1000 else ["--samples", str(self.samples)]
        parts += [] if self.band == "se" else ["--band", self.band]
        return shlex.join([*parts, "--seed", str(self.seed), "--out", "DIR"])


def opening(judged: Judged, run: Run) -> list[str]:
    """What was run and how, and which claims hold: the paper's first, then those beyond it."""
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


def _of_the_paper(judged: Judged) -> list[str]:
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


def _beyond(judged: Judged) -> list[str]:
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
                (ALL_PANELS[name].title, str(claim), _WORDS[claim.measure],
                 *_numbers(claim.decides), claim.verdict)
                for name, made in judged.items()
                for claim in made
            ],
        ),
    ]  # fmt: skip


def section(panel: Panel, found: Finals, made: Sequence[Claim], seed: int) -> list[str]:
    """One panel: its picture, the final regrets and the claims."""
    final = found["regret"]
    finals = {policy: spread_of(final[policy]) for policy in panel.labels}
    parts = [
        heading(2, panel.title),
        image(f"{panel.name}.png", f"{panel.title}: mean cumulative regret"),
        table(
            ("policy", "final regret", "standard error", "standard deviation", "median",
             *_headings(found)),
            [
                (policy, f"{s.mean:.2f}", f"{s.error:.2f}", f"{final[policy].std():.2f}",
                 f"{final[policy].median():.2f}", *_expected(found, policy))
                for policy, s in finals.items()
            ],
        ),
        claims_table(made),
    ]  # fmt: skip
    if panel.random is not None:
        parts += _about_random_graphs(panel.random, found, seed)
    return parts


def claims_table(made: Sequence[Claim]) -> str:
    """Paired differences, and what they say."""
    both = any(claim.expected is not None for claim in made)
    return table(
        ("paired difference", "mean", "95 % interval",
         *(("expected", "95 % interval") if both else ()), "claim", "by"),
        [
            (" − ".join(claim.terms), *_numbers(claim.difference),
             *(_numbers(claim.expected) if claim.expected is not None else ()), claim.verdict,
             _WORDS[claim.measure])
            for claim in made
        ],
    )  # fmt: skip


def _numbers(difference: Spread) -> tuple[str, str]:
    low, high = difference.interval
    return f"{difference.mean:+.2f}", f"{low:+.2f} to {high:+.2f}"


def _headings(found: Finals) -> tuple[str, ...]:
    return ("expected regret", "standard error") if "expected" in found else ()


def _expected(found: Finals, policy: str) -> tuple[str, ...]:
    if "expected" not in found:
        return ()
    own = spread_of(found["expected"][policy])
    return f"{own.mean:.2f}", f"{own.error:.2f}"


def _about_random_graphs(worlds: ChordalWorlds, found: Finals, seed: int) -> list[str]:
    """How many graphs were redrawn, and the results where z²ID has something to work with."""
    final = found["regret"]
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
    rests = {measure: own[several] for measure, own in found.items()}
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
