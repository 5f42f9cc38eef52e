"""Command that the scripts of panels share: it runs the panels and writes a report.

A script names its panels and calls `main`, which writes results/NAME.md for people and
results/NAME.json for programs. The simulations are stored in out/evidence/NAME, so that a run that
was stopped is resumed, and the same run again takes no time.
"""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser
from pathlib import Path

import dowise
from dowise._core.files import write_text
from dowise.cli.console import progress_bars
from dowise.simulation.analysis import JudgedClaim
from dowise.simulation.paper_panels import ALL_PANELS
from dowise.simulation.reproduce import Reproduction, claims_table, heading, reproduce, table

HERE = Path(__file__).parent


def main(name, title, claim, panels, arguments=None):
    """Run panels and write a report; `claim` is the claim as text."""
    parser = ArgumentParser(description=title)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--horizon", type=int, help="rounds (by default those of the panel)")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    help_text = f"by default all: {', '.join(panels)}"
    parser.add_argument(
        "--panels", nargs="+", choices=panels, default=panels, metavar="PANEL", help=help_text
    )
    parser.add_argument("--runs", type=Path, default=HERE.parent / "out" / "evidence" / name)
    parser.add_argument("--results", type=Path, default=HERE / "results")
    options = parser.parse_args(arguments)
    with progress_bars() as show:
        result = reproduce(
            options.runs,
            options.panels,
            options.trials,
            options.horizon,
            options.samples,
            workers=options.workers,
            progress=show,
        )
    command = f"python evidence/{name}.py --trials {options.trials}"
    command += "" if options.horizon is None else f" --horizon {options.horizon}"
    command += "" if options.samples == 1000 else f" --samples {options.samples}"
    command += "" if options.panels == panels else f" --panels {' '.join(options.panels)}"
    options.results.mkdir(parents=True, exist_ok=True)
    write_text(options.results / f"{name}.md", _markdown(title, claim, command, result))
    write_text(options.results / f"{name}.json", _json(command, result))


def _markdown(title: str, claim: str, command: str, result: Reproduction) -> str:
    judged = [claim for claims in result.claims.values() for claim in claims]
    hold = sum(claim.verdict == "holds" for claim in judged)
    parts = [
        heading(1, title),
        f"What is claimed: {claim}",
        f"`{command}`, dowise {dowise.__version__}, seed 0. Final regret ± standard error over "
        f"worlds; trials are paired. {hold} of {len(judged)} claims hold, each "
        'judged separately; "not shown" means that this number of worlds is not enough.',
    ]
    for policies in dict.fromkeys(tuple(finals) for finals in result.finals.values()):
        rows = [
            (ALL_PANELS[name].title, *(f"{s.mean:.1f} ± {s.error:.1f}" for s in finals.values()))
            for name, finals in result.finals.items()
            if tuple(finals) == policies
        ]
        parts.append(table(("worlds", *policies), rows))
    for name, claims in result.claims.items():
        parts += [heading(2, ALL_PANELS[name].title), claims_table(claims)]
    return "\n\n".join(parts) + "\n"


def _expected_difference(claim: JudgedClaim) -> dict[str, object]:
    if claim.expected is None:
        return {}
    ends = [round(end, 3) for end in claim.expected.interval]
    return {"expected": round(claim.expected.mean, 3), "expected_interval": ends}


def _json(command: str, result: Reproduction) -> str:
    panels = {
        name: {
            "trials": next(iter(finals.values())).trials,
            "regret": {policy: round(s.mean, 3) for policy, s in finals.items()},
            "standard_error": {policy: round(s.error, 3) for policy, s in finals.items()},
            "claims": [
                {
                    "claim": str(claim),
                    "difference": round(claim.difference.mean, 3),
                    "interval": [round(end, 3) for end in claim.difference.interval],
                    **_expected_difference(claim),
                    "verdict": claim.verdict,
                    "by": claim.measure,
                }
                for claim in result.claims[name]
            ],
        }
        for name, finals in result.finals.items()
    }
    document = {"command": command, "dowise": dowise.__version__, "panels": panels}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
