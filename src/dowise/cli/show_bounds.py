"""What `dowise bounds` prints for people."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from dowise.cli.tables import count, plain_console, print_table

if TYPE_CHECKING:
    from dowise.simulation import Bounds
    from dowise.simulation.bounds import Certified

__all__ = ["show_bounds"]

_MOST_CONTEXT_COLUMNS = 4


def show_bounds(found: Bounds) -> None:
    """p*, H(Π*), every bound beside the worst case, and what the intervals are worth."""
    console, problem = plain_console(), found.problem
    contexts = len(found.contexts)
    size = f"{count(found.arms, 'arm')}, {count(contexts, 'context')}, T = {found.horizon:,}"
    console.print(Text(problem.name or "The problem", style="bold") + Text(f": {size}"))

    each = contexts > 1 and contexts <= _MOST_CONTEXT_COLUMNS
    tables = found.p_best if each else found.p_best.mean(axis=0, keepdims=True)
    heads = [_in_short(context) for context in found.contexts] if each else ["p*"]
    which = "" if each or contexts == 1 else ", mean over contexts"
    console.print(
        f"\nHow likely each arm is the best before anything was seen{which} "
        f"({found.samples:,} draws{_why(found.samples, found)}, ±{found.p_best_radius:.4f} at "
        "confidence 0.999)",
        style="bold",
    )
    print_table(
        console,
        ("arm", *heads),
        [(str(arm), *(f"{p:.4f}" for p in tables[:, i])) for i, arm in enumerate(problem.arms)],
        right=tuple(heads),
    )
    of = "the best arm" if contexts == 1 else "the map from context to best arm"
    console.print(
        f"\nEntropy of {of}: H = {found.entropy:.4f} ± {found.entropy_error:.4f} nats, "
        f"at most {found.worst_entropy:.4f}"
    )
    if not found.is_joint:
        console.print(
            f"(There are too few draws for the {found.maps_seen:,} maps seen, so this is the sum "
            "over contexts, which is never smaller.)"
        )
    _show_bound_values(console, found)
    console.print()
    console.print(_what_intervals_say(found))
    if found.certified is not None:
        console.print()
        console.print(_what_is_certified(found, found.certified))
    console.print("\nK is the number of arms; docs/bounds.md explains the rest.", style="dim")


def _show_bound_values(console: Console, found: Bounds) -> None:
    values, span = found.values(), found.reward_span
    names = {
        "corollary_1": "Corollary 1, the worst case",
        "theorem_1": f"Theorem 1, TS, Γ² = K/2 = {found.arms / 2:g}",
        "corollary_2": "Corollary 2, IDS with exact Δ and g",
        "theorem_2": f"Theorem 2, IDS, N = {found.policy_samples:,}",
    }
    units = "" if span == 1 else f" (in the reward's own units, which span {span:g})"
    console.print(f"\nExpected regret after T rounds is at most{units}", style="bold")
    if found.certified is not None:
        names["certified"] = f"Certificates, certified-ids, N = {found.policy_samples:,}"
        values = {**values, "certified": found.certified.bound}
    print_table(
        console,
        ("bound", "regret", "of the worst case"),
        [
            (text, _number(values[name] * span), _share(values[name], values["corollary_1"]))
            for name, text in names.items()
        ],
        right=("regret", "of the worst case"),
    )
    most = found.horizon * found.problem.payoff.largest_regret
    if values["corollary_2"] * span > most:
        console.print(
            f"\nMore than {most:,g} can't be lost in {found.horizon:,} rounds: "
            "bounds above that say nothing."
        )
    console.print(
        f"\nThe prior lowers the coefficient of √T from {found.worst_coefficient:.4f} to "
        f"{found.coefficient:.4f}: {100 * found.saving:.1f} % less."
    )
    console.print(
        f"Along one run of TS the largest Γ² was {found.run.largest_ratio:.3f}; were it never "
        f"larger, Theorem 1 would give {_number(values['theorem_1_run'] * span)} "
        f"({_share(values['theorem_1_run'], values['corollary_1'])}). That is a measurement, not a "
        "bound."
    )


def _what_intervals_say(found: Bounds) -> str:
    run, rounds = found.run, found.horizon
    if not run.infinite_rounds:
        gamma = (
            f"γ_t is finite in every round, and its sum is between {_number(run.gamma_low)} and "
            f"{_number(run.gamma_high)}."
        )
    else:
        gamma = (
            f"γ_t is infinite in {run.infinite_rounds:,} of {rounds:,} rounds, so Theorem 2 says "
            "nothing."
        )
    some = f"from about N = {found.samples_for_some:,.0f} on"
    if isinf(found.samples_for_some):
        some = "for no N"
    every = f"from about N = {found.samples_for_all:,.0f} on"
    if found.unresolved:
        every = f"perhaps never: of some arms g can't be told from 0 by {found.samples:,} draws"
    elif isinf(found.samples_for_all):
        every = "for no N"
    return (
        f"With N = {found.policy_samples:,} draws in a round"
        f"{_why(found.policy_samples, found)}, Lemma 4 says no more of any arm's information gain "
        f"g than that it is between 0 and log r in {run.vacuous_rounds:,} of {rounds:,} rounds; "
        f"{gamma} Before anything was seen the lower bound on some arm's gain "
        f"is positive {some}, that of every arm {every}."
    )


def _what_is_certified(found: Bounds, certified: Certified) -> str:
    span, trials = found.reward_span, len(certified.sums)
    return (
        f"In {100 * certified.share:.3g} % of the rounds of {trials:,} runs of certified-ids "
        f"(λ = {certified.lam:.3g}) draws certified what IDS would play. The bound is the upper "
        f"limit, at confidence 0.95, that so many runs leave; its mean is "
        f"{_number(certified.mean * span)}. What these runs did cost is "
        f"{_number(float(certified.regrets.mean()) * span)} on average: a measurement, not a bound."
    )


def _why(draws: int, found: Bounds) -> str:
    """Why there are so many draws, where it is for the number of arms."""
    each = draws // found.arms
    return f", {each} for each arm" if draws == each * found.arms and each in (10, 100) else ""


def _in_short(context: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={label}" for name, label in context.items())


def _share(value: float, whole: float) -> str:
    return "—" if isinf(value) or not whole else f"{100 * value / whole:.1f} %"


def _number(value: float) -> str:
    return "infinite" if isinf(value) else f"{value:,.2f}"
