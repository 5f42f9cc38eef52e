"""Commands that race policies in known worlds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from rich.console import Console
from rich.text import Text

from dowise.cli.arguments import (
    Number,
    WholeNumber,
    command,
    import_policy,
    json_option,
    parse_policies,
    policy_module_option,
    problem_argument,
    read_problem,
)
from dowise.cli.console import count, plain_console, print_json, print_table
from dowise.cli.signals import set_stop_message
from dowise.simulation.analysis import Spread, differences, standings

if TYPE_CHECKING:
    from dowise.experiment.rehearsal import Rehearsal
    from dowise.simulation import Bounds, Result
    from dowise.simulation.bounds import Certified
    from dowise.simulation.reproduce import Reproduction


_seed = click.option(
    "--seed", type=WholeNumber(0), default=0, show_default=True, help="Of everything random."
)
_workers = click.option(
    "--workers",
    type=WholeNumber(1),
    default=os.cpu_count() or 1,
    show_default="all cores",
    metavar="W",
    help="Processes on this machine.",
)

_band = click.option(
    "--band",
    type=click.Choice(["se", "sd"]),
    default="se",
    show_default=True,
    help="Bands of figures: two standard errors, or two standard deviations as in the paper.",
)


@command(
    """\
  dowise simulate task1 --policies ids,ts,ucb --horizon 500 --trials 100
  dowise simulate task1 task3 --policies ids,ts --trials 500 --out races/first
  dowise simulate task1 --policies ids,ts --trials 40 --expected
  dowise simulate alarm --world bif --policies ids,ts
  dowise simulate ward.toml --policies ids,bernoulli-ts --strong
  dowise simulate task1 --policies ids,few=ids,z2-ts --option few.samples=50 \\
    --option z2-ts.refresh=0.05 --figure race.png
  dowise simulate task1 --policies ids,my_policies:Greedy --option my_policies:Greedy.explore=0.1
  dowise simulate chordal-15-0.1 --policies ts,z2-ts --cluster tcp://10.0.0.5:8786""",
    policies=True,
)
@click.argument("problems", nargs=-1, required=True, metavar="PROBLEM...")
@click.option(
    "--policies",
    required=True,
    metavar="NAME,NAME",
    callback=parse_policies,
    help="Which race; all are listed below. LABEL=NAME gives one a name of its own in this race.",
)
@click.option(
    "--option",
    "pairs",
    multiple=True,
    metavar="POLICY.NAME=VALUE",
    help="An option of a policy, by its name in the race: z2-ts.refresh=0.05; may be repeated.",
)
@click.option(
    "--world",
    type=click.Choice(["random", "bif"]),
    default="random",
    show_default=True,
    help="Numbers drawn afresh in every trial, or those of the problem's .bif file in all.",
)
@click.option(
    "--horizon",
    type=WholeNumber(1),
    default=1000,
    show_default=True,
    metavar="T",
    help="Rounds of a trial.",
)
@click.option(
    "--trials",
    type=WholeNumber(1),
    default=100,
    show_default=True,
    metavar="K",
    help="Of each problem; each draws a world, but for --world bif.",
)
@click.option(
    "--samples",
    type=WholeNumber(1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Posterior draws in each round of ids, unless an --option says otherwise.",
)
@_seed
@_workers
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler to work on instead.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep the results here; the same command goes on with a run that was stopped, and one "
    "with more trials, rounds, policies or problems extends it.",
)
@click.option(
    "--every",
    type=WholeNumber(1),
    default=1,
    show_default=True,
    metavar="R",
    help="Keep every R-th round only, and the last.",
)
@click.option(
    "--observational",
    type=WholeNumber(0),
    default=0,
    show_default=True,
    metavar="n",
    help="Records of what the world does by itself, shown to every policy first.",
)
@click.option(
    "--strong",
    is_flag=True,
    help="Worlds with strong hidden causes: three values, and CPT rows from Dirichlet(0.2).",
)
@click.option(
    "--edges",
    type=click.Choice(["all", "prior"]),
    default="all",
    show_default=True,
    help="Worlds with all edges drawn, or each doubtful one (soft too) with its prior.",
)
@click.option(
    "--expected",
    is_flag=True,
    help="Also what the posterior expects of the regret: the same mean with less noise.",
)
@click.option(
    "--figure",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw the regret of every policy, round by round, to a .svg, .png or .pdf file.",
)
@_band
@policy_module_option
@json_option
def simulate(
    problems: tuple[str, ...],
    policies: dict[str, str],
    pairs: tuple[str, ...],
    world: str,
    samples: int,
    figure: Path | None,
    band: Literal["se", "sd"],
    as_json: bool,
    **settings: Any,
) -> None:
    """Race policies in worlds with known numbers.

    Every trial draws a world for each PROBLEM (a name that `dowise problems` lists, a problem file,
    or chordal-SIZE-DENSITY for a random graph in every trial), the same for all policies, so that
    differences are paired. With --world bif the worlds are not drawn: a problem whose graph comes
    from a .bif file (alarm, asia, …) has that file's own numbers in every trial. Results are the
    same bits for any number of workers.
    """
    from dowise.cli.arguments import parse_policy_options
    from dowise.cli.console import shown_progress
    from dowise.environments import network_world
    from dowise.simulation import simulate as race

    out = settings["out"]
    if figure is not None:
        from dowise.plotting.figures import check_path

        check_path(figure, folder_to_be=out)
    drawn = {label: {"samples": samples} for label, name in policies.items() if name == "ids"}
    given = parse_policy_options(pairs, policies)
    options = {label: drawn.get(label, {}) | given.get(label, {}) for label in drawn | given}
    worlds = [network_world(name) for name in problems] if world == "bif" else problems
    _say_kept(out)
    with shown_progress() as show:
        result = race(
            worlds,
            policies.items(),
            options=options,
            progress=lambda done, total: show("race", done, total),
            **settings,
        )
    if as_json:
        places = {"out": out, "figure": figure}
        print_json(result.as_dict() | {name: x and str(x) for name, x in places.items()})
    else:
        show_race(result, out)
    if figure is not None:  # last, so that the numbers are there whatever happens to the picture
        result.plot(figure, band=band, measure="expected" if settings["expected"] else "regret")
        if not as_json:
            click.echo(f"The race is drawn in {figure}")


@command("""\
  dowise reproduce --quick --out out/quick
  dowise reproduce --out out/full
  dowise reproduce task3 healthcare --trials 100 --out out/two
  dowise reproduce missing-arrow right-graph --trials 100 --out out/wrong""")
@click.argument("panels", nargs=-1, metavar="[PANEL]...")
@click.option("--quick", is_flag=True, help="40 trials instead of 500: some two minutes.")
@click.option("--trials", type=WholeNumber(2), metavar="K", help="Trials of each panel.")
@click.option(
    "--horizon",
    type=WholeNumber(1),
    show_default="1000, or 500 with hidden causes",
    metavar="T",
    help="Rounds of a trial.",
)
@click.option(
    "--samples",
    type=WholeNumber(1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Posterior draws in each round of ids.",
)
@_band
@_seed
@_workers
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Figures, tables and report go here; the same command goes on with a stopped run, and "
    "further panels are added.",
)
def reproduce(panels: tuple[str, ...], **options: Any) -> None:
    """Run the paper's experiments again, and say which of its claims hold.

    Panels: task1, task2, task3, random-10-0.1, random-15-0.1, random-15-0.2, healthcare; all
    unless named; the report has all that were run in its folder. The full run takes half an hour on
    two cores.

    Beyond the paper, run if named: hidden causes in bow, front-door, instrument, task2-hidden,
    task3-hidden, two-causes, each also with -strong at its end; and wrong graphs in missing-arrow,
    missing-cause, missing-arrow-7, right-graph.
    """
    from dowise.cli.console import shown_progress
    from dowise.simulation.reproduce import reproduce as run

    _say_kept(options["out"])
    with shown_progress() as show:
        found = run(panels=panels, progress=show, **options)
    show_reproduction(found)


def _say_kept(out: Path | None) -> None:
    if out:
        set_stop_message(f"; what is done is kept in {out}, and the same command goes on")


_COLUMNS = ("round", "regret", "at random", "stopping", "truly", "sure", "right", "advised")
_STARTS = (3, 5)  # the columns where a new table may begin


@command(
    """\
  dowise rehearse task2 --horizon 200
  dowise rehearse ward.toml --horizon 300 --delay 20 --tolerance 0.02
  dowise rehearse ward.toml --horizon 300 --prior prior.toml --figure rehearsal.png
  dowise rehearse ward.toml --horizon 300 --policy ts --worlds 100 --json
  dowise rehearse ward.toml --horizon 300 --policy my_policies:Greedy --option explore=0.1""",
    policies=True,
)
@problem_argument
@click.option(
    "--horizon", type=WholeNumber(1), required=True, metavar="T", help="The number of rounds."
)
@click.option(
    "--worlds",
    type=WholeNumber(1),
    default=20,
    show_default=True,
    metavar="K",
    help="How many worlds are drawn, each played from the start.",
)
@click.option(
    "--policy",
    default="best",
    show_default=True,
    metavar="NAME",
    callback=import_policy,
    help="Who decides; all are listed below.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the policy, such as floor=0.1; may be given several times.",
)
@click.option(
    "--prior",
    metavar="NUMBER|FILE",
    help="What worlds are drawn from and the policy starts from: a count, or a .toml file of them.",
)
@click.option(
    "--tolerance",
    type=Number(0),
    show_default="a hundredth of their range",
    metavar="LOSS",
    help="What a round may cost without mattering, in the units of the reward.",
)
@click.option(
    "--delay",
    type=WholeNumber(0),
    default=0,
    show_default=True,
    metavar="D",
    help="Outcomes come so many rounds late.",
)
@click.option(
    "--looks",
    type=WholeNumber(1),
    default=20,
    show_default=True,
    metavar="L",
    help="How often along the rounds one looks where the experiment stands.",
)
@click.option(
    "--seed", type=WholeNumber(0), default=0, show_default=True, help="Of everything random."
)
@click.option(
    "--workers",
    type=WholeNumber(1),
    show_default="all cores",
    metavar="W",
    help="Processes on this machine; the numbers are the same for any number of them.",
)
@click.option(
    "--figure",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw it all to a .svg, .png or .pdf file.",
)
@policy_module_option
@json_option
def rehearse(
    problem: str,
    options: tuple[str, ...],
    prior: str | None,
    workers: int | None,
    figure: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Play a whole experiment beforehand, in worlds drawn from the prior.

    Tells what to expect: the regret, beside that of choosing at random; how sure one will be which
    arm is best, and whether rightly; and after how many rounds the advice of `dowise status` is to
    stop. Nothing is written but the figure.
    """
    from dowise.cli.arguments import parse_options
    from dowise.cli.console import shown_progress
    from dowise.experiment.rehearsal import rehearse as play

    if figure is not None:
        from dowise.plotting.figures import check_path

        check_path(figure)
    if workers is None:
        workers = (os.cpu_count() or 1) if find_spec("cloudpickle") else 1
    with shown_progress() as show:
        found = play(
            read_problem(problem),
            options=parse_options(options),
            prior=_prior(prior),
            workers=workers,
            progress=lambda done, total: show("rehearsal", done, total),
            **settings,
        )
    if figure is not None:
        from dowise.experiment.plots import draw_rehearsal, rehearsal_figure

        draw_rehearsal(rehearsal_figure(found), figure)
    if as_json:
        print_json(found.as_dict())
        return
    _show(found)
    if figure is not None:
        click.echo(f"\nThe rehearsal is drawn in {figure}")


def _prior(given: str | None) -> Any:
    if given is None:
        return None
    try:
        return float(given)
    except ValueError:
        from dowise._core.files import read_file
        from dowise.belief.prior import parse_prior

        return read_file(given, parse_prior)


def _show(found: Rehearsal) -> None:
    from dowise._core.document import format_number
    from dowise.cli.console import plain_console, print_table, print_wrapped

    console = plain_console()
    for line in found.in_words().splitlines():
        print_wrapped(console, line)
    console.print()
    rows = [
        (
            f"{look['round']:,}",
            format_number(look["regret"].mean),
            format_number(look["at_random"]),
            format_number(look["stopping"].mean),
            format_number(look["cost"].mean),
            _percent(look["sure"].mean),
            _percent(look["best"]),
            _percent(look["stopped"]),
        )
        for look in _some(found.curve())
    ]
    for header, *part in _parts(console, [_COLUMNS, *rows]):
        print_table(console, header, part, right=header)
        console.print()
    means = "Means over worlds, as in the figure. " if found.worlds > 1 else ""
    print_wrapped(
        console,
        f"{means}stopping: what stopping then is expected to cost a "
        "round, and truly does; sure: how likely what looks best is the best, by what is known; "
        "right: the share of worlds where it is, in every context at once; advised: the share "
        "where the advice was to stop by then.",
    )


def _parts(console: Console, rows: list[tuple[str, ...]]) -> list[list[tuple[str, ...]]]:
    """The rows, header first, in as few tables as the width allows, each with the round."""
    from dowise.cli.console import is_narrow_enough

    parts = [[row[: _STARTS[0]] for row in rows]]
    for start, end in zip(_STARTS, (*_STARTS[1:], None), strict=True):
        more = [row[start:end] for row in rows]
        wider = [(*row, *cells) for row, cells in zip(parts[-1], more, strict=True)]
        if is_narrow_enough(console, wider[0], wider[1:]):
            parts[-1] = wider
        else:
            parts.append([(row[0], *cells) for row, cells in zip(rows, more, strict=True)])
    return parts


def _some(looks: list[dict[str, Any]], most: int = 11) -> list[dict[str, Any]]:
    """So many of them at most, evenly spread, the first and the last among them."""
    last = len(looks) - 1
    places = (
        {round(i * last / (most - 1)) for i in range(most)} if last >= most else range(last + 1)
    )
    return [looks[i] for i in sorted(places)]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def show_race(result: Result, out: Path | None) -> None:
    """Final regrets of every policy on every problem, and every other policy against the first.

    With expected regret beside them, where the race has it.
    """
    console, finals = plain_console(), [result.final(measure) for measure in result.measures]
    several = len(finals) > 1
    print_table(
        console,
        (
            "problem",
            "policy",
            "final regret",
            *(("error", "expected regret", "error") if several else ("standard error",)),
            "trials",
        ),
        [
            (
                one[0].problem,
                one[0].policy,
                *(text for x in one for text in _with_error(x.regret)),
                f"{one[0].regret.trials:,}",
            )
            for one in zip(*map(standings, finals), strict=True)
        ],
        right=("final regret", "standard error", "error", "expected regret", "trials"),
    )
    of_each = [differences(final) for final in finals]
    paired = [one for one in zip(*of_each, strict=True) if one[0].difference.trials > 1]
    if paired:
        console.print("\nPaired differences", style="bold")
        print_table(
            console,
            (
                "problem",
                "difference",
                "mean",
                "95 % interval",
                *(("expected", "95 % interval") if several else ()),
            ),
            [
                (
                    one[0].problem,
                    f"{one[0].policy} − {one[0].than}",
                    *(text for x in one for text in _with_interval(x.difference)),
                )
                for one in paired
            ],
            right=("mean", "expected"),
        )
    if out is not None:
        console.print(f"\nThe results are in {out}", soft_wrap=True)


def _with_error(one: Spread) -> tuple[str, str]:
    return f"{one.mean:.2f}", f"{one.error:.2f}" if one.trials > 1 else ""


def _with_interval(one: Spread) -> tuple[str, str]:
    return f"{one.mean:+.2f}", "{:+.2f} to {:+.2f}".format(*one.interval)


def show_reproduction(found: Reproduction) -> None:
    """Final regrets panel by panel, which claims hold, and where the report is."""
    from dowise.simulation.paper_panels import BEYOND, PANELS

    console = plain_console()
    console.print("Final regret ± standard error", style="bold")
    _show_finals(console, found.finals)
    if found.expected:
        console.print("\nExpected regret ± standard error", style="bold")
        _show_finals(console, found.expected)
    for whose, panels in (("of the paper", PANELS), ("beyond the paper", BEYOND)):
        made = [claim for name in found.claims if name in panels for claim in found.claims[name]]
        if made:
            by = dict.fromkeys(_WORDS[claim.measure] for claim in made)
            console.print(
                f"\nOf {len(made)} claims {whose}, judged by {' or '.join(by)}, "
                f"{sum(claim.verdict == 'holds' for claim in made)} hold, "
                f"{sum(claim.verdict == 'does not hold' for claim in made)} do not, and "
                f"{sum(claim.verdict == 'not shown' for claim in made)} are not shown by so many "
                "trials."
            )
    console.print(f"The report is {found.path / 'report.html'}", soft_wrap=True)


_WORDS = {"expected": "expected regret", "regret": "regret"}


def _show_finals(console: Console, panels: Mapping[str, Mapping[str, Spread]]) -> None:
    kinds = dict.fromkeys(tuple(finals) for finals in panels.values())
    for policies in kinds:  # a table for the panels that have these policies
        print_table(
            console,
            ("panel", *policies),
            [
                (name, *(f"{one.mean:.1f} ±{one.error:.1f}" for one in finals.values()))
                for name, finals in panels.items()
                if tuple(finals) == policies
            ],
            right=policies,
        )


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
