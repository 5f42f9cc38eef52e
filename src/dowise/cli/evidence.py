"""The command that judges a graph by records."""

from __future__ import annotations

from pathlib import Path

import click

from dowise.cli.group import command, json_option, load, print_json, problem_argument
from dowise.cli.numbers import Number

__all__ = ["check"]


@command("""\
  dowise check task2 records.csv
  dowise check ward.toml records.parquet --alpha 0.01 --strict
  dowise check ward.toml records.csv --json --picture ward.svg""")
@problem_argument
@click.argument("data", type=click.Path(path_type=Path))
@json_option
@click.option(
    "--alpha", type=Number(1e-12, 1, max_open=True), default=0.05, show_default=True,
    help="The chance of an alarm where the graph is right, over all edges and records together.",
)  # fmt: skip
@click.option(
    "--strict", is_flag=True,
    help="Keep to that chance by proof, not by simulation; it takes more records to see the same.",
)  # fmt: skip
@click.option(
    "--picture", type=click.Path(path_type=Path), metavar="FILE",
    help="Draw the graph with what is suspected to a .svg, .png or .pdf file.",
)  # fmt: skip
def check(
    problem: str, data: Path, as_json: bool, alpha: float, strict: bool, picture: Path | None
) -> None:
    """What past records say against the graph: edges that it lacks, and doubtful ones.

    DATA is a CSV or Parquet file with a row for each record and a column for each variable. A
    column `arm` says what was set, such as do(X=1); without it nothing was. Empty cells are missing
    values.
    """
    from dowise.belief import Belief
    from dowise.belief.evidence.rising import risen
    from dowise.cli.show_evidence import favoured, show_evidence, used
    from dowise.problem.tables import naming_the_file, read_table

    belief = Belief(load(problem), evidence=True)
    table = read_table(data, belief.problem)
    with naming_the_file(data):
        belief.learn_many(belief.problem.records(table))  # what was of no use is shown below
    evidence = belief.evidence(alpha, strict)
    if picture is not None:
        from dowise.picture import draw
        from dowise.picture import picture as picture_of

        suspected = (*evidence.suspected, *risen(belief))
        draw(picture_of(belief.problem, belief.edges(), suspected), picture)
    if as_json:
        more = {"edges": belief.edges(), "favoured": favoured(belief), "used": used(belief)}
        print_json(evidence.as_dict() | more | {"unused": belief.unused})
        return
    columns = getattr(table, "column_names", table)
    show_evidence(belief, evidence, {*columns})
    if picture is not None:
        click.echo(f"\nThe graph is drawn in {picture}")
