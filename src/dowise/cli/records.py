"""Files of past records on the command line: `dowise import`, and `dowise new --data`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowise.cli.group import command, print_json
from dowise.cli.store import Where, on_store
from dowise.errors import DowiseError

if TYPE_CHECKING:
    from dowise.problem import Problem
    from dowise.problem.tables import CheckedRecords

__all__ = ["bad_rows", "import_records", "listing_bad_rows", "read", "shown_bad_rows"]

SHOWN = 20  # bad rows on a terminal


@command(
    """\
  dowise import ward.db past.csv
  dowise import ward.db past.parquet --skip-bad
  dowise import ward.db january.csv --again""",
    name="import",
)
@on_store()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--skip-bad", is_flag=True, help="Leave bad rows out; they are listed all the same.")
@click.option("--again", is_flag=True, help="Count records once more that were imported before.")
def import_records(where: Where, file: Path, skip_bad: bool, again: bool, as_json: bool) -> None:
    """Bring past records in: a CSV or Parquet FILE, a row a record, a column a variable.

    A column `arm` says what was set, such as do(X=1); without it nothing was. Empty cells are
    missing values; so are NA, N/A, nan and null where they are no labels. Where a row is bad
    nothing is imported, and the bad ones are listed.
    """
    from dowise.cli.show_live import show_imported, use_of

    with where.open() as experiment:
        found = read(file, experiment.problem)
        with listing_bad_rows(file, as_json):
            count = experiment.import_records(
                found, source=file.name, skip_bad=skip_bad, again=again
            )
        if as_json:
            page = {"imported": count, **bad_rows(found), "head": str(experiment.head)}
            notes = use_of(experiment) if count else []
            print_json(page | {"notes": notes, "changed": bool(count)})
        else:
            show_imported(experiment, file, count, found)


def read(path: Path, problem: Problem) -> CheckedRecords:
    """The records of a file, with a bar on a terminal."""
    from dowise.cli.progress import bar
    from dowise.problem.tables import read_records

    with bar() as show:
        return read_records(path, problem, track=show)


@contextmanager
def listing_bad_rows(path: Path | None, as_json: bool) -> Iterator[None]:
    """An error about bad rows lists the first of them; as JSON, all that are explained."""
    from dowise.experiment.importing import BadRowsError

    try:
        yield
    except BadRowsError as error:
        message = f"{path}: {error.summary}. Mend them, or leave them out with --skip-bad"
        if as_json:
            print_json({"imported": 0, **bad_rows(error.found), "error": message})
            raise DowiseError(message) from None
        raise DowiseError("\n".join([message, *shown_bad_rows(error.found)])) from None


def bad_rows(found: CheckedRecords) -> dict[str, Any]:
    """For JSON: how many rows are bad, and what is wrong with them; lines count from 1."""
    rows = [{"row": bad.row, "line": bad.line, "why": bad.why} for bad in found.bad]
    return {"bad_count": found.bad_count, "bad": rows}


def shown_bad_rows(found: CheckedRecords) -> list[str]:
    """The first bad rows as lines, and how many more there are."""
    lines = [f"  {bad}" for bad in found.bad[:SHOWN]]
    more = found.bad_count - len(lines)
    return [*lines, f"  … and {more:,} more"] if more else lines
