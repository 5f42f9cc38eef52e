"""The command that plays an experiment beforehand."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowise.cli.group import command, json_option, load, print_json, problem_argument
from dowise.cli.numbers import Number, WholeNumber
from dowise.cli.own_policies import named_policy, policy_module_option

if TYPE_CHECKING:
    from rich.console import Console

    from dowise.experiment.rehearsal import Rehearsal

__all__ = ["rehearse"]

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
    "--worlds", type=WholeNumber(1), default=20, show_default=True, metavar="K",
    help="How many worlds are drawn, each played from the start.",
)  # fmt: skip
@click.option(
    "--policy", default="best", show_default=True, metavar="NAME", callback=named_policy,
    help="Who decides; all are listed below.",
)  # fmt: skip
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE",
    help="An option of the policy, such as floor=0.1; may be given several times.",
)  # fmt: skip
@click.option(
    "--prior", metavar="NUMBER|FILE",
    help="What worlds are drawn from and the policy starts from: a count, or a .toml file of them.",
)  # fmt: skip
@click.option(
    "--tolerance", type=Number(0), show_default="a hundredth of their range", metavar="LOSS",
    help="What a round may cost without mattering, in the units of the reward.",
)  # fmt: skip
@click.option(
    "--delay", type=WholeNumber(0), default=0, show_default=True, metavar="D",
    help="Outcomes come so many rounds late.",
)  # fmt: skip
@click.option(
    "--looks", type=WholeNumber(1), default=20, show_default=True, metavar="L",
    help="How often along the rounds one looks where the experiment stands.",
)  # fmt: skip
@click.option(
    "--seed", type=WholeNumber(0), default=0, show_default=True, help="Of everything random."
)
@click.option(
    "--workers", type=WholeNumber(1), show_default="all cores", metavar="W",
    help="Processes on this machine; the numbers are the same for any number of them.",
)  # fmt: skip
@click.option(
    "--figure", type=click.Path(path_type=Path), metavar="FILE",
    help="Draw it all to a .svg, .png or .pdf file.",
)  # fmt: skip
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
    from dowise.cli.pairs import options_of
    from dowise.cli.progress import shown_progress
    from dowise.experiment.rehearsing import rehearse as play

    if figure is not None:
        from dowise.picture.drawing import check_path

        check_path(figure)
    if workers is None:
        workers = (os.cpu_count() or 1) if find_spec("cloudpickle") else 1
    with shown_progress() as show:
        found = play(
            load(problem), options=options_of(options), prior=_prior(prior), workers=workers,
            progress=lambda done, total: show("rehearsal", done, total), **settings,
        )  # fmt: skip
    if figure is not None:
        from dowise.experiment.rehearsal_figure import draw_rehearsal, rehearsal_figure

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
        from dowise.belief.prior import parse_prior
        from dowise.files import read_file

        return read_file(given, parse_prior)


def _show(found: Rehearsal) -> None:
    from dowise.cli.tables import plain_console, print_table, print_wrapped
    from dowise.plain import amount

    console = plain_console()
    for line in found.in_words().splitlines():
        print_wrapped(console, line)
    console.print()
    rows = [
        (
            f"{look['round']:,}", amount(look["regret"].mean), amount(look["at_random"]),
            amount(look["stopping"].mean), amount(look["cost"].mean),
            _percent(look["sure"].mean), _percent(look["best"]), _percent(look["stopped"]),
        )
        for look in _some(found.curve())
    ]  # fmt: skip
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
    from dowise.cli.tables import is_narrow_enough

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
