"""False alarms, power and delay of the monitor of the graph, and the effect of soft edges.

    python evidence/monitor.py [--quick] [--trials 200]

writes evidence/results/monitor.md. The long version takes some minutes on one core.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dowise import Belief, CausalGraph, Environment, Problem, make_environment, make_policy
from dowise._core.files import write_text
from dowise.belief.monitor import Monitor
from dowise.policies.base import MinimalPolicy
from dowise.problem.record import RecordBatch

HERE = Path(__file__).parent
ALPHA, ROUNDS, EVERY = 0.05, 800, 5
THREE = ("low", "middle", "high")

parse = CausalGraph.parse
TASK2 = parse("C -> X1; C -> X2; X1 -> X2; X2 -> Y; Z -> X2; Z -> Y")
RIGHT = {
    "task 2": Problem(TASK2, "Y", "C", "Z"),
    "sixteen rows": Problem(
        parse("A -> Y; B -> Y; C -> Y; D -> Y; E"), "Y", non_manipulable="E", arms="all"
    ),
    "three values": Problem(
        parse("X -> M -> Y; W -> Y"), "Y", domains=dict.fromkeys("MWXY", THREE), arms="all"
    ),
    "hidden cause": Problem(parse("U -> X; U -> Y; X -> M -> Y"), "Y", hidden="U", arms="all"),
}
ROWS = {"all ½": np.inf, "near ½": 10.0, "from the prior": 1.0, "far from ½": 0.2}


@dataclass
class Rates:
    """Number of worlds with an alarm, by kind."""

    worlds: int
    alarms: Counter[str]

    def share(self, kind: str) -> str:
        """Return the rate in per cent, with its standard error."""
        rate = self.alarms[kind] / self.worlds
        error = (max(rate, 1 / self.worlds) * (1 - rate) / self.worlds) ** 0.5
        return f"{100 * rate:.1f} ± {100 * error:.1f}"


def drawn_cpts(
    problem: Problem, concentration: float, rng: np.random.Generator
) -> dict[str, NDArray]:
    """Return Dirichlet rows, which are uniform if the concentration is infinite."""
    graph, labels = problem.drawn, {**problem.domains, **problem.hidden_domains}
    cpts = {}
    for name in graph:
        shape, size = [len(labels[u]) for u in graph.parents(name)], len(labels[name])
        if np.isinf(concentration):
            cpts[name] = np.full((*shape, size), 1 / size)
        else:
            cpts[name] = rng.dirichlet(np.full(size, concentration), size=shape)
    return cpts


def random_play(
    problem: Problem, cpts: dict[str, NDArray], rounds: int, rng: np.random.Generator
) -> RecordBatch:
    """Return records of random arms."""
    fixed = np.array([problem.fixed(arm) for arm in problem.arms])
    set_codes = fixed[rng.integers(len(fixed), size=rounds)].T
    codes, values = set_codes.copy(), {}
    graph = problem.drawn
    for v in graph.adjacency.topological_order():
        name = graph.variables[v]
        rows = cpts[name][tuple(values[u] for u in graph.parents(name))]
        rows = np.broadcast_to(rows, (rounds, rows.shape[-1]))
        sampled = (rng.random((rounds, 1)) > np.cumsum(rows, axis=1)[:, :-1]).sum(axis=1)
        values[name], position = sampled, problem.positions.get(name)
        if position is not None:
            is_set = set_codes[position] >= 0
            codes[position] = values[name] = np.where(is_set, set_codes[position], sampled)
    return RecordBatch(problem, np.ascontiguousarray(codes), set_codes >= 0)


def alarms_at(monitor: Monitor, plain: float) -> dict[str, int | None]:
    """Return the record of each kind of alarm; `plain` is the largest log of mean Bayes factors."""
    return {
        "Dirichlet(1)": 1 if plain >= -np.log(ALPHA) else None,
        "mixture": monitor.evidence(ALPHA).since,
        "strict": monitor.evidence(ALPHA, strict=True).since,
    }


def log_mean(logs: NDArray) -> float:
    """Return the logarithm of the mean of numbers with these logarithms."""
    return float(logs.max() + np.log(np.exp(logs - logs.max()).mean()))


def watch(records: RecordBatch) -> dict[str, int | None]:
    """Return the alarms along a batch; plain Bayes factors are checked after every fifth record."""
    monitor, plain = Monitor(records.problem), -np.inf
    for first in range(0, len(records), EVERY):
        columns = slice(first, first + EVERY)
        part = np.ascontiguousarray(records.codes[:, columns]), records.was_set[:, columns]
        monitor.learn_many(RecordBatch(records.problem, *part))
        plain = max(plain, log_mean(monitor.evidence().log_bayes_factors))
    return alarms_at(monitor, plain)


def play(policy: MinimalPolicy, world: Environment, rounds: int, rng: np.random.Generator) -> float:
    """Return the regret of a policy."""
    regret = 0.0
    for _ in range(rounds):
        context = world.draw_context(rng)
        arm = policy.decide(context, rng).arm
        policy.observe(arm, world.play(arm, context, rng))
        regret += world.regret(arm, context)
    return regret


def false_alarms(worlds: int) -> list[tuple[str, str, str, int, Rates]]:
    """Return the rates of alarms in worlds whose graph is right."""
    rows_of_table = []
    for number, (name, problem) in enumerate(RIGHT.items()):
        edges = len(Monitor(problem).evidence().edges)
        for kind, (rows, concentration) in enumerate(ROWS.items()):
            rates = Rates(worlds, Counter())
            for trial in range(worlds):
                rng = np.random.default_rng([1, number, kind, trial])
                batch = random_play(problem, drawn_cpts(problem, concentration, rng), ROUNDS, rng)
                rates.alarms.update(k for k, since in watch(batch).items() if since)
            rows_of_table.append((name, rows, "random arms", edges, rates))
            report_progress(f"{name}, {rows}: {dict(rates.alarms)}")
    problem = RIGHT["task 2"]
    for kind, rows in enumerate(("all ½", "from the prior")):
        rates = Rates(worlds, Counter())
        for trial in range(worlds):
            rng = np.random.default_rng([2, kind, trial])
            world = Environment(problem, drawn_cpts(problem, ROWS[rows], rng))
            policy = make_policy("ts", problem, belief=Belief(problem, evidence=True))
            play(policy, world, ROUNDS, rng)
            alarms = alarms_at(policy.belief.monitor, -np.inf)
            rates.alarms.update(k for k, since in alarms.items() if since)
        edges = len(Monitor(problem).evidence().edges)
        rows_of_table.append(("task 2", rows, "`ts`", edges, rates))
        report_progress(f"task 2, {rows}, ts: {dict(rates.alarms)}")
    return rows_of_table


def power(worlds: int) -> list[tuple[str, int, str, str]]:
    """Return, for missing edges, the number of worlds with an alarm and its median record."""
    chain = Problem(parse("Z -> X -> Y"), "Y", non_manipulable="Z")
    cases = {
        "task 2 without X1 -> Y, `ts`": (RIGHT["task 2"], "X1 -> Y", "ts", 1000),
        "task 2 without X1 -> Y, `ids`": (RIGHT["task 2"], "X1 -> Y", "ids", 1000),
        "task 1 without Z -> Y, `ts`": (chain, "Z -> Y", "ts", 1000),
    }
    rows = []
    for name, (problem, edge, policy_name, rounds) in cases.items():
        true = Problem(
            problem.graph.with_edges(edge),
            "Y",
            problem.context,
            problem.non_manipulable,
            arms="all",
        )
        alarms = []
        for trial in range(worlds):
            world, rng = make_environment(true, 3_000 + trial), np.random.default_rng([4, trial])
            options = {"samples": 200} if policy_name == "ids" else {}
            belief = Belief(problem, evidence=True)
            policy = make_policy(policy_name, problem, belief=belief, **options)
            play(policy, world, rounds, rng)
            alarms.append(alarms_at(belief.monitor, -np.inf))
        rows.append((name, worlds, *(when(alarms, kind) for kind in ("mixture", "strict"))))
        report_progress(str(rows[-1]))
    alarms = [watch(a_fifth(trial)) for trial in range(worlds)]
    kinds = ("mixture", "strict")
    name = "sixteen rows, E changes each by .2, random arms"
    rows.append((name, worlds, *(when(alarms, kind) for kind in kinds)))
    return rows


def a_fifth(trial: int) -> RecordBatch:
    """Records of sixteen rows at ½ that E shifts by .1 up or down, against a graph without E."""
    problem, rng = RIGHT["sixteen rows"], np.random.default_rng([5, trial])
    cpts = drawn_cpts(problem, np.inf, rng)
    batch = random_play(problem, cpts, ROUNDS, rng)
    y, e = problem.positions["Y"], problem.positions["E"]
    batch.codes[y] = rng.random(ROUNDS) < 0.4 + 0.2 * batch.codes[e]
    return batch


def when(alarms: list[dict[str, int | None]], kind: str) -> str:
    """Return the number of worlds with an alarm, and its median record."""
    times = [since[kind] for since in alarms if since[kind]]
    return f"{len(times)}, {np.median(times):.0f}" if times else "0"


def measure_regrets(worlds: int) -> list[tuple[str, dict[str, NDArray]]]:
    """Return the regrets of `ts` with the right, the drawn and the soft graph; T = 1000."""
    drawn = Problem(TASK2, "Y", "C", "Z", arms="all")
    soft = Problem(TASK2, "Y", "C", "Z", arms="all", soft=0.1)
    true = Problem(TASK2.with_edges("X1 -> Y"), "Y", "C", "Z", arms="all")
    rows = []
    for name, problem in (("task 2 without X1 -> Y", true), ("the graph is right", drawn)):
        policies = {
            "`bernoulli-ts`": ("bernoulli-ts", problem, {}),
            "`ts`, right graph": ("ts", problem, {}),
            "`ts`, drawn graph": ("ts", drawn, {}),
            "`ts`, soft graph": ("ts", soft, {}),
        }
        regrets: dict[str, list[float]] = {kind: [] for kind in policies}
        for trial in range(worlds):
            world = make_environment(problem, 6_000 + trial)
            for kind, (policy, own_problem, options) in policies.items():
                rng = np.random.default_rng([7, trial])
                made = make_policy(policy, own_problem, **options)
                regrets[kind].append(play(made, world, 1000, rng))
        rows.append((name, {kind: np.array(values) for kind, values in regrets.items()}))
        report_progress(
            f"{name}: " + ", ".join(f"{k} {mean(np.array(v))}" for k, v in regrets.items())
        )
    return rows


def mean(values: NDArray) -> str:
    """Return the mean with its standard error."""
    return f"{values.mean():.1f} ± {values.std(ddof=1) / len(values) ** 0.5:.1f}"


def report_progress(text: str) -> None:
    sys.stderr.write(text + "\n")


def report(trials: int) -> str:
    """Return all results as Markdown: two worlds per trial for rare alarms, fewer for regrets."""
    worlds, races = 2 * trials, 2 * trials // 5
    lines = [
        "# The monitor of the graph, measured",
        "",
        f"`python evidence/monitor.py --trials {trials}`; level {ALPHA:g}.",
        "",
        f"**A right graph.** Shares of {worlds} worlds in which it is accused within {ROUNDS} "
        "records, in per cent, with binomial standard errors. Plain Bayes factors (Dirichlet(1)) "
        f"were looked at after every {EVERY}th record only, so theirs are a little low.",
        "",
        "| graph | rows | who plays | alternatives | Dirichlet(1) | mixture | strict |",
        "|---|---|---|---|---|---|---|",
    ]
    rates = false_alarms(worlds)
    for name, rows, player, edges, alarms in rates:
        plain = "" if player == "`ts`" else alarms.share("Dirichlet(1)")
        lines.append(
            f"| {name} | {rows} | {player} | {edges} | {plain} | {alarms.share('mixture')} | "
            f"{alarms.share('strict')} |"
        )
    total = sum(alarms.alarms["mixture"] for *_, alarms in rates)
    lines += [
        "",
        f"The mixture over all settings: {total} of {worlds * len(rates)}.",
        "",
        "**A wrong graph.** The number of worlds with an alarm, and the median record of it.",
        "",
        "| what is missing | worlds | mixture | strict |",
        "|---|---|---|---|",
    ]
    lines += [f"| {' | '.join(map(str, row))} |" for row in power(min(worlds, 60))]
    lines += [
        "",
        f"**Soft edges.** Regret after 1000 rounds, {races} worlds, all arms.",
        "",
    ]
    for number, (name, regrets) in enumerate(measure_regrets(races)):
        if not number:
            lines += [f"| | {' | '.join(regrets)} |", "|---" * (1 + len(regrets)) + "|"]
        lines.append(f"| {name} | {' | '.join(mean(values) for values in regrets.values())} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few worlds, printed and not kept")
    parser.add_argument("--trials", type=int, default=200, help="half as many as worlds")
    options = parser.parse_args()
    text = report(10 if options.quick else options.trials)
    if options.quick:
        sys.stdout.write(text)
    else:
        write_text(HERE / "results" / "monitor.md", text)


if __name__ == "__main__":
    main()
