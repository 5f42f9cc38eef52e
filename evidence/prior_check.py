"""How often the prior check of live experiments warns in worlds of the experiment's own prior.

    python evidence/prior_check.py [--trials 200]

`best` plays 50 rounds in worlds drawn from flat and from pooled rows, and begins with the same
prior. At most 2 % of worlds should be warned of after 20 and after 50 rewards.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dowise import Experiment, load_problem
from dowise._core.files import write_text
from dowise._core.rng import stream
from dowise.environments import WorldOptions
from dowise.environments.random_worlds import sample_world
from dowise.experiment.storage import MemoryStorage

RESULTS = Path(__file__).parent / "results"
PROBLEMS, PRIORS, CHECKED = ("task1", "task2", "healthcare"), (1.0, "pooled"), (20, 50)
_WORLD, _CONTEXTS, _OUTCOMES = range(3)  # random streams of a world


def warned(name: str, prior: float | str, worlds: int) -> list[float]:
    """Return the share of worlds with a warning after each number of rewards."""
    problem, times = load_problem(name), dict.fromkeys(CHECKED, 0)
    for seed in range(worlds):
        world = sample_world(problem, stream(seed, _WORLD), WorldOptions(edges="prior"), prior)
        options = {"prior": prior}
        experiment = Experiment.create(MemoryStorage(), "w", problem, options=options, seed=seed)
        contexts, outcomes = stream(seed, _CONTEXTS), stream(seed, _OUTCOMES)
        for count in range(1, max(CHECKED) + 1):
            context = world.draw_context(contexts)
            decision = experiment.ask(context)
            experiment.tell(decision.id, world.play(decision.arm, context, outcomes))
            if count in CHECKED:
                check = experiment.status(context, evidence=False).prior_check
                times[count] += check is not None and check.records == count
    return [times[count] / worlds for count in CHECKED]


def main() -> None:
    """Play the worlds and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=200, help="worlds of each problem and prior")
    options = parser.parse_args()
    lines = [
        "# How often the prior check warns in worlds of the prior",
        "",
        f"`best`, {options.trials} worlds each; nominal: at most 2 %.",
        "",
        f"    python evidence/prior_check.py --trials {options.trials}",
        "",
        "| problem | rows | after 20 rewards | after 50 |",
        "|---|---|---|---|",
    ]
    for name in PROBLEMS:
        for prior in PRIORS:
            rows = "flat" if prior == 1 else prior
            shares = [f"{100 * share:.1f} %" for share in warned(name, prior, options.trials)]
            lines.append(f"| {name} | {rows} | {' | '.join(shares)} |")
            print(lines[-1], flush=True)
    write_text(RESULTS / "prior_check.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
