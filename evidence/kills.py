"""Durability under kill -9 at random moments, with two concurrent writers.

    python evidence/kills.py [--kills 200] [--seed 0]

On a SQLite file, and on a PostgreSQL server where one can be started. After all kills every answer
that a writer noted down must be in the journal, none twice, decision numbers must have no gaps, the
audit must pass and the next decision must work.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from experiment.test_journal_kills import check_nothing_is_lost, kill_writers  # noqa: E402
from support.postgres_server import NO_POSTGRES, running_server  # noqa: E402

from dowise._core.files import write_text  # noqa: E402


def report(where, store, folder, kills, seed):
    started = time.monotonic()
    logs = kill_writers(store, folder, kills, seed)
    decisions, events = check_nothing_is_lost(store, logs)
    took = time.monotonic() - started
    line = (
        f"- {where}: {kills} kills, {decisions:,} decisions, {events:,} events; nothing that was "
        f"acknowledged is missing or there twice, the audit passes, the next decision works "
        f"({took:.0f} s)"
    )
    print(line)
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--trials", type=int, help="as --kills, for make evidence")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    kills = options.trials or options.kills
    lines = ["# Kill -9 at random moments", "", f"`python evidence/kills.py --kills {kills}`", ""]
    with tempfile.TemporaryDirectory() as folder:
        lines.append(report("SQLite", Path(folder) / "ward.db", Path(folder), kills, options.seed))
    with running_server() as server, tempfile.TemporaryDirectory() as folder:
        if server is None:
            lines.append(f"- PostgreSQL: not tried, {NO_POSTGRES}")
        else:
            url = server.url(server.new_database())
            lines.append(report("PostgreSQL", url, Path(folder), kills, options.seed))
    write_text(HERE / "results" / "kills.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
