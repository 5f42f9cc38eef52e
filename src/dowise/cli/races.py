"""Commands that race policies in known worlds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import click

from dowise.cli.group import command, json_option, print_json
from dowise.cli.numbers import WholeNumber
from dowise.cli.own_policies import named_policies, policy_module_option
from dowise.cli.stopping import say_kept

__all__ = ["reproduce", "simulate"]

_seed = click.option(
    "--seed", type=WholeNumber(0), default=0, show_default=True, help="Of everything random."
)
_workers = click.option(
    "--workers", type=WholeNumber(1), default=os.cpu_count() or 1, show_default="all cores",
    metavar="W", help="Processes on this machine.",
)  # fmt: skip

_band = click.option(
    "--band", type=click.Choice(["se", "sd"]), default="se", show_default=True,
    help="Bands of figures: two standard errors, or two standard deviations as in the paper.",
)  # fmt: skip


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
    "--policies", required=True, metavar="NAME,NAME", callback=named_policies,
    help="Which race; all are listed below. LABEL=NAME gives one a name of its own in this race.",
)  # fmt: skip
@click.option(
    "--option", "pairs", multiple=True, metavar="POLICY.NAME=VALUE",
    help="An option of a policy, by its name in the race: z2-ts.refresh=0.05; may be repeated.",
)  # fmt: skip
@click.option(
    "--world", type=click.Choice(["random", "bif"]), default="random", show_default=True,
    help="Numbers drawn afresh in every trial, or those of the problem's .bif file in all.",
)  # fmt: skip
@click.option(
    "--horizon", type=WholeNumber(1), default=1000, show_default=True, metavar="T",
    help="Rounds of a trial.",
)  # fmt: skip
@click.option(
    "--trials", type=WholeNumber(1), default=100, show_default=True, metavar="K",
    help="Of each problem; each draws a world, but for --world bif.",
)  # fmt: skip
@click.option(
    "--samples", type=WholeNumber(1), default=1000, show_default=True, metavar="N",
    help="Posterior draws in each round of ids, unless an --option says otherwise.",
)  # fmt: skip
@_seed
@_workers
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler to work on instead.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR",
    help="Keep the results here; the same command goes on with a run that was stopped, and one "
    "with more trials, rounds, policies or problems extends it.",
)  # fmt: skip
@click.option(
    "--every", type=WholeNumber(1), default=1, show_default=True, metavar="R",
    help="Keep every R-th round only, and the last.",
)  # fmt: skip
@click.option(
    "--observational", type=WholeNumber(0), default=0, show_default=True, metavar="n",
    help="Records of what the world does by itself, shown to every policy first.",
)  # fmt: skip
@click.option(
    "--strong", is_flag=True,
    help="Worlds with strong hidden causes: three values, and CPT rows from Dirichlet(0.2).",
)  # fmt: skip
@click.option(
    "--edges", type=click.Choice(["all", "prior"]), default="all", show_default=True,
    help="Worlds with all edges drawn, or each doubtful one (soft too) with its prior.",
)  # fmt: skip
@click.option(
    "--expected", is_flag=True,
    help="Also what the posterior expects of the regret: the same mean with less noise.",
)  # fmt: skip
@click.option(
    "--figure", type=click.Path(path_type=Path), metavar="FILE",
    help="Draw the regret of every policy, round by round, to a .svg, .png or .pdf file.",
)  # fmt: skip
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
    from dowise.cli.pairs import options_by_policy
    from dowise.cli.progress import shown_progress
    from dowise.cli.show_races import show_race
    from dowise.environments import network_world
    from dowise.simulation import simulate as race

    out = settings["out"]
    if figure is not None:
        from dowise.picture.drawing import check_path

        check_path(figure, folder_to_be=out)
    drawn = {label: {"samples": samples} for label, name in policies.items() if name == "ids"}
    given = options_by_policy(pairs, policies)
    options = {label: drawn.get(label, {}) | given.get(label, {}) for label in drawn | given}
    worlds = [network_world(name) for name in problems] if world == "bif" else problems
    _say_kept(out)
    with shown_progress() as show:
        result = race(
            worlds, policies.items(), options=options,
            progress=lambda done, total: show("race", done, total), **settings,
        )  # fmt: skip
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
    "--horizon", type=WholeNumber(1), show_default="1000, or 500 with hidden causes",
    metavar="T", help="Rounds of a trial.",
)  # fmt: skip
@click.option(
    "--samples", type=WholeNumber(1), default=1000, show_default=True, metavar="N",
    help="Posterior draws in each round of ids.",
)  # fmt: skip
@_band
@_seed
@_workers
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="DIR",
    help="Figures, tables and report go here; the same command goes on with a stopped run, and "
    "further panels are added.",
)  # fmt: skip
def reproduce(panels: tuple[str, ...], **options: Any) -> None:
    """Run the paper's experiments again, and say which of its claims hold.

    Panels: task1, task2, task3, random-10-0.1, random-15-0.1, random-15-0.2, healthcare; all
    unless named; the report has all that were run in its folder. The full run takes half an hour on
    two cores.

    Beyond the paper, run if named: hidden causes in bow, front-door, instrument, task2-hidden,
    task3-hidden, two-causes, each also with -strong at its end; and wrong graphs in missing-arrow,
    missing-cause, missing-arrow-7, right-graph.
    """
    from dowise.cli.progress import shown_progress
    from dowise.cli.show_races import show_reproduction
    from dowise.simulation.reproduce import reproduce as run

    _say_kept(options["out"])
    with shown_progress() as show:
        found = run(panels=panels, progress=show, **options)
    show_reproduction(found)


def _say_kept(out: Path | None) -> None:
    if out:
        say_kept(f"; what is done is kept in {out}, and the same command goes on")
