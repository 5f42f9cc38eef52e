"""Processes that ask and tell for as long as they live, for tests that kill them.

    python writers.py STORE NAME SEED LOG [COUNT]

Each call's answer is written to the log, and forced to the disk, once the call has returned: what
is in the log was acknowledged.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__)


def start(store, name, seed, log, count=None):
    """A writer of its own, in another process."""
    line = [sys.executable, str(HERE), str(store), name, str(seed), str(log)]
    return subprocess.Popen(line + ([] if count is None else [str(count)]), stderr=subprocess.PIPE)


def acknowledged(log):
    """What a log says was answered: decisions that were given, and values that were told."""
    asked, told = {}, {}
    lines = Path(log).read_text("utf-8").split("\n") if Path(log).exists() else []
    for line in lines[:-1]:  # the last one has no line end, or is empty
        verb, number, what = line.split(" ", 2)
        (asked if verb == "asked" else told)[int(number)] = what
    return asked, told


def main(store, name, seed, log, count=None):
    from dowise import Experiment

    rng = random.Random(int(seed))
    experiment = Experiment.open(store, name)
    with Path(log).open("a", encoding="utf-8") as page:

        def note(line):
            page.write(line + "\n")
            page.flush()
            os.fsync(page.fileno())

        left = None if count is None else int(count)
        while left is None or left > 0:
            decision = experiment.ask({"C": rng.randrange(2)})
            note(f"asked {decision.id} {decision.arm}")
            value = rng.randrange(2)
            experiment.tell(decision.id, {"Z": rng.randrange(2)})
            experiment.tell(decision.id, {"Y": value})
            note(f"told {decision.id} {value}")
            left = None if left is None else left - 1
    experiment.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
