"""Processes that ask and tell until they are killed.

    python experiment_writers.py STORE NAME SEED LOG [COUNT]

The result of each call is written to the log and synced to the disk after the call has returned:
whatever is in the log was acknowledged.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from itertools import repeat
from pathlib import Path


def start(store, name, seed, log, count=None):
    """Start a writer in another process."""
    command = [sys.executable, __file__, str(store), name, str(seed), str(log)]
    return subprocess.Popen(
        command + ([] if count is None else [str(count)]), stderr=subprocess.PIPE
    )


def acknowledged(log):
    """Return the arms and the rewards that a log has, by decision."""
    arms, rewards = {}, {}
    lines = Path(log).read_text("utf-8").split("\n") if Path(log).exists() else []
    for line in lines[:-1]:  # the last one has no line end, or is empty
        verb, number, text = line.split(" ", 2)
        (arms if verb == "asked" else rewards)[int(number)] = text
    return arms, rewards


def main(store, name, seed, log, count=None):
    from dowise import Experiment

    rng = random.Random(int(seed))
    experiment = Experiment.open(store, name)
    with Path(log).open("a", encoding="utf-8") as file:

        def acknowledge(line):
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

        for _ in repeat(None) if count is None else range(int(count)):
            decision = experiment.ask({"C": rng.randrange(2)})
            acknowledge(f"asked {decision.id} {decision.arm}")
            value = rng.randrange(2)
            experiment.tell(decision.id, {"Z": rng.randrange(2)})
            experiment.tell(decision.id, {"Y": value})
            acknowledge(f"told {decision.id} {value}")
    experiment.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
