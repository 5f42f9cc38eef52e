"""Draws have the same bits on every x86-64 processor.

The kernels are compiled for a generic processor, without vector instructions beyond SSE2 and fused
multiplication, in another process, which runs this file as a script.
"""

import json
import os
import platform
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from support.beliefs import trained_belief

import dowise
from dowise import load_problem
from dowise.belief import draw_kernels, variates
from dowise.model import kernels as circuits

GENERIC = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}


def digests():
    """Return digests of draws with shapes that are small and whole, below 1, and large."""
    digests_by_case = {}
    for name in ("task1", "task3"):
        problem = load_problem(name)
        codes = problem.context_codes(dict.fromkeys(problem.context, 1))
        for prior, rounds in ((1.0, 0), (0.05, 0), (0.05, 5), (1.0, 100), (0.3, 100)):
            draws = trained_belief(problem, rounds, prior).draw(codes, 1000, 0)
            digest = sha256(draws.after_first.tobytes()).hexdigest()
            digests_by_case[f"{name}, prior {prior}, {rounds} records"] = digest
    return digests_by_case


@pytest.mark.slow
@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="the promise is for x86-64"
)
def test_draws_have_the_same_bits_on_a_generic_processor(tmp_path):
    paths = os.pathsep.join([str(Path(dowise.__file__).parents[1]), str(Path(__file__).parents[1])])
    process = subprocess.run(
        [sys.executable, __file__],
        env=os.environ | GENERIC | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    result = json.loads(process.stdout)
    assert result["vectors"] == "xmm"  # it was compiled for another processor
    assert result["digests"] == digests()


def test_no_kernel_of_the_draws_uses_fastmath():
    """It would allow rearranged and fused arithmetic, also in a caller of an inlined kernel."""
    for module in (variates, draw_kernels, circuits):
        for name, value in vars(module).items():
            assert not getattr(value, "targetoptions", {}).get("fastmath"), name


if __name__ == "__main__":
    by_case = digests()
    codes = draw_kernels.draw_results.inspect_asm().values()  # of whole and of any shapes
    vectors = max(kind for kind in ("xmm", "ymm", "zmm") for code in codes if kind in code)
    print(json.dumps({"vectors": vectors, "digests": by_case}))  # noqa: T201
