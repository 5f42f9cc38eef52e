"""Draws have the same bits whatever x86-64 the kernels are compiled for.

The other machine is the plainest there is, with no vector instructions beyond SSE2 and no fused
multiplication, in a process of its own: this file, run as a script.
"""

import json
import os
import platform
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import dowise
from dowise import Belief, load_problem
from dowise.belief import draw_kernels as careful
from dowise.belief import draw_kernels as kernels
from dowise.belief import variates
from dowise.belief import variates as beta
from dowise.belief import variates as gamma
from dowise.model import kernels as circuits

PLAINEST = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}


def learnt(belief, rounds):
    """The belief after so many rounds of fair coins."""
    problem, rng = belief.problem, np.random.default_rng(0)
    for _ in range(rounds):
        arm = problem.arms[rng.integers(len(problem.arms))]
        belief.update(arm, {v: int(rng.integers(2)) for v in problem.graph if v not in arm})
    return belief


def digests():
    """By shape: whole and small, below 1 (in logarithms), large; in double precision as well."""
    found = {}
    for name in ("task1", "task3"):
        problem = load_problem(name)
        context = dict.fromkeys(problem.context, 1)
        for what, belief in {
            "prior 1": Belief(problem),
            "prior 0.05": Belief(problem, prior=0.05),
            "prior 0.05, 5 records": learnt(Belief(problem, prior=0.05), 5),
            "100 records": learnt(Belief(problem), 100),
            "100 records, prior 0.3": learnt(Belief(problem, prior=0.3), 100),
        }.items():
            draws = belief.draw(problem.context_codes(context), 1000, 0)
            found[f"{name}, {what}"] = sha256(draws.others.tobytes()).hexdigest()
    return found


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the promise ends here")
def test_draws_have_the_same_bits_compiled_for_the_plainest_processor(tmp_path):
    source = Path(dowise.__file__).parents[1]
    there = subprocess.run(
        [sys.executable, __file__],
        env=os.environ | PLAINEST | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(there.stdout)
    assert answer["vectors"] == "xmm"  # it was compiled for another machine indeed
    assert answer["digests"] == digests()


def test_no_kernel_of_the_draws_may_rearrange_or_fuse():
    """`fastmath` on any of them, or on a caller that one is inlined into, would end the promise."""
    for module in (variates, beta, gamma, kernels, careful, circuits):
        for name, value in vars(module).items():
            assert not getattr(value, "targetoptions", {}).get("fastmath"), name


if __name__ == "__main__":
    found = digests()
    (code,) = kernels.draw_results.inspect_asm().values()
    vectors = max(kind for kind in ("xmm", "ymm", "zmm") if kind in code)
    print(json.dumps({"vectors": vectors, "digests": found}))  # noqa: T201
