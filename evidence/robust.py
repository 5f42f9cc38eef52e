"""Worlds that are not drawn from our prior, and graphs that are wrong: `best` against its peers.

    python evidence/robust.py [--trials 200] [--family clinic …] [--workers 2]

The families are in _worlds.py; `--trials 200` plays the number of trials that the bars ask for, 20
a tenth of it. Policies are paired: in a trial all face the same world, contexts and luck. `best` is
compared with the better of two policies without a graph on the same arms: `arm-ids`, IDS on each
arm's own rewards, and `bernoulli-ts`. Each family is stored in out/evidence/robust when it is
finished, so families can be run separately; the report is written from all that are stored.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _races import SEED, race
from _worlds import FAMILIES, why_absent

import dowise
from dowise._core.files import write_text
from dowise._core.kernels import source_digest
from dowise.simulation.reproduce import heading, table

HERE = Path(__file__).parent
FULL = 200  # --trials at which each family is played as often as its bar asks for
WITHOUT_GRAPH = ("arm-ids", "bernoulli-ts")
MUST_WIN = ("clinic", "hidden clinic", "rare", "high", "task1", "task2", "task3", "healthcare")


# -- figures ---------------------------------------------------------------------------------------


class Figure(NamedTuple):
    """Estimate with its standard error."""

    mean: float
    error: float


def mean_of(values: Any) -> Figure:
    """Return the mean over worlds."""
    values = np.asarray(values, dtype=float)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.inf
    return Figure(float(values.mean()), float(error))


def ratio_of(values: Any, others: Any) -> Figure:
    """Return the ratio of two means over the same worlds; the error is that of pairs."""
    values, others = np.asarray(values, dtype=float), np.asarray(others, dtype=float)
    ratio = values.mean() / others.mean()
    return Figure(float(ratio), mean_of((values - ratio * others) / others.mean()).error)


def regrets(results: dict[str, Any], family: str, policy: str) -> np.ndarray:
    """Return the regret of a policy in each world."""
    if policy == "random":
        return np.array(results[family]["random"])
    return np.array(results[family]["policies"][policy]["regret"])


def against(results: dict[str, Any], family: str, policy: str) -> Figure:
    """Return the regret of `best` as a share of that of another policy."""
    other = FAMILIES[family].reference or family
    return ratio_of(regrets(results, family, "best"), regrets(results, other, policy))


def better_baseline(results: dict[str, Any], family: str) -> str:
    """Return the policy without a graph that loses less."""
    family = FAMILIES[family].reference or family
    return min(WITHOUT_GRAPH, key=lambda name: float(regrets(results, family, name).mean()))


class Bar(NamedTuple):
    """Figure that issue 27 asks for, and whether it is reached."""

    what: str
    figure: str
    bar: str
    holds: bool | None
    """None if a family is missing."""


def judge(
    results: dict[str, Any],
    what: str,
    bar: str,
    families: tuple[str, ...],
    measure: Callable[[], tuple[Figure, bool]],
) -> Bar:
    """Return a bar; a missing family leaves it open."""
    missing = [name for name in dict.fromkeys(families) if name not in results]
    if missing:
        return Bar(what, f"not run: {', '.join(missing)}", bar, None)
    figure, holds = measure()
    return Bar(what, f"{figure.mean:.3g} ± {figure.error:.2g}", bar, holds)


def bars_of(results: dict[str, Any]) -> list[Bar]:
    """Return all bars about regret and intervals."""

    def below(family: str, policy: str | None, limit: float, strict: bool = False) -> Bar:
        def measure() -> tuple[Figure, bool]:
            figure = against(results, family, policy or better_baseline(results, family))
            return figure, figure.mean < limit if strict else figure.mean <= limit

        sign = "below" if strict else "at most"
        needed = (family, FAMILIES[family].reference or family)
        what = f"{family}: best / {policy or 'baseline'}"
        return judge(results, what, f"{sign} {limit:g}", needed, measure)

    tasks = ("task1", "task2", "task3", "healthcare")

    def mean_of_tasks(policy: str) -> Figure:
        shares = [against(results, task, policy) for task in tasks]
        error = np.sqrt(sum(x.error**2 for x in shares)) / len(tasks)
        return Figure(float(np.mean([x.mean for x in shares])), float(error))

    def against_flat() -> tuple[Figure, bool]:
        figure = mean_of_tasks("commit-kg")
        return figure, figure.mean <= 1.08

    def against_ids() -> tuple[Figure, bool]:
        figure = mean_of_tasks("ids")
        return figure, figure.mean < 1

    what = "the paper's tasks, mean of four: best / "
    bars = [
        judge(results, f"{what}commit-kg, flat", "at most 1.08", tasks, against_flat),
        judge(results, f"{what}ids", "below 1", tasks, against_ids),
        families_bar(results),
    ]
    bars += [below(name, None, 1, strict=True) for name in MUST_WIN]
    both = ("stroke", "stroke, reversed")
    for name in both:

        def stroke(name: str = name) -> tuple[Figure, bool]:
            figure = mean_of(regrets(results, name, "best"))
            return figure, figure.mean < 26

        bars.append(judge(results, f"{name}: best", "below 26", (name,), stroke))

    def difference() -> tuple[Figure, bool]:
        figure = mean_of(regrets(results, both[0], "best") - regrets(results, both[1], "best"))
        return figure, abs(figure.mean) <= 5

    bars.append(judge(results, "stroke, as written less reversed", "±5", both, difference))
    bars += [below(name, "arm-ids", 1.2) for name in ("XYZW", "XYZWST", "missing", "swapped")]
    bars += [below(f"{name}, late", "arm-ids", 1.2) for name in ("missing", "swapped")]
    bars.append(below("missing, soft", "arm-ids", 0.65))
    bars.append(below("clinic, late", "random", 0.8))
    bars.append(below("clinic, late", "ts", 1, strict=True))
    for name, family in FAMILIES.items():
        if name in results and results[name]["coverage"]:
            figure, least = mean_of(results[name]["coverage"]), 0.80 if name == "clinic" else 0.86
            shown = f"{100 * figure.mean:.0f} ± {100 * figure.error:.1f} %"
            holds, limit = least <= figure.mean <= 0.97, f"{100 * least:.0f} to 97 %"
            if family.name == "clinic":
                holds, limit = figure.mean >= least, "at least 80 %"
            bars.append(Bar(f"{name}: 90 % intervals after 200 rounds", shown, limit, holds))
    return bars


def families_bar(results: dict[str, Any]) -> Bar:
    """Return the bar about nine tenths of the families."""
    names = [name for name in results if FAMILIES[name].reference is None]
    ratios = {name: against(results, name, better_baseline(results, name)).mean for name in names}
    good = [name for name in names if ratios[name] <= 1.15]
    figure = f"{len(good)} of {len(names)} families"
    bad = ", ".join(f"{name} {ratios[name]:.2f}" for name in names if name not in good)
    what = "best / the better of arm-ids and bernoulli-ts, at most 1.15"
    holds = len(good) >= 0.9 * len(names) if len(names) > 1 else None
    missing = [name for name, f in FAMILIES.items() if name not in results and not f.reference]
    figure += f" (above: {bad})" if bad else ""
    figure += f" (not run: {', '.join(missing)})" if missing else ""
    return Bar(what, figure, "in nine tenths of the families", holds)


# -- report ----------------------------------------------------------------------------------------


def markdown(results: dict[str, Any], command: str, absent: dict[str, str]) -> str:
    """Return the page for people."""
    bars = bars_of(results)
    verdicts = {True: "holds", False: "does not hold", None: "not run"}
    hold = sum(bar.holds is True for bar in bars)
    rows = [(bar.what, bar.figure, bar.bar, verdicts[bar.holds]) for bar in bars]
    parts = [
        heading(1, "Worlds that are not ours"),
        f"`{command}`, dowise {dowise.__version__}, seed {SEED}. What the families are: "
        "[robustness](../../docs/robustness.md). Regret ± standard error over worlds (expected "
        "regret in our own prior's worlds); policies are paired. `best / baseline` compares with "
        "the better of arm-ids and bernoulli-ts on the same arms: above 1 `best` loses more than a "
        "policy without any graph. Locked in: trials of `best` that lose no less in the last fifth "
        "of the rounds than in the first. Covered: 90 % intervals of arms' means after 200 rounds "
        "that hold the truth, but for arms whose reward is certain.",
        *(f"Not run: {name}, because {reason}." for name, reason in absent.items()),
        heading(2, "Summary"),
        summary(results),
        heading(2, "All policies"),
    ]
    policies = ("best", "commit-kg", "ids", "ts", "arm-ids", "bernoulli-ts")
    head = ("family", "T", "worlds", *policies, "random", "best / baseline", "locked in", "covered")
    for group in dict.fromkeys(family.group for family in FAMILIES.values()):
        names = [n for n in FAMILIES if FAMILIES[n].group == group and n in results]
        if names:
            cells = [row_of(results, name, policies) for name in names]
            parts += [heading(3, group.capitalize()), table(head, cells)]
    parts += [
        heading(2, "Bars"),
        f"{hold} of {len(bars)} hold.",
        table(("bar", "measured", "asked for", "verdict"), rows),
    ]
    return "\n\n".join(parts) + "\n"


def summary(results: dict[str, Any]) -> str:
    """Return the table of docs/robustness.md: `best` against the better baseline."""
    rows = []
    for name, result in results.items():
        other = FAMILIES[name].reference or name
        if other in results:
            best = regrets(results, name, "best")
            baseline = better_baseline(results, name)
            cells = [mean_of(best), mean_of(regrets(results, other, baseline))]
            shown = [f"{figure.mean:.3g} ± {figure.error:.2g}" for figure in cells]
            ratios = [against(results, name, policy) for policy in ("random", baseline)]
            shares = [f"{ratio.mean:.2f} ± {ratio.error:.2f}" for ratio in ratios]
            about = f"{name}: {FAMILIES[name].about}"
            rows.append((about, str(result["horizon"]), *shown, baseline, *shares))
    head = ("family", "T", "best", "baseline", "which", "best / random", "best / baseline")
    return table(head, rows)


def row_of(results: dict[str, Any], name: str, policies: tuple[str, ...]) -> tuple[str, ...]:
    """Return the row of a family in the table."""
    result = results[name]
    cells = []
    for policy in (*policies, "random"):
        if policy == "random" or policy in result["policies"]:
            figure = mean_of(regrets(results, name, policy))
            cells.append(f"{figure.mean:.4g} ± {figure.error:.2g}")
        else:
            cells.append("")
    other = FAMILIES[name].reference or name
    share = "not run"
    if other in results:
        ratio = against(results, name, better_baseline(results, name))
        share = f"{ratio.mean:.2f} ± {ratio.error:.2f}"
    locked = f"{100 * np.mean(result['policies']['best']['locked']):.0f} %"
    covered = f"{100 * np.mean(result['coverage']):.0f} %" if result["coverage"] else ""
    trials, horizon = str(result["trials"]), str(result["horizon"])
    return (f"{name}: {FAMILIES[name].about}", horizon, trials, *cells, share, locked, covered)


def as_json(results: dict[str, Any], command: str) -> str:
    """Return the figures for programs."""
    families = {}
    for name, result in results.items():
        policies = {}
        for policy, data in result["policies"].items():
            figure = mean_of(data["regret"])
            policies[policy] = {
                "regret": round(figure.mean, 4),
                "standard_error": round(figure.error, 4),
                "locked_in": round(float(np.mean(data["locked"])), 3),
            }
        families[name] = {
            "trials": result["trials"],
            "horizon": result["horizon"],
            "random": round(float(np.mean(result["random"])), 4),
            "coverage": round(float(np.mean(result["coverage"])), 3)
            if result["coverage"]
            else None,
            "cpu_seconds": round(result["seconds"], 1),
            "policies": policies,
        }
    bars = [bar._asdict() for bar in bars_of(results)]
    document = {
        "command": command,
        "dowise": dowise.__version__,
        "families": families,
        "bars": bars,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Run the families that are not stored yet, and write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=FULL, help=f"{FULL} plays all that are asked")
    parser.add_argument("--family", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--runs", type=Path, default=HERE.parent / "out" / "evidence" / "robust", help="stored runs"
    )
    parser.add_argument("--out", type=Path, default=HERE / "results")
    options = parser.parse_args(arguments)
    results, absent, digest = {}, {}, _digest()
    options.runs.mkdir(parents=True, exist_ok=True)
    pool = ProcessPoolExecutor(options.workers) if options.workers > 1 else None
    for name, family in FAMILIES.items():
        reason = why_absent(family)
        if reason is not None:
            absent[name] = reason
            print(f"{name}: skipped, because {reason}", flush=True)
            continue
        trials = max(2, round(family.trials * options.trials / FULL))
        path = options.runs / f"{name} {trials} {digest}.json"
        if path.exists():
            results[name] = json.loads(path.read_text("utf-8"))
        elif name in options.family:
            begin = time.monotonic()
            results[name] = race(family, trials, options.workers, pool)
            write_text(path, json.dumps(results[name]))
            took = time.monotonic() - begin
            figures = {
                policy: f"{np.mean(data['regret']):.4g}"
                for policy, data in results[name]["policies"].items()
            }
            cpu = results[name]["seconds"]
            print(
                f"{name}: {trials} worlds, {took:.0f} s ({cpu:.0f} s of CPU), {figures}", flush=True
            )
    if pool is not None:
        pool.shutdown()
    command = f"python evidence/robust.py --trials {options.trials}"
    options.out.mkdir(parents=True, exist_ok=True)
    write_text(options.out / "robust.md", markdown(results, command, absent))
    write_text(options.out / "robust.json", as_json(results, command))


def _digest() -> str:
    """Return a digest of the sources that results depend on."""
    sources = [
        (HERE / name).read_text("utf-8") for name in ("_races.py", "_stroke.py", "_worlds.py")
    ]
    return sha256("\n".join([source_digest(), *sources]).encode()).hexdigest()[:12]


if __name__ == "__main__":
    main()
