"""What the scripts beside this one share: they run panels and write down what came out.

A script names its panels and calls `main`. It writes results/NAME.md, for people, and
results/NAME.json, for programs. The races themselves are kept under out/evidence/NAME: a run that
was stopped goes on, and the same run again takes no time.
"""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser
from pathlib import Path

import dowise
from dowise._core.files import write_text
from dowise.cli.console import progress_bars
from dowise.simulation.analysis import Claim
from dowise.simulation.paper_panels import ALL_PANELS
from dowise.simulation.reproduce import Reproduction, claims_table, heading, reproduce, table

HERE = Path(__file__).parent


def main(name, title, says, panels, arguments=None):
    """Run these panels and write down what they say of a claim; `says` is the claim in words."""
    parser = ArgumentParser(description=title)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--horizon", type=int, help="rounds; each panel's own unless given")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--panels", nargs="+", choices=panels, default=panels, metavar="PANEL",
                        help=f"all unless given: {', '.join(panels)}")  # fmt: skip
    parser.add_argument("--runs", type=Path, default=HERE.parent / "out" / "evidence" / name)
    parser.add_argument("--results", type=Path, default=HERE / "results")
    given = parser.parse_args(arguments)
    with progress_bars() as show:
        found = reproduce(
            given.runs, given.panels, given.trials, given.horizon, given.samples,
            workers=given.workers, progress=show,
        )  # fmt: skip
    command = f"python evidence/{name}.py --trials {given.trials}"
    command += "" if given.horizon is None else f" --horizon {given.horizon}"
    command += "" if given.samples == 1000 else f" --samples {given.samples}"
    command += "" if given.panels == panels else f" --panels {' '.join(given.panels)}"
    given.results.mkdir(parents=True, exist_ok=True)
    write_text(given.results / f"{name}.md", _page(title, says, command, found))
    write_text(given.results / f"{name}.json", _document(command, found))


def _page(title: str, says: str, command: str, found: Reproduction) -> str:
    made = [claim for claims in found.claims.values() for claim in claims]
    hold = sum(claim.verdict == "holds" for claim in made)
    parts = [
        heading(1, title),
        f"What is claimed: {says}",
        f"`{command}`, dowise {dowise.__version__}, seed 0. Final regret ± standard error over "
        f"worlds; trials are paired. {hold} of {len(made)} claims hold, each "
        'judged by itself; "not shown" means that so many worlds can\'t tell.',
    ]
    for policies in dict.fromkeys(tuple(finals) for finals in found.finals.values()):
        rows = [
            (ALL_PANELS[name].title, *(f"{s.mean:.1f} ± {s.error:.1f}" for s in finals.values()))
            for name, finals in found.finals.items()
            if tuple(finals) == policies
        ]
        parts.append(table(("worlds", *policies), rows))
    for name, claims in found.claims.items():
        parts += [heading(2, ALL_PANELS[name].title), claims_table(claims)]
    return "\n\n".join(parts) + "\n"


def _of_expected(claim: Claim) -> dict[str, object]:
    if claim.expected is None:
        return {}
    ends = [round(end, 3) for end in claim.expected.interval]
    return {"expected": round(claim.expected.mean, 3), "expected_interval": ends}


def _document(command: str, found: Reproduction) -> str:
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
                    **_of_expected(claim),
                    "verdict": claim.verdict,
                    "by": claim.measure,
                }
                for claim in found.claims[name]
            ],
        }
        for name, finals in found.finals.items()
    }
    document = {"command": command, "dowise": dowise.__version__, "panels": panels}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
