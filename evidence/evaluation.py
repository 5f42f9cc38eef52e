"""Coverage of the intervals of `evaluate`: the reward that another policy would have had.

    python evidence/evaluation.py [--quick] [--trials 100]

Worlds come from the prior of `make_environment`. Somebody plays 1000 rounds and learns from them on
the way; the target is one arm throughout, which arm going round with the world, or `ucb`. In a
simulated world the mean reward of every arm is known, and so is what the target would have earned
at the probabilities that it had: the interval holds it, or not. The claim is that at least 90 % do,
whoever played, and at all of 20 looks; the normal approximation promises neither.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dowise import Belief, Environment, Problem, load_problem, make_environment
from dowise._core.files import write_text
from dowise._core.types import FloatArray
from dowise.experiment.evaluation import Decide, Learn, LoggedDecision, Replay, Step, evaluate
from dowise.experiment.evaluation.estimators import IntervalEstimate, doubly_robust
from dowise.problem import Record

HERE = Path(__file__).parent
LEVEL, ROUNDS, LOOKS = 0.9, 1000, 20


class Situation(NamedTuple):
    """Everything that a player may use."""

    belief: Belief
    context: dict[str, str]
    number: int
    last: Record | None
    """The last known outcome."""
    rng: np.random.Generator

    @property
    def arms(self) -> int:
        return len(self.belief.problem.arms)


Player = Callable[[Situation], FloatArray]


def even(now: Situation) -> FloatArray:
    """All arms with equal probabilities."""
    return np.full(now.arms, 1 / now.arms)


def thompson(now: Situation) -> FloatArray:
    """Shares of 200 posterior draws in which each arm is best; many are 0."""
    return now.belief.probability_best(now.context, 200, now.rng)


def floored(now: Situation) -> FloatArray:
    """Thompson Sampling, with probability 0.1 a random arm."""
    return 0.9 * thompson(now) + 0.1 * even(now)


def vanishing(now: Situation) -> FloatArray:
    """Thompson Sampling, with probability 1/√t a random arm."""
    share = now.number**-0.5
    return (1 - share) * thompson(now) + share * even(now)


def win_stay(now: Situation) -> FloatArray:
    """The arm that won last, with probability 0.1 a random arm."""
    if now.last is None or not now.belief.problem.payoff.scaled[now.last.reward] > 0.5:
        return even(now)
    probabilities = 0.1 * even(now)
    probabilities[now.belief.problem.arm_index(now.last.arm)] += 0.9
    return probabilities


PLAYERS = {
    "random": even,
    "`ts` with a floor of .1": floored,
    "`ts` with a floor of 1/√t": vanishing,
    "`ts`, 200 draws": thompson,
    "win, stay": win_stay,
}
SETTINGS = [
    *(
        (name, player_name, target, 0)
        for name in ("task1", "task2")
        for player_name in PLAYERS
        for target in ("one arm", "ucb")
    ),
    ("task2", "`ts` with a floor of .1", "one arm", 20),
    ("task2", "win, stay", "one arm", 20),
]


def played(
    world: Environment, player: Player, rounds: int, rng: np.random.Generator, delay: int = 0
) -> tuple[list[Step], FloatArray]:
    """Return the steps of a run, and the true mean of every arm in each round.

    With a `delay` outcomes become known later by this number of rounds on average, in any order.
    """
    problem, belief, last = world.problem, Belief(world.problem), None
    steps, means, due = list[Step](), [], defaultdict[int, list[Record]](list)
    for number in range(1, rounds + 1):
        for record in due.pop(number, ()):
            steps.append(Learn(record))
            belief.learn(record)
            last = record
        context = world.draw_context(rng)
        chances = player(Situation(belief, context, number, last, rng))
        arm = problem.arms[rng.choice(len(chances), p=chances)]
        record = problem.record(arm, world.play(arm, context, rng), number)
        steps.append(
            Decide(LoggedDecision(number, context, chances, np.full(len(chances), True), record))
        )
        due[number + int(rng.geometric(1 / (1 + delay)))].append(record)
        means.append(world.means(context))
    return steps, np.array(means)


class Held(NamedTuple):
    """Coverage and width of the intervals in one world."""

    at_the_end: bool
    at_all_looks: bool
    difference: bool
    width: float
    normal: float
    """Coverage of the normal approximation; NaN if there is none."""
    normal_width: float
    unsupported: float


def holds(interval: IntervalEstimate, truth: float) -> bool:
    """Return True if the interval covers the truth, up to rounding."""
    return bool(interval.low - 1e-9 <= truth <= interval.high + 1e-9)


def measured(replay: Replay, means: FloatArray) -> Held:
    """Compare the intervals with the reward of the target, for rewards 0 and 1."""
    rounds, values = len(replay), (replay.target * means).sum(axis=1)
    versus = replay.target - replay.logged
    looks = [
        holds(doubly_robust(replay[:n], replay.target[:n], LEVEL), values[:n].mean())
        for n in np.linspace(rounds / LOOKS, rounds, LOOKS).astype(int)
        if n
    ]
    now = doubly_robust(replay, replay.target, LEVEL)
    low, high = now.normal or (np.nan, np.nan)
    return Held(
        looks[-1],
        all(looks),
        holds(doubly_robust(replay, versus, LEVEL), (versus * means).sum() / rounds),
        now.high - now.low,
        np.nan if now.normal is None else float(low <= values.mean() <= high),
        high - low,
        replay.unsupported,
    )


def trial(
    problem: Problem, player: Player, target: str, seed: int, rounds: int, delay: int = 0
) -> tuple[Held, Held]:
    """Run one world, and measure after a fifth of the rounds and after all of them."""
    rng = np.random.default_rng([12, seed])
    world = make_environment(problem, rng)
    steps, means = played(world, player, rounds, rng, delay)
    arm = problem.arms[seed % len(problem.arms)] if target == "one arm" else target
    replay, few = evaluate(problem, steps, arm, level=LEVEL).replay, rounds // 5
    return measured(replay[:few], means[:few]), measured(replay, means)


def table(worlds: int, rounds: int) -> str:
    """Return a Markdown table of all settings."""
    head = (
        "problem",
        "who plays",
        "target",
        "rounds",
        "holds",
        "at all looks",
        "difference",
        "width",
        "never played",
        "normal: worlds",
        "holds",
        "width",
    )
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, player_name, target, delay in SETTINGS:
        trials = [
            trial(load_problem(name), PLAYERS[player_name], target, seed, rounds, delay)
            for seed in range(worlds)
        ]
        late = f", outcomes {delay} rounds late" if delay else ""
        for results, length in zip(zip(*trials, strict=True), (rounds // 5, rounds), strict=True):
            cells = (
                name,
                player_name + late,
                target,
                length,
                *summary(np.array(results, dtype=float)),
            )
            lines.append(f"| {' | '.join(map(str, cells))} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def summary(results: FloatArray) -> list[str]:
    """Return shares in per cent and mean widths; those of the normal approximation if any."""
    normal = results[~np.isnan(results[:, 4])]
    shares = [f"{100 * share:.0f}" for share in results[:, :3].mean(axis=0)]
    shown = [*shares, f"{results[:, 3].mean():.2f}", f"{100 * results[:, 6].mean():.0f}"]
    if not len(normal):
        return [*shown, "0", "", ""]
    held, width = normal[:, 4:6].mean(axis=0)
    return [*shown, str(len(normal)), f"{100 * held:.0f}", f"{width:.2f}"]


def main() -> None:
    """Run the simulations and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few worlds, nothing written")
    parser.add_argument("--trials", type=int, default=100)
    options = parser.parse_args()
    if options.quick:
        table(5, 200)
        return
    text = (
        "# What another policy would have earned: coverage of 90 % intervals\n\n"
        f"{options.trials} worlds each; doubly robust estimates; shares in per cent, with a "
        f"standard error of {30 / options.trials**0.5:.1f} where they are 90. At all looks: at "
        f"all of {LOOKS}, evenly spaced. Never played: the mean share of the target's choices that "
        "had probability 0; where a world has any, there is no normal approximation.\n\n"
        f"    python evidence/evaluation.py --trials {options.trials}\n\n"
        f"{table(options.trials, ROUNDS)}\n"
    )
    write_text(HERE / "results" / "evaluation.md", text)


if __name__ == "__main__":
    main()
