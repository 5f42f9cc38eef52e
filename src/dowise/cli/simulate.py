"""Commands that play policies in simulated worlds: simulate, reproduce, rehearse."""

from __future__ import annotations

import os
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import click

from dowise.cli.arguments import parse_options, parse_policies, parse_policy_options, read_problem
from dowise.cli.console import print_document, print_json, progress_bars
from dowise.cli.options import (
    Number,
    command,
    figure_option,
    file_option,
    flag_option,
    integer_option,
    json_option,
    options_option,
    policy_module_option,
    policy_option,
    prior_option,
    problem_argument,
    seed_option,
)
from dowise.cli.signals import set_stop_message

_workers_option = integer_option(
    "--workers",
    "W",
    "Number of processes on this machine.",
    default=os.cpu_count() or 1,
    show_default="all cores",
)

_band_option = click.option(
    "--band",
    type=click.Choice(["se", "sd"]),
    default="se",
    show_default=True,
    help="Bands of figures: two standard errors, or two standard deviations as in the paper.",
)


@command(policies=True)
@click.argument("problems", nargs=-1, required=True, metavar="PROBLEM...")
@click.option(
    "--policies",
    required=True,
    metavar="NAME,NAME",
    callback=parse_policies,
    help="Policies to compare (listed below). LABEL=NAME gives a policy another name.",
)
@click.option(
    "--option",
    "pairs",
    multiple=True,
    metavar="POLICY.NAME=VALUE",
    help="Option of a policy, by its label: z2-ts.refresh=0.05; may be repeated.",
)
@click.option(
    "--world",
    type=click.Choice(["random", "bif"]),
    default="random",
    show_default=True,
    help="Draw new numbers in every trial, or use those of the problem's .bif file in all.",
)
@integer_option("--horizon", "T", "Rounds per trial.", default=1000)
@integer_option(
    "--trials", "K", "Trials per problem; each draws a world, except with --world bif.", default=100
)
@integer_option(
    "--samples", "N", "Posterior draws per round of ids, unless set by --option.", default=1000
)
@seed_option
@_workers_option
@click.option(
    "--cluster", metavar="ADDRESS", help="Dask scheduler to run on instead of local processes."
)
@file_option(
    "--out",
    "Directory for results. Repeat the command to continue a stopped run, or with more trials, "
    "rounds, policies or problems to extend it.",
    metavar="DIR",
)
@integer_option("--every", "R", "Keep only every R-th round, and the last.", default=1)
@integer_option(
    "--observational",
    "n",
    "Number of observational records that every policy sees first.",
    minimum=0,
    default=0,
)
@flag_option(
    "--strong", "Worlds with strong hidden causes: three values, and CPT rows from Dirichlet(0.2)."
)
@click.option(
    "--edges",
    type=click.Choice(["all", "prior"]),
    default="all",
    show_default=True,
    help="Draw worlds with all edges, or each doubtful (or soft) edge with its prior.",
)
@flag_option("--expected", "Also report the expected regret: the same mean with less noise.")
@figure_option("--figure", "the regret of every policy per round")
@_band_option
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
    """Compare policies in simulated worlds.

    Every trial draws a world for each PROBLEM (a built-in problem, a problem file, or
    chordal-SIZE-DENSITY for a random graph in every trial). All policies play the same worlds, so
    that differences are paired. With --world bif the worlds are not drawn: a problem whose graph
    comes from a .bif file (alarm, asia, …) has the numbers of that file in every trial. Results do
    not depend on the number of workers.

    Examples:
      dowise simulate task1 --policies ids,ts,ucb --horizon 500 --trials 100
      dowise simulate task1 task3 --policies ids,ts --trials 500 --out races/first
      dowise simulate task1 --policies ids,ts --trials 40 --expected
      dowise simulate alarm --world bif --policies ids,ts
      dowise simulate ward.toml --policies ids,bernoulli-ts --strong
      dowise simulate task1 --policies ids,few=ids,z2-ts --option few.samples=50 \\
        --option z2-ts.refresh=0.05 --figure race.png
      dowise simulate task1 --policies ids,mine:Greedy --option mine:Greedy.explore=0.1
      dowise simulate chordal-15-0.1 --policies ts,z2-ts --cluster tcp://10.0.0.5:8786
    """
    from dowise.environments import network_world
    from dowise.simulation import simulate as run

    out = settings["out"]
    if figure is not None:
        from dowise.plotting.figures import check_path

        check_path(figure, folder_to_be=out)
    defaults = {label: {"samples": samples} for label, name in policies.items() if name == "ids"}
    chosen = parse_policy_options(pairs, policies)
    options = {x: defaults.get(x, {}) | chosen.get(x, {}) for x in defaults | chosen}
    worlds = [network_world(name) for name in problems] if world == "bif" else problems
    _set_stop_message(out)
    with progress_bars() as show:
        result = run(
            worlds,
            policies.items(),
            options=options,
            progress=partial(show, "simulation"),
            **settings,
        )
    if as_json:
        places = {"out": out, "figure": figure}
        print_json(result.as_dict() | {name: x and str(x) for name, x in places.items()})
    else:
        print_document(result.document())
        if out is not None:
            click.echo(f"\nThe results are in {out}")
    if figure is not None:  # last, so that an error in it does not hide the numbers
        result.plot(figure, band=band, measure="expected" if settings["expected"] else "regret")
        if not as_json:
            click.echo(f"The regret is drawn in {figure}")


@command()
@click.argument("panels", nargs=-1, metavar="[PANEL]...")
@flag_option("--quick", "40 trials instead of 500: about two minutes.")
@integer_option("--trials", "K", "Trials per panel.", minimum=2)
@integer_option(
    "--horizon", "T", "Rounds per trial.", show_default="1000, or 500 with hidden causes"
)
@integer_option("--samples", "N", "Posterior draws per round of ids.", default=1000)
@_band_option
@seed_option
@_workers_option
@file_option(
    "--out",
    "Directory for figures, tables and report. Repeat the command to continue a stopped run, or "
    "with further panels to add them.",
    metavar="DIR",
    required=True,
)
def reproduce(panels: tuple[str, ...], **options: Any) -> None:
    """Reproduce the paper's experiments and check its claims.

    Panels: task1, task2, task3, random-10-0.1, random-15-0.1, random-15-0.2, healthcare; by default
    all of them. The report covers all panels in its directory. The full run takes half an hour on
    two cores.

    Beyond the paper, only if named: hidden causes in bow, front-door, instrument, task2-hidden,
    task3-hidden, two-causes, each also with -strong at its end; and wrong graphs in missing-arrow,
    missing-cause, missing-arrow-7, right-graph.

    Examples:
      dowise reproduce --quick --out out/quick
      dowise reproduce --out out/full
      dowise reproduce task3 healthcare --trials 100 --out out/two
      dowise reproduce missing-arrow right-graph --trials 100 --out out/wrong
    """
    from dowise.simulation.reproduce import reproduce as run

    _set_stop_message(options["out"])
    with progress_bars() as show:
        reproduction = run(panels=panels, progress=show, **options)
    print_document(reproduction.document())
    click.echo(f"The report is {reproduction.path / 'report.html'}")


def _set_stop_message(out: Path | None) -> None:
    if out:
        set_stop_message(f"; finished results are kept in {out}, and the same command continues")


@command(policies=True)
@problem_argument
@integer_option("--horizon", "T", "Number of rounds.", required=True)
@integer_option(
    "--worlds", "K", "Number of worlds to draw; each is played from the start.", default=20
)
@policy_option(default="best", show_default=True)
@options_option
@prior_option
@click.option(
    "--tolerance",
    type=Number(0),
    show_default="a hundredth of their range",
    metavar="LOSS",
    help="Loss per round that does not matter, in the units of the reward.",
)
@integer_option("--delay", "D", "Delay of outcomes, in rounds.", minimum=0, default=0)
@integer_option("--looks", "L", "Number of looks at the experiment along the rounds.", default=20)
@seed_option
@integer_option(
    "--workers",
    "W",
    "Number of processes on this machine; results do not depend on it.",
    show_default="all cores",
)
@figure_option("--figure", "the rehearsal")
@policy_module_option
@json_option
def rehearse(
    problem: str,
    pairs: tuple[str, ...],
    prior: str | None,
    workers: int | None,
    figure: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Rehearse an experiment in worlds drawn from the prior.

    Shows what to expect: the regret, compared with random choices; how sure you will be which arm
    is best, and how often rightly; and after how many rounds `dowise status` will advise to stop.
    Nothing is written except the figure.

    Examples:
      dowise rehearse task2 --horizon 200
      dowise rehearse ward.toml --horizon 300 --delay 20 --tolerance 0.02
      dowise rehearse ward.toml --horizon 300 --prior prior.toml --figure rehearsal.png
      dowise rehearse ward.toml --horizon 300 --policy ts --worlds 100 --json
      dowise rehearse ward.toml --horizon 300 --policy mine:Greedy --option explore=0.1
    """
    from dowise.experiment.rehearsal import rehearse as play

    if figure is not None:
        from dowise.plotting.figures import check_path

        check_path(figure)
    if workers is None:
        workers = (os.cpu_count() or 1) if find_spec("cloudpickle") else 1
    with progress_bars() as show:
        rehearsal = play(
            read_problem(problem),
            options=parse_options(pairs),
            prior=_parse_prior(prior),
            workers=workers,
            progress=partial(show, "rehearsal"),
            **settings,
        )
    if figure is not None:
        from dowise.experiment.plots import draw_rehearsal

        draw_rehearsal(rehearsal, figure)
    if as_json:
        print_json(rehearsal.as_dict())
        return
    print_document(rehearsal.document())
    if figure is not None:
        click.echo(f"\nThe rehearsal is drawn in {figure}")


def _parse_prior(text: str | None) -> Any:
    from dowise.problem.prior import is_prior_name, read_prior

    if text is None or is_prior_name(text):
        return text
    try:
        return float(text)
    except ValueError:
        return read_prior(text)
