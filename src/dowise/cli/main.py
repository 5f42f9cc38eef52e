"""`dowise …`: one small function a command; everything heavy is imported inside it."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowise.errors import DowiseError

if TYPE_CHECKING:
    from dowise.problem import Problem

__all__ = ["main"]


class _PlainSpeaking(click.Group):
    """Turns every error of ours into one line on stderr and exit status 2."""

    def invoke(self, context: click.Context) -> Any:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A terminal that has no Σ shows a question mark; that is no reason to stop.
            sys.stdout.reconfigure(errors="replace")
        try:
            result = super().invoke(context)
            sys.stdout.flush()
            return result
        except DowiseError as error:
            message = str(error)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # the reader has seen enough; click leaves quietly
            message = f"the output can't be written: {error.strerror}"
            # What is still in the buffer would fail again when Python exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
        click.echo(message, err=True)
        return context.exit(2)


def _print_version(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked:
        import dowise

        click.echo(f"dowise {dowise.__version__}")
        context.exit()


@click.group(
    cls=_PlainSpeaking,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with:  dowise arms healthcare",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help="Print the version and leave.",
)  # fmt: skip
def main() -> None:
    """Decide which intervention to try next when the causal graph is known and the numbers are not.

    PROBLEM is a problem file (.toml) or the name of a built-in problem; `dowise problems` lists
    those.
    """


_problem = click.argument("problem")
_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document, nothing else."
)


def _command(epilog: str) -> Callable[[Callable[..., None]], click.Command]:
    return main.command(epilog="\b\nExamples:\n" + epilog)


@_command("""\
  dowise arms healthcare
  dowise arms my-problem.toml --picture graph.svg
  dowise arms task3 --json""")
@_problem
@_json
@click.option(
    "--picture", type=click.Path(path_type=Path), metavar="FILE",
    help="Draw the graph, roles in colour, to a .svg, .png or .pdf file.",
)  # fmt: skip
def arms(problem: str, as_json: bool, picture: Path | None) -> None:
    """The interventions that can possibly be optimal."""
    loaded = _load(problem)
    if picture is not None:
        from dowise.problem.picture import draw
        from dowise.problem.picture import picture as picture_of

        draw(picture_of(loaded), picture)
    if as_json:
        sets = [sorted(names) for names in loaded.intervention_sets]
        _print_json({"intervention_sets": sets, "arms": [dict(arm) for arm in loaded.arms]})
        return
    from dowise.cli.show import show_arms

    show_arms(loaded)
    if picture is not None:
        click.echo(f"\nThe graph is drawn in {picture}")


@_command("""\
  dowise formulas task1
  dowise formulas task2 --latex""")
@_problem
@_json
@click.option("--latex", is_flag=True, help="Print LaTeX instead of text.")
def formulas(problem: str, as_json: bool, latex: bool) -> None:
    """Each arm's expected reward as a formula, and what the other arms' data tell of it.

    First the truncated factorisation of each arm. Then, for each intervention set, the formulas by
    which its reward can be estimated from experiments on other sets (z²ID); P_x is the
    distribution under do(x).
    """
    from dowise.cli.show import show_estimators
    from dowise.identification import estimators
    from dowise.problem.formulas import formulas as formulas_of

    loaded = _load(problem)
    found = formulas_of(loaded)
    if as_json:
        _print_json(
            {
                "formulas": [
                    {
                        "arm": dict(formula.arm),
                        "factorises": formula.obstacle is None,
                        "text": str(formula),
                        "latex": formula.latex(),
                        "estimators": [
                            {
                                "text": str(way),
                                "latex": way.latex(),
                                "direct": way.is_direct,
                                "any": list(way.any_value),
                            }
                            for way in estimators(loaded)[formula.arm.variables]
                        ],
                    }
                    for formula in found
                ]
            }
        )
        return
    for formula in found:
        click.echo(formula.latex() if latex else str(formula))
    show_estimators(loaded, latex)


@_command("""\
  dowise bounds task1 --horizon 1000
  dowise bounds healthcare --horizon 500 --policy-samples 100000
  dowise bounds my-problem.toml --horizon 1000 --json""")
@_problem
@_json
@click.option(
    "--horizon", type=click.IntRange(1), required=True, metavar="T", help="The number of rounds."
)
@click.option(
    "--samples", type=click.IntRange(1), default=50_000, show_default=True, metavar="M",
    help="Draws at the prior, for p* and the entropy H(Π*).",
)  # fmt: skip
@click.option(
    "--policy-samples", type=click.IntRange(1), default=1000, show_default=True, metavar="N",
    help="Draws in each round of the run.",
)  # fmt: skip
@click.option(
    "--delta", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.05,
    show_default=True, help="The intervals may fail with this probability, over the whole run.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True,
    help="Of the draws, and of the world of the run.",
)  # fmt: skip
def bounds(problem: str, as_json: bool, horizon: int, **options: Any) -> None:
    """How much regret to expect at most: the paper's bounds, with numbers.

    From the prior on, where nothing has been seen yet. Theorems 1 and 2 are taken along one run of
    Thompson Sampling in a world drawn from the prior.
    """
    from dowise.cli.show import show_bounds, tracked
    from dowise.simulation import bounds as bounds_of

    found = bounds_of(_load(problem), horizon, **options, track=tracked)
    if as_json:
        _print_json(found.as_dict())
    else:
        show_bounds(found)


_seed = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of everything random."
)
_workers = click.option(
    "--workers", type=click.IntRange(1), default=os.cpu_count() or 1, show_default="all cores",
    metavar="W", help="Processes on this machine.",
)  # fmt: skip


@_command("""\
  dowise simulate task1 --policies ids,ts,ucb --horizon 500 --trials 100
  dowise simulate task1 task3 --policies ids,ts --trials 500 --out races/first
  dowise simulate chordal-15-0.1 --policies ts,z2-ts --cluster tcp://10.0.0.5:8786""")
@click.argument("problems", nargs=-1, required=True, metavar="PROBLEM...")
@click.option(
    "--policies", required=True, metavar="NAME,NAME", help="Which policies race, by their names."
)
@click.option(
    "--horizon", type=click.IntRange(1), default=1000, show_default=True, metavar="T",
    help="Rounds of a trial.",
)  # fmt: skip
@click.option(
    "--trials", type=click.IntRange(1), default=100, show_default=True, metavar="K",
    help="Worlds for each problem.",
)  # fmt: skip
@click.option(
    "--samples", type=click.IntRange(1), default=1000, show_default=True, metavar="N",
    help="Posterior draws in each round of ids.",
)  # fmt: skip
@_seed
@_workers
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler to work on instead.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR",
    help="Keep the results here; the same command goes on with a run that was stopped.",
)  # fmt: skip
@click.option(
    "--every", type=click.IntRange(1), default=1, show_default=True, metavar="R",
    help="Keep every R-th round only, and the last.",
)  # fmt: skip
@click.option(
    "--observational", type=click.IntRange(0), default=0, show_default=True, metavar="n",
    help="Records of what the world does by itself, shown to every policy first.",
)  # fmt: skip
@_json
def simulate(
    problems: tuple[str, ...], policies: str, samples: int, as_json: bool, **options: Any
) -> None:
    """Race policies in worlds with known numbers.

    Every trial draws a world for each PROBLEM, the same for all policies, so that differences are
    paired. Results are the same bits for any number of workers.
    """
    from dowise.cli.progress import shown_progress
    from dowise.cli.show import final_table, show_race
    from dowise.simulation import simulate as race

    names = [name.strip() for name in policies.split(",") if name.strip()]
    own = {"ids": {"samples": samples, "horizon": options["horizon"]}} if "ids" in names else {}
    with _kept(options["out"]), shown_progress() as show:
        result = race(
            problems, names, options=own, progress=lambda done, total: show("race", done, total),
            **options,
        )  # fmt: skip
    if as_json:
        _print_json({"final": final_table(result), "out": str(options["out"] or "") or None})
    else:
        show_race(result, options["out"])


@_command("""\
  dowise reproduce --quick --out out/quick
  dowise reproduce --out out/full
  dowise reproduce task3 healthcare --trials 100 --out out/two""")
@click.argument("panels", nargs=-1, metavar="[PANEL]...")
@click.option("--quick", is_flag=True, help="40 trials instead of 500: some two minutes.")
@click.option("--trials", type=click.IntRange(2), metavar="K", help="Trials of each panel.")
@click.option(
    "--horizon", type=click.IntRange(1), default=1000, show_default=True, metavar="T",
    help="Rounds of a trial.",
)  # fmt: skip
@click.option(
    "--samples", type=click.IntRange(1), default=1000, show_default=True, metavar="N",
    help="Posterior draws in each round of ids.",
)  # fmt: skip
@click.option(
    "--band", type=click.Choice(["se", "sd"]), default="se", show_default=True,
    help="Bands of two standard errors, or of two standard deviations as in the paper.",
)  # fmt: skip
@_seed
@_workers
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="DIR",
    help="Figures, tables and report go here; the same command goes on with a stopped run.",
)  # fmt: skip
def reproduce(panels: tuple[str, ...], **options: Any) -> None:
    """Run the paper's experiments again, and say which of its claims hold.

    Panels: task1, task2, task3, random-10-0.1, random-15-0.1, random-15-0.2, healthcare; all
    unless named. The full run takes about an hour on two cores.
    """
    from dowise.cli.progress import shown_progress
    from dowise.cli.show import show_reproduction
    from dowise.simulation.reproduce import reproduce as run

    with _kept(options["out"]), shown_progress() as show:
        found = run(panels=panels, progress=show, **options)
    show_reproduction(found)


@contextmanager
def _kept(out: Path | None) -> Iterator[None]:
    """Ctrl-C ends a race with a word on what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        kept = f"; what is done is kept in {out}, and the same command goes on" if out else ""
        click.echo(f"\nStopped{kept}.", err=True)
        raise click.exceptions.Exit(130) from None


@_command("  dowise problems")
@_json
def problems(as_json: bool) -> None:
    """The problems that come built in."""
    from dowise.problem import builtin_names

    found = [(name, _load(name)) for name in builtin_names()]
    if as_json:
        _print_json(
            {
                "problems": [
                    {"name": name, "description": problem.description, "arms": len(problem.arms)}
                    for name, problem in found
                ]
            }
        )
        return
    from dowise.cli.show import show_problems

    show_problems(found)


def _load(source: str) -> Problem:
    from dowise.problem import load_problem

    return load_problem(source)


def _print_json(document: object) -> None:
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
