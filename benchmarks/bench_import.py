"""An import of a million past records, from the file to what is learned, beside pandas alone.

    make bench

A CSV file of 1,000,000 rows, eight variables of two values and the arm, of which a few thousand
rows are bad. The yardstick is `pandas.read_csv` of the same file, which checks nothing.
"""

from __future__ import annotations

import json
from time import perf_counter

import numpy as np
import pandas as pd
import pytest

from dowise import Belief, CausalGraph, Problem
from dowise.experiment.record_columns import digest, pack, unpack
from dowise.problem.tables import read_records

ROWS, BAD = 1_000_000, 3_000
NAMES = [*(f"V{i}" for i in range(7)), "Y"]
PROBLEM = Problem(
    CausalGraph.parse("V0 -> V1 -> V2 -> V3 -> V4 -> V5 -> V6 -> Y; V0 -> Y"), "Y", "V0"
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(2, size=(ROWS, 8)), columns=NAMES)
    done = np.where(frame["V6"] == 1, "do(V6=1)", "do(V6=0)")
    frame.insert(0, "arm", np.where(rng.random(ROWS) < 0.5, done, "do()"))
    frame = frame.astype(str)
    frame.loc[rng.choice(ROWS, BAD, replace=False), "Y"] = [f"{i}.5" for i in range(BAD)]
    found = tmp_path_factory.mktemp("import") / "records.csv"
    frame.to_csv(found, index=False)
    return found


def test_import(benchmark, path):
    warm = Belief(PROBLEM)
    warm.posterior.learn_many(PROBLEM.records({"Y": [0]}))  # compiled once, kept on disk
    times: dict[str, list[float]] = {}

    def timed(what, function):
        start = perf_counter()
        result = function()
        times.setdefault(what, []).append(perf_counter() - start)
        return result

    def whole():
        checked = timed("read and check", lambda: read_records(path, PROBLEM))
        assert checked.bad_count == BAD and len(checked.batch) == ROWS - BAD
        page = timed("pack", lambda: json.dumps(pack(checked.batch)))
        found = timed("unpack", lambda: unpack(json.loads(page), PROBLEM))
        timed("digest", lambda: digest(json.loads(page)))
        belief = Belief(PROBLEM)
        timed("learn", lambda: belief.posterior.learn_many(found.batch))
        assert belief.times_learned()["V0"] == ROWS - BAD
        return len(page)

    benchmark.group = "import"
    size = benchmark.pedantic(whole, rounds=3, iterations=1)
    for _ in range(3):
        timed("pandas.read_csv alone", lambda: pd.read_csv(path, dtype=str))
    print(f"\n{ROWS:,} rows, {path.stat().st_size / 1e6:.1f} MB as CSV, {size / 1e6:.1f} MB packed")
    for what, seconds in times.items():
        print(f"  {what}: {min(seconds):.2f} s")
