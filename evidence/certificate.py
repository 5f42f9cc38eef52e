"""Coverage of certificates, and the bound that is their sum.

    python evidence/certificate.py [--quick] [--trials 400]

Coverage: in beliefs taken from runs of `certified-ids`, each round of which makes fresh draws, how
often is Δ(π) − λg(π), from a million draws, above a certificate that may fail 1 time in 20? By the
proof (docs/certificate.md), at most that often. The bound: Σ cert_t of the trials at δ' = 0.05,
N = 1000 and T = 500 beside the bounds of the paper, and the regret of these runs, of `ids` and of
`ts` in the same worlds.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from dowise import Belief, load_problem, make_environment, make_policy
from dowise.environments.random_worlds import WorldOptions
from dowise.environments.sources import random_worlds
from dowise.information import estimate_of
from dowise.policies.certified_ids import CertifiedSampling
from dowise.problem import Problem
from dowise.simulation import bounds
from dowise.simulation.trial import make_world, run_trial

RESULTS = Path(__file__).parent / "results"
PROBLEMS = ("task1", "healthcare", "task2", "task3")
HORIZON, SEED = 500, 3
TIMES = (0, 3, 10, 30, 100, 300)  # after so many rounds
REPEATS = 100  # rounds in each belief
NOMINAL = 0.05


def beliefs(problem: Problem, worlds: int) -> list[tuple[dict[str, str], Belief]]:
    """Return contexts and beliefs along runs in several worlds."""
    states = []
    for seed in range(worlds):
        rng = np.random.default_rng([11, seed])
        world = make_environment(problem, rng)
        policy = CertifiedSampling(problem, horizon=HORIZON)
        for t in range(max(TIMES) + 1):
            context = world.draw_context(rng)
            if t in TIMES:
                states.append((context, policy.belief.copy()))
            arm = policy.decide(context, rng).arm
            policy.observe(arm, world.play(arm, context, rng))
    return states


def failures(problem: Problem, worlds: int, repeats: int, exact: int = 1_000_000) -> np.ndarray:
    """Return, for each belief, the share of rounds in which the certificate was too small."""
    failed = []
    for seed, (context, belief) in enumerate(beliefs(problem, worlds)):
        rng = np.random.default_rng([12, seed])
        codes, arms = problem.context_codes(context), np.arange(len(problem.arms))
        truth = estimate_of(belief.posterior.draw(codes, exact, rng), problem.payoff)
        policy = CertifiedSampling(
            problem,
            horizon=1,
            delta=NOMINAL,
            lam=CertifiedSampling(problem, horizon=HORIZON).lam,
            belief=belief,
        )
        exact_values = truth.delta - policy.lam * truth.gain
        rounds = [policy.certify(codes, arms, rng) for _ in range(repeats)]
        failed.append(
            np.mean([c.action.distribution(len(arms)) @ exact_values > c.bound for c in rounds])
        )
    return np.array(failed)


def regrets(problem: Problem, policy: str, trials: int) -> np.ndarray:
    """Return the regrets of a policy in the worlds of the bound."""
    worlds = random_worlds(problem, WorldOptions(edges="prior"))
    return np.array(
        [
            run_trial(
                make_world(worlds, SEED, i), lambda p: make_policy(policy, p), HORIZON, SEED, i
            ).regrets.sum()
            for i in range(trials)
        ]
    )


def bound_of(name: str, trials: int) -> dict[str, float]:
    """Return the bounds of a problem, and the regrets of policies."""
    problem = load_problem(name)
    result = bounds(problem, HORIZON, samples=200_000, seed=SEED, certify=True, trials=trials)
    assert result.certified is not None
    lost = {"certified-ids": result.certified.regrets}
    lost |= {policy: regrets(problem, policy, trials) for policy in ("ids", "ts")}
    values = result.as_dict()
    names = ("theorem_2", "corollary_2", "certified_bound", "certified_mean", "certified_share")
    figures = {key: values[key] for key in (*names, "certified_lam")}
    for policy, values_of_policy in lost.items():
        figures[policy] = float(values_of_policy.mean())
        figures[f"{policy} ±"] = float(values_of_policy.std(ddof=1) / np.sqrt(trials))
        figures[f"{policy} 95 %"] = float(np.quantile(values_of_policy, 0.95))
    return figures


def tables(trials: int, worlds: int, repeats: int) -> tuple[str, dict[str, dict[str, float]]]:
    """Return both tables in Markdown, and the figures."""
    cover = ["| problem | beliefs | rounds | too small, of the 5 % allowed | in the worst belief |"]
    cover.append("|---|---|---|---|---|")
    bound = [
        "| | Theorem 2 | Corollary 2 | **certified**, upper limit | mean | rounds certified |"
        " λ | `certified-ids` did cost | `ids` | `ts` |"
    ]
    bound.append("|---" * 10 + "|")
    figures = {}
    for name in PROBLEMS:
        failed = failures(load_problem(name), worlds, repeats)
        cover.append(
            f"| {name} | {len(failed)} | {len(failed) * repeats:,} | {100 * failed.mean():.2f} % | "
            f"{100 * failed.max():.0f} % |"
        )
        row = figures[name] = bound_of(name, trials)
        lost = " | ".join(
            f"{row[p]:.2f} ± {row[f'{p} ±']:.2f} ({row[f'{p} 95 %']:.0f})"
            for p in ("certified-ids", "ids", "ts")
        )
        bound.append(
            f"| {name} | {'∞' if row['theorem_2'] == 'inf' else row['theorem_2']} | "
            f"{row['corollary_2']:.1f} | **{row['certified_bound']:.1f}** | "
            f"{row['certified_mean']:.1f} | {100 * row['certified_share']:.1f} % | "
            f"{row['certified_lam']:.2f} | {lost} |"
        )
        row["too small"] = float(failed.mean())
        print(cover[-1], bound[-1], sep="\n", flush=True)
    return "\n".join(cover) + "\n\n" + "\n".join(bound), figures


def main() -> None:
    """Run the simulations and write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few worlds, nothing written")
    parser.add_argument("--trials", type=int, default=400)
    options = parser.parse_args()
    if options.quick:
        tables(10, 1, 20)
        return
    text_of_tables, figures = tables(options.trials, 9, REPEATS)
    text = (
        "# Certificates\n\n"
        "How often a certificate that may fail 1 time in 20 is below Δ(π) − λg(π), and the bounds "
        f"on the regret after {HORIZON} rounds with N = 1000, δ' = 0.05, over {options.trials} "
        "worlds; what policies did cost there with ± standard error (95th percentile).\n\n"
        f"    python evidence/certificate.py --trials {options.trials}\n\n{text_of_tables}\n"
    )
    (RESULTS / "certificate.md").write_text(text, encoding="utf-8")
    page = json.dumps(figures, indent=1, sort_keys=True) + "\n"
    (RESULTS / "certificate.json").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
