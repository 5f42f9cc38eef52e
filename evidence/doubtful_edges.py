"""Doubtful hidden causes behind weak parents, and arrows that the soft graph covers.

    python evidence/doubtful_edges.py [--trials 200]

Hidden causes: Z, W -> X -> Y with X <-> Y at .9, there in 90 % of the worlds. Records without
intervention have all variables, those of do(X=0) and do(X=1) have Y. "Wide" is `edge_rules = 1`,
the tables of experiments that began before narrow ones existed.

Regret: `ts` in random worlds with a hidden cause and with none, and in a world in which 1000 past
records without intervention seem to refute a hidden cause.

Soft arrows: an arrow is left out of a random graph. It is covered if it is soft, or if setting its
cause is judged by the evidence.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np

from dowise import Belief, CausalGraph, Problem, make_environment, make_policy
from dowise._core.files import write_text
from dowise.model.missing_edges import Reversal, alternatives_of

RESULTS = Path(__file__).parent / "results"
PARENTS = {"none": (), "2 values": (2,), "3×3 values": (3, 3)}
LINES = [  # kind of world, parents of X, records without intervention, records of each do(X=x)
    ("weak", "3×3 values", 5000, 20),
    ("weak", "2 values", 5000, 20),
    ("weak", "3×3 values", 1000, 0),
    ("random", "3×3 values", 5000, 20),
    ("random", "3×3 values", 500, 100),
    ("strong", "3×3 values", 5000, 20),
    ("random", "none", 5000, 20),
]
BELIEFS = {"wide": (1, "flat"), "wide and narrow": (2, "flat"), "the same, pooled": (2, "pooled")}
PRIOR = 0.9


def world_of(rng: np.random.Generator, kind: str, parents: tuple[int, ...], has_edge: bool):
    """Draw P(u), P(X = 1 | parents, u) and P(Y = 1 | X, u); without the edge u has one value."""
    values, shape = (3, 0.2) if kind == "strong" else (2, 1.0)
    values = values if has_edge else 1
    cause = rng.dirichlet(np.ones(values))
    if kind == "weak":  # parents hardly move X
        log_odds = rng.normal(0, 1.5, size=values) + rng.normal(0, 0.15, size=(*parents, 1))
        of_x = 1 / (1 + np.exp(-log_odds))
    else:
        of_x = rng.beta(shape, shape, size=(*parents, values))
    return cause, of_x, rng.beta(shape, shape, size=(2, values))


def problem_of(parents: tuple[int, ...], rules: int) -> Problem:
    """Return the problem in which X <-> Y is doubtful."""
    names = ["Z", "W"][: len(parents)]
    return Problem(
        "; ".join([*(f"{name} -> X" for name in names), "X -> Y; X <-> Y"]),
        "Y",
        non_manipulable=names,
        domains={name: range(size) for name, size in zip(names, parents, strict=True)},
        arms=["do()", "do(X=0)", "do(X=1)"],
        edge_prior=PRIOR,
        edge_rules=rules,
    )


def judged(line: tuple[str, str, int, int], belief: str, trial: int) -> tuple[float, bool, float]:
    """Return P(X <-> Y), if it exists, and the share of do(X=x) that 90 % intervals contain."""
    kind, name, seen, each = line
    parents = PARENTS[name]
    rng = np.random.default_rng((3, trial))
    has_edge = bool(rng.random() < PRIOR)
    cause, of_x, of_y = world_of(rng, kind, parents, has_edge)
    u = rng.choice(len(cause), seen, p=cause)
    z = [rng.integers(size, size=seen) for size in parents]
    x = (rng.random(seen) < of_x[(*z, u)]).astype(int)
    y = (rng.random(seen) < of_y[x, u]).astype(int)
    truth = of_y @ cause
    rules, prior = BELIEFS[belief]
    learned = Belief(problem_of(parents, rules), prior=prior)
    learned.update_many({**dict(zip(["Z", "W"], z, strict=False)), "X": x, "Y": y})
    for value in (0, 1) if each else ():
        learned.update_many({"Y": (rng.random(each) < truth[value]).astype(int)}, f"do(X={value})")
    low, high = learned.reward_intervals(level=0.9, rng=trial)[1:].T
    covered = float(((low < truth) & (truth < high)).mean())
    return learned.edges()["X <-> Y"], has_edge, covered


def calibration(line: tuple[str, str, int, int], belief: str, worlds: int) -> tuple[str, float]:
    """Return a row of the table, and the coverage."""
    results = [judged(line, belief, trial) for trial in range(worlds)]
    chances, there, covered = map(np.array, zip(*results, strict=True))
    low = chances < 0.05
    share = f"{there[low].mean():.2f} ({low.sum()})" if low.any() else "(0)"
    odds = np.log(chances.clip(1e-300)) - np.log((1 - chances).clip(1e-300))
    loss = np.logaddexp(0, np.where(there, -odds, odds)).mean()
    error = covered.std() / worlds**0.5
    kind, parents, seen, each = line
    cells = kind, parents, f"{seen} + {each}", belief, share, f"{loss:.2f}"
    percent = f"{100 * covered.mean():.0f} ± {100 * error:.0f}"
    return f"| {' | '.join(cells)} | {percent} |", float(covered.mean())


DRAWN, TRUE = "Z -> X -> Y; X <-> Y", "Z -> X -> Y; X <-> Y!"
GRAPHS = {  # true graph, drawn graph
    "Z → X → Y, with a hidden cause": (TRUE, DRAWN),
    "Z → X → Y, without one": ("Z -> X -> Y", DRAWN),
    "Z, W → X → Y, with a hidden cause": (f"{TRUE}; W -> X", f"{DRAWN}; W -> X"),
}


def regret(true: str, drawn: str, rules: int, trial: int, rounds: int = 400) -> float:
    """Return the regret of `ts` in a random world."""
    rng = np.random.default_rng((77, trial))
    world = make_environment(Problem(true, "Y", arms="all"), rng)
    means = dict(zip(world.problem.arms, world.means(), strict=True))
    policy, lost = make_policy("ts", Problem(drawn, "Y", edge_rules=rules)), 0.0
    for _ in range(rounds):
        arm = policy.decide(None, rng).arm
        lost += max(means.values()) - means[arm]
        policy.observe(arm, world.play(arm, {}, rng))
    return lost


def regrets(trials: int) -> list[str]:
    """Return the rows of the table of regrets."""
    rows = []
    for name, (true, drawn) in GRAPHS.items():
        wide, both = (
            np.array([regret(true, drawn, rules, trial) for trial in range(trials)])
            for rules in (1, 2)
        )
        more = both - wide
        means = f"{wide.mean():.1f} | {both.mean():.1f}"
        rows.append(f"| {name} | {means} | {more.mean():+.2f} ± {more.std() / trials**0.5:.2f} |")
    return rows


WEAK_PARENTS = {"do()": 0.45, "do(X=0)": 0.35, "do(X=1)": 0.55}  # means; do() rounded


def weak_outcomes(rng: np.random.Generator, count: int, x: int | None) -> dict[str, np.ndarray]:
    """Draw outcomes of a world in which Z and W hardly move X, and U moves X and Y."""
    u = rng.random(count) < 0.5
    z, w = rng.integers(3, size=count), rng.integers(3, size=count)
    rate = np.where(u, 0.85, 0.15) + 0.01 * (z - 1) + 0.01 * (w - 1)
    of_x = (rng.random(count) < rate).astype(int) if x is None else np.full(count, x)
    y = (rng.random(count) < 0.6 + 0.2 * of_x - 0.5 * u).astype(int)
    return {"Z": z, "W": w, "Y": y} | ({"X": of_x} if x is None else {})


def regret_after_records(rules: int, policy: str, trial: int) -> float:
    """Return the regret of 300 rounds after 1000 records of `weak_outcomes`."""
    problem, rng = problem_of((3, 3), rules), np.random.default_rng((50, trial))
    belief, lost = Belief(problem), 0.0
    belief.update_many(weak_outcomes(np.random.default_rng(0), 1000, None))
    player = make_policy(policy, problem, belief=belief)
    for _ in range(300):
        arm = player.decide(None, rng).arm
        lost += 0.55 - WEAK_PARENTS[str(arm)]
        x = int(arm["X"]) if arm else None
        outcome = {name: int(values[0]) for name, values in weak_outcomes(rng, 1, x).items()}
        player.observe(arm, outcome)
    return lost


def drawn_graph(rng: np.random.Generator, size: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Draw a graph over `size` variables, the last one Y, in which all may matter to Y."""
    names = [*map(str, rng.permutation([f"V{i}" for i in range(size - 1)])), "Y"]
    arrows = [pair for pair in combinations(names, 2) if rng.random() < 0.4]
    arrows += [(v, "Y") for v in names[:-1] if not any(a == v for a, _ in arrows)]
    return names, arrows


def reversals(problem: Problem) -> list[str]:
    """Return the texts of the arrows against the order that the evidence judges."""
    return [x.text for x in alternatives_of(problem) if isinstance(x, Reversal)]


def covered_arrows(size: int, share: float, rules: int, graphs: int) -> tuple[int, int, int]:
    """Return the numbers of left-out arrows from settable variables, soft ones and judged ones."""
    total, soft, against = 0, 0, 0
    for trial in range(graphs):
        rng = np.random.default_rng((1, trial))
        names, arrows = drawn_graph(rng, size)
        inner = [(a, b) for a, b in arrows if b != "Y"]
        if not inner:
            continue
        cause, effect = inner[rng.integers(len(inner))]
        settable = sorted({v for v in names[:-1] if rng.random() < share} or {names[0]})
        if cause not in settable:
            continue
        drawn = CausalGraph([a for a in arrows if a != (cause, effect)], variables=names)
        problem = Problem(drawn, "Y", manipulable=settable, soft=0.1, edge_rules=rules)
        arrow, total = f"{cause} -> {effect}", total + 1
        soft += arrow in problem.edge_priors
        against += arrow in reversals(problem)
    return total, soft, against


def forgotten_arrow(treatment: str, rules: int) -> str:
    """Return a row: treatment -> Health was forgotten, 3000 records of do(treatment)."""
    problem = Problem(
        f"Health -> Recovery; {treatment} -> Recovery",
        "Recovery",
        non_manipulable="Health",
        soft=0.1,
        edge_rules=rules,
    )
    rng = np.random.default_rng(0)
    arm = rng.integers(2, size=3000)
    health = (rng.random(3000) < np.where(arm, 0.9, 0.1)).astype(int)
    recovery = (rng.random(3000) < 0.2 + 0.6 * health - 0.1 * arm).astype(int)
    belief = Belief(problem)
    arms = [f"do({treatment}={value})" for value in arm]
    belief.update_many({"arm": arms, "Health": health, "Recovery": recovery})
    means = dict(zip(map(str, problem.arms), belief.mean_rewards(), strict=True))
    values = ", ".join(f"{means[f'do({treatment}={value})']:.2f}" for value in (0, 1))
    against = ", ".join(reversals(problem)) or "none"
    return f"| {treatment} | {rules} | {', '.join(problem.order)} | {values} | {against} |"


def report(trials: int) -> list[str]:
    """Run everything, and return the lines of the page."""
    lines = [
        "# Doubtful hidden causes, and arrows that the soft graph covers",
        "",
        f"    python evidence/doubtful_edges.py --trials {trials}",
        "",
        "## Hidden causes",
        "",
        f"{trials} worlds a line, the edge there in 90 %, prior .9. Weak: the parents of X move "
        "its log-odds by .15. Strong: the cause has three values, rows are Beta(.2). Records: "
        "without intervention + of each do(X=x). There: share with the edge among worlds with "
        "P < .05 (their number). ± is one standard error.",
        "",
        "| world | parents of X | records | tables | there | log loss | 90 % intervals cover, % |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [calibration(line, belief, trials)[0] for line in LINES for belief in BELIEFS]
    lines += [
        "",
        "Small values of P(edge) are not calibrated: they mean that no hidden cause is visible.",
        "",
        "## Regret",
        "",
        f"`ts`, 400 rounds, {trials // 2} worlds a line, paired difference ± standard error.",
        "",
        "| world | wide | wide and narrow | difference |",
        "|---|---|---|---|",
        *regrets(trials // 2),
        "",
        "After 1000 records without intervention of a world in which the parents of X hardly move "
        "it, and a hidden cause moves X and Y; 300 rounds, mean of 20 runs ± standard error.",
        "",
        "| policy | wide | wide and narrow |",
        "|---|---|---|",
    ]
    for policy in ("ts", "ids"):
        cells = []
        for rules in (1, 2):
            lost = np.array([regret_after_records(rules, policy, trial) for trial in range(20)])
            cells.append(f"{lost.mean():.1f} ± {lost.std() / len(lost) ** 0.5:.1f}")
        lines.append(f"| {policy} | {' | '.join(cells)} |")
    lines += [
        "",
        "## Soft arrows",
        "",
        f"One arrow from a settable variable is left out of a random graph ({5 * trials} graphs a "
        "line).",
        "",
        "| variables | settable | soft, rules 1 | soft, rules 2 | else judged | neither |",
        "|---|---|---|---|---|---|",
    ]
    for size in (5, 7):
        for share in (0.25, 0.5, 1.0):
            total, older, _ = covered_arrows(size, share, 1, 5 * trials)
            _, soft, against = covered_arrows(size, share, 2, 5 * trials)
            counts = older, soft, against, total - soft - against
            cells = " | ".join(f"{count / total:.0%}" for count in counts)
            lines.append(f"| {size} | {share:.0%} | {cells} |")
    lines += [
        "",
        "Treatment → Health was forgotten: Health → Recovery ← Treatment is drawn, Health can't be "
        "set. The true means are .26 and .64.",
        "",
        "| name | rules | order | means of do(0), do(1) | judged against the order |",
        "|---|---|---|---|---|",
    ]
    return lines + [
        forgotten_arrow(name, rules) for rules in (1, 2) for name in ("Treatment", "Drug")
    ]


def main() -> None:
    """Run the simulations and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=200, help="worlds per line")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = report(options.trials)
    print("\n".join(lines))
    write_text(RESULTS / "doubtful_edges.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
